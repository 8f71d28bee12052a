"""What a diagnosis found: the facts, a recommendation, and both in words."""

from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from isrlearn import markup
from isrlearn.diagnosis.shares import ColumnShare, said
from isrlearn.diagnosis.shifts import CellCounts, Shift, Stability
from isrlearn.estimators import Comparison, ISRClassifier, ISRRegressor

#: Ratio of two variances above which the smaller one is called none.
_NO_VARIANCE = 1e4


@dataclass(frozen=True)
class Recommendation:
    """What to do.

    Examples
    --------
    >>> Recommendation("no difference", "ISRClassifier", {"n_spurious": 0}).summary
    'No difference is expected from ISR: use ISRClassifier(n_spurious=0), which removes nothing.'
    """

    prediction: str  #: ISR "helps", makes "no difference" or "hurts", against the best alternative.
    estimator: str  #: "ISRClassifier" or "ISRRegressor".
    parameters: dict[str, Any]  #: Its parameters, except those left at their defaults.

    @property
    def summary(self) -> str:
        """What to do in a sentence."""
        given = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        use = f"use {self.estimator}({given})"
        return {
            "unknown": "The models were not compared.",
            "helps": f"ISR is expected to help: {use}.",
            "hurts": f"Harm is expected from ISR: {use}, which removes nothing.",
            "no difference": f"No difference is expected from ISR: {use}, which removes nothing.",
        }[self.prediction]

    def __str__(self) -> str:
        """What to do in a sentence."""
        return self.summary

    def _repr_html_(self) -> str:
        return markup.block(markup.paragraph(self.summary, strong=True))


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis:
    """What `isrlearn.diagnose` found; ``print(diagnosis)`` shows it in words.

    Examples
    --------
    >>> from isrlearn.datasets import make_gaussian_environments
    >>> from isrlearn.diagnosis import diagnose
    >>> data = make_gaussian_environments(500, 4, n_spurious=2, random_state=0)
    >>> diagnosis = diagnose(data.X, data.y, data.environments)
    >>> diagnosis.means.n_dimensions, diagnosis.recommendation.prediction
    (2, 'no difference')
    """

    task: str  #: "classification" or "regression".
    n_samples: int  #: Number of rows.
    n_features: int  #: Number of features.
    level: float  #: Level of every test.
    cells: CellCounts  #: Rows of every class in every environment.
    means: Shift | None = None  #: Do class means shift? None if nothing can be compared.
    #: Do class covariances differ? None for a regression, where that says nothing.
    covariances: Shift | None = None
    target: Shift | None = None  #: Does the target of a regression itself shift?
    stability: Stability | None = None  #: How far the subspace would rotate in data drawn again.
    comparison: Comparison | None = None  #: ISR and its alternatives, by cross-validation.
    n_compared: int = 0  #: Rows that the models were compared on.
    #: Scores of the best alternative and of ISR in every environment when it is left out.
    unseen: dict[str, dict[Any, float]] | None = None
    #: Columns that carry the shifts of the means, and those predictions follow; None without names.
    columns: tuple[ColumnShare, ...] | None = None

    @property
    def recommendation(self) -> Recommendation:
        """What to do: a prediction, and the parameters of the estimator that won."""
        kind = ISRClassifier if self.task == "classification" else ISRRegressor
        if self.means is None:
            alone = {"missing_environments": "single"}
            return Recommendation("no difference", kind.__name__, alone)
        if self.comparison is None:
            return Recommendation("unknown", kind.__name__, {})
        answer = "helps" if self.has_gap else self.comparison.answer
        helps = answer == "helps"
        found = self.comparison.models[self.comparison.name if helps else self.comparison.best]
        settings = dict(found.settings)
        default = kind().get_params()
        if settings["scale"] == 1 or settings["n_spurious"] == 0:
            # Where the model that won removes nothing, it is not the removal that helps.
            answer = "no difference" if helps and not self.has_gap else answer
            unused = {name: default[name] for name in ("scale", "compare") if name in settings}
            settings |= {"n_spurious": 0} | unused
        changed = {name: v for name, v in settings.items() if v != default[name]}
        return Recommendation(answer, kind.__name__, changed)

    @property
    def has_gap(self) -> bool:
        """Whether a class was never seen in an environment, and means shift between environments.

        A model without removal may then take what shifts for a sign of the class, and no weights
        can correct that. No row of such a cell can be scored, so this decides the prediction.
        """
        return bool(self.cells.empty) and self.means is not None and self.means.shifted

    @property
    def findings(self) -> tuple[str, ...]:
        """What a user should know about the data, in sentences."""
        cells, m, s, t, found = self.cells, self.means, self.stability, self.target, []
        if m is None:
            found.append(
                "No class has rows in two environments, so the effects of class and environment "
                "cannot be separated. Collect rows of one class in a second environment."
            )
        if cells.empty:
            names = [f"class {c.label!r} in {c.environment!r}" for c in cells.empty]
            found.append(f"Cells without rows: {markup.listed(names, 3)}.")
        if self.has_gap and self.comparison is not None:
            found.append(
                "ISR is expected to help in these cells, which balanced weights cannot do; no row "
                f"of them can be scored here. In the other groups: {self.comparison.answer}."
            )
        if cells.small:
            small = markup.listed(list(map(str, cells.small)), 3)
            found.append(f"Cells of fewer than ten rows: {small}.")
        if m is not None and m.limited:
            found.append(
                f"Means of {len(cells.environments)} environments cannot show more dimensions: "
                "there may be others, which would not be removed."
            )
        if s is not None and not s.stable:
            more = f"About {s.more_rows:.1f}" if s.more_rows < 1000 else "Thousands of"
            found.append(
                "The subspace is uncertain: in data drawn again it would rotate by "
                f"{s.median[0]:.0f} degrees. {more} times as many rows in each cell would bring "
                "that below 30."
            )
        if t is not None and t.shifted:
            found.append(
                f"The target itself shifts between environments, by up to {t.effect:.2f} standard "
                "deviations. ISR for regression assumes that it does not."
            )
        return tuple(found)

    @property
    def answers(self) -> tuple[tuple[str, str], ...]:
        """The questions that could be answered, each with its answer in words."""
        if self.means is None:
            return (("Can anything be compared?", "no: no class has rows in two environments"),)
        spread = "variances by a factor of up to {:.2f}"
        if self.covariances is not None and self.covariances.effect > _NO_VARIANCE:
            spread = "a direction hardly varies in one place and does in another"
        found = [
            (question, shift.described(effect))
            for question, shift, effect in (
                ("Do means shift?", self.means, "largest {:.2f} sd"),
                ("Do covariances differ?", self.covariances, spread),
                ("Does the target shift?", self.target, "largest {:.2f} sd"),
            )
            if shift is not None
        ]
        if self.stability is not None:
            found.append(("Is the subspace stable?", str(self.stability)))
        if self.columns:
            found.append(("Which columns?", said(self.columns)))
        if self.unseen is not None:
            means = {name: sum(at.values()) / len(at) for name, at in self.unseen.items()}
            scores = ", ".join(f"{value:.3f} with {name}" for name, value in means.items())
            what = "accuracy" if self.task == "classification" else "error"
            answer = f"{what} {scores} (environments left out in turn)"
            found.append(("In an unseen environment?", answer))
        return tuple(found)

    def _left_out(self) -> tuple[list[list[str]], str]:
        """Rows of a table of the scores in environments left out, and the sides of its columns."""
        unseen = self.unseen or {}
        rows = [["left out", *unseen]]
        for place in next(iter(unseen.values()), {}):
            rows.append([str(place), *(f"{at[place]:.3f}" for at in unseen.values())])
        return rows, "<" + ">" * len(unseen)

    def to_dict(self) -> dict[str, Any]:
        """Numbers and strings in nested dicts and lists, ready for JSON; NaN becomes None."""
        advice = vars(self.recommendation) | {"summary": self.recommendation.summary}
        found = {"recommendation": advice, "findings": self.findings}
        return markup.as_json(vars(self) | found)

    def __repr__(self) -> str:
        return f"<{self._title}: {self.recommendation.prediction}>"

    def _repr_html_(self) -> str:
        """The recommendation, the findings and the answers; the comparison is folded."""
        found = [markup.paragraph(self.recommendation.summary, strong=True)]
        found += map(markup.paragraph, self.findings)
        found.append(markup.table(*self.cells.table()))
        found.append(markup.table([("question", "answer"), *self.answers], "<<"))
        if self.unseen is not None:
            found.append(markup.folded("Environments left out", markup.table(*self._left_out())))
        if self.comparison is not None:
            title = f"{self._compared}: {self.comparison.headline}"
            found.append(markup.folded(title, self.comparison._repr_html_()))
        about = f"{self._title} ({self.task}; tests at level {self.level:g})"
        return markup.block(markup.paragraph(about), *found)

    @property
    def _title(self) -> str:
        n_classes = f"{len(self.cells.classes)} classes, " if self.task == "classification" else ""
        return (
            f"Diagnosis of {self.n_samples:,} rows, {self.n_features:,} features, {n_classes}"
            f"{len(self.cells.environments)} environments"
        )

    @property
    def _compared(self) -> str:
        """How the models were compared, and on which rows."""
        sampled = f", on {self.n_compared:,} rows" if self.n_compared < self.n_samples else ""
        return f"By cross-validation{sampled}" + ", in the cells with rows" * self.has_gap

    def __str__(self) -> str:
        """The whole diagnosis as plain text."""
        lines = [
            self._title,
            f"({self.task}; tests at level {self.level:g})",
            "",
            *wrap(self.recommendation.summary, 96),
            *(line for text in self.findings for line in _beside("- ", text)),
            "",
            *markup.aligned(*self.cells.table()),
            "",
        ]
        for question, answer in self.answers:
            lines += _beside(f"{question:<28}", answer)
        if self.comparison is not None:
            lines += ["", self._compared, *self.comparison.lines(96)]
        if self.unseen is not None:
            lines += ["", *markup.aligned(*self._left_out())]
        return "\n".join(lines)


def _beside(label: str, text: str) -> list[str]:
    """Lines of text to the right of a label."""
    return wrap(text, 96, initial_indent=label, subsequent_indent=" " * len(label))
