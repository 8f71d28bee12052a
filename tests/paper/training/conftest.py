"""The small network and batches of the tests of `isrlearn.torch`."""

from __future__ import annotations

import runpy
from pathlib import Path

_SHARED = runpy.run_path(str(Path(__file__).parents[2] / "torch/conftest.py"))
globals().update({name: _SHARED[name] for name in ("one_thread", "network", "samples", "loader")})
