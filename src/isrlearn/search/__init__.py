"""Choosing settings by what happens in the worst group."""

from isrlearn.search._classifier import ISRClassifierCV
from isrlearn.search._regressor import ISRRegressorCV

__all__ = ["ISRClassifierCV", "ISRRegressorCV"]
