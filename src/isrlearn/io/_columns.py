"""Which columns of a table are meant: by name, by pattern, by range."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping, Sequence

from isrlearn.io.errors import TableError, listed, shown, suggestion

_NUMBERED = re.compile(r"(.*?)([0-9]{1,18})", flags=re.DOTALL)
_NO_GROUPS: Mapping[str, tuple[str, ...]] = {}


def select(
    columns: Sequence[str],
    wanted: str,
    *,
    groups: Mapping[str, tuple[str, ...]] = _NO_GROUPS,
    reserved: Sequence[str | None] = (),
) -> list[str]:
    """Names of the wanted columns, each once, in the order they were asked for.

    Parameters
    ----------
    columns : sequence of str
        All columns of the table.
    wanted : str
        Names, patterns such as ``f_*`` and ranges such as ``f0:f511`` (both ends included),
        separated by commas. A column's own name always means that column. A range of two
        numbered names means the numbers between them, wherever the columns are; any other range
        means the columns that are between the two.
    groups : mapping of str to names, optional
        Names that stand for several columns: a column of lists, an array of an archive.
    reserved : sequence of str, optional
        Label and environment: patterns and ranges skip them, naming one is an error.

    Examples
    --------
    >>> select(["id", "f0", "f1", "f2", "y"], "id,f1:f2")
    ['id', 'f1', 'f2']
    >>> select(["id", "f0", "f1", "f2", "y"], "f*")
    ['f0', 'f1', 'f2']
    """
    there = set(columns)
    # A name may contain a comma.
    tokens = [wanted] if wanted in there else [token.strip() for token in wanted.split(",")]
    chosen: dict[str, None] = {}
    for token in filter(None, tokens):
        if token in reserved:
            raise TableError(
                f"column {shown(token)} is the label or the environment; it cannot be a feature"
            )
        found = [token] if token in there else groups.get(token) or _several(token, columns)
        chosen.update(dict.fromkeys(name for name in found if name not in reserved))
    if not chosen:
        raise TableError(f"no feature is left of {listed(columns)}")
    return list(chosen)


def require(columns: Sequence[str], names: Sequence[str], role: str = "feature") -> list[str]:
    """The names, if the table has every one of them.

    Examples
    --------
    >>> require(["b", "a", "c"], ["a", "b"])
    ['a', 'b']
    """
    there = set(columns)
    missing = [name for name in names if name not in there]
    if missing:
        more = f" (and {len(missing) - 1} more of the {len(names)})" if len(missing) > 1 else ""
        raise TableError(
            f"there is no {role} column {shown(missing[0])}{more}{suggestion(missing[0], columns)}"
        )
    return list(names)


def _several(token: str, columns: Sequence[str]) -> Sequence[str]:
    """Columns of a pattern or a range."""
    if any(c in token for c in "*?["):
        found = [name for name in columns if fnmatch.fnmatchcase(name, token)]
        if not found:
            raise TableError(f"no column matches {shown(token)}; there are {listed(columns)}")
        return found
    first, colon, last = token.partition(":")
    require(columns, [first, last] if colon else [token])
    a, b = _NUMBERED.fullmatch(first), _NUMBERED.fullmatch(last)
    if a and b and a[1] == b[1]:
        return _numbers(token, columns, a[1], int(a[2]), int(b[2]))
    start, stop = columns.index(first), columns.index(last)
    if start > stop:
        raise TableError(f"in the range {shown(token)} the last column is before the first")
    return columns[start : stop + 1]


def _numbers(token: str, columns: Sequence[str], prefix: str, low: int, high: int) -> list[str]:
    """Columns numbered from low to high, all of which must be there once."""
    if low > high:
        raise TableError(f"in the range {shown(token)} the last number is below the first")
    found: dict[int, str] = {}
    for name in columns:
        match = _NUMBERED.fullmatch(name)
        if match and match[1] == prefix and low <= int(match[2]) <= high:
            twin = found.setdefault(int(match[2]), name)
            if twin != name:
                raise TableError(
                    f"the range {shown(token)} holds both {shown(twin)} and {shown(name)}: name "
                    "the columns one by one"
                )
    if len(found) <= high - low:
        missing = next(i for i in range(low, high + 1) if i not in found)
        raise TableError(f"the range {shown(token)} has no column {shown(f'{prefix}{missing}')}")
    return [found[i] for i in range(low, high + 1)]
