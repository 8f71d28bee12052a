"""What scikit-learn and the house expect of the searches as estimators."""

from __future__ import annotations

import inspect
import pickle
import re

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import isrlearn
from isrlearn import ISRClassifier, ISRRegressor
from isrlearn.estimators import ISRClassifierCV, ISRRegressorCV

SINGLE = {"missing_environments": "single", "cv": 2}


@parametrize_with_checks(
    [ISRClassifierCV(C=(0.1, 1.0), scale=0.0, **SINGLE), ISRRegressorCV(scale=0.0, **SINGLE)]
)
def test_common_checks(estimator, check):
    check(estimator)


def test_environments_are_routed(data):
    search = ISRClassifierCV(n_spurious=1, scale=0.0, C=1.0, weights=None, cv=2)
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(StandardScaler(), search)
        model.fit(data.X, data.y, environments=data.environments)
        assert model[-1].best_estimator_.n_spurious_ == 1
        with pytest.raises(ValueError, match="environments are needed"):
            model.fit(data.X, data.y)


def test_survives_pickling(data):
    search = ISRClassifierCV(n_spurious=1, C=1.0, weights=None, cv=2)
    search.fit(data.X, data.y, environments=data.environments)
    again = pickle.loads(pickle.dumps(search))
    np.testing.assert_array_equal(again.predict(data.X), search.predict(data.X))


@pytest.mark.parametrize(
    ("search", "single"), [(ISRClassifierCV, ISRClassifier), (ISRRegressorCV, ISRRegressor)]
)
def test_takes_every_parameter_of_its_estimator(search, single):
    assert set(single().get_params()) <= set(search().get_params())
    # Parameters that are not searched must have the estimator's defaults.
    fixed = {"n_components", "variant", "level", "missing_environments"}
    ours, theirs = search().get_params(), single().get_params()
    assert {k: ours[k] for k in fixed} == {k: theirs[k] for k in fixed}


@pytest.mark.parametrize("search", [ISRClassifierCV, ISRRegressorCV])
def test_docstring_names_the_parameters_of_the_signature(search):
    doc = inspect.getdoc(search)
    section = doc.split("Parameters\n---")[1].split("Attributes\n")[0]
    heads = re.findall(r"^(\w[\w, ]*?)(?: : .*)?$", section, flags=re.MULTILINE)
    signature = inspect.signature(search).parameters
    assert [name for head in heads for name in head.split(", ")] == list(signature)
    for name, parameter in signature.items():
        line = re.search(rf"^{name} : (.*)$", doc, flags=re.MULTILINE)
        default = repr(parameter.default).replace("'", '"')
        if line is not None:
            expected = "optional" if default == "None" else f"default={default}"
            assert line.group(1).endswith(expected), line
        else:
            shared = re.search(
                rf"^[\w, ]*\b{name}\b[\w, ]*\n +As in `(\w+)`", section, flags=re.MULTILINE
            )
            other = inspect.signature(getattr(isrlearn, shared.group(1)))
            assert other.parameters[name].default == parameter.default, name


@pytest.mark.parametrize(
    ("search", "sample"), [(ISRClassifierCV, "data"), (ISRRegressorCV, "numbers")]
)
def test_docstring_names_the_attributes_of_a_fit(search, sample, request):
    data = request.getfixturevalue(sample)
    frame = pd.DataFrame(data.X, columns=[f"x{i}" for i in range(data.X.shape[1])])
    fitted = search(n_spurious=1, cv=2).fit(frame, data.y, environments=data.environments)
    stored = {name for name in vars(fitted) if name.endswith("_")}
    shared = {"coef_", "intercept_"} | ({"classes_"} & set(dir(search)))
    section = inspect.getdoc(search).split("Attributes\n")[1].split("Examples\n")[0]
    heads = re.findall(r"^(\w[\w, ]*?)(?: : .*)?$", section, flags=re.MULTILINE)
    assert {name for head in heads for name in head.split(", ")} == stored | shared
