"""Linear baselines with the same ``fit(X, y, environments=...)`` as the ISR estimators."""

from isrlearn.paper.baselines.andmask import ANDMaskClassifier, ANDMaskRegressor
from isrlearn.paper.baselines.erm import ERMClassifier, ERMRegressor
from isrlearn.paper.baselines.group_dro import GroupDROClassifier, GroupDRORegressor
from isrlearn.paper.baselines.ib_erm import IBERMClassifier, IBERMRegressor
from isrlearn.paper.baselines.ib_irm import IBIRMClassifier, IBIRMRegressor
from isrlearn.paper.baselines.iga import IGAClassifier, IGARegressor
from isrlearn.paper.baselines.irm import IRMv1Classifier, IRMv1Regressor
from isrlearn.paper.baselines.published import (
    Range,
    make_baseline,
    published_parameters,
    published_trials,
    search_space,
)
from isrlearn.paper.baselines.reweighting import ReweightedClassifier, ReweightedRegressor
from isrlearn.paper.baselines.vrex import VRExClassifier, VRExRegressor

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
