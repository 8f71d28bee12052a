"""Moments, subspaces, erasers and closed-form heads: the maths, on NumPy and SciPy."""

from isrlearn.core._logistic_head import logistic_head
from isrlearn.core.angles import chordal_distance, principal_angles
from isrlearn.core.covariance import covariance_subspace, joint_subspace
from isrlearn.core.erase import Eraser
from isrlearn.core.heads import Coordinates, head_coordinates, lda_head, ridge_head
from isrlearn.core.logistic import LogisticFit, fit_logistic, solve_logistic
from isrlearn.core.moments import Moments
from isrlearn.core.permutation import permutation_rank
from isrlearn.core.rank import RankTest, covariance_rank, joint_rank, mean_rank
from isrlearn.core.rows import ArraySource, Rows
from isrlearn.core.subspace import (
    Subspace,
    mean_subspace,
    multiclass_subspace,
    regression_subspace,
)
from isrlearn.core.whiten import Whitening, principal_components, whitening

__all__ = [
    "ArraySource",
    "Coordinates",
    "Eraser",
    "LogisticFit",
    "Moments",
    "RankTest",
    "Rows",
    "Subspace",
    "Whitening",
    "chordal_distance",
    "covariance_rank",
    "covariance_subspace",
    "fit_logistic",
    "head_coordinates",
    "joint_rank",
    "joint_subspace",
    "lda_head",
    "logistic_head",
    "mean_rank",
    "mean_subspace",
    "multiclass_subspace",
    "permutation_rank",
    "principal_angles",
    "principal_components",
    "regression_subspace",
    "ridge_head",
    "solve_logistic",
    "whitening",
]
