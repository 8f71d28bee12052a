"""Data sets with environments: generators that know the truth, and loaders of real data."""

from isrlearn.datasets._data import EnvironmentData, Splits
from isrlearn.datasets._files import DataError
from isrlearn.datasets._truth import permute_spurious
from isrlearn.datasets.coloured_mnist import load_mc_cmnist
from isrlearn.datasets.digits import load_digits_on_paper
from isrlearn.datasets.fashion_on_photos import load_fashion_on_photos
from isrlearn.datasets.features import load_features, save_features
from isrlearn.datasets.gaussian import gaussian_truth, make_gaussian_environments
from isrlearn.datasets.group_folders import load_celeba, load_multinli, load_waterbirds
from isrlearn.datasets.idx import load_idx_images, read_idx
from isrlearn.datasets.law_school import load_law_school
from isrlearn.datasets.multiclass import make_multiclass_unit_test
from isrlearn.datasets.regression import make_regression_unit_test
from isrlearn.datasets.rotated_fashion import load_rcfmnist
from isrlearn.datasets.unit_tests import LINEAR_UNIT_TESTS, make_linear_unit_test
from isrlearn.datasets.waterbirds_like import make_waterbirds_like

__all__ = [
    "LINEAR_UNIT_TESTS",
    "DataError",
    "EnvironmentData",
    "Splits",
    "gaussian_truth",
    "load_celeba",
    "load_digits_on_paper",
    "load_fashion_on_photos",
    "load_features",
    "load_idx_images",
    "load_law_school",
    "load_mc_cmnist",
    "load_multinli",
    "load_rcfmnist",
    "load_waterbirds",
    "make_gaussian_environments",
    "make_linear_unit_test",
    "make_multiclass_unit_test",
    "make_regression_unit_test",
    "make_waterbirds_like",
    "permute_spurious",
    "read_idx",
    "save_features",
]
