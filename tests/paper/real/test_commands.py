"""``isr bench`` on real data, from end to end: generated copies, files of features, real files."""

from __future__ import annotations

import json
import os
from operator import itemgetter

import numpy as np
import pytest

from isrlearn.cli.app import run
from isrlearn.datasets import EnvironmentData, Splits, make_waterbirds_like
from isrlearn.io import load_features, save_features
from isrlearn.paper.real import REAL, RealPlan, run_real
from isrlearn.paper.real import run as module
from isrlearn.paper.real.features import mapped

pytest.importorskip("torch")
REAL_FILES = pytest.mark.skipif(
    "ISRLEARN_DATA" not in os.environ, reason="ISRLEARN_DATA is not set"
)
FILES = ["result.json", "results.csv", "results.jsonl", "summary.csv", "table.md"]


def atomic_write(folder) -> list[str]:
    return sorted(p.name for p in folder.iterdir() if p.is_file() and not p.name.startswith("."))


@pytest.mark.parametrize("name", ["waterbirds", "celeba", "multinli"])
def test_networks_on_generated_copies(name, request, tmp_path, capsys):
    data = request.getfixturevalue(f"{name}_folder")
    methods = "original,isr-mean,reweighted,dfr"
    arguments = ["bench", name, "--data", str(data), "--seeds", "1", "--methods", methods]
    assert run([*arguments, "--out", str(tmp_path), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert not result["failures"]
    rows = {(c["trained_with"], c["method"]) for c in result["cells"]}
    assert len(rows) == 3 * 4
    assert all(0 <= c["mean"] <= 1 for c in result["cells"])
    assert atomic_write(tmp_path) == FILES
    page = (tmp_path / "table.md").read_text()
    assert f"Made by `isr bench {name} --data {data} --seeds 1 --methods {methods}`." in page
    assert "62.9 ± 5.4" in page if name == "waterbirds" else "paper" in page
    assert len(list((tmp_path / "features").iterdir())) == 3


@pytest.mark.slow
def test_an_encoder_on_a_generated_copy(waterbirds_folder, tmp_path):
    pytest.importorskip("efficientnet_lite_pytorch")
    arguments = ["--data", str(waterbirds_folder), "--network", "efficientnet-lite0"]
    options = ["--methods", "original,isr-mean", "--seeds", "1", "--out", str(tmp_path)]
    assert run(["bench", "clip", *arguments, *options]) == 0
    # One encoder for both ways of training a head.
    assert len(list((tmp_path / "features").iterdir())) == 1


def test_networks_are_made_from_their_seed():
    torch = pytest.importorskip("torch")
    from isrlearn.paper.real import networks

    cases = (
        (networks.convolutional, 10, torch.rand(2, 3, 28, 28), (2, 10)),
        (networks.perceptron, 17, torch.rand(2, 17), (2, 1)),
        (networks.word_average, 3, torch.ones(2, 5, 3, dtype=torch.long), (2, 3)),
    )
    for make, size, x, shape in cases:
        state = torch.get_rng_state()
        first, same, other = (make(size, seed)(x) for seed in (0, 0, 1))
        assert first.shape == shape
        assert torch.equal(first, same)
        assert not torch.equal(first, other)
        assert torch.equal(torch.get_rng_state(), state)


@pytest.fixture(scope="module")
def clip_like(tmp_path_factory):
    """Features in the shape of CLIP's, fewer rows than Waterbirds' to be quick."""
    splits = make_waterbirds_like(n_features=512, random_state=0)
    parts = [
        EnvironmentData(part.X[:n].astype(np.float32), part.y[:n], part.environments[:n])
        for part, n in ((splits.train, 2000), (splits.validation, 800), (splits.test, 1000))
    ]
    return save_features(tmp_path_factory.mktemp("features") / "clip.npz", Splits(*parts))


@pytest.mark.parametrize("name", ["waterbirds", "clip"])
def test_heads_on_a_file_of_features(name, clip_like, tmp_path, capsys):
    arguments = ["bench", name, "--features", str(clip_like), "--seeds", "1"]
    arguments += ["--methods", "original,isr-mean", "--out", str(tmp_path), "--json"]
    assert run(arguments) == 0
    result = json.loads(capsys.readouterr().out)
    at = {
        (c["trained_with"], c["method"]): c
        for c in result["cells"]
        if c["score"] == "worst_group_accuracy"
    }
    assert {row for row, _ in at} == {"erm", "reweighting"}
    assert at["erm", "isr-mean"]["mean"] > at["erm", "original"]["mean"] + 0.05


def test_files_of_features_are_the_runs(clip_like, tmp_path, capsys):
    rng = np.random.default_rng(1)
    noisy = mapped(load_features(clip_like), lambda X: X + rng.normal(size=X.shape))
    second = save_features(tmp_path / "second.npz", noisy)
    pages = []
    for files in ([clip_like], [clip_like, second]):
        arguments = [word for file in files for word in ("--features", str(file))]
        out = tmp_path / str(len(files))
        options = ["--methods", "original", "--trained-with", "erm", "--out", str(out)]
        assert run(["bench", "waterbirds", *arguments, *options]) == 0
        pages.append((out / "table.md").read_text(encoding="utf-8"))
        assert f"isr bench waterbirds {' '.join(arguments)} --trained-with erm" in pages[-1]
    rows = [[line for line in page.splitlines() if line.startswith("| ERM")] for page in pages]
    # The paper's own numbers stand in the next column.
    assert [[" ± " in line.split(" | ")[1] for line in lines] for lines in rows] == [
        [False, False],
        [True, True],
    ]
    assert "One file, so no spread" in pages[0]
    assert "over 2 files" in pages[1]
    assert f"Run with features = {clip_like}.\n" in pages[0]
    seeds = (tmp_path / "2" / "results.csv").read_text(encoding="utf-8")
    assert "waterbirds,erm,original,average_accuracy,1," in seeds
    capsys.readouterr()


def test_a_file_of_features_that_changed_is_scored_again(clip_like, tmp_path):
    path, errors, data = tmp_path / "features.npz", [], load_features(clip_like)
    for width in (64, 2, 2):
        save_features(path, mapped(data, itemgetter((slice(None), slice(width)))))
        plan = RealPlan("waterbirds", None, ("erm",), ("original",), {"features": (str(path),)})
        errors.append([record.value for record in run_real(plan, tmp_path / "out").records])
    assert errors[0] != errors[1] == errors[2]


@pytest.mark.parametrize("name", ["waterbirds", "clip"])
def test_a_fit_that_depends_on_no_seed_is_not_repeated(name, clip_like, tmp_path, capsys):
    arguments = ["bench", name, "--features", str(clip_like), "--out", str(tmp_path / "out")]
    assert run([*arguments, "--seeds", "3"]) == 2
    assert "there are 1 sets of features" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(("name", "n_classes"), [("celeba", 2), ("multinli", 3)])
def test_features_of_the_other_shapes(name, n_classes, tmp_path):
    rng = np.random.default_rng(0)
    d = {"celeba": 2048, "multinli": 768}[name]
    n = 360
    y, e = rng.integers(0, n_classes, n), rng.integers(0, 2, n)
    X = rng.normal(size=(n, d)).astype(np.float32)
    X[:, :n_classes] += 3 * np.eye(n_classes)[y]
    path = tmp_path / "features.npz"
    np.savez(path, features=X, y=y, group=2 * y + e, split=np.arange(n) % 3)
    options = ["--methods", "isr-mean", "--trained-with", "erm", "--seeds", "1"]
    options += ["--features", str(path), "--out", str(tmp_path / "out")]
    assert run(["bench", name, *options]) == 0


@REAL_FILES
def test_law_school_is_recorded_resumed_and_the_same_again(tmp_path, monkeypatch):
    plan = RealPlan(
        "law-school", 2, ("erm",), ("original", "isr-regression"), {"epochs": 10, "strength": 0.6}
    )
    first = run_real(plan, tmp_path / "a")
    assert not first.failures
    assert [r.key for r in first.records] == plan.keys()
    again = run_real(plan, tmp_path / "b")
    assert [r.value for r in again.records] == [r.value for r in first.records]
    monkeypatch.setattr(module, "cached_features", None)
    assert run_real(plan, tmp_path / "a").records == first.records


@REAL_FILES
def test_a_method_added_later_trains_nothing(tmp_path, monkeypatch):
    options = {"epochs": 3}
    run_real(RealPlan("law-school", 1, ("erm",), ("original",), options), tmp_path)
    monkeypatch.setattr("isrlearn.paper.real.experiments.trained_features", None)
    later = RealPlan("law-school", 1, ("erm",), ("original", "refit"), options)
    result = run_real(later, tmp_path)
    assert len(result.records) == 4
    assert not result.failures


@REAL_FILES
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options", "method"),
    [
        ("mc-cmnist", {"n_samples": 9000, "epochs": 1}, "isr-own-head"),
        ("mc-cmnist", {"n_samples": 600, "epochs": 1, "network": "published"}, "original"),
        (
            "rcfmnist",
            {"n_train": 500, "n_validation": 300, "n_test": 300, "epochs": 1},
            "isr-regression",
        ),
    ],
)
def test_image_experiments_run(name, options, method, tmp_path):
    rows, methods = tuple(REAL[name].trained_with), tuple({"original": 1, method: 1})
    result = run_real(RealPlan(name, 1, rows, methods, options), tmp_path)
    assert not result.failures
    # Of the oracle, which comes last, only its own head is shown.
    cells = (len(rows) - 1) * len(methods) + 1
    assert len(result.records) == cells * len(REAL[name].scores)
    assert {r.key.method for r in result.records if r.key.optimizer == "oracle"} == {"original"}
    table = result.tables()[0].rows
    assert table[-1][0] == "Oracle"
    assert [bool(cell) for cell in table[-1][1:3]] == [True, True]
    assert not any(table[-1][3:])


def test_failures_are_told_and_tried_again(tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    arguments = ["bench", "waterbirds", "--data", str(tmp_path / "empty"), "--seeds", "1"]
    assert run([*arguments, "--out", str(tmp_path / "out")]) == 1
    assert "metadata.csv does not exist: download and unpack" in capsys.readouterr().err
    assert len((tmp_path / "out" / "results.jsonl").read_text().splitlines()) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--methods", "magic"], "unknown method 'magic'; there are: original, isr-regression"),
        (["--trained-with", "adam"], "unknown objective 'adam'; there are: erm, reweighting"),
        (["--seeds", "0"], "0 is not in the range x>=1"),
    ],
)
def test_bad_options(options, message, tmp_path, capsys):
    assert run(["bench", "law-school", *options, "--out", str(tmp_path)]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mc-cmnist", "unknown network 'resnet-18'; there are: small, published"),
        ("rcfmnist", "unknown network 'resnet-18'; there are: small, resnet18"),
        ("clip", "unknown network 'resnet-18'; there are: clip, efficientnet-lite0"),
    ],
)
def test_an_unknown_network_is_not_replaced_by_another(name, message, tmp_path, capsys):
    arguments = ["bench", name, "--network", "resnet-18", "--seeds", "1"]
    assert run([*arguments, "--out", str(tmp_path)]) == 2
    assert message in capsys.readouterr().err


def test_group_dro_needs_a_network(clip_like, tmp_path, capsys):
    arguments = ["bench", "waterbirds", "--features", str(clip_like), "--seeds", "1"]
    assert run([*arguments, "--trained-with", "group_dro", "--out", str(tmp_path)]) == 1
    assert "are trained with erm or reweighting" in capsys.readouterr().err
