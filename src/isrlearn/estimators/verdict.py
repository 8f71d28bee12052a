"""What a comparison of models says: a verdict, its reasons in sentences, and a table."""

from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from isrlearn import markup
from isrlearn.estimators.preparation import split_pipeline
from isrlearn.metrics import GroupReport, PairedReport


@dataclass(frozen=True, eq=False)
class ComparedModel:
    """One model of a comparison."""

    estimator: Any  #: Fitted on all training rows.
    settings: dict[str, Any]  #: What its search chose; the parameters of one without a search.
    cross_validated: float | None  #: Worst group by its search; None without a search.
    report: GroupReport  #: Scores of the groups on rows that were not trained on.


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """A model compared with plain and balanced ones; made by :func:`isrlearn.compare_models`.

    ``str(comparison)`` is the verdict and a table of all groups and models.
    """

    models: Mapping[str, ComparedModel]  #: The comparison models by name, then the model itself.
    best: str  #: The best alternative by the cross-validated score on the training rows.
    change: PairedReport  #: From the best alternative to the model, on the same rows.
    from_plain: Mapping[str, PairedReport]  #: From "plain" to the best alternative and the model.
    scored_on: str  #: Which rows were scored: "test" or "folds".

    @property
    def name(self) -> str:
        """Name of the model that is compared with the others."""
        return list(self.models)[-1]

    @property
    def reports(self) -> dict[str, GroupReport]:
        """Scores of each model."""
        return {name: model.report for name, model in self.models.items()}

    @property
    def answer(self) -> str:
        """Whether the model "helps", "hurts" or makes "no difference", against `best`."""
        return {1: "helps", 0: "no difference", -1: "hurts"}[_better(self.change)]

    @property
    def verdict(self) -> str:
        """What to do, by the rule in the notes of :func:`isrlearn.compare_models`."""
        if self.answer == "helps":
            return "use it"
        hurts = self.answer == "hurts"
        if self.best != "plain":
            weights_help = _better(self.from_plain[self.best]) > 0
            if hurts or (weights_help and not self._only_weights):
                return "use balanced weights instead"
        worse = hurts or _better(self.from_plain[self.name]) < 0
        return "do not use it" if worse else "no clear difference"

    @property
    def headline(self) -> str:
        """The verdict and its main reason, in a sentence."""
        found, other, verdict, decided = self.change, self.best, self.verdict.capitalize(), ""
        if self.verdict == "do not use it" and self.answer != "hurts":
            found, other = self.from_plain[self.name], "plain"
        before, after, difference = _shown(found.worst, found)
        if not _better(found):
            verdict += ", the simpler choice" * ("weights" in verdict)
        elif found.worst.low <= 0 <= found.worst.high:
            decided = "; the average, {} to {} ({}), decides".format(*_shown(found.average, found))
        what = "accuracy" if found.metric == "accuracy" else "error"
        return (
            f"{verdict}: the {what} of the worst group is {before} with the {other} model and "
            f"{after} with {self._own} ({difference}){decided}."
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """The change of the average, the groups that lost, and what balanced weights do."""
        found, groups = self.change, self.change.groups
        average = "{} to {} ({})".format(*_shown(found.average, found))
        lost = [
            f"{g.environment if g.label is None else f'{g.label} in {g.environment}'} "
            f"({_score(g.before, found)} to {_score(g.after, found)})"
            for g in groups
            if g.lost > g.gained and g.p_value * len(groups) < 0.05  # allowing for their number
        ]
        against = f"more than chance explains, compared with the {self.best} model"
        lines = [
            f"Average over all rows, {self.best} to {self._own}: {average}.",
            f"Groups that lose {against}: {markup.listed(lost, 5)}."
            if lost
            else f"No group loses {against}.",
        ]
        if self.best != "plain":
            weights = "{} to {} ({})".format(*_shown(self.from_plain[self.best].worst, found))
            lines.append(f"Balanced weights alone change the worst group from {weights}.")
        return tuple(lines)

    @property
    def _only_weights(self) -> bool:
        """Whether the model is balanced weights itself, without a removal."""
        found = split_pipeline(self.models[self.name].estimator)[1]
        found = getattr(found, "best_estimator_", found)
        kept = getattr(found, "n_spurious_", None) == 0 or getattr(found, "scale", 0) == 1
        return kept and getattr(found, "weights", None) in ("class", "group")

    @property
    def _own(self) -> str:
        return "this model" if self.name == "model" else self.name

    def to_dict(self) -> dict[str, Any]:
        """Numbers and strings in nested dicts and lists, ready for JSON."""
        names = ("verdict", "answer", "headline", "sentences", "scored_on", "best")
        kept = ("settings", "cross_validated", "report")
        models = {k: {name: getattr(m, name) for name in kept} for k, m in self.models.items()}
        said = {name: getattr(self, name) for name in names}
        changes = {"change": self.change, "from_plain": self.from_plain}
        return markup.as_json(said | {"models": models} | changes)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self, width: int = 10_000) -> list[str]:
        """The headline, a table of all models, and the sentences, no wider than given."""
        said = (line for text in self.sentences for line in wrap(text, width))
        return [*wrap(self.headline, width), "", *markup.aligned(*self._table()), "", *said]

    def __repr__(self) -> str:
        return f"Comparison({', '.join(self.models)}: {self.verdict!r})"

    def _repr_html_(self) -> str:
        """The same as HTML."""
        said = map(markup.paragraph, self.sentences)
        headline = markup.paragraph(self.headline, strong=True)
        return markup.block(headline, markup.table(*self._table()), *said)

    def _table(self) -> tuple[list[list[Any]], str]:
        """Rows of a table of all models, its head first, and the sides of its columns."""
        reports = list(self.reports.values())
        rows: list[list[Any]] = [[reports[0].metric, "n", *self.models]]
        rows.append(["worst group", "", *(f"{r.worst:.4f}" for r in reports)])
        rows.append(["average", reports[0].n, *(f"{r.average:.4f}" for r in reports)])
        for i, g in enumerate(reports[0].groups):
            rows.append([g.name, g.n, *(f"{r.groups[i].value:.4f}" for r in reports)])
        return rows, "<" + ">" * (len(reports) + 1)


def _better(found: PairedReport) -> int:
    """1 if the second model is clearly better, -1 if it is clearly worse, 0 if neither."""
    sign = 1 if found.metric == "accuracy" else -1
    for change, against in ((found.worst, 0.0), (found.average, sign * found.worst.difference)):
        low, high = sorted((sign * change.low, sign * change.high))
        if low > 0 and against >= 0:
            return 1
        if high < 0 and against <= 0:
            return -1
    return 0


def _score(value: float, found: PairedReport) -> str:
    return f"{value:.1%}" if found.metric == "accuracy" else markup.number(value)


def _shown(change: Any, found: PairedReport) -> tuple[str, str, str]:
    """Scores before and after, and their difference with its interval, in points for accuracies."""
    changes, unit = (change.difference, change.low, change.high), ""
    if found.metric == "accuracy":
        (value, low, high), unit = (f"{100 * v:+.1f}" for v in changes), " points"
    else:
        value, low, high = (markup.number(v, "+") for v in changes)
    difference = f"{value}{unit}, {100 * found.level:g}% interval {low} to {high}"
    return _score(change.before, found), _score(change.after, found), difference
