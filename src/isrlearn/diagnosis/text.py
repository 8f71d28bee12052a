"""A diagnosis in words: findings, questions with their answers, and the table of cells."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from isrlearn.diagnosis.shares import said
from isrlearn.diagnosis.shifts import CellCounts

if TYPE_CHECKING:
    from isrlearn.diagnosis.diagnosis import Diagnosis

#: Environments up to which every cell is shown.
_MOST_SHOWN = 8


def findings(d: Diagnosis) -> Iterator[str]:
    """What limits the answer, in sentences."""
    cells, m, s, t = d.cells, d.means, d.stability, d.target
    if m is None:
        yield (
            "No class has rows in two environments, so the effects of class and environment "
            "cannot be separated. Collect rows of one class in a second environment."
        )
    if cells.empty:
        names = [f"class {c.label!r} in {c.environment!r}" for c in cells.empty]
        yield f"Cells without rows: {_listed(names)}."
        if d.has_gap and d.comparison is not None:
            yield (
                "ISR is expected to help in these cells, which balanced weights cannot do; no row "
                f"of them can be scored here. In the other groups: {d.comparison.answer}."
            )
    if cells.small:
        yield f"Cells of fewer than ten rows: {_listed([str(c) for c in cells.small])}."
    if m is not None and m.limited:
        yield (
            f"Means of {len(cells.environments)} environments cannot show more dimensions: there "
            "may be others, which would not be removed."
        )
    if s is not None and not s.stable:
        more = f"About {s.more_rows:.1f}" if s.more_rows < 1000 else "Thousands of"
        yield (
            f"The subspace is uncertain: in data drawn again it would rotate by {s.median[0]:.0f} "
            f"degrees. {more} times as many rows in each cell would bring that below 30."
        )
    if t is not None and t.shifted:
        yield (
            f"The target itself shifts between environments, by up to {t.effect:.2f} standard "
            f"deviations (p = {t.p_value:.2g}). ISR for regression assumes that it does not."
        )


def answers(d: Diagnosis) -> Iterator[tuple[str, str]]:
    """Every question that has an answer, with the answer."""
    if d.means is None:
        yield "Can anything be compared?", "no: no class has rows in two environments"
        return
    for question, shift, largest in (
        ("Do means shift?", d.means, "largest {:.2f} sd"),
        ("Do covariances differ?", d.covariances, "variances by a factor of up to {:.2f}"),
        ("Does the target shift?", d.target, "largest {:.2f} sd"),
    ):
        if shift is None:
            continue
        if shift.p_value is None:
            yield question, f"unknown: {shift.note}"
            continue
        p = "< 1e-16" if shift.p_value < 1e-16 else f"= {shift.p_value:.2g}"
        text = f"{'yes' if shift.shifted else 'no'}, p {p}"
        if shift.shifted and shift.largest is not None:
            k, a, b = shift.largest
            where = f"{'' if k is None else f'class {k!r}, '}{a!r} against {b!r}"
            text += f"; along {shift.n_dimensions} of {shift.n_coordinates} dimensions; "
            text += f"{largest.format(shift.effect)} ({where})"
        yield question, text
    s = d.stability
    if s is not None:
        angles = f"largest angle {s.median[0]:.1f}°, 95 % of draws {s.low[0]:.1f}° to"
        yield "Is the subspace stable?", f"{'yes' if s.stable else 'no'}: {angles} {s.high[0]:.1f}°"
    if d.columns:
        yield "Which columns?", said(d.columns)
    if d.unseen is not None:
        means = {name: sum(at.values()) / len(at) for name, at in d.unseen.items()}
        scores = ", ".join(f"{value:.3f} with {name}" for name, value in means.items())
        score = "accuracy" if d.task == "classification" else "error"
        yield "In an unseen environment?", f"{score} {scores} (environments left out in turn)"


def unseen_rows(d: Diagnosis) -> tuple[list[list[str]], str]:
    """Rows of a table of the scores in environments left out, and the sides of its columns."""
    unseen = d.unseen or {}
    rows = [["left out", *unseen]]
    for place in next(iter(unseen.values()), {}):
        rows.append([str(place), *(f"{at[place]:.3f}" for at in unseen.values())])
    return rows, "<" + ">" * len(unseen)


def cell_rows(cells: CellCounts) -> list[list[str]]:
    """Rows of a table of the counts, or their range where there are too many."""
    unknown = sum(cells.unlabelled)
    if len(cells.environments) > _MOST_SHOWN:
        counts = sorted(n for row in cells.count for n in row)
        middle = counts[len(counts) // 2]
        note = f", {unknown:,} more without an environment" if unknown else ""
        return [[f"Rows per cell: {counts[0]:,} to {counts[-1]:,}, median {middle:,}{note}"]]
    rows = [["rows", *map(str, cells.environments), *["(unknown)"] * bool(unknown)]]
    for k, row, rest in zip(cells.classes, cells.count, cells.unlabelled, strict=True):
        name = "all" if k is None else f"class {k}"
        rows.append([name, *(f"{n:,}" for n in row), *[f"{rest:,}"] * bool(unknown)])
    return rows


def wrapped(text: str, label: str = "") -> list[str]:
    """Lines of text to the right of a label."""
    return textwrap.wrap(text, 96, initial_indent=label, subsequent_indent=" " * len(label))


def _listed(names: list[str]) -> str:
    """The first three names, and the number of the others."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
