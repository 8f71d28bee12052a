"""The inputs of a named layer come back, whatever the model, and nothing else changes."""

from __future__ import annotations

import sys
from collections import OrderedDict
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from isrlearn import ISRClassifier
from isrlearn.torch import evaluate, extract_features, postprocess


def body_outputs(model, x):
    model.eval()
    with torch.no_grad():
        return model.body(x).numpy()


def test_features_are_the_inputs_of_the_layer(network, samples, loader):
    model, (x, y, e) = network(), samples()
    features = extract_features(model, loader((x, y, e)))
    np.testing.assert_allclose(features.X, body_outputs(model, x), atol=1e-6)
    assert features.X.dtype == np.float32
    np.testing.assert_array_equal(features.y, y)
    np.testing.assert_array_equal(features.environments, e)
    assert features.environments.dtype == np.int64


def test_a_dotted_path_finds_an_inner_layer(network, samples, loader):
    x, y, e = samples()
    features = extract_features(network(), loader((x, y, e)), "body.0")
    np.testing.assert_array_equal(features.X, x)


def test_features_go_to_a_file(network, samples, loader, tmp_path):
    model, data = network(), loader(samples())
    expected = extract_features(model, data)
    mapped = extract_features(model, data, out=tmp_path / "features.npy")
    assert isinstance(mapped.X, np.memmap)
    np.testing.assert_array_equal(mapped.X, expected.X)
    np.testing.assert_array_equal(np.load(tmp_path / "features.npy"), expected.X)
    assert [path.name for path in tmp_path.iterdir()] == ["features.npy"]


def test_the_file_grows_batch_by_batch(network, tmp_path):
    sizes = []

    def batches():
        for _ in range(20):
            sizes.append(max((path.stat().st_size for path in tmp_path.iterdir()), default=0))
            yield torch.zeros(1000, 6), torch.zeros(1000).long(), torch.zeros(1000).long()

    features = extract_features(network(), batches(), out=tmp_path / "features.npy")
    assert features.X.shape == (20_000, 8)
    # At most one batch is held back.
    assert all(size >= 32_000 * (i - 1) for i, size in enumerate(sizes))


def test_a_failure_leaves_the_old_file(network, samples, tmp_path):
    path = tmp_path / "features.npy"
    np.save(path, np.arange(3))

    def batches():
        yield samples()
        raise RuntimeError("the disk of the images is gone")

    with pytest.raises(RuntimeError, match="gone"):
        extract_features(network(), batches(), out=path)
    np.testing.assert_array_equal(np.load(path), np.arange(3))
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("fails", [False, True])
def test_the_model_is_left_as_it_was(network, samples, fails):
    model, (x, y, e) = network(), samples()
    model.train()
    model.body[2].eval()  # one frozen module among training ones
    modes = [module.training for module in model.modules()]
    batch = (x, y, e) if not fails else (x * torch.nan, y, e)
    try:
        extract_features(model, [batch])
    except ValueError:
        assert fails
    assert [module.training for module in model.modules()] == modes
    assert not model.fc._forward_pre_hooks
    assert all(parameter.grad is None for parameter in model.parameters())
    assert torch.is_grad_enabled()


def test_unknown_environments_are_unknown_to_the_estimators(network, samples, loader):
    model, (x, y, e) = network(), samples(unknown=True)
    features = extract_features(model, loader((x, y, e)))
    np.testing.assert_array_equal(np.isnan(features.environments), e == -1)
    classifier = ISRClassifier().fit(features.X, features.y, environments=features.environments)
    assert classifier.environments_.tolist() == [0, 1, 2]


def test_half_precision_becomes_single(network, samples):
    x, y, e = samples(8)
    model = network(dtype=torch.bfloat16)
    assert extract_features(model, [(x.bfloat16(), y, e)]).X.dtype == np.float32
    assert extract_features(network(dtype=torch.float64), [(x.double(), y, e)]).X.dtype == float


