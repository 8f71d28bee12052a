"""Parameters of the generators, checked: every error a caller can make is raised here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

T = TypeVar("T")


def integer(name: str, value: object, low: int) -> int:
    """The value, if it is an integer of at least `low`."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < low:
        raise ValueError(f"{name}={value!r} must be an integer, {low} or more.")
    return int(value)


def within(
    name: str, value: float, low: float, high: float = np.inf, *, above: bool = False
) -> float:
    """The value, if it is a number in [low, high] (in (low, high] when `above`)."""
    number = shaped(name, value, ()).item()
    if number < low or number > high or (above and number == low):
        left = "(" if above else "["
        right = ")" if high == np.inf else "]"
        raise ValueError(f"{name}={value!r} must be in {left}{low:g}, {high:g}{right}.")
    return float(number)


def shaped(name: str, value: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """The value as a finite float array of exactly this shape, a copy of its own."""
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name}={value!r} must hold numbers, in the shape {shape}.") from None
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}; it must have {shape}.")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds NaN or infinity; every value must be finite.")
    return array


def interval(name: str, value: ArrayLike, low: float = -np.inf, high: float = np.inf) -> NDArray:
    """The value as a pair (lower, upper) inside [low, high]."""
    pair = shaped(name, value, (2,))
    if not low <= pair[0] <= pair[1] <= high:
        raise ValueError(
            f"{name}={value!r} must be (lower, upper) with {low:g} <= lower <= upper <= {high:g}."
        )
    return pair


def sequence(name: str, value: ArrayLike, low: float, high: float = np.inf) -> NDArray:
    """The value as a one-dimensional float array with every entry in [low, high]."""
    array = np.array(value, dtype=np.float64)
    array = shaped(name, value, (array.size,))
    if ((array < low) | (array > high)).any():
        raise ValueError(f"{name}={value!r} must have every entry in [{low:g}, {high:g}].")
    return array


def positive_for_each(name: str, value: ArrayLike, n: int) -> NDArray[np.float64]:
    """One positive number for each of n environments, from one number or n of them."""
    array = shaped(name, np.full(n, value) if np.ndim(value) == 0 else value, (n,))
    if (array <= 0).any():
        raise ValueError(f"{name}={value!r} must be positive in every environment.")
    return array


def sizes(n_samples: object, n_environments: int) -> list[int]:
    """Samples of each environment, from one number for all or one a piece."""
    if np.ndim(n_samples) == 0:  # type: ignore[arg-type]
        return [integer("n_samples", n_samples, 0)] * n_environments
    each = [integer("n_samples", n, 0) for n in np.asarray(n_samples).tolist()]
    if len(each) != n_environments:
        raise ValueError(
            f"n_samples has {len(each)} entries for {n_environments} environments; pass one "
            "number for all of them, or one for each."
        )
    return each


def probabilities(name: str, value: ArrayLike | None, n: int) -> NDArray[np.float64]:
    """n positive probabilities that sum to one, equal ones by default."""
    if value is None:
        return np.full(n, 1.0 / n)
    array = shaped(name, value, (n,))
    if (array <= 0).any() or not np.isclose(array.sum(), 1.0):
        raise ValueError(f"{name}={value!r} must be {n} positive numbers that sum to 1.")
    return array / array.sum()


def choice(name: str, value: object, legal: Mapping[str, T]) -> T:
    """The entry of `legal` under this name."""
    if not isinstance(value, str) or value not in legal:
        raise ValueError(f"{name}={value!r} is unknown; use one of {', '.join(map(repr, legal))}.")
    return legal[value]
