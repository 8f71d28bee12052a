"""The methods by name: how each is built, and which hyper-parameters it is tried with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from isrlearn import ISRClassifier, ISRRegressor
from isrlearn.paper.baselines import make_baseline, published_trials, search_space
from isrlearn.paper.experiments import Panel

__all__ = ["METHODS", "Method"]

BOTH = frozenset({"classification", "regression"})
CLASSIFICATION = frozenset({"classification"})
REGRESSION = frozenset({"regression"})

Trials = Callable[[int], list[dict[str, Any]]]


@dataclass(frozen=True)
class Method:
    """A method of the benchmarks.

    Parameters
    ----------
    label : str
        Its name in tables and figures.
    build : callable
        ``build(panel, n_environments)`` returns an estimator that is told the panel's number
        of spurious dimensions, if it wants to know.
    tasks : frozenset of str
        Tasks it can do.
    trials : mapping of str to callable
        For each way it can be optimised, the hyper-parameters to try, given how many.
    oracle : bool
        Whether it is trained on data whose spurious features are permuted.
    cells : str or None
        The method whose cells it shows, if not its own: the two then differ in `chosen_by`.
    chosen_by : {"validation", "value"}
        The error by which hyper-parameters are chosen: on the validation split, or on the test
        split, which bounds what any way of choosing could reach.

    Examples
    --------
    >>> METHODS["irmv1"].label, sorted(METHODS["irmv1"].trials)
    ('IRMv1', ['converged', 'published'])
    """

    label: str
    build: Callable[[Panel, int], Any]
    tasks: frozenset[str]
    trials: Mapping[str, Trials]
    oracle: bool = False
    cells: str | None = None
    chosen_by: Literal["validation", "value"] = "validation"

    def optimized(self, wanted: str) -> str:
        """The way it is optimised: the one wanted, or the only one it has."""
        return wanted if wanted in self.trials else next(iter(self.trials))

    def estimator(
        self, panel: Panel, n_environments: int, optimizer: str, parameters: Mapping[str, Any]
    ) -> Any:
        """An estimator with the given hyper-parameters, not fitted."""
        built = self.build(panel, n_environments)
        if len(self.trials) > 1:
            built.set_params(optimizer=optimizer)
        return built.set_params(**parameters)


def _nothing(n: int) -> list[dict[str, Any]]:
    """One trial: there is nothing to choose."""
    return [{}]


def _isr(label: str, method: str, variant: str, *, told: bool = True) -> Method:
    """An ISR classifier, told the number of spurious dimensions, or left to test for it."""

    def build(panel: Panel, n_environments: int) -> ISRClassifier:
        # The means of E environments tell of E − 1 dimensions a class. In the binary tests both
        # classes move along the same ones, ±μ_e: "mean" counts those of one class in both forms.
        seen = {"mean": n_environments - 1, "multiclass": panel.n_classes * (n_environments - 1)}
        n_spurious = min(panel.n_spurious, seen.get(method, panel.n_spurious))
        return ISRClassifier(
            method=method, n_spurious=n_spurious if told else "auto", variant=variant
        )

    return Method(label, build, CLASSIFICATION, {"converged": _nothing})


def _isr_regression(label: str, variant: str) -> Method:
    """An ISR regressor."""

    def build(panel: Panel, n_environments: int) -> ISRRegressor:
        return ISRRegressor(n_spurious=min(panel.n_spurious, n_environments - 1), variant=variant)

    return Method(label, build, REGRESSION, {"converged": _nothing})


def _baseline(algorithm: str, *, oracle: bool = False) -> Method:
    """A linear baseline: converged, if it can be, or as published."""

    def build(panel: Panel, n_environments: int) -> Any:
        return make_baseline(algorithm, task=panel.task)

    def published(n: int) -> list[dict[str, Any]]:
        return [dict(trial) for trial in published_trials(algorithm)[:n]]

    trials: dict[str, Trials] = {"published": published}
    if "optimizer" in make_baseline(algorithm).get_params():
        trials = {"converged": partial(_penalties, algorithm), **trials}
    return Method(algorithm, build, BOTH, trials, oracle)


def _penalties(algorithm: str, n: int) -> list[dict[str, Any]]:
    """Penalties over their published ranges: all that is left to choose once converged."""
    space = search_space(algorithm)
    names = [name for name in space if name not in ("learning_rate", "weight_decay")]
    if not names:
        return [{}]
    if len(names) > 1:
        rng = np.random.default_rng(0)
        return [{name: space[name].sample(rng) for name in names} for _ in range(n)]
    penalty = space[names[0]]
    values = (penalty.scale(float(u)) for u in np.linspace(penalty.low, penalty.high, n))
    return [{names[0]: value} for value in sorted(values)]


_IRMV1 = _baseline("IRMv1")

METHODS: dict[str, Method] = {
    "isr-mean": _isr("ISR-Mean", "mean", "paper"),
    "isr-mean-pooled": _isr("ISR-Mean, pooled", "mean", "pooled"),
    "isr-mean-auto": _isr("ISR-Mean, pooled, rank tested", "mean", "pooled", told=False),
    "isr-cov": _isr("ISR-Cov", "cov", "paper"),
    "isr-cov-pooled": _isr("ISR-Cov, pooled", "cov", "pooled"),
    "isr-joint": _isr("ISR-Joint", "joint", "pooled"),
    "isr-joint-auto": _isr("ISR-Joint, rank tested", "joint", "pooled", told=False),
    "isr-multiclass": _isr("ISR-Multiclass", "multiclass", "paper"),
    "isr-multiclass-pooled": _isr("ISR-Multiclass, pooled", "multiclass", "pooled"),
    "isr-regression": _isr_regression("ISR-Regression", "paper"),
    "isr-regression-pooled": _isr_regression("ISR-Regression, pooled", "pooled"),
    "erm": _baseline("ERM"),
    "least-squares": replace(_baseline("ERM"), label="Least squares (ERM)", tasks=REGRESSION),
    "irmv1": _IRMV1,
    "irmv1-best": replace(
        _IRMV1, label="IRMv1, penalty chosen on test", cells="irmv1", chosen_by="value"
    ),
    "iga": _baseline("IGA"),
    "andmask": _baseline("ANDMask"),
    "oracle": _baseline("Oracle", oracle=True),
}
