"""The values that generators and loaders return."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False, repr=False)
class EnvironmentData:
    """Features, targets and environments of the same samples.

    Examples
    --------
    >>> import numpy as np
    >>> from isrlearn.datasets import EnvironmentData
    >>> EnvironmentData(np.zeros((3, 2)), np.array([0, 1, 1]), np.array(["a", "b", "b"]))
    EnvironmentData(n_samples=3, n_features=2, environments=['a', 'b'])
    """

    #: Features (n, d), images (n, channels, height, width) or tokens; or the paths of files that
    #: hold them (n,).
    X: NDArray[Any]
    y: NDArray[Any]  #: Labels, or target values for regression (n,).
    environments: NDArray[Any]  #: The environment of each sample (n,).
    #: What the generator knows and a learner does not: the mixing matrix, the means, the optimal
    #: invariant predictor. None if nothing is known.
    truth: Any = None

    def __post_init__(self) -> None:
        if np.ndim(self.X) < 2 and np.asarray(self.X).dtype.kind not in "OU":
            raise ValueError(
                f"X has {np.ndim(self.X)} dimensions; it must have 2, (samples, features), or more."
            )
        lengths = {"X": len(self.X), "y": len(self.y), "environments": len(self.environments)}
        if len(set(lengths.values())) != 1:
            raise ValueError(
                f"X, y and environments must each have one row per sample; got {lengths} rows."
            )

    def __repr__(self) -> str:
        n, *rest = self.X.shape
        what = f"n_features={rest[0]}" if len(rest) == 1 else f"shape={(n, *rest)}"
        names = np.unique(self.environments).tolist()
        return f"EnvironmentData(n_samples={n}, {what}, environments={names})"


@dataclass(frozen=True, eq=False)
class Splits:
    """Independent training, validation and test samples of one data set.

    The function that returns them says how the spurious features relate to the labels in each.

    Examples
    --------
    >>> from isrlearn.datasets import load_digits_on_paper
    >>> load_digits_on_paper().test
    EnvironmentData(n_samples=500, n_features=192, environments=['blue paper', 'yellow paper'])
    """

    train: EnvironmentData
    validation: EnvironmentData
    test: EnvironmentData
