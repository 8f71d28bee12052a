"""What the trainers minimise, by name; on a linear model, those of `isrlearn.paper.baselines`."""

from abc import ABC, abstractmethod
from contextlib import nullcontext
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from isrlearn.paper.training.task import Groups, Task, check_known
from isrlearn.torch.batches import Batch, outputs_of
from isrlearn.torch.layer import captured
from isrlearn.validation import check_between, check_choice


@dataclass
class Objective(ABC):
    """The loss of a batch. Subclasses add parameters, and state if they have one."""

    #: Whether the groups of the training set must be counted first.
    counts_groups: ClassVar[bool] = False
    #: Smallest legal value of each numeric parameter.
    least: ClassVar[dict[str, float]] = {}
    #: Names of the attributes that change from step to step.
    changing: ClassVar[tuple[str, ...]] = ()
    #: The groups, set before the first batch.
    groups: Groups = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name, low in self.least.items():
            check_between(name, getattr(self, name), low, float("inf"))

    def __call__(self, model: nn.Module, batch: Batch, task: Task) -> Tensor:
        """The loss of a batch, a scalar with a gradient."""
        return self._loss(model, batch, task)

    @abstractmethod
    def _loss(self, model: nn.Module, batch: Batch, task: Task) -> Tensor: ...

    def state(self) -> dict[str, Any]:
        """What changes from step to step, as tensors and numbers."""
        return {name: getattr(self, name) for name in self.changing}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        for name in self.changing:
            setattr(self, name, state[name])


@dataclass
class ERM(Objective):
    """The mean loss."""

    def _loss(self, model: nn.Module, batch: Batch, task: Task) -> Tensor:
        return task.losses(outputs_of(model, batch.x), batch.y).mean()


@dataclass
class IBERM(Objective):
    """The mean loss and the variance of outputs or of a layer's inputs (Ahuja et al., 2021)."""

    bottleneck: float = 0.1
    layer: str | None = None  # the last one in the published networks
    least: ClassVar = {"bottleneck": 0.0}

    def _loss(self, model: nn.Module, batch: Batch, task: Task) -> Tensor:
        outputs, code = _forward(model, batch, self.layer)
        risk = task.losses(outputs, batch.y).mean()
        everyone = torch.zeros_like(batch.environments)
        count = everyone.new_full((1,), len(everyone))
        return risk + self.bottleneck * _variance(code, everyone, count).mean()


@dataclass
class Reweighting(Objective):
    """The mean loss with a weight of ``n / (n_groups * n_group)`` for each sample."""

    counts_groups: ClassVar = True

    def _loss(self, model: nn.Module, batch: Batch, task: Task) -> Tensor:
        losses = task.losses(outputs_of(model, batch.x), batch.y)
        count = self.groups.count.to(losses)
        weight = count.sum() / (len(count) * count)
        return (weight[self.groups.members(batch, task)] * losses).mean()


@dataclass
class GroupDRO(Objective):
    """A mean of the groups' risks whose weights grow where risk is high (Sagawa et al., 2020)."""

    step: float = 0.01
    scores: Tensor | None = field(default=None, init=False, repr=False)
    counts_groups: ClassVar = True
    least: ClassVar = {"step": 0.0}
    changing: ClassVar = ("scores",)

    def _loss(self, model: nn.Module, batch: Batch, task: Task) -> Tensor:
        losses = task.losses(outputs_of(model, batch.x), batch.y)
        members = self.groups.members(batch, task)
        groups, place, count = torch.unique(members, return_inverse=True, return_counts=True)
        risks = _means(losses, place, count)
        if self.scores is None:
            # Logarithms of the weights, in double precision because they only ever grow.
            self.scores = torch.zeros(len(self.groups.count), dtype=torch.float64)
        self.scores[groups.cpu()] += self.step * risks.detach().cpu().double()
        weights = torch.softmax(self.scores, dim=0)[groups.cpu()]
        return (weights.to(risks) * risks).sum()


