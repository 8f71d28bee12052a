"""What is done with features: the head they came with, ISR, and its competitors."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isrlearn import ISRClassifierCV, ISRRegressorCV
from isrlearn.core.labels import Cells
from isrlearn.datasets import EnvironmentData, Splits
from isrlearn.estimators import DFRClassifier
from isrlearn.io.errors import optional
from isrlearn.metrics import group_sizes
from isrlearn.paper.real.features import TrainedFeatures
from isrlearn.paper.rivals import group_members

Change = Callable[[EnvironmentData], EnvironmentData]
#: Number of ranges of the target that stand for the classes of a regression.
_RANGES = 5


@dataclass(frozen=True)
class Rule:
    """How the settings of every method of an experiment are chosen: candidates of the search."""

    regression: bool = False
    worst: bool = False  # choose by the worst validation group instead of the mean of all groups
    weights: tuple[Any, ...] = (None, "class", "group")
    n_spurious: Any = None
    scale: tuple[float, ...] = (0.0, 0.5)  # fractions of the spurious part to keep
    #: C of a classifier, alpha of a regression.
    penalties: tuple[float, ...] = (0.001, 0.01, 0.1, 1.0, 10.0)
    n_components: Any = "auto"


@dataclass(frozen=True)
class Predictor:
    """From samples to predictions, with the settings that the validation samples chose."""

    predict: Callable[[EnvironmentData], NDArray]
    chosen: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Method:
    """A column of a table."""

    label: str  # in the paper, if it is there
    fit: Callable[[TrainedFeatures, Rule, int], Predictor]  # from features, rule and seed


def balanced(data: EnvironmentData, regression: bool) -> EnvironmentData:
    """The samples, some repeated so that all groups count alike and no shortcut is rewarded."""
    y = data.y
    if regression:
        y = np.searchsorted(np.quantile(y, np.arange(1, _RANGES) / _RANGES), y)
    members = group_members(y, data.environments)
    rows = np.concatenate([np.resize(each, max(map(len, members))) for each in members])
    return EnvironmentData(data.X[rows], data.y[rows], data.environments[rows])


def comparable(data: EnvironmentData, least: int) -> NDArray:
    """Environments, None where some class has fewer rows than `least`, which cannot be compared."""
    cells, environments = Cells.of(data.y, data.environments), data.environments.astype(object)
    environments[cells.count().min(axis=0)[cells.e] < least] = None
    return environments


def _original(found: TrainedFeatures, rule: Rule, seed: int) -> Predictor:
    """The trained head, or a linear probe if the encoder has no head."""
    if found.head is None:
        return _refitted(found, rule, seed)
    coef, intercept = (np.asarray(part, dtype=np.float64) for part in found.head)
    classes = np.unique(found.splits.train.y)

    def predict(data: EnvironmentData) -> NDArray:
        scores = data.X @ coef.T + intercept
        if rule.regression:
            return scores[:, 0]
        codes = scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(int)
        return classes[codes]

    return Predictor(predict)


def _searched(found: TrainedFeatures, rule: Rule, seed: int, **fixed: Any) -> Predictor:
    """ISR, or with scale 1 only a new head; what is not fixed is chosen on validation data."""
    train, held_out = found.splits.train, found.splits.validation
    names = ("scale", "n_spurious", "n_components")
    settings: dict[str, Any] = {name: getattr(rule, name) for name in names}
    settings["selection"] = "worst-group" if rule.worst else "average"
    if not rule.worst:
        held_out = balanced(held_out, rule.regression)
    if rule.regression:
        settings |= {"alpha": rule.penalties, "compare": "means", "weights": (None,)}
        search: Any = ISRRegressorCV(**settings | fixed)
        environments = train.environments
    else:
        settings |= {"C": rule.penalties, "weights": rule.weights, "threshold": None}
        search = ISRClassifierCV(**settings | fixed)
        environments = comparable(train, 2 if fixed.get("method") in ("cov", "joint") else 1)
    search.fit(train.X, train.y, environments=environments, validation=held_out)
    chosen = {name: value for name, value in search.best_params_.items() if name != "head"}
    return Predictor(lambda data: search.predict(data.X), chosen)


#: A new head alone.
_refitted = partial(_searched, scale=1.0, n_spurious=0)


def _adapted(found: TrainedFeatures, rule: Rule, seed: int, **fixed: Any) -> Predictor:
    """The network's own head with ISR folded in; only the subspace is fitted."""
    if found.head is None:
        raise ValueError("these features come without a trained head, so there is none to adapt")
    head = [tuple(np.asarray(part, dtype=np.float64) for part in found.head)]
    fixed |= {"method": "multiclass", "head": head, "weights": (None,)}
    return _searched(found, rule, seed, **fixed)


