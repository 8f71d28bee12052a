"""The demonstration: a classifier that reads the paper's colour, and one that cannot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from isrlearn.datasets import Splits, load_digits_on_paper
from isrlearn.estimators import ISRClassifier
from isrlearn.metrics import GroupReport, group_report, group_sizes


@dataclass(frozen=True)
class Demonstration:
    """Scores of both classifiers on test images, and what ISR took out."""

    seed: int
    n_train: int
    n_features: int
    agreement: float  # share of training images whose paper goes with their class
    plain: GroupReport
    isr: GroupReport
    n_spurious: int
    paper_read_before: float  # accuracy of a linear model that reads the paper's colour
    paper_read_after: float

    @property
    def story(self) -> tuple[str, ...]:
        """What happened, in sentences."""
        label, paper = self.plain.worst_group
        return (
            f"In training the colour of the paper goes with the class for "
            f"{self.agreement:.0%} of the images, so plain logistic regression reads the paper. "
            f"On test images the colour says nothing, and of the {label} digits on {paper} it "
            f"gets {self.plain.worst:.0%} right.",
            f"ISR compared the mean image of each class between the papers and found that it "
            f"moves along {self.n_spurious} of {self.n_features} directions by more than chance. "
            f"A digit stays what it is on another paper, so what moves is the paper: those "
            f"directions were removed and the classifier fitted on the rest.",
            f"A linear model trained on other images to tell the two papers apart has accuracy "
            f"{self.paper_read_before:.2f} before the removal and {self.paper_read_after:.2f} "
            f"after it, where 0.50 is guessing. Most of what is left is sampling error: the "
            f"smallest training group has {self.smallest_group} images.",
        )

    @property
    def smallest_group(self) -> int:
        """Training images in the rarest class × paper."""
        return min(g.n_train or 0 for g in self.plain.groups)

    def to_dict(self) -> dict[str, Any]:
        """Numbers and strings in nested dicts and lists, ready for JSON."""
        return {
            "seed": self.seed,
            "n_train": self.n_train,
            "n_test": self.plain.n,
            "n_features": self.n_features,
            "agreement": self.agreement,
            "n_spurious": self.n_spurious,
            "paper_read_before": self.paper_read_before,
            "paper_read_after": self.paper_read_after,
            "plain": self.plain.to_dict(),
            "isr": self.isr.to_dict(),
            "story": list(self.story),
        }


def demonstration(seed: int = 0) -> Demonstration:
    """Plain logistic regression and ISR, compared on digits printed on coloured paper.

    Parameters
    ----------
    seed : int, default=0
        Which images are for training, and which paper each is printed on.

    Returns
    -------
    Demonstration

    Examples
    --------
    >>> from isrlearn.cli._demo import demonstration
    >>> result = demonstration()
    >>> result.isr.worst > result.plain.worst
    True
    """
    splits = load_digits_on_paper(random_state=seed)
    train, test = splits.train, splits.test
    plain = _logistic().fit(train.X, train.y)
    isr = ISRClassifier().fit(train.X, train.y, environments=train.environments)
    sizes = group_sizes(train.y, train.environments)
    reports = [
        group_report(
            test.y, model.predict(test.X), environments=test.environments, train_groups=sizes
        )
        for model in (plain, isr)
    ]
    return Demonstration(
        seed=seed,
        n_train=len(train.X),
        n_features=train.X.shape[1],
        agreement=_agreement(sizes),
        plain=reports[0],
        isr=reports[1],
        n_spurious=isr.n_spurious_,
        paper_read_before=_paper_read(splits, lambda X: X),
        paper_read_after=_paper_read(splits, isr.eraser_),
    )


@dataclass(frozen=True)
class Repetition:
    """The demonstration over several seeds."""

    results: tuple[Demonstration, ...]

    def spread(self, model: str, score: str) -> tuple[float, float]:
        """Mean and standard deviation of "worst" or "average", for model "plain" or "isr"."""
        values = [getattr(getattr(result, model), score) for result in self.results]
        return float(np.mean(values)), float(np.std(values, ddof=1))

    def to_dict(self) -> dict[str, Any]:
        """Numbers and strings in nested dicts and lists, ready for JSON."""
        scores: dict[str, Any] = {}
        for model in ("plain", "isr"):
            for score in ("worst", "average"):
                mean, deviation = self.spread(model, score)
                scores.setdefault(model, {})[score] = {"mean": mean, "std": deviation}
        return {"seeds": [result.seed for result in self.results], **scores}


def repetition(seed: int, repeat: int) -> Repetition:
    """The demonstration for `repeat` seeds from `seed` on.

    Examples
    --------
    >>> from isrlearn.cli._demo import repetition
    >>> [result.seed for result in repetition(3, 2).results]
    [3, 4]
    """
    if repeat < 2:
        raise ValueError(f"a spread needs at least 2 repetitions, got {repeat}")
    return Repetition(tuple(demonstration(s) for s in range(seed, seed + repeat)))


def _logistic() -> Pipeline:
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=5000))


def _agreement(sizes: dict[Any, int]) -> float:
    """Share of rows in the larger group of each class."""
    largest: dict[Any, int] = {}
    for (label, _), size in sizes.items():
        largest[label] = max(size, largest.get(label, 0))
    return sum(largest.values()) / sum(sizes.values())


def _paper_read(splits: Splits, change: Callable[[NDArray], NDArray]) -> float:
    """Test accuracy of a linear model that predicts the paper from changed pixels.

    It learns from the validation images. The means of the training images were made equal by
    the removal itself, so a model trained on those would find nothing and flatter us.
    """
    reader = _logistic().fit(change(splits.validation.X), splits.validation.environments)
    return float(reader.score(change(splits.test.X), splits.test.environments))
