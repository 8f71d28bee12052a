"""Invariant-feature subspace recovery for scikit-learn."""

__version__ = "0.1.0"
