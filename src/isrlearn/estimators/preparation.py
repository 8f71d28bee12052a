"""Tables with categories, missing values, ids and dates, turned into numbers."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import _check_n_features, check_array, check_is_fitted

from isrlearn.core.labels import is_missing
from isrlearn.estimators.columns import (
    CATEGORIES,
    LEFT_OUT,
    NUMBER,
    Column,
    categories_of,
    column_values,
    counted,
    free_text,
    ids_among,
    shown_value,
    write_column,
)
from isrlearn.estimators.linear import with_parameters
from isrlearn.markup import listed
from isrlearn.validation import check_choice, know_features

#: Most columns that a message names.
_MOST_SHOWN = 12
_FILLS: dict[str | None, Callable[[NDArray], Any]] = {"median": np.median, "mean": np.mean}


@with_parameters
class TablePreparer(TransformerMixin, BaseEstimator):
    """Numbers from a table with categories, missing values, ids and dates.

    Numbers are kept, and their missing values replaced by the median, with a further column that
    marks them. Each category of a text becomes a column of zeros and ones. Ids, dates, row
    numbers, free text and columns with one value are left out. ``describe()`` says what was done
    with each column, and why; all of it is learned from the rows of `fit`.

    Parameters
    ----------
    include : sequence of str, default=()
        Columns to use although they look like ids, dates or free text.
    exclude : sequence of str, default=()
        Columns to leave out.
    categorical : sequence of str, default=()
        Columns whose values are categories although they are numbers, such as codes.
    impute : {"median", "mean", None}, default="median"
        What replaces missing numbers. None: they are an error.
    strict : bool, default=False
        Every column must hold numbers: nothing is encoded or left out without being named above.

    Attributes
    ----------
    columns_ : tuple of Column
        What is done with each column.
    n_features_in_, feature_names_in_ : int and ndarray of str
        Number of columns; their names, if X was a data frame.

    Notes
    -----
    At most 50 categories of a column are kept, the most frequent ones, and none of less than ten
    rows (in less than 1,000 rows: of less than 1 %); the others, and those never seen in `fit`,
    are zero in all columns. Two categories take one column.

    Examples
    --------
    >>> import pandas as pd
    >>> from isrlearn import TablePreparer
    >>> frame = pd.DataFrame({
    ...     "patient_id": [17, 4, 23, 8], "age": [70, None, 40, 52], "sex": ["f", "m", "f", "m"]
    ... })
    >>> preparer = TablePreparer().fit(frame)
    >>> preparer.transform(frame).tolist()
    [[70.0, 0.0, 0.0], [52.0, 1.0, 1.0], [40.0, 0.0, 0.0], [52.0, 0.0, 1.0]]
    >>> for columns, use, why in preparer.describe():
    ...     print(columns, "|", use, "|", why)
    patient_id | left out | its name is that of an id
    age | number | 1 missing value, replaced by the median 52 and marked
    sex | categories | 'f' is 0, 'm' is 1
    """

    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    categorical: Sequence[str] = ()
    impute: str | None = "median"
    strict: bool = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn what to do with each column of a data frame, a mapping of columns or an array."""
        check_choice("impute", self.impute, [*_FILLS, None])
        table = columns_of(X)
        for parameter in ("include", "exclude", "categorical"):
            given = getattr(self, parameter)
            unknown = [given] if isinstance(given, str) else [n for n in given if n not in table]
            if unknown:
                near = get_close_matches(unknown[0], table, n=2)
                hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
                raise ValueError(
                    f"{parameter} must be a list of columns of the table; got "
                    f"{shown_value(unknown[0])}{hint}"
                )
        values = {name: column_values(column) for name, column in table.items()}
        ids = {} if self.strict else ids_among(values)
        found = [self._decide(name, column, ids.get(name, "")) for name, column in values.items()]
        if bad := [each for each in found if isinstance(each, str)]:
            hint = "; impute='median' (on the command line --impute median) replaces missing values"
            raise ValueError(
                listed(bad, _MOST_SHOWN) + hint * any("missing value" in each for each in bad)
            )
        self.columns_ = tuple(each for each in found if isinstance(each, Column))
        outputs, n = self.get_feature_names_out().tolist(), len(next(iter(values.values())))
        if not outputs and not n:
            raise ValueError("the table has no rows (n_samples=0)")
        if not outputs:
            reasons = [f"{shown_value(c.name)} ({c.why})" for c in self.columns_]
            raise ValueError(
                f"every column is left out (n_samples={n}): {listed(reasons, _MOST_SHOWN)}; "
                "include those to use"
            )
        if len(set(outputs)) < len(outputs):
            name = Counter(outputs).most_common(1)[0][0]
            raise ValueError(f"two columns would be named {shown_value(name)}; rename one of them")
        know_features(self, len(table), [*table] if _named(X) else None)
        return self

    def _decide(self, name: str, values: NDArray, id_like: str) -> Column | str:
        """What is done with a column, or a sentence about what is wrong with it."""
        numeric, missing = values.dtype.kind == "f", is_missing(values)
        n_missing, present = int(missing.sum()), values[~missing]
        named = name in self.include or name in self.categorical
        if name in self.exclude:
            return Column(name, LEFT_OUT, "as requested")
        if self.strict and not numeric and not named:
            holds = f"holds {shown_value(present[0])}, not numbers" if len(present) else ""
            return f"{shown_value(name)} {holds or 'has no values'}"
        if numeric and np.isinf(present).any():
            where = f"row {np.isinf(values).argmax() + 1}; empty the cell or exclude the column"
            return f"{shown_value(name)} is infinite in {where}"
        if numeric and n_missing and self.impute is None:
            many = counted(n_missing, "missing value")
            return f"{shown_value(name)} has {many}, the first in row {missing.argmax() + 1}"
        if not len(present):
            return Column(name, LEFT_OUT, "no values")
        one_value = bool((present == present[0]).all())
        if not (named or self.strict):
            why = "one value" if one_value and not n_missing else id_like
            if why := why or ("" if numeric else free_text(present)):
                return Column(name, LEFT_OUT, why)
        if not numeric or name in self.categorical or (one_value and n_missing):
            return categories_of(name, present, n_missing)
        fill, how = float(_FILLS[self.impute or "median"](present)), self.impute
        why = f"{counted(n_missing, 'missing value')}, replaced by the {how} {fill:.4g} and marked"
        return Column(name, NUMBER, why if n_missing else "", fill, missing=n_missing > 0)

    def transform(self, X: Any) -> NDArray[np.float64]:
        """The columns of numbers (n, m); further columns of a data frame are ignored."""
        check_is_fitted(self, "columns_")
        used = [column for column in self.columns_ if column.use != LEFT_OUT]
        table = columns_of(X, None if not _named(X) else [column.name for column in used])
        if not _named(X):
            _check_n_features(self, X, reset=False)
        n = len(next(iter(table.values())))
        stops = np.cumsum([0, *(len(column.outputs) for column in used)])
        out = np.empty((n, stops[-1]))
        for column, start, stop in zip(used, stops, stops[1:], strict=False):
            write_column(column, column_values(table[column.name]), out[:, start:stop])
        return out

    def get_feature_names_out(self, input_features: Any = None) -> NDArray:
        """Names of the columns of numbers."""
        check_is_fitted(self, "columns_")
        return np.array([o for column in self.columns_ for o in column.outputs], dtype=object)

    @property
    def origins_(self) -> tuple[str, ...]:
        """The column of the table that each column of numbers comes from."""
        return tuple(column.name for column in self.columns_ for _ in column.outputs)

    @property
    def plain_(self) -> bool:
        """Whether it only selects columns of numbers, none of which had missing values."""
        return not any(column.use == CATEGORIES or column.missing for column in self.columns_)

    def describe(self) -> list[tuple[str, str, str]]:
        """Columns, their use and why; columns of which the same can be said are together."""
        check_is_fitted(self, "columns_")
        groups: dict[tuple[str, str], list[str]] = {}
        for column in self.columns_:
            groups.setdefault((column.use, column.why), []).append(column.name)
        return [(listed(names, _MOST_SHOWN), use, why) for (use, why), names in groups.items()]


