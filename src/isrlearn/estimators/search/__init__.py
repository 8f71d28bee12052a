"""Choosing settings by what happens in the worst group."""

from isrlearn.estimators.search._classifier import ISRClassifierCV
from isrlearn.estimators.search._regressor import ISRRegressorCV

__all__ = ["ISRClassifierCV", "ISRRegressorCV"]
