"""Linear baselines with the same ``fit(X, y, environments=...)`` as the ISR estimators."""

from isrlearn.paper.baselines.erm import (
    ERMClassifier,
    ERMRegressor,
    GroupDROClassifier,
    GroupDRORegressor,
    IBERMClassifier,
    IBERMRegressor,
    ReweightedClassifier,
    ReweightedRegressor,
)
from isrlearn.paper.baselines.invariance import (
    ANDMaskClassifier,
    ANDMaskRegressor,
    IBIRMClassifier,
    IBIRMRegressor,
    IGAClassifier,
    IGARegressor,
    IRMv1Classifier,
    IRMv1Regressor,
    VRExClassifier,
    VRExRegressor,
)
from isrlearn.paper.baselines.published import (
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
    "GroupDROClassifier",
    "GroupDRORegressor",
    "IBERMClassifier",
    "IBERMRegressor",
    "IBIRMClassifier",
    "IBIRMRegressor",
    "IGAClassifier",
    "IGARegressor",
    "IRMv1Classifier",
    "IRMv1Regressor",
    "Range",
    "ReweightedClassifier",
    "ReweightedRegressor",
    "VRExClassifier",
    "VRExRegressor",
    "make_baseline",
    "published_parameters",
    "published_trials",
    "search_space",
]
