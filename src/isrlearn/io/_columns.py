"""Which columns of a table are meant: by name, by prefix, by range."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping, Sequence

from isrlearn.io.errors import TableError, listed, nearest, shown

_NUMBERED = re.compile(r"(.*?)([0-9]{1,18})", flags=re.DOTALL)
_NO_GROUPS: Mapping[str, tuple[str, ...]] = {}


def select(
    columns: Sequence[str],
    wanted: str | Sequence[str],
    *,
    groups: Mapping[str, tuple[str, ...]] = _NO_GROUPS,
    reserved: Sequence[str] = (),
) -> list[str]:
    """Names of the wanted columns, each once, in the order they were asked for.

    Parameters
    ----------
    columns : sequence of str
        All columns of the table.
    wanted : str or sequence of str
        Names, patterns such as ``f_*`` and ranges such as ``f0:f511`` (both ends included); one
        string may hold several, separated by commas. A column's own name always means that
        column. A range of two numbered names means the numbers between them, wherever the
        columns stand; any other range means the columns that stand between the two.
    groups : mapping of str to names, optional
        Names that stand for several columns: a column of lists, an array of an archive.
    reserved : sequence of str, optional
        Label and environment: patterns and ranges pass over them, naming one is an error.

    Examples
    --------
    >>> select(["id", "f0", "f1", "f2", "y"], "id,f1:f2")
    ['id', 'f1', 'f2']
    >>> select(["id", "f0", "f1", "f2", "y"], "f*")
    ['f0', 'f1', 'f2']
    """
    position = {name: i for i, name in enumerate(columns)}
    chosen: dict[str, None] = {}
    for token in _tokens(wanted, position):
        if token in reserved:
            raise TableError(f"column {shown(token)} is the label or the environment, no feature")
        if token in position:
            chosen[token] = None
            continue
        found = groups.get(token) or _several(token, columns, position)
        chosen.update(dict.fromkeys(name for name in found if name not in reserved))
    if not chosen:
        raise TableError(f"no feature is left of {listed(columns)}")
    return list(chosen)


def require(columns: Sequence[str], names: Sequence[str]) -> list[str]:
    """The names, if the table has every one of them.

    Examples
    --------
    >>> require(["b", "a", "c"], ["a", "b"])
    ['a', 'b']
    """
    there = set(columns)
    missing = [name for name in names if name not in there]
    if missing:
        many = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise TableError(
            f"column {shown(missing[0])}{many} of the model's {len(names)} features is not in "
            f"the table{nearest(missing[0], columns)}"
        )
    return list(names)


def column(columns: Sequence[str], name: str, role: str) -> str:
    """The name, if it is a column."""
    if name not in columns:
        raise TableError(f"there is no {role} column {shown(name)}{nearest(name, columns)}")
    return name


def _tokens(wanted: str | Sequence[str], position: Mapping[str, int]) -> list[str]:
    tokens: list[str] = []
    for entry in [wanted] if isinstance(wanted, str) else wanted:
        # A name may hold a comma of its own.
        tokens += [entry] if entry in position else [t.strip() for t in entry.split(",")]
    return [token for token in tokens if token]


def _several(token: str, columns: Sequence[str], position: Mapping[str, int]) -> list[str]:
    """Columns of a pattern or a range."""
    if any(c in token for c in "*?["):
        found = [name for name in columns if fnmatch.fnmatchcase(name, token)]
        if not found:
            raise TableError(f"no column matches {shown(token)}; there are {listed(columns)}")
        return found
    first, colon, last = token.partition(":")
    if not colon:
        raise TableError(f"there is no column {shown(token)}{nearest(token, columns)}")
    for end in (first, last):
        if end not in position:
            raise TableError(
                f"there is no column {shown(end)}, an end of the range {shown(token)}"
                f"{nearest(end, columns)}"
            )
    numbered = _NUMBERED.fullmatch(first), _NUMBERED.fullmatch(last)
    if numbered[0] and numbered[1] and numbered[0][1] == numbered[1][1]:
        return _numbers(token, columns, numbered[0][1], int(numbered[0][2]), int(numbered[1][2]))
    start, stop = position[first], position[last]
    if start > stop:
        raise TableError(f"in the range {shown(token)} the last column stands before the first")
    return list(columns[start : stop + 1])


def _numbers(token: str, columns: Sequence[str], prefix: str, low: int, high: int) -> list[str]:
    """Columns numbered from low to high, none left out."""
    found: dict[int, str] = {}
    for name in columns:
        match = _NUMBERED.fullmatch(name)
        if match and match[1] == prefix and low <= int(match[2]) <= high:
            if int(match[2]) in found:
                raise TableError(
                    f"the range {shown(token)} holds both {shown(found[int(match[2])])} and "
                    f"{shown(name)}: name the columns one by one"
                )
            found[int(match[2])] = name
    if low > high:
        raise TableError(f"in the range {shown(token)} the last number is below the first")
    if len(found) <= high - low:
        missing = next(i for i in range(low, high + 1) if i not in found)
        raise TableError(f"the range {shown(token)} has no column {shown(f'{prefix}{missing}')}")
    return [found[i] for i in range(low, high + 1)]
