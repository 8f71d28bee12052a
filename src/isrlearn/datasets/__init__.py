"""Data sets with environments: generators that know the truth, and a loader of real images."""

from isrlearn.datasets._data import EnvironmentData, Splits
from isrlearn.datasets._truth import permute_spurious
from isrlearn.datasets.digits import load_digits_on_paper
from isrlearn.datasets.gaussian import gaussian_truth, make_gaussian_environments
from isrlearn.datasets.multiclass import make_multiclass_unit_test
from isrlearn.datasets.regression import make_regression_unit_test
from isrlearn.datasets.unit_tests import LINEAR_UNIT_TESTS, make_linear_unit_test
from isrlearn.datasets.waterbirds_like import make_waterbirds_like

__all__ = [
    "LINEAR_UNIT_TESTS",
    "EnvironmentData",
    "Splits",
    "gaussian_truth",
    "load_digits_on_paper",
    "make_gaussian_environments",
    "make_linear_unit_test",
    "make_multiclass_unit_test",
    "make_regression_unit_test",
    "make_waterbirds_like",
    "permute_spurious",
]
