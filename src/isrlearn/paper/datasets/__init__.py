"""Data of the paper's experiments: linear unit tests, images, grades, group folders."""

from isrlearn.paper.datasets.files import load_idx_images, read_idx
from isrlearn.paper.datasets.group_folders import load_celeba, load_multinli, load_waterbirds
from isrlearn.paper.datasets.images import load_fashion_on_photos, load_mc_cmnist, load_rcfmnist
from isrlearn.paper.datasets.law_school import load_law_school
from isrlearn.paper.datasets.tables import load_table
from isrlearn.paper.datasets.unit_tests import (
    LINEAR_UNIT_TESTS,
    make_linear_unit_test,
    make_multiclass_unit_test,
    make_regression_unit_test,
    permute_spurious,
)

__all__ = [
    "LINEAR_UNIT_TESTS",
    "load_celeba",
    "load_fashion_on_photos",
    "load_idx_images",
    "load_law_school",
    "load_mc_cmnist",
    "load_multinli",
    "load_rcfmnist",
    "load_table",
    "load_waterbirds",
    "make_linear_unit_test",
    "make_multiclass_unit_test",
    "make_regression_unit_test",
    "permute_spurious",
    "read_idx",
]
