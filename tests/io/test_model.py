"""The model file: bitwise round trips, and its content."""

from __future__ import annotations

import json
import stat

import numpy as np
import pandas as pd
import pytest
import safetensors
import safetensors.numpy
import skops.io
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import isrlearn
from isrlearn import ISRClassifier, ISRClassifierCV, ISRRegressor, ISRTransformer
from isrlearn.datasets import make_gaussian_environments
from isrlearn.estimators import DFRClassifier
from isrlearn.io import TRUSTED_TYPES, ModelFileError, read_model

METHODS = ("decision_function", "predict_proba", "predict", "transform")


def sample(n_classes=2, task="classification", seed=0):
    return make_gaussian_environments(
        300,
        4,
        n_invariant=3,
        n_spurious=2,
        n_classes=n_classes,
        task=task,
        random_state=seed,
    )


HEADS = [
    "logistic",
    "lda",
    LogisticRegression(C=0.5, class_weight={0: 2.0}),
    RidgeClassifier(),
    LinearSVC(C=np.float64(0.1)),
    SGDClassifier(random_state=0, penalty=None),
]
ESTIMATORS = [
    *(ISRClassifier(head=head) for head in HEADS),
    ISRClassifier("cov", n_components=4, scale=0.25, weights="class"),
    ISRClassifier("joint", n_spurious=np.int64(1), weights="group"),
    ISRClassifier(head="lda", variant="paper", C=np.inf, weights={0: 1, 1: 3}),
    ISRClassifier(missing_environments="single", n_spurious=0),
    ISRTransformer(scale=0.5),
    ISRTransformer("regression", output="invariant"),
    ISRTransformer(n_spurious=0),
]
REGRESSORS = [ISRRegressor(), ISRRegressor(head=Ridge(alpha=3.0)), ISRRegressor(1, scale=0.5)]


def assert_same(a, b, X):
    """Every output is equal, bit by bit, in float64 and float32."""
    compared = 0
    for name in METHODS:
        assert hasattr(a, name) == hasattr(b, name)
        if hasattr(a, name):
            for dtype in (np.float64, np.float32):
                one, other = getattr(a, name)(X.astype(dtype)), getattr(b, name)(X.astype(dtype))
                assert one.dtype == other.dtype
                assert one.tobytes() == other.tobytes()
                compared += 1
    assert compared >= 2


def assert_same_knowledge(a, b):
    """All other attributes of a fitted estimator, except the scatter."""
    for name, value in a.get_params().items():
        if not isinstance(value, BaseEstimator | tuple):
            assert b.get_params()[name] == value
    assert a.n_spurious_ == b.n_spurious_
    assert a.n_features_in_ == b.n_features_in_
    for name in ("spurious_basis_", "spectrum_", "environments_", "classes_", "coef_"):
        if hasattr(a, name):
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
            assert getattr(a, name).dtype == getattr(b, name).dtype
    np.testing.assert_array_equal(a.moments_.mean, b.moments_.mean)
    np.testing.assert_array_equal(a.moments_.by_class[0], b.moments_.by_class[0])
    assert a.eraser_.scale == b.eraser_.scale
    assert (a.rank_test_ is None) == (b.rank_test_ is None)
    if a.rank_test_ is not None:
        assert a.rank_test_.p_values == b.rank_test_.p_values
        assert a.rank_test_.limited == b.rank_test_.limited


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.isr"


@pytest.mark.parametrize("estimator", [*ESTIMATORS, *REGRESSORS], ids=str)
def test_round_trip_is_bitwise(estimator, path):
    data = sample(task="regression" if isinstance(estimator, ISRRegressor) else "classification")
    estimator.fit(data.X, data.y, environments=data.environments)
    isrlearn.save(estimator, path)
    loaded = isrlearn.load(path)
    assert_same(estimator, loaded, data.X)
    assert_same_knowledge(estimator, loaded)
    # A loaded model can be saved and fitted again.
    isrlearn.save(loaded, path)
    assert_same(estimator, isrlearn.load(path), data.X)
    again = loaded.fit(data.X, data.y, environments=data.environments)
    assert_same(estimator, again, data.X)


