"""The scikit-learn estimators."""

from isrlearn.estimators._classifier import ISRClassifier
from isrlearn.estimators._regressor import ISRRegressor
from isrlearn.estimators._transformer import ISRTransformer

__all__ = ["ISRClassifier", "ISRRegressor", "ISRTransformer"]
