"""A split in the coordinates that all settings share: made once, changed a little by each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isrlearn.core.erase import Eraser
from isrlearn.core.heads import Coordinates, head_coordinates
from isrlearn.core.moments import Moments
from isrlearn.core.subspace import Subspace
from isrlearn.estimators._recovery import Recovery


@dataclass(frozen=True, eq=False)
class Reduced:
    """Centred rows of a split on its principal components, and their moments.

    Parameters
    ----------
    moments : Moments
        Of the training rows, on the components but not centred.
    components : ndarray of shape (d, p) or None
        None if the rows keep their own coordinates.
    train, test : ndarray of shape (n, p)
        Centred rows on the components.
    white : (linear, train, test) or None
        Head's coordinates where they are the same whatever is erased: the map (p, p) and the
        rows in them.
    """

    moments: Moments
    components: NDArray | None  # (d, p)
    train: NDArray  # (n, p)
    test: NDArray  # (n', p)
    white: tuple[NDArray, NDArray, NDArray] | None

    @classmethod
    def of(cls, moments: Moments, recovery: Recovery, train: NDArray, test: NDArray) -> Reduced:
        """The split with these moments, on the components that a recovery asks for."""
        plain = replace(recovery, method="mean", variant="pooled", condition_on=None, n_spurious=0)
        plain = replace(plain, n_components=recovery.looked_at(moments))
        _, eraser, components = plain(moments)
        reduced = moments if components is None else moments.map(components)
        train, test = (_project(rows, eraser.center, components) for rows in (train, test))
        nothing = np.zeros((reduced.n_features, 0))
        linear = head_coordinates(reduced, Eraser(nothing, nothing, 1.0, reduced.total()[1])).linear
        white = None
        # A vector is the scale of each column after erasing, and there is nothing to share.
        if linear.ndim == 2:
            white = (linear, train @ _cast(linear, train), test @ _cast(linear, test))
        return cls(reduced, components, train, test, white)

    def subspace(self, recovery: Recovery) -> Subspace:
        """The subspace that a method finds, on the components.

        A split that leaves out an environment can show fewer dimensions than all the rows: as
        many as it can are looked for.
        """
        r, E = recovery.n_spurious, len(self.moments.environments)
        if r != "auto" and E > 1:
            K = len(recovery.positions(self.moments.classes))
            r = min(r, recovery.bound(K, E, self.moments.n_features)[0])
        return replace(recovery, n_components=None, n_spurious=r)(self.moments)[0]

    def erased(self, subspace: Subspace, scale: float) -> Erased:
        """The rows as a head sees them after erasing."""
        eraser = Eraser.of(subspace, scale, self.moments.total()[1])
        if self.white is None:
            coordinates = head_coordinates(self.moments, eraser)
            train = self.train * _cast(coordinates.linear, self.train)
            test = self.test * _cast(coordinates.linear, self.test)
        else:
            linear, train, test = self.white
            coordinates = Coordinates(eraser, linear)
        if subspace.rank and scale < 1:
            # Erasing changes the rows by a matrix of the subspace's rank.
            basis, dual = eraser.factors(np.float64)
            back = (1.0 - scale) * _apply(basis.T, coordinates.linear)
            train = train - (self.train @ _cast(dual, train)) @ _cast(back, train)
            test = test - (self.test @ _cast(dual, test)) @ _cast(back, test)
        return Erased(coordinates, train, test)


@dataclass(frozen=True, eq=False)
class Erased:
    """Training and held-out rows in the coordinates of a head."""

    coordinates: Coordinates
    train: NDArray  # (n, p)
    test: NDArray  # (n', p)

    @property
    def whitened(self) -> bool:
        """Whether the coordinates were whitened before erasing."""
        return self.coordinates.linear.ndim == 2


def _project(X: NDArray, center: NDArray, components: NDArray | None) -> NDArray:
    """Centred rows on the components, in X's own precision and without a centred copy of X."""
    if components is None:
        return X - _cast(center, X)
    out = np.empty((len(X), components.shape[1]), dtype=X.dtype)
    step = 1024
    for start in range(0, len(X), step):
        rows = slice(start, start + step)
        np.matmul(X[rows] - _cast(center, X), _cast(components, X), out=out[rows])
    return out


def _apply(matrix: NDArray, linear: NDArray) -> NDArray:
    return matrix @ linear if linear.ndim == 2 else matrix * linear


def _cast(array: Any, rows: NDArray) -> NDArray:
    return np.asarray(array, dtype=rows.dtype)
