"""``isr report`` and ``isr fit --report``: what they write, and what they say when they cannot."""

from __future__ import annotations

import errno
import html
import json
import os
import re
import sys

import numpy as np
import pytest

from isrlearn import ISRTransformer
from isrlearn.cli import main
from isrlearn.datasets import make_gaussian_environments
from isrlearn.io import load, save, write_columns

COLUMNS = ("--label", "label", "--environment", "environment")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables of three environments and two classes: train, validation and test; a model."""
    folder = tmp_path_factory.mktemp("report")
    data = make_gaussian_environments(300, 3, n_invariant=3, n_spurious=1, random_state=0)
    for i, part in enumerate(("train", "validation", "test")):
        columns = {f"f{j}": data.X[i::3, j] for j in range(4)}
        columns["label"] = np.array(["no", "yes"])[data.y[i::3]]
        columns["environment"] = data.environments[i::3]
        for suffix in ("csv", "parquet"):
            write_columns(folder / f"{part}.{suffix}", columns)
    fit = ["fit", str(folder / "train.csv"), *COLUMNS, "--no-search"]
    with pytest.raises(SystemExit) as stop:
        main([*fit, "--out", str(folder / "model.isr")])
    assert stop.value.code == 0
    return folder


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_fit_writes_a_report(well, folder, tmp_path, suffix):
    out, page = tmp_path / "model.isr", tmp_path / "report.html"
    train, test = folder / f"train.{suffix}", folder / f"test.{suffix}"
    printed = well("fit", train, *COLUMNS, "--test", test, "--out", out, "--report", page)
    assert printed.endswith(f"The report is in {page}.\n")
    assert "of the worst group is" in printed
    text = page.read_text(encoding="utf-8")
    assert f"isr fit {train} --label label --environment environment --test {test}" in text
    record = json.loads(well("evaluate", out, test, "--baseline", train, "--json"))
    for model in record["comparison"]["models"].values():
        assert f"{100 * model['report']['worst']:.1f}%" in text
    assert record["comparison"]["headline"] in printed


def test_a_model_card(well, folder, tmp_path):
    page, card = tmp_path / "report.html", tmp_path / "card.md"
    command = ("report", folder / "model.isr", folder / "test.csv", "--train", folder / "train.csv")
    for _ in range(2):  # its own file is replaced
        printed = well(*command, "--out", page, "--card", card, "--json")
    found, text = json.loads(printed), card.read_text(encoding="utf-8")
    assert found["comparison"]["headline"].replace("_", r"\_") in text
    for model in found["comparison"]["models"].values():
        assert f" {100 * model['report']['worst']:.1f}% |" in text
    for score in found["unseen"]["model"].values():
        assert f" {100 * score:.1f}% |" in text
    assert f"isr report {folder / 'model.isr'}" in text


def test_what_is_scored(well, folder, tmp_path):
    out, page = tmp_path / "model.isr", tmp_path / "report.html"

    def scored(*arguments):
        command = ("fit", folder / "train.csv", *COLUMNS, "--head", "lda", "--weights", "none")
        printed = well(*command, "--out", out, "--report", page, "--json", *arguments)
        return json.loads(printed)["report"]["scored_on"]

    validation, test = folder / "validation.csv", folder / "test.csv"
    assert scored() == "folds"
    assert scored("--search") == "folds"  # the search is repeated in every fold
    assert scored("--validation", validation) == "validation"
    assert scored("--validation", validation, "--test", test) == "test"


def test_report_knows_its_tables(well, folder, tmp_path):
    page, model = tmp_path / "report.html", folder / "model.isr"
    train, test = folder / "train.parquet", folder / "test.csv"

    def scored(*arguments):
        return json.loads(well("report", model, *arguments, "--out", page, "--json"))

    assert scored(train)["scored_on"] == "folds"
    assert scored(train, "--train", train)["scored_on"] == "folds"
    alone, both = scored(test), scored(test, "--train", train)
    assert (alone["scored_on"], alone["comparison"], alone["trade_off"]) == ("table", None, None)
    assert both["scored_on"] == "test"
    assert both["model"]["groups"][0]["value"] == alone["model"]["groups"][0]["value"]
    assert "Give the training table" in well("report", model, test, "--out", page)


def test_the_table_that_chose_the_settings_is_known_again(well, folder, tmp_path):
    model, page = tmp_path / "model.isr", tmp_path / "report.html"
    tables = [folder / f"{name}.csv" for name in ("train", "validation", "test")]
    fit = ("fit", tables[0], *COLUMNS, "--head", "lda", "--validation", tables[1], "--out", model)
    well(*fit)
    kinds = [
        json.loads(well("report", model, table, "--train", tables[0], "--out", page, "--json"))
        for table in tables
    ]
    assert [record["scored_on"] for record in kinds] == ["folds", "validation", "test"]


def test_regression(well, tmp_path):
    data = make_gaussian_environments(
        100, 3, n_invariant=3, n_spurious=1, task="regression", random_state=0
    )
    columns = {f"f{j}": data.X[:, j] for j in range(4)}
    table, model, page = (tmp_path / name for name in ("t.csv", "m.isr", "r.html"))
    write_columns(table, {**columns, "y": data.y, "e": data.environments})
    names = ("--label", "y", "--environment", "e", "--task", "regression")
    well("fit", table, *names, "--out", model, "--report", page)
    assert "root mean squared error" in page.read_text(encoding="utf-8")
    well("report", model, table, "--out", page)


@pytest.mark.parametrize("options", [(), ("--no-search", "--fill-environments")])
def test_the_python_of_a_report_gives_the_model(well, tmp_path, options):
    """Also a threshold that the search moved, and environments that were filled in."""
    rng, n = np.random.default_rng(4), 800
    y = (rng.random(n) < 0.3).astype(int)
    e = np.where(rng.random(n) < 0.75, y, 1 - y)
    X = rng.normal(size=(n, 4)) * (1 + y[:, None])
    X += np.outer(y, [1, 0, 0, 0]) + np.outer(e, [0, 4, 0, 0])
    unknown = rng.random(n) < (0.5 if options else 0.0)
    place = np.where(unknown, "", np.array(["day", "night"])[e])
    table, model, page = (tmp_path / name for name in ("t.csv", "m.isr", "r.html"))
    columns = {f"f{j}": column for j, column in enumerate(X.T)}
    write_columns(table, {**columns, "label": y, "environment": place})
    test = ("--test", table, "--out", model, "--report", page)
    record = json.loads(well("fit", table, *COLUMNS, *options, *test, "--json"))
    metadata = record["metadata"]
    assert metadata["environments_filled"] if options else metadata["search"]["threshold"]
    code = re.search(r'aria-label="Python">(.*?)</pre>', page.read_text(encoding="utf-8"), re.S)
    names: dict = {}
    exec(html.unescape(code.group(1)), names)
    found, expected = names["model"], load(model)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-9)
    np.testing.assert_allclose(found.intercept_, expected.intercept_, rtol=1e-9)
    again = json.loads(well("report", model, table, "--out", tmp_path / "again.html", "--json"))
    assert again["scored_on"] in ("folds", "chosen-folds")  # the training table is known again


class TestMistakes:
    def test_missing_files(self, mistake, folder, tmp_path):
        model, page = folder / "model.isr", tmp_path / "r.html"
        none, test = tmp_path / "none.csv", folder / "test.csv"
        assert "there is no such file" in mistake("report", model, none, "--out", page)
        assert "No such file" in mistake("report", tmp_path / "no.isr", test, "--out", page)
        assert "no such file" in mistake("report", model, test, "--train", none, "--out", page)
        fit = ("fit", folder / "train.csv", *COLUMNS, "--out", tmp_path / "m.isr")
        assert "no such file" in mistake(*fit, "--report", page, "--test", none)
        assert list(tmp_path.iterdir()) == []

    def test_missing_columns(self, mistake, folder, tmp_path):
        model, page, test = folder / "model.isr", tmp_path / "r.html", folder / "test.csv"
        line = mistake("report", model, test, "--label", "lable", "--out", page)
        assert "did you mean 'label'?" in line
        few = tmp_path / "few.csv"
        few.write_text("f0,f1,label,environment\n1,2,yes,0\n")
        assert "'f2'" in mistake("report", model, few, "--out", page)
        fit = ("fit", folder / "train.csv", *COLUMNS, "--out", tmp_path / "m.isr")
        assert "'f2'" in mistake(*fit, "--report", page, "--test", few)
        assert not page.exists()

    def test_other_rows_are_no_training_rows(self, mistake, folder, tmp_path):
        tables = folder / "test.csv", "--train", folder / "validation.csv"
        line = mistake("report", folder / "model.isr", *tables, "--out", tmp_path / "r.html")
        assert "validation.csv: the model was not fitted on these rows" in line

    def test_labels_of_another_kind(self, mistake, folder, tmp_path):
        table = tmp_path / "t.csv"
        table.write_text("f0,f1,f2,f3,label,environment\n1,2,3,4,0.5,0\n2,2,3,4,1.5,1\n")
        line = mistake("report", folder / "model.isr", table, "--out", tmp_path / "r.html")
        assert "no label is a class of the model" in line
        assert "such as '0.5', '1.5', the classes 'no', 'yes'" in line

    def test_a_transformer_predicts_nothing(self, mistake, folder, tmp_path):
        data = make_gaussian_environments(50, 3, n_invariant=3, n_spurious=1, random_state=0)
        model = tmp_path / "m.isr"
        transformer = ISRTransformer().fit(data.X, data.y, environments=data.environments)
        save(transformer, model, feature_names=["f0", "f1", "f2", "f3"])
        table = folder / "test.csv"
        line = mistake("report", model, table, *COLUMNS, "--out", tmp_path / "r.html")
        assert "does not predict" in line

    def test_options_that_do_not_go_together(self, mistake, folder, tmp_path):
        out = tmp_path / "m.isr"
        fit = ("fit", folder / "train.csv", *COLUMNS, "--out", out)
        assert "are the same file" in mistake(*fit, "--report", out)

    def test_output_that_cannot_be_written(self, mistake, folder, tmp_path):
        model, train = folder / "model.isr", folder / "train.csv"
        nowhere = tmp_path / "nowhere" / "r.html"
        assert "There is no such folder" in mistake("report", model, train, "--out", nowhere)
        assert "is a directory" in mistake("report", model, train, "--out", tmp_path)
        fit = ("fit", train, *COLUMNS, "--out", tmp_path / "m.isr")
        # Known before anything is read, so the model is not written either.
        assert "There is no such folder" in mistake(*fit, "--report", nowhere)
        assert list(tmp_path.iterdir()) == []

    def test_a_disk_that_fills_while_writing(self, mistake, folder, tmp_path, monkeypatch):
        def full(_):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        page = tmp_path / "r.html"
        page.write_text("old")
        monkeypatch.setattr(os, "fsync", full)
        model, table = folder / "model.isr", folder / "train.csv"
        line = mistake("report", model, table, "--out", page, "--force")
        assert line == f"isr: No space left on device: {page}"
        assert [path.name for path in tmp_path.iterdir()] == ["r.html"]
        assert page.read_text() == "old"

    def test_without_jinja_nothing_is_begun(self, mistake, folder, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "jinja2", None)
        fit = ("fit", folder / "train.csv", *COLUMNS, "--out", tmp_path / "m.isr")
        line = mistake(*fit, "--report", tmp_path / "r.html")
        assert line == 'isr: a report needs jinja2: pip install "isrlearn[report]"'
        assert list(tmp_path.iterdir()) == []

    def test_an_interrupt_leaves_nothing(self, isr, folder, tmp_path, monkeypatch):
        def interrupt(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr(os, "replace", interrupt)
        page = tmp_path / "r.html"
        status, _, _ = isr("report", folder / "model.isr", folder / "train.csv", "--out", page)
        assert status == 130
        assert list(tmp_path.iterdir()) == []
