"""The paper's tables on real data: networks trained, their features post-processed, scored."""

from isrlearn.paper.real.catalogue import REAL
from isrlearn.paper.real.run import RealPlan, RealResult, run_real, write_real

__all__ = ["REAL", "RealPlan", "RealResult", "run_real", "write_real"]
