"""A table of features, labels and environments, read from a file of any known format."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from isrlearn.core.labels import is_missing
from isrlearn.engine.rows import Rows
from isrlearn.estimators import TablePreparer
from isrlearn.io._columns import check_numbers, chosen_features, required, suspects
from isrlearn.io._formats import (
    Source,
    check_regular,
    loaded,
    open_archive,
    open_array,
    read_vector,
)
from isrlearn.io._parquet import open_parquet
from isrlearn.io._text import open_text
from isrlearn.io.errors import TableError, listed, reading, shown, suggestion
from isrlearn.io.labels import as_numbers, looks_continuous

_FORMATS: dict[str, Callable[[Path], Source]] = {
    ".csv": open_text,
    ".tsv": open_text,
    ".csv.gz": open_text,
    ".tsv.gz": open_text,
    ".npy": open_array,
    ".npz": open_archive,
    ".parquet": open_parquet,
    ".zarr": open_array,
}
#: Where the labels of an array are looked for by default.
_LABEL_FILES = ("{}.labels.csv", "{}.labels.parquet", "{}.labels.npz", "{}.csv", "labels.csv")


@dataclass(frozen=True, eq=False)
class Table:
    """Features of samples and, if requested, their labels and environments.

    Examples
    --------
    >>> import numpy as np
    >>> from isrlearn.io import Table
    >>> len(Table(Path("a.npy"), np.ones((3, 2)), ("f0", "f1"), named=False))
    3
    """

    path: Path  #: File of the features.
    #: Features (n, d), float32 or float64, all finite; a memory map if the file is a .npy array,
    #: and :class:`isrlearn.engine.Rows` if it is read block by block.
    X: Any
    feature_names: tuple[str, ...]  #: Names of the columns of X.
    named: bool  #: Whether the names come from the file.
    y: Any = None  #: Labels (n,), without missing values.
    environments: Any = None  #: Environments (n,), None or NaN where unknown.
    #: What to know about the table: columns that were left out, and features that look like row
    #: numbers or like a copy of the label.
    notes: tuple[str, ...] = ()
    #: What was done with each column of the file to get X.
    preparation: TablePreparer | None = None
    clusters: Any = None  #: What rows have in common (n,), such as their patient.

    def __len__(self) -> int:
        return len(self.X)


def read_table(
    path: str | os.PathLike[str],
    *,
    label: str | None = None,
    environment: str | None = None,
    features: str | Sequence[str] | None = None,
    labels: str | os.PathLike[str] | None = None,
    task: str = "classification",
    stream: bool = False,
    prepare: TablePreparer | None = None,
    clusters: str | None = None,
) -> Table:
    r"""Table of a .csv, .tsv (also .gz), .parquet, .npz or .npy file, or of a .zarr array.

    Parameters
    ----------
    path : path
        Its suffix gives the format. A .npy array is mapped, not read.
    label, environment : str, optional
        Names of the columns (or of the arrays in a .npz archive) that hold labels and environments,
        or the path of a one-dimensional .npy array.
    features : str or sequence of str, optional
        Feature columns. A string holds names, patterns (``f_*``) and ranges (``f0:f511``),
        separated by commas; a sequence holds plain names. Default: all columns except label,
        environment, clusters and the index of a data frame; for an archive, its array X. The
        columns of an array are named f0, f1, …; those of a Parquet column v of lists v_0, v_1, …
    labels : path, optional
        Another table with the same number of rows that holds label and environment. Default for
        an array ``name.npy``: ``name.labels.csv`` (or .parquet, .npz), ``name.csv`` or
        ``labels.csv`` in the same folder.
    task : {"classification", "regression", "auto"}, default="classification"
        For a regression, labels in a text file are numbers. Classes (and environments) are integers
        only if all of them are written as Python writes integers, else text: 007 is not 7. "auto"
        takes more than 20 different numbers, some with a fraction, as numbers.
    stream : bool, default=False
        Read features of .npy, .parquet and .zarr block by block, whenever they are needed:
        the estimators accept the table's X like an array. Numbers that are not finite are detected
        when they are read.
    prepare : TablePreparer, optional
        Prepares columns of any kind of a .csv, .tsv or .parquet file, in memory. It is fitted here,
        as a copy, unless it is fitted already, and is then the table's ``preparation``. Without
        it, features must be complete columns of numbers.
    clusters : str, optional
        As `label`: which rows belong together, such as those of a patient.

    Raises
    ------
    TableError
        If the file does not exist, cannot be read, lacks a column or holds a feature that is not
        a number.

    Examples
    --------
    >>> rows = ["age,dose,ill,hospital", "70,0.5,yes,A", "40,1.5,no,"]
    >>> _ = Path("patients.csv").write_text("\n".join(rows))
    >>> table = read_table("patients.csv", label="ill", environment="hospital")
    >>> table.X.tolist(), table.y.tolist(), table.environments.tolist()
    ([[70.0, 0.5], [40.0, 1.5]], ['yes', 'no'], ['A', None])
    """
    source = open_table(path)
    fitted = hasattr(prepare, "columns_")
    if not source.mixed and not fitted:
        prepare = None  # an array holds numbers only
    roles = {"label": label, "environment": environment, "clusters": clusters}
    given = [*dict.fromkeys(filter(None, roles.values()))]
    for role in ("environment", "clusters"):
        if label and label == roles[role]:
            raise TableError(f"label and {role} must be two columns; both are {shown(label)}")
    inside = [name for name in given if not name.endswith(".npy")]
    holder = _holder(source, labels, inside)
    # The small files first, so that their errors are reported at once.
    found: dict[Any, Any] = {n: read_vector(Path(n)) for n in given if n not in inside}
    with reading(holder.path):
        for role, name in roles.items():
            required(holder, [name] if name in inside else [], role)
        if holder is not source:
            found |= holder.read([], inside)[-1]
            inside = []
    with reading(source.path):
        reserved = [*roles.values()] if holder is source else []
        if prepare is not None and fitted:
            features = [column.name for column in prepare.columns_ if column.outputs]
        chosen = chosen_features(source, features, reserved)
        if prepare is None:
            X, _, own = source.read(chosen, inside)
        else:
            X, own, prepare = _prepared(source, chosen, inside, prepare)
            chosen = prepare.get_feature_names_out().tolist()
        found |= own
        if isinstance(X, Rows) and not stream:
            X = loaded(source.path, X)
        for role, name in roles.items():
            _check_labels(X, found.get(name), role)
        if isinstance(X, np.ndarray) and not (stream and isinstance(X, np.memmap)):
            check_numbers(X, chosen)
    y, environments, groups = map(found.get, roles.values())
    if y is not None and (task == "regression" or (task == "auto" and looks_continuous(y))):
        y = as_numbers(y, holder.path)
    names, notes = tuple(chosen), []
    if features is None or isinstance(features, str):  # chosen now, not for a model that has them
        left_out = sorted({*source.index} - {*names, *roles.values()})
        notes = [f"left out as an index: {listed(left_out)}"] if left_out else []
        notes += [] if stream else suspects(X, names, y, environments)
        if "split" in source.columns and not source.mixed:
            notes.append("the array 'split' is not used: rows of all splits were read")
    return Table(Path(path), X, names, source.named, y, environments, tuple(notes), prepare, groups)


def _prepared(
    source: Source, features: Sequence[str], labels: Sequence[str], prepare: TablePreparer
) -> tuple[NDArray, dict[str, NDArray], TablePreparer]:
    """Prepared features, labels, and what prepared them, fitted on them unless it was before."""
    known = getattr(prepare, "columns_", None)
    as_text = prepare.categorical if known is None else [c.name for c in known if c.categories]
    # Columns that are excluded may hold what cannot be read.
    excluded = {*features} & {*prepare.exclude} if known is None else set()
    used = [name for name in features if name not in excluded]
    rows, texts, own = source.read(used, labels, as_text)
    numbers = loaded(source.path, rows)
    place = {name: i for i, name in enumerate(n for n in used if n not in texts)}
    found = {n: texts[n] if n in texts else numbers[:, place[n]] for n in used}
    found |= dict.fromkeys(excluded, np.full(len(numbers), np.nan))
    columns = {name: found[name] for name in features}
    try:
        prepare = clone(prepare).fit(columns) if known is None else prepare
        if known is not None or not prepare.plain_:
            return prepare.transform(columns), own, prepare
    except ValueError as error:
        raise TableError(str(error)) from None
    picked = [place[name] for name in prepare.get_feature_names_out()]
    every = picked == [*range(numbers.shape[1])]
    return numbers if every else numbers[:, picked], own, prepare


def read_columns(
    path: str | os.PathLike[str],
    *,
    label: str | None = None,
    labels: str | os.PathLike[str] | None = None,
) -> dict[str, NDArray]:
    r"""Every column of a table by its name: numbers, or text and None where a value is missing.

    Parameters
    ----------
    path : path
        As for `read_table`. Columns of the index of a data frame are left out.
    label : str, optional
        A column that holds classes, which are text or integers.
    labels : path, optional
        Another table of the same rows, whose columns are added; by default that of an array.

    Examples
    --------
    >>> _ = Path("wards.csv").write_text("age,ward\n70.5,A\n,B\n")
    >>> {name: column.tolist() for name, column in read_columns("wards.csv").items()}
    {'age': [70.5, nan], 'ward': ['A', 'B']}
    """
    source = open_table(path)
    found: dict[str, NDArray] = {}
    with reading(source.path):
        every = [name for name in source.columns if name not in source.index]
        classes, others = [n for n in every if n == label], [n for n in every if n != label]
        # The columns of an archive are read array by array.
        for group in [others] if source.mixed else source.groups.values():
            rows, texts, own = source.read(group, classes if source.mixed else [], [])
            names = [name for name in group if name not in texts]
            found |= dict(zip(names, loaded(source.path, rows).T, strict=True)) | texts | own
        single = [name for name in every if name not in found]
        found |= source.read([], single)[-1] if single else {}
        found = {name: found[name] for name in every}
    beside = [labels] if labels else [p for p in label_files(path) if p.is_file()][:1]
    for other in beside:
        found |= read_columns(other, label=label)
    if label in found:
        with reading(source.path):
            _check_labels(found[label], found[label], "label")
    return found


def open_table(path: str | os.PathLike[str]) -> Source:
    """The table of a file of which only the names of the columns have been read."""
    path = Path(path)
    suffix = _suffix(path)
    if path.is_dir() and suffix != ".zarr":
        inside = _tables_in(path)
        hint = f": it holds {listed(inside)}" if inside else ""
        raise TableError(f"{path}: this is a folder; name a table in it{hint}")
    if suffix not in _FORMATS:
        raise TableError(
            f"{path}: a table's name must end in {', '.join(_FORMATS)}; this one ends in "
            f"{shown(path.suffix)}"
        )
    if not path.exists():
        hint = suggestion(path.name, _tables_in(path.parent))
        raise TableError(f"{path}: there is no such file{hint if 'did you' in hint else ''}")
    with reading(path):
        if suffix != ".zarr":
            check_regular(path)
            if not path.stat().st_size:
                raise TableError("the file is empty")
        elif not path.is_dir():
            raise TableError("this is not the folder of a Zarr array")
        return _FORMATS[suffix](path)


def _suffix(path: Path) -> str:
    """The ending of a name that gives the format: two parts if the file is compressed."""
    return "".join(path.suffixes[-2 if path.suffix.lower() == ".gz" else -1 :]).lower()


def _tables_in(folder: Path) -> list[str]:
    """Names of the tables in a folder, if there is one."""
    files = folder.iterdir() if folder.is_dir() else ()
    return sorted(file.name for file in files if _suffix(file) in _FORMATS)[:1000]


def label_files(path: str | os.PathLike[str]) -> list[Path]:
    """Files where the labels of an array are looked for; none for a table with columns."""
    path, arrays = Path(path), (".npy", ".zarr")
    forms = _LABEL_FILES if path.suffix.lower() in arrays else ()
    return [path.with_name(form.format(path.stem)) for form in forms]


def _holder(source: Source, labels: Any, names: Sequence[str]) -> Source:
    """The table of the labels: the one given, one next to an array, or that of the features."""
    tried = label_files(source.path) if labels is None and names else []
    found = [path for path in tried if path.is_file()] if labels is None else [labels]
    if tried and not found:
        raise TableError(
            f"{source.path}: an array has no column {shown(names[0])}, and none of "
            f"{', '.join(path.name for path in tried)} is next to it; name the file of the labels"
        )
    return open_table(found[0]) if found else source


def _check_labels(X: Any, labels: NDArray | None, role: str) -> None:
    """Raise unless there is one value per row; labels may not be missing."""
    if not len(X):
        raise TableError("the table has no rows")
    if labels is None:
        return
    if len(labels) != len(X):
        raise TableError(f"there are {len(X)} rows, but the {role} column has {len(labels)}")
    missing = np.flatnonzero(is_missing(labels))
    if role == "label" and len(missing):
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise TableError(f"the label is missing in row {missing[0] + 1}{more}; drop such rows")
