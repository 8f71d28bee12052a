"""Moments, subspaces, erasers and closed-form heads: the mathematics, on NumPy and SciPy."""

from isrlearn.core.heads import lda_head, ridge_head
from isrlearn.core.methods import METHODS, Method, covariance_subspace, joint_subspace
from isrlearn.core.moments import Moments, given_target
from isrlearn.core.rank import RankTest, covariance_rank, mean_rank
from isrlearn.core.subspace import (
    Eraser,
    Subspace,
    mean_subspace,
    multiclass_subspace,
    principal_angles,
    regression_subspace,
)
from isrlearn.core.whiten import (
    Coordinates,
    Whitening,
    head_coordinates,
    principal_components,
    whitening,
)

__all__ = [
    "METHODS",
    "Coordinates",
    "Eraser",
    "Method",
    "Moments",
    "RankTest",
    "Subspace",
    "Whitening",
    "covariance_rank",
    "covariance_subspace",
    "given_target",
    "head_coordinates",
    "joint_subspace",
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
