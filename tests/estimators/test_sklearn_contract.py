"""What scikit-learn expects of its estimators: every common check, no expected failures."""

from __future__ import annotations

from sklearn.utils.estimator_checks import parametrize_with_checks

from isrlearn import ISRClassifier, ISRRegressor, ISRTransformer


@parametrize_with_checks(
    [
        ISRClassifier(missing_environments="single"),
        ISRClassifier(head="lda", missing_environments="single"),
        ISRRegressor(missing_environments="single"),
        ISRTransformer(missing_environments="single"),
        ISRTransformer(method="regression", missing_environments="single"),
    ]
)
def test_common_checks(estimator, check):
    before = dict(vars(estimator))
    check(estimator)
    # A check fits copies: what it was given is neither fitted nor set.
    assert vars(estimator) == before
