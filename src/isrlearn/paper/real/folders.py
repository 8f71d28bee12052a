"""Waterbirds, CelebA, MultiNLI and CLIP, from a folder that the user downloaded or from features.

With ``features`` every experiment is about heads on a file of features. With ``data`` a network is
trained on the published folder, or, for CLIP, an encoder is run on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from isrlearn.datasets import Splits, load_features
from isrlearn.paper.datasets import load_celeba, load_multinli, load_waterbirds
from isrlearn.paper.real.encoders import ENCODERS, read_images
from isrlearn.paper.real.experiment import Experiment
from isrlearn.paper.real.features import TrainedFeatures
from isrlearn.paper.real.methods import Rule
from isrlearn.paper.real.networks import convolutional, word_average
from isrlearn.paper.real.pretrained import HEADS, probe_rule
from isrlearn.paper.real.training import trained_features

__all__ = ["CELEBA", "CLIP", "MULTINLI", "WATERBIRDS"]

_SCORES = ("average_accuracy", "worst_group_accuracy")
_METHODS = ("original", "isr-mean", "isr-cov", "refit", "reweighted", "dfr", "leace")
_TRAINED = {"erm": "ERM", "reweighting": "Reweighting", "group_dro": "GroupDRO"}


@dataclass(frozen=True)
class _Published:
    """How the paper trained on a folder: its loader, network and hyper-parameters."""

    load: Callable[[Any], Splits]
    network: str
    settings: Mapping[str, Any]


_SOURCES: Mapping[str, _Published] = {
    "waterbirds": _Published(load_waterbirds, "resnet50", {"lr": 1e-3, "weight_decay": 1e-4}),
    "celeba": _Published(load_celeba, "resnet50", {"lr": 1e-4, "weight_decay": 1e-4}),
    "multinli": _Published(load_multinli, "bert", {"lr": 2e-5, "optimizer": "adam"}),
}


def _rule(trained_with: str, options: Mapping[str, Any]) -> Rule:
    if options["features"] is not None:
        return probe_rule(trained_with, options)
    return Rule(worst=True, scale=(0.0, 0.5), penalties=(0.001, 0.01, 0.1))


def _from(name: str) -> Callable[[str, int, Mapping[str, Any]], TrainedFeatures]:
    """Features of an experiment: those of the file, or of a network trained on the folder."""

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
        model, read, layer = _network(options["network"], splits, seed, options["side"])
        settings = {"epochs": options["epochs"], **source.settings}
        if options["lr"] is not None:
            settings["lr"] = options["lr"]
        return trained_features(
            splits,
            model,
            trained_with,
            regression=False,
            seed=seed,
            batch_size=options["batch_size"],
            read=read,
            layer=layer,
            settings=settings,
        )

    return features


def _network(name: str, splits: Splits, seed: int, side: int) -> tuple[Any, Any, str]:
    """A network, how it reads samples, and its last layer."""
    import torch

    n_classes = len(np.unique(splits.train.y))
    if name == "small":
        if splits.train.X.ndim == 3:
            words = int(max(part.X[:, :, 0].max() for part in (splits.train, splits.test))) + 1
            return word_average(n_classes, seed, n_words=max(words, 30_522)), None, "fc"
        model = convolutional(n_classes, seed, side=side)
        return model, lambda paths: read_images(paths, side), "fc"
    if name == "bert":
        return _bert(n_classes), None, "classifier"
    try:
        import torchvision
    except ImportError:
        raise ImportError(
            f"{name} comes from torchvision: pip install torchvision, take --network small, or "
            "give a .npz file of features"
        ) from None
    model = getattr(torchvision.models, name)(weights="DEFAULT")
    model.fc = torch.nn.Linear(model.fc.in_features, n_classes)
    return model, lambda paths: read_images(paths, side), "fc"


def _bert(n_classes: int) -> Any:
    """BERT with a linear classifier, on token, mask and segment ids (n, length, 3)."""
    try:
        from transformers import BertForSequenceClassification
    except ImportError:
        raise ImportError(
            "bert comes from transformers: pip install transformers, take --network small, or "
            "give a .npz file of features"
        ) from None
    import torch

    class Bert(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            name = "bert-base-uncased"
            inner = BertForSequenceClassification.from_pretrained(name, num_labels=n_classes)
            self.bert, self.dropout, self.classifier = inner.bert, inner.dropout, inner.classifier

        def forward(self, x: Any) -> Any:
            ids, mask, segments = x.unbind(dim=2)
            found = self.bert(ids, attention_mask=mask, token_type_ids=segments)
            return self.classifier(self.dropout(found.pooler_output))

    return Bert()


def _clip(trained_with: str, seed: int, options: Mapping[str, Any]) -> TrainedFeatures:
    if options["features"] is not None:
        return TrainedFeatures(load_features(options["features"]), None)
    splits = load_waterbirds(options["data"])
    if options["network"] not in ENCODERS:
        raise ValueError(f"network={options['network']!r}: encoders are {', '.join(ENCODERS)}")
    encode = ENCODERS[options["network"]]()
    parts = (splits.train, splits.validation, splits.test)
    return TrainedFeatures(Splits(*(replace(part, X=encode(part.X)) for part in parts)), None)


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
        n_seeds=3,
        notes=(
            "With a file of features the head is a linear probe, weighted by group in the row "
            "*Reweighting*; otherwise it is the trained network's. Settings are chosen by the "
            "worst validation group.",
        ),
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
    notes=("Heads on the features of an encoder that is not trained further.",),
)
