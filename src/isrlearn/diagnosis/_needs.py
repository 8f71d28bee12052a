"""How many environments each theorem asks for, and how many there are."""

from __future__ import annotations

from dataclasses import dataclass

from isrlearn.diagnosis._covariances import CovarianceShift
from isrlearn.diagnosis._means import MeanShift


@dataclass(frozen=True)
class Requirement:
    """What a theorem asks for, given the number of spurious dimensions found.

    Parameters
    ----------
    theorem : str
        Name of the algorithm.
    needed, available : int
        Environments.
    met : bool or None
        Whether the theorem applies. None if that cannot be told: the environments show as many
        dimensions as so few of them can, and there may be more.
    note : str
        What else the theorem asks for, and how it stands.

    Examples
    --------
    >>> print(Requirement("ISR-Mean", 6, 4, False, ""))
    ISR-Mean needs 6 environments, there are 4: not met
    """

    theorem: str
    needed: int
    available: int
    met: bool | None
    note: str

    def __str__(self) -> str:
        """A line of text."""
        needed = f"at least {self.needed}" if self.met is None else str(self.needed)
        note = f"; {self.note}" if self.note else ""
        met = {True: "met", False: "not met", None: "cannot be told"}[self.met]
        return (
            f"{self.theorem} needs {needed} environments, there are {self.available}{note}: {met}"
        )


def requirements(
    means: MeanShift,
    covariances: CovarianceShift | None,
    n_environments: int,
    n_classes: int,
) -> tuple[Requirement, ...]:
    """What the theorems ask for; nothing if nothing moves."""
    moved = covariances is not None and covariances.moved
    if not means.moved and not moved:
        return ()
    joint = covariances.n_dimensions_joint if covariances is not None else 0
    d_s = max(means.n_dimensions, joint)
    open_ended = means.limited and not confirmed(means, covariances)
    E = n_environments

    def by_means(theorem: str, needed: int, note: str = "") -> Requirement:
        if not means.moved:
            return Requirement(theorem, needed, E, False, "means do not move")
        enough = needed <= E
        met = None if enough and open_ended else enough
        return Requirement(theorem, needed, E, met, note)

    if covariances is None:
        return (by_means("ISR-Regression", d_s + 1),)
    found = [by_means("ISR-Mean", d_s + 1), _by_covariances(covariances, E)]
    if n_classes > 2 or means.n_patterns > 1:
        k = means.n_patterns
        note = f"{k} of {n_classes} classes move in ways of their own" if k < n_classes else ""
        found.append(by_means("ISR-Multiclass", -(-d_s // k) + 1, note))
    return tuple(found)


def confirmed(means: MeanShift, covariances: CovarianceShift | None) -> bool:
    """Whether covariances show no more dimensions than means do, or show more.

    They show every dimension at once, however few the environments: what limits the means does
    not limit them.
    """
    if covariances is None or not covariances.moved or covariances.weak:
        return False
    return covariances.n_dimensions >= means.n_dimensions


def _by_covariances(covariances: CovarianceShift, E: int) -> Requirement:
    if covariances.p_value is None:
        note = "covariances cannot be compared"
    elif covariances.moved:
        note = f"variances differ by {covariances.ratio:.2f} of their mean"
    else:
        note = "covariances do not differ"
    met = None if covariances.weak else covariances.moved
    return Requirement("ISR-Cov", 2, E, met, note)
