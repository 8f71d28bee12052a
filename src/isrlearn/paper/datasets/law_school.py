"""Law School: grades of students, skewed by gender."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isrlearn.datasets.data import EnvironmentData, Splits
from isrlearn.datasets.parameters import SPLITS, RandomState, Streams, Use, number
from isrlearn.paper.datasets.files import Resource, content

LAW_SCHOOL_FILE = Resource(
    "law-school/lawschool.csv",
    "https://raw.githubusercontent.com/algowatchpenn/GerryFair/master/dataset/lawschool.csv",
    "7bc6ada636067f0613cbdc2e42db766684ca8fe32189006d315d84fbd8e1ef1a",
)
TARGET, ENVIRONMENT = "ugpa", "gender"
GENDERS = np.array(["male", "female"])
_HIGH = 3.0
_TEST, _VALIDATION = 0.3, 0.2  # shares of the rows, before subsampling


@dataclass(frozen=True)
class TableTruth:
    """What is known about a table besides its numbers."""

    names: tuple[str, ...]  # of the features


def load_law_school(*, strength: float = 0.4, random_state: RandomState = 0) -> Splits:
    """Law School: predict the undergraduate grade average, which depends on gender in training.

    1,823 students, 17 features (scores, grades in law school, income, age, gender, race), the
    target is the undergraduate grade average (0 to 4). Rows are split at random, 50 to 20 to 30,
    and each split is subsampled: in training and validation the share of grades above 3 is higher
    among women than among men by `strength`, in test it is the same for both. Environments are the
    genders, and gender is one of the features.

    Parameters
    ----------
    strength : float, default=0.4
        Difference between the two shares in training, in [0, 1): their mean is one half.
    random_state : int, Generator or None, default=0
        Source of the splits and subsamples.

    Returns
    -------
    Splits
        X float64 as in the file, without the target; ``truth.names`` are its columns.

    Notes
    -----
    The paper shows this modification in a figure only; the numbers are ours.

    Examples
    --------
    >>> from isrlearn.paper.datasets import load_law_school
    >>> splits = load_law_school()  # doctest: +SKIP
    >>> splits.train  # doctest: +SKIP
    EnvironmentData(n_samples=575, n_features=17, environments=['female', 'male'])
    """
    gap = number("strength", strength, 0, 0.99)
    head, *lines = content(LAW_SCHOOL_FILE).decode("utf-8").split()
    names = head.split(",")
    table = np.array([line.split(",") for line in lines], dtype=np.float64)
    y, female = table[:, names.index(TARGET)], table[:, names.index(ENVIRONMENT)].astype(int)
    X = np.delete(table, names.index(TARGET), axis=1)
    truth = TableTruth(tuple(name for name in names if name != TARGET))
    streams = Streams.of(random_state)
    order = streams.generator(Use.SHARED).permutation(len(y))
    stops = [round(_TEST * len(y)), round((_TEST + _VALIDATION) * len(y))]
    parts = []
    for use, rows in zip(reversed(SPLITS), np.split(order, stops), strict=True):
        shift, rng = 0.0 if use is Use.TEST else gap / 2, streams.generator(use)
        rows = rows[_subsampled(y[rows] > _HIGH, female[rows], shift, rng)]
        parts.append(EnvironmentData(X[rows], y[rows], GENDERS[female[rows]], truth))
    return Splits(*reversed(parts))


def _subsampled(
    high: NDArray[np.bool_], female: NDArray[np.intp], shift: float, rng: np.random.Generator
) -> NDArray[np.intp]:
    """As many rows as possible, half of each gender's with high grades, plus or minus the shift."""
    chosen = []
    for gender, share in enumerate((0.5 - shift, 0.5 + shift)):
        above, below = (np.flatnonzero((female == gender) & (high == h)) for h in (True, False))
        n = min(len(above) / max(share, 1e-9), len(below) / max(1 - share, 1e-9))
        chosen += [above[: round(share * n)], below[: round((1 - share) * n)]]
    return rng.permutation(np.concatenate(chosen))
