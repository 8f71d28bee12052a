"""Trainers of networks: the objectives that ISR is compared with."""

from isrlearn.paper.training._run import EpochRecord, TrainingResult
from isrlearn.paper.training.train import train

__all__ = ["EpochRecord", "TrainingResult", "train"]
