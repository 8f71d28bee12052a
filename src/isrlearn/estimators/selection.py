"""How a search chooses: the settings to try, their scores and the best one."""

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from isrlearn.core.labels import MISSING, Cells
from isrlearn.validation import check_n_spurious

SELECTIONS = ("worst-group", "average", "leave-one-environment-out")

#: Rows with the accuracy of its class that a group is shrunk by, and standard errors by which a
#: setting must be better than the reference.
_SHRINKAGE, MARGIN = 5.0, 1.0
#: The reference's C with two classes and with more, the share of the spurious part that it keeps,
#: and rows of two classes in an environment from which that is more than nothing.
_REFERENCE_C, _REFERENCE_SCALE, _FEWEST_COMPARED = (0.1, 1.0), 0.5, 5
#: Numbers of spurious dimensions tried besides the tested one, as far as environments allow.
_COUNTS = (1, 2, 4, 8)


def candidates(name: str, value: Any) -> list:
    """The values to try: those of a list, tuple or array, or the single value given.

    A tuple given as `head` is one head, (coef, intercept).

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
        raise ValueError(f"{name} is an empty list: give at least one value to try")
    return list(value)


def counts(value: Any, most: int) -> list:
    """Candidates for `n_spurious`; by default "auto" and a few numbers up to the largest possible.

    Examples
    --------
    >>> counts(None, most=2), counts([1, 4], most=5)
    (['auto', 1, 2], [1, 4])
    """
    if value is None:
        return ["auto", *(r for r in _COUNTS if r <= most)]
    found = candidates("n_spurious", value)
    for r in found:
        if isinstance(r, Integral):
            check_n_spurious(int(r), most, "no more can shift between these environments", int(r))
    return found


def comparisons(value: Any, n_spurious: Any, variant: str) -> list:
    """Candidates for what a regression compares; by default all that the other settings allow."""
    if value is not None:
        return candidates("compare", value)
    tried = candidates("n_spurious", n_spurious)
    one = variant != "pooled" or "permutation" in tried or tried == [0]
    return ["means"] if one else ["means", "given-target"]


def default_selection(cells: Cells, cv: Any, validation: Any) -> str:
    """The selection rule of a regression: environments left out, unless splits were given."""
    given = validation is not None or not isinstance(cv, Integral)
    several = len(cells.environments) > 2
    return "leave-one-environment-out" if several and not given else "worst-group"


def removes(point: dict, share: float = 1.0) -> bool:
    """Whether a setting removes this share of what shifts, and gives classes equal weight."""
    removed = 1.0 - point.get("scale", 0.0)
    found = point.get("n_spurious", "auto") != 0 and point.get("weights") is not None
    return found and removed >= share


def effort(point: dict, penalty: str) -> tuple:
    """Sort key of settings: the less is done to the data, the smaller.

    First what is removed, then how rows are weighted, then how little coefficients are penalised.
    """
    rank = point.get("n_spurious", "auto")
    removed = 1.0 - point.get("scale", 0.0)
    dimensions = 0.0 if removed == 0 else np.inf if isinstance(rank, str) else float(rank)
    weights = point.get("weights")
    order = {None: 0, "class": 1, "within": 2, "group": 3, "subsample": 4}
    weighted = 1 if isinstance(weights, dict) else order.get(weights, 3)
    strength = _strength(point, penalty)
    # A large C is a small penalty, a large alpha a large one.
    freedom = strength if penalty == "C" else -strength
    return (removed if dimensions else 0.0, dimensions, weighted, freedom)


def _strength(point: dict, penalty: str, n_classes: int = 2) -> float:
    """C or alpha of a setting."""
    value = point.get(penalty, "auto")
    return _REFERENCE_C[n_classes > 2] if isinstance(value, str) else float(value)


def reference_scale(count: NDArray) -> float:
    """Share of the spurious part that the reference keeps, given the rows of each cell (K, E).

    Half, where every two classes can be compared inside an environment: a head that does so uses
    little of what is left, and where what shifts also predicts the class, removing all of it may
    cost more than it gains. Nothing elsewhere.
    """
    enough = count >= _FEWEST_COMPARED
    return _REFERENCE_SCALE if (enough @ enough.T).all() else 0.0


def reference(points: Sequence[dict], penalty: str, n_classes: int = 2, scale: float = 0.5) -> int:
    """Position of the setting that others must beat clearly.

    It keeps that share of all that a test finds, compares classes inside environments, and has the
    C of `ISRClassifier`.

    Examples
    --------
    >>> points = [{"scale": s, "weights": w} for s in (1.0, 0.0) for w in ("group", "within")]
    >>> points[reference(points, "C")]
    {'scale': 0.0, 'weights': 'within'}
    """
    usual = _REFERENCE_C[n_classes > 2]

    def distance(i: int) -> tuple:
        point = points[i]
        tested = isinstance(point.get("n_spurious", "auto"), str)
        weights, strength = point.get("weights"), _strength(point, penalty, n_classes)
        within = isinstance(weights, str) and weights in ("auto", "within")
        apart = abs(np.log(max(strength, np.finfo(float).tiny) / usual))
        off = abs(point.get("scale", 0.0) - scale)
        return (not removes(point, 1.0 - scale), not tested, off, not within, apart)

    return min(range(len(points)), key=distance)


def cell_sums(values: NDArray, cells: Cells) -> NDArray[np.float64]:
    """One value per row summed over each group and, last, over all rows.

    Groups are the cells and then, for each class, its rows of unknown environment.
    """
    K, E = len(cells.classes), len(cells.environments)
    slots = np.where(cells.e == MISSING, K * E + cells.k, cells.k * E + cells.e)
    return np.append(np.bincount(slots, values, K * E + K), values.sum())


def group_scores(sums: NDArray, size: NDArray) -> NDArray[np.float64]:
    """Mean in the group where it is lowest, and over all rows, from `cell_sums`."""
    seen = np.broadcast_to(size > 0, sums.shape)
    means = np.where(seen, sums / np.where(size > 0, size, 1.0), np.inf)
    average = means[..., -1]
    worst = means[..., :-1].min(axis=-1)
    return np.stack([np.where(np.isfinite(worst), worst, average), average], axis=-1)


def shrunk_worst(sums: NDArray, size: NDArray, n_classes: int) -> tuple[NDArray, NDArray]:
    """Lowest accuracy of a group, from `cell_sums`, and its standard error.

    The accuracy of each group is shrunk to that of its class: in a group of a few rows it is low
    or high by chance.

    Examples
    --------
    >>> import numpy as np
    >>> size = np.array([95.0, 5.0, 0.0, 100.0])  # one class: two environments, unknown, all
    >>> shrunk_worst(np.array([[95.0, 0.0, 0.0, 95.0]]), size, n_classes=1)[0]
    array([0.475])
    """
    per_class = (len(size) - 1) // n_classes
    own = np.append(np.repeat(np.arange(n_classes), per_class - 1), np.arange(n_classes))
    member = np.eye(n_classes)[own]
    of_class = (sums[:, :-1] @ member) / np.maximum(size[:-1] @ member, 1.0)
    weight = size[:-1] + _SHRINKAGE
    means = (sums[:, :-1] + _SHRINKAGE * of_class[:, own]) / weight
    worst = np.where(size[:-1] > 0, means, np.inf)
    place = worst.argmin(axis=1)
    found = worst[np.arange(len(worst)), place]
    # A group without errors is not known to be without errors.
    return found, np.sqrt(np.maximum(found * (1 - found), 1 / weight[place]) / weight[place])


def results_of(
    points: Sequence[dict],
    scores: NDArray,
    pooled: NDArray,
    selection: str,
    compared: NDArray | None = None,
) -> dict[str, Any]:
    """A table as scikit-learn's searches have it, from scores (points, splits, 2), and pooled ones.

    `selection_score` is what the selection rule compares, by default `mean_test_score`;
    `mean_worst_group` and `mean_average` are always there, and so are the scores of the held-out
    rows of all splits together.
    """
    worst, average = scores[..., 0], scores[..., 1]
    chosen = worst if selection == "worst-group" else average
    results: dict[str, Any] = {"params": list(points)}
    for name in dict.fromkeys(name for point in points for name in point):
        results[f"param_{name}"] = _column(points, name)
    for name, values in (("test_score", chosen), ("worst_group", worst), ("average", average)):
        results |= {f"split{j}_{name}": column for j, column in enumerate(values.T)}
        results[f"mean_{name}"] = values.mean(axis=1)
    results["pooled_worst_group"], results["pooled_average"] = pooled.T
    results["std_test_score"] = chosen.std(axis=1)
    results["selection_score"] = results["mean_test_score"] if compared is None else compared
    rank = stats.rankdata(-results["selection_score"], method="min")
    results["rank_test_score"] = rank.astype(np.int32)
    return results


def _column(points: Sequence[dict], name: str) -> np.ma.MaskedArray:
    """Values of a parameter, masked where a setting does not have it."""
    column = np.ma.masked_all(len(points), dtype=object)
    for i, point in enumerate(points):
        if name in point:
            # A head may be a pair of arrays, which must remain one entry.
            column.data[i] = point[name]
            column.mask[i] = False
    return column


def score_of(results: dict[str, Any], best: int, selection: str) -> float:
    """Score of the best setting by a selection rule, on the held-out rows of all splits together.

    The worst group of a few rows is lower than that of many by chance alone, so that a mean of the
    splits' worst groups would be too low.
    """
    pooled = {"worst-group": "pooled_worst_group", "average": "pooled_average"}
    return float(results[pooled.get(selection, "mean_test_score")][best])


def best_of(scores: NDArray, efforts: Sequence[tuple], margin: float = 0.0, first: int = 0) -> int:
    """Position of the best setting; of equals, the one with the least effort.

    Where the best score is above that of the `first` setting by no more than the `margin`, the
    first one is chosen.
    """
    if margin and scores.max() - scores[first] <= margin:
        return first
    tied = np.flatnonzero(scores == scores.max()).tolist()
    return min(tied, key=lambda i: (*efforts[i], i))


def unless_in_doubt(results: dict[str, Any], efforts: Sequence[tuple], best: int) -> int:
    """The best setting or, unless it is better by two standard errors, the best plain regression.

    A plain regression removes nothing and has no weights.
    The standard error is that of the mean difference over splits. Two, because the best of many
    settings is better than one by chance. With one split there is no standard error: the best
    setting is returned, as it is if all settings remove something.
    """
    points, score = results["params"], results["mean_test_score"]
    idle = [i for i, p in enumerate(points) if p["scale"] == 1 or p["n_spurious"] == 0]
    idle = [i for i in idle if points[i]["weights"] is None] or idle
    n_splits = sum(name.startswith("split") and name.endswith("_average") for name in results)
    if best in idle or not idle or n_splits < 2:
        return best
    plain = min(idle, key=lambda i: (-score[i], *efforts[i], i))
    splits = (results[f"split{j}_test_score"] for j in range(n_splits))
    gain = np.array([split[best] - split[plain] for split in splits])
    return best if gain.mean() > 2 * gain.std(ddof=1) / np.sqrt(n_splits) else plain


def on_front(average: NDArray, worst: NDArray) -> NDArray[np.bool_]:
    """Which settings are on the Pareto front of the two scores."""
    a, w = average[:, None], worst[:, None]
    # Row i beats column j; settings with the same scores do not beat each other.
    beats = (a >= average) & (w >= worst) & ((a > average) | (w > worst))
    return np.logical_not(beats.any(axis=0))
