"""The settings to try, in order, and which of two equally good ones is simpler."""

from __future__ import annotations

from itertools import product
from numbers import Integral
from typing import Any

import numpy as np

from isrlearn.validation import check_n_spurious

#: Counts of spurious dimensions tried next to the tested one, where the environments allow.
_COUNTS = (1, 2, 3, 5, 8)

_WEIGHTING: dict[Any, dict[str, str]] = {
    None: {},
    "class": {"class_weight": "balanced"},
    "group": {"group_weight": "balanced"},
}


def candidates(name: str, value: Any) -> list:
    """The values to try: those of a list, tuple or array, or the one value given.

    A tuple for `head` is one head, (coef, intercept).

    Examples
    --------
    >>> candidates("scale", (0.0, 0.5)), candidates("method", "mean")
    ([0.0, 0.5], ['mean'])
    """
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, list) and not (isinstance(value, tuple) and name != "head"):
        return [value]
    if not value:
        raise ValueError(f"{name} lists no value to try")
    return list(value)


def counts(value: Any, most: int) -> list:
    """Candidates for `n_spurious`; by default the tested one and a few up to the most possible.

    Examples
    --------
    >>> counts(None, most=2), counts([1, 4], most=5)
    (['auto', 1, 2], [1, 4])
    """
    if value is None:
        return ["auto", *(r for r in _COUNTS if r <= most)]
    found = candidates("n_spurious", value)
    for r in found:
        check_n_spurious(r, most, "so many shift between these environments")
    return found


def dimensions(n_features: int, n_components: Any) -> int:
    """Dimensions that are left after the principal components, where their number is known."""
    return min(n_features, int(n_components)) if isinstance(n_components, Integral) else n_features


def points_of(
    settings: dict[str, list], heads: list, weightings: list, penalty: tuple[str, list], by: str
) -> list[dict]:
    """Every combination, as parameters of the estimator; penalties vary fastest.

    Parameters
    ----------
    settings : dict from name to candidates
    heads : list
    weightings : list
        Of None, "class" and "group".
    penalty : (str, list)
        Name and candidates of the penalty.
    by : str
        The head that has this penalty; the others are tried once, without it.
    """
    name, strengths = penalty
    points = []
    for head, weighting in product(heads, weightings):
        weights = _weights(weighting, weightings)
        penalised = isinstance(head, str) and head == by
        for values in product(*settings.values()):
            point = dict(zip(settings, values, strict=True)) | {"head": head} | weights
            points += [point | {name: c} for c in strengths] if penalised else [point]
    return points


def _weights(weighting: Any, tried: list) -> dict[str, str | None]:
    """Parameters of a weighting: all those that the grid varies, None where not in use."""
    for value in tried:
        if value not in _WEIGHTING:
            raise ValueError(f"weighting must be None, 'class' or 'group'; got {value!r}")
    names = dict.fromkeys(name for value in tried for name in _WEIGHTING[value])
    return {**names, **_WEIGHTING[weighting]}


def effort(point: dict, penalty: str) -> tuple:
    """Sort key of settings: the less is done to the data the smaller.

    First what is removed, then how rows are weighed, then how free the coefficients are.
    """
    rank = point.get("n_spurious", "auto")
    removed = 1.0 - point.get("scale", 0.0)
    dimensions = 0.0 if removed == 0 else np.inf if rank == "auto" else float(rank)
    weighed = (point.get("class_weight") is not None) + 2 * (point.get("group_weight") is not None)
    strength = point.get(penalty, 1.0)
    # A large C is little penalty, a large alpha much.
    freedom = strength if penalty == "C" else -strength
    return (removed if dimensions else 0.0, dimensions, weighed, freedom)
