"""The paper's tables on real data: trained networks, post-processed features, scores."""

from isrlearn.paper.real.experiments import REAL
from isrlearn.paper.real.run import RealPlan, RealResult, run_real, write_real

__all__ = ["REAL", "RealPlan", "RealResult", "run_real", "write_real"]
