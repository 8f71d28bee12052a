"""Rows split into quarters: what finds the subspace, what trains a probe, what it is tried on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isrlearn.core.moments import Moments
from isrlearn.diagnosis._frame import Frame
from isrlearn.diagnosis._stability import SHIFTS, leading
from isrlearn.engine import cell_moments

QUARTERS = 4
#: Entries of all cells' scatters up to which they are kept although the method needs none.
_MOST_NUMBERS = 5_000_000


@dataclass(frozen=True, eq=False)
class Fold:
    """One way of using the quarters, after a subspace was found in the first two.

    A probe that is trained on the rows in which the subspace was found sees cell means that
    were just made equal, and answers worse than chance: the three uses need rows of their own.

    Parameters
    ----------
    basis : ndarray of shape (p, r)
        The subspace found in half of the rows.
    found, probe : Moments
        Of the half it was found in, and of the quarter a probe of the environment is trained on.
    test : ndarray of int
        Positions of the rows to try probes and heads on.
    """

    basis: NDArray[np.float64]  # (p, r)
    found: Moments
    probe: Moments
    test: NDArray[np.intp]


def folds(
    frame: Frame, classes: NDArray, method: str, rank: int, *, random_state: int
) -> Iterator[Fold]:
    """The four folds of a frame; every row is tried once.

    Parameters
    ----------
    frame : Frame
    classes : ndarray of int
        Positions of the classes compared.
    method : {"mean", "cov", "joint"}
    rank : int
        Dimensions of the subspace.
    random_state : int
        Seed of the split.
    """
    quarter = _quarters(frame, np.random.default_rng(random_state))
    K, E = frame.moments.count.shape
    per_cell = method != "mean" or K * E * frame.n_coordinates**2 <= _MOST_NUMBERS
    parts = [_moments(frame, quarter == i, per_cell) for i in range(QUARTERS)]
    for i in range(QUARTERS):
        found = parts[i] + parts[(i + 1) % QUARTERS]
        basis = leading(SHIFTS[method](found, classes), rank)
        yield Fold(basis, found, parts[(i + 2) % QUARTERS], np.flatnonzero(quarter == (i + 3) % 4))


def _quarters(frame: Frame, rng: np.random.Generator) -> NDArray[np.intp]:
    """The quarter of each row; every cell is spread over all four."""
    E = len(frame.moments.environments)
    order = np.lexsort((rng.random(len(frame.rows)), frame.classes * E + frame.environments))
    quarter = np.empty(len(order), dtype=np.intp)
    quarter[order] = np.arange(len(order)) % QUARTERS
    return quarter


def _moments(frame: Frame, rows: NDArray, per_cell: bool) -> Moments:
    """Moments of some of the rows, with all classes and environments whether seen or not."""
    found = cell_moments(
        frame.rows[rows], frame.classes[rows], frame.environments[rows], pooled=not per_cell
    )
    K, E = frame.moments.count.shape
    p = frame.rows.shape[1]
    shape = (K, E, p, p) if per_cell else (p, p)
    return found + Moments(
        np.arange(K), np.arange(E), np.zeros((K, E)), np.zeros((K, E, p)), np.zeros(shape)
    )
