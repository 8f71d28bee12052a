"""Training does what its settings say, and a killed run ends as one that was not."""

from __future__ import annotations

import random
import runpy
import signal
import subprocess
import sys
import time
from hashlib import sha256
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, RandomSampler, TensorDataset

from isrlearn.io import ModelFileError
from isrlearn.paper.training import train
from isrlearn.paper.training.objectives import OBJECTIVES
from isrlearn.paper.training.run import load_run
from isrlearn.torch import evaluate


def weights(model):
    return torch.cat([value.flatten().double() for value in model.state_dict().values()])


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_objective_learns(network, samples, loader, objective, task):
    model = network(1 if task == "regression" else 2)
    model.body[2] = nn.Identity()
    data = loader(samples(task=task), shuffle=True)
    before = evaluate(model, data, task=task).average
    result = train(model, data, objective=objective, task=task, epochs=12, optimizer="adam")
    after = evaluate(result.model, data, task=task).average
    assert after < 0.7 * before if task == "regression" else after > max(0.8, before)
    assert len(result.history) == result.best_epoch == 12


def test_one_logit_for_two_classes(network, samples, loader):
    data = loader(samples(), shuffle=True)
    result = train(network(1), data, epochs=20, optimizer="adam")
    assert evaluate(result.model, data).average > 0.8


def test_the_model_given_is_left_alone(network, samples, loader):
    model = network()
    before = weights(model).clone()
    result = train(model, loader(samples()), epochs=1)
    assert torch.equal(weights(model), before)
    assert not torch.equal(weights(result.model), before)
    assert model.training
    assert not result.model.training


class Noisy(Dataset):
    """Samples with augmentation that draws from the global generators."""

    def __init__(self, samples):
        self.samples = samples

    def __len__(self):
        return len(self.samples[0])

    def __getitem__(self, i):
        x, y, e = (part[i] for part in self.samples)
        return x + 0.1 * np.random.randn() + 0.1 * random.random(), y, e  # noqa: NPY002


def noisy_loader(samples, kind):
    data = Noisy(samples)
    if kind == "global":
        return DataLoader(data, 50, shuffle=True)
    generator = torch.Generator().manual_seed(5)
    if kind == "own":
        return DataLoader(data, 50, shuffle=True, generator=generator)
    return DataLoader(data, 50, sampler=RandomSampler(data, generator=generator))


@pytest.mark.parametrize("kind", ["global", "own", "sampler"])
def test_a_run_depends_on_its_seed_alone(network, samples, kind):
    data = noisy_loader(samples(), kind)
    first = train(network(), data, epochs=2)
    torch.manual_seed(99)
    torch.rand(5)
    again = train(network(), data, epochs=2)
    other = train(network(), data, epochs=2, random_state=1)
    assert torch.equal(weights(first.model), weights(again.model))
    assert first.history == again.history
    assert not torch.equal(weights(first.model), weights(other.model))


def test_generators_are_put_back(network, samples):
    data = noisy_loader(samples(), "own")
    states = (torch.get_rng_state(), np.random.get_state()[1], random.getstate())  # noqa: NPY002
    own = data.generator.get_state()
    train(network(), data, epochs=1)
    assert torch.equal(torch.get_rng_state(), states[0])
    np.testing.assert_array_equal(np.random.get_state()[1], states[1])  # noqa: NPY002
    assert random.getstate() == states[2]
    assert torch.equal(data.generator.get_state(), own)


RUNS = [
    {"objective": "erm", "optimizer": "adam", "patience": 10},
    {"objective": "group_dro", "step": 0.5},
    {"objective": "irm", "penalty": 10.0, "anneal_steps": 7, "decay_every": 2},
    {"objective": "c_mixup", "optimizer": "adam"},
]


@pytest.mark.parametrize(
    ("settings", "kind"), list(zip(RUNS, ["own", "global", "sampler", "global"], strict=True))
)
def test_a_run_goes_on_where_it_stopped(network, samples, tmp_path, settings, kind):
    data = noisy_loader(samples(), kind)
    settings = {**settings, "validation": [samples(seed=1)]}
    whole = train(network(), data, epochs=5, **settings)
    path = tmp_path / "run.pt"
    train(network(), data, epochs=2, checkpoint=path, **settings)
    other = network()
    nn.init.zeros_(other.fc.weight)  # the first weights no longer matter
    parts = train(other, data, epochs=5, checkpoint=path, **settings)
    assert torch.equal(weights(whole.model), weights(parts.model))
    assert whole.history == parts.history
    assert whole.best_epoch == parts.best_epoch
    done = train(network(), None, epochs=5, checkpoint=path, **settings)  # nothing left to do
    assert torch.equal(weights(whole.model), weights(done.model))
    assert list(tmp_path.iterdir()) == [path]


