"""A diagnosis as plain text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from isrlearn.metrics.groups import aligned

if TYPE_CHECKING:
    from isrlearn.diagnosis.diagnosis import Diagnosis

#: Environments up to which every cell is shown.
_MOST_SHOWN = 8


def render(d: Diagnosis) -> str:
    """The whole diagnosis: cells, questions and answers, heads, recommendation."""
    n_classes = f"{len(d.cells.classes)} classes, " if d.task == "classification" else ""
    lines = [
        f"Diagnosis of {d.n_samples:,} rows, {d.n_features:,} features, {n_classes}"
        f"{len(d.cells.environments)} environments",
        f"({d.task}; tests at level {d.level:g})",
        "",
        *_cells(d),
        "",
    ]
    for question, answer in answers(d):
        lines += _wrapped(answer, f"{question:<28}")
    if d.heads:
        lines += ["", *_heads(d)]
    lines += ["", "Recommendation"]
    for sentence in d.recommendation.sentences:
        lines += _wrapped(sentence, "  - ")
    return "\n".join(lines)


def _wrapped(text: str, label: str) -> list[str]:
    """Lines of text to the right of a label."""
    return textwrap.wrap(text, 96, initial_indent=label, subsequent_indent=" " * len(label))


def answers(d: Diagnosis) -> Iterator[tuple[str, str]]:
    """Every question that has an answer, with the answer."""
    m, c, t, s, i = d.means, d.covariances, d.target, d.stability, d.information
    if m is None:
        yield "Can anything be compared?", "no: no class has rows in two environments"
        return
    k, a, b = m.largest
    of_class = "" if k is None else f"class {k!r}, "
    shown = ", the most that these environments can show" if m.limited else ""
    along = f"; along {m.n_dimensions} of {m.n_coordinates} dimensions{shown}" if m.shifted else ""
    largest = f"largest {m.effect:.2f} sd ({of_class}{a!r} against {b!r})"
    yield "Do means shift?", f"{_tested(m.shifted, m.p_value)}{along}; {largest}"
    if c is not None and c.p_value is None:
        cell = min(c.uncompared, key=lambda cell: cell.n)
        short = f"{cell.n:,} rows of class {cell.label!r} in {cell.environment!r}"
        yield "Do covariances differ?", f"unknown: {short}, {c.n_needed:,} needed"
    elif c is not None and c.p_value is not None:
        along = f"; along {c.n_dimensions} of {c.n_coordinates} dimensions, with means "
        along += f"{c.n_dimensions_joint}; variances by up to {c.ratio:.2f} of their mean"
        verdict = _tested(c.shifted, c.p_value)
        yield "Do covariances differ?", verdict + along * c.shifted
    if t is not None:
        largest = f"largest {t.effect:.2f} sd"
        yield "Does the target shift?", f"{_tested(t.shifted, t.p_value)}; {largest}"
    if s is not None:
        angles = f"largest angle {s.median[0]:.1f}°, 95 % of draws {s.low[0]:.1f}° to"
        stable = "yes" if s.stable else "no"
        yield "Is the subspace stable?", f"{stable}: {angles} {s.high[0]:.1f}°"
    if i is not None:
        label, place = f"{i.label_before:.3f}", f"{i.environment_before:.3f}"
        if d.n_spurious:
            label += f" before, {i.label_after:.3f} after (difference ± {i.label_error:.3f})"
            place += f" before, {i.environment_after:.3f} after"
        label = f"{i.score} inside environments {label}"
        if i.label_before != i.label_before:
            label = "unknown: labels do not vary inside environments"
        yield "Are labels lost?" if d.n_spurious else "Can labels be predicted?", label
        given = " given the class" if d.task == "classification" else ""
        question = "Is the environment gone?" if d.n_spurious else "Can environments be predicted?"
        yield question, f"balanced accuracy{given} {place}; chance {i.environment_chance:.3f}"
    if i is not None and i.unseen_before is not None:
        scores = f"{i.score} {i.unseen_before:.3f} without, {i.unseen_after:.3f} with the removal"
        yield "In an unseen environment?", f"{scores} (environments left out in turn)"


def _cells(d: Diagnosis) -> list[str]:
    """The counts as a table, or their range where there are too many."""
    cells, unknown = d.cells, sum(d.cells.unlabelled)
    if len(cells.environments) > _MOST_SHOWN:
        counts = sorted(n for row in cells.count for n in row)
        middle = counts[len(counts) // 2]
        note = f", {unknown:,} more without an environment" if unknown else ""
        return [f"Rows per cell: {counts[0]:,} to {counts[-1]:,}, median {middle:,}{note}"]
    rows = [["rows", *map(str, cells.environments), *["(unknown)"] * bool(unknown)]]
    for k, row, rest in zip(cells.classes, cells.count, cells.unlabelled, strict=True):
        name = "all" if k is None else f"class {k}"
        rows.append([name, *(f"{n:,}" for n in row), *[f"{rest:,}"] * bool(unknown)])
    return aligned(rows, "<" + ">" * len(rows[0]))


def _heads(d: Diagnosis) -> list[str]:
    """Accuracies of linear heads as a table."""
    rows = [["held-out accuracy", "weights", "worst", "average", "worst group"]]
    for head in d.heads:
        group = f"class {head.worst_group[0]} in {head.worst_group[1]}"
        removal = "subspace removed" if head.removed else "nothing removed"
        scores = [f"{head.worst:.3f}", f"{head.average:.3f}"]
        rows.append([removal, head.weight or "none", *scores, group])
    return aligned(rows, "<<<<<")


def _tested(answer: bool, p_value: float) -> str:
    p = "< 1e-16" if p_value < 1e-16 else f"= {p_value:.2g}"
    return f"{'yes' if answer else 'no'}, p {p}"
