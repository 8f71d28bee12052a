"""A report: what was found about a model, and the HTML page that shows it."""

import base64
import copy
import hashlib
import inspect
import json
import os
import platform
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy
import sklearn
from scipy.sparse import issparse
from sklearn.base import clone

from isrlearn import __version__, markup
from isrlearn.core.rank import RankTest
from isrlearn.diagnosis import ColumnShare, Diagnosis, column_shares, diagnose
from isrlearn.diagnosis.shares import origins, said
from isrlearn.estimators import Comparison, TablePreparer
from isrlearn.estimators.columns import counted
from isrlearn.estimators.compare import LabelledRows, left_out
from isrlearn.estimators.preparation import split_pipeline
from isrlearn.io.errors import optional
from isrlearn.io.files import atomic_write
from isrlearn.report import figures
from isrlearn.report.evidence import Evidence, evidence, metric_of, refit_if_possible
from isrlearn.report.samples import samples_figure

#: Values of the rows that are diagnosed; more rows are sampled.
_MOST_VALUES = 5e7
#: Longest parameter that is shown, in characters.
_LONGEST = 4000


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """What is known about a fitted model; made by :func:`make_report`.

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
    >>> print(report.card()[:26])
    ---
    library_name: isrlearn
    """

    estimator: Any  #: The ISRClassifier or ISRRegressor.
    evidence: Evidence  #: Scores of the model, and of the models it is compared with.
    rank_test: RankTest | None  #: Spectrum of the shifts, and how many directions are significant.
    samples: dict[str, Any] | None  #: The figure of the samples; None if nothing shifts.
    diagnosis: Diagnosis | str  #: Of the training rows, or the reason why there is none.
    sources: dict[str, Any]  #: Where things came from: "train", "label", "command", ...
    columns: tuple[ColumnShare, ...]  #: Those that matter most; empty if columns have no names.

    @property
    def headline(self) -> str:
        """The verdict of the comparison; without one, the score of the worst group."""
        found = self.evidence
        if found.comparison is not None:
            return found.comparison.headline
        worst, metric = found.report.by_rank[0], found.report.metric
        what = "accuracy" if metric == "accuracy" else "error"
        group, score = figures.group_name(worst), figures.score_text(worst.value, metric)
        return f"In the worst group, {group}, the {what} is {score}."

    def __repr__(self) -> str:
        return f"<Report on {type(self.estimator).__name__}: {self.headline}>"

    def _repr_html_(self) -> str:
        """The verdict and the scores; `save` writes the whole page."""
        found = self.evidence
        shown = found.report if found.comparison is None else found.comparison
        note = 'The page with all figures: report.save("report.html").'
        return markup.block(shown._repr_html_(), markup.paragraph(note))

    def html(self) -> str:
        """The report as one self-contained page, which runs no script but its own."""
        return self._rendered("report.html")

    def card(self) -> str:
        """A model card in Markdown: verdict, scores, limits and origin, for a repository."""
        return self._rendered("card.md")

    def _rendered(self, name: str) -> str:
        """A file of the template, filled in."""
        jinja2 = optional("jinja2", "a report", "report")
        environment = jinja2.Environment(
            loader=jinja2.PackageLoader("isrlearn.report", "template"),
            autoescape=name.endswith(".html"),
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        metric = self.evidence.report.metric
        environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
        environment.filters |= {
            "digest": _digest,
            "group": figures.group_name,
            "interval": partial(figures.interval, metric=metric),
            "literal": partial(json.dumps, ensure_ascii=False),
            "name": figures.name_of,
            "plural": counted,
            "quoted": _quoted,
            "said": said,
            "score": partial(figures.score_text, metric=metric),
        }
        environment.globals["score"] = environment.filters["score"]
        return environment.get_template(name).render(
            report=self,
            figures=figures,
            sources=defaultdict(str, self.sources),
            parameters=_parameters(self.estimator),
            versions={"isrlearn": __version__, "Python": platform.python_version()}
            | {library.__name__: library.__version__ for library in (np, scipy, sklearn)},
        )

    def save(self, path: str | os.PathLike[str], *, card: bool = False) -> None:
        """Write the page, or the card, to a file, completely or not at all."""
        text = self.card() if card else self.html()
        with atomic_write(path) as file:
            file.write(text.encode("utf-8", "replace"))  # names of files may hold any byte

    def to_dict(self) -> dict[str, Any]:
        """The scores of the model and of every setting, ready for JSON."""
        found = self.evidence
        settings = [
            {"n_spurious": r, "scale": s, "worst": each.worst, "average": each.average}
            for (r, s), each in found.reports.items()
        ]
        return {
            "scored_on": found.kind,
            "model": found.report.to_dict(),
            "comparison": None if found.comparison is None else found.comparison.to_dict(),
            "n_spurious": found.chosen[0],
            "scale": found.chosen[1],
            "trade_off": settings or None,
            "columns": [asdict(share) for share in self.columns],
            "unseen": getattr(self.diagnosis, "unseen", None),
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
        Fitted; or a fitted search, which is then repeated in cross-validation. Of a Pipeline, the
        steps before it prepare the rows once, and are not fitted again in cross-validation.
    train : (X, y, environments), with clusters as fourth, or EnvironmentData, optional
        The rows it was fitted on. Without them there is no comparison with other models.
    held_out : as `train`, optional
        Rows to score. Without them the training rows are scored by cross-validation.
    chosen : bool, default=False
        Whether the settings were chosen on the rows that are scored; the report says so.
    sources : mapping, optional
        What the report says about where things came from: names of tables and columns ("train",
        "label", "environment", "scored"), the "command", and so on.
    random_state : int, default=0
        Seed of the diagnosis.

    Returns
    -------
    Report
        ``report.save("report.html")`` writes it.

    Examples
    --------
    >>> from isrlearn import ISRRegressor
    >>> from isrlearn.datasets import make_gaussian_environments
    >>> from isrlearn.report import make_report
    >>> data = make_gaussian_environments(100, 3, task="regression", random_state=0)
    >>> reg = ISRRegressor().fit(data.X, data.y, environments=data.environments)
    >>> len(make_report(reg, data).html()) < 1_000_000
    True
    """
    steps, model = split_pipeline(estimator)
    estimator = getattr(model, "best_estimator_", model)
    names = origins(steps, train, held_out, estimator)
    model, search, estimator = copy.copy(model), model is not estimator, copy.copy(estimator)
    for each in (model, estimator):
        each.__dict__.pop("feature_names_in_", None)  # the rows become arrays without names
    if search:
        model.best_estimator_ = estimator
    if not hasattr(estimator, "coef_"):
        raise ValueError(
            f"a report is about a fitted ISRClassifier or ISRRegressor; got {estimator!r}"
        )
    training, other = (None if data is None else _arrays(data, steps) for data in (train, held_out))
    given = [rows for rows in (training, other) if rows is not None]
    for rows in given:
        if rows.X.shape[1] != estimator.n_features_in_:
            raise ValueError(
                f"the rows have {rows.X.shape[1]} features; the model was fitted on "
                f"{estimator.n_features_in_}"
            )
    found = evidence(model, training, other, chosen=chosen)
    columns: tuple[ColumnShare, ...] = ()
    if names is not None:  # without training rows, nothing is known of a head before removal
        rows = given[0]
        columns = column_shares(estimator, names, *(rows[:1] if training is None else rows[:3]))
    return Report(
        estimator,
        found,
        _rank_test(estimator, training),
        samples_figure(estimator, given[-1], training),
        _diagnosis(estimator, given[0], found.comparison, random_state),
        _sources(steps, model) | dict(sources or {}),
        columns,
    )


def _sources(steps: Any, model: Any) -> dict[str, Any]:
    """What is known about the threshold of a search and the preparation of a pipeline."""
    first, moved = None if steps is None else steps[0], getattr(model, "threshold_", np.zeros(1))
    found = {"threshold": moved.tolist() if moved.any() else None}
    if isinstance(first, TablePreparer):
        found |= {"prepared": first.describe(), "prepare": repr(clone(first))}
    return found


def _arrays(data: Any, steps: Any) -> LabelledRows:
    """The rows as arrays, without names of columns, after the steps before the model."""
    rows = LabelledRows.of(data)
    if steps is not None:
        return rows._replace(X=steps.transform(rows.X))
    return rows if issparse(rows.X) else rows._replace(X=np.asarray(rows.X))


def _rank_test(estimator: Any, train: LabelledRows | None) -> RankTest | None:
    """The test for the number of directions: the model's own, or one on the training rows."""
    if estimator.rank_test_ is not None or train is None:
        return estimator.rank_test_
    # A number can be requested where no test is possible.
    test = getattr(refit_if_possible(estimator, train, n_spurious="auto"), "rank_test_", None)
    return test if test is not None and np.isfinite(test.spectrum).all() else None


def _diagnosis(
    estimator: Any, rows: LabelledRows, comparison: Comparison | None, random_state: int
) -> Diagnosis | str:
    """Diagnosis of the rows with scores in environments left out, or why there is none."""
    task = "classification" if hasattr(estimator, "classes_") else "regression"
    try:
        few = rows.at_most(_MOST_VALUES // rows.X.shape[1], metric_of(estimator))
        how: dict[str, Any] = {"clusters": few.clusters, "random_state": random_state}
        found = diagnose(*few[:3], task=task, compare=False, **how)
        unseen = None if comparison is None else left_out(comparison, few)
        # A test table may hold the cells that were not seen.
        own = comparison if comparison and comparison.scored_on == "folds" else None
        return replace(found, unseen=unseen, comparison=own)
    except (ValueError, np.linalg.LinAlgError) as error:
        return f"These rows cannot be diagnosed: {error}"


def _quoted(text: Any) -> str:
    """Text from a file as text of Markdown, in one line and without markup."""
    return re.sub(r"([\\`*_\[\]<>|~#])", r"\\\1", figures.name_of(text, 1200))


def _digest(text: str) -> str:
    """The hash by which the page's policy allows its own style and its own script."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _parameters(estimator: Any) -> list[tuple[str, str, bool]]:
    """Name, value as Python code and whether it was changed; changed parameters first."""
    found = []
    for name, parameter in inspect.signature(type(estimator)).parameters.items():
        value = getattr(estimator, name)
        value = value.item() if isinstance(value, np.generic) else value
        text = "(coef, intercept)" if isinstance(value, tuple) else " ".join(repr(value).split())
        found.append((name, text[:_LONGEST], text != repr(parameter.default)))
    return sorted(found, key=lambda entry: not entry[2])
