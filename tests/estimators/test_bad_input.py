"""Every mistake has one clear error: what was wrong, what is allowed, what to do."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from isrlearn import ISRClassifier, ISRClassifierCV, ISRRegressor, ISRTransformer
from isrlearn.core import covariance_subspace, joint_subspace
from isrlearn.engine import ArrayRows, cell_moments


@pytest.fixture(params=[ISRClassifier, ISRRegressor, ISRTransformer])
def estimator(request):
    return request.param


def refused(message, estimator, data, fit=None, **parameters):
    X, y, e = data
    keywords = {"environments": e} | (fit or {})
    with pytest.raises(ValueError, match=message):
        estimator(**parameters).fit(X, y, **keywords)


# Rows


def test_paths_are_not_rows(binary, estimator, tmp_path):
    X, y, e = binary
    path = tmp_path / "features.npy"
    np.save(path, X)
    message = r"X must be an array or rows, not a path; got .*features.npy.*read_table\(path"
    fitted = estimator().fit(X, y, e)
    ask = fitted.transform if estimator is ISRTransformer else fitted.predict
    for given in (path, str(path)):
        refused(message, estimator, (given, y, e))
        with pytest.raises(ValueError, match=message):
            ask(given)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_features_that_are_not_finite(binary, estimator, value):
    X = np.array(binary[0])
    X[5, 2] = value
    refused(r"contains (NaN|infinity)", estimator, (X, *binary[1:]))


def test_features_that_are_not_finite_at_prediction(binary):
    X, y, e = binary
    bad = np.array(X)
    bad[0, 0] = np.nan
    for fitted, method in [
        (ISRClassifier(), "predict"),
        (ISRRegressor(), "predict"),
        (ISRTransformer(), "transform"),
    ]:
        fitted.fit(X, y, environments=e)
        with pytest.raises(ValueError, match="contains NaN"):
            getattr(fitted, method)(bad)
        with pytest.raises(ValueError, match=r"X has 4 features, but .* is expecting 5"):
            getattr(fitted, method)(bad[:, 1:])


def test_targets_that_are_not_finite(continuous, ternary):
    X, y, e = continuous
    y = y.copy()
    y[3] = np.nan
    refused("contains NaN", ISRRegressor, (X, y, e))


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
@pytest.mark.parametrize("kind", [list, pd.Series, np.array])
def test_classes_that_are_missing(ternary, missing, kind):
    X, y, e = ternary
    y = y.astype(object)
    y[[3, 8]] = missing
    y = kind(y.tolist(), dtype=object) if kind is np.array else kind(y.tolist())
    message = r"class of row 3 is missing \(2 in all\); only environments may be unknown"
    for estimator in (ISRClassifier, ISRTransformer):
        refused(message, estimator, (X, y, e))


def test_classes_of_mixed_types(ternary):
    X, y, e = ternary
    y = y.astype(object)
    y[y == "bee"] = 7
    message = "mix types that cannot be sorted: int, str; convert them to one type"
    for estimator in (ISRClassifier, ISRTransformer):
        refused(message, estimator, (X, y, e))


def test_continuous_targets_are_not_classes(continuous):
    for estimator in (ISRClassifier, ISRTransformer):
        refused("Unknown label type: continuous", estimator, continuous)


def test_one_class(binary):
    X, y, e = binary
    refused("y has only one class, 0; a classifier needs two", ISRClassifier, (X, 0 * y, e))


def test_rows_of_different_number(binary, estimator):
    X, y, e = binary
    refused("inconsistent numbers of samples", estimator, (X, y[:-1], e))


# Environments


def test_environments_forgotten(binary, estimator):
    message = r"environments are needed: fit\(X, y, environments=e\).*metadata routing"
    refused(message, estimator, binary, {"environments": None})
    refused("missing_environments='single'", estimator, binary, {"environments": None})
    with pytest.raises(ValueError, match="environments are needed"):
        estimator().fit(binary[0], binary[1])


def test_environments_forgotten_in_a_part(binary):
    X, y, _ = binary
    for estimator in (ISRClassifier(head="lda"), ISRRegressor()):
        with pytest.raises(ValueError, match="environments are needed"):
            estimator.partial_fit(X, y)


def test_sample_weights_are_a_keyword(binary, estimator):
    with pytest.raises(TypeError, match="positional argument"):
        estimator().fit(*binary, np.ones(len(binary[1])))


@pytest.mark.parametrize(
    "e", [["a", "b"], [["a"] * 720], "north"], ids=["short", "row", "one name"]
)
def test_environments_of_the_wrong_shape(binary, estimator, e):
    X, y, _ = binary
    message = rf"environments has shape .*, but X has {len(X)} rows: give one label per row"
    refused(message, estimator, (X, y, e))


def test_one_environment(binary, estimator):
    X, y, e = binary
    one = np.full(len(y), "north")
    message = "have 1 known environment.*, 'north'; ISR .* needs at least two"
    refused(message, estimator, (X, y, one))
    partly = e.astype(object)
    partly[e != "south"] = None
    refused("have 1 known environment.*, 'south'", estimator, (X, y, partly))


def test_no_environment_known(binary, estimator):
    X, y, _ = binary
    nothing = np.full(len(y), None)
    refused("the rows have 0 known environment", estimator, (X, y, nothing))


def test_environments_of_mixed_types(binary, estimator):
    X, y, e = binary
    mixed = e.astype(object)
    mixed[0] = 7
    message = "mix types that cannot be sorted: int, str; convert them to one type"
    refused(message, estimator, (X, y, mixed))


@pytest.mark.parametrize("form", [{}, {"method": "multiclass"}, {"variant": "paper"}], ids=str)
def test_classes_in_one_environment_each(binary, ternary, form):
    X, y, e = binary
    rows = np.where(y == 1, e == "west", e == "north")
    data = X[rows], y[rows], e[rows]
    n = np.sum(y[rows] == 0)
    message = (
        "no class has rows in two environments, so nothing can be compared: class 0 has "
        f"{n} in 'north', 0 in 'west'. Add rows of one class from another environment."
    )
    for estimator in (ISRClassifier, ISRTransformer):
        refused(message, estimator, data, **form)
    refused(message, ISRClassifierCV, data)  # the rows of a fold are fewer
    X, y, e = ternary
    home = {"ant": "north", "bee": "south", "cat": "west"}
    partly = np.where(e == [home[k] for k in y], e, None)
    message = "class 'ant' has .* in 'north', 0 in 'south', 0 in 'west'"
    refused(message, ISRClassifier, (X, y, partly), **form)


def test_advice_for_classes_in_one_environment_each_helps(binary):
    X, y, e = binary
    rows = np.where(y == 1, e == "west", e == "north")
    known = np.where(rows, e, None)
    refused("no class has rows in two environments", ISRClassifier, (X, y, known))
    more = np.where(rows | (np.arange(len(y)) % 10 == 0), e, None)
    ISRClassifier().fit(X, y, environments=more)


@pytest.mark.parametrize(
    ("method", "find"), [("cov", covariance_subspace), ("joint", joint_subspace)]
)
def test_covariances_need_two_rows_per_cell(binary, method, find):
    X, y, e = binary
    cells = [np.flatnonzero((y == k) & (e == name)) for k in (0, 1) for name in np.unique(e)]
    single = np.array([rows[0] for rows in cells])
    message = "no class has .*two environments, so nothing can be compared: class 0 has 1 in 'east'"
    for estimator in (ISRClassifier, ISRTransformer):
        data = X[single], y[single], e[single]
        refused(message, estimator, data, method=method, n_spurious=1)
        refused(message, estimator, data, method=method, n_spurious="permutation")
    # A single cell of one row is no obstacle: its covariance is not compared.
    cell = np.flatnonzero((y == 1) & (e == "west"))
    rows = np.setdiff1d(np.arange(len(y)), cell[1:])
    expected = find(cell_moments(X[rows], y[rows], e[rows]), 1)
    for estimator in (ISRClassifier, ISRTransformer):
        fitted = estimator(method, n_spurious=1).fit(X[rows], y[rows], e[rows])
        np.testing.assert_allclose(fitted.spurious_basis_, expected.basis, atol=1e-9)


def test_a_class_that_weighs_nothing(binary):
    _, y, e = binary
    weight = {"environments": e, "sample_weight": (y == 0).astype(float)}
    refused("all rows of class 1 have a sample weight of zero", ISRClassifier, binary, weight)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0, 2.0], r"sample_weight.shape == \(2,\), expected \(720,\)"),
        (-1.0, "Negative values in data passed to `sample_weight`"),
        (np.r_[np.ones(719), np.nan], "Input sample_weight contains NaN"),
        (np.zeros(720), "[Ss]ample weights .*zero"),
    ],
    ids=["short", "negative", "nan", "zero"],
)
def test_sample_weights(binary, estimator, weight, message):
    fit = {"environments": binary[2], "sample_weight": weight}
    refused(message, estimator, binary, fit)


# Parameters


@pytest.mark.parametrize("value", [-0.1, 1.5, np.nan, "all", None, True])
def test_scale(binary, estimator, value):
    refused(r"scale must be a number in \[0, 1\]; got", estimator, binary, scale=value)


@pytest.mark.parametrize("value", [0.0, 1.0, -0.1, np.nan, "1%", None, True])
def test_level(binary, estimator, value):
    refused(r"level must be a number in \(0, 1\); got", estimator, binary, level=value)


@pytest.mark.parametrize("value", [-1, 1.5, "best", None, True, 2.0])
def test_n_spurious_is_a_count(binary, estimator, value):
    message = "n_spurious must be 'auto', 'permutation' or an int of at least 0; got"
    refused(message, estimator, binary, n_spurious=value)
    single = {"n_spurious": value, "missing_environments": "single"}
    refused(message, estimator, binary, {"environments": None}, **single)


@pytest.mark.parametrize(
    ("parameters", "bound", "why"),
    [
        ({"variant": "paper"}, 3, "the means of 4 environments span no more"),
        ({}, 4, "at least one of the 5 dimensions must stay"),
        ({"method": "cov"}, 4, "at least one of the 5 dimensions must stay"),
        ({"method": "joint"}, 4, "at least one of the 5 dimensions must stay"),
        ({"n_components": 3}, 2, "at least one of the 3 dimensions must stay"),
    ],
    ids=str,
)
def test_n_spurious_beyond_the_bound(binary, parameters, bound, why):
    message = f"n_spurious={bound + 1} is more than the {bound} possible here: {why}"
    for estimator in (ISRClassifier, ISRTransformer):
        refused(message, estimator, binary, n_spurious=bound + 1, **parameters)
        X, y, e = binary
        estimator(n_spurious=bound, **parameters).fit(X, y, environments=e)  # the bound itself


def test_n_spurious_bound_of_several_classes(binary):
    X, y, e = binary
    rows = np.isin(e, ["north", "south"])
    data = X[rows], y[rows], e[rows]
    message = "n_spurious=3 is more than the 2 possible here: the means of 2 environments in 2"
    refused(message, ISRClassifier, data, n_spurious=3)


def test_n_spurious_bound_of_the_class_that_is_compared(binary):
    X, y, e = binary
    data = X, y, np.where(y == 1, e, None)
    message = "n_spurious=4 is more than the 3 possible here: the means of 4 environments"
    for estimator in (ISRClassifier, ISRTransformer):
        refused(message, estimator, data, n_spurious=4)
        estimator(n_spurious=3).fit(X, y, data[2])  # the bound itself


def test_n_spurious_bound_of_regression(continuous):
    message = "n_spurious=4 is more than the 3 possible here: the means of 4 environments"
    refused(message, ISRRegressor, continuous, n_spurious=4)


def test_n_spurious_that_no_part_can_make_possible(binary):
    X, y, e = binary
    with pytest.raises(ValueError, match="n_spurious=5 is more than the 4 possible"):
        ISRClassifier(head="lda", n_spurious=5).partial_fit(X, y, environments=e)


@pytest.mark.parametrize("value", [0, 6, -1, 0.0, 1.0, 1.5, "mle", True, np.nan])
def test_n_components(binary, estimator, value):
    allowed = r"an int (in \[1, 5\]|of at least 1), or a fraction of variance in \(0, 1\)"
    message = f"n_components must be 'auto', None, {allowed}; got"
    refused(message, estimator, binary, n_components=value)


def test_n_components_with_moments_computed_elsewhere(binary):
    moments = cell_moments(*binary)
    for estimator in (ISRClassifier(head="lda", n_components=9), ISRTransformer(n_components=9)):
        with pytest.raises(
            ValueError, match=r"n_components must be 'auto', None, an int in \[1, 5\]"
        ):
            estimator.fit_moments(moments)


@pytest.mark.parametrize(
    ("name", "value", "choices"),
    [
        ("method", "median", "'mean', 'cov', 'multiclass'"),
        ("method", None, "'mean', 'cov', 'multiclass'"),
        ("variant", "published", "'pooled', 'paper'"),
        ("missing_environments", "drop", "'raise', 'single'"),
    ],
)
def test_choices(binary, estimator, name, value, choices):
    if name == "method" and estimator is ISRRegressor:
        with pytest.raises(TypeError, match="unexpected keyword argument 'method'"):
            estimator(method=value)
        return
    refused(f"{name} must be one of {choices}.*; got {value!r}", estimator, binary, **{name: value})


def test_regression_is_not_a_classification_method(binary):
    message = "method must be one of 'mean'.*; got 'regression'"
    refused(message, ISRClassifier, binary, method="regression")


def test_joint_is_not_in_the_paper(binary):
    for estimator in (ISRClassifier, ISRTransformer):
        refused(
            "the variant 'pooled' only; got 'paper'",
            estimator,
            binary,
            method="joint",
            variant="paper",
        )


def test_output_and_scale(binary):
    message = "output must be one of 'same', 'invariant'; got 'both'"
    refused(message, ISRTransformer, binary, output="both")
    message = "output='invariant' keeps nothing of the spurious part: scale must be 0, got 0.5"
    refused(message, ISRTransformer, binary, output="invariant", scale=0.5)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("C", 0.0, "C must be 'auto' or a number greater than 0; got 0.0"),
        ("C", -1.0, "C must be 'auto' or a number greater than 0; got -1.0"),
        ("C", np.nan, "C must be 'auto' or a number greater than 0; got nan"),
        ("C", "large", "C must be 'auto' or a number greater than 0; got 'large'"),
        ("weights", "equal", "weights must be one of 'auto', 'class', 'group', .*; got 'equal'"),
        ("weights", 3, "weights must be one of 'auto', .*, None; got 3"),
        ("head", "svm", "head must be one of 'logistic', 'lda', a linear .*; got 'svm'"),
        ("head", "ridge", "head must be one of 'logistic', 'lda', a linear .*; got 'ridge'"),
        ("head", None, "head must be one of 'logistic', 'lda', a linear scikit-learn estimator"),
        ("head", [np.ones((1, 5)), [0.0]], r"head must be .* or \(coef, intercept\); got \[array"),
    ],
)
def test_head_parameters(binary, name, value, message):
    refused(message, ISRClassifier, binary, **{name: value})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("alpha", -1.0, "alpha must be a number of at least 0; got -1.0"),
        ("head", "lasso", "head must be one of 'ridge', a linear .*; got 'lasso'"),
        ("head", 3, "head must be one of 'ridge', a linear scikit-learn estimator or .*; got 3"),
        ("weights", "equal", "weights must be one of None, 'group'; got 'equal'"),
        ("weights", "class", "weights must be one of None, 'group'; got 'class'"),
        ("weights", {0: 1}, "weights must be one of None, 'group'; got {0: 1}"),
    ],
)
def test_head_parameters_of_regression(continuous, name, value, message):
    refused(message, ISRRegressor, continuous, **{name: value})


def test_class_weights_of_unknown_classes(binary):
    message = r"weights has a class 7 that y does not have; the classes are \[0, 1\]"
    refused(message, ISRClassifier, binary, weights={7: 2.0})


@pytest.mark.parametrize("weight", [0.0, -1.0, np.nan, np.inf, "much"])
def test_class_weights_are_positive_numbers(binary, weight):
    message = "weights of classes must be positive and finite; got {0: 1.0, 1: "
    for head in ("logistic", "lda"):
        refused(message, ISRClassifier, binary, weights={0: 1.0, 1: weight}, head=head)


def test_parameters_may_be_numbers_of_numpy(binary):
    X, y, e = binary
    given = {"C": 0.5, "level": 0.125, "scale": 0.5, "n_spurious": 1}
    expected = ISRClassifier(**given).fit(X, y, environments=e)
    given |= {name: np.float32(given[name]) for name in ("C", "level", "scale")}
    found = ISRClassifier(**(given | {"n_spurious": np.uint8(1)})).fit(X, y, environments=e)
    np.testing.assert_array_equal(found.coef_, expected.coef_)


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ((np.ones((1, 4)), [0.0]), r"coef has shape \(1, 4\); expected 1 or 2 row\(s\) of 5 feat"),
        ((np.ones((3, 5)), np.zeros(3)), r"coef has shape \(3, 5\); expected 1 or 2 row\(s\)"),
        ((np.ones((5, 1)), [0.0]), r"coef has shape \(5, 1\); expected"),
        ((np.ones((1, 1, 5)), [0.0]), r"coef has shape \(1, 1, 5\); expected"),
        ((np.ones((1, 5)), [0.0, 0.0]), r"intercept has shape \(2,\); expected \(1,\)"),
        ((np.ones((2, 5)), [0.0]), r"intercept has shape \(1,\); expected \(2,\)"),
        ((np.full((1, 5), np.nan), [0.0]), "coef and intercept must be finite"),
        ((np.ones((1, 5)), [np.inf]), "coef and intercept must be finite"),
        ((np.ones((1, 5)),), r"head must be a pair \(coef, intercept\)"),
        ((np.ones((1, 5)), [0.0], 1), r"head must be a pair \(coef, intercept\)"),
    ],
)
def test_pairs_of_the_wrong_shape(binary, head, message):
    refused(message, ISRClassifier, binary, head=head, n_spurious=1)


def test_pairs_of_the_wrong_shape_for_more_classes_or_regression(ternary, continuous):
    head = (np.ones((2, 5)), np.zeros(2))
    message = r"coef has shape \(2, 5\); expected {} row\(s\) of 5 features"
    refused(message.format(3), ISRClassifier, ternary, head=head, n_spurious=1)
    refused(message.format(1), ISRRegressor, continuous, head=head, n_spurious=1)


@pytest.mark.parametrize("rows", [np.asanyarray, ArrayRows], ids=["array", "rows"])
def test_masked_numbers_are_missing(binary, rows):
    X, y, e = binary
    hidden = np.arange(len(X)) == 3
    masked = np.ma.masked_array(X, np.zeros(X.shape, bool))
    expected = ISRClassifier().fit(X, y, environments=e)
    found = ISRClassifier().fit(rows(masked), np.ma.masked_array(y), environments=e)
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    assert found.classes_.dtype == expected.classes_.dtype
    masked[3, 1] = np.ma.masked
    for part, target in ((masked, y), (X, np.ma.masked_array(y, hidden))):
        with pytest.raises(ValueError, match=r"NaN|missing"):
            ISRClassifier().fit(rows(part), target, environments=e)
    with pytest.raises(ValueError, match="NaN"):
        ISRRegressor().fit(rows(X), np.ma.masked_array(X[:, 0], hidden), environments=e)
    with pytest.raises(ValueError, match="NaN"):
        expected.predict(rows(masked))
    weight = np.ma.masked_array(np.ones(len(X)), hidden)
    with pytest.raises(ValueError, match="NaN"):
        ISRClassifier().fit(rows(X), y, environments=e, sample_weight=weight)
    with pytest.raises(ValueError, match="NaN"):
        cell_moments(rows(masked), y, e)


# Moments computed elsewhere, and the permutation test


def test_moments_that_keep_too_little(binary):
    means = cell_moments(*binary, order=1)
    pooled = cell_moments(*binary, pooled=True)
    with pytest.raises(ValueError, match="keep means only; compute them with order=2"):
        ISRClassifier(head="lda").fit_moments(means)
    with pytest.raises(ValueError, match=r"keep no scatter per cell; .* pooled=False"):
        ISRTransformer("cov").fit_moments(pooled)
    with pytest.raises(ValueError, match="only with a scatter per cell"):
        ISRClassifier(head="lda", weights="group").fit_moments(pooled)
    ISRTransformer(n_spurious=2).fit_moments(means)  # enough for means


def test_moments_of_the_wrong_kind(binary, continuous):
    X, y, e = binary
    one_class = cell_moments(X, None, e)
    with pytest.raises(ValueError, match="y has only one class"):
        ISRClassifier(head="lda").fit_moments(one_class)
    with pytest.raises(ValueError, match="the moments have 2; compute them with y=None"):
        ISRTransformer("regression").fit_moments(cell_moments(X, y, e))


def test_permutations_need_rows(binary):
    X, y, e = binary
    message = "n_spurious='permutation' needs rows"
    for form in ({"head": "lda"}, {"head": "lda", "variant": "paper"}):
        clf = ISRClassifier(n_spurious="permutation", **form)
        with pytest.raises(ValueError, match=message):
            clf.fit_moments(cell_moments(X, y, e))
        with pytest.raises(ValueError, match=message):
            clf.partial_fit(X, y, environments=e)
    for variant in ("pooled", "paper"):
        clf = ISRClassifier(n_spurious="permutation", variant=variant)
        with pytest.raises(ValueError, match=message):
            clf.fit(ArrayRows(X), y, e)


def test_an_estimator_that_is_not_linear_is_named(binary):
    X, y, e = binary

    class Clusters(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            self.classes_ = np.unique(y)
            return self

    with pytest.raises(ValueError, match="head Clusters has no coef_ and intercept_"):
        ISRClassifier(head=Clusters()).fit(X, y, environments=e)


@pytest.mark.parametrize("variant", ["pooled", "paper"])
def test_a_head_for_the_other_task_is_refused(binary, variant):
    X, y, e = binary
    options = {"n_spurious": 1, "variant": variant}
    with pytest.raises(ValueError, match="head Ridge must be a classifier"):
        ISRClassifier(head=Ridge(), **options).fit(X, y, environments=e)
    with pytest.raises(ValueError, match="head LogisticRegression must be a regressor"):
        ISRRegressor(head=LogisticRegression(), **options).fit(X, y, environments=e)
