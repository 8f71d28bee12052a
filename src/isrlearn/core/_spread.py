"""Moments over more classes and environments than they saw, so that they can be added."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from isrlearn.core.moments import Moments


def spread(moments: Moments, classes: NDArray, names: NDArray) -> Moments:
    """The same moments with empty cells for classes and environments not seen."""
    if len(classes) == len(moments.classes) and len(names) == len(moments.environments):
        return moments
    cells = np.ix_(
        np.searchsorted(classes, moments.classes), np.searchsorted(names, moments.environments)
    )
    count = np.zeros((len(classes), len(names)))
    mean = np.zeros((*count.shape, moments.n_features))
    count[cells], mean[cells] = moments.count, moments.mean
    scatter = moments.scatter
    if scatter is not None and not moments.pooled:
        scatter = np.zeros((*mean.shape, moments.n_features))
        scatter[cells] = moments.scatter
    other = moments.unlabelled
    if other is not None:
        other = spread(other, classes, other.environments)
    return replace(
        moments,
        classes=classes,
        environments=names,
        count=count,
        mean=mean,
        scatter=scatter,
        unlabelled=other,
    )
