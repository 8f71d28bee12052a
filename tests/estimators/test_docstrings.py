"""A docstring names the parameters of its signature and the attributes of a fit, all of them."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pandas as pd
import pytest

import isrlearn.core
from isrlearn import ISRClassifier, ISRRegressor, ISRTransformer

FITTED = {ISRClassifier: "binary", ISRRegressor: "continuous", ISRTransformer: "binary"}


def section(doc, title):
    """Names documented in a numpydoc section, in order; None if there is no such section."""
    match = re.search(rf"\n{title}\n-+\n(.*?)(?=\n\w[\w ]*\n-{{3,}}\n|\Z)", doc, flags=re.DOTALL)
    if match is None:
        return None
    heads = re.findall(r"^(\*{0,2}\w[\w, *]*?)(?: :.*)?$", match.group(1), flags=re.MULTILINE)
    return [name.strip("* ") for head in heads for name in head.split(",")]


def parameters(function):
    return [name for name in inspect.signature(function).parameters if name != "self"]


@pytest.mark.parametrize("estimator", FITTED)
def test_parameters_are_those_of_the_signature(estimator):
    assert section(inspect.getdoc(estimator), "Parameters") == parameters(estimator)
    assert sorted(estimator().get_params()) == sorted(parameters(estimator))


@pytest.mark.parametrize("estimator", FITTED)
def test_defaults_are_those_of_the_signature(estimator):
    doc = inspect.getdoc(estimator)
    for name, parameter in inspect.signature(estimator).parameters.items():
        match = re.search(rf"^{name} : (.*)$", doc, flags=re.MULTILINE)
        default = repr(parameter.default).replace("'", '"')
        if match is not None:
            assert match.group(1).endswith(f"default={default}"), match.group(0)
        else:
            shared = re.search(
                rf"^[\w, ]*\b{name}\b[\w, ]*\n +As in `(\w+)`", doc, flags=re.MULTILINE
            )
            other = inspect.signature(getattr(isrlearn, shared.group(1)))
            assert other.parameters[name].default == parameter.default, name


@pytest.mark.parametrize("estimator", FITTED)
def test_attributes_are_those_of_a_fit(estimator, request):
    X, y, e = request.getfixturevalue(FITTED[estimator])
    fitted = estimator().fit(pd.DataFrame(X, columns=list("abcde")), y, environments=e)
    public = [name for name in vars(fitted) if name.endswith("_") and not name.startswith("_")]
    assert sorted(section(inspect.getdoc(estimator), "Attributes")) == sorted(public)


@pytest.mark.parametrize("estimator", FITTED)
def test_methods_that_document_parameters_document_all(estimator):
    for name, method in inspect.getmembers(estimator, inspect.isfunction):
        if name.startswith("_") or not method.__module__.startswith("isrlearn"):
            continue
        assert method.__doc__, name
        documented = section(inspect.getdoc(method), "Parameters")
        if documented is not None:
            assert documented == parameters(method), name


CORE = [pytest.param(getattr(isrlearn.core, name), id=name) for name in isrlearn.core.__all__]


@pytest.mark.parametrize("value", CORE)
def test_public_names_document_what_they_take(value):
    doc = inspect.getdoc(value)
    assert doc
    documented = section(doc, "Parameters")
    if documented is None:
        return  # a few share those of their neighbour, and say so
    assert documented == parameters(value)


def test_the_class_docstring_is_the_formula(binary):
    # "X @ coef_.T + intercept_ is the decision function"
    X, y, e = binary
    clf = ISRClassifier().fit(X, y, environments=e)
    np.testing.assert_array_equal(
        clf.decision_function(X), (X @ clf.coef_.T + clf.intercept_).ravel()
    )
