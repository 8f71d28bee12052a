"""Eight threads at once: all use one fitted model, and each fits its own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
from sklearn.base import clone
from threadpoolctl import threadpool_info

from isrlearn import ISRClassifier, ISRClassifierCV, ISRRegressor, ISRTransformer
from isrlearn.datasets import make_gaussian_environments
from isrlearn.engine import cell_moments

N = 8
CASES = {
    "classifier": (ISRClassifier(), ("predict", "predict_proba", "decision_function")),
    "lda": (ISRClassifier("joint", head="lda"), ("predict", "predict_log_proba")),
    "regressor": (ISRRegressor(), ("predict",)),
    "transformer": (ISRTransformer(), ("transform",)),
    "invariant coordinates": (ISRTransformer("cov", output="invariant"), ("transform",)),
    "search": (ISRClassifierCV(cv=2, C=1.0, scale=[0.0], weights=None), ("predict_proba",)),
}
cases = pytest.mark.parametrize(("estimator", "methods"), CASES.values(), ids=CASES)


@pytest.fixture(scope="module")
def data():
    return make_gaussian_environments(
        300, 4, n_classes=3, n_invariant=3, n_spurious=2, mixing="random", random_state=0
    )


def at_once(work):
    """Answers of eight threads that begin together."""
    barrier = Barrier(N)

    def one(i):
        barrier.wait()
        return work(i)

    with ThreadPoolExecutor(N) as pool:
        return list(pool.map(one, range(N)))


@cases
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_threads_get_the_answers_of_one_thread(data, estimator, methods, dtype):
    X = data.X.astype(dtype)
    model = clone(estimator).fit(X, data.y, environments=data.environments)
    before = {k: v.copy() for k, v in vars(model).items() if isinstance(v, np.ndarray)}
    for method in methods:
        ask = getattr(model, method)
        # Each thread asks for rows of its own, several times.
        parts = [X[i::N] for i in range(N)]
        expected = [ask(part) for part in parts]
        found = at_once(lambda i, ask=ask, parts=parts: [ask(parts[i]) for _ in range(5)])
        for answers, answer in zip(found, expected, strict=True):
            for own in answers:
                np.testing.assert_array_equal(own, answer)
    for name, value in before.items():
        np.testing.assert_array_equal(getattr(model, name), value)


@cases
def test_fits_in_threads_are_the_fit(data, estimator, methods):
    def fit(_):
        return clone(estimator).fit(data.X, data.y, environments=data.environments)

    expected = fit(0)
    for model in at_once(fit):
        for method in methods:
            np.testing.assert_array_equal(
                getattr(model, method)(data.X), getattr(expected, method)(data.X)
            )


def test_moments_in_threads_are_the_moments():
    """Large enough for BLAS to use threads of its own; their number is left as it was."""
    rng = np.random.default_rng(0)
    X, y, e = rng.normal(size=(18_000, 256)), rng.integers(2, size=18_000), np.arange(18_000) % 3
    before = [library["num_threads"] for library in threadpool_info()]
    expected = cell_moments(X, y, e)
    for found in at_once(lambda _: cell_moments(X, y, e)):
        assert np.abs(found.scatter - expected.scatter).max() <= 1e-12 * expected.scatter.max()
    assert [library["num_threads"] for library in threadpool_info()] == before
