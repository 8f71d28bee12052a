"""Odd input gives a result or one clear error, and the error's advice works."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from isrlearn import ISRClassifier, ISRTransformer, diagnose


def sample(n=240, d=4):
    rng = np.random.default_rng(0)
    y, e = np.arange(n) % 2, np.arange(n) // 2 % 3
    X = rng.normal(size=(n, d))
    X[:, 0] += y
    X[:, 1] += e
    return X, y, e


def test_frames_with_integer_column_names_predict():
    X, y, e = sample()
    expected = ISRClassifier().fit(X, y, e).predict(X)
    frame = pd.DataFrame(X)
    np.testing.assert_array_equal(ISRClassifier().fit(frame, y, e).predict(frame), expected)
    dd = pytest.importorskip("dask.dataframe")
    from isrlearn.dask import fit, predict

    table = dd.from_pandas(frame.assign(y=y, e=e), npartitions=2)
    clf = fit(ISRClassifier(), table, "y", environments="e")
    assert clf.feature_names_in_.tolist() == ["0", "1", "2", "3"]
    np.testing.assert_array_equal(predict(clf, table).compute(), expected)


@pytest.mark.parametrize("variant", ["pooled", "paper"])
@pytest.mark.parametrize("n_spurious", ["auto", 1])
@pytest.mark.parametrize("estimator", [ISRClassifier, ISRTransformer])
def test_a_constant_column_of_the_largest_numbers_is_named(variant, n_spurious, estimator):
    X, y, e = sample()
    X = np.column_stack([X, np.full(len(X), 1e308)])
    with pytest.raises(ValueError, match=r"feature 4 holds .*too large to be summed"):
        estimator(variant=variant, n_spurious=n_spurious).fit(X, y, e)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_constant_features_cannot_be_diagnosed(task):
    X, y, e = sample()
    y = np.linspace(0.0, 1.0, len(y)) if task == "regression" else y
    with pytest.raises(ValueError, match="all 4 features are constant: there is nothing"):
        diagnose(X * 0, y, e)


def test_the_advice_for_classes_in_one_environment_each_works():
    X, y, _ = sample()
    with pytest.raises(ValueError, match=r"Add rows of one class from another environment\.$"):
        ISRClassifier().fit(X, y, y)
    environments = y.copy()
    environments[np.flatnonzero(y == 1)[:20]] = 0
    assert ISRClassifier().fit(X, y, environments).coef_.shape == (1, 4)


def test_the_advice_for_cells_of_one_row_works():
    X, y, _ = sample(24)
    lonely = np.arange(24) // 2
    with pytest.raises(ValueError, match=r"or merge environments of few rows\.$"):
        ISRClassifier("cov").fit(X, y, lonely)
    assert ISRClassifier("cov").fit(X, y, lonely // 6).coef_.shape == (1, 4)
