"""What was found in plain sentences, and the advice that follows from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isrlearn.diagnosis.shifts import CovarianceShift, MeanShift

if TYPE_CHECKING:
    from isrlearn.diagnosis.diagnosis import Diagnosis
    from isrlearn.diagnosis.held_out import HeadScore

#: Differences of accuracies below this are not worth a sentence.
NOTABLE = 0.05

#: The sentence of every finding. `d` is the diagnosis, `m` its shift of means, `c` of covariances.
SENTENCES = {
    "nothing-to-compare": "No class has rows in two environments, so the effects of class and "
    "environment cannot be separated. Collect rows of one class in a second environment.",
    "single-class-environments": "Environments with one class: {names}.",
    "empty-cells": "Cells without rows: {names}.",
    "small-cells": "Cells of fewer than ten rows: {names}.",
    "nothing-to-spare": "{means} do not shift (p = {m.p_value:.2g}). Covariances differ along "
    "{c.n_dimensions} of {c.n_coordinates} dimensions, too many to remove: the rest would say too "
    "little about the class.",
    "no-shift": "{means} do not shift between environments by more than sampling noise "
    "(p = {m.p_value:.2g}): there is no environment effect to remove.",
    "means-equal": "{means} do not shift (p = {m.p_value:.2g}).",
    "everything-shifts": "{means} shift along all {d.n_features} dimensions: none stays the same. "
    "The one that shifts least is kept; do not expect much from it.",
    "means-shift": "{means} shift along {along}, by up to {m.effect:.1f} standard deviations.",
    "too-few-environments": "{means} shift along {along}, by up to {m.effect:.1f} standard "
    "deviations: as many as {places} can show. There may be more dimensions, which would not be "
    "removed. Another environment would show them.",
    "covariances-not-valid": "Covariances are not compared: under the regression model they "
    "change along invariant directions too.",
    "covariances-not-compared": "Too few rows to compare covariances: {names}; {c.n_needed} are "
    "needed.",
    "heavy-tails": "Features have heavy tails: covariances vary {c.noise:.1f} times as much as "
    "those of Gaussian features. The test allows for that.",
    "covariances-equal": "Covariances do not differ (p = {c.p_value:.2g}): method='cov' would "
    "find noise.",
    "covariances-shift-everywhere": "{differ} That is too many of {c.n_coordinates} dimensions: "
    "removing them would remove nearly everything, so they are kept.",
    "covariances-shift": "{differ}{use}",
    "weak-covariances": "That is hardly more than noise ({c.chance:.2f}), so there may be "
    "dimensions that these rows cannot show. More rows, or an environment whose variances differ "
    "more, would show them.",
    "unstable": "The subspace is uncertain: in data drawn again it would rotate by "
    "{d.stability.median[0]:.0f} degrees. {more} in each cell would bring that below 30.",
    "few-labels": "{unknown:,} rows have no environment, and the smallest cell has {smallest}: "
    "label environments in the smallest cells first.",
    "labels-lost": "Inside an environment the {i.score} of a linear model falls from "
    "{i.label_before:.2f} to {i.label_after:.2f}: what is removed {role} there. That is the price "
    "of removing a shortcut, and a loss if it is not a shortcut.",
    "environment-left": "The environment can still be predicted after the removal (balanced "
    "accuracy {i.environment_after:.2f}, before {i.environment_before:.2f}, chance "
    "{i.environment_chance:.2f}): it changes more than a few directions. Do not expect ISR alone "
    "to solve this; balanced weights, or features learned for the task, may.",
    "class-prior": "The worst group, class {group[0]!r} in environment {group[1]!r}, fails because "
    "the class is rare ({share:.0%} of the rows): worst-group accuracy is {plain.worst:.2f}, and "
    "{balanced.worst:.2f} with weights='class'.",
    "group-weights": "Giving every class in every environment the same weight raises the accuracy "
    "of the worst group to {grouped.worst:.2f}.",
    "weights-alone": "In the environments seen here, balanced weights without any removal are "
    "better in the worst group ({weighted.worst:.2f} against {best.worst:.2f}).",
    "no-gain-here": "In the environments seen here nothing is gained (worst group {best.worst:.2f} "
    "with the removal, {without:.2f} without): the removal pays off where the environment changes "
    "after training.",
    "target-shifts": "The target itself shifts between environments, by up to "
    "{d.target.effect:.2f} standard deviations (p = {d.target.p_value:.2g}). ISR for regression "
    "assumes that it does not: part of what shifts may be what predicts it.",
}


@dataclass(frozen=True)
class Recommendation:
    """What to do, and why.

    Examples
    --------
    >>> found = {"no-shift": "Nothing shifts."}
    >>> Recommendation("ISRClassifier", {"n_spurious": 0}, (), found).codes
    ('no-shift',)
    """

    estimator: str  #: "ISRClassifier" or "ISRRegressor".
    parameters: dict[str, Any]  #: Its parameters, except those left at their defaults.
    unlabel: tuple[Any, ...]  #: Classes to exclude: set the environment of their rows to None.
    findings: dict[str, str]  #: The reasons, and what limits the answer: sentences by code.

    @property
    def codes(self) -> tuple[str, ...]:
        """Codes of the findings."""
        return tuple(self.findings)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What to do, then the findings in words."""
        return (self.summary, *self.findings.values())

    @property
    def summary(self) -> str:
        """What to do in one or two sentences."""
        if "nothing-to-compare" in self.findings:
            return (
                "ISR cannot be used: no class can be compared between environments. Fit without "
                "environments, which removes nothing."
            )
        if "nothing-to-spare" in self.findings:
            return "Remove nothing: the dimensions that change are needed to predict the class."
        if self.parameters["n_spurious"] == 0:
            return "Remove nothing: there is no reason to use ISR on these data."
        given = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        classes = ", ".join(map(repr, self.unlabel))
        before = f" First set the environment of the rows of class {classes} to None."
        return f"Use {self.estimator}({given}).{before if classes else ''}"