@dataclass
class Annealed(Objective):
    """A penalty with a weight of at most 1 in the first steps and its full weight afterwards."""

    penalty: float = 1.0
    anneal_steps: int = 0
    steps: int = field(default=0, init=False, repr=False)
    least: ClassVar[dict[str, float]] = {"penalty": 0.0, "anneal_steps": 0}
    changing: ClassVar = ("steps",)

    def weighted(self, risk: Tensor, penalty: Tensor) -> Tensor:
        """Risk plus weighted penalty for this step."""
        weight = self.penalty if self.steps >= self.anneal_steps else min(1.0, self.penalty)
        self.steps += 1
        # Divided by a weight above 1, so that the learning rate keeps its meaning.
        return (risk + weight * penalty) / max(1.0, weight)


@dataclass
class IRM(Annealed):
    """The mean risk of the environments, and a penalty where rescaling outputs would help.

    The penalty is the mean over environments of the squared gradient of the risk of ``a z + b``
    in (a, b) at (1, 0). A common shift b of two or more logits changes nothing: there this is
    the form of Arjovsky et al. (2019); with one output it is that of the linear unit tests.
    """

    def _loss(self, model: nn.Module, batch: Batch, task: Task) -> Tensor:
        place, count = _present(batch.environments)
        outputs = outputs_of(model, batch.x)
        risk = _means(task.losses(outputs, batch.y), place, count).mean()
        return self.weighted(risk, _dummy_gradient(outputs, batch.y, place, count, task).mean())


@dataclass
class IBIRM(Annealed):
    """The objective of `IRM`, and the variance in each environment as in `IBERM`."""

    bottleneck: float = 0.1
    layer: str | None = None
    least: ClassVar = {**Annealed.least, "bottleneck": 0.0}

    def _loss(self, model: nn.Module, batch: Batch, task: Task) -> Tensor:
        place, count = _present(batch.environments)
        outputs, code = _forward(model, batch, self.layer)
        risk = _means(task.losses(outputs, batch.y), place, count).mean()
        risk = risk + self.bottleneck * _variance(code, place, count).mean()
        return self.weighted(risk, _dummy_gradient(outputs, batch.y, place, count, task).mean())


@dataclass
class VREx(Annealed):
    """The mean risk of the environments, and the variance of the risks (Krueger et al., 2021)."""

    penalty: float = 10.0

    def _loss(self, model: nn.Module, batch: Batch, task: Task) -> Tensor:
        place, count = _present(batch.environments)
        risks = _means(task.losses(outputs_of(model, batch.x), batch.y), place, count)
        return self.weighted(risks.mean(), risks.var(correction=0))


@dataclass
class MixUp(Objective):
    """The mean loss of mixtures of each sample with another of its batch (Zhang et al., 2018)."""

    alpha: float = 2.0
    least: ClassVar[dict[str, float]] = {"alpha": 1e-6}

    def _loss(self, model: nn.Module, batch: Batch, task: Task) -> Tensor:
        if not isinstance(batch.x, Tensor) or not batch.x.is_floating_point():
            raise ValueError(
                "inputs can be mixed only if they are one tensor of floats; got "
                f"{getattr(batch.x, 'dtype', type(batch.x).__name__)}"
            )
        share = float(torch.distributions.Beta(self.alpha, self.alpha).sample())
        partner = self._partners(batch, task)
        outputs = outputs_of(model, share * batch.x + (1 - share) * batch.x[partner])
        y, other = batch.y, batch.y[partner]
        if task.name == "regression":
            return task.losses(outputs, share * y + (1 - share) * other).mean()
        losses = share * task.losses(outputs, y) + (1 - share) * task.losses(outputs, other)
        return losses.mean()

    def _partners(self, batch: Batch, task: Task) -> Tensor:
        """Index in the batch of the sample that each one is mixed with, (n,)."""
        return torch.randperm(len(batch.y)).to(batch.y.device)


