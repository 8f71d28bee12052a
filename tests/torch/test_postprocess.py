"""ISR folds into the last layer: same network, same state dict, the estimator's decisions."""

from __future__ import annotations

from collections import OrderedDict
from copy import deepcopy

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm, weight_norm

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


class LoRA(nn.Linear):
    """As loralib has it: a low-rank term with parameters of its own, merged in evaluation mode."""

    def __init__(self, d, m, rank=2):
        super().__init__(d, m)
        self.A, self.B = nn.Parameter(torch.randn(rank, d)), nn.Parameter(torch.randn(m, rank))
        self.drop, self.merged = nn.Dropout(0.5), False

    def train(self, mode=True):
        if mode == self.merged:
            self.weight.data += (1 if not mode else -1) * (self.B @ self.A).detach()
            self.merged = not mode
        return super().train(mode)

    def forward(self, x):
        low = 0.0 if self.merged else self.drop(x) @ self.A.T @ self.B.T
        return nn.functional.linear(x, self.weight, self.bias) + low


class Adapter(nn.Module):
    """As peft has it: a module around the layer."""

    def __init__(self, d, m):
        super().__init__()
        self.base_layer, self.low = nn.Linear(d, m), LoRA(d, m)
        self.in_features, self.out_features = d, m

    def forward(self, x):
        return self.base_layer(x) + self.low(x)


class Plain(nn.Linear):
    """A subclass that computes what its parent does."""


class Doubled(nn.Linear):
    def forward(self, x):
        return 2.0 * super().forward(x)


class Cosine(nn.Linear):
    """Normalised features, with a scale of its own."""

    def __init__(self, d, m):
        super().__init__(d, m)
        self.scale = nn.Parameter(torch.tensor(8.0))

    def forward(self, x):
        normal = nn.functional.normalize
        return self.scale * nn.functional.linear(normal(x), normal(self.weight), self.bias)


MERGED = {
    "lora": lambda: LoRA(8, 2),
    "adapter": lambda: Adapter(8, 2),
    "weight norm": lambda: weight_norm(nn.Linear(8, 2)),
    "spectral norm": lambda: spectral_norm(nn.Linear(8, 2)),
    "orthogonal bias": lambda: weight_norm(nn.Linear(8, 2), "bias", dim=None),
}


def network_with(layer):
    """The small network of these tests with another last layer."""
    torch.manual_seed(0)
    return nn.Sequential(OrderedDict(body=nn.Sequential(nn.Linear(6, 8), nn.Tanh()), fc=layer()))


@pytest.mark.parametrize("head", ["refit", "adapt"])
@pytest.mark.parametrize("layer", MERGED)
def test_computed_weights_are_merged(samples, loader, layer, head):
    model, (x, y, e) = network_with(MERGED[layer]).train(), samples()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    own = outputs(deepcopy(model), x)
    patched = postprocess(model, loader((x, y, e)), head=head, n_spurious=1)
    assert type(patched.fc) is nn.Linear
    assert model.training
    assert patched.training
    for name, value in model.state_dict().items():
        torch.testing.assert_close(value, before[name], atol=1e-6, rtol=0)
    features = extract_features(model, [(x, y, e)])
    isr = ISRClassifier(n_spurious=1).fit(
        features.X, features.y, environments=features.environments
    )
    if head == "refit":
        expected = isr.decision_function(features.X)
        np.testing.assert_allclose(decisions(outputs(patched, x)), expected, atol=1e-4)
    else:
        np.testing.assert_allclose(outputs(patched, x).mean(0), own.mean(0), atol=1e-4)


def test_a_subclass_with_the_same_forward_keeps_its_class(samples, loader):
    patched = postprocess(network_with(lambda: Plain(8, 2)), loader(samples()), n_spurious=1)
    assert type(patched.fc) is Plain