@pytest.mark.parametrize("method", ["mean", "multiclass", "cov"])
def test_several_classes(path, method):
    data = sample(n_classes=5)
    for head in ("logistic", "lda", RidgeClassifier()):
        estimator = ISRClassifier(method, head=head, n_components=4)
        estimator.fit(data.X, data.y, environments=data.environments)
        isrlearn.save(estimator, path)
        assert_same(estimator, isrlearn.load(path), data.X)


def test_a_given_head(path):
    data = sample()
    head = (np.ones((1, 5), dtype=np.float32), np.array([0.5]))
    estimator = ISRClassifier(head=head).fit(data.X, data.y, environments=data.environments)
    isrlearn.save(estimator, path)
    loaded = isrlearn.load(path)
    assert_same(estimator, loaded, data.X)
    np.testing.assert_array_equal(loaded.head[0], head[0])


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_layout_of_arrays_is_kept(path, order):
    data = sample(n_classes=5)
    estimator = ISRClassifier().fit(data.X, data.y, environments=data.environments)
    estimator.coef_ = np.array(estimator.coef_, order=order)
    isrlearn.save(estimator, path)
    assert isrlearn.load(path).coef_.flags[f"{order}_CONTIGUOUS"]


LABELS = {
    "int": np.array([3, 7]),
    "int8": np.array([3, 7], dtype=np.int8),
    "bool": np.array([False, True]),
    "float": np.array([0.5, 1.5]),
    "str": np.array(["<script>", 'quo"te\n']),
    "unicode": np.array(["größe", "牛"]),
    "object": np.array([1, 2], dtype=object),
}


@pytest.mark.parametrize("classes", LABELS)
@pytest.mark.parametrize("environments", LABELS)
def test_labels_keep_their_type(path, classes, environments):
    rng = np.random.default_rng(0)
    codes = np.arange(40)
    if classes == "float":
        classes = "int"  # scikit-learn treats fractions as targets of a regression
    y, e = LABELS[classes][codes % 2], LABELS[environments][codes // 2 % 2].astype(object)
    e[:3] = None
    X = rng.standard_normal((40, 2))
    y = y.tolist() if classes == "object" else y
    estimator = ISRClassifier(n_spurious=1).fit(X, y, environments=e)
    isrlearn.save(estimator, path)
    loaded = isrlearn.load(path)
    assert_same_knowledge(estimator, loaded)
    assert loaded.environments_.tolist() == LABELS[environments].tolist()
    assert loaded.predict(X).tolist() == estimator.predict(X).tolist()


def test_names_and_metadata(path):
    data = sample()
    frame = pd.DataFrame(data.X, columns=["age", "dose", "größe", "a b", ""])
    estimator = ISRClassifier().fit(frame, data.y, environments=data.environments)
    notes = {"metrics": {"worst": np.float64(0.5), "high": np.inf}, "text": "<b>&\"'"}
    isrlearn.save(estimator, path, metadata=notes)
    model = read_model(path)
    assert model.feature_names == tuple(frame.columns)
    assert model.metadata == {"metrics": {"worst": 0.5, "high": None}, "text": "<b>&\"'"}
    assert model.versions["isrlearn"] == isrlearn.__version__
    np.testing.assert_array_equal(model.estimator.predict(frame), estimator.predict(frame))
    with pytest.raises(ValueError, match="feature names"):
        model.estimator.predict(frame[["dose", "age", "größe", "a b", ""]])
    assert json.loads(json.dumps(model.to_dict())) == model.to_dict()


def test_names_given_by_the_user_do_not_bind_arrays(path):
    data = sample()
    estimator = ISRClassifier().fit(data.X, data.y, environments=data.environments)
    isrlearn.save(estimator, path, feature_names=list("abcde"))
    model = read_model(path)
    assert model.feature_names == ("a", "b", "c", "d", "e")
    assert_same(estimator, model.estimator, data.X)  # no warning about names
    with pytest.raises(ModelFileError, match="5 distinct feature names; got 2"):
        isrlearn.save(estimator, path, feature_names=["a", "b"])


def test_a_pipeline_knows_the_names_of_its_first_step(path):
    data = sample()
    frame = pd.DataFrame(data.X).add_prefix("f")
    scaler = StandardScaler().fit(frame)
    head = ISRClassifier().fit(scaler.transform(frame), data.y, environments=data.environments)
    pipeline = make_pipeline(scaler, head)
    isrlearn.save(pipeline, path)
    loaded = isrlearn.load(path)
    assert_same(pipeline, loaded, frame)  # no warning about names
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame[frame.columns[::-1]])
    scaler.fit(data.X)
    isrlearn.save(pipeline, path, feature_names=list("abcde"))
    assert_same(pipeline, isrlearn.load(path), data.X)


