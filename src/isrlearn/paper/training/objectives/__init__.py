"""What the trainers minimise, one objective a file, by name."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from isrlearn.paper.training.objectives._objective import Groups, Objective
from isrlearn.paper.training.objectives.c_mixup import CMixUp
from isrlearn.paper.training.objectives.erm import ERM
from isrlearn.paper.training.objectives.group_dro import GroupDRO
from isrlearn.paper.training.objectives.ib_erm import IBERM
from isrlearn.paper.training.objectives.ib_irm import IBIRM
from isrlearn.paper.training.objectives.irm import IRM
from isrlearn.paper.training.objectives.mixup import MixUp
from isrlearn.paper.training.objectives.reweighting import Reweighting
from isrlearn.paper.training.objectives.vrex import VREx
from isrlearn.validation import check_choice

__all__ = ["OBJECTIVES", "Groups", "Objective", "make_objective"]

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
    """The objective of that name, with its own parameters.

    Examples
    --------
    >>> make_objective("vrex", {"penalty": 2.0})
    VREx(penalty=2.0, anneal_steps=0)
    """
    check_choice("objective", name, tuple(OBJECTIVES))
    kind = OBJECTIVES[name]
    known = [field.name for field in fields(kind) if field.init]
    for parameter in parameters:
        if parameter not in known:
            raise ValueError(
                f"train() has no parameter {parameter!r} with objective={name!r}; of its own that "
                f"objective has {', '.join(known) or 'none'}"
            )
    return kind(**parameters)
