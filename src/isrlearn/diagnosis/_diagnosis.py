"""The diagnosis: what was found, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from isrlearn.diagnosis import _text
from isrlearn.diagnosis._advice import Recommendation, parameters
from isrlearn.diagnosis._cells import Cells
from isrlearn.diagnosis._covariances import CovarianceShift
from isrlearn.diagnosis._findings import findings
from isrlearn.diagnosis._heads import HeadScore
from isrlearn.diagnosis._information import Information
from isrlearn.diagnosis._means import MeanShift
from isrlearn.diagnosis._needs import Requirement
from isrlearn.diagnosis._stability import Stability
from isrlearn.diagnosis._target import TargetShift
from isrlearn.diagnosis._unseen import Unseen
from isrlearn.diagnosis._value import plain


@dataclass(frozen=True)
class Diagnosis:
    """What `isrlearn.diagnose` found; ``print(diagnosis)`` says it in words.

    Parameters
    ----------
    task : {"classification", "regression"}
    n_samples, n_features : int
    level : float
        Level of every test.
    cells : Cells
        Rows of every class in every environment.
    means : MeanShift or None
        Do class means move? None if no two cells can be compared.
    covariances : CovarianceShift or None
        Do class covariances differ? None for a regression, where that says nothing.
    method : {"mean", "cov", "joint"}
        What is compared in all that follows.
    n_spurious : int
        Dimensions to remove; 0 if nothing moves.
    n_components : int or None
        Principal components that covariances were compared along, where not along all features.
    requirements : tuple of Requirement
        How many environments each theorem asks for.
    stability : Stability or None
        How far the subspace would turn if the data were drawn again; None if there is none.
    information : Information or None
        Labels and environments told before and after the removal.
    heads : tuple of HeadScore
        Accuracy of linear heads in the worst group; empty for a regression.
    unseen : Unseen or None
        Score in environments left out in turn; None where those left would show less.
    target : TargetShift or None
        Does the target itself move? For a regression.

    Examples
    --------
    >>> from isrlearn.datasets import make_gaussian_environments
    >>> from isrlearn.diagnosis import diagnose
    >>> data = make_gaussian_environments(500, 4, n_spurious=2, random_state=0)
    >>> diagnosis = diagnose(data.X, data.y, data.environments)
    >>> diagnosis.means.n_dimensions, diagnosis.recommendation.parameters
    (2, {'method': 'mean', 'n_spurious': 2})
    """

    task: str
    n_samples: int
    n_features: int
    level: float
    cells: Cells
    means: MeanShift | None = None
    covariances: CovarianceShift | None = None
    method: str = "mean"
    n_spurious: int = 0
    n_components: int | None = None
    requirements: tuple[Requirement, ...] = ()
    stability: Stability | None = None
    information: Information | None = None
    heads: tuple[HeadScore, ...] = ()
    unseen: Unseen | None = None
    target: TargetShift | None = None

    @cached_property
    def recommendation(self) -> Recommendation:
        """What to do: parameters of an estimator, and reasons in words."""
        chosen = parameters(self)
        return Recommendation(
            estimator="ISRClassifier" if self.task == "classification" else "ISRRegressor",
            parameters=chosen,
            unlabel=self.cells.left_out if self.cells.comparable else (),
            findings=tuple(findings(self, chosen)),
        )

    @property
    def answers(self) -> tuple[tuple[str, str], ...]:
        """The questions that could be answered, each with its answer in words."""
        return tuple(_text.answers(self))

    def to_dict(self) -> dict[str, Any]:
        """Numbers and strings in nested dicts and lists, ready for JSON."""
        advice = self.recommendation
        return {
            **plain(self),
            "recommendation": {**plain(advice), "sentences": list(advice.sentences)},
        }

    def __str__(self) -> str:
        """The whole diagnosis as plain text."""
        return _text.report(self)
