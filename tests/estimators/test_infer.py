"""Guessed environments: better than chance where there is a shortcut, chance where not."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_mutual_info_score

from isrlearn import ISRClassifier
from isrlearn.datasets import load_digits_on_paper, make_waterbirds_like
from isrlearn.estimators.infer import infer_environments
from isrlearn.metrics import worst_group_accuracy


def information(guess, data):
    """Adjusted mutual information with the true environment inside each class: 0 is chance."""
    return [
        adjusted_mutual_info_score(data.environments[data.y == k], guess[data.y == k])
        for k in np.unique(data.y)
    ]


@pytest.fixture(scope="module")
def birds():
    return make_waterbirds_like(n_features=64, random_state=0)


@pytest.fixture(scope="module")
def digits():
    return load_digits_on_paper(random_state=0)


@pytest.mark.parametrize(("strategy", "least"), [("errors", 0.85), ("clusters", 0.85)])
def test_the_paper_of_digits_is_found(digits, strategy, least):
    train = digits.train
    guess = infer_environments(train.X, train.y, strategy=strategy, random_state=0)
    assert min(information(guess, train)) > least


@pytest.mark.parametrize(("strategy", "least"), [("errors", 0.2), ("clusters", 0.02)])
def test_the_background_of_birds_is_found_in_part(birds, strategy, least):
    train = birds.train
    guess = infer_environments(train.X, train.y, strategy=strategy, random_state=0)
    assert min(information(guess, train)) > least


def test_without_a_shortcut_there_is_nothing_to_find():
    train = make_waterbirds_like(n_features=40, spurious_distance=0, random_state=0).train
    for strategy in ("errors", "clusters"):
        guess = infer_environments(train.X, train.y, strategy=strategy, random_state=0)
        assert max(information(guess, train)) < 0.02


def test_guesses_are_of_use_to_isr(digits):
    """Most of what known papers gain in the worst group, guessed ones gain too."""
    train, test = digits.train, digits.test

    def worst(environments, **parameters):
        model = ISRClassifier(n_spurious=1, C=0.01, weights="class", **parameters)
        model.fit(train.X, train.y, environments=environments)
        return worst_group_accuracy(test.y, model.predict(test.X), test.environments)

    nothing = worst(train.environments, scale=1.0)
    known = worst(train.environments)
    guess = infer_environments(train.X, train.y, random_state=0)
    assert worst(guess) - nothing > 0.6 * (known - nothing) > 0.1


def test_errors_are_those_of_a_head_fitted_on_other_rows(birds):
    """A head as free as it likes is right on its own rows, and not on others."""
    X, y = birds.train.X[:300], birds.train.y[:300]
    assert LogisticRegression(C=1e6, max_iter=1000).fit(X, y).score(X, y) == 1
    guess = infer_environments(X, y, C=1e6, cv=3, random_state=0)
    assert (guess == "wrong").mean() > 0.01


def test_clusters_of_the_classes_are_matched():
    """Both classes shift along the first axis; 'low' must be the same number in both."""
    rng = np.random.default_rng(0)
    y, e = np.repeat([0, 1], 300), rng.integers(3, size=600)
    X = rng.normal(size=(600, 4))
    X[:, 0] += 12.0 * e + 5.0 * y
    X[:, 1] += 8.0 * y
    guess = infer_environments(
        X, y, strategy="clusters", n_environments=3, n_components=2, random_state=0
    )
    # Numbers that differ between the classes would leave about half of the information.
    assert adjusted_mutual_info_score(e, guess) > 0.9


def test_three_classes():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], 200)
    X = 1.5 * np.eye(3)[np.repeat([0, 1, 2], 200)] + rng.normal(size=(600, 3))
    for strategy, names in (("errors", {"right", "wrong"}), ("clusters", {0, 1})):
        assert set(infer_environments(X, y, strategy=strategy, random_state=0)) == names


@pytest.mark.parametrize("strategy", ["errors", "clusters"])
def test_a_seed_gives_one_guess_and_names_of_classes_do_not_matter(digits, strategy):
    X, y = digits.train.X[:400], digits.train.y[:400]
    one = infer_environments(X, y, strategy=strategy, random_state=0)
    np.testing.assert_array_equal(one, infer_environments(X, y, strategy=strategy, random_state=0))
    other = infer_environments(X, np.where(y == "even", 0, 1), strategy=strategy, random_state=0)
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"strategy": "magic"},
            "strategy must be one of 'labels', 'errors', 'clusters'; got 'magic'",
        ),
        ({"C": -1.0}, "C must be a number"),
        ({"cv": 1}, "cv=1 must be at least 2"),
        ({"strategy": "clusters", "n_environments": 1}, "n_environments must be a number in"),
        ({"strategy": "clusters", "n_components": 0}, "n_components must be a number in"),
    ],
)
def test_mistakes_are_named(parameters, message):
    X, y = np.arange(40.0).reshape(20, 2), np.arange(20) % 2
    with pytest.raises(ValueError, match=message):
        infer_environments(X, y, **parameters)


def test_a_head_without_errors_says_so():
    X = np.r_[np.zeros(20), np.ones(20)][:, None]
    with pytest.raises(ValueError, match="the head makes no mistake"):
        infer_environments(X, np.repeat([0, 1], 20), random_state=0)
    with pytest.raises(ValueError, match="only one class"):
        infer_environments(X, np.zeros(40))


def partly(data, every):
    known = data.environments.astype(object)
    known[np.arange(len(known)) % every > 0] = None
    return known


def test_some_labels_predict_the_others(birds):
    train = birds.train
    known = partly(train, 10)
    filled = infer_environments(train.X, train.y, environments=known, random_state=0)
    given = known == train.environments
    np.testing.assert_array_equal(filled[given], train.environments[given])
    rest = type(train)(train.X[~given], train.y[~given], train.environments[~given])
    guess = infer_environments(train.X, train.y, random_state=0)
    assert min(information(filled[~given], rest)) > min(information(guess[~given], rest)) + 0.05


def test_filling_in_keeps_what_full_labels_gain(digits):
    """A tenth of the labels, filled in, is worth the whole; not filled in, it is not."""
    train, test = digits.train, digits.test
    known = partly(train, 10)
    filled = infer_environments(train.X, train.y, environments=known, random_state=0)

    def worst(environments):
        model = ISRClassifier(n_spurious=1, C=0.01, weights="class")
        model.fit(train.X, train.y, environments=environments)
        return worst_group_accuracy(test.y, model.predict(test.X), test.environments)

    assert worst(filled) > worst(train.environments) - 0.03
    assert worst(filled) > worst(known) + 0.03


def test_numbers_and_missing_numbers_are_kept_as_they_are(digits):
    train = digits.train
    codes = np.where(train.environments == "blue paper", 7.0, 3.0)
    known = np.where(np.arange(len(codes)) % 5 == 0, codes, np.nan)
    filled = infer_environments(train.X, train.y, environments=known, random_state=0)
    assert filled.dtype == float
    assert (filled == codes).mean() > 0.97
    np.testing.assert_array_equal(infer_environments(train.X, train.y, environments=codes), codes)


def test_too_few_labels_are_an_error_that_counts_them(digits):
    train = digits.train
    known = np.full(len(train.y), None, dtype=object)
    known[:3] = train.environments[:3]
    with pytest.raises(ValueError, match="3 of 'yellow paper'"):
        infer_environments(train.X, train.y, environments=known)
    known[:100], known[100:103] = train.environments[:100], "green paper"
    with pytest.raises(ValueError, match=r"\(3 of 'green paper', .*or more, each with 5 rows"):
        infer_environments(train.X, train.y, environments=known)
    with pytest.raises(ValueError, match="none at all"):
        infer_environments(train.X, train.y, environments=np.full(len(train.y), None))
    with pytest.raises(ValueError, match="'labels' needs environments"):
        infer_environments(train.X, train.y, strategy="labels")
    with pytest.raises(ValueError, match="'errors' takes no environments"):
        infer_environments(train.X, train.y, strategy="errors", environments=known)
