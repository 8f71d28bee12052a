"""Names, numbers and the headline as a report writes them."""

from __future__ import annotations

import math
from typing import Any

from isrlearn.metrics import GroupReport, GroupScore


def name_of(value: Any, longest: int = 60) -> str:
    r"""A name from a file as one line of text that cannot rearrange its surroundings.

    Examples
    --------
    >>> name_of("a\u202eb\n"), len(name_of("x" * 500))
    ('a?b?', 60)
    """
    text = "".join(c if c.isprintable() else "?" for c in str(value))
    return text if len(text) <= longest else text[: longest - 1] + "…"


def group_name(score: GroupScore) -> str:
    """A group in words; a name that is a number says what it is the name of.

    Examples
    --------
    >>> from isrlearn.metrics import GroupScore
    >>> group_name(GroupScore("cow", "beach", 20, 0.5, 0.3, 0.7))
    'cow in beach'
    >>> group_name(GroupScore(1, 0, 20, 0.5, 0.3, 0.7))
    'class 1 in environment 0'
    """
    place = name_of(score.environment, 40)
    if not isinstance(score.environment, str):
        place = f"environment {place}"
    if score.label is None:
        return place
    label = name_of(score.label, 40)
    return f"{label if isinstance(score.label, str) else f'class {label}'} in {place}"


def score_text(value: float, metric: str) -> str:
    """An accuracy in per cent, or an error with three digits.

    Examples
    --------
    >>> score_text(0.73771, "accuracy"), score_text(1234.5, "rmse"), score_text(math.inf, "rmse")
    ('73.8%', '1.23e+03', '∞')
    """
    if not math.isfinite(value):
        return "∞" if value > 0 else "unknown"
    return f"{100 * value:.1f}%" if metric == "accuracy" else f"{value:.3g}"


def interval(score: Any, metric: str) -> str:
    """The two ends of a score's interval."""
    return f"{score_text(score.low, metric)} to {score_text(score.high, metric)}"


def plural(n: int, thing: str) -> str:
    """A count and its noun.

    Examples
    --------
    >>> plural(1, "direction"), plural(2000, "row")
    ('1 direction', '2,000 rows')
    """
    return f"{n:,} {thing}" if n == 1 else f"{n:,} {thing}s"


def headline(before: GroupReport | None, after: GroupReport) -> tuple[str, str]:
    """What happened to the worst group in a sentence, and a caution where it is uncertain."""
    metric, new = after.metric, after.by_rank[0]
    what = "accuracy" if metric == "accuracy" else "error"
    end = score_text(new.value, metric)
    if before is None:
        return f"In the worst group, {group_name(new)}, the {what} is {end}.", ""
    old = before.by_rank[0]
    if new.value == old.value:
        return f"The {what} of the worst group stays at {end}.", ""
    rises = new.value > old.value
    helps = "" if rises == (metric == "accuracy") else ": the removal does not help here"
    caution = "The two intervals overlap: with so few rows the difference may be due to chance."
    overlap = max(old.low, new.low) <= min(old.high, new.high)
    change = f"{'rises' if rises else 'falls'} from {score_text(old.value, metric)} to {end}"
    return f"The {what} of the worst group {change}{helps}.", caution if overlap else ""
