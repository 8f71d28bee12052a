"""The page of the regimes: a table per regime, counts, and a figure of where each method wins."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from isrlearn.paper.figures import drawn
from isrlearn.paper.records import CellKey, Failure, grouped
from isrlearn.paper.regimes.data import DATASETS, REGIMES
from isrlearn.paper.regimes.scores import METHODS, RegimesPlan, Score, run_regimes
from isrlearn.paper.tables import Table, markdown, notes, result_dict, write_files

#: Points behind the best from which a method counts as clearly behind.
_BEHIND = 0.03
#: The one call.
_ONE_CALL = "ISRClassifierCV()"


@dataclass(frozen=True)
class Cell:
    """Mean and standard error of one method on one data set in one regime."""

    dataset: str
    regime: str
    method: str
    mean: float
    error: float
    n_seeds: int
    rank: str = ""  # or best, near (within a standard error), behind (over three points), failed

    @property
    def shown(self) -> str:
        """The mean and its standard error as text."""
        if np.isnan(self.mean):
            return "error"
        text = f"{self.mean:.3f}" + (f" ± {self.error:.3f}" if self.n_seeds > 1 else "")
        return {"best": f"**{text}**", "near": f"{text} *"}.get(self.rank, text)


@dataclass(frozen=True)
class RegimesResult:
    """What was measured, ready for tables and JSON."""

    plan: RegimesPlan
    scores: list[Score]

    @property
    def failures(self) -> list[Failure]:
        """Runs that raised an error."""
        return [
            Failure(CellKey(s.dataset, s.method, 0, s.seed, s.regime), s.settings)
            for s in self.scores
            if np.isnan(s.score) and s.method in self.plan.methods
        ]

    @property
    def cells(self) -> list[Cell]:
        """Every method on every data set in every regime that has scores."""
        found = []
        by_name = grouped(self.scores, lambda s: (s.dataset, s.regime, s.method))
        for name, scores in by_name.items():
            values, n = [s.score for s in scores], len(scores)
            error = float(np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else 0.0
            found.append(Cell(*name, float(np.mean(values)), error, n))
        compared = grouped(found, lambda cell: (cell.dataset, cell.regime)).values()
        return [cell for cells in compared for cell in _ranked(cells)]

    def tables(self) -> list[Table]:
        """Counts, then one table per regime."""
        cells = self.cells
        return [
            _counts(cells),
            *_behind(cells),
            *(_regime(cells, name) for name in _present(cells, "regime")),
        ]

    def to_dict(self) -> dict[str, Any]:
        """The plan, the means and the failures, ready for JSON."""
        return result_dict(self.plan, self.failures, cells=self.cells)


def _ranked(cells: list[Cell]) -> list[Cell]:
    """The methods on one data set in one regime with their ranks."""
    able = [c for c in cells if not METHODS[c.method].told and not np.isnan(c.mean)]
    if not able:
        return cells
    best, ranked = max(able, key=lambda c: c.mean), []
    for cell in cells:
        gap = best.mean - cell.mean
        if np.isnan(gap):
            rank = "failed"
        elif METHODS[cell.method].told:
            rank = ""
        elif gap <= best.error:
            rank = "near" if gap > 0 else "best"
        else:
            rank = "behind" if gap > _BEHIND else ""
        ranked.append(replace(cell, rank=rank))
    return ranked


def _present(cells: Iterable[Cell], name: str) -> list[str]:
    """Data sets, regimes or methods that have cells, in their usual order."""
    order = {"dataset": DATASETS, "regime": REGIMES, "method": METHODS}[name]
    found = {getattr(cell, name) for cell in cells}
    return [value for value in order if value in found]


def _regime(cells: list[Cell], regime: str) -> Table:
    chosen = [cell for cell in cells if cell.regime == regime]
    datasets = _present(chosen, "dataset")
    shown = {(cell.method, cell.dataset): cell.shown for cell in chosen}
    rows = [
        [method, *(shown.get((method, dataset), "–") for dataset in datasets)]
        for method in _present(chosen, "method")
    ]
    return Table(f"{regime[0].upper()}{regime[1:]}", ["method", *datasets], rows)


def _counts(cells: list[Cell]) -> Table:
    """How often each method is best or near, and clearly behind, in all and in each regime."""
    regimes, rows = _present(cells, "regime"), []
    for method in (name for name in _present(cells, "method") if not METHODS[name].told):
        own = [cell for cell in cells if cell.method == method]
        wins = [c for c in own if c.rank in ("best", "near")]
        lost = [c for c in own if c.rank in ("behind", "failed")]
        by_regime = (
            f"{sum(c.regime == r for c in wins)}/{sum(c.regime == r for c in own)}" for r in regimes
        )
        rows.append([method, f"{len(wins)}/{len(own)}", f"{len(lost)}/{len(own)}", *by_regime])
    columns = ["method", "best or near", "more than 3 points behind", *regimes]
    return Table("Data sets on which a method is best or within one standard error", columns, rows)


def _behind(cells: list[Cell]) -> list[Table]:
    """Where the one call is clearly behind, by how many points, and the best method there."""
    best = {(c.dataset, c.regime): c for c in cells if c.rank == "best"}
    lost: dict[str, list[str]] = {}
    for c in cells:
        if c.method == _ONE_CALL and c.rank in ("behind", "failed"):
            first = best[c.dataset, c.regime]
            gap = 100 * (first.mean - np.nan_to_num(c.mean))
            lost.setdefault(c.regime, []).append(f"{c.dataset} {gap:.0f} ({first.method})")
    rows = [[name, str(len(found)), ", ".join(found)] for name, found in lost.items()]
    columns = ["regime", "data sets", "points behind (the best method)"]
    title = f"Where {_ONE_CALL} is more than three points behind"
    return [Table(title, columns, rows)] if rows else []


def _figure(cells: list[Cell]) -> dict[str, bytes]:
    """A map of methods and regimes: the mean distance to the best, and the number of wins."""
    regimes = _present(cells, "regime")
    methods = [name for name in _present(cells, "method") if not METHODS[name].told]
    best = {(c.dataset, c.regime): c.mean for c in cells if c.rank == "best"}
    gaps, wins = (np.full((len(methods), len(regimes)), np.nan) for _ in range(2))
    shown = (cell for cell in cells if cell.method in methods)
    for (method, regime), own in grouped(shown, lambda c: (c.method, c.regime)).items():
        at = methods.index(method), regimes.index(regime)
        # A method that failed predicts nothing: it is behind by all of the best's accuracy.
        gaps[at] = np.mean([best[c.dataset, regime] - np.nan_to_num(c.mean) for c in own])
        wins[at] = sum(c.rank in ("best", "near") for c in own)

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        image = axes.imshow(100 * gaps, cmap="cividis_r", vmin=0, vmax=15, aspect="auto")
        axes.set_xticks(range(len(regimes)), regimes, rotation=35, ha="right")
        axes.set_yticks(range(len(methods)), methods)
        for (i, j), gap in np.ndenumerate(gaps):
            if not np.isnan(gap):
                colour = "white" if gap > 0.08 else "black"
                text = f"{100 * gap:.1f}\n({wins[i, j]:.0f})"
                axes.text(j, i, text, ha="center", va="center", color=colour, fontsize=6.5)
        label = "points behind the best, mean over data sets (in brackets: wins)"
        figure.colorbar(image, ax=axes, label=label, extend="max")

    return drawn((9.5, 0.42 * len(methods) + 1.8), draw)


def run(plan: RegimesPlan, out: Path | str, *, again: bool = False, command: str = "") -> Any:
    """The result in a folder, after what was missing was computed."""
    return RegimesResult(plan, run_regimes(plan, out, again=again))


def write_regimes(
    result: RegimesResult, out: Path | str, *, figures: bool = True, command: str = ""
) -> list[Path]:
    """Paths of the files written: table.md, figure.png, figure.svg."""
    cells = result.cells
    counts = [cell.n_seeds for cell in cells] or [0]
    shown = " to ".join(map(str, sorted({min(counts), max(counts)})))
    measured, setting, reasons = notes("regimes")
    paragraphs = [measured.format(n=shown), setting]
    if _ONE_CALL in _present(cells, "method"):
        paragraphs.append(reasons)
    if figures:
        paragraphs.append("![Points behind the best method in every regime](figure.svg)")
    if command:  # the page shows all that is recorded, not only what this command computed
        command = f"isr bench regimes --seeds {max(counts)}"
        for known, name in ((DATASETS, "dataset"), (REGIMES, "regime"), (METHODS, "method")):
            found = _present(cells, name)
            command += f' --{name}s "{",".join(found)}"' if len(found) < len(known) else ""
    text = markdown("Regimes", paragraphs, result.tables(), command=command)
    contents: dict[str, str | bytes] = {"table.md": text}
    return write_files(out, contents | (_figure(cells) if figures else {}))