@dataclass
class CMixUp(MixUp):
    """MixUp with partners of similar targets, by a Gaussian kernel (Yao et al., 2022)."""

    bandwidth: float = 0.1
    least: ClassVar = {**MixUp.least, "bandwidth": 1e-6}

    def _partners(self, batch: Batch, task: Task) -> Tensor:
        y = batch.y.detach().cpu()
        if len(y) == 1:
            return torch.zeros_like(batch.environments)
        if task.name == "regression":
            y = y.double().reshape(len(y), -1)
            distance = torch.cdist(y, y, compute_mode="donot_use_mm_for_euclid_dist")
        else:
            distance = (y[:, None] != y).double()
        logits = -((distance / self.bandwidth) ** 2) / 2
        logits.fill_diagonal_(-torch.inf)  # mixing a sample with itself changes nothing
        # With a softmax, a sample far from all others still gets the nearest of them.
        probability = torch.softmax(logits, dim=1)
        return torch.multinomial(probability, 1)[:, 0].to(batch.y.device)


OBJECTIVES: dict[str, type[Objective]] = {
    "erm": ERM,
    "reweighting": Reweighting,
    "group_dro": GroupDRO,
    "irm": IRM,
    "vrex": VREx,
    "ib_erm": IBERM,
    "ib_irm": IBIRM,
    "mixup": MixUp,
    "c_mixup": CMixUp,
}


def make_objective(name: str, parameters: dict[str, Any]) -> Objective:
    """The objective of that name, with its own parameters."""
    check_choice("objective", name, tuple(OBJECTIVES))
    kind = OBJECTIVES[name]
    known = [field.name for field in fields(kind) if field.init]
    for parameter in parameters:
        if parameter not in known:
            raise ValueError(
                f"train() has no parameter {parameter!r} with objective={name!r}; the parameters "
                f"of that objective are: {', '.join(known) or 'none'}"
            )
    return kind(**parameters)


def _present(environments: Tensor) -> tuple[Tensor, Tensor]:
    """Index of each sample's environment among those present, (n,), and their sizes, (E,)."""
    check_known(environments, "in a batch")
    _, place, count = torch.unique(environments, return_inverse=True, return_counts=True)
    return place, count


def _means(values: Tensor, place: Tensor, count: Tensor) -> Tensor:
    """Mean of the values (n, ...) in each environment, (E, ...)."""
    sums = values.new_zeros((len(count), *values.shape[1:])).index_add(0, place, values)
    return sums / count.to(values.dtype).reshape(-1, *[1] * (values.ndim - 1))


def _forward(model: nn.Module, batch: Batch, layer: str | None) -> tuple[Tensor, Tensor]:
    """Outputs, and as code (n, p) the inputs of a layer, or the outputs if no layer is named."""
    with nullcontext() if layer is None else captured(model, layer) as inputs:
        outputs = outputs_of(model, batch.x)
        code = outputs if inputs is None else inputs(len(batch.environments))
    return outputs, code.reshape(len(code), -1)


def _variance(code: Tensor, place: Tensor, count: Tensor) -> Tensor:
    """Variance of the code in each environment, averaged over its columns, (E,)."""
    away = code - _means(code, place, count)[place]
    return _means((away**2).mean(dim=1), place, count)


def _dummy_gradient(outputs: Tensor, y: Tensor, place: Tensor, count: Tensor, task: Task) -> Tensor:
    """Squared gradient of each environment's risk of ``a z + b`` in (a, b), at (1, 0), (E,)."""
    ones = outputs.new_ones(len(count))
    a, b = ones.requires_grad_(), torch.zeros_like(ones).requires_grad_()
    shape = (-1, *[1] * (outputs.ndim - 1))
    rescaled = outputs * a[place].reshape(shape) + b[place].reshape(shape)
    risks = _means(task.losses(rescaled, y), place, count)
    # The risk of an environment depends only on its own a and b, so one gradient serves all.
    gradients = torch.autograd.grad(risks.sum(), (a, b), create_graph=True)
    return gradients[0] ** 2 + gradients[1] ** 2
