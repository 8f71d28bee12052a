"""Models, rows and reports that several tests share."""

from __future__ import annotations

import numpy as np
import pytest

from isrlearn import ISRClassifier, ISRRegressor
from isrlearn.datasets import load_digits_on_paper, make_gaussian_environments
from isrlearn.report import make_report

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    "\"double\" 'single' `back` & <b>bold</b>",
)


def fitted(estimator, data):
    X, y, environments = data
    return estimator.fit(X, y, environments=environments)


@pytest.fixture(scope="session")
def hostile_names():
    return HOSTILE


@pytest.fixture(scope="session")
def digits():
    return load_digits_on_paper()


@pytest.fixture(scope="session")
def digits_report(digits):
    """Report on digits on paper, scored on the test split."""
    train = digits.train
    clf = fitted(ISRClassifier(), (train.X, train.y, train.environments))
    sources = {"train": "digits/train.csv", "label": "label", "environment": "environment"}
    return make_report(clf, digits.train, digits.test, sources={**sources, "command": "isr fit"})


@pytest.fixture(scope="session")
def regression_report():
    sample = make_gaussian_environments(
        200, 3, n_invariant=3, n_spurious=2, task="regression", random_state=0
    )
    data = (sample.X, sample.y, sample.environments)
    return make_report(fitted(ISRRegressor(), data), data)


@pytest.fixture(scope="session")
def hostile_report():
    """Three classes and three environments whose names try to inject markup."""
    rng = np.random.default_rng(0)
    codes = np.arange(450)
    y, e = codes % 3, codes // 3 % 3
    X = rng.standard_normal((450, 6))
    X[:, :3] += 2 * np.eye(3)[y]
    X[:, 3] += 2 * e + 1.5 * y
    names = np.array(HOSTILE)
    data = (X, names[y], names[e])
    sources = {"train": HOSTILE[0], "label": HOSTILE[1], "command": f"isr fit {HOSTILE[1]}"}
    return make_report(fitted(ISRClassifier(), data), data, sources=sources)
