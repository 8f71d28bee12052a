"""Every baseline passes scikit-learn's common checks and keeps the contract on environments."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from sklearn import config_context
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import (
    check_sample_weight_equivalence_on_dense_data,
    parametrize_with_checks,
)

from isrlearn.paper import baselines
from isrlearn.paper.baselines.linear import LinearBaseline

CLASSES = [
    cls
    for name in baselines.__all__
    if inspect.isclass(cls := getattr(baselines, name)) and issubclass(cls, LinearBaseline)
]
NEED_ENVIRONMENTS = [cls for cls in CLASSES if not cls._ignores_environments]


def quick(cls):
    """A baseline that needs no environments and takes few steps of gradient descent."""
    model = cls()
    if "missing_environments" in model.get_params():
        model.set_params(missing_environments="single")
    if "optimizer" not in model.get_params():
        model.set_params(max_iter=300, learning_rate=0.1)
    return model


@parametrize_with_checks(
    [quick(cls) for cls in CLASSES]
    + [
        baselines.ERMClassifier(optimizer="published", learning_rate=0.1, max_iter=200),
        baselines.ERMRegressor(optimizer="published", learning_rate=0.1, max_iter=200),
    ]
)
def test_common_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("name", ["ANDMaskClassifier", "ANDMaskRegressor"])
def test_weights_are_repetitions_after_all_the_steps_of_the_default(name):
    model = getattr(baselines, name)(missing_environments="single")
    check_sample_weight_equivalence_on_dense_data(name, model)


def small(seed=0, n=60):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    e = np.arange(n) % 3
    return X, (X[:, 0] + 0.5 * rng.normal(size=n) > 0).astype(int), e


@pytest.mark.parametrize("cls", NEED_ENVIRONMENTS)
def test_a_forgotten_environment_is_an_error(cls):
    X, y, e = small()
    with pytest.raises(ValueError, match="environments are needed"):
        cls().fit(X, y)
    with pytest.raises(ValueError, match="1 of 60 are missing"):
        cls().fit(X, y, environments=np.where(np.arange(60) == 5, np.nan, e))
    with pytest.raises(ValueError, match="shape"):
        cls().fit(X, y, environments=e[:-1])


@pytest.mark.parametrize("cls", CLASSES)
def test_names_and_order_of_environments_do_not_matter(cls):
    X, y, e = small()
    model = cls(max_iter=200)
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    names = np.array(["hospital", "clinic", "lab"])[e]
    one = model.fit(X, y, environments=e).coef_.copy()
    other = model.fit(X, y, environments=names).coef_
    np.testing.assert_allclose(one, other, atol=1e-5)


def test_environments_are_routed_through_a_pipeline_and_a_search():
    X, y, e = small()
    direct = baselines.IRMv1Classifier(0.5).fit(
        StandardScaler().fit_transform(X), y, environments=e
    )
    with config_context(enable_metadata_routing=True):
        pipe = make_pipeline(StandardScaler(), baselines.IRMv1Classifier(0.5))
        pipe.fit(X, y, environments=e)
        search = GridSearchCV(
            baselines.IRMv1Classifier(), {"penalty": [0.0, 0.5]}, cv=2, error_score="raise"
        ).fit(X, y, environments=e)
    np.testing.assert_allclose(pipe[-1].coef_, direct.coef_)
    assert search.best_params_["penalty"] in (0.0, 0.5)


@pytest.mark.parametrize(
    ("cls", "parameters"),
    [
        (baselines.ERMClassifier, {"optimizer": "sgd"}),
        (baselines.ERMClassifier, {"weight_decay": -1.0}),
        (baselines.ERMClassifier, {"max_iter": 0}),
        (baselines.IRMv1Classifier, {"penalty": 1.0}),
        (baselines.IGAClassifier, {"penalty": -1.0}),
        (baselines.ANDMaskClassifier, {"agreement": 1.5}),
        (baselines.GroupDROClassifier, {"smoothing": 0.0}),
        (baselines.IBIRMClassifier, {"bottleneck": -0.1}),
    ],
)
def test_a_parameter_out_of_range_is_named(cls, parameters):
    X, y, e = small()
    (name, value), *_ = parameters.items()
    with pytest.raises(ValueError, match=rf"{name} must be .*{value}"):
        cls(**parameters).fit(X, y, environments=e)


@pytest.mark.parametrize("cls", CLASSES)
def test_every_parameter_is_documented_once(cls):
    for name in inspect.signature(cls).parameters:
        assert cls.__doc__.count(f"\n    {name} : ") == 1
    assert cls.__doc__.count("\n    coef_ : ") == 1
