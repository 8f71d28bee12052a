"""The same seed, the same bits: in another process, with other workers; and other BLAS threads."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from isrlearn import (
    ISRClassifier,
    ISRClassifierCV,
    ISRRegressor,
    ISRRegressorCV,
    ISRTransformer,
    infer_environments,
)
from isrlearn.datasets import make_gaussian_environments

SCRIPT = """
import hashlib, json
import numpy as np
from isrlearn import (
    ISRClassifier, ISRClassifierCV, ISRRegressor, ISRTransformer, datasets, infer_environments
)
from isrlearn.paper.datasets import LINEAR_UNIT_TESTS, make_linear_unit_test

digests = {}


def note(name, *arrays):
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    digests[name] = digest.hexdigest()


def environment_data(name, data):
    note(name, data.X, data.y, data.environments)


data = datasets.make_gaussian_environments(200, 4, n_invariant=3, n_spurious=2, random_state=0)
environment_data("gaussian", data)
for example in LINEAR_UNIT_TESTS:
    made = make_linear_unit_test(example, n_samples=50, random_state=0)
    environment_data(example, getattr(made, "train", made))
places = np.array(["north", "south", "east", "west"])[data.environments]
names = np.array(["ant", "bee"])[data.y]
fits = {
    "logistic": ISRClassifier(),
    "lda": ISRClassifier("joint", head="lda"),
    "permutation": ISRClassifier("cov", n_spurious="permutation"),
    "search": ISRClassifierCV(cv=2, C=1.0, weights=None),
}
for name, estimator in fits.items():
    model = estimator.fit(data.X, names, environments=places)
    note(name, model.coef_, model.intercept_)
model = ISRRegressor().fit(data.X, data.X[:, 0], environments=places)
note("ridge", model.coef_, model.intercept_)
note("transformer", ISRTransformer().fit(data.X, names, environments=places).transform(data.X))
for strategy in ("errors", "clusters"):
    guess = infer_environments(data.X, names, strategy=strategy, random_state=0)
    note("guess by " + strategy, np.asarray(guess, dtype="U10"))
print(json.dumps(digests))
"""


def digests(hash_seed: str) -> dict[str, str]:
    environment = os.environ | {"PYTHONHASHSEED": hash_seed, "OMP_NUM_THREADS": "1"}
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True
    )
    return json.loads(run.stdout)


def test_processes_agree_to_the_last_bit():
    one, other = digests("0"), digests("12345")
    assert len(one) > 10
    assert one == other


@pytest.fixture(scope="module")
def data():
    return make_gaussian_environments(
        400, 4, n_invariant=12, n_spurious=4, mixing="random", random_state=0
    )


@pytest.mark.parametrize("n_jobs", [2, 4])
def test_workers_agree_to_the_last_bit(data, n_jobs):
    X, e = data.X, data.environments
    for search, y in ((ISRClassifierCV(cv=2, C=[0.1, 1.0]), data.y), (ISRRegressorCV(), X[:, 0])):
        one = search.set_params(n_jobs=1).fit(X, y, environments=e)
        coef, intercept, chosen = one.coef_.copy(), one.intercept_, one.best_params_
        more = search.set_params(n_jobs=n_jobs).fit(X, y, environments=e)
        assert more.best_params_ == chosen
        np.testing.assert_array_equal(more.coef_, coef)
        np.testing.assert_array_equal(more.intercept_, intercept)


ESTIMATORS = {
    "logistic": ISRClassifier(),
    "multiclass, lda": ISRClassifier("multiclass", head="lda"),
    "cov": ISRClassifier("cov", n_spurious=4),
    "joint": ISRClassifier("joint"),
    "ridge": ISRRegressor(),
    "transformer": ISRTransformer(),
}


@pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS)
def test_threads_of_blas_change_rounding_alone(data, estimator):
    """To 1e-12 of what is predicted."""
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            model = estimator.fit(data.X, data.y, environments=data.environments)
            name = next(
                n for n in ("decision_function", "predict", "transform") if hasattr(model, n)
            )
            found.append(getattr(model, name)(data.X))
    one, two = found
    assert np.abs(two - one).max() <= 1e-12 * np.abs(one).max()


def test_guesses_do_not_depend_on_threads(data):
    guesses = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            guesses.append(infer_environments(data.X, data.y, random_state=0))
    np.testing.assert_array_equal(*guesses)
