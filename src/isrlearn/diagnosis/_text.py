"""A diagnosis as plain text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isrlearn.diagnosis._covariances import CovarianceShift
    from isrlearn.diagnosis._diagnosis import Diagnosis
    from isrlearn.diagnosis._information import Information
    from isrlearn.diagnosis._means import MeanShift
    from isrlearn.diagnosis._stability import Stability

_WIDTH = 96
_LABEL = 26
#: Environments up to which every cell is shown.
_MOST_SHOWN = 8


def report(d: Diagnosis) -> str:
    """The whole diagnosis, a section a question, the recommendation last."""
    E = len(d.cells.environments)
    kinds = f"{len(d.cells.classes)} classes, " if d.task == "classification" else ""
    lines = [
        f"Diagnosis of {d.n_samples:,} rows, {d.n_features:,} features, {kinds}{E} environments",
        f"({d.task}; tests at level {d.level:g})",
        "",
        *_cells(d),
        "",
    ]
    for question, answer in answers(d):
        lines += _entry(question, answer)
    if d.heads:
        lines += ["", *_heads(d)]
    lines += ["", "Recommendation"]
    for sentence in d.recommendation.sentences:
        lines += textwrap.wrap(sentence, _WIDTH, initial_indent="  - ", subsequent_indent="    ")
    return "\n".join(lines)


def _entry(question: str, answer: str) -> list[str]:
    """A question on the left, its answer wrapped on the right."""
    indent = " " * (_LABEL + 2)
    wrapped = textwrap.wrap(answer, _WIDTH - _LABEL - 2)
    first = f"{question:<{_LABEL}}  {wrapped[0]}"
    return [first, *(indent + line for line in wrapped[1:])]


def _cells(d: Diagnosis) -> list[str]:
    """The counts as a table, or their range where there are too many."""
    cells = d.cells
    unknown = sum(cells.unlabelled)
    if len(cells.environments) > _MOST_SHOWN:
        counts = sorted(n for row in cells.count for n in row)
        middle = counts[len(counts) // 2]
        note = f", {unknown:,} more without an environment" if unknown else ""
        return [f"Rows a cell: {counts[0]:,} to {counts[-1]:,}, median {middle:,}{note}"]
    head = ["rows", *map(str, cells.environments), *["(unknown)"] * bool(unknown)]
    rows = [head]
    for k, row, rest in zip(cells.classes, cells.count, cells.unlabelled, strict=True):
        name = "all" if k is None else f"class {k}"
        rows.append([name, *(f"{n:,}" for n in row), *[f"{rest:,}"] * bool(unknown)])
    return _table(rows, numbers=set(range(1, len(head))))


def answers(d: Diagnosis) -> Iterator[tuple[str, str]]:
    """Every question that has an answer."""
    if d.means is None:
        yield "Can anything be compared?", "no: no class is seen in two environments"
        return
    yield "Do means move?", _means(d.means)
    if d.covariances is not None:
        yield "Do covariances differ?", _covariances(d.covariances)
    if d.target is not None:
        moved = f"{_yes(d.target.moved)}, p {_p(d.target.p_value)}"
        yield "Does the target move?", f"{moved}; largest {d.target.effect:.2f} sd"
    for i, requirement in enumerate(d.requirements):
        yield "Enough environments?" if i == 0 else "", str(requirement)
    if d.stability is not None:
        yield "Is the subspace stable?", _stability(d.stability)
    if d.information is not None:
        yield from _information(d.information, d.task, removed=d.n_spurious > 0)
    if d.unseen is not None:
        answer = (
            f"{d.unseen.score} {d.unseen.before:.3f} without, {d.unseen.after:.3f} with the "
            "removal (environments left out in turn)"
        )
        yield "In an unseen environment?", answer


def _means(means: MeanShift) -> str:
    verdict = f"{_yes(means.moved)}, p {_p(means.p_value)}"
    k, a, b = means.largest
    which = "" if k is None else f"class {k!r}, "
    effect = f"largest {means.effect:.2f} sd ({which}{a!r} against {b!r})"
    if not means.moved:
        return f"{verdict}; {effect}"
    limited = ", the most that these environments can show" if means.limited else ""
    return (
        f"{verdict}; along {means.n_dimensions} of {means.n_coordinates} dimensions"
        f"{limited}; {effect}"
    )


def _covariances(found: CovarianceShift) -> str:
    if found.p_value is None:
        short = min(found.uncompared, key=lambda u: u.cell.n)
        return (
            f"cannot be told: {short.cell.n:,} rows of class {short.cell.label!r} in "
            f"{short.cell.environment!r}, {short.needed:,} needed"
        )
    verdict = f"{_yes(found.moved)}, p {_p(found.p_value)} ({found.form})"
    if not found.moved:
        return verdict
    return (
        f"{verdict}; along {found.n_dimensions} of {found.n_coordinates} dimensions, with means "
        f"{found.n_dimensions_joint}; variances by up to {found.ratio:.2f} of their mean"
    )


def _stability(found: Stability) -> str:
    angles = f"largest angle {found.median[0]:.1f}°, 95 % of draws {found.low[0]:.1f}° to "
    return f"{_yes(found.stable)}: {angles}{found.high[0]:.1f}°"


def _information(found: Information, task: str, *, removed: bool) -> Iterator[tuple[str, str]]:
    """What can be told of labels and environments; after the removal too, if there is one."""
    told = "told given the class" if task == "classification" else "told"
    label, place = f"{found.label_before:.3f}", f"{found.environment_before:.3f}"
    if removed:
        label += f" before, {found.label_after:.3f} after (difference ± {found.label_error:.3f})"
        place += f" before, {found.environment_after:.3f} after"
    label = f"{found.score} inside environments {label}"
    if found.label_before != found.label_before:
        label = "cannot be told: they do not vary inside environments"
    yield "Are labels lost?" if removed else "Can labels be told?", label
    place = f"{told} with balanced accuracy {place}; chance {found.environment_chance:.3f}"
    yield "Is the environment gone?" if removed else "Can environments be told?", place


def _heads(d: Diagnosis) -> list[str]:
    """Accuracies of linear heads as a table."""
    names: dict[Any, str] = {None: "none", "class": "classes balanced", "group": "groups balanced"}
    rows = [["held-out accuracy", "weights", "worst", "average", "worst group"]]
    for head in d.heads:
        group = f"class {head.worst_group[0]} in {head.worst_group[1]}"
        removal = "subspace removed" if head.removed else "nothing removed"
        scores = [f"{head.worst:.3f}", f"{head.average:.3f}"]
        rows.append([removal, names[head.weight], *scores, group])
    return _table(rows, numbers={2, 3})


def _table(rows: list[list[str]], numbers: set[int]) -> list[str]:
    """Aligned columns, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if i in numbers else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _yes(answer: bool) -> str:
    return "yes" if answer else "no"


def _p(value: float) -> str:
    return "< 1e-16" if value < 1e-16 else f"= {value:.2g}"
