"""Accuracy when the environment of only a fraction of the rows is known."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isrlearn import ISRClassifierCV, infer_environments
from isrlearn.core.labels import Cells
from isrlearn.datasets import Splits, load_digits_on_paper, make_waterbirds_like
from isrlearn.paper.figures import labels_figure
from isrlearn.paper.plan import check_names
from isrlearn.paper.real.experiments import REAL
from isrlearn.paper.real.features import cached_features
from isrlearn.paper.real.methods import balanced
from isrlearn.paper.real.tables import SCORES as REAL_SCORES
from isrlearn.paper.real.tables import scored
from isrlearn.paper.records import CellKey, Failure, Record, RecordFile, grouped
from isrlearn.paper.runner import each_fit, fitted, recorded
from isrlearn.paper.summary import csv_of_scores, mean_interval
from isrlearn.paper.tables import Table, markdown, notes, plus_minus, result_dict, write_files

#: Titles, and functions from a seed to the data; None for the features of the experiment below.
DATASETS: Mapping[str, tuple[str, Callable[..., Splits] | None]] = {
    "waterbirds-like": ("Waterbirds-like simulation", make_waterbirds_like),
    "digits-on-paper": ("Digits on paper", load_digits_on_paper),
    "pretrained": ("Garments on photographs, features of a pretrained encoder", None),
    "mc-cmnist": ("Multi-class Coloured MNIST, features of a network trained by ERM", None),
}
#: What differs from the options of those experiments: fewer images of digits, for time.
OPTIONS: Mapping[str, dict[str, Any]] = {"mc-cmnist": {"n_samples": 15_000, "epochs": 18}}
#: Among these every method chooses its own C at every fraction, by the worst validation group.
PENALTIES = [0.0001, 0.001, 0.01, 0.1, 1.0, 10.0]
_MEAN = {"n_spurious": "auto", "weights": "class"}
_WEIGHTED = {"n_spurious": 0, "weights": "group"}
_PUBLISHED = {"variant": "paper", "n_components": 100, "weights": None}
#: Labels, and settings of a search. As in the paper, ISR-Cov also chooses how much it removes.
METHODS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "isr": ("ISR-Mean", _MEAN),
    "isr-filled": ("ISR-Mean, filled in", _MEAN),
    "isr-cov": (
        "ISR-Cov",
        {"method": "cov", "n_spurious": ["auto", 1, 2, 3, 5, 8], "weights": "class"},
    ),
    "reweighting": ("groups reweighted", _WEIGHTED),
    "reweighting-filled": ("groups reweighted, filled in", _WEIGHTED),
    "plain": ("nothing removed", {"n_spurious": 0, "weights": "class"}),
    "isr-published": ("ISR-Mean, as published", _PUBLISHED | {"n_spurious": "auto"}),
    "isr-cov-published": (
        "ISR-Cov, as published",
        _PUBLISHED | {"method": "cov", "n_spurious": [1, 2, 3, 5, 8]},
    ),
}
#: Methods for which unknown environments are first inferred by `infer_environments`.
_FILLED = ("isr-filled", "reweighting-filled")
#: Data sets whose validation groups are large enough to choose settings by the worst of them.
_WORST = ("waterbirds-like", "digits-on-paper", "pretrained")
FRACTIONS = (1.0, 0.5, 0.25, 0.1, 0.05)
SCORES = {
    "worst group": REAL_SCORES["worst_group_accuracy"],
    "average": REAL_SCORES["average_accuracy"],
}
EXPERIMENT = "partial-labels"


@dataclass(frozen=True)
class LabelsPlan:
    """What is run; a draw is a seed of the data and of the rows whose environment is known."""

    datasets: tuple[str, ...] = ("waterbirds-like", "digits-on-paper")
    methods: tuple[str, ...] = tuple(METHODS)
    fractions: tuple[float, ...] = FRACTIONS
    n_draws: int = 20

    def __post_init__(self) -> None:
        check_names("data set", self.datasets, DATASETS)
        check_names("method", self.methods, METHODS)
        if not self.fractions or not all(0 < f <= 1 for f in self.fractions):
            raise ValueError(f"fractions={list(self.fractions)}: each must be above 0, at most 1")
        if self.n_draws < 1:
            raise ValueError(f"n_draws={self.n_draws}: it must be at least 1")

    def keys(self) -> list[CellKey]:
        """The cells, one for each score of a fit."""
        cells = product(range(self.n_draws), self.datasets, self.methods, self.fractions, SCORES)
        return [
            CellKey(
                *(dataset, method, 2, draw, "converged"),
                parameters=METHODS[method][1] | {"C": PENALTIES},
                options={"fraction": fraction, "score": score},
            )
            for draw, dataset, method, fraction, score in cells
        ]


@dataclass(frozen=True)
class Curve:
    """A point of a curve: mean accuracy over draws at one fraction of labels."""

    dataset: str
    method: str
    score: str
    fraction: float
    n_draws: int
    mean: float
    half_width: float  # half the 95 % interval of the mean by Student's t; NaN for one draw
    change: float  # mean difference from all labels, draw by draw; NaN where those were not run
    change_half_width: float

    @property
    def shown(self) -> str:
        """Mean and half width."""
        return plus_minus(self.mean, self.half_width)

    @property
    def change_shown(self) -> str:
        """The difference from all labels; empty for all labels themselves."""
        shown = plus_minus(self.change, self.change_half_width, sign="+")
        return "" if self.fraction == 1 else shown


def curves(records: Iterable[Record]) -> list[Curve]:
    """Every point of the records, in their order; the options of a key say which."""
    at: dict[tuple[str, str, str, float], dict[int, float]] = {}
    for record in records:
        key = record.key
        cell = (key.dataset, key.method, key.options["score"], key.options["fraction"])
        at.setdefault(cell, {})[key.seed] = 1 - record.value
    points = []
    for cell, values in at.items():
        full = at.get((*cell[:3], 1.0), {})
        mean, _, half = mean_interval(values.values())
        change, _, change_half = mean_interval(v - full[i] for i, v in values.items() if i in full)
        points.append(Curve(*cell, len(values), mean, half, change, change_half))
    return points


@dataclass(frozen=True)
class LabelsResult:
    """The result of a run."""

    plan: LabelsPlan
    records: list[Record]  # errors: one minus the accuracy
    failures: list[Failure]

    @property
    def curves(self) -> list[Curve]:
        """Every point, in the order of the plan."""
        return curves(self.records)

    @property
    def titles(self) -> dict[str, str]:
        """Titles of the data sets, in the order of the plan."""
        return {name: DATASETS[name][0] for name in self.plan.datasets}

    @property
    def labels(self) -> dict[str, str]:
        """Labels of the methods, in the order of the plan."""
        return {name: METHODS[name][0] for name in self.plan.methods}

    def tables(self) -> list[Table]:
        """One table per data set: methods and scores down, fractions of labels across."""
        return [self._table(name, title) for name, title in self.titles.items()]

    def _table(self, dataset: str, title: str) -> Table:
        at = {(c.method, c.score, c.fraction): c for c in self.curves if c.dataset == dataset}
        fractions = sorted({fraction for _, _, fraction in at}, reverse=True)
        scores = list(dict.fromkeys(score for _, score, _ in at))
        rows = []
        for method, label in self.labels.items():
            for score in scores:
                cells = [at.get((method, score, fraction)) for fraction in fractions]
                rows.append([f"{label}, {score}", *("" if c is None else c.shown for c in cells)])
        for method in ("isr", "isr-filled") if 1.0 in self.plan.fractions else ():
            if method in self.labels:
                cells = [at.get((method, scores[0], fraction)) for fraction in fractions]
                shown = ("" if c is None else c.change_shown for c in cells)
                rows.append([f"{self.labels[method]}, {scores[0]}, change", *shown])
        return Table(title, ["accuracy", *(f"{fraction:.0%}" for fraction in fractions)], rows)

    def to_dict(self) -> dict[str, Any]:
        """The plan, the curves and the failures, ready for JSON."""
        return result_dict(self.plan, self.failures, curves=self.curves)


def run_partial_labels(
    plan: LabelsPlan, out: Path | str, *, n_jobs: int = 1, command: str = ""
) -> LabelsResult:
    """Result of a plan; cells already recorded in `out` are not run again."""
    records, work = RecordFile(out, EXPERIMENT, command), partial(_evaluated, Path(out))
    by_draw: dict[str, Any] = {"group": lambda key: (key.seed, key.dataset), "label": "fitting"}
    return LabelsResult(plan, *recorded(records, plan.keys(), work, n_jobs=n_jobs, **by_draw))


def write_partial_labels(
    result: LabelsResult, out: Path | str, *, figures: bool = True, command: str = ""
) -> list[Path]:
    """Paths of the files written: table.md, curves.json, results.csv, figure.png, figure.svg."""
    (note,) = notes(EXPERIMENT)
    penalties = ", ".join(f"{C:g}" for C in PENALTIES)
    note = note.format(n=result.plan.n_draws, penalties=penalties)
    title = "Partial environment labels"
    contents: dict[str, str | bytes] = {
        "table.md": markdown(title, [note], result.tables(), command=command),
        "curves.json": json.dumps(result.to_dict(), indent=1),
        "results.csv": csv_of_scores(result.records, ("fraction", "score")),
    }
    if figures:
        contents |= labels_figure(result.curves, result.titles, result.labels)
    return write_files(out, contents)


def _splits(name: str, seed: int, folder: Path) -> Splits:
    """The data of a draw; features of networks are kept in a folder."""
    make = DATASETS[name][1]
    if make is not None:
        return make(random_state=seed)
    experiment = REAL[name]
    seed += experiment.first_seed
    options = {**experiment.options, **OPTIONS.get(name, {})}
    trained = partial(experiment.features, "erm", seed, options)
    found = cached_features(trained, folder / "features", f"{name}-{seed}", options).splits
    # Among a hundred groups most have no validation row or one: the mean of groups counts there.
    held_out = found.validation if name in _WORST else balanced(found.validation, False)
    return replace(found, validation=held_out)


def _evaluated(folder: Path, keys: list[CellKey]) -> Iterator[Record | Failure]:
    """Records of the cells of one draw; the data are made once, each model is fitted once."""
    splits = _splits(keys[0].dataset, keys[0].seed, folder)
    fits = grouped(keys, lambda key: (key.method, key.options["fraction"])).values()
    return each_fit(fits, partial(_fitted, splits))


def _fitted(splits: Splits, cells: list[CellKey]) -> list[Record]:
    """Records of the scores of one fit."""
    train, key = splits.train, cells[0]
    drawn = partly_labelled(train.environments, key.options["fraction"], key.seed)
    if key.method in _FILLED:
        drawn = infer_environments(train.X, train.y, environments=drawn, random_state=key.seed)
    parameters, known, notes = _usable(train.y, drawn, dict(key.parameters))
    selection = "worst-group" if key.dataset in _WORST else "average"
    search = ISRClassifierCV(scale=0.0, threshold=None, selection=selection, **parameters)
    _, seconds, _ = fitted(search.fit, train.X, train.y, known, validation=splits.validation)
    chosen = {name: search.best_params_[name] for name in ("C", "n_spurious")}
    how = chosen, seconds, notes
    return scored(cells, SCORES, splits, lambda data: search.predict(data.X), *how)


def partly_labelled(environments: NDArray, fraction: float, seed: int) -> NDArray:
    """Environments of a fraction of the rows, part of a larger fraction's; None for the others."""
    known = environments.astype(object)
    order = np.random.default_rng([seed, 1]).permutation(len(known))
    known[order[round(fraction * len(known)) :]] = None
    return known


def _usable(
    y: NDArray, known: NDArray, parameters: dict[str, Any]
) -> tuple[dict[str, Any], NDArray | None, list[str]]:
    """Parameters and environments with which a fit is possible, and what was left out for it."""
    cells = Cells.of(y, known)
    least = 2 if parameters.get("method") == "cov" else 1  # rows of a cell that is compared
    compared = np.count_nonzero(cells.count() >= least, axis=1) > 1
    if compared.any():
        left_out = cells.classes[~compared].tolist()
        return parameters, known, [f"class {c!r} was not compared" for c in left_out]
    alone = {"n_spurious": 0, "weights": "class", "missing_environments": "single"}
    alone |= {name: parameters[name] for name in ("C", "variant") if name in parameters}
    return alone, None, ["nothing could be compared: nothing was removed or reweighted"]
