"""Accuracy when the environment of only some rows is known, from all of them down to a few."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isrlearn import ISRClassifier, infer_environments
from isrlearn.core.labels import encode
from isrlearn.datasets import Splits, load_digits_on_paper, make_waterbirds_like
from isrlearn.metrics import group_report
from isrlearn.paper.evaluate import Failure
from isrlearn.paper.files import write_beside
from isrlearn.paper.partial_curves import Curve, curve_table, curves
from isrlearn.paper.partial_figure import labels_figure
from isrlearn.paper.records import CellKey, Record, RecordFile
from isrlearn.paper.runner import outcomes, progress, terminated_as_interrupted
from isrlearn.paper.tables import Table, markdown

__all__ = [
    "DATASETS",
    "FRACTIONS",
    "METHODS",
    "LabelsPlan",
    "LabelsResult",
    "run_partial_labels",
    "write_partial_labels",
]

DATASETS: Mapping[str, tuple[str, Callable[..., Splits]]] = {
    "waterbirds-like": ("Waterbirds-like simulation", make_waterbirds_like),
    "digits-on-paper": ("Digits on paper", load_digits_on_paper),
}
# One setting for all shares of labels, as in the paper; classes are balanced in all of them.
_HEAD = {"C": 0.01, "class_weight": "balanced"}
METHODS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "isr": ("ISR-Mean", _HEAD),
    "isr-filled": ("ISR-Mean, filled in", _HEAD),
    "reweighting": (
        "groups reweighted",
        {"C": 0.01, "n_spurious": 0, "group_weight": "balanced"},
    ),
    "plain": ("nothing removed", {**_HEAD, "n_spurious": 0}),
}
#: Methods before which unknown environments are told from those known (`infer_environments`).
_FILLED = ("isr-filled",)
FRACTIONS = (1.0, 0.5, 0.25, 0.1, 0.05)
_ATTRIBUTES = {"worst group": "worst", "average": "average"}  # of a GroupReport
SCORES = tuple(_ATTRIBUTES)
EXPERIMENT = "partial-labels"


@dataclass(frozen=True)
class LabelsPlan:
    """What is run: data sets, methods, shares of labels, draws.

    A draw is a seed of the data and of the rows whose environment is known.

    Parameters
    ----------
    datasets, methods : tuple of str
        Names.
    fractions : tuple of float
        Shares of the training rows whose environment is known, in (0, 1].
    n_draws : int

    Examples
    --------
    >>> len(LabelsPlan(("digits-on-paper",), ("isr",), (1.0, 0.1), 3).keys())
    12
    """

    datasets: tuple[str, ...] = tuple(DATASETS)
    methods: tuple[str, ...] = tuple(METHODS)
    fractions: tuple[float, ...] = FRACTIONS
    n_draws: int = 20

    def __post_init__(self) -> None:
        for kind, names, known in (
            ("data set", self.datasets, DATASETS),
            ("method", self.methods, METHODS),
        ):
            for name in names:
                if name not in known:
                    raise ValueError(f"unknown {kind} {name!r}; there are: {', '.join(known)}")
        if not self.fractions or not all(0 < f <= 1 for f in self.fractions):
            raise ValueError(f"fractions={list(self.fractions)}: each must be above 0, at most 1")
        if self.n_draws < 1:
            raise ValueError(f"n_draws={self.n_draws}: it must be at least 1")

    def keys(self) -> list[CellKey]:
        """The cells, one for each score of a fit."""
        return [
            _key(dataset, method, fraction, draw, score)
            for draw, dataset, method in product(range(self.n_draws), self.datasets, self.methods)
            for fraction in self.fractions
            for score in SCORES
        ]


@dataclass(frozen=True)
class LabelsResult:
    """What a run found.

    Parameters
    ----------
    plan : LabelsPlan
    records : list of Record
        Errors, one minus the accuracy, of every cell.
    failures : list of Failure
    """

    plan: LabelsPlan
    records: list[Record]
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
        """One table a data set: methods and scores down, shares of labels across."""
        compared = [m for m in ("isr", "isr-filled") if m in self.plan.methods]
        changes = tuple(compared) if 1.0 in self.plan.fractions else ()
        return [
            curve_table([c for c in self.curves if c.dataset == name], title, self.labels, changes)
            for name, title in self.titles.items()
        ]

    def to_dict(self) -> dict[str, Any]:
        """The plan, the curves and the failures, ready for JSON."""
        found = [
            {k: None if v != v else v for k, v in asdict(curve).items()} for curve in self.curves
        ]
        failures = [{**asdict(f.key), "message": f.message} for f in self.failures]
        return {"plan": asdict(self.plan), "curves": found, "failures": failures}


def run_partial_labels(
    plan: LabelsPlan, out: Path | str, *, n_jobs: int = 1, command: str = ""
) -> LabelsResult:
    """Result of a plan, of whose cells those already recorded in `out` are not run again.

    Examples
    --------
    >>> import tempfile
    >>> plan = LabelsPlan(("digits-on-paper",), ("isr",), (1.0,), 1)
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     result = run_partial_labels(plan, directory)
    >>> [curve.score for curve in result.curves]
    ['worst group', 'average']
    """
    with terminated_as_interrupted(), RecordFile(out, EXPERIMENT, command) as records:
        keys = plan.keys()
        missing = [key for key in keys if key.id not in records.by_id]
        groups: dict[tuple[int, str], list[CellKey]] = {}
        for key in missing:
            groups.setdefault((key.seed, key.dataset), []).append(key)
        failures = []
        with progress(len(keys), "fitting", len(keys) - len(missing)) as advance:
            for outcome in outcomes(_evaluated, list(groups.values()), n_jobs):
                if isinstance(outcome, Failure):
                    failures.append(outcome)
                else:
                    records.append(outcome)
                advance()
        found = [records.by_id[key.id] for key in keys if key.id in records.by_id]
    return LabelsResult(plan, found, failures)


def write_partial_labels(
    result: LabelsResult, out: Path | str, *, figures: bool = True, command: str = ""
) -> list[Path]:
    """Paths of the files written: table.md, curves.json, figure.png, figure.svg."""
    notes = [
        f"Test accuracy, mean over {result.plan.n_draws} draws of the data and of the rows whose "
        "environment is known, ± half the 95 % interval of that mean. The head is fitted on all "
        "rows, the subspace found on those with an environment; *filled in*: after the others were "
        "told from features and class by `infer_environments`. Settings are the same for every "
        "share of labels. A class without a labelled row in some environment is not compared."
    ]
    if command:
        notes.insert(0, f"Made by `{command}`.")
    files = {
        "table.md": markdown("Partial environment labels", notes, result.tables()).encode(),
        "curves.json": json.dumps(result.to_dict(), indent=1).encode(),
    }
    if figures:
        files |= labels_figure(result.curves, result.titles, result.labels)
    return [write_beside(Path(out) / name, content) for name, content in files.items()]


def _key(dataset: str, method: str, fraction: float, draw: int, score: str) -> CellKey:
    options = {"fraction": fraction, "score": score}
    return CellKey(dataset, method, 2, draw, "converged", METHODS[method][1], options)


def _evaluated(keys: list[CellKey]) -> Iterator[Record | Failure]:
    """Records of the cells of one draw; the data are made once, each model is fitted once."""
    splits = DATASETS[keys[0].dataset][1](random_state=keys[0].seed)
    fits: dict[tuple[str, float], list[CellKey]] = {}
    for key in keys:
        fits.setdefault((key.method, key.options["fraction"]), []).append(key)
    for (_, fraction), cells in fits.items():
        try:
            yield from _fitted(splits, cells, fraction)
        except Exception as error:
            for key in cells:
                yield Failure(key, f"{type(error).__name__}: {error}")


def _fitted(splits: Splits, cells: list[CellKey], fraction: float) -> Iterator[Record]:
    train = splits.train
    drawn = partly_labelled(train.environments, fraction, cells[0].seed)
    if cells[0].method in _FILLED:
        drawn = infer_environments(train.X, train.y, environments=drawn, random_state=cells[0].seed)
    parameters, known, notes = _usable(train.y, drawn, dict(cells[0].parameters))
    start = time.perf_counter()
    clf = ISRClassifier(**parameters).fit(train.X, train.y, environments=known)
    seconds = time.perf_counter() - start
    test, validation = (
        group_report(data.y, clf.predict(data.X), environments=data.environments)
        for data in (splits.test, splits.validation)
    )
    groups = [1 - group.value for group in test.groups]
    for key in cells:
        name = _ATTRIBUTES[key.options["score"]]
        error, held_out = (1 - getattr(report, name) for report in (test, validation))
        yield Record(key, error, held_out, groups, seconds, notes)


def partly_labelled(environments: NDArray, fraction: float, seed: int) -> NDArray:
    """The environments of a share of the rows, drawn at random; None for the others.

    A smaller share of the same draw is a part of the larger one.

    Examples
    --------
    >>> known = partly_labelled(np.array(["sea"] * 8), 0.25, seed=0)
    >>> sum(name is not None for name in known)
    2
    """
    known = environments.astype(object)
    order = np.random.default_rng([seed, 1]).permutation(len(known))
    known[order[round(fraction * len(known)) :]] = None
    return known


def _usable(
    y: NDArray, known: NDArray, parameters: dict[str, Any]
) -> tuple[dict[str, Any], NDArray | None, list[str]]:
    """Parameters and environments with which a fit is possible, and what was left out for it."""
    (classes, k), (names, e) = encode(y), encode(known)
    count = np.zeros((len(classes), len(names)))
    np.add.at(count, (k[e >= 0], e[e >= 0]), 1)
    whole = classes[count.all(axis=1)].tolist() if len(names) > 1 else []
    if len(whole) == len(classes):
        return parameters, known, []
    if whole:
        return {**parameters, "condition_on": whole[0]}, known, [f"only {whole[0]!r} was compared"]
    alone = {"C": parameters["C"], "class_weight": "balanced", "missing_environments": "single"}
    return alone, None, ["nothing could be compared: nothing was removed or reweighted"]
