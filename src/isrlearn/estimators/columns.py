"""What a column of a table holds: numbers, categories, ids, dates or free text."""

import re
import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isrlearn.core.labels import is_missing

#: Texts that stand for a missing value.
NO_VALUE = frozenset(("", "?", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "None"))
NUMBER, CATEGORIES, LEFT_OUT = "number", "categories", "left out"
#: Most columns that the categories of one column become, and rows that make a category one.
_MOST_CATEGORIES, _ENOUGH_ROWS = 50, 10
#: Fewest rows that show row numbers, and ids of one length; most columns of a table that are ids.
_FEWEST, _MANY, _MOST_IDS = 10, 100, 2
_ID_NAME = re.compile(r"(^|[\W_])(?i:id|uuid|guid)\Z|[a-z]I[dD]\Z")
_DATE = re.compile(
    r"(\d{4}[-/.]\d\d?([-/.]\d\d?)?|\d\d?[-/.]\d\d?[-/.](\d{4}|\d\d)"
    r"|\d\d?[ -][A-Za-z]{3,9}[ ,-]+\d{2,4}|[A-Za-z]{3,9} \d\d?,? \d{4})"
    r"([T ]\d\d?:\d\d(:\d\d(\.\d+)?)?( ?[AaPp][Mm]| ?Z|[+-]\d\d:?\d\d)?)?"
)
_TRUTH = {"True": 1, "False": 0}
_DECIMAL = re.compile(r"-?(0|[1-9][0-9]*)\.[0-9]+")
#: A number; and one with thousands separated, a comma before its decimals, a currency or a unit.
_PLAIN = re.compile(r"[-+]?\d+(\.\d+)?([eE][-+]?\d+)?")
_NUMBER = re.compile(
    rf"{_PLAIN.pattern}|[-+]?[$€£]? ?\d+(,\d{{3}})*([.,]\d+)? ?(%|[$€£]|[A-Za-zµ°/]{{1,8}})?"
)


