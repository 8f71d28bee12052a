"""Data sets with environments: generators that know the truth, and loaders of real data."""

from isrlearn.datasets.data import EnvironmentData, Splits
from isrlearn.datasets.digits import load_digits_on_paper
from isrlearn.datasets.gaussian import make_gaussian_environments
from isrlearn.datasets.waterbirds_like import make_waterbirds_like

__all__ = [
    "EnvironmentData",
    "Splits",
    "load_digits_on_paper",
    "make_gaussian_environments",
    "make_waterbirds_like",
]
