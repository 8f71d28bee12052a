"""The matrix R that turns latent into observed features."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isrlearn.datasets import checks

# Bounds the condition number of "random" mixing: singular values in [10^-1/2, 10^1/2].
_LARGEST_CONDITION = 10.0


def mixing_matrix(
    mixing: str | ArrayLike | None, d: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """R, (d, d): a named kind drawn from `rng`, or the caller's own matrix."""
    if mixing is None or isinstance(mixing, str):
        kinds = {"identity": _identity, "orthogonal": _orthogonal, "random": _well_conditioned}
        return checks.choice("mixing", mixing or "identity", kinds)(d, rng)
    R = checks.shaped("mixing", mixing, (d, d))
    if np.linalg.matrix_rank(R) < d:
        raise ValueError(
            f"mixing has rank {np.linalg.matrix_rank(R)}; it must be invertible, of rank {d}."
        )
    return R


def _identity(d: int, rng: np.random.Generator) -> NDArray[np.float64]:
    return np.eye(d)


def _orthogonal(d: int, rng: np.random.Generator) -> NDArray[np.float64]:
    Q, R = np.linalg.qr(rng.standard_normal((d, d)))
    # Without the signs of R's diagonal, Q depends on LAPACK's convention and is not uniform.
    return np.asarray(Q * np.sign(np.diag(R)))


def _well_conditioned(d: int, rng: np.random.Generator) -> NDArray[np.float64]:
    half = np.log10(_LARGEST_CONDITION) / 2
    singular_values = 10.0 ** rng.uniform(-half, half, d)
    return _orthogonal(d, rng) * singular_values @ _orthogonal(d, rng)
