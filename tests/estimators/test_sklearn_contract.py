"""What scikit-learn expects of its estimators: every common check, no expected failures."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
from pathlib import Path

from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import parametrize_with_checks

import isrlearn
from isrlearn import ISRClassifier, ISRRegressor, ISRTransformer, TablePreparer


@parametrize_with_checks(
    [
        ISRClassifier(missing_environments="single"),
        ISRClassifier(head="lda", missing_environments="single"),
        ISRRegressor(missing_environments="single"),
        ISRTransformer(missing_environments="single"),
        ISRTransformer(method="regression", missing_environments="single"),
        TablePreparer(),
    ]
)
def test_common_checks(estimator, check):
    before = dict(vars(estimator))
    check(estimator)
    # A check fits copies: what it was given is neither fitted nor set.
    assert vars(estimator) == before


def _public_estimators():
    """Every public class with a `fit` in the packages of the library, by name."""
    found = {}
    for info in pkgutil.walk_packages(isrlearn.__path__, "isrlearn."):
        if info.ispkg and not any(part.startswith("_") for part in info.name.split(".")):
            package = importlib.import_module(info.name)
            for name in getattr(package, "__all__", ()):
                kind = getattr(package, name)
                if inspect.isclass(kind) and issubclass(kind, BaseEstimator):
                    found[name] = kind
    return found


def _checked(module):
    """Names of the estimators whose common checks a test module runs."""
    marks = module.test_common_checks.pytestmark
    cases = [case for mark in marks for case in mark.args[1]]
    return {type(getattr(case, "values", case)[0]).__name__ for case in cases}


def test_every_public_estimator_is_checked():
    here, checked = Path(__file__).parent, set()
    names = ["test_sklearn_contract.py", "test_dfr.py", "search/test_contract.py"]
    names.append("../paper/baselines/test_sklearn_contract.py")
    for i, name in enumerate(names):
        spec = importlib.util.spec_from_file_location(f"checks_{i}", here / name)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        checked |= _checked(module)
    public = set(_public_estimators())
    assert {"ISRClassifier", "ISRRegressorCV", "DFRClassifier", "ANDMaskClassifier"} <= public
    assert checked == public
