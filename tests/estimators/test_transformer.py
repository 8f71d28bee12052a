"""ISRTransformer: the same columns without their spurious part, or what is left of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import NotFittedError

from isrlearn import ISRClassifier, ISRTransformer
from isrlearn.core import principal_angles, principal_components
from isrlearn.engine import cell_moments

FORMS = [
    {"method": "mean"},
    {"method": "mean", "variant": "paper"},
    {"method": "mean", "variant": "paper", "only": "ant"},
    {"method": "cov"},
    {"method": "multiclass", "variant": "paper"},
    {"method": "joint"},
    {"method": "regression"},
]


def fit(data, *, only=None, estimator=ISRTransformer, **parameters):
    """Fitted with the environments of all classes but `only` left unknown, where it is given."""
    X, y, e = data
    e = e if only is None else np.where(y == only, e, None)
    return estimator(**parameters).fit(X, y, environments=e)


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("scale", [0.0, 0.3, 1.0])
def test_same_columns_with_the_spurious_part_scaled(ternary, form, scale):
    X, _, _ = ternary
    isr = fit(ternary, n_spurious=2, scale=scale, **form)
    out = isr.transform(X)
    assert out.shape == X.shape
    U, V = isr.eraser_.basis, isr.eraser_.dual
    center = 0.0 if "variant" in form else X.mean(axis=0)
    np.testing.assert_allclose(out, X - (1 - scale) * (X - center) @ V @ U.T, atol=1e-10)
    # A move along the basis shows by a share of `scale`.
    step = isr.transform(X + U[:, 0]) - out
    np.testing.assert_allclose(step, np.tile(scale * U[:, 0], (len(X), 1)), atol=1e-10)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_invariant_coordinates_are_blind_to_the_basis(ternary, form):
    X, _, _ = ternary
    isr = fit(ternary, n_spurious=2, output="invariant", **form)
    out = isr.transform(X)
    assert out.shape == (len(X), 3)
    moved = X + np.random.default_rng(0).normal(size=(len(X), 2)) @ isr.spurious_basis_.T
    np.testing.assert_allclose(isr.transform(moved), out, atol=1e-10)
    # Orthonormal coordinates of the complement: nothing else is lost.
    complement = np.linalg.svd(isr.spurious_basis_)[0][:, 2:]
    np.testing.assert_allclose(out @ out.T, (X @ complement) @ (X @ complement).T, atol=1e-8)


def test_classifier_and_transformer_find_the_same(ternary):
    for form in FORMS[:-1]:
        isr = fit(ternary, n_spurious=2, **form)
        clf = fit(ternary, estimator=ISRClassifier, n_spurious=2, **form)
        np.testing.assert_allclose(isr.spurious_basis_, clf.spurious_basis_, atol=1e-10)
        np.testing.assert_allclose(isr.eraser_.dual, clf.eraser_.dual, atol=1e-8)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_moments_computed_elsewhere(ternary, form):
    X, y, e = ternary
    whole = fit(ternary, n_spurious=2, **form)
    labels = None if form["method"] == "regression" else y
    e = np.where(y == form["only"], e, None) if "only" in form else e
    parameters = {name: value for name, value in form.items() if name != "only"}
    isr = ISRTransformer(n_spurious=2, **parameters).fit_moments(cell_moments(X, labels, e))
    assert isr.n_features_in_ == 5
    np.testing.assert_allclose(isr.transform(X), whole.transform(X), atol=1e-8)


def test_regression_needs_no_targets(continuous):
    X, y, e = continuous
    a = ISRTransformer("regression").fit(X, environments=e)
    b = ISRTransformer("regression").fit(X, y, environments=e)
    np.testing.assert_array_equal(a.transform(X), b.transform(X))
    with pytest.raises(ValueError, match="requires y to be passed"):
        ISRTransformer("mean").fit(X, environments=e)


@pytest.mark.parametrize("output", ["same", "invariant"])
def test_nothing_to_remove(binary, output):
    X, y, e = binary
    for isr in (
        ISRTransformer(n_spurious=0, output=output).fit(X, y, environments=e),
        ISRTransformer(missing_environments="single", output=output).fit(X, y),
    ):
        out = isr.transform(X)
        assert out.shape == X.shape
        np.testing.assert_allclose(out @ out.T, X @ X.T, atol=1e-9)
        assert not np.shares_memory(out, X)


def test_components_first(binary):
    X, y, e = binary
    components, _ = principal_components(cell_moments(X, y, e), 3)
    same = fit(binary, n_components=3, n_spurious=1)
    np.testing.assert_allclose(
        components @ (components.T @ same.spurious_basis_), same.spurious_basis_, atol=1e-10
    )
    left = fit(binary, n_components=3, n_spurious=1, output="invariant")
    assert left.transform(X).shape == (len(X), 2)
    moved = X + left.spurious_basis_[:, 0]
    np.testing.assert_allclose(left.transform(moved), left.transform(X), atol=1e-10)
    out = left.transform(X)
    inside = np.linalg.lstsq(X - X.mean(0), out - out.mean(0), rcond=None)[0]
    assert principal_angles(np.hstack([inside, same.spurious_basis_]), components)[0] < 1e-6


def test_float32_is_kept(binary):
    X, y, e = binary
    for output in ("same", "invariant"):
        isr = ISRTransformer(output=output).fit(X.astype(np.float32), y, environments=e)
        assert isr.transform(X.astype(np.float32)).dtype == np.float32
        assert isr.transform(X).dtype == np.float64


def test_names_come_out_as_they_went_in(binary):
    X, y, e = binary
    frame = pd.DataFrame(X, columns=list("abcde"))
    isr = ISRTransformer().fit(frame, y, environments=e)
    assert isr.feature_names_in_.tolist() == list("abcde")
    assert isr.get_feature_names_out().tolist() == list("abcde")
    left = ISRTransformer(n_spurious=2, output="invariant").fit(frame, y, environments=e)
    assert left.get_feature_names_out().tolist() == ["invariant0", "invariant1", "invariant2"]
    with pytest.raises(ValueError, match="feature names should match"):
        isr.transform(frame[list("edcba")])
    unnamed = ISRTransformer().fit(X, y, environments=e)
    assert unnamed.get_feature_names_out().tolist() == [f"x{i}" for i in range(5)]


@pytest.mark.parametrize("output", ["same", "invariant"])
def test_set_output(binary, output):
    X, y, e = binary
    frame = pd.DataFrame(X, columns=list("abcde"), index=np.arange(len(X)) + 7)
    plain = ISRTransformer(output=output).fit(frame, y, environments=e)
    expected = plain.transform(frame)
    assert isinstance(expected, np.ndarray)
    as_pandas = ISRTransformer(output=output).set_output(transform="pandas")
    out = as_pandas.fit(frame, y, environments=e).transform(frame)
    assert isinstance(out, pd.DataFrame)
    assert out.columns.tolist() == plain.get_feature_names_out().tolist()
    assert out.index.tolist() == frame.index.tolist()
    np.testing.assert_array_equal(out.to_numpy(), expected)
    as_polars = ISRTransformer(output=output).set_output(transform="polars")
    out = as_polars.fit(pl.DataFrame(X, schema=list("abcde")), y, environments=e)
    out = out.transform(pl.DataFrame(X, schema=list("abcde")))
    assert isinstance(out, pl.DataFrame)
    assert out.columns == plain.get_feature_names_out().tolist()
    np.testing.assert_allclose(out.to_numpy(), expected, atol=1e-12)


def test_fit_transform_takes_environments(binary):
    X, y, e = binary
    expected = fit(binary).transform(X)
    np.testing.assert_array_equal(ISRTransformer().fit_transform(X, y, environments=e), expected)


def test_before_fit(binary):
    with pytest.raises(NotFittedError):
        ISRTransformer().transform(binary[0])
    with pytest.raises(NotFittedError):
        ISRTransformer().get_feature_names_out()


def test_tags_say_whether_targets_are_needed():
    assert ISRTransformer("mean").__sklearn_tags__().target_tags.required
    assert not ISRTransformer("regression").__sklearn_tags__().target_tags.required
