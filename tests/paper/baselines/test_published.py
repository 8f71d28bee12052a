"""The published optimiser: PyTorch's steps, first weights, hyper-parameters and errors."""

from __future__ import annotations

import numpy as np
import pytest

from isrlearn.paper.baselines import (
    ANDMaskClassifier,
    ERMClassifier,
    ERMRegressor,
    GroupDROClassifier,
    IRMv1Classifier,
    make_baseline,
    published_parameters,
    published_trials,
    search_space,
)
from isrlearn.paper.baselines.erm import Minimizer
from isrlearn.paper.baselines.invariance import _IRMv1, masked_gradient
from isrlearn.paper.baselines.solve import adam, initial_weights
from isrlearn.paper.datasets import make_linear_unit_test, make_multiclass_unit_test

ALGORITHMS = [
    "ERM", "Oracle", "IRMv1", "IGA", "ANDMask", "Reweighted", "GroupDRO", "VREx", "IBERM", "IBIRM",
]  # fmt: skip


@pytest.mark.parametrize(("d", "C"), [(10, 1), (40, 5)])
def test_first_weights_are_those_of_pytorch(d, C):
    torch = pytest.importorskip("torch")
    torch.manual_seed(1001)
    layer = torch.nn.Linear(d, C)
    W = initial_weights(d, C, 1001)
    np.testing.assert_allclose(W[:-1].T, layer.weight.detach().numpy(), atol=1e-7)
    np.testing.assert_allclose(W[-1], layer.bias.detach().numpy(), atol=1e-7)


def test_adam_takes_the_steps_of_pytorch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    A, start = rng.normal(size=(6, 4)), rng.normal(size=(4, 1))
    w = torch.nn.Parameter(torch.tensor(start))
    optimizer = torch.optim.Adam([w], lr=0.03, weight_decay=0.01)
    for _ in range(200):
        optimizer.zero_grad()
        (torch.tensor(A) @ w - 1.0).square().mean().backward()
        optimizer.step()
    ours = adam(
        lambda W: 2 * A.T @ (A @ W - 1.0) / 6,
        start,
        learning_rate=0.03,
        weight_decay=0.01,
        n_steps=200,
    )
    np.testing.assert_allclose(ours, w.detach().numpy(), rtol=1e-9)


def test_regression_from_moments_takes_the_steps_of_samples():
    splits = make_linear_unit_test("1", n_samples=300, random_state=0)
    X, y = splits.train.X, splits.train.y
    ones = np.hstack([X, np.ones((len(X), 1))])
    by_samples = adam(
        lambda W: 2 * ones.T @ (ones @ W - y[:, None]) / len(y),
        initial_weights(10, 1, 5).astype(float),
        learning_rate=0.01,
        weight_decay=1e-3,
        n_steps=300,
    )
    model = ERMRegressor(
        optimizer="published",
        learning_rate=0.01,
        weight_decay=1e-3,
        max_iter=300,
        random_state=5,
    ).fit(X, y)
    np.testing.assert_allclose(model.coef_, by_samples[:-1, 0], rtol=1e-8)
    assert model.intercept_ == pytest.approx(by_samples[-1, 0], rel=1e-8)


@pytest.mark.parametrize("data", ["1s", "3s", "three classes"])
@pytest.mark.parametrize("algorithm", ["ERM", "IRMv1", "IGA", "IBIRM"])
def test_trials_side_by_side_take_the_steps_of_single_ones(algorithm, data):
    if data == "three classes":
        train = make_multiclass_unit_test(n_classes=3, n_samples=500, random_state=0).train
    else:
        train = make_linear_unit_test(data, n_samples=3000, random_state=0).train
    task = "regression" if data == "1s" else "classification"
    how = {"task": task, "optimizer": "published", "max_iter": 60}
    trials = published_trials(algorithm)[:4]
    alone, together = ([make_baseline(algorithm, **how, **t) for t in trials] for _ in range(2))
    together[0].fit_together(together, train.X, train.y, train.environments)
    for one, other in zip(alone, together, strict=True):
        one.fit(train.X, train.y, train.environments)
        np.testing.assert_allclose(other.coef_, one.coef_, atol=2e-5)
    assert np.abs(together[0].coef_ - together[1].coef_).max() > 0.01


def test_irm_by_moments_takes_the_steps_of_samples(monkeypatch):
    train = make_linear_unit_test("1s", n_samples=200, random_state=0).train
    model = make_baseline("IRMv1", task="regression", optimizer="published", random_state=0)
    model.set_params(max_iter=300, penalty=0.7)
    by_moments = model.fit(train.X, train.y, train.environments).coef_
    monkeypatch.setattr(_IRMv1, "_gradient", Minimizer._gradient)
    by_samples = model.fit(train.X, train.y, train.environments).coef_
    np.testing.assert_allclose(by_moments, by_samples, rtol=1e-9)


