"""The two values every generator and loader returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False, repr=False)
class EnvironmentData:
    """Features, targets and environments of the same samples.

    Parameters
    ----------
    X : ndarray of shape (n, d), (n, channels, height, width) or (n,)
        Features, images or tokens; or the paths of files that hold them.
    y : ndarray of shape (n,)
        Labels, or target values for regression.
    environments : ndarray of shape (n,)
        The environment of each sample.
    truth : object, optional
        What the generator knows and a learner does not: the mixing matrix, the means, the
        optimal invariant predictor. ``None`` when there is nothing to tell.

    Examples
    --------
    >>> import numpy as np
    >>> from isrlearn.datasets import EnvironmentData
    >>> EnvironmentData(np.zeros((3, 2)), np.array([0, 1, 1]), np.array(["a", "b", "b"]))
    EnvironmentData(n_samples=3, n_features=2, environments=['a', 'b'])
    """

    X: NDArray[Any]  # (n, d), (n, ...) or paths (n,)
    y: NDArray[Any]  # (n,)
    environments: NDArray[Any]  # (n,)
    truth: Any = None

    def __post_init__(self) -> None:
        if np.ndim(self.X) < 2 and np.asarray(self.X).dtype.kind not in "OU":
            raise ValueError(
                f"X has {np.ndim(self.X)} dimensions; it must have 2, (samples, features), or more."
            )
        lengths = {"X": len(self.X), "y": len(self.y), "environments": len(self.environments)}
        if len(set(lengths.values())) != 1:
            raise ValueError(
                f"X, y and environments must have one row a sample each; got {lengths}."
            )

    def __repr__(self) -> str:
        n, *rest = self.X.shape
        what = f"n_features={rest[0]}" if len(rest) == 1 else f"shape={(n, *rest)}"
        names = np.unique(self.environments).tolist()
        return f"EnvironmentData(n_samples={n}, {what}, environments={names})"


@dataclass(frozen=True, eq=False)
class Splits:
    """Training, validation and test samples of one data set.

    Parameters
    ----------
    train, validation, test : EnvironmentData
        Independent samples. How each split relates spurious features to labels is said by the
        function that returns them.

    Examples
    --------
    >>> from isrlearn.paper.datasets import make_linear_unit_test
    >>> splits = make_linear_unit_test("3", n_samples=100, random_state=0)
    >>> splits.test
    EnvironmentData(n_samples=300, n_features=10, environments=[0, 1, 2])
    """

    train: EnvironmentData
    validation: EnvironmentData
    test: EnvironmentData
