"""Whether a removal helps in environments that are held out, computed from moments."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from isrlearn.core.heads import lda_head, ridge_head
from isrlearn.core.methods import Method
from isrlearn.core.moments import NO_CELL_SCATTERS, Moments, given_target
from isrlearn.core.subspace import Eraser, Subspace, regression_subspace
from isrlearn.core.whiten import head_coordinates
from isrlearn.estimators.heads import cell_weights
from isrlearn.validation import dimension_limit

#: Most folds of environments that are held out.
MOST_FOLDS = 20
#: Accuracy that a removal may cost in environments like those seen, the price of holding up in
#: others; the probability with which it must cost more to be harmful, and the fewest environments
#: that can say so.
_PRICE, _SURE, FEWEST = 0.05, 0.9, 9


def is_harmful(accuracy: Mapping[str, NDArray]) -> bool:
    """Whether a removal will probably lower the accuracy in a new environment, by over five points.

    If environments are exchangeable, the change in a new one lies below the k-th smallest of n
    with a probability of k / (n + 1): with 90 % if it is that low in all of nine environments, in
    18 of 19, and so on. With fewer than nine, nothing says so: a shortcut that helps in a few
    environments may mislead in the next.

    Examples
    --------
    >>> import numpy as np
    >>> plain = np.linspace(0.8, 0.9, 9)
    >>> is_harmful({"nothing": plain, "removal": plain - 0.2})
    True
    >>> is_harmful({"nothing": plain, "removal": plain - np.linspace(0.0, 0.4, 9)})
    False
    """
    change = np.sort(accuracy["removal"] - accuracy["nothing"])
    change = change[np.isfinite(change)]
    k = int(np.ceil(_SURE * (len(change) + 1)))
    return len(change) >= FEWEST and bool(change[k - 1] < -_PRICE)


def warn_of_harm(accuracy: Mapping[str, NDArray], rank: int) -> None:
    """Warn where nothing is removed because that would lower the accuracy in new environments."""
    checked = np.isfinite(accuracy["removal"])
    before, after = (accuracy[how][checked].mean() for how in ("nothing", "removal"))
    warnings.warn(
        f"removing what shifts between environments (dimensions: {rank}) lowers the accuracy in "
        f"environments left out from {before:.2f} to {after:.2f} (mean over {checked.sum()}), so "
        f"nothing was removed; n_spurious={rank} removes it",
        UserWarning,
        stacklevel=6,
    )


def held_out_accuracy(
    moments: Moments, method: Method, rank: int, *, penalty: float = 1.0, scale: float = 0.0
) -> dict[str, NDArray[np.float64]]:
    """Accuracy in each environment of classifiers fitted on others, without and with a removal.

    The classifiers are linear discriminants that give classes the same weight, and features are
    taken for Gaussian inside each cell; of several classes, the nearest other one counts. Folds
    are those of `held_out_errors`. An environment is NaN if the others have not all classes, or
    cannot be compared.

    Parameters
    ----------
    moments : Moments
        With a scatter per cell.
    method : Method
    rank : int
        Number of dimensions to remove, as far as the remaining environments show so many.
    penalty : float, default=1.0
        Of the discriminants.
    scale : float, default=0.0
        Share of the spurious part that is kept.

    Returns
    -------
    dict
        From "nothing" and "removal" to an array of shape (E,).

    Examples
    --------
    >>> import numpy as np
    >>> from isrlearn.core.methods import METHODS
    >>> mean = np.zeros((2, 3, 2))
    >>> mean[1, :, 0], mean[:, :, 1] = 2.0, [0.0, 3.0, 6.0]  # one feature predicts, one shifts
    >>> moments = Moments.population(mean, np.eye(2))
    >>> held_out_accuracy(moments, METHODS["mean"], 1)["removal"].round(3).tolist()
    [0.841, 0.841, 0.841]
    """
    E, d = len(moments.environments), moments.n_features
    found = {how: np.full(E, np.nan) for how in ("nothing", "removal")}
    fold = np.arange(E) % min(E, MOST_FOLDS)
    for out in (fold == j for j in range(fold.max() + 1)):
        train = moments.of_environments(~out)
        limit = dimension_limit(method, train.count, d, "pooled")[0] if (~out).sum() > 1 else 0
        if not limit or not train.by_class[0].all():
            continue
        try:
            subspace = method.find(train, min(rank, limit))
        except ValueError:
            continue  # nothing shifts between the remaining environments
        weighted = train.reweighted(*cell_weights(train, "class"))
        erasers = [Eraser.of(subspace, share, train.total[1]) for share in (1.0, 0.0)]
        plain, erased = (
            lda_head(weighted, head_coordinates(train, eraser), penalty=penalty)
            for eraser in erasers
        )
        kept = [scale * p + (1 - scale) * e for p, e in zip(plain, erased, strict=True)]
        for how, head in (("nothing", plain), ("removal", kept)):
            found[how][out] = _gaussian_accuracy(moments.of_environments(out), *head)
    return found


def _gaussian_accuracy(moments: Moments, coef: NDArray, intercept: NDArray) -> NDArray[np.float64]:
    """Accuracy in each environment, classes weighted alike, if every cell were Gaussian."""
    if len(coef) == 1:
        coef, intercept = np.vstack([0 * coef, coef]), np.append(0.0, intercept)
    score = moments.mean @ coef.T + intercept  # (K, E, K)
    right = np.zeros(moments.count.shape)
    for k, covariance in enumerate(moments.covariance):
        away = np.delete(coef[k] - coef, k, axis=0)
        margin = np.delete(score[k, :, k, None] - score[k], k, axis=1)  # (E, K - 1)
        spread = np.sqrt(np.einsum("eld,ld->el", away @ covariance, away).clip(1e-300))
        right[k] = special.ndtr((margin / spread).min(axis=1))
    seen = moments.count > 0
    return (right * seen).sum(axis=0) / np.where(seen.any(axis=0), seen.sum(axis=0), np.nan)


def helpful(
    moments: Moments, found: Mapping[str, Subspace], settings: Any, *, warn: bool = True
) -> tuple[str, dict[str, NDArray] | None]:
    """What to compare, of the subspaces found, and errors on held-out environments.

    "nothing" unless a removal is better beyond doubt, and where no environment can be held out:
    then there are no errors.

    Parameters
    ----------
    moments : Moments
        With the target as last column.
    found : mapping
        From what was compared to the subspace found.
    settings : Settings
        Of the head: a ridge head with its penalty and weights stands for any other.
    warn : bool, default=True
        Warn where nothing can be held out.
    """
    ranks = {how: subspace.rank for how, subspace in found.items() if subspace.rank}
    few = np.count_nonzero(moments.count) < 3
    if not ranks:
        return "nothing", None
    if few or moments.pooled:
        if warn:
            why = "with two environments" if few else "with so many environments and features"
            warnings.warn(
                f"{why} none can be held out to see whether a removal helps, so nothing was "
                "removed; compare='means' or 'given-target' removes what shifts",
                UserWarning,
                stacklevel=7,
            )
        return "nothing", None

    def weigh(part: Moments) -> Moments:
        weights = settings.weights
        return part if weights is None else part.reweighted(*cell_weights(part, weights))

    how = {"alpha": settings.penalty, "scale": settings.scale, "weigh": weigh}
    errors = held_out_errors(moments, ranks, **how)
    return beyond_doubt(errors), errors


def held_out_errors(
    moments: Moments,
    ranks: Mapping[str, int],
    *,
    alpha: float = 1.0,
    scale: float = 0.0,
    weigh: Callable[[Moments], Moments] = lambda moments: moments,
) -> dict[str, NDArray[np.float64]]:
    """Root mean squared error in each environment of ridge heads fitted on other environments.

    Everything is computed from moments. Each environment is held out in turn, with more than
    twenty of them a twentieth at a time; rows of unknown environment always train.

    Parameters
    ----------
    moments : Moments
        With a scatter per cell, and the target as last column.
    ranks : mapping
        From what is compared, "means" or "given-target", to the number of dimensions to remove.
    alpha : float, default=1.0
        Penalty of the heads.
    scale : float, default=0.0
        Share of the spurious part that is kept.
    weigh : callable, optional
        Weights the environments of moments for the head.

    Returns
    -------
    dict
        From "nothing" and each of the given comparisons to an array of shape (E,).

    Examples
    --------
    >>> import numpy as np
    >>> mean = np.zeros((1, 3, 2))
    >>> mean[0, :, 0] = mean[0, :, 1] = [-3.0, 0.0, 3.0]  # y = x, and both shift
    >>> moments = Moments.population(mean, [[1.0, 1.0], [1.0, 1.1]])
    >>> errors = held_out_errors(moments, {"means": 0}, alpha=0.0)
    >>> bool(np.allclose(errors["nothing"], np.sqrt(0.1)))
    True
    """
    scatter, seen = moments.scatter, moments.count[0] > 0
    if scatter is None or moments.pooled:
        raise ValueError(NO_CELL_SCATTERS)
    moments, scatter = moments.of_environments(seen), scatter[0, seen]
    E, errors = len(scatter), dict[str, NDArray[np.float64]]()
    fold = np.arange(E) % min(E, MOST_FOLDS)
    for out in (fold == j for j in range(fold.max() + 1)):
        train = moments.of_environments(~out)
        pooled = replace(train, scatter=train.within())
        features, weighted = compared_moments(pooled, "means"), weigh(train)
        most = min(int((~out).sum()), features.n_features) - 1
        plain: Any = None
        for how, rank in {"nothing": 0, **ranks}.items():
            found = regression_subspace(compared_moments(pooled, how), min(rank, most))
            eraser = Eraser.of(found, 0.0, features.total[1])
            head: Any = ridge_head(weighted, head_coordinates(features, eraser), alpha=alpha)
            plain = plain or head
            coef, intercept = (
                scale * p + (1 - scale) * h for p, h in zip(plain, head, strict=True)
            )
            residual = np.append(-coef, 1.0)
            bias = moments.mean[0, out] @ residual - intercept
            variance = (scatter[out] @ residual) @ residual / moments.count[0, out]
            errors.setdefault(how, np.empty(E))[out] = np.sqrt(bias**2 + np.maximum(variance, 0))
    return errors


def beyond_doubt(errors: Mapping[str, NDArray]) -> str:
    """Which removal has the smallest error, if it beats "nothing" by more than one standard error.

    The standard error is that of the mean difference over environments; in doubt, "nothing".

    Examples
    --------
    >>> import numpy as np
    >>> plain = np.array([1.0, 2.0, 3.0])
    >>> beyond_doubt({"nothing": plain, "means": plain - [0.0, 0.1, 0.9]})
    'means'
    >>> beyond_doubt({"nothing": plain, "means": plain - [-0.1, 0.0, 0.2]})
    'nothing'
    """
    best = min(errors, key=lambda how: errors[how].mean())
    gain = errors["nothing"] - errors[best]
    return best if gain.mean() > gain.std(ddof=1) / np.sqrt(len(gain)) else "nothing"


def compared_moments(moments: Moments, compare: str) -> Moments:
    """Moments of what a regression compares, from those with the target as last column."""
    if compare == "given-target":
        return given_target(moments)
    return moments.columns(moments.n_features - 1)
