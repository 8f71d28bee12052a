"""The experiments on real data, by name: from automatic downloads, given folders or features.

With the option ``features``, heads are fitted on a file of features. With ``data``, a network is
trained on the folder that a user downloaded or, for CLIP, an encoder is applied to it.
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from isrlearn.datasets import Splits
from isrlearn.io import load_features
from isrlearn.paper.datasets import (
    load_celeba,
    load_fashion_on_photos,
    load_law_school,
    load_mc_cmnist,
    load_multinli,
    load_rcfmnist,
    load_waterbirds,
)
from isrlearn.paper.real.features import TrainedFeatures, as_oracle, mapped, trained_features
from isrlearn.paper.real.methods import Rule
from isrlearn.paper.real.networks import (
    ENCODERS,
    batch_normalised,
    convolutional,
    efficientnet_lite0,
    network_for,
    perceptron,
    resnet18,
)
from isrlearn.paper.real.tables import HEADS, ORACLE, Experiment

_SCORES = ("average_accuracy", "worst_group_accuracy")
_PAIRS = ("isr-mean-published", "isr-mean", "isr-cov-published", "isr-cov")
_METHODS = ("original", *_PAIRS, "refit", "reweighted", "dfr", "leace")
_REGRESSION = ("original", "isr-regression-published", "isr-regression", "refit", "leace")
_TRAINED = {"erm": "ERM", "reweighting": "Reweighting", "group_dro": "GroupDRO"}


#: How the authors trained on a folder: loader, network, step size and L2 penalty by ERM, and those
#: by reweighting and GroupDRO.
_SOURCES: Mapping[str, tuple[Callable[[Any], Splits], str, dict[bool, tuple[float, float]]]] = {
    "waterbirds": (load_waterbirds, "resnet50", {True: (1e-4, 0.1), False: (1e-5, 1.0)}),
    "celeba": (load_celeba, "resnet50", {True: (1e-4, 0.01), False: (1e-5, 0.1)}),
    "multinli": (load_multinli, "bert", {True: (2e-5, 0.0), False: (2e-5, 0.0)}),
}


def _on_folder(
    name: str, trained_with: str, seed: int, options: Mapping[str, Any], checkpoint: Path
) -> TrainedFeatures:
    """Features of an experiment: from the file, or of a network trained on the folder."""
    if options["features"] is not None:
        if trained_with not in HEADS:
            raise ValueError(
                f"trained_with={trained_with!r}: heads on a file of features are trained with "
                f"{' or '.join(HEADS)}"
            )
        return TrainedFeatures(load_features(options["features"]), None)
    load, _, published = _SOURCES[name]
    splits = load(options["data"])
    model, read, layer = network_for(options["network"], splits, seed, options["side"])
    lr, penalty = published[trained_with == "erm"]
    settings: dict[str, Any] = {"lr": options["lr"] or lr, "weight_decay": penalty}
    settings |= {"epochs": options["epochs"], "optimizer": "adam" if name == "multinli" else "sgd"}
    how = {"seed": seed, "batch_size": options["batch_size"], "read": read, "layer": layer}
    how["checkpoint"] = checkpoint
    return trained_features(splits, model, trained_with, settings, **how)


def _clip(
    trained_with: str, seed: int, options: Mapping[str, Any], _checkpoint: Path
) -> TrainedFeatures:
    """Features of an encoder on Waterbirds."""
    if options["features"] is not None:
        return TrainedFeatures(load_features(options["features"]), None)
    splits = load_waterbirds(options["data"])
    return TrainedFeatures(mapped(splits, ENCODERS[options["network"]]()), None)


def _experiment(name: str, title: str, **options: Any) -> Experiment:
    defaults = {"data": None, "features": None, "network": "small", "side": 32, "lr": None}
    defaults |= {"epochs": 5, "batch_size": 32}
    return Experiment(
        name=name,
        title=title,
        table="real_datasets",
        dataset=title,
        scores=_SCORES,
        trained_with=_TRAINED,
        methods=_METHODS,
        main=("original", "isr-mean", "isr-cov"),
        features=partial(_on_folder, name),
        options=defaults,
        full={"network": _SOURCES[name][1], "side": 224, **options},
        n_seeds=10,
    )


WATERBIRDS = _experiment("waterbirds", "Waterbirds", epochs=300, batch_size=128)
CELEBA = _experiment("celeba", "CelebA", epochs=50, batch_size=128)
MULTINLI = _experiment("multinli", "MultiNLI", epochs=3, batch_size=32)
CLIP = Experiment(
    name="clip",
    title="CLIP on Waterbirds",
    table="clip",
    dataset="Waterbirds",
    scores=_SCORES,
    trained_with={"erm": "ERM", "reweighting": "Reweighting"},
    methods=("original", *_PAIRS, "isr-joint", "dfr", "leace"),
    main=("original", "isr-mean", "isr-cov"),
    features=_clip,
    options={"data": None, "features": None, "network": "clip"},
    networks=ENCODERS,
    n_seeds=1,
    labels={"original": "Linear Probing"},
    frozen=True,
)


_PRECISION = {"precision": "float32"}
_MC_CMNIST_OBJECTIVES: Mapping[str, Mapping[str, Any]] = {
    "erm": {},
    "ib_erm": {"bottleneck": 0.1, "layer": "fc"},
    "irm": {"penalty": 10.0, "anneal_steps": 200},
    "ib_irm": {"penalty": 10.0, "anneal_steps": 200, "bottleneck": 0.1, "layer": "fc"},
}


def _mc_cmnist(
    trained_with: str, seed: int, options: Mapping[str, Any], checkpoint: Path
) -> TrainedFeatures:
    """Features of a network that predicts digits."""
    splits = load_mc_cmnist(n_samples=options["n_samples"], random_state=seed)
    splits, objective = as_oracle(splits, trained_with)
    epochs = options["epochs"]
    settings = {"epochs": epochs, "lr": options["lr"], **_MC_CMNIST_OBJECTIVES[objective]}
    if options["network"] == "published":
        model = batch_normalised(10, seed, options["precision"])
        settings |= {"optimizer": "sgd", "decay_every": 4}
    else:
        model = convolutional(10, seed, options["precision"])
        settings |= {"optimizer": "adam", "decay_every": max(1, round(0.6 * epochs))}
    how: dict[str, Any] = {"seed": seed, "batch_size": options["batch_size"], "validate": False}
    how["checkpoint"] = checkpoint
    return trained_features(splits, model, objective, settings, **how)


MC_CMNIST = Experiment(
    name="mc-cmnist",
    title="Multi-class Coloured MNIST",
    table="mc_cmnist",
    dataset="MC-CMNIST",
    scores=("average_accuracy", "worst_group_accuracy", "worst_10_group_accuracy"),
    trained_with={"erm": "ERM", "ib_erm": "IB-ERM", "irm": "IRM", "ib_irm": "IB-IRM", **ORACLE},
    methods=(
        *("original", "isr-multiclass-published", "isr-multiclass", "isr-own-head"),
        *("reweighted", "dfr", "leace"),
    ),
    main=("original", "isr-multiclass"),
    features=_mc_cmnist,
    rule=Rule(
        weights=("group",),
        n_spurious=(9, 20, 40),
        scale=(0.0,),
        penalties=(1e-7, 1e-6, 1e-5, 1e-4, 0.001, 0.01, 0.1, 1.0),
        n_components=100,
    ),
    options={"n_samples": 45_000, "network": "small", "epochs": 6, "lr": 2e-3, "batch_size": 128}
    | _PRECISION,
    full={"n_samples": None, "network": "published", "epochs": 14, "lr": 0.1, "batch_size": 256},
    networks=("small", "published"),
    n_seeds=5,
    first_seed=1,
)

_RCFMNIST_OBJECTIVES: Mapping[str, Mapping[str, Any]] = {
    "erm": {},
    "mixup": {"alpha": 2.0},
    "c_mixup": {"alpha": 2.0, "bandwidth": 0.2},
    "irm": {"penalty": 10.0, "anneal_steps": 200},
}


def _rcfmnist(
    trained_with: str, seed: int, options: Mapping[str, Any], checkpoint: Path
) -> TrainedFeatures:
    """Features of a network that predicts angles."""
    sizes = {name: options[name] for name in ("n_train", "n_validation", "n_test")}
    splits, objective = as_oracle(load_rcfmnist(**sizes, random_state=seed), trained_with)
    settings = {name: options[name] for name in ("epochs", "lr")}
    settings |= {"optimizer": "adam", "select": "average", **_RCFMNIST_OBJECTIVES[objective]}
    how: dict[str, Any] = {"seed": seed, "regression": True, "checkpoint": checkpoint}
    how["batch_size"] = 128 if objective == "irm" else 64
    build = resnet18 if options["network"] == "resnet18" else convolutional
    return trained_features(
        splits, build(1, seed, options["precision"]), objective, settings, **how
    )


RCFMNIST = Experiment(
    name="rcfmnist",
    title="Rotated Coloured Fashion-MNIST",
    table="rcfmnist",
    dataset="RCFMNIST",
    scores=("average_rmse", "worst_group_rmse"),
    trained_with={"erm": "ERM", "mixup": "MixUp", "c_mixup": "C-MixUp", "irm": "IRM", **ORACLE},
    methods=_REGRESSION,
    main=("original", "isr-regression"),
    features=_rcfmnist,
    rule=Rule(
        regression=True,
        n_spurious=(0, 1, 2, 3, 5, 9),
        scale=(0.0, 0.25, 0.5),
        penalties=(1.0, 10.0, 100.0, 1e3, 1e4, 1e5),
        n_components=100,
    ),
    options={"n_train": 10_000, "n_validation": 3_000, "n_test": 5_000, "epochs": 10, "lr": 1e-3}
    | {"network": "small"}
    | _PRECISION,
    full={"n_train": 40_000, "n_validation": 10_000, "n_test": 10_000, "epochs": 30}
    | {"network": "resnet18"},
    networks=("small", "resnet18"),
    n_seeds=3,
)


def _law_school(
    trained_with: str, seed: int, options: Mapping[str, Any], _checkpoint: Path
) -> TrainedFeatures:
    """Features of a perceptron that predicts grades, too quick to keep checkpoints."""
    splits = load_law_school(strength=options["strength"], random_state=seed)
    splits, objective = as_oracle(splits, trained_with)
    mean, spread = splits.train.X.mean(axis=0), splits.train.X.std(axis=0)
    spread[spread == 0] = 1.0
    splits = mapped(splits, lambda X: ((X - mean) / spread).astype("float32"))
    dro = objective == "group_dro"
    settings: dict[str, Any] = {"optimizer": "adam", "lr": 1e-3, "select": "average"}
    settings |= {"epochs": options["dro_epochs"] if dro else options["epochs"]}
    settings |= {"weight_decay": 1e-4, "step": 1e-3} if dro else {}
    model = perceptron(splits.train.X.shape[1], seed)
    how: dict[str, Any] = {"seed": seed, "batch_size": 64, "regression": True}
    return trained_features(splits, model, objective, settings, **how)


LAW_SCHOOL = Experiment(
    name="law-school",
    title="Law School",
    table="law_school",
    dataset="LawSchool",
    scores=("average_r2", "worst_group_r2"),
    trained_with={"erm": "ERM", "reweighting": "Reweighting", "group_dro": "GroupDRO", **ORACLE},
    methods=(*_REGRESSION, "correlation-remover"),
    main=("original", "isr-regression"),
    features=_law_school,
    rule=Rule(
        regression=True,
        n_spurious=(1,),
        scale=(0.0,),
        penalties=(0.1, 1.0, 10.0, 100.0, 1e3, 1e4),
        n_components=10,
    ),
    options={"strength": 0.4, "epochs": 200, "dro_epochs": 500},
    n_seeds=20,
)


def _pretrained(
    trained_with: str, seed: int, options: Mapping[str, Any], _checkpoint: Path
) -> TrainedFeatures:
    """Features of an encoder; the options are the sizes of the splits."""
    splits = load_fashion_on_photos(**options, random_state=seed)
    return TrainedFeatures(mapped(splits, efficientnet_lite0()), None)


PRETRAINED = Experiment(
    name="pretrained",
    title="Pretrained encoder: garments on photographs",
    scores=_SCORES,
    trained_with={"erm": "ERM", "reweighting": "Reweighting"},
    methods=("original", "isr-mean", "isr-cov", "isr-joint", "dfr", "leace"),
    main=("original", "isr-mean", "isr-cov", "isr-joint"),
    features=_pretrained,
    options={"n_train": 4795, "n_validation": 1199, "n_test": 2400},
    full={"n_test": 2600},
    n_seeds=5,
    labels={"original": "Linear probing"},
    frozen=True,
)


#: Every experiment on real data, by name.
REAL: Mapping[str, Experiment] = {
    each.name: each
    for each in (MC_CMNIST, RCFMNIST, LAW_SCHOOL, PRETRAINED, WATERBIRDS, CELEBA, MULTINLI, CLIP)
}
