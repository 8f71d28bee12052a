"""The gradient formulas are those of PyTorch's automatic differentiation, in double precision."""

from __future__ import annotations

import numpy as np
import pytest

from isrlearn.paper.baselines.objectives import (
    LOGISTIC,
    SOFTMAX,
    SQUARED,
    DummyGradient,
    GradientVariance,
    MeanRisk,
    Objective,
    OutputVariance,
    RiskVariance,
    SoftMaximum,
    environment_risks,
)

torch = pytest.importorskip("torch")

SIZES = (40, 25, 60)  # environments of unequal size
SHARES = tuple(n / sum(SIZES) for n in SIZES)
DIMENSION, CLASSES = 4, 3


def samples(task):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(sum(SIZES), DIMENSION)) * [1.0, 0.1, 3.0, 1.0]
    e = np.repeat(np.arange(3), SIZES)
    C = CLASSES if task == "multinomial" else 1
    W = rng.normal(size=(DIMENSION + 1, C))
    if task == "regression":
        return X, rng.normal(size=(len(X), 1)), e, SQUARED, W
    labels = rng.integers(0, CLASSES if C > 1 else 2, size=len(X))
    if task == "binary":
        return X, labels[:, None] - 0.5, e, LOGISTIC, W
    return X, np.eye(CLASSES)[labels], e, SOFTMAX, W


def torch_risk(task, z, target, weight):
    """The weighted mean loss by PyTorch's own loss functions."""
    F = torch.nn.functional
    if task == "regression":
        losses = F.mse_loss(z, target, reduction="none")[:, 0]
    elif task == "binary":
        losses = F.binary_cross_entropy_with_logits(z, target + 0.5, reduction="none")[:, 0]
    else:
        losses = F.cross_entropy(z, target.argmax(1), reduction="none")
    return (weight * losses).sum() / weight.sum()


class Autograd:
    """The objectives written as the literature defines them, differentiated by PyTorch."""

    def __init__(self, task, X, target, e, weight, W):
        self.task = task
        self.W = torch.tensor(W, requires_grad=True)
        ones = np.ones((len(X), 1))
        self.parts = [
            tuple(torch.tensor(a[e == k]) for a in (np.hstack([X, ones]), target, weight))
            for k in range(3)
        ]

    def risks(self, scale=1.0, shift=0.0):
        return [torch_risk(self.task, (x @ self.W) * scale + shift, t, w) for x, t, w in self.parts]

    def mean_risk(self):
        return sum(self.risks()) / 3

    def dummy_gradient(self):
        scale = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
        shift = torch.tensor(0.0, dtype=torch.float64, requires_grad=True)
        total = 0.0
        for risk in self.risks(scale, shift):
            total = total + sum(
                g.square() for g in torch.autograd.grad(risk, (scale, shift), create_graph=True)
            )
        return total

    def gradient_variance(self):
        gradients = [torch.autograd.grad(r, self.W, create_graph=True)[0] for r in self.risks()]
        mean = sum(gradients) / 3
        return sum((g - mean).square().sum() for g in gradients)

    def risk_variance(self):
        return torch.stack(self.risks()).var(correction=0)

    def soft_maximum(self):
        return 0.2 * torch.logsumexp(torch.stack(self.risks()) / 0.2, 0)

    def _variance(self, parts):
        x, w = torch.cat([p[0] for p in parts]), torch.cat([p[2] for p in parts])
        z = x @ self.W
        centre = (w[:, None] * z).sum(0) / w.sum()
        return ((w[:, None] * (z - centre).square()).sum(0) / w.sum()).mean()

    def variance_within(self):
        return sum(self._variance([part]) for part in self.parts) / 3

    def pooled(self, shares):
        return sum(s * r for s, r in zip(shares, self.risks(), strict=True))


TERMS = {
    "mean_risk": MeanRisk(),
    "dummy_gradient": DummyGradient(),
    "gradient_variance": GradientVariance(),
    "risk_variance": RiskVariance(),
    "soft_maximum": SoftMaximum(0.2),
    "variance_within": OutputVariance(),
}


def ours(term, risks, W):
    points = [risk.at(W) for risk in risks]
    objective = Objective(((1.0, term),))
    return objective.value(points), objective.gradient(points)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("task", ["binary", "multinomial", "regression"])
@pytest.mark.parametrize("name", TERMS)
def test_term_and_gradient(name, task, weighted):
    X, target, e, loss, W = samples(task)
    weight = np.random.default_rng(4).uniform(0.5, 2.0, len(X)) if weighted else np.ones(len(X))
    risks, _ = environment_risks(X, target, e, weight if weighted else None, loss)
    value, gradient = ours(TERMS[name], risks, W)
    theirs = Autograd(task, X, target, e, weight, W)
    expected = getattr(theirs, name)()
    assert value == pytest.approx(expected.item(), rel=1e-10)
    expected.backward()
    np.testing.assert_allclose(gradient, theirs.W.grad.numpy(), rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("task", ["binary", "multinomial", "regression"])
def test_shares_make_the_terms_those_of_all_samples(task):
    X, target, e, loss, W = samples(task)
    risks, shares = environment_risks(X, target, e, None, loss)
    assert tuple(shares) == pytest.approx(SHARES)
    theirs = Autograd(task, X, target, e, np.ones(len(X)), W)
    value, gradient = ours(MeanRisk(SHARES), risks, W)
    expected = theirs.pooled(SHARES)
    assert value == pytest.approx(expected.item(), rel=1e-10)
    (by_torch,) = torch.autograd.grad(expected, theirs.W)
    np.testing.assert_allclose(gradient, by_torch.numpy(), rtol=1e-8, atol=1e-12)
    value, gradient = ours(OutputVariance(SHARES), risks, W)
    expected = theirs._variance(theirs.parts)
    assert value == pytest.approx(expected.item(), rel=1e-10)
    (by_torch,) = torch.autograd.grad(expected, theirs.W)
    np.testing.assert_allclose(gradient, by_torch.numpy(), rtol=1e-8, atol=1e-12)
