"""``isr demo``: ISR compared with models that rely on the colour of the paper or are balanced."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from textwrap import fill
from typing import Any

import click
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from isrlearn import ISRClassifierCV, compare_models
from isrlearn.cli.console import Command, Result, table
from isrlearn.cli.tables import SEED
from isrlearn.datasets import Splits, load_digits_on_paper
from isrlearn.estimators import Comparison
from isrlearn.markup import as_json
from isrlearn.metrics import group_sizes

SCORES = {"worst": "worst group", "average": "average"}


@click.command(cls=Command)
@SEED
@click.option("--repeat", type=click.IntRange(1), default=1, help="Seeds to average over.")
def demo(seed: int, repeat: int) -> Result:
    """Compare ISR with plain and balanced models on digits.

    The images are scikit-learn's handwritten digits, odd against even, on paper of two colours.
    The colour depends on the class in the training images and is random in the test images.

    Example: isr demo --seed 1
    """
    results = [demonstration(s) for s in range(seed, seed + repeat)]
    if repeat > 1:
        found = spread(results)
        rows = []
        for score, title in SCORES.items():
            cells = ("{mean:.3f} ± {std:.3f}".format(**of[score]) for of in found.values())
            rows.append([title, *cells])
        title = f"Mean ± standard deviation over {repeat} seeds"
        record = {"seeds": [result.seed for result in results], **found}
        return record, [table(title, ["accuracy", *found], rows)]
    (result,) = results
    shown = "\n".join(result.comparison.lines(79)) + "\n"
    return result.to_dict(), [shown, *(fill(part, 79) + "\n" for part in result.story)]


@dataclass(frozen=True)
class Demonstration:
    """Scores of all classifiers on the test images, and what ISR removed."""

    seed: int
    n_train: int
    n_features: int
    agreement: float  # share of training images whose paper agrees with their class
    n_shifting: int  # directions along which the test finds a shift
    n_spurious: int  # directions removed
    paper_read_before: float  # accuracy of a linear model that predicts the paper's colour
    paper_read_after: float
    comparison: Comparison

    @property
    def story(self) -> tuple[str, ...]:
        """What happened, in three paragraphs."""
        plain = self.comparison.reports["plain"]
        label, paper = plain.worst_group
        smallest = min(group.n_train or 0 for group in plain.groups)
        return (
            f"In {self.agreement:.0%} of the training images the colour of the paper agrees with "
            "the class, so plain logistic regression relies on the colour. In the test images the "
            f"colour is random, and that model classifies {plain.worst:.0%} of the {label} "
            f"digits on {paper} correctly.",
            f"ISR compared the mean image of each class between the papers and found that it "
            f"shifts along {self.n_shifting} of {self.n_features} directions by more than chance. "
            f"A digit does not depend on its paper, so the shift is due to the paper. Two papers "
            f"that shift both classes alike show one direction: the one that shifts most was "
            f"removed, and the classifier was fitted on the rest.",
            f"A linear model trained on other images to predict the paper has accuracy "
            f"{self.paper_read_before:.2f} before the removal and {self.paper_read_after:.2f} "
            f"after it, where 0.50 is guessing. Most of what is left is sampling error: the "
            f"smallest training group has {smallest} images. Where every group has been "
            f"collected, as here, balanced weights are the method to beat.",
        )

    def to_dict(self) -> dict[str, Any]:
        """Numbers and strings in nested dicts and lists, ready for JSON."""
        return as_json(vars(self) | {"story": self.story})


def demonstration(seed: int = 0) -> Demonstration:
    """Plain and balanced logistic regression and ISR, compared on digits on coloured paper.

    Every model chooses its penalty, and ISR its weights, by cross-validation on the training
    images.

    Examples
    --------
    >>> from isrlearn.cli.demo import demonstration
    >>> scores = demonstration().comparison.reports
    >>> scores["ISR"].worst > scores["plain"].worst
    True
    """
    splits = load_digits_on_paper(random_state=seed)
    train, test = splits.train, splits.test
    model = ISRClassifierCV(n_spurious="auto", scale=0.0)
    rows = train.X, train.y, train.environments
    found = compare_models(*rows, model=model, test=test, name="ISR")
    isr = found.models["ISR"].estimator.best_estimator_
    sizes = group_sizes(train.y, train.environments)
    # The larger group of each class is the one whose paper agrees with the class.
    largest = {label: max(n for (k, _), n in sizes.items() if k == label) for label, _ in sizes}
    return Demonstration(
        seed=seed,
        n_train=len(train.X),
        n_features=train.X.shape[1],
        agreement=sum(largest.values()) / len(train.X),
        n_shifting=isr.rank_test_.rank,
        n_spurious=isr.n_spurious_,
        paper_read_before=_paper_read(splits, lambda X: X),
        paper_read_after=_paper_read(splits, isr.eraser_),
        comparison=found,
    )


def spread(results: Sequence[Demonstration]) -> dict[str, dict[str, dict[str, float]]]:
    """Mean and standard deviation over seeds of each score of each model.

    Examples
    --------
    >>> from isrlearn.cli.demo import demonstration, spread
    >>> sorted(spread([demonstration(0), demonstration(1)])["ISR"]["worst"])
    ['mean', 'std']
    """
    found: dict[str, dict[str, dict[str, float]]] = {}
    for model in results[0].comparison.models:
        reports = [result.comparison.reports[model] for result in results]
        values = {score: [getattr(report, score) for report in reports] for score in SCORES}
        found[model] = {s: {"mean": fmean(v), "std": stdev(v)} for s, v in values.items()}
    return found


def _paper_read(splits: Splits, change: Callable[[NDArray], NDArray]) -> float:
    """Test accuracy of a linear model that predicts the paper from changed pixels."""
    # It learns from validation images: the removal makes the means of the training images equal,
    # so a model trained on those would find nothing, which would be too optimistic.
    reader = make_pipeline(StandardScaler(), LogisticRegression(max_iter=5000))
    reader.fit(change(splits.validation.X), splits.validation.environments)
    return float(reader.score(change(splits.test.X), splits.test.environments))
