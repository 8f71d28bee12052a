"""Plots of group scores, spectra, settings and samples, used like scikit-learn's displays."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isrlearn.core.labels import Cells
from isrlearn.core.rank import RankTest
from isrlearn.estimators.compare import LabelledRows, thinned
from isrlearn.estimators.selection import on_front
from isrlearn.io.errors import optional
from isrlearn.markup import line
from isrlearn.metrics import GroupReport, group_report
from isrlearn.report.evidence import metric_of, real_shifts
from isrlearn.report.samples import MOST_POINTS, sample_places

__all__ = ["GroupDisplay", "SamplesDisplay", "SpectrumDisplay", "TradeOffDisplay"]

_MARKERS = "os^Dvp*X"


class _Display(ABC):
    """A plot on axes of its own or on given ones, kept as `ax_` and `figure_`."""

    size: ClassVar[tuple[float, float]] = (6.0, 4.0)
    ax_: Any
    figure_: Any

    def plot(self, ax: Any = None) -> Self:
        """Draw on new axes, or on those given.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        """
        alone = ax is None
        if alone:
            plt = optional("matplotlib.pyplot", "a plot", "plot")
            _, ax = plt.subplots(figsize=self.size, layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        self._draw(ax)
        if alone:  # many groups need as many lines of text
            legend = ax.get_legend()
            lines = max(len(ax.get_yticks()), len(legend.get_texts()) if legend else 0)
            self.figure_.set_figheight(max(self.size[1], 0.2 * lines))
        return self

    @abstractmethod
    def _draw(self, ax: Any) -> None:
        """Draw on these axes."""


class _ScoreDisplay(_Display):
    """A plot of the scores of one model or several."""

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: Any,
        environments: ArrayLike,
        *,
        metric: str = "accuracy",
        ax: Any = None,
    ) -> Self:
        """Scores of the predictions of a model, or of several given as a mapping by name."""
        models = y_pred if isinstance(y_pred, Mapping) else {"model": y_pred}
        given: dict[str, Any] = {"environments": environments, "metric": metric}
        return cls._of({k: group_report(y_true, v, **given) for k, v in models.items()}).plot(ax)

    @classmethod
    @abstractmethod
    def _of(cls, reports: dict[str, GroupReport]) -> Self:
        """A display of these scores."""


@dataclass(eq=False, repr=False)
class GroupDisplay(_ScoreDisplay):
    """Bars of the scores of every group with their intervals, for one model or several.

    Examples
    --------
    >>> from isrlearn.displays import GroupDisplay
    >>> y, place = [0, 0, 1, 1], ["land", "sea", "land", "sea"]
    >>> display = GroupDisplay.from_predictions(y, [0, 1, 1, 1], place)
    >>> [label.get_text() for label in display.ax_.get_yticklabels()][0]
    '0, sea (n = 1)'
    """

    #: Names of the models and their scores, such as ``comparison.reports``. Groups are ordered by
    #: their scores in the first, the worst at the top.
    reports: Mapping[str, GroupReport]

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        environments: ArrayLike,
        *,
        metric: str | None = None,
        name: str = "model",
        ax: Any = None,
    ) -> Self:
        """Scores of a fitted model's predictions; accuracy or rmse unless a metric is given."""
        how = {"metric": metric or metric_of(estimator), "ax": ax}
        return cls.from_predictions(y, {name: estimator.predict(X)}, environments, **how)

    @classmethod
    def _of(cls, reports: dict[str, GroupReport]) -> Self:
        return cls(reports)

    def _draw(self, ax: Any) -> None:
        first = next(iter(self.reports.values()))
        groups, n = first.by_rank, len(self.reports)
        places = np.arange(len(groups))
        for i, (name, report) in enumerate(self.reports.items()):
            scores = [report[g.group] for g in groups]
            value, low, high = np.array([(s.value, s.low, s.high) for s in scores]).T
            error = np.clip([value - low, np.where(np.isfinite(high), high - value, 0)], 0, None)
            at = places + (i - (n - 1) / 2) * 0.8 / n
            ax.barh(at, value, 0.75 / n, xerr=error, label=name, error_kw={"alpha": 0.5})
        ax.set_yticks(places, [f"{g.name} (n = {g.n})" for g in groups])
        ax.invert_yaxis()
        ax.set(xlabel=first.metric, xlim=(0, 1) if first.metric == "accuracy" else None)
        if n > 1:
            ax.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize="small")


