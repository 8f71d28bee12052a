"""``isr fit``, ``predict``, ``evaluate``, ``inspect``, ``export``, ``datasets``."""

from __future__ import annotations

import csv
import errno
import json
import os
import signal
import subprocess
import sys

import click
import numpy as np
import onnxruntime
import pyarrow.parquet as pq
import pytest

import isrlearn
from isrlearn import ISRClassifier, compare_models
from isrlearn.cli.app import run
from isrlearn.cli.fit import fit
from isrlearn.core.methods import METHODS
from isrlearn.datasets import (
    EnvironmentData,
    load_digits_on_paper,
    make_gaussian_environments,
)
from isrlearn.estimators.heads import HEADS
from isrlearn.io import read_model, read_table, save, write_columns
from isrlearn.metrics import group_report

COLUMNS = ("--label", "label", "--environment", "environment")
REGRESSION = ("--task", "regression", "--label", "f0", "--features", "f1:f3")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Small tables of all kinds: three environments, two classes, one spurious direction."""
    folder = tmp_path_factory.mktemp("tables")
    parts = {"train": 0, "test": 1}
    for part, number in parts.items():
        data = sample(number)
        columns = {f"f{i}": data.X[:, i] for i in range(4)}
        labels = {"label": names(data.y), "environment": data.environments}
        for suffix in ("csv", "tsv", "parquet"):
            write_columns(folder / f"{part}.{suffix}", {**columns, **labels})
        write_columns(folder / f"{part}.npz", {"X": data.X, **labels})
        np.save(folder / f"{part}.npy", data.X)
        write_columns(folder / f"{part}.labels.csv", labels)
    return folder


def sample(part):
    """Every other row of one sample: part 0 to train, part 1 to test."""
    data = make_gaussian_environments(400, 3, n_invariant=3, n_spurious=1, random_state=0)
    return EnvironmentData(data.X[part::2], data.y[part::2], data.environments[part::2])


def names(y):
    return np.array(["no", "yes"])[y]


@pytest.fixture(scope="module")
def model(folder):
    """A model fitted on those tables, by the library."""
    table = read_table(folder / "train.csv", label="label", environment="environment")
    clf = ISRClassifier().fit(table.X, table.y, environments=table.environments)
    columns = {"columns": {"label": "label", "environment": "environment"}}
    save(clf, folder / "model.isr", feature_names=table.feature_names, metadata=columns)
    return folder / "model.isr"


FORMATS = ["csv", "tsv", "parquet", "npz", "npy"]


@pytest.mark.parametrize("suffix", FORMATS)
def test_fit_is_the_library_s_fit(well, folder, model, tmp_path, suffix):
    out = tmp_path / "model.isr"
    printed = well("fit", folder / f"train.{suffix}", *COLUMNS, "--no-search", "--out", out)
    fitted, expected = isrlearn.load(out), isrlearn.load(model)
    np.testing.assert_allclose(fitted.coef_, expected.coef_, rtol=1e-12)
    assert f"{expected.n_spurious_} of 4 directions" in printed
    assert f"The model is in {out}." in printed
    assert read_model(out).feature_names == ("f0", "f1", "f2", "f3")


def test_settings_are_searched_by_default(well, folder, tmp_path):
    out = tmp_path / "model.isr"
    printed = well("fit", folder / "train.csv", *COLUMNS, "--out", out)
    table = read_table(folder / "train.csv", label="label", environment="environment")
    expected = isrlearn.ISRClassifierCV().fit(table.X, table.y, table.environments)
    np.testing.assert_allclose(isrlearn.load(out).coef_, expected.coef_, rtol=1e-9)
    assert f"Best of {len(expected.cv_results_['params'])} settings" in printed


def test_a_threshold_that_was_moved_is_named(well, tmp_path):
    moved = []
    for seed in (0, 1):
        rng = np.random.default_rng(seed)
        y, e, X = (rng.random(600) > 0.5).astype(int), np.arange(600) % 3, rng.normal(size=(600, 3))
        X += np.column_stack([y, 2 * e * (1 - y), np.zeros(600)])
        columns = {f"f{i}": column for i, column in enumerate(X.T)}
        write_columns(tmp_path / "t.csv", columns | {"label": y, "environment": e})
        printed = well("fit", tmp_path / "t.csv", *COLUMNS, "--out", tmp_path / "m.isr")
        moved.append(read_model(tmp_path / "m.isr").metadata["search"]["threshold"] is not None)
        assert ("the threshold between classes was moved" in printed) == moved[-1]
        assert ("threshold moved by" in well("inspect", tmp_path / "m.isr")) == moved[-1]
    assert moved == [True, False]


@pytest.mark.parametrize("suffix", FORMATS)
def test_predict_and_evaluate_take_every_format(well, folder, model, tmp_path, suffix):
    table = read_table(folder / "test.csv", label="label", environment="environment")
    clf = isrlearn.load(model)
    out = tmp_path / "predictions.npz"
    well("predict", model, folder / f"test.{suffix}", "--out", out)
    with np.load(out) as columns:
        assert columns["prediction"].tolist() == clf.predict(table.X).tolist()
        np.testing.assert_allclose(columns["probability_yes"], clf.predict_proba(table.X)[:, 1])
    record = json.loads(well("evaluate", model, folder / f"test.{suffix}", "--json"))
    report = group_report(table.y, clf.predict(table.X), environments=table.environments)
    assert record["model"]["worst"] == report.worst
    assert record["model"]["weighted_average"] is not None
    assert record["comparison"] is None


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet", "npz"])
def test_predictions_are_written_in_every_format(well, folder, model, tmp_path, suffix):
    out = tmp_path / f"p.{suffix}"
    record = json.loads(well("predict", model, folder / "test.csv", "--out", out, "--json"))
    assert record["rows"] == 600
    clf = isrlearn.load(model)
    expected = clf.predict(read_table(folder / "test.csv", features="f*").X).tolist()
    if suffix == "npz":
        with np.load(out) as columns:
            found = columns["prediction"].tolist()
    elif suffix == "parquet":
        found = pq.read_table(out)["prediction"].to_pylist()
    else:
        with open(out, newline="") as file:
            separator = "," if suffix == "csv" else "\t"
            found = [row["prediction"] for row in csv.DictReader(file, delimiter=separator)]
    assert found == expected


def test_columns_are_matched_by_name(well, folder, model, tmp_path):
    table = read_table(folder / "test.csv", features="f*")
    mixed = {"extra": np.arange(600), "f3": 0, "f1": 0, "word": np.array(["a"] * 600)}
    mixed |= {"f0": 0, "f2": 0}
    for i in range(4):
        mixed[f"f{i}"] = table.X[:, i]
    write_columns(tmp_path / "mixed.csv", mixed)
    for name, source in {"a.npz": folder / "test.csv", "b.npz": tmp_path / "mixed.csv"}.items():
        well("predict", model, source, "--out", tmp_path / name)
    with np.load(tmp_path / "a.npz") as a, np.load(tmp_path / "b.npz") as b:
        np.testing.assert_array_equal(a["probability_no"], b["probability_no"])


def test_evaluate_says_whether_the_model_is_worth_using(well, folder, model):
    arguments = ("evaluate", model, folder / "test.csv")
    assert "Add --baseline TRAIN.csv" in well(*arguments)
    arguments += ("--baseline", folder / "train.parquet")
    record = json.loads(well(*arguments, "--json"))["comparison"]
    train, test = (
        read_table(folder / f"{part}.csv", label="label", environment="environment")
        for part in ("train", "test")
    )
    rows = train.X, train.y, train.environments
    found = compare_models(*rows, model=ISRClassifier().fit(*rows), test=test)
    assert record["headline"] == found.headline
    assert record["best"] == found.best
    printed = well(*arguments)
    assert printed.startswith(found.headline)
    assert all(sentence in printed for sentence in found.sentences)
    assert str(found.change).splitlines()[-1] in printed
    for name, report in found.reports.items():
        assert name in printed
        for score in (report.worst, report.average, *(g.value for g in report.groups)):
            assert f"{score:.4f}" in printed


def test_evaluate_says_that_a_model_has_seen_the_rows(well, folder, model):
    for table, seen in (("train.parquet", True), ("test.csv", False)):
        out = well("evaluate", model, folder / table)
        assert out.startswith("The model was fitted on these rows") == seen
        assert (
            json.loads(well("evaluate", model, folder / table, "--json"))["training_rows"] == seen
        )


def test_the_other_models_do_not_depend_on_the_evaluated_one(well, folder, tmp_path):
    records = []
    for i, given in enumerate(((), ("--C", "1e-6", "--weights", "group", "--components", "2"))):
        out = tmp_path / f"{i}.isr"
        well("fit", folder / "train.csv", *COLUMNS, "--out", out, *given)
        arguments = ("evaluate", out, folder / "test.csv", "--baseline", folder / "train.csv")
        records.append(json.loads(well(*arguments, "--json"))["comparison"]["models"])
    assert records[0].pop("model") != records[1].pop("model")
    assert records[0] == records[1]


def test_settings_reach_the_estimator(well, folder, tmp_path):
    out = tmp_path / "m.isr"
    given = ("--method", "joint", "--n-spurious", "2", "--scale", "0.25", "--components", "3")
    given += ("--head", "lda", "--level", "0.1", "--weights", "class", "--features", "f0:f3")
    well("fit", folder / "train.csv", *COLUMNS, "--out", out, *given)
    parameters = isrlearn.load(out).get_params()
    expected = {"method": "joint", "n_spurious": 2, "scale": 0.25, "n_components": 3}
    expected |= {"head": "lda", "level": 0.1, "weights": "class"}
    assert {name: parameters[name] for name in expected} == expected
    given = ("--components", "none", "--C", "0.5", "--weights", "group")
    well("fit", folder / "train.csv", *COLUMNS, "--out", out, *given)
    parameters = isrlearn.load(out).get_params()
    expected = {"n_components": None, "C": 0.5, "weights": "group"}
    assert {name: parameters[name] for name in expected} == expected
    well("fit", folder / "train.csv", *COLUMNS, "--out", out, "--n-spurious", "permutation")
    assert isrlearn.load(out).n_spurious == "permutation"


def test_choices_are_the_library_s():
    kinds = {option.name: option.type for option in fit.params}
    choices = {name: set(t.choices) for name, t in kinds.items() if isinstance(t, click.Choice)}
    assert choices["method"] == {m for m in METHODS if METHODS[m].uses_classes}
    assert choices["variant"] == {"authors", *(v for m in METHODS.values() for v in m.variants)}
    assert choices["head"] == set(HEADS)


@pytest.mark.parametrize(
    ("scale", "text"),
    [
        ("0", "1 of 4 directions was removed (as requested)."),
        ("0.25", "1 of 4 directions was scaled to 25% (as requested)."),
        ("1", "1 of 4 directions was left unchanged (as requested)."),
    ],
)
def test_what_became_of_the_directions(well, folder, tmp_path, scale, text):
    fit = ("fit", folder / "train.csv", *COLUMNS, "--out", tmp_path / "m.isr")
    assert text in well(*fit, "--n-spurious", "1", "--scale", scale)
    fate = {"0": "removed", "0.25": "scaled to 25%", "1": "left unchanged"}[scale]
    assert f"directions {fate} " in well("inspect", tmp_path / "m.isr")


def test_what_is_said_where_classes_shift_differently(well, tmp_path):
    rng, lines = np.random.default_rng(0), ["a,b,c,ill,site"]
    for i in range(1200):
        site, ill = i % 2, i // 2 % 2
        a, b, c = rng.normal([2 * ill, 3 * site, site * ill])
        lines.append(f"{a},{b},{c},{'yes' if ill else 'no'},{'AB'[site]}")
    (tmp_path / "t.csv").write_text("\n".join(lines))
    fit = ("fit", tmp_path / "t.csv", "--label", "ill", "--environment", "site", "--no-search")
    out = " ".join(well(*fit, "--out", tmp_path / "m.isr").split())
    assert out.startswith(
        "2 of 3 directions shift between environments (tested at level 0.01); the one that shifts "
        "most was removed: ISR-Mean removes fewer than there are environments, and one always "
        "stays."
    )
    shown = " ".join(well("inspect", tmp_path / "m.isr").split())
    assert "2 shift, ISR-Mean removes fewer than there are environments" in shown


@pytest.mark.filterwarnings("default::UserWarning")
@pytest.mark.parametrize(
    ("features", "task", "why"),
    [
        ("b", "classification", "one always stays"),
        ("a,b", "regression", "with two environments none can be held out to see whether removal"),
    ],
)
def test_it_is_said_why_a_shift_is_kept(isr, tmp_path, features, task, why):
    rng, lines = np.random.default_rng(0), ["a,b,ill,site"]
    for i in range(400):
        site, ill = i % 2, i // 2 % 2
        a, b = rng.normal([2 * ill, 3 * site])
        lines.append(f"{a},{b},{ill},{'AB'[site]}")
    (tmp_path / "t.csv").write_text("\n".join(lines))
    fit = ("fit", tmp_path / "t.csv", "--label", "ill", "--environment", "site", "--no-search")
    given = ("--features", features, "--task", task, "--out", tmp_path / "m.isr")
    code, out, _ = isr(*fit, *given)
    assert code == 0
    assert f"and was kept: {why}" in out


def test_groups_without_training_rows_are_named(well, tmp_path):
    data = sample(0)
    kept = (data.y != data.y[0]) | (data.environments != data.environments[0])
    for name, rows in (("all", slice(None)), ("some", kept)):
        labels = {"label": names(data.y)[rows], "environment": data.environments[rows]}
        write_columns(tmp_path / f"{name}.npz", {"X": data.X[rows], **labels})
    fit = (*COLUMNS, "--no-search", "--out", tmp_path / "m.isr")
    out = " ".join(well("fit", tmp_path / "some.npz", *fit).split())
    group = f"class {names(data.y).tolist()[0]!r} in {data.environments.tolist()[0]!r}"
    assert f"Groups without training rows: {group}. Only a test table can show their" in out
    scored = well("fit", tmp_path / "some.npz", *fit, "--test", tmp_path / "all.npz")
    assert f"Groups without training rows: {group}." in " ".join(scored.split())
    assert "Only a test table" not in scored
    assert "without training rows" not in well("fit", tmp_path / "all.npz", *fit)


def test_what_is_said_where_nothing_shifts(well, tmp_path):
    rng, lines = np.random.default_rng(0), ["dose,noise,ill,site"]
    for i in range(300):
        dose, noise = rng.normal(size=2)
        lines.append(f"{dose + i % 2},{noise},{'yes' if i % 2 else 'no'},{'AB'[i // 2 % 2]}")
    (tmp_path / "t.csv").write_text("\n".join(lines))
    fit = ("fit", tmp_path / "t.csv", "--label", "ill", "--environment", "site", "--no-search")
    out = well(*fit, "--out", tmp_path / "m.isr")
    assert out.startswith("Nothing shifts: nothing was removed (tested at level 0.01).")
    assert "column  predictions \n" in out
    asked = well(*fit, "--n-spurious", "0", "--out", tmp_path / "none.isr")
    assert asked.startswith("Nothing was removed (as requested).")


def test_rows_that_are_read_in_blocks_are_not_searched(folder, tmp_path, capsys):
    out = str(tmp_path / "m.isr")
    for name, said in (("train.npy", True), ("train.csv", False)):
        assert run(["fit", str(folder / name), *COLUMNS, "--out", out, "--force"]) == 0
        assert ("defaults, without a search" in capsys.readouterr().err) == said


def test_settings_are_chosen_by_the_worst_group(well, folder, tmp_path):
    out = tmp_path / "m.isr"
    fit = ("fit", folder / "train.csv", *COLUMNS, "--out", out, "--C", "0.1", "--scale", "0")
    record = json.loads(well(*fit, "--validation", folder / "test.npz", "--json"))
    assert record["metadata"]["search"]["by"] == "validation table"
    assert record["metadata"]["search"]["n_settings"] > 1
    assert record["parameters"]["C"] == 0.1
    validation = record["metadata"]["metrics"]["validation"]
    assert validation["worst"] == record["metadata"]["search"]["best_score"]
    printed = well(*fit, "--search", "--weights", "none")
    assert "Best of" in printed


def test_regression(well, tmp_path):
    data = make_gaussian_environments(
        100, 3, n_invariant=3, n_spurious=1, task="regression", random_state=0
    )
    columns = {f"x{i}": data.X[:, i] for i in range(4)}
    write_columns(tmp_path / "t.csv", {**columns, "y": data.y, "e": data.environments})
    out = tmp_path / "m.isr"
    fit = ("fit", tmp_path / "t.csv", "--label", "y", "--environment", "e", "--out", out)
    printed = well(*fit, "--task", "regression", "--alpha", "2")
    assert "rmse" in printed
    assert "class" not in well("inspect", out).lower()
    assert isrlearn.load(out).alpha == 2
    record = json.loads(
        well(
            "evaluate",
            out,
            tmp_path / "t.csv",
            "--metric",
            "r2",
            "--json",
            "--baseline",
            tmp_path / "t.csv",
        )
    )
    assert 0 < record["comparison"]["models"]["plain"]["report"]["average"] <= 1
    well("predict", out, tmp_path / "t.csv", "--out", tmp_path / "p.csv")
    assert (tmp_path / "p.csv").read_text().startswith("prediction\n")


def test_inspect(well, model):
    record = json.loads(well("inspect", model, "--json"))
    assert record == read_model(model).to_dict()
    printed = well("inspect", model)
    assert record["sha256"] in printed
    assert "f0, f1, f2, f3" in printed
    for n in np.ravel(record["count"]):
        assert f"{n:g}" in printed


def test_diagnose(well, mistake, folder):
    arguments = ("diagnose", folder / "train.csv", *COLUMNS)
    table = read_table(folder / "train.csv", label="label", environment="environment")
    names = table.feature_names
    found = isrlearn.diagnose(table.X, table.y, table.environments, feature_names=names)
    assert well(*arguments).strip() == str(found).strip()
    record = json.loads(well(*arguments, "--json"))
    assert record["recommendation"]["summary"] == found.recommendation.summary
    assert "level must be" in mistake(*arguments, "--level", "2")
    assert "no label column 'x'" in mistake(
        "diagnose", folder / "train.csv", "--label", "x", "--environment", "environment"
    )


def test_some_columns_of_an_array(well, mistake, folder, tmp_path):
    out = tmp_path / "m.isr"
    well("fit", folder / "train.npy", *COLUMNS, "--features", "f1:f3", "--out", out)
    predict = ("predict", out, folder / "test.npy", "--out", tmp_path / "a.npz")
    assert "an array must hold exactly these" in mistake(*predict)
    well(*predict, "--features", "f1:f3")
    well("predict", out, folder / "test.csv", "--out", tmp_path / "b.npz")
    with np.load(tmp_path / "a.npz") as a, np.load(tmp_path / "b.npz") as b:
        np.testing.assert_array_equal(a["prediction"], b["prediction"])


def test_labels_in_files_of_their_own(well, mistake, folder, tmp_path):
    data = sample(0)
    for name, values in {"y.npy": names(data.y), "e.npy": data.environments}.items():
        np.save(tmp_path / name, values)
    columns = ("--label", tmp_path / "y.npy", "--environment", tmp_path / "e.npy")
    out = tmp_path / "m.isr"
    fit = ("fit", folder / "train.npy", *columns, "--no-search", "--out", out)
    well(*fit)
    # They belong to the training table: another one must name its own.
    assert "does not name the label column" in mistake("evaluate", out, folder / "test.npz")
    well("evaluate", out, folder / "test.npz", *COLUMNS)
    line = mistake(*fit, "--validation", folder / "test.npy")
    assert "labels and environments must be columns" in line


def test_export(well, folder, model, tmp_path):
    X = read_table(folder / "test.csv", features="f*").X.astype(np.float32)
    labels = isrlearn.load(model).predict(X).tolist()
    well("export", model, "--to", "onnx", "--out", tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    assert session.run(["label"], {"X": X})[0].tolist() == labels
    record = json.loads(
        well("export", model, "--to", "torch", "--out", tmp_path / "m.safetensors", "--json")
    )
    assert record == {"kind": "torch", "out": str(tmp_path / "m.safetensors")}
    well("export", model, "--to", "numpy", "--precision", "float32", "--out", tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz") as arrays:
        assert arrays["coef"].dtype == np.float32
        assert arrays["feature_names"].tolist() == ["f0", "f1", "f2", "f3"]


def test_datasets(well, mistake, tmp_path):
    listed = json.loads(well("datasets", "list", "--json"))
    assert "digits-on-paper" in {entry["name"] for entry in listed}
    assert "digits-on-paper" in well("datasets", "list")
    paths = json.loads(
        well("datasets", "write", "digits-on-paper", "--out", tmp_path / "new", "--json")
    )
    table = read_table(paths["test"], label="label", environment="environment")
    expected = load_digits_on_paper().test
    np.testing.assert_array_equal(table.X, expected.X)
    np.testing.assert_array_equal(table.y, expected.y)
    assert "there is no data set 'mnist'" in mistake("datasets", "write", "mnist", "--out", "x")


def test_the_story_of_the_digits_in_three_commands(well, tmp_path):
    """The same numbers from text and from Parquet, and the worst group is better off."""
    records = []
    for kind in ("csv", "parquet"):
        write = ("datasets", "write", "digits-on-paper", "--format", kind, "--json")
        paths = json.loads(well(*write, "--out", tmp_path / kind))
        out = tmp_path / f"{kind}.isr"
        well("fit", paths["train"], *COLUMNS, "--out", out)
        arguments = ("evaluate", out, paths["test"], "--baseline", paths["train"], "--json")
        records.append(json.loads(well(*arguments)))
    assert records[0] == records[1]
    assert (
        records[0]["model"]["worst"]
        > records[0]["comparison"]["models"]["plain"]["report"]["worst"] + 0.1
    )


class TestMistakes:
    def fit(self, folder, tmp_path, table="train.csv", label="label", environment="environment"):
        columns = ("--label", label, "--environment", environment)
        return ("fit", folder / table, *columns, "--out", tmp_path / "m.isr")

    def test_missing_file(self, mistake, folder, model, tmp_path):
        line = mistake(*self.fit(folder, tmp_path, table="trian.csv"))
        assert "there is no such file; did you mean 'train.csv'" in line
        out = ("--out", tmp_path / "p.csv")
        line = mistake("predict", folder / "no.isr", folder / "test.csv", *out)
        assert line == f"isr: No such file or directory: {folder / 'no.isr'}"
        assert "no such file" in mistake("evaluate", model, folder / "no.csv")
        assert "No such file" in mistake("inspect", folder / "no.isr")

    def test_missing_column(self, mistake, folder, tmp_path):
        line = mistake(*self.fit(folder, tmp_path, label="lable"))
        assert line.endswith("there is no label column 'lable'; did you mean 'label'?")
        line = mistake(*self.fit(folder, tmp_path, environment="hospital"))
        assert "there is no environment column 'hospital'; there are 'f0'" in line
        line = mistake(*self.fit(folder, tmp_path), "--features", "g*")
        assert "no column matches 'g*'" in line

    def test_no_environment_column(self, mistake, folder, tmp_path):
        line = mistake("fit", folder / "train.csv", "--label", "label", "--out", tmp_path / "m")
        assert line == "Error: Missing option '--environment'."

    def test_one_environment(self, mistake, tmp_path):
        columns = {"x": np.arange(8.0), "y": np.arange(8) % 2, "e": np.full(8, "A")}
        write_columns(tmp_path / "t.csv", columns)
        line = mistake(*self.fit(tmp_path, tmp_path, "t.csv", "y", "e"))
        assert "the rows have 1 known environment(s), 'A'" in line
        columns["e"] = np.full(8, "")
        write_columns(tmp_path / "t.csv", columns)
        line = mistake(*self.fit(tmp_path, tmp_path, "t.csv", "y", "e"))
        assert "the rows have 0 known environment(s)" in line

    def test_one_class(self, mistake, tmp_path):
        columns = {"x": np.arange(8.0), "y": np.full(8, "a"), "e": np.arange(8) % 2}
        write_columns(tmp_path / "t.csv", columns)
        line = mistake(*self.fit(tmp_path, tmp_path, "t.csv", "y", "e"))
        assert "y has only one class, 'a'" in line

    def test_labels_that_are_none(self, mistake, folder, tmp_path):
        (tmp_path / "t.csv").write_text("x,y,e\n1,a,0\n2,,1\n")
        line = mistake(*self.fit(tmp_path, tmp_path, "t.csv", "y", "e"))
        assert "the label is missing in row 2" in line
        line = mistake(*self.fit(folder, tmp_path, label="f0"), "--features", "f1:f3")
        assert "look continuous, not like classes" in line
        line = mistake(*self.fit(folder, tmp_path), "--task", "regression")
        assert "a regression needs numbers as labels; got 'no'" in line
        rows = [f"{i % 7},name{i},{i % 2}" for i in range(50)]
        (tmp_path / "t.csv").write_text("\n".join(["x,y,e", *rows]))
        line = mistake(*self.fit(tmp_path, tmp_path, "t.csv", "y", "e"))
        assert "50 different labels in 50 rows" in line
        line = mistake("diagnose", tmp_path / "t.csv", "--label", "y", "--environment", "e")
        assert "50 different labels in 50 rows" in line
        assert "regression" not in line

    @pytest.mark.parametrize("command", ["fit", "diagnose"])
    def test_numbers_that_are_not_classes(self, mistake, tmp_path, command):
        columns = {"x": np.arange(50) % 7, "y": np.arange(50) * 3, "e": np.arange(50) % 2}
        write_columns(tmp_path / "t.csv", columns)
        given = self.fit(tmp_path, tmp_path, "t.csv", "y", "e")
        given = given if command == "fit" else (command, *given[1:6])
        line = mistake(*given)
        assert "50 different labels in 50 rows" in line
        assert "for a regression fit with --task regression" in line

    @pytest.mark.parametrize("role", ["--environment", "--clusters"])
    def test_a_column_with_two_roles(self, mistake, folder, tmp_path, role):
        line = mistake(*self.fit(folder, tmp_path), role, "label")
        assert f"label and {role[2:]} must be two columns; both are 'label'" in line

    def test_unreadable_table(self, mistake, folder, tmp_path):
        content = (folder / "train.parquet").read_bytes()
        (tmp_path / "t.parquet").write_bytes(content[: len(content) // 2])
        line = mistake(*self.fit(tmp_path, tmp_path, "t.parquet"))
        assert "t.parquet: cannot be read" in line

    def test_output_that_cannot_be_written(self, mistake, folder, model, tmp_path):
        fit = self.fit(folder, tmp_path)[:-1]
        line = mistake(*fit, tmp_path / "no" / "m.isr")
        assert line == f"isr: There is no such folder: {tmp_path / 'no'}"
        assert "is a directory" in mistake(*fit, tmp_path)
        predict = ("predict", model, folder / "test.csv", "--out")
        assert "must end in .csv, .tsv, .parquet, .npz" in mistake(*predict, tmp_path / "p.xlsx")
        assert "no such folder" in mistake(*predict, tmp_path / "no" / "p.csv")
        export = ("export", model, "--to", "torch", "--out", tmp_path / "m.bin")
        assert "must end in .safetensors, .pt, .pth" in mistake(*export)
        assert not list(tmp_path.iterdir())

    def test_an_input_is_never_overwritten(self, mistake, folder, model, tmp_path):
        for name in ("train.csv", "test.csv", "model.isr"):
            (tmp_path / name).write_bytes((folder / name).read_bytes())
        train, test, old = (tmp_path / name for name in ("train.csv", "test.csv", "model.isr"))
        before = {path: path.read_bytes() for path in tmp_path.iterdir()}
        fit = self.fit(tmp_path, tmp_path)[:-1]
        new = tmp_path / "m.isr"
        commands = [
            (*fit, train),
            (*fit, new, "--validation", test, "--report", test),
            (*fit, test, "--report", new, "--test", test),
            (*fit, test, "--labels", test),
            ("predict", old, test, "--out", test),
            ("predict", old, test, "--out", old),
            ("export", old, "--to", "numpy", "--out", old),
            ("report", old, test, "--train", train, "--out", train),
        ]
        for command in commands:
            assert "this is an input of the same command" in mistake(*command, "--force")
        line = mistake(*fit, new, "--report", tmp_path / "." / "m.isr")
        assert "--report and --out are the same file" in line
        assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before

    def test_an_input_is_known_by_any_name(self, mistake, folder, tmp_path, monkeypatch):
        for name in ("train.npy", "train.labels.csv"):
            (tmp_path / name).write_bytes((folder / name).read_bytes())
        np.save(tmp_path / "y.npy", names(sample(0).y))
        (tmp_path / "symbolic").symlink_to("train.npy")
        os.link(tmp_path / "train.npy", tmp_path / "hard")
        before = {path: path.read_bytes() for path in tmp_path.iterdir()}
        monkeypatch.chdir(tmp_path)
        fit = ("fit", "train.npy", *COLUMNS, "--force", "--out")
        # The labels next to an array are read without being named.
        for out in ("symbolic", "hard", tmp_path / "train.npy", "train.labels.csv"):
            assert "this is an input of the same command" in mistake(*fit, out)
        label = ("--label", "./y.npy")
        assert "an input of the same command" in mistake(*fit, tmp_path / "y.npy", *label)
        assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before

    def test_another_kind_of_file_is_replaced_by_force_only(
        self, well, mistake, folder, model, tmp_path
    ):
        precious, test = tmp_path / "precious.csv", folder / "test.csv"
        commands = [
            (*self.fit(folder, tmp_path)[:-1], precious),
            (*self.fit(folder, tmp_path), "--report", precious),
            ("predict", model, test, "--out", precious),
            ("report", model, test, "--out", precious),
        ]
        for command in commands:
            precious.write_text("a,b\n1,2\n")
            line = mistake(*command)
            assert "precious.csv: a file of another kind exists already" in line
            assert "--force" in line
            assert precious.read_text() == "a,b\n1,2\n"
            assert list(tmp_path.iterdir()) == [precious]
        predict = commands[2]
        well(*predict, "--force")
        well(*predict)  # predictions replace predictions
        assert precious.read_text().startswith("prediction,")

    def test_folders_of_others_are_left_alone(self, well, mistake, tmp_path):
        precious = tmp_path / "train.csv"
        precious.write_text("mine")
        write = ("datasets", "write", "digits-on-paper", "--out", tmp_path)
        assert "train.csv: this file exists already" in mistake(*write)
        bench = ("bench", "theory", "--spurious", "1", "--classes", "2", "--repeats", "1")
        assert "holds files other than results" in mistake(*bench, "--out", tmp_path)
        assert precious.read_text() == "mine"
        assert list(tmp_path.iterdir()) == [precious]
        well(*write, "--force")
        well(*bench, "--out", tmp_path / "new")
        well(*bench, "--out", tmp_path / "new")

    def test_a_pipe_is_not_a_model(self, mistake, folder, tmp_path):
        os.mkfifo(tmp_path / "pipe.isr")
        line = mistake("predict", tmp_path / "pipe.isr", folder / "test.csv", "--out", "p.csv")
        assert "pipe.isr" in line

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
    def test_full_disk(self, mistake, folder, model, tmp_path):
        fit = self.fit(folder, tmp_path)[:-1]
        assert mistake(*fit, "/dev/full") == "isr: No space left on device: /dev/full"
        export = ("export", model, "--to", "onnx", "--out", "/dev/full")
        assert mistake(*export) == "isr: No space left on device: /dev/full"

    @pytest.mark.parametrize("command", ["fit", "predict", "export", "datasets"])
    def test_disk_that_fills_while_writing(
        self, mistake, folder, model, tmp_path, monkeypatch, command
    ):
        def full(descriptor):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, "fsync", full)
        arguments = {
            "fit": self.fit(folder, tmp_path),
            "predict": ("predict", model, folder / "test.csv", "--out", tmp_path / "p.parquet"),
            "export": ("export", model, "--to", "numpy", "--out", tmp_path / "m.npz"),
            "datasets": ("datasets", "write", "digits-on-paper", "--out", tmp_path),
        }
        assert "No space left on device" in mistake(*arguments[command])
        assert not list(tmp_path.iterdir())

    def test_fewer_columns(self, mistake, folder, model, tmp_path):
        table = read_table(folder / "test.csv", features="f*")
        write_columns(tmp_path / "few.csv", {f"f{i}": table.X[:, i] for i in (0, 1, 2)})
        line = mistake("predict", model, tmp_path / "few.csv", "--out", tmp_path / "p.csv")
        assert "there is no feature column 'f3'" in line
        # Label and environment of the table do not count.
        for width in (3, 5, 6):
            np.save(tmp_path / "a.npy", np.ones((2, width)))
            line = mistake("predict", model, tmp_path / "a.npy", "--out", tmp_path / "p.csv")
            assert f"there are {width} columns; the model has 4 features" in line

    def test_a_model_without_names(self, well, mistake, folder, tmp_path):
        data = sample(0)
        clf = ISRClassifier().fit(data.X, data.y, environments=data.environments)
        save(clf, tmp_path / "m.isr")
        predict = ("predict", tmp_path / "m.isr", folder / "test.csv", "--out", tmp_path / "p.csv")
        assert "name its 4 columns" in mistake(*predict)
        assert "2 columns were selected" in mistake(*predict, "--features", "f0:f1")
        well(*predict, "--features", "f0:f3")
        evaluate = ("evaluate", tmp_path / "m.isr", folder / "test.npz")
        assert "does not name the label column" in mistake(*evaluate)

    def test_labels_of_another_type(self, mistake, model, folder, tmp_path):
        table = read_table(folder / "test.csv", features="f*")
        columns = {f"f{i}": table.X[:, i] for i in range(4)}
        write_columns(
            tmp_path / "t.csv",
            {**columns, "label": np.arange(600) % 2, "environment": np.arange(600) % 3},
        )
        line = mistake("evaluate", model, tmp_path / "t.csv")
        assert "no label is a class of the model" in line

    @pytest.mark.filterwarnings("default:.*which the model does not know")
    def test_labels_that_are_no_class_are_named(self, isr, mistake, model, folder, tmp_path):
        rows = (folder / "test.csv").read_text()
        padded, other = tmp_path / "padded.csv", tmp_path / "other.csv"
        padded.write_text(rows.replace("yes", "yes "))
        other.write_text(rows.replace("yes", "Yes").replace("no", "No"))
        fit = ("fit", folder / "train.csv", *COLUMNS, "--no-search", "--out", tmp_path / "m.isr")
        for command in [("evaluate", model, padded), (*fit, "--test", padded)]:
            code, _, err = isr(*command)
            assert code == 0
            assert "labels, which the model does not know, count as errors" in err
            assert "such as 'yes ', the classes 'no', 'yes'" in err
        assert "no label is a class" in mistake(*fit, "--test", other)

    def test_a_metric_of_the_other_task(self, isr, model, folder, tmp_path):
        table, regressor = folder / "test.csv", tmp_path / "m.isr"
        roles = (*REGRESSION, "--environment", "environment", "--no-search", "--out", regressor)
        assert isr("fit", table, *roles)[0] == 0
        for saved, metric in [(model, "r2"), (regressor, "accuracy")]:
            code, _, err = isr("evaluate", saved, table, "--metric", metric)
            assert (code, f"--metric {metric} is not a score of this kind" in err) == (2, True)

    @pytest.mark.parametrize(
        "command", [("inspect",), ("export", "--to", "numpy", "--out", "x.npz")]
    )
    def test_damaged_model(self, mistake, model, tmp_path, command):
        content = bytearray(model.read_bytes())
        content[-9] ^= 1
        (tmp_path / "m.isr").write_bytes(content)
        line = mistake(command[0], tmp_path / "m.isr", *command[1:])
        assert "its SHA-256 differs" in line

    @pytest.mark.parametrize(
        ("arguments", "text"),
        [
            (("--scale", "2"), "scale must be a number in [0, 1]; got 2.0"),
            (("--n-spurious", "many"), "neither auto nor permutation nor a number"),
            (("--n-spurious", "9"), "n_spurious=9 is more than"),
            (("--components", "x"), "is neither auto nor none nor a number"),
            (("--alpha", "1"), "alpha is not a setting of a classification"),
            (("--head", "ridge"), "head must be"),
            (("--level", "2"), "level must be a number in (0, 1); got 2.0"),
            ((*REGRESSION, "--weights", "class"), "weights must be"),
            (
                ("--label", "y.npy", "--validation", "v.csv"),
                "y.npy: there is no such file",
            ),
        ],
    )
    def test_settings(self, mistake, folder, tmp_path, arguments, text):
        assert text in mistake(*self.fit(folder, tmp_path), *arguments)

    def test_debug_shows_where(self, isr, folder, tmp_path):
        status, _, err = isr("--debug", *self.fit(folder, tmp_path, label="no"))
        assert status == 2
        assert "Traceback" in err
        assert err.splitlines()[-1].startswith("isr: ")


def test_an_interrupt_leaves_nothing(isr, folder, tmp_path, monkeypatch):
    def interrupt(descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    status, out, err = isr("fit", folder / "train.csv", *COLUMNS, "--out", tmp_path / "m.isr")
    assert (status, out, err.strip()) == (130, "", "isr: interrupted")
    assert not list(tmp_path.iterdir())


def test_a_termination_leaves_nothing(isr, folder, tmp_path, monkeypatch):
    """SIGTERM while the file is being written, and the handler of the caller comes back."""
    handler = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(os, "fsync", lambda _: signal.raise_signal(signal.SIGTERM))
    status, out, err = isr("fit", folder / "train.csv", *COLUMNS, "--out", tmp_path / "m.isr")
    assert (status, out, err.strip()) == (143, "", "isr: terminated")
    assert not list(tmp_path.iterdir())
    assert signal.getsignal(signal.SIGTERM) == handler


def test_a_model_is_whole_although_nobody_reads_what_is_printed(folder, tmp_path):
    out = tmp_path / "m.isr"
    code = "from isrlearn.cli import main; main()"
    command = [sys.executable, "-c", code, "fit", folder / "train.csv", *COLUMNS, "--out", out]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        run.stdout.close()
        errors = run.stderr.read()
    assert (run.returncode, errors) == (141, b"")
    assert isrlearn.load(out).n_features_in_ == 4


def test_too_little_memory_is_one_line(mistake, folder, tmp_path, monkeypatch):
    def exhausted(*arguments, **options):
        raise MemoryError

    monkeypatch.setattr(ISRClassifier, "fit", exhausted)
    line = mistake("fit", folder / "train.csv", *COLUMNS, "--out", tmp_path / "m.isr")
    assert line == "isr: there is not enough memory for this"


def test_names_are_text_and_nothing_else(well, tmp_path):
    rng = np.random.default_rng(0)
    labels = np.array(["[bold]x[/bold]", "\x1b[31mred"])[np.arange(80) % 2]
    where = np.array(["<script>alert(1)</script>", "a,\"b'"])[np.arange(80) // 2 % 2]
    columns = {"[red]f": rng.standard_normal(80), "g\n": rng.standard_normal(80)}
    write_columns(tmp_path / "t.csv", {**columns, "y": labels, "e": where})
    out = tmp_path / "m.isr"
    fit = ("fit", tmp_path / "t.csv", "--label", "y", "--environment", "e", "--out", out)
    printed = well(*fit, "--n-spurious", "1")
    printed += well("inspect", out) + well("evaluate", out, tmp_path / "t.csv")
    assert "\x1b" not in printed
    assert "[bold]x[/bold]" in printed
    assert "<script>alert(1)</script>" in printed
    well("predict", out, tmp_path / "t.csv", "--out", tmp_path / "p.csv")
    record = json.loads(well("inspect", out, "--json"))
    assert set(record["classes"]) == set(labels.tolist())


@pytest.mark.parametrize(
    "command",
    ["", "diagnose", "fit", "predict", "evaluate", "inspect", "export", "report", "datasets"],
)
def test_help_waits_for_nothing(command):
    arguments = [command] if command else []
    code = (
        "import sys\nfrom isrlearn.cli import main\n"
        f"try:\n    main({[*arguments, '--help']!r})\n"
        "except SystemExit as stop:\n    assert stop.code == 0\n"
        "heavy = {'numpy', 'scipy', 'sklearn', 'pandas', 'pyarrow', 'torch'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.stderr == ""
    assert "Usage: isr" in run.stdout
    assert "Example: isr" in run.stdout or command == "datasets"


def test_unknown_environments_are_filled_in(isr, mistake, tmp_path):
    """Empty fields of a CSV file are unknown environments; a tenth of them known is enough."""
    train = load_digits_on_paper().train
    known = np.where(np.arange(len(train.y)) % 10 == 0, train.environments, "")
    features = {f"f{i}": column for i, column in enumerate(train.X.T)}
    write_columns(tmp_path / "t.csv", {**features, "label": train.y, "environment": known})
    model = tmp_path / "m.isr"
    fit = ("fit", tmp_path / "t.csv", *COLUMNS, "--n-spurious", "1", "--out", model)
    status, text, notes = isr(*fit, "--fill-environments", "--json")
    assert status == 0
    assert "each of these features alone separates the environments" in notes
    record = json.loads(text)
    assert record["environments_filled"] == 900
    full = ISRClassifier(n_spurious=1).fit(train.X, train.y, environments=train.environments)
    found = isrlearn.load(model).spurious_basis_
    assert abs(found.T @ full.spurious_basis_).item() > 0.98
    assert "900 of 1000 environments were filled in" in isr(*fit, "--fill-environments")[1]
    assert "a regression has none" in mistake(*fit, "--fill-environments", "--task", "regression")


def test_environments_cannot_be_filled_in_from_too_few(mistake, tmp_path):
    rng = np.random.default_rng(0)
    columns = {"a": rng.normal(size=20), "label": np.arange(20) % 2}
    known = np.where(np.arange(20) < 3, "sea", "")
    write_columns(tmp_path / "t.csv", {**columns, "environment": known})
    fit = ("fit", tmp_path / "t.csv", *COLUMNS, "--out", tmp_path / "m.isr")
    assert "too few rows with an environment" in mistake(*fit, "--fill-environments")
