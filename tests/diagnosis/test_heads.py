"""Which group fails and why: the shortcut, or the class prior."""

from __future__ import annotations

import numpy as np

from isrlearn import ISRClassifier
from isrlearn.diagnosis import diagnose
from isrlearn.metrics import worst_group_accuracy


def head(found, removed, weight):
    return next(h for h in found.heads if (h.removed, h.weight) == (removed, weight))


def test_the_class_prior_is_blamed_where_it_is_to_blame(cells):
    # One row in twelve is of class 1, whose means overlap with class 0's.
    means = np.zeros((2, 2, 5))
    means[:, 1, 0] = 3.0
    means[1, :, 1] = 1.5
    X, y, e = cells([[1200, 1200], [100, 100]], means)
    found = diagnose(X, y, e, n_bootstrap=0)
    assert head(found, True, None).worst < 0.3
    assert head(found, True, None).worst_group[0] == 1
    assert head(found, True, "class").worst > 0.65
    assert found.recommendation.parameters["weights"] == "class"
    assert "class-prior" in found.recommendation.codes
    # What is promised is what the estimator does on new rows.
    clf = ISRClassifier(**found.recommendation.parameters).fit(X, y, environments=e)
    X2, y2, e2 = cells(np.full((2, 2), 1000), means, seed=1)
    assert worst_group_accuracy(y2, clf.predict(X2), e2) > 0.65


def test_the_shortcut_is_not_blamed_on_the_prior(cells):
    # Environment and class go together in nine rows of ten: the worst groups are the rare ones.
    means = np.zeros((2, 2, 5))
    means[:, 1, 0] = 4.0
    means[1, :, 1] = 2.5
    X, y, e = cells([[900, 100], [100, 900]], means)
    found = diagnose(X, y, e, n_bootstrap=0)
    plain, removed = head(found, False, None), head(found, True, None)
    assert plain.worst < removed.worst - 0.08
    assert "class-prior" not in found.recommendation.codes
    assert found.recommendation.parameters == {"method": "mean", "n_spurious": 1}


def test_balanced_data_need_no_weights(diagnosis):
    assert "weights" not in diagnosis.recommendation.parameters
    for removed in (False, True):
        scores = {head(diagnosis, removed, w).worst for w in (None, "class", "group")}
        assert len(scores) == 1


def test_an_unseen_environment_gains(diagnosis):
    # Positions along the direction that shifts differ: a head that uses it fails elsewhere.
    assert diagnosis.information.unseen_after > 0.8
    assert diagnosis.information.unseen_after > diagnosis.information.unseen_before - 0.01


def test_a_large_sample_is_thinned_and_still_weighed_as_it_is(cells):
    # 24,000 rows, of which 10,000 are looked at one by one, as many of each cell.
    means = np.zeros((2, 2, 3))
    means[:, 1, 0] = 3.0
    means[1, :, 1] = 1.5
    X, y, e = cells([[11_000, 11_000], [1000, 1000]], means)
    found = diagnose(X, y, e, n_bootstrap=0)
    # The plain head knows that class 1 is rare although half of the thinned rows are of it.
    assert head(found, True, None).average > 0.9
    assert head(found, True, None).worst < 0.35
    assert head(found, True, "class").worst > 0.7
