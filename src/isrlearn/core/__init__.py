"""Moments, subspaces, erasers and closed-form heads: the maths, on NumPy and SciPy alone."""

from isrlearn.core.angles import chordal_distance, principal_angles
from isrlearn.core.erase import Eraser
from isrlearn.core.heads import Coordinates, head_coordinates, lda_head, ridge_head
from isrlearn.core.moments import Moments
from isrlearn.core.rank import RankTest, mean_rank
from isrlearn.core.subspace import (
    Subspace,
    covariance_subspace,
    mean_subspace,
    multiclass_subspace,
    regression_subspace,
)
from isrlearn.core.whiten import Whitening, principal_components, whitening

__all__ = [
    "Coordinates",
    "Eraser",
    "Moments",
    "RankTest",
    "Subspace",
    "Whitening",
    "chordal_distance",
    "covariance_subspace",
    "head_coordinates",
    "lda_head",
    "mean_rank",
    "mean_subspace",
    "multiclass_subspace",
    "principal_angles",
    "principal_components",
    "regression_subspace",
    "ridge_head",
    "whitening",
]