SCRIPT = """
import sys, time
import torch
from torch.utils.data import DataLoader, TensorDataset
from isrlearn.paper.training import train

torch.set_num_threads(1)
path, out, pause = sys.argv[1], sys.argv[2], float(sys.argv[3])
torch.manual_seed(0)
x = torch.randn(96, 4)
data = TensorDataset(x, (x[:, 0] > 0).long(), torch.arange(96) % 3)

class Slow(DataLoader):
    def __iter__(self):
        for batch in super().__iter__():
            time.sleep(pause)
            yield batch

model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.3), torch.nn.Linear(8, 2))
result = train(
    model, Slow(data, 16, shuffle=True), objective="group_dro", optimizer="adam",
    epochs=12, checkpoint=path or None,
)
torch.save(result.model.state_dict(), out)
"""


def history(checkpoint):
    """The epochs in a checkpoint."""
    return (load_run(checkpoint, {}) or {"history": []})["history"]


@pytest.mark.slow
def test_a_killed_run_ends_as_one_that_was_not(tmp_path, monkeypatch):
    def again(checkpoint, out):
        """The same script in this process."""
        monkeypatch.setattr(sys, "argv", ["-c", str(checkpoint), str(tmp_path / out), "0"])
        exec(SCRIPT, {})
        return torch.load(tmp_path / out)

    checkpoint, never = tmp_path / "run.pt", tmp_path / "never.pt"
    command = [sys.executable, "-c", SCRIPT, str(checkpoint), str(never), "0.02"]
    victim = subprocess.Popen(command)
    deadline = time.monotonic() + 120
    while len(history(checkpoint)) < 2:
        assert victim.poll() is None, "it ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.02)
    time.sleep(0.05)  # into the middle of an epoch
    victim.send_signal(signal.SIGKILL)
    assert victim.wait() == -signal.SIGKILL
    assert len(history(checkpoint)) < 12
    resumed, whole = again(checkpoint, "resumed.pt"), again("", "whole.pt")
    assert not never.exists()
    assert list(resumed) == list(whole)
    for name, value in whole.items():
        assert torch.equal(resumed[name], value)


def test_another_run_is_not_gone_on_with(network, samples, loader, tmp_path):
    data, path = loader(samples()), tmp_path / "run.pt"
    train(network(), data, objective="irm", penalty=2.0, epochs=1, checkpoint=path)
    with pytest.raises(ValueError, match=r"a run with lr=0.01, but now it is 0.5; .*delete it"):
        train(network(), data, objective="irm", penalty=2.0, lr=0.5, checkpoint=path)
    with pytest.raises(ValueError, match=r"with parameters=\{'penalty': 2.0\}"):
        train(network(), data, objective="irm", penalty=3.0, checkpoint=path)


def forged(path, content):
    """A checkpoint of any content with the right checksum."""
    buffer = BytesIO()
    torch.save(content, buffer)
    digest = sha256(buffer.getvalue()).digest()
    path.write_bytes(b"isrlearn training run 2\n" + digest + buffer.getvalue())


@pytest.mark.parametrize("content", [b"", b"not a checkpoint", None])
def test_other_files_are_not_runs(network, samples, tmp_path, content):
    path = tmp_path / "run.pt"
    if content is None:
        torch.save(network().state_dict(), path)
    else:
        path.write_bytes(content)
    with pytest.raises(ModelFileError, match="is not a training run that this version can resume"):
        train(network(), [samples()], checkpoint=path)


