"""``isr demo``: a classifier that relies on the colour of the paper, and one that cannot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from statistics import fmean, stdev
from textwrap import fill
from typing import Any

import click
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from isrlearn import ISRClassifier
from isrlearn.cli.console import Command, Result, groups, table
from isrlearn.cli.tables import SEED
from isrlearn.datasets import Splits, load_digits_on_paper
from isrlearn.metrics import GroupReport, group_report, group_sizes

MODELS = {"plain": "logistic regression", "isr": "ISR"}
SCORES = {"worst": "worst group", "average": "average"}


@click.command(cls=Command)
@SEED
@click.option("--repeat", type=click.IntRange(1), default=1, help="Seeds to average over.")
def demo(seed: int, repeat: int) -> Result:
    """Watch ISR fix a classifier that learned a shortcut.

    The images are scikit-learn's handwritten digits, odd against even, on paper of two colours.
    The colour depends on the class in the training images and is random in the test images.

    Example: isr demo --seed 1
    """
    results = [demonstration(s) for s in range(seed, seed + repeat)]
    if repeat > 1:
        found = spread(results)
        rows = [
            [title, *("{mean:.3f} ± {std:.3f}".format(**found[model][score]) for model in MODELS)]
            for score, title in SCORES.items()
        ]
        title = f"Mean ± standard deviation over {repeat} seeds"
        record = {"seeds": [result.seed for result in results], **found}
        return record, [table(title, ["accuracy", *MODELS.values()], rows)]
    (result,) = results
    reports = {title: getattr(result, model) for model, title in MODELS.items()}
    tables = groups("Digits on coloured paper: accuracy of each test group", reports)
    return result.to_dict(), [*tables, *(fill(part, 79) + "\n" for part in result.story)]


@dataclass(frozen=True)
class Demonstration:
    """Scores of both classifiers on the test images, and what ISR removed."""

    seed: int
    n_train: int
    n_features: int
    agreement: float  # share of training images whose paper agrees with their class
    n_spurious: int
    paper_read_before: float  # accuracy of a linear model that predicts the paper's colour
    paper_read_after: float
    plain: GroupReport
    isr: GroupReport

    @property
    def story(self) -> tuple[str, ...]:
        """What happened, in three paragraphs."""
        label, paper = self.plain.worst_group
        smallest = min(group.n_train or 0 for group in self.plain.groups)
        return (
            f"In {self.agreement:.0%} of the training images the colour of the paper agrees with "
            "the class, so plain logistic regression relies on the colour. In the test images the "
            f"colour is random, and that model classifies {self.plain.worst:.0%} of the {label} "
            f"digits on {paper} correctly.",
            f"ISR compared the mean image of each class between the papers and found that it "
            f"shifts along {self.n_spurious} of {self.n_features} directions by more than chance. "
            f"A digit does not depend on its paper, so the shift is due to the paper: those "
            f"directions were removed and the classifier was fitted on the rest.",
            f"A linear model trained on other images to predict the paper has accuracy "
            f"{self.paper_read_before:.2f} before the removal and {self.paper_read_after:.2f} "
            f"after it, where 0.50 is guessing. Most of what is left is sampling error: the "
            f"smallest training group has {smallest} images.",
        )

    def to_dict(self) -> dict[str, Any]:
        """Numbers and strings in nested dicts and lists, ready for JSON."""
        reports = {model: getattr(self, model).to_dict() for model in MODELS}
        return {**vars(self), **reports, "n_test": self.plain.n, "story": list(self.story)}


def demonstration(seed: int = 0) -> Demonstration:
    """Plain logistic regression and ISR, compared on digits printed on coloured paper.

    Examples
    --------
    >>> from isrlearn.cli.demo import demonstration
    >>> result = demonstration()
    >>> result.isr.worst > result.plain.worst
    True
    """
    splits = load_digits_on_paper(random_state=seed)
    train, test = splits.train, splits.test
    isr = ISRClassifier().fit(train.X, train.y, train.environments)
    sizes = group_sizes(train.y, train.environments)
    score = partial(group_report, environments=test.environments, train_groups=sizes)
    # The larger group of each class is the one whose paper agrees with the class.
    largest = {label: max(n for (k, _), n in sizes.items() if k == label) for label, _ in sizes}
    return Demonstration(
        seed=seed,
        n_train=len(train.X),
        n_features=train.X.shape[1],
        agreement=sum(largest.values()) / len(train.X),
        n_spurious=isr.n_spurious_,
        paper_read_before=_paper_read(splits, lambda X: X),
        paper_read_after=_paper_read(splits, isr.eraser_),
        plain=score(test.y, _logistic(train.X, train.y).predict(test.X)),
        isr=score(test.y, isr.predict(test.X)),
    )


def spread(results: Sequence[Demonstration]) -> dict[str, dict[str, dict[str, float]]]:
    """Mean and standard deviation over seeds of each score of each model.

    Examples
    --------
    >>> from isrlearn.cli.demo import demonstration, spread
    >>> sorted(spread([demonstration(0), demonstration(1)])["isr"]["worst"])
    ['mean', 'std']
    """
    found: dict[str, dict[str, dict[str, float]]] = {model: {} for model in MODELS}
    for model, score in product(MODELS, SCORES):
        values = [getattr(getattr(result, model), score) for result in results]
        found[model][score] = {"mean": fmean(values), "std": stdev(values)}
    return found


def _logistic(X: NDArray, y: NDArray) -> Any:
    """Logistic regression on standardised features."""
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=5000)).fit(X, y)


def _paper_read(splits: Splits, change: Callable[[NDArray], NDArray]) -> float:
    """Test accuracy of a linear model that predicts the paper from changed pixels."""
    # It learns from validation images: the removal makes the means of the training images equal,
    # so a model trained on those would find nothing, which would be too optimistic.
    reader = _logistic(change(splits.validation.X), splits.validation.environments)
    return float(reader.score(change(splits.test.X), splits.test.environments))
