"""Whatever the sample: a fit is finite and its invariances hold, or a clear error says why not."""

from __future__ import annotations

import re
import warnings
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from scipy.linalg import LinAlgWarning
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, RidgeClassifier

from isrlearn import ISRClassifier, ISRClassifierCV, ISRRegressor, ISRTransformer

#: What a fit may refuse: each says what is wrong with the sample, not with the arithmetic.
REFUSALS = re.compile(
    r"no class has .*two environments, so nothing can be compared"
    r"|the rows have 1 known environment"
    r"|n_spurious=\d is more than the \d possible here"
    r"|no two environments have different covariances"
    r"|no row can be held out: each class in each environment has only one row"
)
MANY = settings(
    max_examples=200,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
SOME = settings(MANY, max_examples=100)

#: What may be wrong with a column, made from the columns before it.
COLUMNS = {
    "as it is": lambda X, rng: X[:, -1],
    "copy": lambda X, rng: X[:, 0],
    "sum": lambda X, rng: X.sum(axis=1),
    "zero": lambda X, rng: np.zeros(len(X)),
    "constant": lambda X, rng: np.full(len(X), 0.1),
    "one row": lambda X, rng: np.where(np.arange(len(X)) == 0, 1.0, 0.0),
    "nearly constant": lambda X, rng: 1.0 + 1e-9 * rng.normal(size=len(X)),
    "far away": lambda X, rng: 1e6 + X[:, -1],
}
#: Those of which float32 loses nothing but digits.
MILD = ("copy", "sum", "zero", "constant", "one row")
#: Same numbers, other memory.
LAYOUTS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "every other row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "columns backwards": lambda X: np.ascontiguousarray(X[:, ::-1])[:, ::-1],
    "read-only": lambda X: np.frombuffer(X.tobytes(), dtype=X.dtype).reshape(X.shape),
}
TYPES = ("float64", "float32", "int64", "int8", "bool")
SCALES = (1.0, 1e-30, 1e-12, 1e12, 1e30)


