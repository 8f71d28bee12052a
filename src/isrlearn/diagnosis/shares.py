"""Which columns carry the removed directions, and which the predictions follow."""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from isrlearn.estimators import TablePreparer

#: Most columns, and the smallest share, that a sentence names.
_MOST, _LEAST = 5, 0.005


@dataclass(frozen=True)
class ColumnShare:
    """Shares of one column in what a model removes, and in its predictions.

    The share of the removed directions is the squared loading of the standardised column, summed
    over what it was encoded as; those of all columns add to 1. The share of the predictions is what
    the column alone explains of their variance (R²), so that it does not depend on how coefficients
    are divided among columns that say the same; these do not add to 1. Predictions are
    probabilities, where a head has them.

    Examples
    --------
    >>> ColumnShare("dose", removed=0.8, before=0.5, after=0.125).removed
    0.8
    """

    name: str
    removed: float  #: Share of the removed directions; 0 if nothing is removed.
    #: Share of the predictions of the same head if nothing is removed, where that is known.
    before: float | None = field(default=None, kw_only=True)
    after: float  #: Share of the predictions.


def column_shares(
    estimator: Any, names: Sequence[str], X: Any, y: Any = None, environments: Any = None
) -> tuple[ColumnShare, ...]:
    """The columns with the largest shares of an estimator, at most five of each kind.

    Parameters
    ----------
    estimator : fitted ISRClassifier or ISRRegressor
    names : sequence of str
        For each feature, the column it comes from: features of one column count together.
    X : array or sparse array of shape (n, d)
        Rows that are scored.
    y, environments : array-like of shape (n,), optional
        Labels and environments of training rows, to which the same head is fitted without removal.

    Examples
    --------
    >>> import numpy as np
    >>> from isrlearn import ISRClassifier
    >>> rng = np.random.default_rng(0)
    >>> y, e = np.arange(400) % 2, np.arange(400) // 2 % 2
    >>> X = rng.normal(size=(400, 2)) + np.c_[2 * y, 3 * e]
    >>> clf = ISRClassifier(n_spurious=1).fit(X, y, environments=e)
    >>> [(c.name, round(c.removed, 2)) for c in column_shares(clf, ["age", "scanner"], X)]
    [('scanner', 1.0), ('age', 0.0)]
    """
    X = X if issparse(X) else np.asarray(X)
    columns = {name: i for i, name in enumerate(dict.fromkeys(names))}
    place = np.array([columns[name] for name in names])
    spread = np.sqrt(StandardScaler(with_mean=False).fit(X).var_)
    unit = np.divide(1, spread, out=np.zeros_like(spread), where=spread > 0)
    # What shifts, in standardised units, as one orthonormal basis.
    removed = np.linalg.qr(estimator.eraser_.basis * unit[:, None])[0].T
    gone = np.bincount(place, np.sum(removed**2, axis=0)) / max(1, len(removed))
    shares = {"removed": gone * (estimator.scale < 1), "after": _explained(estimator, X, place)}
    if y is not None:
        with warnings.catch_warnings(action="ignore"):
            plain = clone(estimator).set_params(n_spurious=0).fit(X, y, environments=environments)
        shares["before"] = _explained(plain, X, place)
    top = {i for each in shares.values() for i in np.argsort(-each)[:_MOST].tolist() if each[i]}
    table = [
        ColumnShare(name, **{kind: float(each[i]) for kind, each in shares.items()})
        for name, i in columns.items()
        if i in top
    ]
    return tuple(sorted(table, key=lambda share: (-share.removed, -share.after)))


def _explained(estimator: Any, X: Any, place: NDArray) -> NDArray:
    """Share of the variance of an estimator's predictions that each column alone explains."""
    # Probabilities where there are any: a few rows with extreme logits would decide otherwise.
    ways = (getattr(estimator, name, None) for name in ("predict_proba", "decision_function"))
    with warnings.catch_warnings(action="ignore"):  # of rows without the names of their columns
        score = next(filter(None, ways), estimator.predict)(X)
    score = (score - score.mean(axis=0)).reshape(len(score), -1)
    total, n = np.sum(score**2), len(score)
    found = np.zeros(place.max() + 1)
    for column in range(len(found)):
        own = np.flatnonzero(place == column)
        block = X[:, own].toarray() if issparse(X) else X[:, own].astype(float)
        mean = block.mean(axis=0)
        cross = block.T @ score  # the mean of the block drops out: scores are centred
        gram = block.T @ block - n * np.outer(mean, mean)
        found[column] = np.sum(cross * (np.linalg.pinv(gram, hermitian=True) @ cross))
    return np.clip(found / (total or 1.0), 0, 1)


def origins(*sources: Any) -> Sequence[str] | None:
    """For each feature the column it comes from: of a pipeline's steps, tables or estimators."""
    for each in sources:
        first = each[0] if isinstance(each, Pipeline) else getattr(each, "preparation", each)
        if isinstance(first, TablePreparer):
            return first.origins_
        if getattr(each, "named", False):
            return each.feature_names
        if hasattr(each, "feature_names_in_") and not isinstance(each, Pipeline):
            return each.feature_names_in_.tolist()
        if hasattr(each, "columns"):
            return [str(name) for name in each.columns]
    return None


def said(shares: Iterable[ColumnShare]) -> str:
    """The shares in words."""
    shares = list(shares)
    if not any(share.removed for share in shares):
        return f"Nothing is removed. Predictions follow {_listed(shares, 'after')}."
    text = f"The removed directions lie in {_listed(shares, 'removed')}. "
    if any(share.before for share in shares):
        text += f"Without removal predictions follow {_listed(shares, 'before')}; "
        return f"{text}with it, {_listed(shares, 'after')}."
    return f"{text}Predictions follow {_listed(shares, 'after')}."


def _listed(shares: list[ColumnShare], kind: str) -> str:
    """The largest shares of a kind, in words."""
    pairs = sorted(((getattr(share, kind), share.name) for share in shares), reverse=True)
    shown = [f"{name} ({100 * value:.0f}%)" for value, name in pairs[:_MOST] if value >= _LEAST]
    return ", ".join(shown) or f"many columns, none with {_LEAST:.1%}"
