"""The methods by name: how each is built, and which hyper-parameters are tried."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from isrlearn import ISRClassifier, ISRRegressor
from isrlearn.paper.baselines import make_baseline, published_trials, search_space
from isrlearn.paper.experiments import Panel
from isrlearn.paper.isr import PublishedISR

BOTH = frozenset({"classification", "regression"})
CLASSIFICATION = frozenset({"classification"})
REGRESSION = frozenset({"regression"})

#: From the number of trials to their hyper-parameters.
Trials = Callable[[int], list[dict[str, Any]]]


@dataclass(frozen=True)
class Method:
    """A method of the benchmarks."""

    label: str  # in tables and figures
    build: Callable[[Panel, int], Any]  # from panel and number of environments to an estimator
    tasks: frozenset[str]
    trials: Mapping[str, Trials]  # hyper-parameters to try, for each way to optimise the method
    oracle: bool = False  # whether it is trained on data whose spurious features are permuted
    cells: str | None = None  # the method whose cells are shown, if not its own
    #: What chooses hyper-parameters; by the test error ("value") none could be better.
    chosen_by: Literal["validation", "value"] = "validation"

    def optimized(self, wanted: str) -> str:
        """How the method is optimised: as wanted, or in the only way there is."""
        return wanted if wanted in self.trials else next(iter(self.trials))

    def estimator(
        self, panel: Panel, n_environments: int, optimizer: str, parameters: Mapping[str, Any]
    ) -> Any:
        """An unfitted estimator with the given hyper-parameters."""
        built = self.build(panel, n_environments)
        if len(self.trials) > 1:
            built.set_params(optimizer=optimizer)
        return built.set_params(**parameters)


def _nothing(n: int) -> list[dict[str, Any]]:
    """One trial without hyper-parameters."""
    return [{}]


def _isr(label: str, method: str, variant: str, *, auto: bool = False) -> Method:
    """An ISR model that knows the number of spurious dimensions, or tests for it."""
    regression = method == "regression"

    def build(panel: Panel, n_environments: int) -> Any:
        # The means of E environments show E − 1 dimensions per class. In the binary tests both
        # classes shift along the same ones, ±μ_e, so "mean" counts those of one class.
        shown = n_environments - 1
        seen = {"mean": shown, "regression": shown, "multiclass": panel.n_classes * shown}
        if variant == "authors" and method == "mean":
            seen = {}  # filled up with directions that do not shift
        n_spurious = min(panel.n_spurious, seen.get(method, panel.n_spurious))
        if variant != "pooled":
            return PublishedISR(method, n_spurious, variant)
        if regression:
            return ISRRegressor(n_spurious=n_spurious)
        return ISRClassifier(method, n_spurious="auto" if auto else n_spurious, C=1.0, weights=None)

    trials: dict[str, Trials] = {"converged": _nothing}
    if variant != "pooled":
        trials["published"] = partial(_published, "ERM")
    return Method(label, build, REGRESSION if regression else CLASSIFICATION, trials)


def _published(algorithm: str, n: int) -> list[dict[str, Any]]:
    """The first trials of the published search."""
    return [dict(trial) for trial in published_trials(algorithm)[:n]]


def _baseline(algorithm: str, *, oracle: bool = False) -> Method:
    """A linear baseline: converged where possible, or as published."""

    def build(panel: Panel, n_environments: int) -> Any:
        return make_baseline(algorithm, task=panel.task)

    trials: dict[str, Trials] = {"published": partial(_published, algorithm)}
    if "optimizer" in make_baseline(algorithm).get_params():
        trials = {"converged": partial(_penalties, algorithm), **trials}
    return Method(algorithm, build, BOTH, trials, oracle)


def _penalties(algorithm: str, n: int) -> list[dict[str, Any]]:
    """Penalties over their published ranges, the only hyper-parameters of converged methods."""
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
    "isr-mean-authors": _isr("ISR-Mean, lowest d_c directions", "mean", "authors"),
    "isr-mean-pooled": _isr("ISR-Mean, pooled", "mean", "pooled"),
    "isr-mean-auto": _isr("ISR-Mean, pooled, rank tested", "mean", "pooled", auto=True),
    "isr-cov": _isr("ISR-Cov", "cov", "paper"),
    "isr-cov-pooled": _isr("ISR-Cov, pooled", "cov", "pooled"),
    "isr-joint": _isr("ISR-Joint", "joint", "pooled"),
    "isr-joint-auto": _isr("ISR-Joint, rank tested", "joint", "pooled", auto=True),
    "isr-multiclass": _isr("ISR-Multiclass", "multiclass", "paper"),
    "isr-multiclass-authors": _isr("ISR-Multiclass, authors' code", "multiclass", "authors"),
    "isr-multiclass-pooled": _isr("ISR-Multiclass, pooled", "multiclass", "pooled"),
    "isr-regression": _isr("ISR-Regression", "regression", "paper"),
    "isr-regression-pooled": _isr("ISR-Regression, pooled", "regression", "pooled"),
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