def recommend(d: Diagnosis) -> Recommendation:
    """The recommendation that follows from a diagnosis."""
    found = {code: SENTENCES[code].format(**words) for code, words in _findings(d)}
    estimator = "ISRClassifier" if d.task == "classification" else "ISRRegressor"
    if d.means is None:
        return Recommendation(estimator, {"missing_environments": "single"}, (), found)
    if d.n_spurious == 0:
        return Recommendation(estimator, {"n_spurious": 0}, (), found)
    several = d.method == "mean" and len(d.cells.compared) > 2
    parameters = {
        "method": None if d.task == "regression" else "multiclass" if several else d.method,
        "n_spurious": d.n_spurious,
        "n_components": d.n_components,
        "weights": _best_weights(d),
    }
    unlabel: tuple[Any, ...] = ()
    if d.method == "cov" and d.covariances is not None:
        unlabel = tuple(k for k in d.cells.compared if k not in d.covariances.compared)
    chosen = {name: value for name, value in parameters.items() if value is not None}
    return Recommendation(estimator, chosen, unlabel, found)


def _best_weights(d: Diagnosis) -> str | None:
    """Weights of the head after the removal that improve the worst group notably."""
    scores = {head.weight: head for head in d.heads if head.removed}
    best: str | None = None
    for weight in ("class", "group"):
        if scores and _notably_better(scores[weight], scores[best]):
            best = weight
    return best


def _notably_better(one: HeadScore, other: HeadScore) -> bool:
    """Whether a head is better in its worst group, by more than a little and more than noise."""
    return one.worst - other.worst >= max(NOTABLE, one.worst_error, other.worst_error)


def _findings(d: Diagnosis) -> Iterator[tuple[str, dict[str, Any]]]:
    """Code and words of everything a user should know, most important first."""
    cells = d.cells
    if d.means is None:
        yield "nothing-to-compare", {}
    if cells.single_class:
        names = [f"{c.environment!r} (only {c.label!r})" for c in cells.single_class]
        yield "single-class-environments", {"names": ", ".join(names)}
    elif cells.empty:
        names = [f"class {c.label!r} in {c.environment!r}" for c in cells.empty]
        yield "empty-cells", {"names": _listed(names)}
    if cells.small:
        yield "small-cells", {"names": _listed([_cell(c) for c in cells.small])}
    if d.means is None:
        return
    yield from _about_shifts(d, d.means, d.covariances or CovarianceShift())
    if d.n_spurious:
        yield from _about_removal(d)
    if d.heads:
        yield from _about_heads(d)
    if d.target is not None and d.target.shifted:
        yield "target-shifts", {"d": d}


