"""ISR folds into the last layer: same network, same state dict, the estimator's decisions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

from isrlearn import ISRClassifier, ISRClassifierCV, ISRRegressor
from isrlearn.torch import extract_features, postprocess, with_head


def outputs(model, x):
    model.eval()
    with torch.no_grad():
        return model(x).numpy()


def decisions(logits):
    """What a classifier with one or two logits decides by; K logits up to what they share."""
    if logits.shape[1] == 1:
        return logits[:, 0]
    return logits[:, 1] - logits[:, 0] if logits.shape[1] == 2 else logits


HEADS = {"lda": "lda", "ridge": RidgeClassifier()}


@pytest.mark.parametrize("head", ["refit", *HEADS])
@pytest.mark.parametrize(("n_classes", "n_outputs"), [(2, 1), (2, 2), (3, 3)])
def test_a_new_head_decides_as_the_estimator(network, samples, loader, n_classes, n_outputs, head):
    model, (x, y, e) = network(n_outputs), samples(n_classes=n_classes, unknown=True)
    data = loader((x, y, e))
    patched = postprocess(model, data, head=HEADS.get(head, head), n_spurious=1)
    features = extract_features(model, data)
    classifier = ISRClassifier(n_spurious=1, head=HEADS.get(head, "logistic"))
    # Moments are summed in double precision, rows are fitted in their own.
    X = features.X.astype(float) if head == "lda" else features.X
    classifier.fit(X, features.y, environments=features.environments)
    np.testing.assert_allclose(
        decisions(outputs(patched, x)), classifier.decision_function(features.X), atol=1e-5
    )


@pytest.mark.parametrize("method", ["mean", "cov", "joint", "multiclass"])
@pytest.mark.parametrize(("n_classes", "n_outputs"), [(2, 1), (2, 2), (3, 3)])
def test_an_adapted_head_is_the_old_one_on_erased_features(
    network, samples, loader, n_classes, n_outputs, method
):
    model, (x, y, e) = network(n_outputs), samples(n=2000, n_classes=n_classes)
    patched = postprocess(model, loader((x, y, e)), head="adapt", method=method, n_spurious=2)
    features = extract_features(model, [(x, y, e)])
    own = model.fc.weight.detach().numpy(), model.fc.bias.detach().numpy()
    classifier = ISRClassifier(method, n_spurious=2, head=own)
    classifier.fit(features.X, features.y, environments=features.environments)
    np.testing.assert_allclose(
        decisions(outputs(patched, x)), classifier.decision_function(features.X), atol=1e-5
    )
    # Each of several logits is the old layer's on erased features.
    erased = classifier.eraser_(features.X)
    np.testing.assert_allclose(outputs(patched, x), erased @ own[0].T + own[1], atol=1e-5)
    # The mean sample keeps its outputs.
    np.testing.assert_allclose(outputs(patched, x).mean(0), outputs(model, x).mean(0), atol=1e-5)
    assert np.abs(outputs(patched, x) - outputs(model, x)).max() > 0.01


@pytest.mark.parametrize("head", ["refit", "adapt"])
def test_regression(network, samples, loader, head):
    model, (x, y, e) = network(1), samples(task="regression", unknown=True)
    patched = postprocess(model, loader((x, y, e)), head=head, task="regression", n_spurious=1)
    features = extract_features(model, [(x, y, e)])
    own = model.fc.weight.detach().numpy(), model.fc.bias.detach().numpy()
    regressor = ISRRegressor(1, head="ridge" if head == "refit" else own)
    regressor.fit(features.X.astype(float), features.y, environments=features.environments)
    np.testing.assert_allclose(outputs(patched, x)[:, 0], regressor.predict(features.X), atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("head", ["refit", "adapt"])
def test_nothing_but_numbers_changes(network, samples, loader, head, dtype):
    model, (x, y, e) = network(dtype=dtype), samples()
    model.train()
    model.fc.weight.requires_grad_(False)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    patched = postprocess(model, loader((x.to(dtype), y, e)), head=head, n_spurious=1)
    after = patched.state_dict()
    assert list(after) == list(before)
    for name, value in before.items():
        assert torch.equal(model.state_dict()[name], value)  # the model given is as it was
        assert (after[name].shape, after[name].dtype) == (value.shape, value.dtype)
        assert torch.equal(after[name], value) == (not name.startswith("fc."))
    assert type(patched.fc) is nn.Linear
    assert [m.training for m in patched.modules()] == [m.training for m in model.modules()]
    assert not patched.fc.weight.requires_grad
    assert patched.fc.bias.requires_grad
    assert not patched.fc._forward_pre_hooks
    network(dtype=dtype).load_state_dict(after)  # the original code loads it


def test_the_spurious_direction_is_gone(network, samples, loader):
    model, (x, y, e) = network(), samples(n=2000)
    features = extract_features(model, [(x, y, e)])
    patched = postprocess(model, loader((x, y, e)), n_spurious=1)
    isr = ISRClassifier(n_spurious=1).fit(
        features.X, features.y, environments=features.environments
    )
    along = patched.fc.weight.detach().numpy() @ isr.spurious_basis_
    assert np.abs(along).max() < 1e-5 * np.abs(patched.fc.weight.detach().numpy()).max()


def test_it_exports_and_compiles(network, samples, loader):
    x, y, e = samples()
    patched = postprocess(network(), loader((x, y, e)), n_spurious=1).eval()
    expected = outputs(patched, x)
    exported = torch.export.export(patched, (x,)).module()
    np.testing.assert_allclose(exported(x).detach().numpy(), expected, atol=1e-6)
    for backend in ("eager", "aot_eager"):
        compiled = torch.compile(patched, backend=backend)
        np.testing.assert_allclose(outputs(compiled, x), expected, atol=1e-6)


def test_a_permutation_test_reads_the_features(network, samples, loader):
    data = loader(samples(n=120))
    for head in ("refit", "adapt"):
        patched = postprocess(network(), data, head=head, n_spurious="permutation")
        assert not torch.equal(patched.fc.weight, network().fc.weight)


@pytest.mark.parametrize("head", ["lda", "refit"])
def test_weights_reach_the_head(network, samples, loader, head):
    x, y, e = samples()
    keep = (y == 0) | (torch.arange(len(y)) % 5 == 1)  # few of class 1
    x, y, e = x[keep], y[keep], e[keep]
    features = extract_features(network(), loader((x, y, e)))
    X = features.X.astype(float) if head == "lda" else features.X
    for option in ({"weights": "class"}, {"weights": "group"}):
        patched = postprocess(network(), loader((x, y, e)), head=head, n_spurious=1, **option)
        estimator = ISRClassifier(
            n_spurious=1, head="lda" if head == "lda" else "logistic", **option
        ).fit(X, features.y, environments=features.environments)
        np.testing.assert_allclose(
            decisions(outputs(patched, x)), estimator.decision_function(features.X), atol=1e-5
        )


def test_features_can_go_to_a_file(network, samples, loader, tmp_path):
    data = loader(samples())
    path = tmp_path / "features.npy"
    patched = postprocess(network(), data, n_spurious=1, out=path)
    again = postprocess(network(), data, n_spurious=1)
    assert torch.equal(patched.fc.weight, again.fc.weight)
    assert np.load(path).shape == (240, 8)


def test_a_search_goes_into_the_network(network, samples):
    model, (x, y, e) = network(), samples()
    features = extract_features(model, [(x, y, e)])
    search = ISRClassifierCV(cv=2).fit(features.X, features.y, environments=features.environments)
    patched = with_head(model, search)
    np.testing.assert_allclose(
        decisions(outputs(patched, x)), search.decision_function(features.X), atol=1e-5
    )


class TestLayersThatCannotBeReplaced:
    def test_without_a_bias(self, network, samples, loader):
        with pytest.raises(ValueError, match=r"'fc' has no bias, .* bias of zero"):
            postprocess(network(bias=False), loader(samples()))

    @pytest.mark.parametrize("view", [False, True])
    def test_with_tied_weights(self, network, samples, loader, view):
        model = network(8)
        model.body.add_module("tied", nn.Linear(8, 8))
        model.body.tied.weight = nn.Parameter(model.fc.weight.detach()) if view else model.fc.weight
        with pytest.raises(ValueError, match=r"'fc' shares parameters with 'body.tied.weight'"):
            postprocess(model, loader(samples()), head="adapt")

    def test_with_a_parametrized_weight(self, network, samples, loader):
        model = network()
        weight_norm(model.fc)
        with pytest.raises(ValueError, match="remove the parametrization"):
            postprocess(model, loader(samples()))

    def test_of_other_shapes(self, network, samples, loader):
        with pytest.raises(ValueError, match=r"8 features to 3 outputs; .*predicts 2 classes"):
            postprocess(network(3), loader(samples()), n_spurious=1)
        classifier = LogisticRegression().fit(np.eye(4), [0, 0, 1, 1])
        with pytest.raises(ValueError, match="takes 4 features"):
            with_head(network(), classifier)


def test_mistakes_are_named(network, samples, loader):
    x, y, e = samples()
    model, data = network(), loader((x, y, e))
    with pytest.raises(ValueError, match=r"Invalid parameter 'n_spurius' for .*ISRClassifier"):
        postprocess(model, data, n_spurius=1)
    with pytest.raises(ValueError, match=r"Invalid parameter 'C' for estimator ISRTransformer"):
        postprocess(model, data, head="adapt", C=1.0)
    with pytest.raises(ValueError, match="head must be one of 'logistic'"):
        postprocess(model, data, head="refitted")
    with pytest.raises(ValueError, match="task must be one of"):
        postprocess(model, data, task="ranking")
    for head in ("adapt", "lda", "refit"):
        with pytest.raises(ValueError, match="needs at least two"):
            postprocess(model, loader((x, y, torch.zeros_like(e))), head=head)
    with pytest.raises(ValueError, match=r"codes 0 to 1 .*got \['cat', 'dog'\]"):
        with_head(model, LogisticRegression().fit(np.eye(8)[:2], ["cat", "dog"]))
    with pytest.raises(ValueError, match="ISRClassifier has no coef_: fit it"):
        with_head(model, ISRClassifier())


def test_one_environment_if_asked_for(network, samples, loader):
    x, y, e = samples()
    data = loader((x, y, torch.zeros_like(e)))
    patched = postprocess(network(), data, head="adapt", missing_environments="single")
    np.testing.assert_allclose(outputs(patched, x), outputs(network(), x), atol=1e-6)
