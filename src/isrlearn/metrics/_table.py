"""A group report as plain text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._report import GroupReport


def text_table(report: GroupReport) -> str:
    """The groups as an aligned table, then the summaries."""
    return "\n".join([*_group_lines(report), "", *_summary_lines(report)])


def _group_lines(report: GroupReport) -> list[str]:
    by_class = report.groups[0].label is not None
    trained = report.groups[0].n_train is not None
    rows = [
        ["class"] * by_class
        + ["environment", "n", report.metric, f"{100 * report.level:g}% interval"]
        + ["n in training"] * trained
    ]
    for g in report.groups:
        interval = f"[{g.low:.4f}, {g.high:.4f}]"
        rows.append(
            [str(g.label)] * by_class
            + [str(g.environment), str(g.n), f"{g.value:.4f}", interval]
            + [str(g.n_train)] * trained
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    numbers = {by_class + 1, by_class + 2, by_class + 4}
    return [
        "  ".join(
            cell.rjust(width) if i in numbers else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _summary_lines(report: GroupReport) -> list[str]:
    worst = report.by_rank[0]
    where = f"environment {worst.environment}"
    if worst.label is not None:
        where = f"class {worst.label}, {where}"
    unknown = report.n_without_environment
    lines = [
        ("worst group", report.worst, where),
        (
            "average",
            report.average,
            f"all {report.n} rows" + f", {unknown} without an environment" * (unknown > 0),
        ),
        ("balanced average", report.balanced_average, "each group counts the same"),
    ]
    if report.groups[0].n_train is not None:
        note = "groups weighted by their size in training"
        lines.append(("weighted average", report.weighted_average, note))
    return [f"{name:<16}  {value:.4f}  {note}" for name, value, note in lines]
