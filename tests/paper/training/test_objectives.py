"""Objectives of networks are, on linear models, the objectives of the linear baselines."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from isrlearn.paper.baselines.erm import adversary
from isrlearn.paper.baselines.objectives import (
    LOGISTIC,
    SOFTMAX,
    SQUARED,
    DummyGradient,
    MeanRisk,
    Objective,
    OutputVariance,
    RiskVariance,
    environment_risks,
)
from isrlearn.paper.training.objectives import OBJECTIVES, make_objective
from isrlearn.paper.training.task import Groups, find_task
from isrlearn.torch.batches import Batch

SIZES = (40, 25, 60)  # environments of unequal size
SHARES = tuple(n / sum(SIZES) for n in SIZES)
D, K = 4, 3


class Linear:
    """Samples and weights, for the linear baselines and as a network."""

    def __init__(self, kind):
        rng = np.random.default_rng(3)
        n = sum(SIZES)
        self.X = rng.normal(size=(n, D))
        self.e = np.repeat(np.arange(3), SIZES)
        self.task = find_task("regression" if kind == "regression" else "classification")
        C = K if kind == "multinomial" else 1
        self.W = rng.normal(size=(D + 1, C))
        if kind == "regression":
            self.y, self.loss = rng.normal(size=n), SQUARED
            self.target = self.y[:, None]
        else:
            self.y = rng.integers(0, max(C, 2), size=n)
            self.loss = LOGISTIC if C == 1 else SOFTMAX
            self.target = self.y[:, None] - 0.5 if C == 1 else np.eye(K)[self.y]
        self.model = nn.Sequential(nn.Linear(D, C, dtype=torch.float64))
        with torch.no_grad():
            self.model[0].weight.copy_(torch.tensor(self.W[:-1].T))
            self.model[0].bias.copy_(torch.tensor(self.W[-1]))
        self.batch = Batch(torch.tensor(self.X), torch.tensor(self.y), torch.tensor(self.e))

    @property
    def cells(self):
        """Classes in environments, or environments."""
        if self.task.name == "regression":
            return self.e
        return np.unique(self.y * 3 + self.e, return_inverse=True)[1]

    def baseline(self, terms, codes=None):
        """Value and gradient (D + 1, C) of an objective of the linear baselines."""
        risks, _ = environment_risks(
            self.X, self.target, self.e if codes is None else codes, None, self.loss
        )
        points = [risk.at(self.W) for risk in risks]
        return Objective(terms).value(points), Objective(terms).gradient(points)

    def network(self, name, **parameters):
        """Value and gradient of an objective of networks."""
        objective = make_objective(name, parameters)
        if objective.counts_groups:
            objective.groups = Groups.of([tuple(self.batch)], self.task)
        self.model.zero_grad()
        value = objective(self.model, self.batch, self.task)
        value.backward()
        layer = self.model[0]
        gradient = torch.cat([layer.weight.grad.T, layer.bias.grad[None]])
        return value.item(), gradient.numpy()


@pytest.fixture(params=["binary", "multinomial", "regression"])
def linear(request):
    return Linear(request.param)


def assert_same(found, expected, factor=1.0):
    assert found[0] == pytest.approx(factor * expected[0], rel=1e-10)
    np.testing.assert_allclose(found[1], factor * expected[1], atol=1e-10)


def test_erm(linear):
    assert_same(linear.network("erm"), linear.baseline(((1.0, MeanRisk(SHARES)),)))


def test_reweighting_counts_every_group_alike(linear):
    expected = linear.baseline(((1.0, MeanRisk()),), linear.cells)
    assert_same(linear.network("reweighting"), expected)


def test_group_dro_takes_the_published_steps(linear):
    risks, _ = environment_risks(linear.X, linear.target, linear.cells, None, linear.loss)
    published = adversary(risks, 0.5)
    objective = make_objective("group_dro", {"step": 0.5})
    objective.groups = Groups.of([tuple(linear.batch)], linear.task)
    for _ in range(3):  # the weights grow from step to step
        linear.model.zero_grad()
        objective(linear.model, linear.batch, linear.task).backward()
        layer = linear.model[0]
        gradient = torch.cat([layer.weight.grad.T, layer.bias.grad[None]])
        np.testing.assert_allclose(gradient, published(linear.W), atol=1e-10)


@pytest.mark.parametrize("penalty", [0.3, 20.0])
def test_irm(linear, penalty):
    # The baselines add the penalties of the three environments up, the networks average them.
    expected = linear.baseline(((1.0, MeanRisk()), (penalty / 3, DummyGradient())))
    assert_same(linear.network("irm", penalty=penalty), expected, 1 / max(1.0, penalty))


@pytest.mark.parametrize("penalty", [0.3, 20.0])
def test_vrex(linear, penalty):
    expected = linear.baseline(((1.0, MeanRisk()), (penalty, RiskVariance())))
    assert_same(linear.network("vrex", penalty=penalty), expected, 1 / max(1.0, penalty))


def test_ib_erm(linear):
    expected = linear.baseline(((1.0, MeanRisk(SHARES)), (0.7, OutputVariance(SHARES))))
    assert_same(linear.network("ib_erm", bottleneck=0.7), expected)


def test_ib_irm(linear):
    terms = (1.0, MeanRisk()), (2.0 / 3, DummyGradient()), (0.7, OutputVariance())
    expected = linear.baseline(terms)
    assert_same(linear.network("ib_irm", penalty=2.0, bottleneck=0.7), expected, 0.5)


def test_a_layer_names_the_bottleneck(linear):
    plain, _ = linear.network("erm")
    found, _ = linear.network("ib_erm", bottleneck=1.0, layer="0")
    assert found == pytest.approx(plain + linear.X.var(axis=0).mean())


def test_a_penalty_waits(linear):
    objective = make_objective("irm", {"penalty": 50.0, "anneal_steps": 2})
    values = [objective(linear.model, linear.batch, linear.task).item() for _ in range(4)]
    early, late = linear.network("irm", penalty=1.0)[0], linear.network("irm", penalty=50.0)[0]
    assert values == pytest.approx([early, early, late, late])
    again = make_objective("irm", {"penalty": 50.0, "anneal_steps": 2})
    again.restore(objective.state())
    assert again(linear.model, linear.batch, linear.task).item() == pytest.approx(late)


def test_mixtures_are_between_their_samples():
    """A linear model with a squared error sees where mixtures are."""
    linear = Linear("regression")
    torch.manual_seed(0)
    objective = make_objective("mixup", {"alpha": 1.0})
    mixed = [objective(linear.model, linear.batch, linear.task).item() for _ in range(200)]
    # E[(s r + (1-s) r')²] with s uniform: 2/3 of the mean square and 1/3 of the squared mean.
    residual = linear.X @ linear.W[:-1, 0] + linear.W[-1, 0] - linear.y
    expected = 2 / 3 * np.mean(residual**2) + np.mean(residual) ** 2 / 3
    assert np.mean(mixed) == pytest.approx(expected, rel=0.05)


def test_partners_of_similar_targets():
    linear = Linear("regression")
    torch.manual_seed(0)
    y = linear.batch.y
    near = make_objective("c_mixup", {"bandwidth": 0.05})._partners(linear.batch, linear.task)
    far = make_objective("c_mixup", {"bandwidth": 50.0})._partners(linear.batch, linear.task)
    assert (y - y[near]).abs().mean() < 0.2 < (y - y[far]).abs().mean()
    assert (near != torch.arange(len(y))).all()
    # Far from all others, the nearest one is the partner.
    lonely = Batch(linear.batch.x[:3], torch.tensor([0.0, 100.0, 1000.0]), torch.zeros(3).long())
    partners = make_objective("c_mixup", {"bandwidth": 1e-3})._partners(lonely, linear.task)
    assert partners.tolist() == [1, 0, 1]


def test_classes_mix_with_their_own():
    linear = Linear("multinomial")
    y = linear.batch.y
    partners = make_objective("c_mixup", {})._partners(linear.batch, linear.task)
    assert torch.equal(y, y[partners])


@pytest.mark.parametrize("name", ["mixup", "c_mixup"])
def test_integers_do_not_mix(name):
    linear = Linear("binary")
    batch = linear.batch._replace(x=linear.batch.x.long())
    with pytest.raises(ValueError, match=r"one tensor of floats; got torch.int64"):
        make_objective(name, {})(linear.model, batch, linear.task)


@pytest.mark.parametrize("name", ["reweighting", "group_dro", "irm", "vrex", "ib_irm"])
def test_environments_must_be_known(name):
    linear = Linear("binary")
    linear.e[:5] = -1
    linear.batch = linear.batch._replace(environments=torch.tensor(linear.e))
    with pytest.raises(ValueError, match=r"5 of 125 .*unknown \(-1\)"):
        linear.network(name)


@pytest.mark.parametrize("name", ["reweighting", "group_dro"])
@pytest.mark.parametrize("environment", [2, 7])
def test_groups_must_stay(name, environment):
    linear = Linear("regression")
    objective = make_objective(name, {})
    known = linear.batch.environments < 2
    objective.groups = Groups.of([tuple(part[known] for part in linear.batch)], linear.task)
    batch = linear.batch._replace(
        environments=torch.full_like(linear.batch.environments, environment)
    )
    with pytest.raises(ValueError, match="did not exist when groups were counted"):
        objective(linear.model, batch, linear.task)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_parameters_are_checked(name):
    with pytest.raises(ValueError, match=rf"no parameter 'penalti' with objective='{name}'"):
        make_objective(name, {"penalti": 1.0})


@pytest.mark.parametrize(
    ("name", "parameter"),
    [
        ("irm", "penalty"),
        ("vrex", "anneal_steps"),
        ("ib_erm", "bottleneck"),
        ("ib_irm", "bottleneck"),
        ("group_dro", "step"),
        ("mixup", "alpha"),
        ("c_mixup", "bandwidth"),
    ],
)
def test_ranges_are_checked(name, parameter):
    with pytest.raises(ValueError, match=f"{parameter} must be a number at least .*; got -1"):
        make_objective(name, {parameter: -1})


def test_an_unknown_objective_is_named():
    with pytest.raises(ValueError, match=r"objective must be one of 'erm', .*; got 'irmv1'"):
        make_objective("irmv1", {})
