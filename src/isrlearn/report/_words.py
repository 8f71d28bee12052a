"""Names and numbers as a report writes them."""

from __future__ import annotations

import math
from typing import Any

from isrlearn.metrics import GroupReport, GroupScore

_LONGEST = 60
_LONGEST_OF_TWO = 40


def name_of(value: Any, longest: int = _LONGEST) -> str:
    r"""A name from a file as one line of text that cannot rearrange its surroundings.

    Examples
    --------
    >>> name_of("a\u202eb\n"), len(name_of("x" * 500))
    ('a?b?', 60)
    """
    text = "".join(c if c.isprintable() else "?" for c in str(value))
    return text if len(text) <= longest else text[: longest - 1] + "…"


def group_name(score: GroupScore, by_class: bool) -> str:
    """A group in words; names that are mere numbers are told apart.

    Examples
    --------
    >>> from isrlearn.metrics import GroupScore
    >>> group_name(GroupScore("cow", "beach", 20, 0.5, 0.3, 0.7), by_class=True)
    'cow in beach'
    >>> group_name(GroupScore(1, 0, 20, 0.5, 0.3, 0.7), by_class=True)
    'class 1 in environment 0'
    """
    place = name_of(score.environment, _LONGEST_OF_TWO)
    if not isinstance(score.environment, str):
        place = f"environment {place}"
    if not by_class:
        return place
    label = name_of(score.label, _LONGEST_OF_TWO)
    return f"{label if isinstance(score.label, str) else f'class {label}'} in {place}"


def number(value: float, metric: str) -> str:
    """A score: an accuracy in per cent, an error with three digits.

    Examples
    --------
    >>> number(0.73771, "accuracy"), number(1234.5, "rmse"), number(float("inf"), "rmse")
    ('73.8%', '1.23e+03', '∞')
    """
    if not math.isfinite(value):
        return "∞" if value > 0 else "unknown"
    return f"{100 * value:.1f}%" if metric == "accuracy" else f"{value:.3g}"


def interval(score: Any, metric: str) -> str:
    """The two ends of a score's interval.

    Examples
    --------
    >>> from isrlearn.metrics import GroupScore
    >>> interval(GroupScore("cow", "beach", 20, 0.5, 0.299, 0.701), "accuracy")
    '29.9% to 70.1%'
    """
    return f"{number(score.low, metric)} to {number(score.high, metric)}"


def worst_of(report: GroupReport) -> GroupScore:
    """The worst group's score."""
    return report.by_rank[0]


def by_class(report: GroupReport) -> bool:
    """Whether groups are classes in environments, not environments alone."""
    return report.metric == "accuracy"


def plural(n: int, thing: str) -> str:
    """A count and its noun.

    Examples
    --------
    >>> plural(1, "direction"), plural(2000, "row")
    ('1 direction', '2,000 rows')
    """
    return f"{n:,} {thing}" if n == 1 else f"{n:,} {thing}s"


def sentence_of_kind(kind: str, n: int, n_train: int, reason: str) -> str:
    """Which rows were scored, and how far that can be trusted."""
    rows = plural(n, "row")
    some = rows if n >= n_train else f"{n:,} of the {n_train:,} rows"
    return {
        "test": f"Scored on {rows} that took no part in fitting or choosing the model.",
        "validation": (
            f"Scored on the {rows} of the validation table. They were not fitted on, but they "
            "chose the settings: on new rows expect a little less."
        ),
        "folds": (
            f"Scored by cross-validation: {some} of the training table, each by a model "
            "fitted without it. Rows of a new place may differ; a test table would tell."
        ),
        "chosen-folds": (
            f"Scored by cross-validation on {some} of the training table, which also chose "
            "the settings: on new rows expect a little less."
        ),
        "training": (
            f"Careful: scored on the {n:,} training rows themselves, which says how well the "
            f"model fits, not how well it will do. Cross-validation was not possible: {reason}"
        ),
        "table": (
            f"Scored on {rows}, which are not all the rows that the model was fitted on; whether "
            "it was fitted on some of them is not known."
        ),
    }[kind]
