"""Exports: the same labels and numbers in ONNX, torch and NumPy."""

from __future__ import annotations

import json

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
import safetensors
import safetensors.torch
import torch
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from isrlearn import ISRClassifier, ISRClassifierCV, ISRRegressor, ISRTransformer
from isrlearn.datasets import make_gaussian_environments
from isrlearn.io import ModelFile, export_model

N = 10_000


def sample(n_classes=2, task="classification"):
    return make_gaussian_environments(
        N // 4,
        4,
        n_invariant=20,
        n_spurious=3,
        n_classes=n_classes,
        task=task,
        random_state=1,
    )


def run(path, X):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": X}), strict=True))


CLASSES = {
    2: np.array(["camel", "größe"]),
    3: np.array([10, 20, 40]),
    5: np.array(["a", "b", "c", "d", "e"]),
}


@pytest.mark.parametrize("n_classes", CLASSES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_onnx_classifier(tmp_path, n_classes, dtype):
    data = sample(n_classes)
    y, X = CLASSES[n_classes][data.y], data.X.astype(dtype)
    clf = ISRClassifier().fit(X, y, environments=data.environments)
    path = tmp_path / "model.onnx"
    export_model(clf, "onnx", path, dtype=dtype)
    found = run(path, X)
    assert len(X) >= N
    assert found["label"].tolist() == clf.predict(X).tolist()
    logits, scores = found["logits"], clf.decision_function(X)
    logits = logits[:, 1] - logits[:, 0] if n_classes == 2 else logits
    np.testing.assert_allclose(logits, scores, atol=1e-4 if dtype == np.float32 else 1e-10)
    np.testing.assert_allclose(found["probabilities"], clf.predict_proba(X), atol=1e-5)


def test_a_tie_goes_to_the_same_class(tmp_path):
    head = np.zeros((1, 2)), np.zeros(1)
    X, y = np.array([[0.0, 1], [1, 0], [2, 1], [1, 2]], dtype=np.float32), [0, 1, 0, 1]
    clf = ISRClassifier(head=head, n_spurious=0).fit(X, y, environments=[0, 0, 1, 1])
    export_model(clf, "onnx", tmp_path / "m.onnx")
    assert run(tmp_path / "m.onnx", X)["label"].tolist() == clf.predict(X).tolist() == [0] * 4


def test_no_probabilities_where_the_head_has_none(tmp_path):
    data = sample()
    clf = ISRClassifier(head=LinearSVC()).fit(data.X, data.y, environments=data.environments)
    export_model(clf, "onnx", tmp_path / "m.onnx")
    assert set(run(tmp_path / "m.onnx", data.X.astype(np.float32))) == {"label", "logits"}


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (np.array([False, True]), [0, 1]),
        (np.array([0.0, 1.0]), [0.0, 1.0]),
        (np.array([1, 2], dtype=object), [1, 2]),
    ],
)
def test_labels_of_other_types(tmp_path, labels, expected):
    data = sample()
    X = data.X[:500].astype(np.float32)
    y, environments = labels[data.y[:500]].tolist(), np.arange(500) % 3
    clf = ISRClassifier(head="lda").fit(X, y, environments=environments)
    export_model(clf, "onnx", tmp_path / "m.onnx")
    label = run(tmp_path / "m.onnx", X)["label"].tolist()
    assert label == [expected[labels.tolist().index(found)] for found in clf.predict(X)]
    export_model(clf, "numpy", tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz") as arrays:
        assert arrays["classes"].tolist() == labels.tolist()


def test_regressor(tmp_path):
    data = sample(task="regression")
    X = data.X.astype(np.float32)
    reg = ISRRegressor().fit(X, data.y, environments=data.environments)
    export_model(reg, "onnx", tmp_path / "m.onnx")
    prediction = run(tmp_path / "m.onnx", X)["prediction"]
    assert prediction.shape == (len(X),)
    np.testing.assert_allclose(prediction, reg.predict(X), atol=1e-4)
    np.testing.assert_allclose(linear(reg, tmp_path / "m.pt")(X)[:, 0], prediction, atol=1e-4)


TRANSFORMERS = [
    ISRTransformer(),
    ISRTransformer(scale=0.3),
    ISRTransformer(output="invariant"),
    ISRTransformer(n_spurious=0),
]


@pytest.mark.parametrize("transformer", TRANSFORMERS, ids=str)
def test_transformer(tmp_path, transformer):
    data = sample()
    X = data.X.astype(np.float32)
    transformer.fit(X, data.y, environments=data.environments)
    expected = transformer.transform(X)
    export_model(transformer, "onnx", tmp_path / "m.onnx")
    found = run(tmp_path / "m.onnx", X)["features"]
    np.testing.assert_allclose(found, expected, atol=1e-4)
    np.testing.assert_allclose(linear(transformer, tmp_path / "m.pt")(X), expected, atol=1e-4)


def linear(estimator, path):
    """The exported map as torch computes it."""
    export_model(estimator, "torch", path)
    if path.suffix == ".safetensors":
        state = safetensors.torch.load_file(path)
    else:
        state = torch.load(path, weights_only=True)
    layer = torch.nn.Linear(*reversed(state["weight"].shape))
    layer.load_state_dict(state)
    return lambda X: layer(torch.from_numpy(X)).detach().numpy()


@pytest.mark.parametrize("n_classes", CLASSES)
@pytest.mark.parametrize("name", ["head.pt", "head.pth", "head.safetensors"])
def test_torch_classifier(tmp_path, n_classes, name):
    data = sample(n_classes)
    X = data.X.astype(np.float32)
    clf = ISRClassifier().fit(X, data.y, environments=data.environments)
    logits = linear(clf, tmp_path / name)(X)
    codes = logits[:, 0] > 0 if n_classes == 2 else logits.argmax(axis=1)
    assert clf.classes_[codes.astype(int)].tolist() == clf.predict(X).tolist()
    scores = clf.decision_function(X).reshape(len(X), -1)
    np.testing.assert_allclose(logits, scores, atol=1e-4)


def test_numpy(tmp_path):
    data = sample(3)
    clf = ISRClassifier(scale=0.5).fit(data.X, data.y, environments=data.environments)
    export_model(clf, "numpy", tmp_path / "head.npz", feature_names=[f"x{i}" for i in range(23)])
    with np.load(tmp_path / "head.npz", allow_pickle=False) as arrays:
        scores = data.X @ arrays["coef"].T + arrays["intercept"]
        basis, dual, center = (arrays[name] for name in ("spurious_basis", "dual", "center"))
        erased = data.X - (1 - arrays["scale"]) * (data.X - center) @ dual @ basis.T
        assert arrays["feature_names"][4] == "x4"
        assert arrays["classes"].tolist() == [0, 1, 2]
    np.testing.assert_allclose(scores, clf.decision_function(data.X), atol=1e-12)
    np.testing.assert_allclose(erased, clf.eraser_(data.X), atol=1e-12)


def test_names_and_classes_travel_along(tmp_path):
    data = sample(3)
    frame = pd.DataFrame(data.X).add_prefix("größe ")
    clf = ISRClassifier().fit(frame, data.y, environments=data.environments)
    export_model(clf, "onnx", tmp_path / "m.onnx")
    notes = {p.key: p.value for p in onnx.load(tmp_path / "m.onnx").metadata_props}
    assert json.loads(notes["feature_names"]) == list(frame.columns)
    assert json.loads(notes["classes"]) == [0, 1, 2]
    export_model(clf, "torch", tmp_path / "m.safetensors")
    with safetensors.safe_open(tmp_path / "m.safetensors", framework="pt") as file:
        assert json.loads(file.metadata()["feature_names"]) == list(frame.columns)
    pipeline = make_pipeline(
        StandardScaler().fit(frame), clf.fit(data.X, data.y, data.environments)
    )
    export_model(pipeline, "numpy", tmp_path / "m.npz")
    assert np.load(tmp_path / "m.npz")["feature_names"].tolist() == list(frame.columns)


def test_of_a_search_the_best_estimator(tmp_path):
    data = sample()
    search = ISRClassifierCV(n_spurious=[0, 1], C=1.0, weights=None, cv=2)
    search.fit(data.X, data.y, environments=data.environments)
    export_model(search, "numpy", tmp_path / "m.npz")
    np.testing.assert_array_equal(np.load(tmp_path / "m.npz")["coef"], search.best_estimator_.coef_)


@pytest.mark.parametrize("kind", ["onnx", "torch", "numpy"])
def test_mistakes(tmp_path, kind):
    path = tmp_path / "model.pt"

    def export(model, path, **options):
        export_model(model, kind, path, **options)

    with pytest.raises(NotFittedError):
        export(ISRClassifier(), path)
    with pytest.raises(ValueError, match="got LogisticRegression"):
        export(LogisticRegression(), path)
    X, y = [[0.0, 1], [1, 0], [2, 1], [1, 2]], [0, 1, 0, 1]
    clf = ISRClassifier(n_spurious=0).fit(X, y, environments=[0, 0, 1, 1])
    with pytest.raises(ValueError, match="dtype must be float32 or float64; got 'float16'"):
        export(clf, path, dtype="float16")
    with pytest.raises(ValueError, match="2 distinct feature names; got 1"):
        export(clf, path.with_suffix(".safetensors"), feature_names=["a"])
    with pytest.raises(ValueError, match=r"must end in \.safetensors, \.pt or \.pth"):
        export_model(clf, "torch", tmp_path / "model.bin")
    with pytest.raises(ValueError, match="kind must be one of onnx, torch, numpy; got 'pickle'"):
        export_model(clf, "pickle", path)
    assert not list(tmp_path.iterdir())


def test_a_model_file_brings_its_names(tmp_path):
    X, y = [[0.0, 1], [1, 0], [2, 1], [1, 2]], [0, 1, 0, 1]
    clf = ISRClassifier(n_spurious=0).fit(X, y, environments=[0, 0, 1, 1])
    export_model(ModelFile(clf, ("age", "dose")), "numpy", tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz") as arrays:
        assert arrays["feature_names"].tolist() == ["age", "dose"]


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_float32_rows_far_from_zero_have_the_classes_of_float64(tmp_path, offset, n_classes):
    data = sample(n_classes)
    X = (data.X + offset).astype(np.float32)
    expected = ISRClassifier().fit(X.astype(float), data.y, data.environments)
    clf = ISRClassifier().fit(X, data.y, data.environments)
    scores = clf.decision_function(X)
    # The solver stops at 1e-6 for float32 rows, wherever they are.
    np.testing.assert_allclose(scores, expected.decision_function(X.astype(float)), atol=1e-2)
    np.testing.assert_allclose(scores, clf.decision_function(X.astype(float)), atol=1e-8)
    export_model(clf, "onnx", tmp_path / "m.onnx")
    logits = run(tmp_path / "m.onnx", X)["logits"]
    logits = logits[:, 1] if n_classes == 2 else logits
    np.testing.assert_allclose(logits, scores, atol=1e-3)
    if offset:
        for kind, name in (("torch", "m.safetensors"), ("numpy", "m.npz")):
            with pytest.raises(ValueError, match="float32 weights would round the outputs by"):
                export_model(clf, kind, tmp_path / name, dtype=np.float32)
            export_model(clf, kind, tmp_path / name, dtype=np.float64)


def test_a_target_far_from_zero_is_predicted_to_its_own_spread(tmp_path):
    data = sample(task="regression")
    X, y = data.X.astype(np.float32), data.y + 1e9
    reg = ISRRegressor().fit(X, y, data.environments)
    assert reg.score(X, y) == pytest.approx(
        ISRRegressor().fit(data.X, data.y, data.environments).score(data.X, data.y), abs=1e-4
    )
    export_model(reg, "onnx", tmp_path / "m.onnx")
    found = run(tmp_path / "m.onnx", X)["prediction"]
    np.testing.assert_allclose(found - 1e9, reg.predict(X) - 1e9, atol=1e-4)
    with pytest.raises(ValueError, match="the target lie too far from zero"):
        export_model(reg, "torch", tmp_path / "m.safetensors")
