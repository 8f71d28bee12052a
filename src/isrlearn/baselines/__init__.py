"""Linear baselines with the same ``fit(X, y, environments=...)`` as the ISR estimators."""

from isrlearn.baselines.andmask import ANDMaskClassifier, ANDMaskRegressor
from isrlearn.baselines.dfr import DFRClassifier
from isrlearn.baselines.erm import ERMClassifier, ERMRegressor
from isrlearn.baselines.group_dro import GroupDROClassifier, GroupDRORegressor
from isrlearn.baselines.ib_erm import IBERMClassifier, IBERMRegressor
from isrlearn.baselines.ib_irm import IBIRMClassifier, IBIRMRegressor
from isrlearn.baselines.iga import IGAClassifier, IGARegressor
from isrlearn.baselines.irm import IRMv1Classifier, IRMv1Regressor
from isrlearn.baselines.published import (
    Range,
    make_baseline,
    published_parameters,
    published_trials,
    search_space,
)
from isrlearn.baselines.reweighting import ReweightedClassifier, ReweightedRegressor
from isrlearn.baselines.vrex import VRExClassifier, VRExRegressor

__all__ = [
    "ANDMaskClassifier",
    "ANDMaskRegressor",
    "DFRClassifier",
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
