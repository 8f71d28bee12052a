"""Rivals of ISR as scikit-learn estimators: weights, subsamples, anchors, energies, means."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, optimize
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from isrlearn import infer_environments
from isrlearn.core.labels import MISSING, Cells, encode

#: Relative size below which a direction of a covariance holds rounding errors.
ROUNDING = 1e-9


def known_or_inferred(X: NDArray, y: NDArray, environments: Any) -> NDArray:
    """Environments, the unknown ones inferred from features and class."""
    names, e = encode(np.asarray(environments, dtype=object))
    if len(names) == 1 or not (e == MISSING).any():
        return names[np.maximum(e, 0)]
    C = 0.1 if np.bincount(e[e != MISSING]).min() < 5 else None  # too few to cross-validate
    return infer_environments(X, y, environments=environments, C=C, random_state=0)


def row_weights(cells: Cells, weights: str | None) -> NDArray[np.float64]:
    """Weights with mean 1 that make classes, or also the groups of each class, alike in total."""
    if weights is None:
        return np.ones(len(cells.k))
    groups = group_codes(cells) if weights == "group" else cells.k
    count = np.bincount(groups)
    # Classes have equal weight even if one has fewer groups: a missing cell must not be a prior.
    of_class = np.bincount(cells.k[np.unique(groups, return_index=True)[1]])
    return len(groups) / (len(of_class) * of_class[cells.k] * count[groups])


def group_codes(cells: Cells) -> NDArray[np.intp]:
    """Number of each row's group: its class and its environment, which may be unknown."""
    codes = cells.k * (len(cells.environments) + 1) + cells.e + 1
    return np.unique(codes, return_inverse=True)[1]


def group_members(y: NDArray, environments: NDArray) -> list[NDArray[np.intp]]:
    """Rows of each group."""
    codes = group_codes(Cells.of(y, environments))
    return [np.flatnonzero(codes == g) for g in range(codes.max() + 1)]


