"""ISRClassifier: a linear classifier on what stays the same between environments."""

from dataclasses import KW_ONLY
from typing import Any, ClassVar

from sklearn.base import BaseEstimator, ClassifierMixin

from isrlearn.estimators.linear import LinearScores, Streaming, with_parameters


@with_parameters
class ISRClassifier(Streaming, LinearScores, ClassifierMixin, BaseEstimator):
    """Linear classifier that ignores what shifts between environments.

    Finds the directions along which the features of a class shift between environments, removes
    them, and fits a linear head on the rest. Everything folds into one affine map of the original
    features: ``X @ coef_.T + intercept_`` is the decision function.

    Each class contributes the environments in which it was seen: cells (a class in an environment)
    may be missing. To compare only some of the classes, leave the environment of the other
    classes' rows unknown (None or NaN).

    Parameters
    ----------
    method : {"mean", "cov", "multiclass", "joint"}, default="mean"
        What is compared between environments: the means of a class (ISR-Mean), its covariances
        (ISR-Cov), the means of all classes (ISR-Multiclass), or means and covariances together
        (ours, "joint"). In the pooled variant "mean" and "multiclass" both compare all classes;
        of the dimensions that a test finds, "mean" removes at most E−1, which is what shifts of E
        environments can span that classes share, and "multiclass" removes all.
    n_spurious : int, "auto" or "permutation", default="auto"
        Number of spurious dimensions. "auto" tests for it; "permutation" compares the same
        statistic with its values after the environments were permuted inside each class, which
        assumes no distribution and takes much longer. What was found is removed unless that
        lowers the accuracy by more than five points in all of nine environments or more, each
        left out in turn (`held_out_`; of 19, in 18); a number is removed in any case.
    level : float, default=0.01
        Level of each step of the rank test.
    scale : float, default=0.0
        Share of the spurious part that is kept, from 0 (nothing) to 1 (all): the head lies that
        far from the one fitted without the spurious part to the one fitted with it. In the
        published variants the features are scaled before the head is fitted.
    n_components : int, float, "auto" or None, default="auto"
        Reduce to that many principal components first, or to as many as hold that fraction of the
        variance. "auto": all features if there are twenty rows per feature, else one component
        per twenty rows, at most 200 (and all features below 50), and all features in the
        published variants. None: always all features. Means are compared among at most one
        component per ten rows, or five if that is more.
    variant : {"pooled", "paper", "authors"}, default="pooled"
        Our pooled forms, or the published procedure, with scikit-learn's logistic regression on
        features as they are. The published "mean" compares the last class that was seen in two
        environments. "authors" is "paper" but for two steps in which the authors' code differs
        (`mean_subspace`, `multiclass_subspace`).
    head : {"logistic", "lda"}, linear estimator or (coef, intercept), default="logistic"
        What is fitted on the rest. A pair adapts the last layer of a trained network: nothing is
        fitted, the removal is folded into it; its rows follow the sorted classes.
    C : float or "auto", default="auto"
        Inverse L2 penalty of the head, on whitened (or, with few rows per feature, standardised)
        features; in the published variants, on features as they are. "auto" is 0.1 for our
        logistic head (1 with more than two classes), else 1.
    weights : {"auto", "within", "class", "group", "subsample"}, dict or None, default="auto"
        How the head treats classes and environments. "within" compares classes inside
        environments: each environment has intercepts of its own while the coefficients are
        fitted, so that they cannot use what distinguishes environments; the intercept is then
        fitted with the same total weight for every class. Unknown environments are drawn from
        their probabilities given features and class (a few of them, up to 1 % of the rows, and
        those on Dask or of more than 1 GB of rows, form one more environment). Where two classes
        have no environment with five rows of each, it is "group". "class" gives every class
        the same total weight, "group" every class in every environment (the paper's reweighting;
        classes still have the same total weight where cells are missing or environments
        unknown), a dict gives each class its weight.
        "subsample" averages ten heads, each fitted on as many rows of every group as the
        smallest group has. "auto" is "within" for the logistic head ("class" where a removal
        turned out to be harmful), "group" for others; in the published variants, or with a head
        that takes no weights, it is None.
    missing_environments : {"raise", "single"}, default="raise"
        What to do when `fit` gets no environments: raise an error, or treat all rows as one
        environment and remove nothing.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Head in the original features, with the removal folded in.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts of the head.
    classes_ : ndarray of shape (n_classes,)
        Names of the classes, sorted.
    environments_ : ndarray
        Names of the environments seen.
    spurious_basis_ : ndarray of shape (n_features, n_spurious)
        Orthonormal basis of the spurious subspace.
    n_spurious_ : int
        Number of dimensions that are removed.
    spectrum_ : ndarray
        Strength of the directions, strongest first.
    rank_test_ : RankTest or None
        How `n_spurious_` was decided, unless it was given; its `rank` is the number of dimensions
        that shift, removed or not.
    held_out_ : dict or None
        Accuracy in each environment of classifiers fitted on the others, with "nothing" removed
        and with the "removal", from moments: classes weigh alike, and features are taken for
        Gaussian inside each class and environment. None with fewer than nine environments, 512
        features or more (after `n_components`), or nothing to check.
    eraser_ : Eraser
        The removal.
    moments_ : Moments
        Moments of the training rows.
    n_features_in_, feature_names_in_ : int and ndarray of str
        Number of features; their names, if X was a data frame.

    Examples
    --------
    >>> from isrlearn import ISRClassifier
    >>> from isrlearn.datasets import make_gaussian_environments
    >>> data = make_gaussian_environments(500, 4, n_invariant=3, n_spurious=2, random_state=0)
    >>> clf = ISRClassifier().fit(data.X, data.y, data.environments)
    >>> clf.n_spurious_, clf.coef_.shape
    (2, (1, 5))
    """

    method: str = "mean"
    _: KW_ONLY
    n_spurious: int | str = "auto"
    level: float = 0.01
    scale: float = 0.0
    n_components: int | float | str | None = "auto"
    variant: str = "pooled"
    head: Any = "logistic"
    C: float | str = "auto"
    weights: Any = "auto"
    missing_environments: str = "raise"

    _target: ClassVar = "classes"
    _choices: ClassVar = {"weights": ("auto", "class", "group", "within", "subsample", None)}
