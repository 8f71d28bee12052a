"""The synthetic experiments and their methods: how data and estimators are made."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from isrlearn import ISRClassifier, ISRRegressor
from isrlearn.datasets import Splits
from isrlearn.paper.baselines import make_baseline, published_trials, search_space
from isrlearn.paper.datasets import (
    make_linear_unit_test,
    make_multiclass_unit_test,
    make_regression_unit_test,
)
from isrlearn.paper.isr import PublishedISR

Task = Literal["classification", "regression"]


@dataclass(frozen=True)
class Panel:
    """A data set of a figure."""

    title: str
    make: Callable[..., Splits]  # make(n_environments=, n_samples=, random_state=)
    task: Task
    n_spurious: int  # dimension of the spurious features, which is passed to the methods
    n_classes: int = 1  # 1 for regression


@dataclass(frozen=True)
class Experiment:
    """A figure of the paper: data sets, and the methods run by default."""

    title: str  # heading of the page of tables
    panels: Mapping[str, Panel]  # by name
    datasets: tuple[str, ...]  # panels run by default
    methods: tuple[str, ...]  # methods run by default
    published_methods: tuple[str, ...]  # the same when baselines are optimised as published
    quantity: str = "Test error"
    log: bool = False  # whether errors are drawn on a logarithmic axis

    def default_methods(self, optimizer: str) -> tuple[str, ...]:
        """Methods run by default with an optimizer."""
        return self.published_methods if optimizer == "published" else self.methods


def _unit_test(name: str) -> Panel:
    """A data set of the linear unit tests or of the paper's variants of them."""
    task: Task = "regression" if name.startswith("1") else "classification"
    make = partial(make_linear_unit_test, name)
    return Panel(f"Example-{name}", make, task, 5, 1 if task == "regression" else 2)


def _regression(d_s: int, anticausal: bool) -> Panel:
    """A regression unit test with d_s spurious dimensions."""
    make = partial(make_regression_unit_test, n_spurious=d_s, anticausal=anticausal)
    title = f"d_s = {d_s}" + (", anti-causal" if anticausal else "")
    return Panel(title, make, "regression", d_s)


_UNIT_TESTS = {n: _unit_test(n) for n in ("1", "1s", "2", "2s", "3", "3s", "3'", "3s'")}
_MULTICLASS = {
    f"k={k}": Panel(
        f"{k} classes", partial(make_multiclass_unit_test, n_classes=k), "classification", 5, k
    )
    for k in range(2, 8)
}
_REGRESSION = {f"d_s={d_s}": _regression(d_s, False) for d_s in range(3, 7)} | {
    f"anticausal-d_s={d_s}": _regression(d_s, True) for d_s in range(3, 7)
}

EXPERIMENTS: dict[str, Experiment] = {
    "linear-unit-tests": Experiment(
        "Linear unit tests",
        _UNIT_TESTS,
        ("2", "2s", "3", "3s", "3'", "3s'"),
        (
            *("isr-mean", "isr-mean-pooled", "isr-cov", "isr-cov-pooled"),
            *("isr-joint", "isr-joint-auto"),
            *("erm", "irmv1", "irmv1-best", "iga", "oracle"),
        ),
        ("isr-mean", "isr-cov", "erm", "irmv1", "iga", "andmask", "oracle"),
    ),
    "multiclass": Experiment(
        "Multiclass linear unit test",
        _MULTICLASS,
        tuple(_MULTICLASS),
        ("isr-mean", "isr-multiclass", "isr-multiclass-pooled", "erm", "oracle"),
        ("isr-mean", "isr-multiclass", "erm", "oracle"),
    ),
    "regression": Experiment(
        "Regression linear unit test",
        _REGRESSION,
        tuple(_REGRESSION),
        (
            *("isr-regression", "isr-regression-pooled"),
            *("least-squares", "irmv1", "irmv1-best", "oracle"),
        ),
        ("isr-regression", "erm", "irmv1", "oracle"),
        quantity="Mean squared error",
        log=True,
    ),
}


Parameters = Mapping[str, Any]
#: From the number of trials to their hyper-parameters.
Trials = Callable[[int], Sequence[Parameters]]


@dataclass(frozen=True)
class Method:
    """A method of the benchmarks."""

    label: str  # in tables and figures
    build: Callable[[Panel, int], Any]  # from panel and number of environments to an estimator
    tasks: tuple[Task, ...]
    trials: Mapping[str, Trials]  # hyper-parameters to try, for each way to optimise the method
    oracle: bool = False  # whether it is trained on data whose spurious features are permuted
    cells: str | None = None  # the method whose cells are shown, if not its own
    #: What chooses hyper-parameters; by the test error ("value") none could be better.
    chosen_by: Literal["validation", "value"] = "validation"

    def optimized(self, wanted: str) -> str:
        """How the method is optimised: as wanted, or in the only way there is."""
        return wanted if wanted in self.trials else next(iter(self.trials))

    def estimator(
        self, panel: Panel, n_environments: int, optimizer: str, parameters: Parameters
    ) -> Any:
        """An unfitted estimator with the given hyper-parameters."""
        built = self.build(panel, n_environments)
        if len(self.trials) > 1:
            built.set_params(optimizer=optimizer)
        return built.set_params(**parameters)


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

    trials: dict[str, Trials] = {"converged": lambda n: [{}]}
    if variant != "pooled":
        trials["published"] = lambda n: published_trials("ERM")[:n]
    return Method(label, build, ("regression" if regression else "classification",), trials)


def _baseline(algorithm: str, *, oracle: bool = False) -> Method:
    """A linear baseline: converged where possible, or as published."""

    def build(panel: Panel, n_environments: int) -> Any:
        return make_baseline(algorithm, task=panel.task)

    trials: dict[str, Trials] = {"published": lambda n: published_trials(algorithm)[:n]}
    if "optimizer" in make_baseline(algorithm).get_params():
        trials = {"converged": partial(_penalties, algorithm), **trials}
    return Method(algorithm, build, ("classification", "regression"), trials, oracle)


def _penalties(algorithm: str, n: int) -> list[Parameters]:
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
    "least-squares": replace(_baseline("ERM"), label="Least squares (ERM)", tasks=("regression",)),
    "irmv1": _IRMV1,
    "irmv1-best": replace(
        _IRMV1, label="IRMv1, penalty chosen on test", cells="irmv1", chosen_by="value"
    ),
    "iga": _baseline("IGA"),
    "andmask": _baseline("ANDMask"),
    "oracle": _baseline("Oracle", oracle=True),
}