class Payload:
    """An object whose unpickling creates a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (self.path.touch, ())


def test_a_checkpoint_runs_no_code(network, samples, tmp_path):
    path = tmp_path / "run.pt"
    forged(path, {"settings": Payload(tmp_path / "ran")})
    with pytest.raises(ModelFileError, match="not a training run"):
        train(network(), [samples()], checkpoint=path)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("content", [[], {}, {"settings": 3}, {"settings": {"lr": 1.0}}])
def test_a_forged_checkpoint_is_refused(network, samples, tmp_path, content):
    path = tmp_path / "run.pt"
    forged(path, content)
    with pytest.raises(ValueError, match=r"not a training run|holds a run with"):
        train(network(), [samples()], checkpoint=path)


def test_a_run_of_another_network_is_named(network, samples, tmp_path):
    path = tmp_path / "run.pt"
    train(network(), [samples()], epochs=1, checkpoint=path)
    with pytest.raises(ValueError, match=r"(?s)a run of another network: .*fc\.weight"):
        train(network(3), [samples()], epochs=2, checkpoint=path)


def test_scalars_of_numpy_and_torch_go_into_a_checkpoint(network, samples, tmp_path):
    path = tmp_path / "run.pt"
    settings = {"objective": "irm", "lr": np.float64(0.01), "penalty": torch.tensor(2.0)}
    settings |= {
        "random_state": np.int64(3),
        "decay_every": np.array(1),
        "anneal_steps": np.int8(1),
    }
    train(network(), [samples()], epochs=1, checkpoint=path, **settings)
    parts = train(network(), [samples()], epochs=3, checkpoint=path, **settings)
    whole = train(network(), [samples()], epochs=3, **settings)
    assert torch.equal(weights(whole.model), weights(parts.model))
    values = {k: v.item() if hasattr(v, "item") else v for k, v in settings.items()}
    assert train(network(), None, epochs=3, checkpoint=path, **values).history == whole.history


def test_damaged_checkpoints_are_refused():
    path = Path(__file__).parents[2] / "fuzz" / "checkpoints.py"
    assert list(runpy.run_path(str(path))["faults"](200)) == []


def test_the_best_epoch_comes_back(network, samples, loader):
    validation = loader(samples(seed=1, n=90))
    result = train(
        network(), loader(samples(), shuffle=True), validation=validation, epochs=8, lr=0.3
    )
    scores = [(record.worst, record.average) for record in result.history]
    assert scores[result.best_epoch - 1] == max(scores)
    report = evaluate(result.model, validation)
    assert (report.worst, report.average) == max(scores)


def test_the_best_average_comes_back(network, samples, loader):
    x, y, e = samples(seed=1, n=90, task="regression")
    result = train(
        network(1),
        loader(samples(task="regression"), shuffle=True),
        validation=[(x, y, e)],
        task="regression",
        select="average",
        epochs=6,
        lr=0.1,
    )
    best = result.history[result.best_epoch - 1]
    assert best.average == min(record.average for record in result.history)


def test_patience_ends_a_run(network, samples, loader):
    data = loader(samples())
    # Nothing is learned, so the first epoch stays the best.
    result = train(network(), data, validation=data, lr=0.0, epochs=50, patience=3)
    assert (len(result.history), result.best_epoch, result.stopped_early) == (4, 1, True)
    with pytest.raises(ValueError, match="patience=3 needs validation"):
        train(network(), data, patience=3)


def test_the_learning_rate_decays(network, samples):
    result = train(network(), [samples()], epochs=5, lr=0.1, decay=0.5, decay_every=2)
    assert [record.lr for record in result.history] == [0.1, 0.1, 0.05, 0.05, 0.025]


def test_frozen_parameters_stay(network, samples):
    model = network()
    model.body.requires_grad_(False)
    result = train(model, [samples()], epochs=2, weight_decay=0.1)
    assert torch.equal(result.model.body[0].weight, model.body[0].weight)
    assert not torch.equal(result.model.fc.weight, model.fc.weight)


def test_a_loader_with_workers(network, samples):
    data = TensorDataset(*samples())
    alone = train(network(), DataLoader(data, 60, shuffle=True), epochs=1)
    helped = train(network(), DataLoader(data, 60, shuffle=True, num_workers=1), epochs=1)
    assert torch.equal(weights(alone.model), weights(helped.model))


def test_no_bar_without_a_terminal(network, samples, capfd):
    train(network(), [samples()], epochs=1, progress=True)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epochs": 0}, "epochs=0 must be an integer, 1 or more"),
        ({"lr": -1}, "lr must be a number at least 0"),
        ({"optimizer": "lion"}, "optimizer must be one of 'sgd', 'adam'"),
        ({"select": "best"}, "select must be one of 'worst', 'average'"),
        ({"random_state": None}, "random_state=None must be an integer, 0 or more"),
        ({"decay_every": 1.5}, "decay_every=1.5 must be an integer, 1 or more"),
        ({"task": "ranking"}, "task must be one of"),
        ({"penalty": 1.0}, "no parameter 'penalty' with objective='erm'"),
    ],
)
def test_settings_are_checked_first(network, settings, message):
    with pytest.raises(ValueError, match=message):
        train(network(), None, **settings)


def test_what_does_not_fit_together_is_named(network, samples):
    x, y, e = samples()
    with pytest.raises(ValueError, match=r"outputs for 2 classes, 0 to 1; .*from 0 to 2"):
        train(network(), [samples(n_classes=3)])
    with pytest.raises(ValueError, match=r"integer codes, .*task='regression'"):
        train(network(), [(x, y.float(), e)])
    with pytest.raises(ValueError, match=r"integer codes, .*task='regression'"):
        train(network(), [(x, y.float(), e)], objective="reweighting")
    with pytest.raises(ValueError, match=r"one value per target; got shape \(240, 2\)"):
        train(network(), [samples(task="regression")], task="regression")
    with pytest.raises(ValueError, match="the loss is nan in batch 0 of epoch 1; lower lr"):
        train(network(), [(x * torch.nan, y, e)])
    with pytest.raises(ValueError, match="a generator does not"):
        train(network(), iter([(x, y, e)]), epochs=2)
    with pytest.raises(ValueError, match="the model returns a tuple"):
        train(nn.LSTM(6, 2), [(x, y, e)])


def test_persistent_workers_cannot_go_on(network, samples, tmp_path):
    data = DataLoader(TensorDataset(*samples()), 60, num_workers=1, persistent_workers=True)
    with pytest.raises(ValueError, match="persistent_workers=True"):
        train(network(), data, checkpoint=tmp_path / "run.pt")