def split_pipeline(model: Any) -> tuple[Pipeline | None, Any]:
    """The steps of a pipeline before its last one, if there are any, and the last one."""
    if not isinstance(model, Pipeline):
        return None, model
    return (model[:-1] if len(model) > 1 else None), model[-1]


def prepared(prepare: Any, X: Any) -> tuple[Any, Any]:
    """X after a transformer, or the steps of a pipeline before its last one, and these, fitted."""
    steps, last = split_pipeline(prepare)
    steps = last if steps is None else steps
    if not is_fitted(steps):
        steps = clone(steps).fit(X)
    return steps.transform(X), steps


def is_fitted(model: Any) -> bool:
    """Whether an estimator or a pipeline is fitted."""
    try:
        check_is_fitted(model)
    except NotFittedError:
        return False
    return True


def _named(X: Any) -> bool:
    # A sparse matrix in the format "dok" is a mapping, but not of columns.
    return not issparse(X) and (isinstance(X, Mapping) or hasattr(X, "columns"))


def columns_of(X: Any, wanted: Sequence[str] | None = None) -> dict[str, Any]:
    """Columns of a data frame, a mapping or an array by name: all of them, or those wanted."""
    if not _named(X):
        array = check_array(X, dtype=None, ensure_all_finite=False)
        return {f"x{i}": array[:, i] for i in range(array.shape[1])}
    given = list(X) if isinstance(X, Mapping) else list(X.columns)
    names = {str(name): name for name in given}
    if len(names) < len(given):
        raise ValueError("the columns of a table must have different names")
    if lacking := [name for name in wanted or () if name not in names]:
        missing = listed([shown_value(name) for name in lacking], _MOST_SHOWN)
        raise ValueError(f"the table has no column {missing}, with which the model was fitted")
    return {name: X[names[name]] for name in (names if wanted is None else wanted)}
