"""The feature columns of a table: chosen by name, pattern or range, and examined."""

import re
from collections import Counter
from collections.abc import Sequence
from fnmatch import fnmatchcase
from itertools import chain
from typing import Any
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from isrlearn.core.labels import encode
from isrlearn.engine import row_blocks
from isrlearn.estimators.columns import NO_VALUE, counts_rows
from isrlearn.io._formats import Source
from isrlearn.io.errors import PREPARE, TableError, listed, shown, suggestion
from isrlearn.io.labels import is_float
from isrlearn.markup import names_in

_NUMBERED = re.compile(r"(.*?)([0-9]{1,18})", flags=re.DOTALL)
#: Largest magnitudes whose squares (and, in float64, fourth powers) can still be summed.
_LARGEST = {np.dtype(np.float32): 1e15, np.dtype(np.float64): 1e60}
#: Largest probability that separation by chance may have, over all features.
_CHANCE = 1e-3
_MOST_EXTREMES = 10_000_000


def chosen_features(source: Source, wanted: Any, reserved: Sequence[str | None]) -> list[str]:
    """Names of the feature columns; those reserved are the label, environment and clusters."""
    if wanted is None:
        if not source.groups and not source.features:
            raise TableError(
                f"no array is two-dimensional (n, d); there are {listed(source.columns)}"
            )
        if not source.features:
            arrays = listed(source.groups)
            raise TableError(f"choose the array of the features with --features: {arrays}")
        skipped = {*reserved, *source.index}
        chosen = [name for name in source.features if name not in skipped]
    elif isinstance(wanted, str):
        # A name may contain a comma.
        tokens = [wanted] if wanted in source.columns else names_in(wanted)
        found = chain(*(_expanded(source, token, reserved) for token in tokens))
        chosen = list(dict.fromkeys(found))
    elif reserved and reserved[0] in wanted:
        raise TableError(f"the label {shown(reserved[0])} cannot be a feature")
    else:
        chosen = required(source, wanted, "feature")
    if not chosen:
        raise TableError(f"no feature column is left; the columns are {listed(source.columns)}")
    return chosen


def required(source: Source, names: Sequence[str], role: str) -> list[str]:
    """The names, if the table has all of them."""
    there = set(source.columns)
    missing = [name for name in names if name not in there]
    if missing:
        more = f" (and {len(missing) - 1} more of the {len(names)})" if len(missing) > 1 else ""
        hint = suggestion(missing[0], source.columns)
        if any("." in name and is_float(name) for name in source.columns):
            hint += "; is the line with the names of the columns missing?"
        raise TableError(f"there is no {role} column {shown(missing[0])}{more}{hint}")
    return list(names)


def _expanded(source: Source, token: str, reserved: Sequence[str | None]) -> list[str]:
    """Columns of a name, group, pattern or range; the last three skip reserved columns."""
    columns = source.columns
    if token in reserved:
        raise TableError(f"{shown(token)} is the label, environment or cluster, not a feature")
    if token in columns:
        return [token]
    if token in source.groups:
        names: Sequence[str] = source.groups[token]
    elif any(c in token for c in "*?["):
        names = [name for name in columns if fnmatchcase(name, token)]
        if not names:
            raise TableError(f"no column matches {shown(token)}; there are {listed(columns)}")
    elif ":" in token:
        names = _range(source, *token.split(":", 1))
    else:
        names = required(source, [token], "feature")
    skipped = {*reserved, *source.index}
    return [name for name in names if name not in skipped]


def _range(source: Source, first: str, last: str) -> Sequence[str]:
    """Columns from first to last: by number if only a number differs, else by position."""
    required(source, [first, last], "feature")
    columns, a, b = source.columns, _NUMBERED.fullmatch(first), _NUMBERED.fullmatch(last)
    names: Sequence[str] = columns[columns.index(first) : columns.index(last) + 1]
    if a and b and a[1] == b[1]:
        # Numbers in the file's own names must not make this loop longer than its columns.
        numbers = range(int(a[2]), min(int(b[2]), int(a[2]) + len(columns)) + 1)
        names = [f"{a[1]}{i:0{len(a[2])}}" for i in numbers]
    if not names:
        raise TableError(f"the range {shown(f'{first}:{last}')} runs backwards")
    return required(source, names, "feature")


