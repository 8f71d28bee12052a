"""The scikit-learn estimators."""

from isrlearn.estimators._classifier import ISRClassifier
from isrlearn.estimators._regressor import ISRRegressor
from isrlearn.estimators._transformer import ISRTransformer
from isrlearn.estimators.dfr import DFRClassifier

__all__ = ["DFRClassifier", "ISRClassifier", "ISRRegressor", "ISRTransformer"]