class Named(nn.Module):
    """A model with two inputs, and its outputs in an object."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 2)

    def forward(self, first, second):
        class Output:
            logits = self.fc(first + second)

        return Output()


@pytest.mark.parametrize("as_mapping", [False, True])
def test_inputs_by_place_or_by_name(samples, as_mapping):
    x, y, e = samples(8)
    inputs = {"second": x, "first": 2 * x} if as_mapping else (x, 2 * x)
    np.testing.assert_allclose(extract_features(Named(), [(inputs, y, e)]).X, 3 * x, rtol=1e-6)


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.unused = nn.Linear(6, 6), nn.Linear(6, 2)

    def forward(self, x):
        return self.fc(self.fc(x))


class PerToken(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def forward(self, x):
        return self.fc(x.reshape(len(x), 2, 3)).mean(dim=1)


@pytest.mark.parametrize(
    ("model", "layer", "message"),
    [
        (
            nn.Sequential(nn.Linear(6, 2)),
            "fc",
            r"'fc' is not in the model; its linear layers are '0'",
        ),
        (nn.Sequential(nn.Linear(6, 2)), 0, r"layer 0 is not in the model; .* layers are '0'"),
        (nn.Sequential(nn.ReLU()), "fc", r"'fc' is not in the model; it has none"),
        (
            nn.Sequential(nn.Linear(6, 2), nn.ReLU()),
            "1",
            r"'1' is a ReLU; .* layers are '0'",
        ),
        (Twice(), "fc", r"'fc' was called 2 times"),
        (Twice(), "unused", r"'unused' was called 0 times"),
        (PerToken(), "fc", r"shape \(8, 2, 3\) for 8 samples; .* after the pooling"),
        ("resnet18", "fc", r"must be a torch.nn.Module; got a str"),
    ],
)
def test_layers_that_will_not_do(samples, model, layer, message):
    with pytest.raises(ValueError, match=message):
        extract_features(model, [samples(8)], layer)


X, Y, E = torch.zeros(4, 6), torch.zeros(4).long(), torch.zeros(4).long()


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
@pytest.mark.parametrize(
    "compiled",
    [partial(torch.compile, backend="eager"), partial(torch.jit.trace, example_inputs=X)],
)
def test_a_compiled_model_is_refused(network, samples, compiled):
    model, inner = compiled(network().eval()), network()
    with pytest.raises(ValueError, match="compiled"):
        extract_features(model, [samples(8)])
    if isinstance(model, torch.jit.ScriptModule):
        inner.fc = model.fc
        with pytest.raises(ValueError, match="compiled"):
            postprocess(inner, [samples(8)])


def test_scores_of_nan_are_refused(network, samples):
    x, y, e = samples(8)
    for n_outputs in (1, 2):
        with pytest.raises(ValueError, match="outputs are NaN"):
            evaluate(network(n_outputs), [(x * torch.nan, y, e)])


def test_a_single_output_is_a_logit_not_a_probability(network, samples):
    x, y, e = samples(60)
    model = network(1)
    before = evaluate(model, [(x, y, e)])
    with pytest.warns(UserWarning, match="Leave out the sigmoid"):
        evaluate(nn.Sequential(model, nn.Sigmoid()), [(x[:1], y[:1], e[:1]), (x, y, e)])
    # A model that squeezes its outputs returns a scalar for the last of these batches.
    squeezed = nn.Sequential(model, Squeeze())
    again = evaluate(squeezed, [(x[:-1], y[:-1], e[:-1]), (x[-1:], y[-1:], e[-1:])])
    assert again.average == before.average


class Squeeze(nn.Module):
    def forward(self, x):
        return x.squeeze()


@pytest.mark.parametrize("kind", [torch.uint8, torch.uint16, torch.int8, torch.bool])
def test_integers_of_any_size_are_codes(network, samples, kind):
    x, y, e = samples(12)
    features = extract_features(network(), [(x, y.to(kind), (e > 0).to(kind))])
    np.testing.assert_array_equal(features.environments, e > 0)
    np.testing.assert_array_equal(features.y, y)


def test_targets_of_a_model_in_half_precision(network, samples):
    x, y, e = samples(12, task="regression")
    batch = x.bfloat16(), y.bfloat16(), e
    report = evaluate(network(1, dtype=torch.bfloat16), [batch], task="regression")
    assert np.isfinite(report.average)


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ((X, Y), r"must yield \(x, y, environment\); batch 0 is a tuple of 2"),
        ({"x": X}, r"batch 0 is a dict"),
        ((X, Y, E.float()), r"integer code per sample, .*; batch 0 has .* torch.float32"),
        ((X, Y, E - 2), r"0, 1, … or -1 where unknown; batch 0 has \[-2, "),
        ((X, Y[:3], E), r"batch 0 has different numbers of samples: .*'y': 3"),
        ((X, Y, ["a", "b", "c", "d"]), r"environment must be a tensor of numbers.*codes first"),
        ((X, Y, torch.tensor(0)), r"environment must have one number per sample"),
        ((X / 0, Y, E), r"NaN or infinite in 4 of 4 samples of batch 0"),
    ],
)
def test_batches_that_will_not_do(network, batch, message):
    with pytest.raises(ValueError, match=message):
        extract_features(network(), [batch])


def test_the_batch_with_nan_is_named(network, samples):
    x, y, e = samples(8)
    bad = x.clone()
    bad[3, 2] = torch.nan
    with pytest.raises(ValueError, match=r"in 1 of 8 samples of batch 1"):
        extract_features(network(), [(x, y, e), (bad, y, e)])


def test_sparse_inputs_are_refused(samples):
    x, y, e = samples(8)
    with pytest.raises(ValueError, match="layer 'fc' gets sparse inputs"):
        extract_features(nn.Sequential(OrderedDict(fc=nn.Linear(6, 2))), [(x.to_sparse(), y, e)])


def test_an_empty_loader_is_refused(network):
    with pytest.raises(ValueError, match="yields no batches"):
        extract_features(network(), [])


def test_bad_files_are_named_before_the_work(network, tmp_path):
    with pytest.raises(ValueError, match=r"\.npy"):
        extract_features(network(), None, out=tmp_path / "features.npz")
    with pytest.raises(FileNotFoundError, match="no such folder"):
        extract_features(network(), None, out=tmp_path / "nowhere" / "features.npy")


def test_no_bar_without_a_terminal(network, samples, capfd):
    assert not sys.stderr.isatty()
    extract_features(network(), [samples()], progress=True)
    assert capfd.readouterr() == ("", "")
