"""Environments find their way through pipelines, searches and cross-validation."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import config_context
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from isrlearn import ISRClassifier, ISRRegressor, ISRTransformer


@pytest.fixture(autouse=True)
def _routing():
    with config_context(enable_metadata_routing=True):
        yield


def test_through_a_pipeline(binary):
    X, y, e = binary
    pipe = make_pipeline(StandardScaler(), ISRClassifier(head="lda")).fit(X, y, environments=e)
    Z = StandardScaler().fit_transform(X)
    alone = ISRClassifier(head="lda").fit(Z, y, environments=e)
    np.testing.assert_array_equal(pipe[-1].coef_, alone.coef_)
    np.testing.assert_array_equal(pipe.predict(X), alone.predict(Z))


def test_transformer_in_the_middle(binary):
    X, y, e = binary
    pipe = make_pipeline(StandardScaler(), ISRTransformer(), LogisticRegression())
    pipe.fit(X, y, environments=e)
    Z = StandardScaler().fit_transform(X)
    erased = ISRTransformer().fit(Z, y, environments=e).transform(Z)
    np.testing.assert_allclose(
        pipe.decision_function(X), LogisticRegression().fit(erased, y).decision_function(erased)
    )


def test_regression_in_a_pipeline(continuous):
    X, y, e = continuous
    pipe = make_pipeline(StandardScaler(), ISRRegressor()).fit(X, y, environments=e)
    alone = ISRRegressor().fit(StandardScaler().fit_transform(X), y, environments=e)
    np.testing.assert_array_equal(pipe[-1].coef_, alone.coef_)


def test_through_a_grid_search(binary):
    X, y, e = binary
    grid = {"n_spurious": [0, 1, 2], "scale": [0.0, 0.5]}
    search = GridSearchCV(ISRClassifier(head="lda"), grid, cv=3, error_score="raise")
    search.fit(X, y, environments=e)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    best = search.best_estimator_
    assert best.environments_.tolist() == sorted(set(e))
    refit = ISRClassifier(head="lda", **search.best_params_).fit(X, y, environments=e)
    np.testing.assert_array_equal(best.coef_, refit.coef_)


def test_through_a_search_over_a_pipeline(binary):
    X, y, e = binary
    pipe = make_pipeline(ISRTransformer(), LogisticRegression())
    grid = {"isrtransformer__n_spurious": [0, 2]}
    search = GridSearchCV(pipe, grid, cv=3, error_score="raise").fit(X, y, environments=e)
    assert (
        search.best_estimator_[0].n_spurious_ == search.best_params_["isrtransformer__n_spurious"]
    )


def test_cross_validation_gives_each_fold_its_own_rows(binary):
    X, y, e = binary
    out = cross_validate(
        ISRClassifier(), X, y, cv=4, params={"environments": e}, return_estimator=True,
        return_indices=True, error_score="raise",
    )  # fmt: skip
    for fitted, rows in zip(out["estimator"], out["indices"]["train"], strict=True):
        alone = ISRClassifier().fit(X[rows], y[rows], environments=e[rows])
        np.testing.assert_array_equal(fitted.coef_, alone.coef_)


def test_cross_validated_predictions(continuous):
    X, y, e = continuous
    predicted = cross_val_predict(ISRRegressor(), X, y, cv=3, params={"environments": e})
    assert np.corrcoef(predicted, y)[0, 1] > 0.9


def test_sample_weights_are_routed_on_request(binary):
    X, y, e = binary
    w = np.where(y == 1, 2.0, 1.0)
    clf = ISRClassifier(head="lda").set_fit_request(sample_weight=True)
    pipe = make_pipeline(clf).fit(X, y, environments=e, sample_weight=w)
    alone = ISRClassifier(head="lda").fit(X, y, environments=e, sample_weight=w)
    np.testing.assert_array_equal(pipe[0].coef_, alone.coef_)


def test_forgotten_environments_are_an_error_everywhere(binary):
    X, y, _ = binary
    with pytest.raises(ValueError, match="environments are needed"):
        make_pipeline(StandardScaler(), ISRClassifier()).fit(X, y)
    with pytest.raises(ValueError, match="environments are needed"):
        GridSearchCV(ISRClassifier(), {"scale": [0.0, 1.0]}, error_score="raise").fit(X, y)
    with pytest.raises(ValueError, match="environments are needed"):
        cross_validate(ISRClassifier(), X, y, error_score="raise")


def test_meta_estimators_pass_them_on(ternary):
    X, y, e = ternary
    many = OneVsRestClassifier(ISRClassifier(head="lda")).fit(X, y, environments=e)
    one = ISRClassifier(head="lda").fit(X, (y == "bee").astype(int), environments=e)
    np.testing.assert_allclose(many.estimators_[1].coef_, one.coef_, atol=1e-10)


@pytest.mark.parametrize("estimator", [ISRClassifier, ISRRegressor, ISRTransformer])
def test_environments_are_asked_for_by_default(estimator):
    requests = estimator().get_metadata_routing().fit.requests
    assert requests["environments"] is True
    assert requests["sample_weight"] is None


def test_parts_are_routed_too():
    for estimator in (ISRClassifier(head="lda"), ISRRegressor()):
        assert estimator.get_metadata_routing().partial_fit.requests["environments"] is True


def test_kinds_of_estimators():
    assert get_tags(ISRClassifier()).estimator_type == "classifier"
    assert get_tags(ISRRegressor()).estimator_type == "regressor"
    assert get_tags(ISRTransformer()).transformer_tags is not None
