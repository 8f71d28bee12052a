"""Law School: grades of law students, made to look better for one gender in training."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isrlearn.datasets import checks
from isrlearn.datasets.data import EnvironmentData, Splits
from isrlearn.datasets.files import DataError, Resource, content
from isrlearn.datasets.streams import RandomState, Streams, Use

LAW_SCHOOL_FILE = Resource(
    "law-school/lawschool.csv",
    "https://raw.githubusercontent.com/algowatchpenn/GerryFair/master/dataset/lawschool.csv",
    "7bc6ada636067f0613cbdc2e42db766684ca8fe32189006d315d84fbd8e1ef1a",
)
TARGET, ENVIRONMENT = "ugpa", "gender"
GENDERS = np.array(["male", "female"])
_HIGH = 3.0


@dataclass(frozen=True)
class LawSchoolTruth:
    """What is known of the table beside its numbers.

    Parameters
    ----------
    names : tuple of str
        Names of the features.
    """

    names: tuple[str, ...]


def load_law_school(
    *,
    strength: float = 0.4,
    test_share: float = 0.3,
    validation_share: float = 0.2,
    random_state: RandomState = 0,
    data_home: str | os.PathLike[str] | None = None,
    download: bool = True,
) -> Splits:
    """Law School: predict the undergraduate grade average, which lies about gender in training.

    1,823 students, 17 features (scores, grades in law school, income, age, gender, race), the
    target is the undergraduate grade average (0 to 4). Rows are split at random and each split is
    thinned: in training and validation the share of grades above 3 is higher among women than
    among men by `strength`, in test it is the same for both. Environments are the genders, and
    gender is one of the features.

    Parameters
    ----------
    strength : float, default=0.4
        Difference between the two shares in training, in [0, 1): their mean is one half.
    test_share, validation_share : float, default=0.3 and 0.2
        Shares of the rows that go to these splits before thinning.
    random_state : int, Generator or None, default=0
        Splits and thins the rows.
    data_home, download
        Where ``law-school/lawschool.csv`` is: by default the folder named by ISRLEARN_DATA, then
        the user's cache, then a download checked by its sha256.

    Returns
    -------
    Splits
        X float64 as in the file, without the target; ``truth.names`` are its columns.

    Notes
    -----
    The paper shows this modification in a figure only; the numbers are ours.

    Examples
    --------
    >>> from isrlearn.datasets import load_law_school
    >>> splits = load_law_school()  # doctest: +SKIP
    >>> splits.train  # doctest: +SKIP
    EnvironmentData(n_samples=575, n_features=17, environments=['female', 'male'])
    """
    gap = checks.within("strength", strength, 0, 0.99)
    test = checks.within("test_share", test_share, 0.05, 0.9)
    validation = checks.within("validation_share", validation_share, 0.05, 0.9)
    if test + validation > 0.95:
        raise ValueError(
            f"test_share={test} and validation_share={validation} leave less than 0.05 of the "
            "rows to train on."
        )
    names, table = _table(content(LAW_SCHOOL_FILE, data_home, download=download))
    y, female = table[:, names.index(TARGET)], table[:, names.index(ENVIRONMENT)].astype(int)
    kept = [i for i, name in enumerate(names) if name != TARGET]
    truth = LawSchoolTruth(tuple(names[i] for i in kept))
    streams = Streams.of(random_state)
    order = streams.generator(Use.SHARED).permutation(len(y))
    stops = [0, round(test * len(y)), round((test + validation) * len(y)), len(y)]
    parts = {}
    for i, use in enumerate((Use.TEST, Use.VALIDATION, Use.TRAIN)):
        rows = order[stops[i] : stops[i + 1]]
        shift = 0.0 if use is Use.TEST else gap / 2
        rows = _thinned(rows, y > _HIGH, female, (0.5 - shift, 0.5 + shift), streams.generator(use))
        data = EnvironmentData(table[rows][:, kept], y[rows], GENDERS[female[rows]], truth)
        parts[use] = data
    return Splits(parts[Use.TRAIN], parts[Use.VALIDATION], parts[Use.TEST])


def _table(data: bytes) -> tuple[list[str], NDArray[np.float64]]:
    """Names of the columns and their numbers."""
    head, *lines = data.decode("utf-8").split()
    names = head.split(",")
    if TARGET not in names or ENVIRONMENT not in names:
        raise DataError(f"{LAW_SCHOOL_FILE.path} has no column {TARGET!r} or {ENVIRONMENT!r}")
    return names, np.array([line.split(",") for line in lines], dtype=np.float64)


def _thinned(
    rows: NDArray[np.intp],
    high: NDArray[np.bool_],
    female: NDArray[np.intp],
    shares: tuple[float, float],
    rng: np.random.Generator,
) -> NDArray[np.intp]:
    """As many of the rows as there can be with these shares of high grades, in random order."""
    chosen = []
    for gender, share in enumerate(shares):
        above, below = (rows[(female[rows] == gender) & (high[rows] == h)] for h in (True, False))
        n = min(len(above) / max(share, 1e-9), len(below) / max(1 - share, 1e-9))
        chosen += [above[: round(share * n)], below[: round((1 - share) * n)]]
    return rng.permutation(np.concatenate(chosen))
