"""A report: what was found about a model, ready to be written as a page."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from isrlearn.core.rank import RankTest
from isrlearn.diagnosis import Diagnosis, diagnose
from isrlearn.estimators.search._splits import Sample, cells_of
from isrlearn.io.files import atomic_write
from isrlearn.report import _page
from isrlearn.report._evidence import Evidence, evidence, metric_of
from isrlearn.report._groups import headline
from isrlearn.report._rows import rows_of, thinned
from isrlearn.report._view import View, rank_test_of, view_of

#: Most numbers that are looked at to diagnose the rows.
_MOST_VALUES = 5e7


@dataclass(frozen=True, eq=False)
class Report:
    """What there is to know about a fitted model; made by :func:`make_report`.

    Parameters
    ----------
    estimator : ISRClassifier or ISRRegressor
        The model.
    evidence : Evidence
        Scores before and after the removal.
    rank_test : RankTest or None
        Spectrum of the shifts, its noise and the number of directions tested for.
    view : View or None
        Rows on the first spurious and the first invariant direction.
    diagnosis : Diagnosis or str
        Of the training rows, or why there is none.
    sources : dict of str
        Where things came from: "train", "label", "environment", "scored", "command", ...

    Examples
    --------
    >>> from isrlearn import ISRClassifier
    >>> from isrlearn.datasets import make_gaussian_environments
    >>> from isrlearn.report import make_report
    >>> data = make_gaussian_environments(200, 3, n_invariant=3, n_spurious=1, random_state=0)
    >>> clf = ISRClassifier().fit(data.X, data.y, environments=data.environments)
    >>> report = make_report(clf, data)
    >>> report.to_dict()["scored_on"], report.html().startswith("<!doctype html>")
    ('folds', True)
    """

    estimator: Any
    evidence: Evidence
    rank_test: RankTest | None
    view: View | None
    diagnosis: Diagnosis | str
    sources: dict[str, Any] = field(default_factory=dict)

    @property
    def headline(self) -> str:
        """What happened to the worst group, in a sentence."""
        return str(headline(self.evidence.before, self.evidence.after)["sentence"])

    def html(self) -> str:
        """The report as one page that needs nothing else."""
        return _page.render(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file, whole or not at all."""
        page = self.html().encode("utf-8")
        with atomic_write(path) as file:
            file.write(page)

    def to_dict(self) -> dict[str, Any]:
        """The numbers of the headline and of every setting, ready for JSON."""
        found = self.evidence
        trade_off = found.trade_off
        return {
            "scored_on": found.kind,
            "before": None if found.before is None else found.before.to_dict(),
            "after": found.after.to_dict(),
            "n_spurious": int(self.estimator.n_spurious_),
            "scale": float(self.estimator.scale),
            "trade_off": None
            if trade_off is None
            else [
                {"n_spurious": r, "scale": s, "worst": each.worst, "average": each.average}
                for (r, s), each in trade_off.reports.items()
            ],
        }


def make_report(
    estimator: Any,
    train: Any = None,
    held_out: Any = None,
    *,
    chosen: bool = False,
    sources: Mapping[str, Any] | None = None,
    random_state: int = 0,
) -> Report:
    """Report on a fitted model.

    Parameters
    ----------
    estimator : ISRClassifier or ISRRegressor
        Fitted; of a search, its best estimator.
    train : (X, y, environments) or EnvironmentData, optional
        The rows it was fitted on. Without them there is nothing to compare the model with.
    held_out : (X, y, environments) or EnvironmentData, optional
        Rows to score. Without them the training rows are scored by cross-validation.
    chosen : bool, default=False
        Whether the settings were chosen by the rows that are scored; the report says so.
    sources : mapping, optional
        What the report says of where things came from: names of tables and columns ("train",
        "label", "environment", "scored"), the "command", and so on.
    random_state : int, default=0
        Seed of the diagnosis.

    Returns
    -------
    Report
        ``report.save("report.html")`` writes it.

    Examples
    --------
    >>> import os, tempfile
    >>> from isrlearn import ISRRegressor
    >>> from isrlearn.datasets import make_gaussian_environments
    >>> from isrlearn.report import make_report
    >>> data = make_gaussian_environments(
    ...     100, 3, n_invariant=3, n_spurious=1, task="regression", random_state=0
    ... )
    >>> reg = ISRRegressor().fit(data.X, data.y, environments=data.environments)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "report.html")
    ...     make_report(reg, data).save(path)
    ...     os.path.getsize(path) < 1_000_000
    True
    """
    estimator = _nameless(getattr(estimator, "best_estimator_", estimator))
    if not hasattr(estimator, "coef_"):
        raise ValueError(
            f"a report is about a fitted ISRClassifier or ISRRegressor; got {estimator!r}"
        )
    training, other = rows_of(train), rows_of(held_out)
    for rows in (training, other):
        if rows is not None and rows.X.shape[1] != estimator.n_features_in_:
            raise ValueError(
                f"the rows have {rows.X.shape[1]} features; the model was fitted on "
                f"{estimator.n_features_in_}"
            )
    found = evidence(estimator, training, other, chosen=chosen)
    examined = other if training is None else training
    shown = training if other is None else other
    if examined is None or shown is None:
        raise ValueError("a report needs rows: give the training rows, held-out ones or both")
    return Report(
        estimator,
        found,
        rank_test_of(estimator, training),
        view_of(estimator, shown, training),
        _diagnosed(estimator, examined, random_state),
        dict(sources or {}),
    )


def _nameless(estimator: Any) -> Any:
    """The same estimator for rows whose columns are in order: arrays know no names."""
    twin = copy.copy(estimator)
    twin.__dict__.pop("feature_names_in_", None)
    return twin


def _diagnosed(estimator: Any, rows: Sample, random_state: int) -> Diagnosis | str:
    task = "classification" if metric_of(estimator) == "accuracy" else "regression"
    cells = cells_of(rows.y if task == "classification" else None, rows.environments)
    kept = thinned(cells, int(_MOST_VALUES // rows.X.shape[1]))
    if len(kept) < len(cells):
        rows = rows.rows(kept)
    try:
        return diagnose(
            rows.X, rows.y, rows.environments, task=task, n_bootstrap=100, random_state=random_state
        )
    except (ValueError, np.linalg.LinAlgError) as error:
        return f"These rows cannot be diagnosed: {error}"
