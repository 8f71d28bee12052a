"""ISRRegressor: linear regression on what stays the same between environments."""

from dataclasses import KW_ONLY, replace
from typing import Any, ClassVar

from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin

from isrlearn.estimators.linear import Streaming, scores, with_parameters
from isrlearn.estimators.pipeline import Settings


@with_parameters
class ISRRegressor(Streaming, RegressorMixin, BaseEstimator):
    """Linear regression that ignores what shifts between environments, where that helps.

    Finds the directions along which the mean of the features shifts between environments
    (ISR-Regression), removes them, and fits a linear head on the rest. Means only: under the
    regression model covariances shift along invariant directions too. By default a removal must
    prove itself on environments that were held out; in doubt nothing is removed.

    Parameters
    ----------
    n_spurious
        As in `ISRClassifier`.
    compare : {"auto", "means", "given-target"}, default="auto"
        "means" compares the means of the features, as published: if the target differs between
        environments, what predicts it is removed too. "given-target" compares means given the
        target (the adjusted means of an analysis of covariance). "auto" takes the one with the
        lower error in environments held out in turn, if it is better than no removal by more than
        one standard error, and else removes nothing; with two environments, none can be held
        out. "auto" is "means" if there is nothing to decide: if `n_spurious` is a number, in
        the published variants, and for a head given as a pair.
    level, scale, n_components
        As in `ISRClassifier`.
    variant : {"pooled", "paper", "authors"}, default="pooled"
        Our pooled form, or the published algorithm, with a penalty on features as they are
        ("authors": see `mean_subspace`).
    head : "ridge", linear estimator or (coef, intercept), default="ridge"
        What is fitted on the rest; "ridge" needs no second pass over the data. A pair adapts the
        last layer of a trained model.
    alpha : float, default=1.0
        Penalty of the "ridge" head, on whitened (or, with few rows per feature, standardised)
        features; in the published variants, on features as they are.
    weights : "group" or None, default=None
        "group" gives every environment the same total weight for the head.
    missing_environments
        As in `ISRClassifier`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Head in the original features, with the removal folded in.
    intercept_ : float
        Intercept of the head.
    compared_ : {"means", "given-target", "nothing"}
        What was compared to find the directions removed; "nothing" if none was.
    held_out_ : dict or None
        If held-out environments decided: from "nothing", "means" and "given-target", as far as
        they were tried, to the root mean squared error in each environment of a ridge head
        fitted on others.
    moments_ : Moments
        Moments of the features and, as last column, the target.
    environments_, spurious_basis_, n_spurious_, spectrum_, rank_test_, eraser_
        As in `ISRClassifier`.
    n_features_in_, feature_names_in_
        As in `ISRClassifier`.

    Examples
    --------
    >>> from isrlearn import ISRRegressor
    >>> from isrlearn.datasets import make_gaussian_environments
    >>> data = make_gaussian_environments(
    ...     500, 4, n_invariant=3, n_spurious=2, task="regression", random_state=0
    ... )
    >>> reg = ISRRegressor().fit(data.X, data.y, environments=data.environments)
    >>> reg.n_spurious_, reg.compared_, reg.coef_.shape
    (2, 'given-target', (5,))
    """

    n_spurious: int | str = "auto"
    _: KW_ONLY
    compare: str = "auto"
    level: float = 0.01
    scale: float = 0.0
    n_components: int | float | str | None = "auto"
    variant: str = "pooled"
    head: Any = "ridge"
    alpha: float = 1.0
    weights: str | None = None
    missing_environments: str = "raise"

    _target: ClassVar = "numbers"
    _choices: ClassVar = {"weights": (None, "group"), "compare": ("auto", "means", "given-target")}

    def predict(self, X: Any, environments: Any = None) -> NDArray:
        """``X @ coef_ + intercept_``. Environments are not needed.

        If they are given, a row of an environment that was seen in the fit gets the intercept of
        that environment; None and new environments do not.
        """
        return scores(self, X, environments)[:, 0]

    def _settings(self) -> Settings:
        """The parameters, checked."""
        settings = replace(super()._settings(), method="regression")
        if self.compare == "given-target" and self.n_spurious == "permutation":
            raise ValueError(
                "n_spurious='permutation' compares means; with compare='given-target' give a "
                "number or 'auto'"
            )
        # An explicit number is removed; and a trained head may have seen every environment.
        decided = not isinstance(self.n_spurious, str) or isinstance(self.head, tuple)
        decided = decided or self.variant != "pooled" or self.scale == 1
        auto = self.compare == "auto" and decided
        return replace(settings, compare="means") if auto else settings
