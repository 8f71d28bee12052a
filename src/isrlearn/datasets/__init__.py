"""Data sets with environments: generators that know the truth, and a loader of real images."""

from isrlearn.datasets._data import EnvironmentData, Splits

__all__ = ["EnvironmentData", "Splits"]
