"""`scan`: which column of a table is the environment of a shortcut, if any is."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.utils.multiclass import type_of_target

from isrlearn import validation as check
from isrlearn.core.labels import MISSING, Cells, encode, is_missing
from isrlearn.diagnosis.candidates import Candidate, Scan
from isrlearn.diagnosis.columns import (
    TableColumn,
    agreement,
    change_in_worst_value,
    error_p_value,
    gap,
    table_columns,
)
from isrlearn.diagnosis.shifts import CellCounts, Shift, mean_shift, with_scatter
from isrlearn.estimators import ISRClassifier, infer_environments
from isrlearn.estimators.compare import thinned
from isrlearn.estimators.heads import Sample
from isrlearn.estimators.pipeline import Fitter, Settings
from isrlearn.estimators.preparation import columns_of
from isrlearn.markup import listed
from isrlearn.metrics import Change

#: Rows that are examined; of more rows a sample.
_MOST_ROWS = 20_000
#: Fewest draws of the permutation test.
_DRAWS = 9_999
#: Shortcuts whose removal is tried, from the largest gap down.
_MOST_REMOVED = 5


def scan(
    frame: Any,
    y: Any,
    *,
    candidates: Sequence[str] | None = None,
    level: float = 0.01,
    cv: int = 5,
    random_state: int = 0,
) -> Scan:
    """Which columns of a table are shortcuts: a model relies on them and fails without them.

    Every column of few values is taken as the environment in turn, and the other columns as the
    features of a plain logistic regression, which is scored on rows that it was not fitted on.

    Parameters
    ----------
    frame : data frame, mapping of columns, or array of shape (n_samples, n_columns)
        The table, prepared by `TablePreparer`: categories and missing values are encoded, ids,
        dates and free text left out. A column that separates the classes perfectly is left out too,
        and so are classes with fewer rows than folds.
    y : str or array-like of shape (n_samples,)
        The column of the labels, or the labels.
    candidates : sequence of str, optional
        Columns to examine; by default all categories and all numbers of at most twenty values.
        Values are compared if at least five rows, and one row in a hundred, have them; of more than
        twenty, the most frequent ones.
    level : float, default=0.01
        Probability that any column is called a shortcut if none is one.
    cv : int, default=5
        Number of folds.
    random_state : int, default=0
        Seed of the folds and of the permutations.

    Returns
    -------
    Scan
        ``print(...)`` shows it in words, ``.table`` holds the candidates from the first to the
        last, ``.shortcuts`` those that were found, ``.save("scan.html")`` writes a page.

    Notes
    -----
    A column is a shortcut if three hypotheses are rejected: inside each class, the means of the
    features do not shift between its values (`core.rank.mean_rank`); nor do the means of the plain
    model's scores; and errors are as frequent in each of its values (a permutation test). A column
    that merely goes with the label fails the first, one that shifts features which the model does
    not use fails the second, and one without consequences fails the third. The p-value of a column
    is the largest of the three, corrected for the number of columns (Holm).

    The gap of a column is how far the accuracy falls in its worst value, all classes counting the
    same. For the five shortcuts of the largest gaps, what shifts with the column is removed by
    `ISRClassifier` in the same folds; the gain is the change of the accuracy in the worst value.
    Shortcuts are ordered by the gain, the other columns by their p-values.

    A column is examined as what the *other* columns carry of it. `own_gap` is the gap of a model
    that has the column itself among its features: where only that gap is large, leave the column
    out of the model, unless it is a cause of the label.

    While a column is examined, columns that say the same more finely or more coarsely are left
    out with it: an age with an age group. A column that is computed from *several* features which
    cause the label looks exactly like a shortcut: no test on these rows can distinguish the two.

    The errors of a strongly penalised model are listed as well. They were chosen for being errors,
    so no test applies to them; the column that agrees best with them is named.

    Examples
    --------
    >>> import numpy as np
    >>> from isrlearn import scan
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 800)
    >>> hospital = np.where(rng.random(800) < 0.9, y, 1 - y)
    >>> frame = {
    ...     "dose": y + rng.normal(size=800),
    ...     "brightness": 3 * hospital + rng.normal(size=800),
    ...     "hospital": np.array(["north", "south"])[hospital],
    ...     "weekday": rng.integers(0, 7, 800),
    ... }
    >>> [found.name for found in scan(frame, y).shortcuts]
    ['hospital']
    """
    check.check_between("level", level, 1e-6, 0.5)
    columns = columns_of(frame)
    target = str(getattr(y, "name", None) or "y")
    if isinstance(y, str):
        if y not in columns:
            raise ValueError(f"there is no column {y!r}; the columns are {', '.join(columns)}")
        target, y = y, columns.pop(y)
    labels, kept, few = _labels(y, cv)
    n = len(labels)
    for name, values in columns.items():
        if len(values) != n:
            raise ValueError(f"column {name!r} has {len(values)} rows; y has {n}")
    rows = kept[thinned(Cells.of(labels[kept], np.zeros(len(kept))), _MOST_ROWS)]
    found, left_out = table_columns({c: np.asarray(v)[rows] for c, v in columns.items()})
    k = encode(labels[rows])[1]
    copies = {c.name: "separates the classes perfectly" for c in found if c.same_as(k)}
    left_out = few | left_out | copies
    used = [column for column in found if column.name not in left_out]
    wanted = _wanted(candidates, columns, used)
    rows_of = _Examination(labels[rows], used, cv, level, random_state)
    examined = [rows_of.examined(column, len(wanted)) for column in wanted]
    table = sorted(_corrected(examined, level), key=_order)
    for i, each in enumerate(table[:_MOST_REMOVED]):
        if each.found:
            table[i] = replace(each, gain=rows_of.gain(each.name))
    table.sort(key=_order)
    errors, accuracy = rows_of.errors(table), float(np.mean(rows_of.right_with_all))
    about = target, n, len(rows), len(used), level, left_out, accuracy
    return Scan(tuple(table), errors, *about)


def _labels(y: Any, cv: int) -> tuple[NDArray, NDArray[np.intp], dict[str, str]]:
    """Labels, rows of the classes with a row for every fold, and why other classes are left out."""
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise ValueError(f"y must hold one label per row; its shape is {labels.shape}")
    if (missing := is_missing(labels)).any():
        raise ValueError(f"the label is missing in row {missing.argmax() + 1} of y; drop such rows")
    if type_of_target(labels).startswith("continuous"):
        raise ValueError(
            f"labels such as {labels[0]} look continuous, not like classes; a scan compares classes"
        )
    classes, k = encode(labels)
    count = np.bincount(k)
    names = [repr(name) for name in classes.tolist()]
    if np.count_nonzero(count >= cv) < 2:
        sizes = ", ".join(f"{n} of {c}" for n, c in zip(count[:5], names, strict=False))
        raise ValueError(f"a scan needs two classes with at least {cv} rows each; got {sizes}")
    few = [name for name, n in zip(names, count, strict=True) if n < cv]
    why = {f"class {listed(few, 5)}": f"fewer than {cv} rows"} if few else {}
    return labels, np.flatnonzero(count[k] >= cv), why


def _wanted(
    names: Sequence[str] | None, columns: dict[str, ArrayLike], used: list[TableColumn]
) -> list[TableColumn]:
    """The columns that are examined."""
    possible = {column.name: column for column in used if len(column.values) > 1}
    for name in names or ():
        if name not in possible:
            known = "has fewer than two frequent values" if name in columns else "does not exist"
            raise ValueError(f"candidate {name!r} {known}; there are {', '.join(possible)}")
    return [possible[name] for name in (possible if names is None else names)]


class _Examination:
    """The rows of a scan, and the plain models that were fitted on them."""

    def __init__(
        self, y: NDArray, used: list[TableColumn], cv: int, level: float, seed: int
    ) -> None:
        self.classes, self.k = encode(y)
        self.level, self.seed = level, seed
        self.columns = {column.name: column for column in used}
        folds = StratifiedKFold(cv, shuffle=True, random_state=seed)
        self.folds = list(folds.split(self.k, self.k))
        self.right_with_all = self.predicted(frozenset())[0]
        self.right: dict[str, NDArray[np.bool_]] = {}  # rows that are right without a column

    def left_with(self, column: TableColumn) -> frozenset[str]:
        """The column, and those that say the same."""
        same = (c.name for c in self.columns.values() if c.same_as(column.codes))
        return frozenset({column.name, *same})

    def features(self, without: frozenset[str]) -> NDArray[np.float64]:
        """Features from the other columns."""
        parts = [c.features for name, c in self.columns.items() if name not in without]
        return np.hstack([np.empty((len(self.k), 0)), *parts])

    def predicted(
        self, without: frozenset[str], environments: NDArray | None = None
    ) -> tuple[NDArray[np.bool_], NDArray]:
        """Whether held-out rows are right, and their scores (n, m)."""
        X, K = self.features(without), len(self.classes)
        score = np.zeros(len(self.k) if K == 2 else (len(self.k), K))
        if X.shape[1]:
            removed = 0 if environments is None else "auto"
            model = ISRClassifier(n_spurious=removed, C=1.0, weights=None)
            model.set_params(missing_environments="single")
            how = {"method": "decision_function", "params": {"environments": environments}}
            score = cross_val_predict(model, X, self.k, cv=self.folds, **how)
        if K == 2:
            return (score > 0) == self.k, score[:, None]
        centred = score - score.mean(axis=1, keepdims=True)
        return score.argmax(axis=1) == self.k, centred[:, 1:]

    def cells(self, column: TableColumn) -> Cells:
        """Class and value of each row."""
        return Cells(self.classes, column.values, self.k, column.codes)

    def shift(self, X: NDArray, cells: Cells) -> Shift:
        """Shift of the means of features."""
        moments = with_scatter(Fitter(Sample(X, cells), [Settings()])).features
        return mean_shift(moments, CellCounts.of(cells), self.level)

    def examined(self, column: TableColumn, n_candidates: int) -> Candidate:
        """What the tests say about a column."""
        cells, without = self.cells(column), self.left_with(column)
        count, X = cells.count(), self.features(without)
        names = tuple(sorted(without - {column.name}))
        found = Candidate(column.name, len(column.values), int(count.sum()), left_out=names)
        if not X.shape[1]:
            return replace(found, note="no features remain")
        if (np.count_nonzero(count, axis=1) < 2).all():
            return replace(found, note="no class has rows in two of its values")
        right, score = self.predicted(without)
        self.right[column.name] = right
        shifts, used = self.shift(X, cells), self.shift(score, cells)
        draws = max(_DRAWS, int(np.ceil(2 * n_candidates / self.level)))
        p = error_p_value(~right, cells, draws, np.random.default_rng(self.seed))
        return replace(
            found,
            p_values=(shifts.p_value or 0.0, used.p_value or 0.0, p),
            shift=shifts.effect,
            reliance=used.effect,
            own_gap=gap(self.right_with_all, cells)["gap"],
            **gap(right, cells),
        )

    def gain(self, name: str) -> Change:
        """Accuracy in the worst value of a column before and after removing what shifts with it."""
        column = self.columns[name]
        values = np.where(column.codes == MISSING, np.nan, column.codes)
        after = self.predicted(self.left_with(column), values)[0]
        rng = np.random.default_rng(self.seed)
        return change_in_worst_value(self.right[name], after, self.cells(column), rng)

    def errors(self, table: list[Candidate]) -> Candidate | None:
        """The errors of a strongly penalised model as a candidate that cannot be tested."""
        X = self.features(frozenset())
        try:
            guess = infer_environments(X, self.k, random_state=self.seed)
        except ValueError:
            return None  # no errors, or none in some class
        cells, note = Cells.of(self.k, guess), f"{np.sum(guess == 'wrong'):,} rows"
        if table:
            codes = {each.name: self.columns[each.name].codes for each in table}
            best, name = max((agreement(cells, codes[name]), name) for name in codes)
            note += f"; the column that agrees best with them is {name} (Cramér's V {best:.2f})"
        shift = self.shift(X, cells).effect
        return Candidate("(errors of a plain model)", 2, len(guess), shift=shift, note=note)


def _corrected(examined: list[Candidate], level: float) -> list[Candidate]:
    """Candidates with Holm's p-values, and whether they are shortcuts."""
    found = [each for each in examined if not each.p_values]
    tested, p_value = [each for each in examined if each.p_values], 0.0
    for i, each in enumerate(sorted(tested, key=lambda c: max(c.p_values))):
        p_value = max(p_value, min(1.0, (len(tested) - i) * max(each.p_values)))
        found.append(replace(each, p_value=p_value, found=p_value <= level))
    return found


def _order(each: Candidate) -> tuple[float, ...]:
    """Sort key: shortcuts by the gain, then by the gap; the other columns by p-value."""
    gain = -np.inf if each.gain is None else each.gain.difference
    size = -each.gap if each.found else max(each.p_values, default=2.0)
    return (not each.found, -gain, size)