def test_requests_for_metadata_do_not_hinder(path):
    data = sample()
    with config_context(enable_metadata_routing=True):
        estimator = ISRClassifier().set_fit_request(environments=True, sample_weight=True)
    estimator.fit(data.X, data.y, environments=data.environments)
    isrlearn.save(estimator, path)
    assert_same(estimator, isrlearn.load(path), data.X)


def test_a_loaded_model_says_why_it_takes_no_more_rows(path):
    data = sample()
    estimator = ISRClassifier(head="lda").partial_fit(data.X, data.y, data.environments)
    isrlearn.save(estimator, path)
    with pytest.raises(ValueError, match="keep the model as a pickle"):
        isrlearn.load(path).partial_fit(data.X, data.y, data.environments)


def test_one_model_is_one_file_content(path, tmp_path):
    data = sample()
    for name in ("a", "b"):
        estimator = ISRClassifier().fit(data.X, data.y, environments=data.environments)
        isrlearn.save(estimator, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_the_safetensors_library_reads_it_and_can_write_it(path):
    data = sample()
    estimator = ISRClassifier().fit(data.X, data.y, environments=data.environments)
    isrlearn.save(estimator, path)
    arrays = safetensors.numpy.load_file(path)
    np.testing.assert_array_equal(arrays["coef_"], estimator.coef_)
    np.testing.assert_array_equal(arrays["moments_.count"], estimator.moments_.count)
    with safetensors.safe_open(path, framework="numpy") as file:
        metadata = file.metadata()
    assert json.loads(metadata["isrlearn"])["state"]["estimator"] == "ISRClassifier"
    safetensors.numpy.save_file(arrays, path, metadata=metadata)
    assert_same(estimator, isrlearn.load(path), data.X)


class TestWhatCannotBeSaved:
    def test_not_fitted(self, path):
        for estimator in (ISRClassifier(), ISRRegressor(), ISRTransformer()):
            with pytest.raises(ModelFileError, match="not fitted yet"):
                isrlearn.save(estimator, path)
        few = ISRClassifier(head="lda").partial_fit(np.eye(4), [0, 0, 1, 1], environments=[0] * 4)
        with pytest.raises(ModelFileError, match="not fitted yet"):
            isrlearn.save(few, path)

    def test_other_estimators(self, path):
        with pytest.raises(ModelFileError, match="got SGDClassifier"):
            isrlearn.save(SGDClassifier(), path)
        with pytest.raises(ModelFileError, match="StandardScaler is not fitted yet"):
            isrlearn.save(make_pipeline(StandardScaler(), ISRClassifier()), path)

    @pytest.mark.parametrize("with_mean", [True, False])
    @pytest.mark.parametrize("with_std", [True, False])
    def test_every_form_of_a_scaler_comes_back(self, tmp_path, with_mean, with_std):
        rng = np.random.default_rng(0)
        y, e = np.arange(200) % 2, np.arange(200) // 2 % 2
        X = rng.normal(3.0, size=(200, 3)) + np.column_stack([y, 2.0 * e, 0 * e])
        scaler = StandardScaler(with_mean=with_mean, with_std=with_std).fit(X)
        head = ISRClassifier(n_spurious=1).fit(scaler.transform(X), y, environments=e)
        model = make_pipeline(scaler, head)
        isrlearn.save(model, tmp_path / "model.isr")
        again = isrlearn.load(tmp_path / "model.isr")
        np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))

    def test_parameters_that_are_objects(self, path):
        data = sample()
        estimator = ISRClassifier(head=SGDClassifier(random_state=np.random.RandomState(0)))
        estimator.fit(data.X, data.y, environments=data.environments)
        with pytest.raises(ModelFileError, match=r"random_state=.*cannot be stored"):
            isrlearn.save(estimator, path)

    def test_a_head_that_is_not_on_the_list(self, path):
        class Ours(LogisticRegression):
            pass

        data = sample()
        estimator = ISRClassifier(head=Ours()).fit(data.X, data.y, environments=data.environments)
        with pytest.raises(ModelFileError, match=r"head=.*cannot be stored"):
            isrlearn.save(estimator, path)

    def test_labels_that_are_objects(self, path):
        data = sample()
        days = np.datetime64("2020-01-01") + np.asarray(data.environments)
        estimator = ISRClassifier().fit(data.X, data.y, environments=days)
        with pytest.raises(ModelFileError, match=r"environments_? of type 'datetime64"):
            isrlearn.save(estimator, path)

    def test_a_model_that_is_not_finite(self, path):
        data = sample()
        estimator = ISRClassifier().fit(data.X, data.y, environments=data.environments)
        estimator.coef_[0, 0] = np.nan
        with pytest.raises(ModelFileError, match="coef_ is not finite"):
            isrlearn.save(estimator, path)

    def test_nothing_is_left_behind(self, path):
        assert not list(path.parent.iterdir())


