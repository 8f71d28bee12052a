"""What moments refuse to be made of, or added to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

if TYPE_CHECKING:
    from isrlearn.core.moments import Moments


def check_reading(order: Any, chunk_size: Any) -> None:
    """Raise unless rows can be read this way."""
    if order not in (1, 2):
        raise ValueError(f"order must be 1 or 2, got {order!r}")
    if chunk_size is not None and not (isinstance(chunk_size, int | np.integer) and chunk_size > 0):
        raise ValueError(f"chunk_size must be an integer of at least 1; got {chunk_size!r}")


def check_rows(n: int, classes: NDArray, environments: NDArray, weight: NDArray | None) -> None:
    """Raise unless each of n rows has a class, an environment code and a weight."""
    for name, values in (("y", classes), ("environments", environments), ("sample_weight", weight)):
        if values is not None and values.shape != (n,):
            raise ValueError(f"{name} has shape {values.shape}, but X has {n} rows")
    if (classes < 0).any():
        raise ValueError(f"the class of row {np.argmin(classes)} is missing")
    if weight is not None and not (np.isfinite(weight) & (weight >= 0)).all():
        row = int(np.argmin(np.isfinite(weight) & (weight >= 0)))
        raise ValueError(f"sample_weight must be finite and not negative; row {row}: {weight[row]}")


def check_finite(mean: NDArray, classes: NDArray, environments: NDArray | None) -> None:
    """Raise if NaN or infinity went into a cell (or into rows without an environment)."""
    bad = np.argwhere(~np.isfinite(mean))
    if len(bad):
        k, e, j = bad[0]
        where = "unknown" if environments is None else repr(environments.tolist()[e])
        raise ValueError(
            f"feature {j} holds NaN or infinity (or values too large to be summed) in class "
            f"{classes.tolist()[k]!r}, environment {where}; drop or impute those rows"
        )


def check_spread(scatter: NDArray, dtype: DTypeLike, n_features: int) -> None:
    """Raise if a column varies so much, or so little, that its type cannot hold what follows.

    That is squares of squares in float64, and the coefficients in float32. Targets follow the
    features.
    """
    power = 35 if np.dtype(dtype) == np.float32 else 70
    squares = np.einsum("...ii->...i", scatter)
    fine = (squares == 0) | ((squares >= 10.0 ** (-2 * power)) & (squares <= 10.0 ** (2 * power)))
    if not fine.all():
        j = int(np.argwhere(~fine)[0][-1])
        large = bool((~fine & ~(squares < 1.0))[..., j].any())
        name = f"feature {j}" if j < n_features else "the target"
        raise ValueError(
            f"{name} has values too {'large' if large else 'small'} to be squared: their "
            f"spread must lie between 1e-{power} and 1e{power}. Give it another unit, for example "
            "its standard deviation."
        )


def check_mergeable(a: Moments, b: Moments) -> None:
    """Raise unless the two keep the same things of the same features."""
    if a.n_features != b.n_features:
        raise ValueError(f"moments of {a.n_features} and of {b.n_features} features do not add up")
    kinds = [
        "no scatter" if m.scatter is None else "a pooled scatter" if m.pooled else "cell scatters"
        for m in (a, b)
    ]
    if kinds[0] != kinds[1]:
        raise ValueError(f"moments with {kinds[0]} and with {kinds[1]} do not add up")
    if a.ddof != b.ddof:
        raise ValueError("moments of a sample and of a population do not add up")
