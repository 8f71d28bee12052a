"""Heads on a pretrained encoder: garments on photographs, features of an EfficientNet-Lite0."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from isrlearn.datasets import Splits
from isrlearn.paper.datasets import load_fashion_on_photos
from isrlearn.paper.real.encoders import efficientnet_lite0
from isrlearn.paper.real.experiment import Experiment
from isrlearn.paper.real.features import TrainedFeatures
from isrlearn.paper.real.methods import Rule

__all__ = ["HEADS", "PRETRAINED", "probe_rule"]

#: Weightings that heads on fixed features choose from.
HEADS: Mapping[str, tuple[Any, ...]] = {"erm": (None, "class"), "reweighting": ("group",)}


def probe_rule(trained_with: str, options: Mapping[str, Any]) -> Rule:
    """Heads on fixed features, all weighted as the row says, chosen by the worst group."""
    return Rule(
        worst=True,
        weightings=HEADS[trained_with],
        scale=(0.0, 0.5),
        penalties=(0.001, 0.01, 0.1),
    )


def _features(trained_with: str, seed: int, options: Mapping[str, Any]) -> TrainedFeatures:
    splits = load_fashion_on_photos(
        n_train=options["n_train"],
        n_validation=options["n_validation"],
        n_test=options["n_test"],
        random_state=seed,
    )
    encode = efficientnet_lite0()
    parts = (splits.train, splits.validation, splits.test)
    return TrainedFeatures(Splits(*(replace(part, X=encode(part.X)) for part in parts)), None)


PRETRAINED = Experiment(
    name="pretrained",
    title="Pretrained encoder: garments on photographs",
    table="",
    dataset="",
    scores=("average_accuracy", "worst_group_accuracy"),
    trained_with={"erm": "ERM", "reweighting": "Reweighting"},
    methods=("original", "isr-mean", "isr-cov", "isr-joint", "dfr", "leace"),
    main=("original", "isr-mean", "isr-cov", "isr-joint"),
    features=_features,
    rule=probe_rule,
    options={"n_train": 4795, "n_validation": 1199, "n_test": 2400},
    full={"n_test": 2600},
    n_seeds=5,
    labels={"original": "Linear probing"},
    frozen=True,
    notes=(
        "Shirts and coats of Fashion-MNIST on patches of scikit-learn's two photographs, in the "
        "proportions of Waterbirds (95 % of a training class on its own photograph); 1,280 "
        "features of an EfficientNet-Lite0 trained on ImageNet. All methods choose their settings "
        "by the worst validation group; in the row *Reweighting* every head weighs groups alike, "
        "in the row *ERM* it weighs rows or classes. DFR is trained on the validation samples and "
        "is the same in both rows.",
    ),
)
