"""Linear baselines with the same ``fit(X, y, environments=...)`` as the ISR estimators."""

from isrlearn.baselines.andmask import ANDMaskClassifier, ANDMaskRegressor
from isrlearn.baselines.erm import ERMClassifier, ERMRegressor
from isrlearn.baselines.iga import IGAClassifier, IGARegressor
from isrlearn.baselines.irm import IRMv1Classifier, IRMv1Regressor
from isrlearn.baselines.published import (
    Range,
    make_baseline,
    published_parameters,
    published_trials,
    search_space,
)

__all__ = [
    "ANDMaskClassifier",
    "ANDMaskRegressor",
    "ERMClassifier",
    "ERMRegressor",
    "IGAClassifier",
    "IGARegressor",
    "IRMv1Classifier",
    "IRMv1Regressor",
    "Range",
    "make_baseline",
    "published_parameters",
    "published_trials",
    "search_space",
]
