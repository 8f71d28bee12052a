"""
How many environments are enough?
=================================

Environments with a known ground truth: five spurious dimensions, mixed with five invariant ones.
Means reveal them from six environments on; covariances, where they differ, from two. Both are
theorems, and the figure shows both.
"""

import matplotlib.pyplot as plt
import numpy as np

from isrlearn.core import (
    covariance_subspace,
    joint_subspace,
    mean_subspace,
    principal_angles,
)
from isrlearn.datasets import make_gaussian_environments
from isrlearn.engine import cell_moments

methods = {"means": mean_subspace, "covariances": covariance_subspace, "joint": joint_subspace}
environments = range(2, 9)


def largest_angle(method, n_environments, seed):
    """Degrees between the subspace found and the true one; 90 if a dimension is missing."""
    data = make_gaussian_environments(2_000, n_environments, mixing="random", random_state=seed)
    moments = cell_moments(data.X, data.y, data.environments)
    found = method(moments, n_spurious=5)
    missing = found.rank < 5
    return 90.0 if missing else np.degrees(principal_angles(found.basis, data.truth.B)[0])


figure, axis = plt.subplots(figsize=(6, 3.5), layout="constrained")
for name, method in methods.items():
    angles = [
        np.median([largest_angle(method, n_environments, seed) for seed in range(10)])
        for n_environments in environments
    ]
    axis.plot(environments, angles, marker="o", label=name)
    print(f"{name:>12}: " + "  ".join(f"{angle:5.1f}°" for angle in angles))
axis.axvline(6, color="grey", linestyle=":", label="bound for means")
axis.set(xlabel="environments", ylabel="largest angle to the truth\n(degrees, median of 10 seeds)")
axis.legend()
plt.show()