@dataclass(eq=False, repr=False)
class SpectrumDisplay(_Display):
    """Squared shift along each direction, in units of its sampling variance, and the noise level.

    Examples
    --------
    >>> from isrlearn import ISRClassifier
    >>> from isrlearn.datasets import make_gaussian_environments
    >>> from isrlearn.displays import SpectrumDisplay
    >>> data = make_gaussian_environments(300, 4, n_spurious=2, random_state=0)
    >>> clf = ISRClassifier().fit(data.X, data.y, data.environments)
    >>> SpectrumDisplay.from_estimator(clf).test.rank
    2
    """

    size = (5.0, 3.5)
    test: RankTest  #: The rank test of a fitted model.

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Spectrum of a fitted model whose number of directions was tested."""
        test = getattr(estimator, "best_estimator_", estimator).rank_test_
        if test is None:
            raise ValueError(
                "the number of directions was given, so there is no test; fit with "
                "n_spurious='auto'"
            )
        return cls(test).plot(ax)

    def _draw(self, ax: Any) -> None:
        values = real_shifts(self.test.spectrum)
        place, found = np.arange(1, len(values) + 1), self.test.rank
        ax.plot(place[:found], values[:found], "o", label="shifts")
        if found < len(values):
            ax.plot(place[found:], values[found:], "o", color="0.6", label="within the noise")
        if self.test.noise > 0:
            ax.axhline(self.test.noise, color="black", linestyle="--", label="noise level")
        ax.set(xlabel="direction", ylabel="squared shift / sampling variance", yscale="log")
        ax.set_xticks(place if len(place) <= 12 else place[:: len(place) // 6])
        ax.legend(fontsize="small")


@dataclass(eq=False, repr=False)
class TradeOffDisplay(_ScoreDisplay):
    """Average score against that of the worst group, for settings or models.

    Examples
    --------
    >>> from isrlearn.displays import TradeOffDisplay
    >>> y, place = [0, 0, 1, 1], ["land", "sea", "land", "sea"]
    >>> models = {"plain": [0, 1, 1, 1], "other": [0, 0, 1, 1]}
    >>> TradeOffDisplay.from_predictions(y, models, place).worst.tolist()
    [0.0, 1.0]
    """

    average: Any  #: Scores over all rows (m,); greater is better.
    worst: Any  #: Scores of the worst group (m,).
    _: KW_ONLY
    names: Any = None  #: Written next to the points.
    colours: Any = None  #: The share of the spurious part that each setting keeps (m,).
    best: int | None = None  #: The point that was chosen.

    def __post_init__(self) -> None:
        self.average, self.worst = np.asarray(self.average, float), np.asarray(self.worst, float)

    @classmethod
    def from_estimator(cls, search: Any, *, ax: Any = None) -> Self:
        """Every setting of a fitted search, scored on held-out rows."""
        results = search.cv_results_
        scale = [point.get("scale", 0.0) for point in results["params"]]
        scores = results["mean_average"], results["mean_worst_group"]
        return cls(*scores, colours=scale, best=search.best_index_).plot(ax)

    @classmethod
    def _of(cls, reports: dict[str, GroupReport]) -> Self:
        # Greater is better: an RMSE gets a minus sign.
        signed = [(-1.0 if r.metric == "rmse" else 1.0, r) for r in reports.values()]
        scores = np.array([(sign * r.average, sign * r.worst) for sign, r in signed]).T
        return cls(*scores, names=list(reports))

    def _draw(self, ax: Any) -> None:
        dots = ax.scatter(self.average, self.worst, c=self.colours, s=25)
        front = np.flatnonzero(on_front(self.average, self.worst))
        front = front[np.argsort(self.average[front], kind="stable")]
        ax.plot(self.average[front], self.worst[front], color="black", linewidth=1, zorder=0)
        for name, x, y in zip(self.names or (), self.average, self.worst, strict=False):
            ax.annotate(name, (x, y), (4, 4), textcoords="offset points", fontsize="small")
        if self.best is not None:
            at = self.average[self.best], self.worst[self.best]
            ax.plot(*at, "r*", markersize=14, label="chosen")
            ax.legend(fontsize="small")
        if self.colours is not None:
            ax.figure.colorbar(dots, ax=ax, label="scale: share that is kept")
        ax.set(xlabel="average", ylabel="worst group")


@dataclass(eq=False, repr=False)
class SamplesDisplay(_Display):
    """Samples along the direction that shifts most and along the one that the head uses.

    Examples
    --------
    >>> from isrlearn import ISRClassifier
    >>> from isrlearn.datasets import make_gaussian_environments
    >>> from isrlearn.displays import SamplesDisplay
    >>> data = make_gaussian_environments(300, 3, n_spurious=2, random_state=0)
    >>> clf = ISRClassifier().fit(data.X, data.y, data.environments)
    >>> SamplesDisplay.from_estimator(clf, data.X, data.y, data.environments).places.shape
    (900, 2)
    """

    size = (6.5, 4.0)
    places: NDArray[np.float64]  #: Coordinates (n, 2), in standard deviations inside the cells.
    cells: Cells  #: Class, shown by the marker, and environment, shown by the colour.

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, environments: ArrayLike, *, ax: Any = None
    ) -> Self:
        """Rows as a fitted model sees them; thirds of the target for a regression."""
        rows = LabelledRows.of((X, y, environments))
        rows = rows._replace(X=np.asarray(rows.X))
        found = sample_places(getattr(estimator, "best_estimator_", estimator), rows, rows)
        if found is None:
            raise ValueError("nothing shifts between these environments: there is no direction")
        return cls(*found).plot(ax)

    def _draw(self, ax: Any) -> None:
        cells = self.cells
        shown = thinned(cells, MOST_POINTS)
        k, e, places = cells.k[shown], cells.e[shown], self.places[shown]
        colours = {i: f"C{i % 10}" for i in range(len(cells.environments))} | {-1: "0.7"}
        for a, b in sorted(set(zip(k.tolist(), e.tolist(), strict=True))):
            own = places[(k == a) & (e == b)]
            label = f"{cells.classes[a]}, {'unknown' if b < 0 else cells.environments[b]}"
            label = line(label, 40)  # in the margin, which must leave room for the points
            style = {"marker": _MARKERS[a % len(_MARKERS)], "color": colours[b], "s": 14}
            ax.scatter(*own.T, alpha=0.6, linewidths=0, label=label, **style)
        ax.set(xlabel="direction that shifts most (sd)", ylabel="what the head uses (sd)")
        ax.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize="small")