@dataclass(eq=False, repr=False)
class Rival(ClassifierMixin, BaseEstimator):
    """A linear classifier of standardised features that may use environments."""

    C: float = 1.0

    __metadata_request__fit = {"environments": True}
    #: Whether unknown environments are inferred; else such rows train the head only.
    _infers = False
    #: Names of the attributes for what `_solve` gives.
    _names = ("coef_", "intercept_")

    def fit(self, X: Any, y: Any, environments: Any = None) -> Self:
        """The classifier, fitted on rows whose environments may be partly unknown."""
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(y)
        named: Any = np.zeros(len(y), dtype=int) if environments is None else environments
        if len(named) != len(y):
            raise ValueError(f"environments has {len(named)} entries for {len(y)} rows")
        if self._infers:
            named = known_or_inferred(X, y, named)
        cells = Cells.of(y, named)
        if len(cells.classes) < 2:
            raise ValueError(f"y has one class, {cells.classes[0]!r}; at least two are needed")
        self.classes_, self.environments_ = cells.classes, cells.environments
        scaler = StandardScaler().fit(X)
        Z, rotation = scaler.transform(X), None
        if X.shape[1] > len(X):  # into the span of the rows, which changes no penalised head
            values, U = linalg.eigh(Z @ Z.T)  # cheaper than the singular values of wide rows
            kept = values > ROUNDING * max(values[-1], 1e-300)
            rotation = (U[:, kept] / np.sqrt(values[kept])).T @ Z
            Z = Z @ rotation.T
        coef, intercept = self._solve(Z, cells)
        coef = (coef if rotation is None else coef @ rotation) / scaler.scale_
        setattr(self, self._names[0], coef)
        setattr(self, self._names[1], intercept - coef @ scaler.mean_)
        return self

    @abstractmethod
    def _solve(self, Z: NDArray, cells: Cells) -> tuple[NDArray, NDArray]:
        """Coefficients and intercepts on standardised rows."""

    def decision_function(self, X: Any) -> NDArray:
        """``X @ coef_.T + intercept_``: (n,) for two classes, else (n, n_classes)."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        scores = X @ self.coef_.T + self.intercept_
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> NDArray:
        """Class of each row."""
        return self._named(self.decision_function(X))

    def _named(self, scores: NDArray) -> NDArray:
        codes = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[codes]


def logistic(Z: NDArray, k: NDArray, C: float, weight: NDArray | None = None) -> Any:
    """Coefficients and intercepts of a penalised logistic regression."""
    model = LogisticRegression(C=C, max_iter=1000).fit(Z, k, sample_weight=weight)
    return model.coef_, model.intercept_


@dataclass(eq=False, repr=False)
class WeightedLogistic(Rival):
    """Logistic regression in which every class, or every group, has the same total weight."""

    weights: str | None = None  # "class" or "group"; None: every row

    def _solve(self, Z: NDArray, cells: Cells) -> tuple[NDArray, NDArray]:
        return logistic(Z, cells.k, self.C, row_weights(cells, self.weights))


@dataclass(eq=False, repr=False)
class SubsampledLogistic(Rival):
    """Deep feature reweighting (Kirichenko et al., 2023), with ridge logistic regressions."""

    n_subsamples: int = 10
    random_state: int = 0
    _infers = True

    def _solve(self, Z: NDArray, cells: Cells) -> tuple[NDArray, NDArray]:
        rng = np.random.default_rng(self.random_state)
        members = group_members(cells.k, cells.e)
        least = min(map(len, members))
        heads = []
        for _ in range(self.n_subsamples):
            rows = np.concatenate([rng.choice(each, least, replace=False) for each in members])
            heads.append(logistic(Z[rows], cells.k[rows], self.C))
        coef, intercept = zip(*heads, strict=True)
        return np.mean(coef, axis=0), np.mean(intercept, axis=0)


@dataclass(eq=False, repr=False)
class AnchorClassifier(Rival):
    r"""Anchor regression (Rothenhäusler et al., 2021) of class indicators.

    Least squares with a penalty after the part of features and target that environments explain was
    multiplied by :math:`\sqrt\gamma`, 1 for ridge regression; classes have equal weight.
    """

    gamma: float = 5.0
    _infers = True

    def _solve(self, Z: NDArray, cells: Cells) -> tuple[NDArray, NDArray]:
        weight = row_weights(cells, "class")
        T = 2.0 * one_hot(cells.k) - 1
        T = T[:, 1:] if T.shape[1] == 2 else T
        both = np.hstack([Z, T])
        centre = np.average(both, axis=0, weights=weight)
        both = both - centre
        A = one_hot(cells.e)
        mean = (A.T @ (weight[:, None] * both)) / (A.T @ weight)[:, None]
        both = np.sqrt(weight)[:, None] * (both + (np.sqrt(self.gamma) - 1) * (A @ mean))
        X, Y = np.split(both, [Z.shape[1]], axis=1)
        G = X.T @ X + np.eye(X.shape[1]) / self.C
        coef = linalg.solve(G, X.T @ Y, assume_a="pos").T
        return coef, centre[Z.shape[1] :] - coef @ centre[: Z.shape[1]]


class CRMClassifier(Rival):
    r"""Compositional risk minimisation (Mahajan et al., 2025): energies of class and environment.

    The logit of a cell is :math:`w_k^\top x + v_e^\top x + b_{ke}`, fitted on the cells that have
    rows. The bias of *every* cell is then the logarithm of its normalising constant, estimated from
    the training rows, so that all cells can have the same prior. The class with the largest total
    probability over environments is predicted: scores are not affine, and there are no `coef_`.
    """

    _infers = True
    _names = ("energies_", "offsets_")

    def _solve(self, Z: NDArray, cells: Cells) -> tuple[NDArray, NDArray]:
        count = cells.count()
        K, E = count.shape
        seen = np.flatnonzero(count.ravel())
        target = np.searchsorted(seen, cells.k * E + cells.e)
        classes, places = np.divmod(seen, E)
        d, n, rows = Z.shape[1], len(Z), np.arange(len(Z))

        def loss(parameters: NDArray) -> tuple[float, NDArray]:
            V, b = parameters[: (K + E) * d].reshape(K + E, d), parameters[(K + E) * d :]
            energies = Z @ V.T
            logits = energies[:, classes] + energies[:, K + places] + b
            total = logsumexp(logits, axis=1)
            value = (total - logits[rows, target]).sum() + 0.5 / self.C * (V**2).sum()
            residual = np.exp(logits - total[:, None])
            residual[rows, target] -= 1
            by_part = np.hstack([residual @ one_hot(classes, K), residual @ one_hot(places, E)])
            gradient = by_part.T @ Z + V / self.C
            return value / n, np.concatenate([gradient.ravel(), residual.sum(axis=0)]) / n

        start = np.concatenate([np.zeros((K + E) * d), np.log(count.ravel()[seen] / n)])
        best = optimize.minimize(
            loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 500, "gtol": 1e-4}
        ).x
        V, b = best[: (K + E) * d].reshape(K + E, d), best[(K + E) * d :]
        energies = Z @ V.T
        every = energies[:, :K, None] + energies[:, None, K:]  # (n, K, E)
        total = logsumexp(every.reshape(n, -1)[:, seen] + b, axis=1)
        self.log_constants_ = logsumexp(every - total[:, None, None], axis=0) - np.log(n)
        return V, np.zeros(K + E)

    def decision_function(self, X: Any) -> NDArray:
        """Logarithm of the classes' scores; for two classes their difference."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        energies = X @ self.energies_.T + self.offsets_
        K = len(self.classes_)
        every = energies[:, :K, None] + energies[:, None, K:] - self.log_constants_
        scores = logsumexp(every, axis=2)
        return scores[:, 1] - scores[:, 0] if K == 2 else scores


class EnvironmentMeansClassifier(WeightedLogistic):
    """Logistic regression on features less their environment's mean, as CorrelationRemover's."""

    __metadata_request__predict = {"environments": True}
    __metadata_request__decision_function = {"environments": True}
    _infers = True

    def _solve(self, Z: NDArray, cells: Cells) -> tuple[NDArray, NDArray]:
        A = one_hot(cells.e)
        means = (A.T @ Z) / A.sum(axis=0)[:, None]
        coef, intercept = logistic(Z - A @ means, cells.k, self.C, row_weights(cells, self.weights))
        self.adjustments_ = -means @ coef.T  # (E, 1 or K), added to the scores
        return coef, intercept

    def decision_function(self, X: Any, environments: Any = None) -> NDArray:
        """Scores of rows whose environments are given; one that is new has the overall mean."""
        scores = super().decision_function(X)
        if environments is None and len(self.environments_) > 1:
            raise ValueError("the environment of every row is needed to predict")
        given = np.repeat(self.environments_, len(scores)) if environments is None else environments
        added = (np.asarray(given)[:, None] == self.environments_) @ self.adjustments_
        return scores + (added[:, 0] if scores.ndim == 1 else added)

    def predict(self, X: Any, environments: Any = None) -> NDArray:
        """Class of each row, given its environment."""
        return self._named(self.decision_function(X, environments))


def one_hot(codes: NDArray, n: int | None = None) -> NDArray[np.float64]:
    """Indicators (n, values) of integer codes."""
    return np.eye(codes.max() + 1 if n is None else n)[codes]
