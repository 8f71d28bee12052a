"""An experiment on real data, as a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from isrlearn.paper.real.features import TrainedFeatures
from isrlearn.paper.real.methods import Rule

__all__ = ["Experiment"]


@dataclass(frozen=True)
class Experiment:
    """A table of the paper: networks to train, and methods to apply to their features.

    Parameters
    ----------
    name, title : str
        Names of the command and of the table.
    table, dataset : str
        Names of the table and its data set in ``paper_tables.csv``.
    scores : tuple of str
        Names in `SCORES`.
    trained_with : mapping of str to str
        Rows: name of the objective, label in the paper.
    methods : tuple of str
        Columns: names in `METHODS`. The others are compared with the first.
    main : tuple of str
        The methods that are also in the paper.
    features : callable
        From ``(trained_with, seed, options)`` to features.
    rule : callable
        From ``(trained_with, options)`` to the rule by which settings are chosen.
    options, full : mapping
        Options that determine a run: defaults, and changes for the paper's sizes.
    n_seeds : int
        Default number of seeds.
    notes : tuple of str
        Notes for readers of the table.
    labels : mapping of str to str
        Labels of methods that differ from their usual ones.
    frozen : bool
        Whether features do not depend on `trained_with`, which then says how heads are trained.
    """

    name: str
    title: str
    table: str
    dataset: str
    scores: tuple[str, ...]
    trained_with: Mapping[str, str]
    methods: tuple[str, ...]
    main: tuple[str, ...]
    features: Callable[[str, int, Mapping[str, Any]], TrainedFeatures]
    rule: Callable[[str, Mapping[str, Any]], Rule]
    options: Mapping[str, Any]
    full: Mapping[str, Any]
    n_seeds: int
    notes: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    frozen: bool = False