def check_numbers(X: NDArray, names: Sequence[str]) -> None:
    """Raise for numbers that are not finite or too large to be squared, and name their columns."""
    largest, peaks = _LARGEST[X.dtype], np.zeros(X.shape[1])
    for _, block in row_blocks(X):
        peaks = np.maximum(peaks, np.abs(block).max(axis=0))
    bad = np.flatnonzero(~(peaks <= largest))  # NaN fails every comparison
    if not len(bad):
        return
    column = X[:, bad[0]]
    row = int((~(np.abs(column) <= largest)).argmax())
    what, hint = f"is {column[row]:g}", ""
    if np.isnan(column[row]):
        what, hint = "is missing (NaN)", f"; impute missing numbers first: {PREPARE}"
    elif np.isfinite(column[row]):
        hint = f"; numbers of type {X.dtype} can be used up to {largest:g}"
    more = f"; look also at {listed(names[j] for j in bad[1:])}" if len(bad) > 1 else ""
    raise TableError(f"column {shown(names[bad[0]])} {what} in row {row + 1}{more}{hint}")


def suspects(
    X: NDArray, names: tuple[str, ...], y: NDArray | None, environments: NDArray | None
) -> list[str]:
    """Sentences about columns that may not be what they are taken for.

    Features that look like row numbers or separate groups perfectly, and labels and environments
    that look like missing values or like each other.
    """
    found = []
    if numbers := [name for i, name in enumerate(names) if counts_rows(X[:, i])]:
        looks = "these features look like row numbers, ids or dates"
        found.append(f"{looks}: {listed(numbers)}; leave them out if they are")
    for what, values in {"labels": y, "environments": environments}.items():
        groups, codes = encode(np.zeros(0) if values is None else values)
        if copies := [names[i] for i in _separating(X, codes, len(groups))]:
            separates = f"each of these features alone separates the {what}"
            found.append(f"{separates}: {listed(copies)}; leave them out if they are copies")
        words = groups.tolist() if groups.dtype.kind == "U" else []
        same = Counter(plain := [normalize("NFKC", word).strip().casefold() for word in words])
        if alike := [word for word, key in zip(words, plain, strict=True) if same[key] > 1]:
            differ = "differ only in spaces, case or the encoding of their characters"
            found.append(f"some {what} {differ}, and count as different: {listed(alike)}")
        marks = [] if groups.dtype.kind == "f" else [v for v in groups.tolist() if v in NO_VALUE]
        if marks:
            n = np.count_nonzero(np.isin(groups, marks)[codes[codes >= 0]])
            taken = f"{n} of the {what} are {listed(marks)}, which count as any other value"
            found.append(f"{taken}; leave cells empty where there is none")
    return found


def _separating(X: NDArray, codes: NDArray, K: int) -> NDArray[np.intp]:
    """Features whose values in each of K groups do not overlap with those in any other."""
    d = X.shape[1]
    sizes = np.bincount(codes[codes >= 0], minlength=K)
    # Ranks in random order keep K groups together with probability K! ∏ n_k! / n!.
    chance = gammaln(K + 1) + gammaln(sizes + 1).sum() - gammaln(sizes.sum() + 1) + np.log(d)
    if K < 2 or chance > np.log(_CHANCE) or K * d > _MOST_EXTREMES:
        return np.zeros(0, dtype=np.intp)
    low, high = np.full((K + 1, d), np.inf), np.full((K + 1, d), -np.inf)
    for rows, block in row_blocks(X):
        order = np.argsort(codes[rows])
        # Rows of unknown group have the code -1, the last place.
        groups, starts = np.unique(codes[rows][order], return_index=True)
        low[groups] = np.minimum(low[groups], np.minimum.reduceat(block[order], starts))
        high[groups] = np.maximum(high[groups], np.maximum.reduceat(block[order], starts))
    order = np.argsort(low[:K], axis=0)
    ends, starts = (np.take_along_axis(a[:K], order, axis=0) for a in (high, low))
    return np.flatnonzero((ends[:-1] < starts[1:]).all(axis=0))
