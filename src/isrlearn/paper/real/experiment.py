"""An experiment of the paper on real data, as a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from isrlearn.paper.real.features import TrainedFeatures
from isrlearn.paper.real.methods import Rule

__all__ = ["Experiment"]


@dataclass(frozen=True)
class Experiment:
    """What is trained, what is done with its features, and the table it is shown in.

    Parameters
    ----------
    name, title : str
        Of the command and of the table.
    table, dataset : str
        What the paper's table and its data set are called in ``paper_tables.csv``.
    scores : tuple of str
        Names in `SCORES`.
    trained_with : mapping of str to str
        Rows: name of the objective, label in the paper.
    methods : tuple of str
        Columns, names in `METHODS`; the first is what the others are compared with.
    main : tuple of str
        Those of the methods that the paper has.
    features : callable
        Features of ``(trained_with, seed, options)``.
    rule : callable
        How settings are chosen, from ``(trained_with, options)``.
    options, full : mapping
        What decides a run, by default and as in the paper.
    n_seeds : int
    notes : tuple of str
        What a reader of the table must know.
    labels : mapping of str to str
        What a method is called here where that differs from its own label.
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
