"""Preconditioners: coordinates in which the logistic loss has about unit curvature."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

#: Eigenvectors (p, k) and eigenvalues (k,) of a scatter, and one value for all other directions.
Sketch = tuple[NDArray, NDArray, float]
#: ``root(A)`` multiplies each row of A by a root of an inverse curvature; ``root(A, True)`` by the
#: transposed root.
Root = Callable[..., NDArray]

#: Coordinates up to which the scatter of rows is computed; beyond, it is sketched by this many
#: directions, seen on this many rows.
_FULL, _LEADING, _ROWS = 1024, 128, 1024
#: Curvature, as a share of the largest, below which a direction stays as it is.
_NEGLIGIBLE = 1e-13


def row_scatter(rows: NDArray) -> NDArray | Sketch:
    """Scatter ``rows.T @ rows`` (p, p), or a sketch of it where coordinates are many.

    The sketch is Nyström's approximation: the largest matrix below the scatter that has the same
    image of random vectors.
    """
    n, p = rows.shape
    if p <= _FULL:
        return rows.T @ rows
    step = max(1, n // _ROWS)  # some of the rows show the leading directions
    some = rows[::step].astype(np.float32)
    start = np.random.default_rng(0).standard_normal((p, _LEADING), dtype=np.float32)
    images = (step * (some.T @ (some @ start))).astype(np.float64)
    inner = start.T @ images
    values, vectors = linalg.eigh((inner + inner.T) / 2)
    seen = values > 1e-6 * values[-1]
    vectors, singular, _ = linalg.svd(
        images @ (vectors[:, seen] / np.sqrt(values[seen])), full_matrices=False
    )
    trace = float(np.einsum("ij,ij->", rows, rows))
    rest = max(trace - float((singular**2).sum()), 1e-6 * trace) / (p - len(singular))
    return vectors, singular**2, rest


def inverse_root(scatter: NDArray | Sketch, along: float, penalty: float) -> Root:
    """Root of the inverse of ``along * scatter + penalty``."""
    if isinstance(scatter, tuple):
        vectors, values, rest = scatter
        scale = 1.0 / np.sqrt(along * values + penalty)
        other = 1.0 / np.sqrt(along * rest + penalty)
        return lambda A, _=False: other * A + ((A @ vectors) * (scale - other)) @ vectors.T
    curvature = scatter.copy()
    curvature.flat[:: len(curvature) + 1] += penalty / along
    least = _NEGLIGIBLE * np.diag(curvature).max()
    # The transposed view has the order of LAPACK: no other copy is made.
    lower, failed = linalg.lapack.dpotrf(curvature.T, lower=1, overwrite_a=1, clean=0)
    if not failed and np.diag(lower).min() ** 2 > least:
        unit = 1.0 / np.sqrt(along)
        return lambda A, transposed=False: (
            unit
            * linalg.solve_triangular(
                lower, A.T, lower=True, trans=int(not transposed), check_finite=False
            ).T
        )
    # Directions without curvature stay as they are.
    values, vectors = linalg.eigh(scatter)
    values = along * np.maximum(values, 0.0) + penalty
    values = np.where(values > _NEGLIGIBLE * values.max(), values, np.inf)
    root = (vectors / np.sqrt(values)) @ vectors.T
    return lambda A, _=False: A @ root


def class_roots(curvature: NDArray) -> Root:
    """Roots of the inverse curvatures (K, p + 1, p + 1) of the classes."""
    values, vectors = np.linalg.eigh(curvature)
    values = np.where(values > _NEGLIGIBLE * values.max(), values, np.inf)
    roots = (vectors / np.sqrt(values)[:, None, :]) @ np.swapaxes(vectors, 1, 2)
    return lambda A, _=False: (roots @ A[:, :, None])[:, :, 0]
