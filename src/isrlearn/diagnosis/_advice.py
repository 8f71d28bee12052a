"""What to do, in parameters and in plain words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isrlearn.diagnosis._findings import Finding, notably_better

if TYPE_CHECKING:
    from isrlearn.diagnosis._diagnosis import Diagnosis


@dataclass(frozen=True)
class Recommendation:
    """What to do.

    Parameters
    ----------
    estimator : {"ISRClassifier", "ISRRegressor"}
    parameters : dict
        Its parameters, those left at their defaults not among them.
    unlabel : tuple
        Environments to leave out of the comparison: set the environment of their rows to None.
    findings : tuple of Finding
        Why, and what limits it.

    Examples
    --------
    >>> found = Finding("no-shift", "Nothing moves.")
    >>> Recommendation("ISRClassifier", {"n_spurious": 0}, (), (found,)).codes
    ('no-shift',)
    """

    estimator: str
    parameters: dict[str, Any]
    unlabel: tuple[Any, ...]
    findings: tuple[Finding, ...]

    @property
    def codes(self) -> tuple[str, ...]:
        """Codes of the findings."""
        return tuple(finding.code for finding in self.findings)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The findings in words, what to do first."""
        return (self.summary, *(finding.text for finding in self.findings))

    @property
    def summary(self) -> str:
        """What to do, in a sentence."""
        given = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        if "nothing-to-compare" in self.codes:
            return (
                "ISR cannot be used: no class can be compared between environments. Fit without "
                "environments, which removes nothing."
            )
        if "nothing-to-spare" in self.codes:
            return "Remove nothing: what changes cannot be spared."
        if self.parameters.get("n_spurious") == 0:
            return "Remove nothing: there is no reason to use ISR on these data."
        first = f"Use {self.estimator}({given})."
        if self.unlabel:
            names = ", ".join(map(repr, self.unlabel))
            first += f" Before, set the environment of the rows of {names} to None."
        return first


def parameters(diagnosis: Diagnosis) -> dict[str, Any]:
    """Parameters of the estimator that suits what was found."""
    if not diagnosis.cells.comparable:
        return {"missing_environments": "single"}
    found: dict[str, Any] = {"n_spurious": diagnosis.n_spurious}
    if diagnosis.n_spurious == 0:
        return found
    if diagnosis.task == "classification":
        method = diagnosis.method
        if method == "mean" and len(diagnosis.cells.compared_classes) > 2:
            method = "multiclass"
        found = {"method": method, **found}
    if diagnosis.n_components is not None:
        found["n_components"] = diagnosis.n_components
    return found | _weights(diagnosis)


def _weights(diagnosis: Diagnosis) -> dict[str, str]:
    """Weights of the head that lift the worst group by more than a little."""
    scores = {h.weight: h for h in diagnosis.heads if h.removed == (diagnosis.n_spurious > 0)}
    if not scores:
        return {}
    best: str | None = None
    for weight in ("class", "group"):
        if notably_better(scores[weight], scores[best]):
            best = weight
    return {} if best is None else {"weights": best}
