"""The synthetic experiments: data sets of each figure, and methods shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

from isrlearn.datasets import Splits
from isrlearn.paper.datasets import (
    make_linear_unit_test,
    make_multiclass_unit_test,
    make_regression_unit_test,
)

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


def _multiclass(k: int) -> Panel:
    """The multiclass unit test with k classes."""
    make = partial(make_multiclass_unit_test, n_classes=k)
    return Panel(f"{k} classes", make, "classification", 5, k)


def _regression(d_s: int, anticausal: bool) -> Panel:
    """A regression unit test with d_s spurious dimensions."""
    make = partial(make_regression_unit_test, n_spurious=d_s, anticausal=anticausal)
    title = f"d_s = {d_s}" + (", anti-causal" if anticausal else "")
    return Panel(title, make, "regression", d_s)


_UNIT_TESTS = {n: _unit_test(n) for n in ("1", "1s", "2", "2s", "3", "3s", "3'", "3s'")}
_MULTICLASS = {f"k={k}": _multiclass(k) for k in range(2, 8)}
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
