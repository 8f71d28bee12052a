"""Training of networks with the objectives that ISR is compared with."""

from isrlearn.paper.training.run import EpochRecord, TrainingResult
from isrlearn.paper.training.train import train

__all__ = ["EpochRecord", "TrainingResult", "train"]
