"""The number of environments that each algorithm needs, measured with population moments."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from isrlearn.core import METHODS, Moments, principal_angles
from isrlearn.paper.tables import Table, csv_of, markdown, write_files

ANGLE = 1e-8
N_INVARIANT = 5


@dataclass(frozen=True)
class Complexity:
    """Number of environments an algorithm needs to recover the spurious subspace."""

    algorithm: str
    n_spurious: int
    n_classes: int  # 1 for regression
    bound: int  # of the theorem
    paper: int | None  # smallest measured number; None if above the bound by more than two
    pooled: int | None


@dataclass(frozen=True)
class _Theorem:
    """One row of the paper's Table 1."""

    algorithm: str
    method: str  # name in METHODS
    bound: Callable[[int, int], int]  # of d_s, k
    n_classes: int | None = None  # None: any
    mirrored: bool = False  # the binary model: spurious means +μ_e and −μ_e


_THEOREMS = (
    _Theorem("ISR-Mean", "mean", lambda d_s, k: d_s + 1, 2, mirrored=True),
    _Theorem("ISR-Cov", "cov", lambda d_s, k: 2, 2, mirrored=True),
    _Theorem("ISR-Multiclass", "multiclass", lambda d_s, k: -(-d_s // k) + 1),
    _Theorem("ISR-Regression", "regression", lambda d_s, k: d_s + 1, 1),
)


def environment_complexity(
    n_spurious: Iterable[int] = range(1, 9),
    n_classes: Iterable[int] = range(2, 8),
    *,
    n_repeats: int = 20,
) -> list[Complexity]:
    """Number of environments that each algorithm needs, with the bound of its theorem.

    Every repetition draws a mixing matrix, means and variances at random and passes the exact
    moments to the algorithm. The subspace counts as recovered if its largest principal angle with
    the true one is at most 1e-8.

    Parameters
    ----------
    n_spurious : iterable of int, default=range(1, 9)
        Spurious dimensions to try.
    n_classes : iterable of int, default=range(2, 8)
        Numbers of classes to try, for the algorithm that uses them.
    n_repeats : int, default=20
        Number of random models that must be recovered.

    Examples
    --------
    >>> found = environment_complexity([4], [4], n_repeats=2)
    >>> [c.paper for c in found if c.algorithm == "ISR-Multiclass"]
    [2]
    """
    found = []
    classes, dimensions = list(n_classes), list(n_spurious)
    if min(classes) < 2:
        raise ValueError(f"n_classes={min(classes)}: a classifier needs at least 2 classes")
    if min(dimensions) < 1:
        raise ValueError(f"n_spurious={min(dimensions)}: it must be at least 1")
    for d_s in dimensions:
        for theorem in _THEOREMS:
            for k in classes if theorem.n_classes is None else [theorem.n_classes]:
                paper, pooled = (
                    _smallest(theorem, d_s, k, variant, n_repeats)
                    for variant in ("paper", "pooled")
                )
                bound = theorem.bound(d_s, k)
                found.append(Complexity(theorem.algorithm, d_s, k, bound, paper, pooled))
    return found


def complexity_table(found: Iterable[Complexity]) -> Table:
    """The table of environment complexities: bound and measured numbers side by side."""
    head = ["algorithm", "d_s", "k", "bound", "measured, paper's form", "measured, pooled form"]
    ordered = sorted(found, key=lambda c: [t.algorithm for t in _THEOREMS].index(c.algorithm))
    rows = [
        [c.algorithm, str(c.n_spurious), str(c.n_classes), str(c.bound)]
        + ["none" if m is None else str(m) for m in (c.paper, c.pooled)]
        for c in ordered
    ]
    return Table("Environments needed to recover the spurious subspace", head, rows)


def write_complexity(
    found: Iterable[Complexity], out: Path | str, command: str = "", *, n_repeats: int = 20
) -> list[Path]:
    """Paths of the files written: results.csv, table.md."""
    found = list(found)
    note = (
        "The smallest number of environments at which the largest principal angle between the "
        f"recovered and the true subspace is at most {ANGLE:g} in each of {n_repeats} random "
        "models, given exact moments."
    )
    table = complexity_table(found)
    contents = {
        "results.csv": csv_of(Complexity, found),
        "table.md": markdown("Environment complexity", [note], [table], command=command),
    }
    return write_files(out, contents)


def _smallest(theorem: _Theorem, d_s: int, k: int, variant: str, n_repeats: int) -> int | None:
    """The smallest number of environments at which every repetition succeeds."""
    find = METHODS[theorem.method].find
    for E in range(2, theorem.bound(d_s, k) + 3):
        models = (
            _model(np.random.default_rng([0, i, d_s, k, E]), d_s, k, E, theorem.mirrored)
            for i in range(n_repeats)
        )
        found = ((find(moments, d_s, variant=variant).basis, B) for moments, B in models)
        # A basis of fewer dimensions cannot be the subspace.
        if all(U.shape[1] >= d_s and principal_angles(U, B).max() <= ANGLE for U, B in found):
            return E
    return None


def _model(
    rng: np.random.Generator, d_s: int, k: int, E: int, mirrored: bool
) -> tuple[Moments, NDArray[np.float64]]:
    """Exact moments of a random model, and the map of its spurious features."""
    d = N_INVARIANT + d_s
    # A product of rotations and moderate scales is well conditioned but not orthogonal.
    left, right = (np.linalg.qr(rng.standard_normal((d, d)))[0] for _ in range(2))
    R = left * rng.uniform(0.5, 2.0, d) @ right
    A, B = R[:, :N_INVARIANT], R[:, N_INVARIANT:]
    shift = rng.standard_normal((k, E, d_s))
    if mirrored:
        shift = np.stack([shift[0], -shift[0]])
    mean = rng.standard_normal((k, 1, N_INVARIANT)) @ A.T + shift @ B.T
    sigma = rng.uniform(0.5, 2.0, E)[:, None, None]
    covariance = A @ A.T + sigma**2 * (B @ B.T)
    return Moments.population(mean, np.broadcast_to(covariance, (k, E, d, d))), B