class Sample(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    environments: np.ndarray


@st.composite
def samples(draw, types=TYPES, columns=tuple(COLUMNS), most_rows=40) -> Sample:
    """A sample, most of them degenerate in one way or several."""
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    K, E = draw(st.integers(2, 3)), draw(st.integers(2, 3))
    sizes = draw(st.sampled_from([(1,), (1, 2), (2, 3), (5,), (most_rows,), (1, most_rows)]))
    count = rng.choice(sizes, size=(K, E))
    missing = draw(st.sampled_from(["no cell"] * 4 + ["the last cell", "some cells"]))
    if missing == "the last cell":
        count[-1, -1] = 0
    elif missing == "some cells":
        count[rng.random((K, E)) < 0.5] = 0
        count[:, 0] += count.sum(axis=1) == 0  # every class has a row
    y, e = (np.repeat(i.ravel(), count.ravel()) for i in np.indices((K, E)))
    kinds = draw(st.lists(st.sampled_from([*columns, *["as it is"] * 8]), max_size=7))
    X = rng.normal(size=(len(y), 1)) + y[:, None]
    for kind in kinds:
        fresh = np.column_stack([X, rng.normal(size=len(y)) + rng.normal(size=(K, E))[y, e]])
        X = np.column_stack([X, COLUMNS[kind](fresh, rng)])
    still = draw(st.sampled_from(["nothing"] * 4 + ["class", "cells", "all"]))
    if still == "class":
        X[y == 0] = X[:1]
    elif still == "cells":
        X = X[np.searchsorted(y * E + e, y * E + e)]
    elif still == "all":
        X[:] = X[:1]
    X = X * np.array(draw(scales(X.shape[1])))
    dtype = np.dtype(draw(st.sampled_from(types)))
    X = np.clip(X, -100, 100) if dtype.kind in "ib" else X
    X = LAYOUTS[draw(st.sampled_from(sorted(LAYOUTS)))](X.astype(dtype))
    return Sample(X, y, e)


def scales(d: int):
    """One scale for all columns, or one for each."""
    each = st.lists(st.sampled_from(SCALES), min_size=d, max_size=d)
    return st.one_of(st.just([1.0] * d), st.sampled_from(SCALES).map(lambda s: [s] * d), each)


@contextmanager
def nothing_but_advice():
    """Lets the library's own warnings pass; NumPy's and everybody else's stay errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UserWarning)
        # Of scikit-learn's ridge regression as a head, on features as they are.
        warnings.filterwarnings("ignore", "Ill-conditioned matrix", LinAlgWarning)
        yield


def target(sample: Sample) -> np.ndarray:
    """Numbers to predict, whatever the features are."""
    return np.random.default_rng(0).normal(size=len(sample.y)) + sample.y


def fitted(estimator, sample: Sample, **keywords):
    """A fitted clone, or None where the sample was refused for a reason."""
    X, y, e = sample
    y = target(sample) if isinstance(estimator, ISRRegressor) else y
    return fitted_to(estimator, X, y, e, **keywords)


def fitted_to(estimator, X, y, e, **keywords):
    try:
        with nothing_but_advice():
            return clone(estimator).fit(X, y, environments=e, **keywords)
    except ValueError as error:
        if REFUSALS.search(str(error)):
            return None
        raise


def scores(estimator, X):
    """What an estimator says of rows, as numbers."""
    names = ("decision_function", "predict", "transform")
    with nothing_but_advice():
        return getattr(estimator, next(n for n in names if hasattr(estimator, n)))(X)


def is_finite(*values) -> bool:
    return all(np.isfinite(value).all() for value in values)


shared = {
    "n_spurious": st.sampled_from(["auto", "auto", 0, 1]),
    "n_components": st.sampled_from(["auto", "auto", None, 1, 0.9]),
}
variants = st.sampled_from(["pooled", "paper", "authors"])
classifiers = st.one_of(
    st.builds(
        ISRClassifier,
        st.sampled_from(["mean", "cov", "multiclass"]),
        head=st.sampled_from(["logistic", "lda", RidgeClassifier()]),
        scale=st.sampled_from([0.0, 0.5]),
        variant=variants,
        weights=st.sampled_from([None, "class", "group"]),
        **shared,
    ),
    st.builds(ISRClassifier, st.just("joint"), head=st.sampled_from(["logistic", "lda"]), **shared),
)
regressors = st.builds(
    ISRRegressor,
    head=st.sampled_from(["ridge", LinearRegression()]),
    alpha=st.sampled_from([0.0, 1.0]),
    variant=variants,
    weights=st.sampled_from([None, "group"]),
    **shared,
)
transformers = st.one_of(
    st.builds(
        ISRTransformer,
        st.sampled_from(["mean", "cov", "multiclass", "regression"]),
        variant=variants,
        **shared,
    ),
    st.builds(ISRTransformer, st.just("joint"), output=st.just("invariant"), **shared),
)


# Estimators


@MANY
@given(classifiers, samples())
def test_classifiers_are_finite_or_say_why_not(estimator, sample):
    model = fitted(estimator, sample)
    if model is None:
        return
    K, d = len(model.classes_), sample.X.shape[1]
    assert model.coef_.shape == (1 if K == 2 else K, d)
    assert is_finite(model.coef_, model.intercept_, scores(model, sample.X))
    assert set(model.predict(sample.X)) <= set(sample.y)
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(model.predict_proba(sample.X).sum(axis=1), 1.0, rtol=1e-5)


@MANY
@given(regressors, samples())
def test_regressors_are_finite_or_say_why_not(estimator, sample):
    model = fitted(estimator, sample)
    if model is None:
        return
    found, y = scores(model, sample.X), target(sample)
    assert is_finite(model.coef_, model.intercept_, found)
    # Least squares of anything predict no further from the mean than this on their own rows.
    far = np.linalg.norm(y - y.mean())
    assert np.abs(found - y.mean()).max() <= 3 * far + 1e-3 * np.abs(sample.X @ model.coef_).max()


@MANY
@given(transformers, samples())
def test_transformers_are_finite_or_say_why_not(estimator, sample):
    model = fitted(estimator, sample)
    if model is None:
        return
    found = scores(model, sample.X)
    assert is_finite(found, model.spurious_basis_)
    assert len(found) == len(sample.X)
    rank = model.n_spurious_
    np.testing.assert_allclose(
        model.spurious_basis_.T @ model.spurious_basis_, np.eye(rank), atol=1e-9
    )
    if estimator.output == "same" and estimator.variant == "pooled":  # others: the components
        assert found.shape == sample.X.shape
        assert found.dtype == (np.float32 if sample.X.dtype == np.float32 else np.float64)


@SOME
@given(
    st.one_of(classifiers, regressors),
    st.one_of(samples(types=["float64"]), samples(types=["float32"], columns=MILD)),
    st.sampled_from(["rows permuted", "rows twice", "unit", "memory"]),
)
def test_what_must_not_matter_does_not(estimator, sample, change):
    X, y, e = sample
    if estimator.variant != "pooled":
        return  # the published head depends on units, and its solver stops early
    # Without a penalty, rounding decides what copies of a float32 feature in other units say.
    assume(X.dtype == np.float64 or getattr(estimator, "alpha", 1.0) > 0)
    y = target(sample) if isinstance(estimator, ISRRegressor) else y
    weight, unit, other = None, 1.0, (X, y, e)
    if change == "rows permuted":
        order = np.random.default_rng(1).permutation(len(y))
        other = X[order], y[order], e[order]
    elif change == "rows twice":
        weight = np.where(np.arange(len(y)) % 2, 1.0, 2.0)
        other = tuple(np.concatenate([values, values[::2]]) for values in (X, y, e))
    elif change == "unit":
        unit = X.dtype.type(2.0**9)  # a power of two loses no digits
        other = X * unit, y, e
    else:
        other = np.asfortranarray(X), y, e
    a, b = fitted_to(estimator, X, y, e, sample_weight=weight), fitted_to(estimator, *other)
    assert (a is None) == (b is None)
    if a is not None and b is not None:
        expected, close = scores(a, X), 1e-6 if X.dtype == np.float64 else 2e-2
        np.testing.assert_allclose(
            scores(b, X * unit), expected, atol=close * (1.0 + np.abs(expected).max())
        )


@SOME
@given(
    st.lists(st.integers(-100, 100), min_size=5, max_size=5),
    st.sampled_from([ISRClassifier(n_spurious=2), ISRClassifier("joint", head="lda"),
                     ISRClassifier("cov", n_spurious=1), ISRRegressor(), ISRTransformer()]),
    st.sampled_from(["float64", "float32"]),
)  # fmt: skip
def test_units_of_columns_do_not_matter_where_rows_are_many(exponents, estimator, dtype):
    """From 1e-30 to 1e30, each column in its own unit: the same scores, the same erased rows."""
    sample, unit = plain_sample(), 2.0 ** np.array(exponents)
    scaled = sample._replace(X=(sample.X * unit).astype(dtype))
    a, b = fitted(estimator, sample), fitted(estimator, scaled)
    expected, found = scores(a, sample.X), scores(b, scaled.X)
    assert found.dtype == (dtype if isinstance(estimator, ISRTransformer) else "float64")
    found = found / unit if isinstance(estimator, ISRTransformer) else found.astype(float)
    close = 1e-9 if dtype == "float64" else 1e-4
    np.testing.assert_allclose(found, expected, atol=close * np.abs(expected).max())


@SOME
@given(regressors, st.integers(-100, 100))
def test_the_unit_of_the_target_does_not_matter(estimator, exponent):
    sample, unit = plain_sample(), 2.0**exponent
    y, e = target(sample), sample.environments
    a, b = fitted_to(estimator, sample.X, y, e), fitted_to(estimator, sample.X, y * unit, e)
    assert (a is None) == (b is None)
    if a is not None:
        np.testing.assert_allclose(b.predict(sample.X) / unit, a.predict(sample.X), atol=1e-9)


def test_a_target_beyond_all_measure_is_named():
    sample = plain_sample()
    with pytest.raises(ValueError, match="the target has values too large to be squared"):
        fitted_to(ISRRegressor(), sample.X, 1e80 * target(sample), sample.environments)


def plain_sample(n=800) -> Sample:
    """Nothing wrong with it: five features, two of which shift between four environments."""
    rng = np.random.default_rng(0)
    y, e = np.arange(n) % 2, np.arange(n) // 2 % 4
    Z = rng.normal(size=(n, 5)) * np.where(np.arange(5) == 4, 1.0 + e[:, None], 1.0)
    Z[:, :2] += y[:, None]
    Z[:, 2:4] += 2.0 * rng.normal(size=(2, 4, 2))[y, e]
    return Sample(Z @ rng.normal(size=(5, 5)), y, e)


@pytest.mark.parametrize(
    ("dtype", "scale", "size"),
    [
        ("float64", 1e80, "large"),
        ("float64", 1e-80, "small"),
        ("float32", 1e36, "large"),
        ("float32", 1e-43, "small"),
    ],
)
def test_features_beyond_all_measure_are_named(dtype, scale, size):
    sample = plain_sample()
    X = np.clip(sample.X, -10, 10).astype(dtype)
    X[:, 3] *= X.dtype.type(scale)
    for estimator in (ISRClassifier(), ISRRegressor(), ISRTransformer()):
        with pytest.raises(ValueError, match=f"feature 3 .*values too {size} to be s"):
            fitted_to(estimator, X, sample.y, sample.environments)


@pytest.mark.parametrize("scale", [2.0**-100, 2.0**100])
@pytest.mark.parametrize("n_components", [None, 5, "auto"])
def test_wide_rows_have_any_unit(n_components, scale):
    """More features than rows, read without a square matrix."""
    rng = np.random.default_rng(0)
    y, e = np.arange(200) % 2, np.arange(200) // 2 % 2
    X = rng.normal(size=(200, 700)) + y[:, None] * 0.1 + e[:, None] * rng.normal(size=700)
    sample = Sample(X.astype(np.float32), y, e)
    estimator = ISRClassifier(n_spurious=1, n_components=n_components)
    a = fitted(estimator, sample)
    b = fitted(estimator, sample._replace(X=sample.X * np.float32(scale)))
    expected = scores(a, sample.X)
    found = scores(b, sample.X * np.float32(scale))
    np.testing.assert_allclose(found, expected, atol=1e-2 * np.abs(expected).max())


def test_constant_features_have_no_coefficient():
    """Else rounding times their value would move the intercept, and a change of them anything."""
    sample = plain_sample()
    for value, unit in ((0.1, 1.0), (1e12, 1.0), (1e-12, 1.0), (0.1, 1e30), (1e12, 1e-30)):
        X = np.column_stack([sample.X, np.full(len(sample.X), value)]) * unit
        for estimator in (ISRClassifier(), ISRRegressor(alpha=0.0), ISRClassifier(head="lda"),
                          ISRRegressor(head=LinearRegression())):  # fmt: skip
            model = fitted(estimator, sample._replace(X=X))
            assert np.ravel(model.coef_)[-1] == 0.0
            np.testing.assert_allclose(
                scores(model, X), scores(fitted(estimator, sample), sample.X), atol=1e-8
            )


@pytest.mark.parametrize(
    ("dtype", "head", "alpha"),
    [
        ("float64", "ridge", 0.0),
        ("float32", "ridge", 1.0),  # its rounding is a feature to least squares
        ("float64", LinearRegression(), 0.0),
        ("float32", LinearRegression(), 0.0),
    ],
    ids=str,
)
def test_dependent_features_leave_coefficients_small(dtype, head, alpha):
    """Of all least squares solutions a small one, not one of 1e13 that cancels."""
    sample = plain_sample()
    X = np.column_stack([sample.X, sample.X[:, 0], sample.X.sum(axis=1)]).astype(dtype)
    estimator = ISRRegressor(head=head, alpha=alpha, n_components=None, n_spurious=1)
    model, without = fitted(estimator, sample._replace(X=X)), fitted(estimator, sample)
    assert np.abs(model.coef_).max() < 10 * np.abs(without.coef_).max()
    close = 1e-6 if dtype == "float64" else 1e-2
    np.testing.assert_allclose(scores(model, X), scores(without, sample.X), atol=close)


@settings(SOME, max_examples=25)
@given(samples(types=["float64", "float32"]), st.sampled_from(["mean", "joint"]))
def test_searches_are_finite_or_say_why_not(sample, method):
    search = ISRClassifierCV(method, n_spurious=[0, 1], scale=[0.0], weights=None, C=1.0, cv=2)
    model = fitted(search, sample)
    if model is not None:
        assert is_finite(model.coef_, model.intercept_, scores(model, sample.X))
        assert is_finite(model.cv_results_["mean_worst_group"])


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_logarithms_of_probabilities_are_finite_however_sure(n_classes, dtype):
    sample = plain_sample()
    y = np.arange(len(sample.y)) % n_classes
    model = fitted_to(ISRClassifier(), sample.X.astype(dtype), y, sample.environments)
    X = sample.X.astype(dtype)
    with nothing_but_advice():
        np.testing.assert_allclose(
            model.predict_log_proba(X), np.log(model.predict_proba(X)), atol=1e-5
        )
        sure = model.predict_log_proba(X * X.dtype.type(1e6))
    assert is_finite(sure)
    assert sure.min() < -1000
