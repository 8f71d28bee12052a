"""Parameter descriptions that the baselines share."""

from __future__ import annotations

import inspect
from typing import TypeVar

Class = TypeVar("Class", bound=type)

_SHARED = {
    "optimizer": """\
    optimizer : {"converged", "published"}, default="converged"
        "converged": L-BFGS in whitened coordinates, until no entry of the gradient there exceeds
        ``tol``; small features are then as easy to use as large ones.
        "published": ``max_iter`` steps of full-batch Adam on the features as they are, from
        small random weights, as in the published linear unit tests.
""",
    "learning_rate": """\
    learning_rate : float, default=1e-3
        Size of the steps of gradient descent.
""",
    "weight_decay": """\
    weight_decay : float, default=0.0
        L2 penalty, ``weight_decay / 2`` times the squared weights: of all weights with
        "published", of the weights of whitened features with "converged".
""",
    "tol": """\
    tol : float, default=1e-6
        Largest entry of the gradient at the end, the mean risk counting once ("converged" only).
""",
    "max_iter": """\
    max_iter : int, default=10000
        Steps of Adam, or the most iterations of L-BFGS.
""",
    "random_state": """\
    random_state : int, RandomState instance or None, default=None
        Draws the first weights of gradient descent.
""",
    "missing_environments": """\
    missing_environments : {"raise", "single"}, default="raise"
        What ``fit`` does when environments are not passed: raise an error, or take all samples
        as one environment.
""",
}

_CLASSIFIER = """\
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights of the features as they are.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts.
"""
_REGRESSOR = """\
    coef_ : ndarray of shape (n_features,)
        Weights of the features as they are.
    intercept_ : float
        Intercept.
"""
_ATTRIBUTES = """\
    n_iter_ : int
        Steps or iterations done.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X had names.
"""


def documented(cls: Class) -> Class:
    """The class, with ``{shared}`` in its docstring replaced by what all baselines share."""
    text = cls.__doc__ or ""
    own = inspect.signature(cls).parameters
    parameters = "".join(
        entry for name, entry in _SHARED.items() if name in own and f"    {name} : " not in text
    )
    attributes = _CLASSIFIER if hasattr(cls, "predict_proba") else _REGRESSOR
    cls.__doc__ = text.replace("    {parameters}\n", parameters).replace(
        "    {attributes}\n", attributes + _ATTRIBUTES
    )
    return cls
