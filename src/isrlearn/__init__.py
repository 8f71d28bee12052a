"""Invariant-feature subspace recovery for scikit-learn."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .diagnosis import Diagnosis, diagnose, scan
    from .estimators import (
        ISRClassifier,
        ISRClassifierCV,
        ISRRegressor,
        ISRRegressorCV,
        ISRTransformer,
        TablePreparer,
        compare_models,
        infer_environments,
    )
    from .io import load, save

__version__ = "0.1.0"

__all__ = [
    "Diagnosis",
    "ISRClassifier",
    "ISRClassifierCV",
    "ISRRegressor",
    "ISRRegressorCV",
    "ISRTransformer",
    "TablePreparer",
    "__version__",
    "compare_models",
    "diagnose",
    "infer_environments",
    "load",
    "save",
    "scan",
]

# Imported on first use: `isr --help` must not wait a second for scikit-learn.
_MODULE_OF = (
    dict.fromkeys(__all__, "estimators")
    | dict.fromkeys(("Diagnosis", "diagnose", "scan"), "diagnosis")
    | dict.fromkeys(("load", "save"), "io")
)
_SUBMODULES = {
    "core",
    "datasets",
    "displays",
    "engine",
    "estimators",
    "io",
    "metrics",
    "paper",
    "torch",
}


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    if name in _SUBMODULES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_SUBMODULES})
