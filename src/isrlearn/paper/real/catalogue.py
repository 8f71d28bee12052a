"""Every experiment on real data, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from isrlearn.paper.real.experiment import Experiment
from isrlearn.paper.real.folders import CELEBA, CLIP, MULTINLI, WATERBIRDS
from isrlearn.paper.real.law_school import LAW_SCHOOL
from isrlearn.paper.real.mc_cmnist import MC_CMNIST
from isrlearn.paper.real.pretrained import PRETRAINED
from isrlearn.paper.real.rcfmnist import RCFMNIST

__all__ = ["REAL"]

REAL: Mapping[str, Experiment] = MappingProxyType(
    {
        experiment.name: experiment
        for experiment in (
            *(MC_CMNIST, RCFMNIST, LAW_SCHOOL, PRETRAINED),
            *(WATERBIRDS, CELEBA, MULTINLI, CLIP),
        )
    }
)
