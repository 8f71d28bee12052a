"""Every experiment on real data, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from isrlearn.benchmarks.real.experiment import Experiment
from isrlearn.benchmarks.real.folders import CELEBA, CLIP, MULTINLI, WATERBIRDS
from isrlearn.benchmarks.real.law_school import LAW_SCHOOL
from isrlearn.benchmarks.real.mc_cmnist import MC_CMNIST
from isrlearn.benchmarks.real.pretrained import PRETRAINED
from isrlearn.benchmarks.real.rcfmnist import RCFMNIST

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
