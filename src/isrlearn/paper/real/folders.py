"""Waterbirds, CelebA, MultiNLI and CLIP, from a folder that the user downloaded or from features.

With the option ``features``, heads are fitted on a file of features. With ``data``, a network is
trained on the published folder or, for CLIP, an encoder is applied to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from isrlearn.datasets import Splits
from isrlearn.io import load_features
from isrlearn.paper.datasets import load_celeba, load_multinli, load_waterbirds
from isrlearn.paper.real.features import TrainedFeatures, mapped, trained_features
from isrlearn.paper.real.methods import Rule
from isrlearn.paper.real.networks import ENCODERS, network_for
from isrlearn.paper.real.tables import Experiment

_SCORES = ("average_accuracy", "worst_group_accuracy")
_METHODS = ("original", "isr-mean", "isr-cov", "refit", "reweighted", "dfr", "leace")
_TRAINED = {"erm": "ERM", "reweighting": "Reweighting", "group_dro": "GroupDRO"}


@dataclass(frozen=True)
class _Published:
    """How the paper trained on a folder: loader, network and hyper-parameters."""

    load: Callable[[Any], Splits]
    network: str
    settings: Mapping[str, Any]


_SOURCES: Mapping[str, _Published] = {
    "waterbirds": _Published(load_waterbirds, "resnet50", {"lr": 1e-3, "weight_decay": 1e-4}),
    "celeba": _Published(load_celeba, "resnet50", {"lr": 1e-4, "weight_decay": 1e-4}),
    "multinli": _Published(load_multinli, "bert", {"lr": 2e-5, "optimizer": "adam"}),
}


#: Candidate weights of heads on fixed features, by row of the table.
HEADS: Mapping[str, tuple[Any, ...]] = {"erm": (None, "class"), "reweighting": ("group",)}


def probe_rule(trained_with: str, options: Mapping[str, Any]) -> Rule:
    """The rule for heads on fixed features: weights by the row, choice by the worst group."""
    return Rule(worst=True, weights=HEADS[trained_with])


def _rule(trained_with: str, options: Mapping[str, Any]) -> Rule:
    """The rule for heads on a file of features or on a trained network."""
    if options["features"] is not None:
        return probe_rule(trained_with, options)
    return Rule(worst=True)


def _from(name: str) -> Callable[[str, int, Mapping[str, Any]], TrainedFeatures]:
    """Features of an experiment: from the file, or of a network trained on the folder."""

    def features(trained_with: str, seed: int, options: Mapping[str, Any]) -> TrainedFeatures:
        if options["features"] is not None:
            if trained_with not in HEADS:
                raise ValueError(
                    f"trained_with={trained_with!r}: heads on a file of features are trained with "
                    f"{' or '.join(HEADS)}"
                )
            return TrainedFeatures(load_features(options["features"]), None)
        source = _SOURCES[name]
        splits = source.load(options["data"])
        model, read, layer = network_for(options["network"], splits, seed, options["side"])
        settings = {"epochs": options["epochs"], **source.settings}
        if options["lr"] is not None:
            settings["lr"] = options["lr"]
        how = {"seed": seed, "batch_size": options["batch_size"], "read": read, "layer": layer}
        return trained_features(splits, model, trained_with, settings, **how)

    return features


def _clip(trained_with: str, seed: int, options: Mapping[str, Any]) -> TrainedFeatures:
    """Features of an encoder on Waterbirds."""
    if options["features"] is not None:
        return TrainedFeatures(load_features(options["features"]), None)
    splits = load_waterbirds(options["data"])
    if options["network"] not in ENCODERS:
        raise ValueError(f"network={options['network']!r}: encoders are {', '.join(ENCODERS)}")
    return TrainedFeatures(mapped(splits, ENCODERS[options["network"]]()), None)


def _experiment(name: str, title: str, **options: Any) -> Experiment:
    defaults = {"data": None, "features": None, "network": "small", "side": 32, "lr": None}
    defaults |= {"epochs": 5, "batch_size": 32}
    full = {"network": _SOURCES[name].network, "side": 224, **options}
    return Experiment(
        name=name,
        title=title,
        table="real_datasets",
        dataset=title,
        scores=_SCORES,
        trained_with=_TRAINED,
        methods=_METHODS,
        main=("original", "isr-mean", "isr-cov"),
        features=_from(name),
        rule=_rule,
        options=defaults,
        full=full,
        n_seeds=10,
        notes="folders",
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
    methods=("original", "isr-mean", "isr-cov", "isr-joint", "dfr", "leace"),
    main=("original", "isr-mean", "isr-cov"),
    features=_clip,
    rule=probe_rule,
    options={"data": None, "features": None, "network": "clip"},
    full={},
    n_seeds=1,
    labels={"original": "Linear Probing"},
    frozen=True,
    notes="clip",
)
