"""What a user has to know, each thing in a sentence or two."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from isrlearn.diagnosis._needs import confirmed
from isrlearn.diagnosis._stability import STABLE

if TYPE_CHECKING:
    from isrlearn.diagnosis._diagnosis import Diagnosis
    from isrlearn.diagnosis._heads import HeadScore
    from isrlearn.diagnosis._means import MeanShift

#: Cells or classes that a sentence names before it counts the others.
_MOST_NAMED = 3
#: Differences of accuracies below this are not worth a sentence.
NOTABLE = 0.05


class Finding(NamedTuple):
    """One thing to know, in a sentence or two, and a code by which programs know it.

    Examples
    --------
    >>> Finding("no-shift", "Class means do not move.").code
    'no-shift'
    """

    code: str
    text: str


def findings(diagnosis: Diagnosis, chosen: dict[str, Any]) -> Iterator[Finding]:
    """Everything a user has to know, most important first."""
    yield from _about_cells(diagnosis)
    if not diagnosis.cells.comparable:
        return
    if diagnosis.means is not None:
        yield from _about_means(diagnosis, diagnosis.means)
    yield from _about_covariances(diagnosis)
    if diagnosis.n_spurious:
        yield from _about_stability(diagnosis)
        yield from _about_information(diagnosis)
    yield from _about_heads(diagnosis, chosen)
    if diagnosis.target is not None and diagnosis.target.moved:
        yield Finding(
            "target-moves",
            f"The target itself moves between environments, by up to "
            f"{diagnosis.target.effect:.2f} standard deviations (p = "
            f"{diagnosis.target.p_value:.2g}). ISR for regression assumes that it does not: part "
            "of what moves may be what predicts it.",
        )


def _about_cells(d: Diagnosis) -> Iterator[Finding]:
    cells = d.cells
    if not cells.comparable:
        yield Finding(
            "nothing-to-compare",
            "No class is seen in two environments, so classes and environments cannot be told "
            "apart. Collect rows of one class in a second environment.",
        )
    if cells.single_class:
        names = ", ".join(f"{c.environment!r} (only {c.label!r})" for c in cells.single_class)
        if cells.condition_on is not None:
            use = f"Only class {cells.condition_on!r} is compared"
        else:
            use = "They are left out of the comparison"
        if not cells.comparable:
            use = "Nothing is left to compare"
        yield Finding("single-class-environments", f"Environments with one class: {names}. {use}.")
    elif cells.empty:
        names = ", ".join(f"{c.label!r} in {c.environment!r}" for c in cells.empty[:_MOST_NAMED])
        left = len(cells.empty) - _MOST_NAMED
        more = f" and {left} more" if left > 0 else ""
        yield Finding("empty-cells", f"Cells without rows: class {names}{more}.")
    if cells.small:
        names = ", ".join(_cell(c) for c in cells.small[:_MOST_NAMED])
        left = len(cells.small) - _MOST_NAMED
        more = f", and {left} more" if left > 0 else ""
        yield Finding("small-cells", f"Cells of fewer than ten rows: {names}{more}.")


def _about_means(d: Diagnosis, means: MeanShift) -> Iterator[Finding]:
    covariances = d.covariances
    what = "Class means" if d.task == "classification" else "Means"
    if d.n_spurious == 0 and covariances is not None and covariances.moved:
        yield Finding(
            "nothing-to-spare",
            f"{what} do not move (p = {means.p_value:.2g}). Covariances differ along "
            f"{covariances.n_dimensions} of {covariances.n_coordinates} dimensions, which cannot "
            "be spared: too little would be left to tell classes by.",
        )
        return
    if d.n_spurious == 0:
        also = " and covariances" if covariances is not None and covariances.compared else ""
        yield Finding(
            "no-shift",
            f"{what}{also} do not move between environments by more than chance "
            f"(p = {means.p_value:.2g}): there is no environment effect to remove.",
        )
        return
    if not means.moved:
        yield Finding("means-equal", f"{what} do not move (p = {means.p_value:.2g}).")
        return
    if means.n_dimensions >= d.n_features:
        yield Finding(
            "everything-moves",
            f"{what} move along all {d.n_features} dimensions: nothing that stays the same is "
            "left. The one that moves least is kept; do not expect much of it.",
        )
        return
    E = len(d.cells.compared_environments)
    dimensions = _count(means.n_dimensions, "dimension")
    if not means.limited or d.method != "mean" or confirmed(means, covariances):
        yield Finding(
            "means-move",
            f"{what} move along {dimensions}, by up to {means.effect:.1f} standard deviations.",
        )
        return
    K, classes = len(d.cells.compared_classes), ""
    if d.task == "classification" and K == 1:
        classes = " of one class"
    elif d.task == "classification":
        classes = f" and {K} classes" + " that move alike" * (means.n_patterns < K)
    yield Finding(
        "too-few-environments",
        f"{what} move along {dimensions}, by up to {means.effect:.1f} standard deviations: as "
        f"many as {E} environments{classes} can show. There may be more, and what they "
        "carry stays in. A further environment would tell.",
    )


def _about_covariances(d: Diagnosis) -> Iterator[Finding]:
    covariances = d.covariances
    if covariances is None:
        yield Finding(
            "covariances-not-valid",
            "Covariances are not compared: under the regression model they change along "
            "invariant directions too.",
        )
        return
    for i, short in enumerate(covariances.uncompared[:_MOST_NAMED]):
        left = len(covariances.uncompared) - _MOST_NAMED
        more = f" (nor those of {left} more classes)" if i + 1 == _MOST_NAMED and left > 0 else ""
        yield Finding(
            "covariances-not-compared",
            f"Covariances of class {short.cell.label!r} cannot be compared{more}: {short.cell.n} "
            f"rows in environment {short.cell.environment!r}, {short.needed} needed.",
        )
    if covariances.heavy_tailed:
        yield Finding(
            "heavy-tails",
            f"Features have heavy tails: covariances vary {covariances.noise:.1f} times as much "
            "as Gaussian ones would. They were tested by permutation.",
        )
    if covariances.p_value is None or d.n_spurious == 0:
        return
    if not covariances.moved:
        yield Finding(
            "covariances-equal",
            f"Covariances do not differ (p = {covariances.p_value:.2g}): method='cov' would "
            "find noise.",
        )
        return
    where = covariances.largest
    place = "" if where is None else f" (class {where[0]!r}, {where[1]!r} against {where[2]!r})"
    text = (
        f"Covariances differ along {_count(covariances.n_dimensions, 'dimension')}, variances by "
        f"up to {covariances.ratio:.2f} of their mean{place}."
    )
    if d.method == "mean" and 3 * covariances.n_dimensions_joint > 2 * covariances.n_coordinates:
        text += (
            f" With {covariances.n_coordinates} in all that is not a change of a few: removing "
            "them would remove nearly everything, and they are left in."
        )
        yield Finding("covariances-move-everywhere", text)
        return
    if d.method == "mean" and d.means is not None:
        if covariances.n_dimensions_joint > d.means.n_dimensions:
            text += " They are not relied on: that is little more than noise can be."
        else:
            text += " They add nothing to what the means show."
    yield Finding("covariances-move", text)
    if covariances.weak and d.method != "mean":
        yield Finding(
            "weak-covariances",
            f"That is little more than noise can be ({covariances.chance:.2f}), so there may be "
            "dimensions that these rows cannot show. More rows, or an environment whose "
            "variances differ more, would tell.",
        )


def _about_stability(d: Diagnosis) -> Iterator[Finding]:
    unlabelled, smallest = sum(d.cells.unlabelled), d.cells.smallest()
    if d.stability is None or d.stability.stable:
        return
    angle, factor = d.stability.median[0], d.stability.more_rows
    more = f"About {factor:.1f} times as many rows" if factor < 1000 else "Many more rows"
    text = (
        f"The subspace is uncertain: drawn again, the data would turn it by {angle:.0f} degrees. "
        f"{more} in each cell would bring that below {STABLE:.0f}."
    )
    yield Finding("unstable", text)
    if unlabelled:
        yield Finding(
            "few-labels",
            f"{unlabelled:,} rows have no environment and {_cell(smallest)} is all there is of "
            "that cell: labels are best spent on the smallest cells.",
        )


def _about_information(d: Diagnosis) -> Iterator[Finding]:
    found = d.information
    if found is None:
        return
    if found.label_lost > max(NOTABLE, 3 * found.label_error):
        role = "tells classes apart" if d.task == "classification" else "predicts the target"
        yield Finding(
            "labels-lost",
            f"Inside an environment the {found.score} of a linear model falls from "
            f"{found.label_before:.2f} to {found.label_after:.2f}: what is removed {role} there. "
            "That is the price if it is a shortcut, and a loss if it is not.",
        )
    notable = found.environment_before - found.environment_chance > 2 * NOTABLE
    if notable and found.environment_left > 0.5:
        yield Finding(
            "environment-left",
            f"The environment can still be told after the removal (balanced accuracy "
            f"{found.environment_after:.2f} after {found.environment_before:.2f}, chance "
            f"{found.environment_chance:.2f}): it changes more than a few directions. Do not "
            "expect ISR alone to solve this; balanced weights, or features learned for the "
            "task, may.",
        )


def _about_heads(d: Diagnosis, chosen: dict[str, Any]) -> Iterator[Finding]:
    scores = {(h.removed, h.weight): h for h in d.heads}
    if not scores:
        return
    removed = d.n_spurious > 0
    plain, balanced = scores[removed, None], scores[removed, "class"]
    counts = [sum(row) + n for row, n in zip(d.cells.count, d.cells.unlabelled, strict=True)]
    share = dict(zip(d.cells.classes, (n / sum(counts) for n in counts), strict=True))
    rare = share[plain.worst_group[0]] < 1 / len(share)
    if rare and notably_better(balanced, plain):
        yield Finding(
            "class-prior",
            f"The worst group, {_group(plain.worst_group)}, fails because the class is rare "
            f"({share[plain.worst_group[0]]:.0%} of the rows): worst-group accuracy is "
            f"{plain.worst:.2f}, and {balanced.worst:.2f} with weights='class'.",
        )
    if chosen.get("weights") == "group":
        grouped = scores[removed, "group"]
        yield Finding(
            "group-weights",
            f"Weighing every class in every environment the same lifts the worst group to "
            f"{grouped.worst:.2f}.",
        )
    if not removed:
        return
    weights = max((scores[False, w] for w in ("class", "group")), key=lambda h: h.worst)
    both = max((scores[True, w] for w in (None, "class", "group")), key=lambda h: h.worst)
    without = max(weights.worst, scores[False, None].worst)
    if notably_better(weights, both):
        yield Finding(
            "weights-alone",
            f"In the environments seen here, balanced weights without any removal do better in "
            f"the worst group ({weights.worst:.2f} against {both.worst:.2f}).",
        )
    elif both.worst - without < NOTABLE / 2:
        yield Finding(
            "no-gain-here",
            f"In the environments seen here nothing is gained (worst group {both.worst:.2f} with "
            f"the removal, {without:.2f} without): it pays where the environment changes after "
            "training.",
        )


def notably_better(one: HeadScore, other: HeadScore) -> bool:
    """Whether a head does better in its worst group, by more than a little and more than noise."""
    return one.worst - other.worst >= max(NOTABLE, one.worst_error, other.worst_error)


def _cell(cell: Any) -> str:
    where = f"environment {cell.environment!r}"
    where = where if cell.label is None else f"class {cell.label!r} in {where}"
    return f"{cell.n:,} rows of {where}"


def _group(group: tuple[Any, Any]) -> str:
    return f"class {group[0]!r} in environment {group[1]!r}"


def _count(n: int, word: str) -> str:
    return f"{n} {word}" if n == 1 else f"{n} {word}s"