@pytest.mark.parametrize("estimator", [*ESTIMATORS, *REGRESSORS], ids=str)
def test_skops_needs_no_more_than_the_trusted_types(estimator):
    data = sample(task="regression" if isinstance(estimator, ISRRegressor) else "classification")
    estimator.fit(data.X, data.y, environments=data.environments)
    content = skops.io.dumps(estimator)
    assert set(skops.io.get_untrusted_types(data=content)) <= set(TRUSTED_TYPES)
    loaded = skops.io.loads(content, trusted=TRUSTED_TYPES)
    assert_same(estimator, loaded, data.X)
    np.testing.assert_array_equal(loaded.moments_.scatter, estimator.moments_.scatter)


def test_searches(path):
    data = sample()
    search = ISRClassifierCV(n_spurious=[0, 1], C=1.0, weights=None, cv=2)
    search.fit(data.X, data.y, environments=data.environments)
    isrlearn.save(search, path)
    assert_same(search.best_estimator_, isrlearn.load(path), data.X)
    content = skops.io.dumps(search)
    assert set(skops.io.get_untrusted_types(data=content)) <= set(TRUSTED_TYPES)
    assert_same(search, skops.io.loads(content, trusted=TRUSTED_TYPES), data.X)


def test_skops_holds_what_a_model_file_does_not(path):
    data = sample()
    estimator = DFRClassifier(n_subsamples=2).fit(data.X, data.y, data.environments)
    with pytest.raises(ModelFileError, match="skops can store"):
        isrlearn.save(estimator, path)
    loaded = skops.io.loads(skops.io.dumps(estimator), trusted=TRUSTED_TYPES)
    np.testing.assert_array_equal(loaded.predict(data.X), estimator.predict(data.X))


def test_permissions_are_those_of_any_new_file(path):
    data = sample()
    estimator = ISRClassifier().fit(data.X, data.y, environments=data.environments)
    other = path.with_name("other")
    other.touch()
    isrlearn.save(estimator, path)
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(other.stat().st_mode)
    path.chmod(0o600)
    isrlearn.save(estimator, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