def _about_shifts(
    d: Diagnosis, m: MeanShift, c: CovarianceShift
) -> Iterator[tuple[str, dict[str, Any]]]:
    """How far means and covariances shift, and whether that is used."""
    K = len(d.cells.compared)
    places = f"{len(d.cells.environments)} environments"
    if d.task == "classification":
        alike = " that shift alike" if m.n_patterns < K else ""
        places += " of one class" if K == 1 else f" and {K} classes{alike}"
    means = "Class means" if d.task == "classification" else "Means"
    words = {"d": d, "m": m, "c": c, "means": means, "places": places}
    words["along"] = f"{m.n_dimensions} dimension{'s' * (m.n_dimensions > 1)}"
    if d.n_spurious == 0:
        both = {"means": f"{means} and covariances" if c.compared else means}
        yield ("nothing-to-spare", words) if c.shifted else ("no-shift", words | both)
    elif not m.shifted:
        yield "means-equal", words
    elif m.n_dimensions >= d.n_features:
        yield "everything-shifts", words
    else:
        # Covariances show every dimension at once, however few the environments: where they
        # clearly show as many as the means, what limits the means does not limit the answer.
        confirmed = c.shifted and not c.weak and c.n_dimensions >= m.n_dimensions
        open_ended = m.limited and d.method == "mean" and not confirmed
        yield "too-few-environments" if open_ended else "means-shift", words
    if d.task == "regression":
        yield "covariances-not-valid", words
    if c.uncompared:
        names = _listed([_cell(cell) for cell in c.uncompared])
        yield "covariances-not-compared", words | {"names": names}
    if c.heavy_tailed:
        yield "heavy-tails", words
    if c.p_value is None or d.n_spurious == 0:
        return
    if not c.shifted:
        yield "covariances-equal", words
        return
    k, a, b = c.largest or (None, None, None)
    words["differ"] = (
        f"Covariances differ along {c.n_dimensions} dimension{'s' * (c.n_dimensions > 1)}, "
        f"variances by up to {c.ratio:.2f} of their mean (class {k!r}, {a!r} against {b!r})."
    )
    used, more = d.method != "mean", c.n_dimensions_joint > m.n_dimensions
    if not used and 3 * c.n_dimensions_joint > 2 * c.n_coordinates:
        yield "covariances-shift-everywhere", words
        return
    why = " They are not used: the difference is hardly larger than noise."
    idle = why if more else " They add nothing to what the means show."
    yield "covariances-shift", words | {"use": "" if used else idle}
    if c.weak and used:
        yield "weak-covariances", words


def _about_removal(d: Diagnosis) -> Iterator[tuple[str, dict[str, Any]]]:
    """Whether rows are enough to find the subspace, what it costs, and what it leaves."""
    if d.stability is not None and not d.stability.stable:
        factor = d.stability.more_rows
        more = f"About {factor:.1f} times as many rows" if factor < 1000 else "Many more rows"
        yield "unstable", {"d": d, "more": more}
        unknown = sum(d.cells.unlabelled)
        if unknown:
            cells = [d.cells.smallest(label) for label in d.cells.compared]
            smallest = _cell(min(cells, key=lambda cell: cell.n))
            yield "few-labels", {"unknown": unknown, "smallest": smallest}
    i = d.information
    if i is None:
        return
    if i.label_lost > max(NOTABLE, 3 * i.label_error):
        role = "distinguishes classes" if d.task == "classification" else "predicts the target"
        yield "labels-lost", {"i": i, "role": role}
    if i.environment_before - i.environment_chance > 2 * NOTABLE and i.environment_left > 0.5:
        yield "environment-left", {"i": i}


def _about_heads(d: Diagnosis) -> Iterator[tuple[str, dict[str, Any]]]:
    """Which group is worst, and whether weights or the removal help it."""
    scores = {(head.removed, head.weight): head for head in d.heads}
    removed = d.n_spurious > 0
    plain, balanced = scores[removed, None], scores[removed, "class"]
    counts = [sum(row) + n for row, n in zip(d.cells.count, d.cells.unlabelled, strict=True)]
    share = counts[d.cells.classes.index(plain.worst_group[0])] / sum(counts)
    words = {"plain": plain, "balanced": balanced, "group": plain.worst_group, "share": share}
    if share < 1 / len(counts) and _notably_better(balanced, plain):
        yield "class-prior", words
    if not removed:
        return
    if _best_weights(d) == "group":
        yield "group-weights", {"grouped": scores[True, "group"]}
    weighted = max((scores[False, w] for w in ("class", "group")), key=lambda h: h.worst)
    best = max((head for head in d.heads if head.removed), key=lambda h: h.worst)
    without = max(weighted.worst, scores[False, None].worst)
    words = {"weighted": weighted, "best": best, "without": without}
    if _notably_better(weighted, best):
        yield "weights-alone", words
    elif best.worst - without < NOTABLE / 2:
        yield "no-gain-here", words


def _listed(names: list[str]) -> str:
    """The first three names, and the number of the others."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _cell(cell: Any) -> str:
    of_class = "" if cell.label is None else f"class {cell.label!r} in "
    return f"{cell.n:,} rows of {of_class}environment {cell.environment!r}"