def test_masked_gradient_by_hand():
    gradients = np.array([[[3.0], [4.0], [1.0]], [[6.0], [-8.0], [3.0]]])  # last row: intercept
    masked = masked_gradient(gradients, 0.9)
    np.testing.assert_allclose(masked[:, 0], [0.6, 0.0, 2.0])
    np.testing.assert_allclose(masked_gradient(gradients, 0.0)[:, 0], [0.6, 0.0, 2.0])
    # Two of three signs agree: they add up to 1, which is above 0.3 * 3 and not above 0.4 * 3.
    three = np.concatenate([gradients, [[[3.0], [4.0], [-1.0]]]])
    assert masked_gradient(three, 0.3)[1, 0] == pytest.approx((0.8 - 0.8 + 0.8) / 3)
    assert masked_gradient(three, 0.4)[1, 0] == 0.0


def test_andmask_does_not_move_where_environments_disagree():
    X = np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]])
    y, e = np.array([1, 0, 1, 0]), np.array([0, 0, 1, 1])
    first = initial_weights(2, 1, 7)
    model = ANDMaskClassifier(learning_rate=0.01, max_iter=50, random_state=7)
    model.fit(X, y, environments=e)
    assert model.coef_[0, 1] == first[1, 0]
    assert model.coef_[0, 0] > first[0, 0] + 0.1


def test_group_dro_moves_weight_to_the_worst_cell():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 0, 1], [400, 400, 20, 20])
    e = np.repeat([0, 0, 1, 1], [400, 400, 20, 20])
    sign = 2.0 * y - 1
    shortcut = np.where(e == 0, sign, -sign)
    X = np.column_stack([sign + rng.normal(size=840), 2 * shortcut + rng.normal(size=840)])
    parameters = {"optimizer": "published", "learning_rate": 0.01, "max_iter": 3000}

    def worst(model):
        right = model.fit(X, y, environments=e).predict(X) == y
        return min(right[(y == k) & (e == a)].mean() for k in (0, 1) for a in (0, 1))

    erm = worst(ERMClassifier(**parameters, random_state=0))
    dro = worst(GroupDROClassifier(**parameters, random_state=0))
    assert dro > erm + 0.3


def test_same_seed_same_weights():
    splits = make_linear_unit_test("2", n_samples=200, random_state=0)
    X, y, e = splits.train.X, splits.train.y, splits.train.environments
    model = IRMv1Classifier(optimizer="published", max_iter=20, random_state=3)
    one, two = (model.fit(X, y, environments=e).coef_.copy() for _ in range(2))
    np.testing.assert_array_equal(one, two)
    other = model.set_params(random_state=4).fit(X, y, environments=e).coef_
    assert not np.allclose(one, other, atol=1e-3)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_trials_stay_in_their_ranges_and_fit(algorithm):
    space = search_space(algorithm)
    trials = published_trials(algorithm)
    assert [t["random_state"] for t in trials] == list(range(1000, 1020))
    for trial in trials[1:]:
        for name, r in space.items():
            low, high = sorted((r.scale(r.low), r.scale(r.high)))
            assert low <= trial[name] <= high
    for task, y in (("classification", [0, 1, 1, 0]), ("regression", [0.1, 1.0, 0.8, 0.2])):
        model = make_baseline(algorithm, task=task, max_iter=3, **trials[1])
        if "optimizer" in model.get_params():
            model.set_params(optimizer="published")
        X = [[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [0.0, 0.0]]
        assert np.isfinite(model.fit(X, y, environments=[0, 0, 1, 1]).predict(X)).all()


def test_hyperparameters_in_published_names_find_their_trial():
    hyperparameters = {
        "lr": 0.0006954242203320001,
        "wd": 0.008024709838851,
        "irm_lambda": 0.9547252494020511,
    }
    parameters = published_parameters("IRMv1", hyperparameters)
    assert parameters["random_state"] == 1004
    assert parameters["penalty"] == 0.9547252494020511
    with pytest.raises(ValueError, match="not one of the 20 published settings"):
        published_parameters("IRMv1", hyperparameters | {"lr": 0.5})
    with pytest.raises(ValueError, match="'tau_2' is not a published"):
        published_parameters("ANDMask", {"tau_2": 0.5})


def test_unknown_names_are_answered_with_the_known_ones():
    with pytest.raises(ValueError, match="no baseline is called 'SGD'; there are ERM"):
        make_baseline("SGD")
    with pytest.raises(ValueError, match=r"task must be one of .* got 'ranking'"):
        make_baseline("ERM", task="ranking")


@pytest.mark.slow
def test_published_error_of_erm_on_example_2():
    """E = 3: published mean 0.4208, standard deviation between data sets 0.0071."""
    parameters = published_parameters("ERM", {"lr": 0.003920143237423, "wd": 1.71595119297e-06})
    errors = []
    for seed in range(2):
        splits = make_linear_unit_test("2", n_environments=3, random_state=seed)
        model = make_baseline("ERM", optimizer="published", **parameters)
        model.fit(splits.train.X, splits.train.y)
        errors.append(1 - model.score(splits.test.X, splits.test.y))
    assert np.mean(errors) == pytest.approx(0.4208, abs=3 * 0.0071 / np.sqrt(2))
