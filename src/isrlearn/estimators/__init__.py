"""The scikit-learn estimators."""

from isrlearn.estimators.classifier import ISRClassifier
from isrlearn.estimators.compare import compare_models
from isrlearn.estimators.cv import ISRClassifierCV, ISRRegressorCV
from isrlearn.estimators.dfr import DFRClassifier
from isrlearn.estimators.infer import infer_environments
from isrlearn.estimators.preparation import TablePreparer
from isrlearn.estimators.regressor import ISRRegressor
from isrlearn.estimators.transformer import ISRTransformer
from isrlearn.estimators.verdict import ComparedModel, Comparison

__all__ = [
    "ComparedModel",
    "Comparison",
    "DFRClassifier",
    "ISRClassifier",
    "ISRClassifierCV",
    "ISRRegressor",
    "ISRRegressorCV",
    "ISRTransformer",
    "TablePreparer",
    "compare_models",
    "infer_environments",
]