def _published(found: TrainedFeatures, rule: Rule, seed: int, **fixed: Any) -> Predictor:
    """The published procedure; what it leaves open is chosen as for all methods."""
    given = rule.n_components if isinstance(rule.n_components, int) else 100
    how: dict[str, Any] = {"n_components": min(given, found.splits.train.X.shape[1])}
    weights = tuple(w for w in rule.weights if w != "class")
    how |= {"alpha": (0.0,)} if rule.regression else {"C": (1.0,), "weights": weights}
    return _searched(found, rule, seed, variant="paper", **how | fixed)


def _dfr(found: TrainedFeatures, rule: Rule, seed: int) -> Predictor:
    """A head fitted on group-balanced validation samples."""
    held_out = found.splits.validation
    model = DFRClassifier(random_state=seed)
    # C is chosen by splitting every group in two, which a group of one row does not allow.
    if min(group_sizes(held_out.y, held_out.environments).values()) < 2:
        model.set_params(C=0.1)
    model.fit(held_out.X, held_out.y, environments=held_out.environments)
    return Predictor(lambda data: model.predict(data.X), {"C": model.C_})


def _leace(found: TrainedFeatures, rule: Rule, seed: int) -> Predictor:
    """A head on features from which no linear map can predict the environment (LEACE)."""
    torch = optional("torch", "LEACE", "bench")
    LeaceEraser = optional("concept_erasure", "LEACE", "bench").LeaceEraser
    train = found.splits.train
    X = torch.from_numpy(np.asarray(train.X, dtype=np.float64))
    names = np.unique(train.environments)
    one_hot = torch.from_numpy((train.environments[:, None] == names).astype(np.float64))
    eraser = LeaceEraser.fit(X, one_hot)

    def erased(data: EnvironmentData) -> EnvironmentData:
        features = torch.from_numpy(np.asarray(data.X, dtype=np.float64))
        return replace(data, X=eraser(features).numpy())

    return _headed(found, rule, seed, erased)


def _correlation_remover(found: TrainedFeatures, rule: Rule, seed: int) -> Predictor:
    """A head on features made uncorrelated with the environment, also needed for test samples."""
    fairlearn = optional("fairlearn.preprocessing", "CorrelationRemover", "bench")
    names = np.unique(found.splits.train.environments)

    def with_codes(data: EnvironmentData) -> NDArray:
        codes = (data.environments[:, None] == names[1:]).astype(np.float64)
        return np.column_stack([codes, data.X])

    remover = fairlearn.CorrelationRemover(sensitive_feature_ids=list(range(len(names) - 1)))
    remover.fit(with_codes(found.splits.train))

    def removed(data: EnvironmentData) -> EnvironmentData:
        return replace(data, X=remover.transform(with_codes(data)))

    return _headed(found, rule, seed, removed)


def _headed(features: TrainedFeatures, rule: Rule, seed: int, change: Change) -> Predictor:
    """A head on changed features, chosen by the same rule as all others."""
    splits = features.splits
    changed = Splits(*(change(part) for part in (splits.train, splits.validation, splits.test)))
    # Rounding noise is left of what was erased; it must not be whitened into features.
    X = changed.train.X
    strengths = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)
    rank = int((strengths > 1e-6 * strengths[0]).sum())
    if rule.n_components is None and rank < X.shape[1]:
        rule = replace(rule, n_components=rank)
    found = _refitted(TrainedFeatures(changed, None), rule, seed)
    return Predictor(lambda data: found.predict(change(data)), found.chosen)


_ONE: dict[str, Any] = {"method": "mean", "n_spurious": 1}  # E − 1, for two environments
_RAW: dict[str, Any] = {"variant": "paper", "n_components": None, "scale": (0.0, 0.5)}
#: All methods, by name; those as published stand beside ours.
METHODS: Mapping[str, Method] = {
    "original": Method("Original", _original),
    "isr-mean-published": Method("ISR-Mean, as published", partial(_published, **_ONE)),
    "isr-cov-published": Method("ISR-Cov, as published", partial(_published, method="cov")),
    "isr-multiclass-published": Method("ISR-Multiclass, as published", partial(_adapted, **_RAW)),
    "isr-regression-published": Method("ISR-Regression, as published", _published),
    "isr-mean": Method("ISR-Mean", partial(_searched, method="mean")),
    "isr-cov": Method("ISR-Cov", partial(_searched, method="cov")),
    "isr-joint": Method("ISR joint", partial(_searched, method="joint")),
    "isr-multiclass": Method("ISR-Multiclass", partial(_searched, method="multiclass")),
    "isr-own-head": Method("ISR, own head", _adapted),
    "isr-regression": Method("ISR-Regression", _searched),
    "refit": Method("Head refitted", _refitted),
    "reweighted": Method("Head reweighted", partial(_refitted, weights=("group",))),
    "dfr": Method("DFR", _dfr),
    "leace": Method("LEACE", _leace),
    "correlation-remover": Method("CorrelationRemover", _correlation_remover),
}
