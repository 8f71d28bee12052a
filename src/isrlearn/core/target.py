"""Regression where the target shifts: moments of the features given the target."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from isrlearn.core.moments import Moments, between


def given_target(moments: Moments) -> Moments:
    r"""Moments of the features given the target, which is the last column of these moments.

    The features less what the target explains of them within environments,
    :math:`x - B y` with :math:`B = W_{xy} / W_{yy}` from the pooled within-environment scatter W:
    the adjusted means of an analysis of covariance. A mean that differs between environments
    because the target does is not a shift of these features. The slopes are estimates, and their
    errors grow with the shift s of the target; dividing the part of the shifts along s by
    :math:`\sqrt{1 + s^\top s / W_{yy}}` gives all shifts the same sampling noise, so that
    tests keep their level (the multivariate analysis of covariance). The span does not change.

    Examples
    --------
    >>> import numpy as np
    >>> covariance = [[2.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
    >>> mean = [[[0.0, 0.0, 0.0], [3.0, 1.0, 3.0]]]  # x = (y + noise, noise), and y shifts by 3
    >>> shifts = given_target(Moments.population(mean, covariance)).mean_shifts()
    >>> np.abs(shifts[0] / shifts[0, 1]).round(12).tolist()
    [0.0, 1.0]
    """
    d, W = moments.n_features - 1, moments.within()
    slopes = W[:d, d] / W[d, d] if W[d, d] > 0 else np.zeros(d)
    found = moments.map(np.vstack([np.eye(d), -slopes]))
    target = between(moments.count, moments.mean, axis=1)[2][0, :, d]  # (E,)
    squared = target @ target
    if squared == 0:
        return found
    _, centre, shifts = between(found.count, found.mean, axis=1)
    along = np.outer(target, target @ shifts[0]) / squared
    shifts = shifts - (1.0 - np.sqrt(W[d, d] / (W[d, d] + squared))) * along
    root = np.sqrt(found.count)[..., None]
    return replace(found, mean=np.where(root > 0, centre + shifts / np.where(root > 0, root, 1), 0))