def test_features_that_are_overwritten_later(samples, loader):
    class Overwriting(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(6, 2)

        def forward(self, x):
            x = x + 0.0
            logits = self.fc(x)
            x.zero_()
            return logits

    x, y, e = samples()
    np.testing.assert_array_equal(extract_features(Overwriting(), loader((x, y, e))).X, x)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_agrees_as_far_as_it_can(network, samples, loader, dtype):
    x, y, e = samples()
    data = loader((x.to(dtype), y, e))
    patched = postprocess(network(dtype=dtype), data, n_spurious=1)
    features = extract_features(network(dtype=dtype), data)
    isr = ISRClassifier(n_spurious=1).fit(
        features.X, features.y, environments=features.environments
    )
    found = decisions(outputs(patched.float(), x.to(dtype).float()))
    expected = isr.decision_function(features.X)
    assert np.abs(found - expected).max() < 20 * torch.finfo(dtype).eps * np.abs(expected).max()


@pytest.mark.parametrize("size", [1e7, 1e-10])
def test_weights_that_half_precision_cannot_hold(network, size):
    classifier = LogisticRegression().fit(np.eye(8)[:2], [0, 1])
    classifier.coef_, classifier.intercept_ = classifier.coef_ * size, 0 * classifier.intercept_
    with pytest.raises(ValueError, match=r"torch.float16 cannot hold .* layer 'fc'.*\.float\(\)"):
        with_head(network(dtype=torch.float16), classifier)
    with_head(network(), classifier)


class TestLayersThatCannotBeReplaced:
    @pytest.mark.parametrize("head", ["refit", "adapt"])
    @pytest.mark.parametrize(
        ("layer", "message"),
        [
            (Doubled, "'fc', a Doubled, has a forward of its own"),
            (Cosine, "'fc', a Cosine, does not compute x @ weight.T"),
        ],
    )
    def test_with_a_forward_of_their_own(self, samples, loader, layer, message, head):
        with pytest.raises(ValueError, match=message):
            postprocess(network_with(lambda: layer(8, 2)), loader(samples()), head=head)

    def test_with_a_hook(self, network, samples, loader):
        model = network()
        model.fc.register_forward_hook(lambda module, inputs, output: output.relu())
        with pytest.raises(ValueError, match="a hook changes its outputs"):
            postprocess(model, loader(samples()))
        other = network()
        other.fc.register_forward_hook(lambda module, inputs, output: None)  # only looks
        postprocess(other, loader(samples()), n_spurious=1)

    def test_inside_an_adapter(self, samples, loader):
        model = network_with(lambda: Adapter(8, 2))
        with pytest.raises(ValueError, match="a part of the linear layer 'fc': name that one"):
            postprocess(model, loader(samples()), "fc.base_layer")
        del model.fc.in_features  # an adapter that does not say what it is
        with pytest.raises(ValueError, match=r"'fc.base_layer' do not determine .* \d+ of 50"):
            postprocess(model, loader(samples()), "fc.base_layer", n_spurious=1)

    def test_that_take_other_inputs(self, samples, loader):
        class Graph(nn.Linear):
            def __init__(self, d, m):
                super().__init__(d, m)
                self.edges = nn.Parameter(torch.eye(2))

            def forward(self, x, edges):
                return edges @ super().forward(x)

        with pytest.raises(ValueError, match="cannot be applied to rows of features"):
            postprocess(network_with(lambda: Graph(8, 2)), loader(samples()))

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

    def test_of_other_shapes(self, network, samples, loader):
        with pytest.raises(ValueError, match=r"8 features to 3 outputs; .*predicts 2 classes"):
            postprocess(network(3), loader(samples()), n_spurious=1)
        classifier = LogisticRegression().fit(np.eye(4), [0, 0, 1, 1])
        with pytest.raises(ValueError, match="takes 4 features"):
            with_head(network(), classifier)


def test_a_regression_that_is_scaled_after_the_layer(network, samples, loader):
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = network(1)

        def forward(self, x):
            return self.inner(x)[:, 0] * 10 + 100

    data, kept = loader(samples(task="regression")), {"layer": "inner.fc", "task": "regression"}
    with pytest.raises(ValueError, match=r"do not determine .* regression scales them"):
        postprocess(Scaled(), data, **kept)
    postprocess(Scaled(), data, head="adapt", **kept)


def test_a_spectral_norm_in_training_mode_is_left_as_it_was(network, samples, loader):
    model = network().train()
    spectral_norm(model.fc)
    before = deepcopy(model.state_dict())
    postprocess(model, loader(samples()), head="adapt", n_spurious=1)
    for name, values in model.state_dict().items():
        assert torch.equal(values, before[name]), name


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
