"""A diagnosis as plain text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isrlearn.diagnosis._diagnosis import Diagnosis

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
    for question, answer in _answers(d):
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


def _answers(d: Diagnosis) -> Iterator[tuple[str, str]]:
    """Every question that has an answer."""
    if d.means is None:
        yield "Can anything be compared?", "no: no class is seen in two environments"
        return
    yield "Do means move?", _means(d)
    if d.covariances is not None:
        yield "Do covariances differ?", _covariances(d)
    if d.target is not None:
        yield "Does the target move?", _target(d)
    for i, requirement in enumerate(d.requirements):
        yield "Enough environments?" if i == 0 else "", str(requirement)
    if d.stability is not None:
        yield "Is the subspace stable?", _stability(d)
    if d.information is not None:
        yield "Are labels lost?", _labels(d)
        yield "Is the environment gone?", _environments(d)
    if d.unseen is not None:
        yield (
            "In an unseen environment?",
            (
                f"{d.unseen.score} {d.unseen.before:.3f} without, {d.unseen.after:.3f} with the "
                "removal (environments left out in turn)"
            ),
        )


def _means(d: Diagnosis) -> str:
    means = d.means
    assert means is not None
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


def _covariances(d: Diagnosis) -> str:
    found = d.covariances
    assert found is not None
    if found.p_value is None:
        short = min((u for u in found.uncompared), key=lambda u: u.cell.n)
        return (
            f"cannot be told: {short.cell.n:,} rows of class {short.cell.label!r} in "
            f"{short.cell.environment!r}, {short.needed:,} needed"
        )
    verdict = f"{_yes(found.moved)}, p {_p(found.p_value)} ({found.form})"
    if not found.moved:
        return verdict
    joint = found.n_dimensions_joint
    return (
        f"{verdict}; along {found.n_dimensions} of {found.n_coordinates} dimensions, with means "
        f"{joint}; variances by up to {found.ratio:.2f} of their mean"
    )


def _target(d: Diagnosis) -> str:
    assert d.target is not None
    return f"{_yes(d.target.moved)}, p {_p(d.target.p_value)}; largest {d.target.effect:.2f} sd"


def _stability(d: Diagnosis) -> str:
    found = d.stability
    assert found is not None
    angles = f"largest angle {found.median[0]:.1f}°, 95 % of draws {found.low[0]:.1f}° to "
    return f"{_yes(found.stable)}: {angles}{found.high[0]:.1f}°"


def _labels(d: Diagnosis) -> str:
    found = d.information
    assert found is not None
    if found.label_before != found.label_before:
        return "cannot be told: no environment has two classes"
    return (
        f"{found.score} inside environments {found.label_before:.3f} before, "
        f"{found.label_after:.3f} after (difference ± {found.label_error:.3f})"
    )


def _environments(d: Diagnosis) -> str:
    found = d.information
    assert found is not None
    given = " given the class" if d.task == "classification" else ""
    return (
        f"told{given} with balanced accuracy {found.environment_before:.3f} before, "
        f"{found.environment_after:.3f} after; chance {found.environment_chance:.3f}"
    )


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