@dataclass(frozen=True)
class Column:
    """What a :class:`TablePreparer` does with one column of a table.

    Examples
    --------
    >>> Column("city", "categories", "3 categories", categories=("Bonn", "Rome", "Turin")).outputs
    ('city=Bonn', 'city=Rome', 'city=Turin')
    """

    name: str
    use: str  #: "number", "categories" or "left out".
    why: str = ""
    fill: float | None = None  #: What replaces a missing number.
    categories: tuple[str, ...] = ()  #: Each becomes a column of zeros and ones.
    missing: bool = False  #: Whether a further column marks the rows without a value.
    zero: str | None = None  #: Of two categories, the one that has no column of its own.

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the columns it becomes."""
        if self.use == LEFT_OUT:
            return ()
        values: tuple[str, ...] = (self.name,) if self.use == NUMBER else ()
        values += tuple(f"{self.name}={category}" for category in self.categories)
        return (*values, f"{self.name} is missing") if self.missing else values


def counts_rows(column: NDArray) -> bool:
    """Whether a column holds different whole numbers, in order or without gaps."""
    n = len(column)
    if n < _FEWEST or not (np.isfinite(column) & (column == np.rint(column))).all():
        return False
    steps = np.diff(column)
    ordered = (steps > 0).all() or (steps < 0).all()
    return bool(ordered or (np.ptp(column) == n - 1 and len(np.unique(column)) == n))


def ids_among(table: Mapping[str, NDArray]) -> dict[str, str]:
    """Columns that look like ids or row numbers, and why."""
    found, alike = {}, []
    for name, values in table.items():
        numeric, named = values.dtype.kind == "f", _ID_NAME.search(name)
        if numeric and len(values) < _FEWEST and not named:
            continue  # at once: a short file can have many columns
        known = values[np.isfinite(values)] if numeric else values
        if numeric and not (len(known) and (known == np.rint(known)).all()):
            continue
        if named:
            found[name] = "its name is that of an id"
        elif numeric and counts_rows(values):
            found[name] = "row numbers or ids: whole numbers in order or without gaps"
        elif numeric and len(values) >= _MANY and known.min() >= 1000:
            digits = np.log10(known[[known.argmin(), known.argmax()]]).astype(int)
            if digits[0] == digits[1] and len(np.unique(known)) == len(values):
                alike.append(name)
    # More than a few such columns are measurements, such as counts of reads.
    why = "ids: whole numbers of one length, all different"
    return found | (dict.fromkeys(alike, why) if len(alike) <= _MOST_IDS else {})


def free_text(present: NDArray) -> str:
    """Why texts are not categories: they are dates, or hardly any occurs often."""
    counts = Counter(present.tolist())
    sample = list(counts)[:100]
    if sum(bool(_DATE.fullmatch(text)) for text in sample) >= 0.9 * len(sample):
        return "dates"
    if len(counts) > len(present) / 2 or sum(_frequent(counts).values()) < len(present) / 2:
        return f"names, ids or free text: {len(counts):,} different values{_as_text([*counts])}"
    return ""


def _frequent(counts: Counter[str]) -> dict[str, int]:
    """The categories that occur often enough, with their counts."""
    least = min(_ENOUGH_ROWS, counts.total() / 100)
    often = sorted((-n, name) for name, n in counts.items() if n >= least)
    return {name: -n for n, name in sorted(often[:_MOST_CATEGORIES], key=itemgetter(1))}


def _as_text(different: list[str]) -> str:
    """What to change if values are numbers with a unit or separators, or nearly all are numbers."""
    sample = different[:100]
    n_numbers = sum(bool(_NUMBER.fullmatch(text)) for text in sample)
    if len(different) <= _FEWEST or n_numbers < 0.9 * len(sample):
        return ""
    odd = next((text for text in different if not _PLAIN.fullmatch(text)), None)
    if odd is None:
        return "; to use them as numbers, convert the column"
    if _NUMBER.fullmatch(odd):
        return f"; to use them as numbers, write {shown_value(odd)} as a plain number"
    return f"; to use them as numbers, replace or empty cells such as {shown_value(odd)}"


def categories_of(name: str, values: NDArray, n_missing: int) -> Column:
    """The categories of a column, each of which becomes a column; one of two is enough."""
    counts = Counter(texts_of(values))
    kept, marked = tuple(_frequent(counts)), n_missing > 0
    n, why, zero, hint = len(counts), f"{len(kept)} categories", None, ""
    if n > len(kept):
        why = f"the {len(kept)} most frequent of {n:,} categories"
        hint = "" if values.dtype.kind == "f" else _as_text([*counts])
    elif n + marked == 2:
        zero = None if marked else kept[0]
        other = "a missing value" if zero is None else shown_value(zero)
        why, kept, marked = f"{other} is 0, {shown_value(kept[-1])} is 1", kept[-1:], False
    if marked:
        why += f", and a mark for {counted(n_missing, 'missing value')}"
    return Column(name, CATEGORIES, why + hint, None, kept, marked, zero)


def write_column(column: Column, values: NDArray, out: NDArray) -> None:
    """Write the numbers of a column (n, m)."""
    if column.use == NUMBER:
        numeric = values.dtype.kind == "f"
        out[:, 0] = values if numeric else np.nan
        for row in [] if numeric else np.flatnonzero(~is_missing(values)):
            try:
                out[row, 0] = float(_TRUTH.get(_usual(values[row]), values[row]))
            except ValueError:
                what = f"holds {shown_value(values[row])} in row {row + 1}, not a number"
                raise ValueError(f"column {column.name!r} {what}") from None
        missing = np.isnan(out[:, 0])
        out[missing, 0] = column.fill
        if (infinite := np.isinf(out[:, 0])).any():
            row = infinite.argmax()
            raise ValueError(f"column {column.name!r} is {out[row, 0]} in row {row + 1}")
    else:
        every = (*column.categories, *([] if column.zero is None else [column.zero]))
        place = {form(c): i for form in (_usual, str) for i, c in enumerate(every)}
        missing = is_missing(values)
        codes, present = np.full(len(values), -1), texts_of(values[~missing])
        codes[~missing] = [place.get(text, place.get(_usual(text), -1)) for text in present]
        if every and len(present) >= _ENOUGH_ROWS and (codes < 0).all():
            warnings.warn(
                f"column {shown_value(column.name)} holds none of the categories that it had when "
                f"it was prepared, such as {shown_value(every[0])}, but {shown_value(present[0])}",
                UserWarning,
                stacklevel=3,
            )
        m = len(column.categories)
        out[:, :m] = codes[:, None] == np.arange(m)
    if column.missing:
        out[:, -1] = missing


def _usual(text: str) -> str:
    """A number or truth value as Python writes it: tables may hold 2, 2.0 and 2.00, or TRUE."""
    if text.capitalize() in _TRUTH:
        return text.capitalize()
    return texts_of(np.array([float(text)]))[0] if _DECIMAL.fullmatch(text) else text


def texts_of(present: NDArray) -> list[str]:
    """Values that are not missing as texts; whole numbers without a fraction."""
    if present.dtype.kind != "f":
        return present.tolist()
    return [f"{v:.0f}" if v == np.rint(v) else str(v) for v in present.tolist()]


def column_values(column: Any) -> NDArray:
    """A column as floats with NaN, or as texts with None, where values are missing."""
    values = np.asarray(column)
    if values.ndim != 1:
        raise ValueError(f"a column must have one value per row; its shape is {values.shape}")
    if values.dtype.kind in "iuf":
        return values.astype(np.float64, copy=False)
    if values.dtype.kind == "m":
        return values / np.timedelta64(1, "s")
    if values.dtype.kind == "M":
        values = np.where(np.isnat(values), "", np.datetime_as_string(values))
    known = ~is_missing(values)
    present = values[known].tolist()
    sound = all(isinstance(v, Real | Decimal) and not isinstance(v, bool) for v in present)
    if values.dtype.kind == "O" and present and sound:
        numbers = np.full(len(values), np.nan)
        numbers[known] = present
        return numbers
    texts = np.full(len(values), None, dtype=object)
    stripped = (str(value).strip() for value in present)
    texts[known] = [None if text in NO_VALUE else text for text in stripped]
    return texts


def counted(n: int, what: str) -> str:
    """A number of things, for a message."""
    return f"{n:,} {what}{'s' * (n != 1)}"


def shown_value(text: object) -> str:
    """A value of a table, for a message."""
    return repr(text if len(str(text)) <= 40 else f"{str(text)[:40]}...")
