"""``--clusters``: commands agree with ``clusters=`` of the library, and use the stored column."""

from __future__ import annotations

import html
import json
import re

import numpy as np
import pytest

import isrlearn
from isrlearn.cli.app import run
from isrlearn.io import read_model, read_table, write_columns
from isrlearn.metrics import group_report

ROLES = ("--label", "y", "--environment", "e", "--clusters", "who")


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Rows in clusters of five, which have an offset in common that no environment causes."""
    folder, rng = tmp_path_factory.mktemp("clusters"), np.random.default_rng(0)
    for part in ("train", "test"):
        who = np.repeat(np.arange(48), 5)
        y, e = who % 2, who // 2 % 2
        X = rng.normal(size=(240, 3)) + 2 * rng.normal(size=(48, 3))[who]
        X[:, 0] += 2 * y
        columns = {f"f{i}": X[:, i] for i in range(3)}
        write_columns(folder / f"{part}.csv", columns | {"y": y, "e": e, "who": who})
    rest = {name: columns[name] for name in ("f0", "f1", "f2")} | {"y": y, "e": e}
    write_columns(folder / "without.csv", rest)
    return folder


@pytest.fixture
def record(capsys):
    """Runs a command: its record as JSON."""

    def call(*arguments):
        code = run([*map(str, arguments), "--json"])
        out, err = capsys.readouterr()
        assert code == 0, err
        return json.loads(out)

    return call


def test_fit_and_evaluate(tables, record, tmp_path):
    train, test = (
        read_table(tables / f"{part}.csv", label="y", environment="e", clusters="who")
        for part in ("train", "test")
    )
    model = tmp_path / "m.isr"
    record("fit", tables / "train.csv", *ROLES, "--no-search", "--out", model)
    found, rows = read_model(model), (train.X, train.y, train.environments)
    assert found.feature_names == ("f0", "f1", "f2")
    expected = isrlearn.ISRClassifier().fit(*rows, clusters=train.clusters)
    ignoring = isrlearn.ISRClassifier().fit(*rows)
    np.testing.assert_array_equal(found.estimator.rank_test_.p_values, expected.rank_test_.p_values)
    assert not np.array_equal(expected.rank_test_.p_values, ignoring.rank_test_.p_values)

    scores = group_report(
        test.y, expected.predict(test.X), test.environments, clusters=test.clusters
    )
    # The model names the column of the clusters.
    shown = record("evaluate", model, tables / "test.csv")["model"]["groups"]
    assert [group["low"] for group in shown] == [group.low for group in scores.groups]


def test_the_python_of_a_report_gives_the_model(tables, record, tmp_path):
    out, page = tmp_path / "m.isr", tmp_path / "report.html"
    record("fit", tables / "train.csv", *ROLES, "--no-search", "--out", out, "--report", page)
    code = re.search(r'aria-label="Python">(.*?)</pre>', page.read_text(encoding="utf-8"), re.S)
    names: dict = {}
    exec(html.unescape(code.group(1)), names)
    np.testing.assert_allclose(names["model"].coef_, read_model(out).estimator.coef_, rtol=1e-9)


@pytest.mark.filterwarnings("default:.*taken for independent")
def test_a_table_without_the_clusters_is_named(tables, tmp_path, capsys):
    model = str(tmp_path / "m.isr")
    run(["fit", str(tables / "train.csv"), *ROLES, "--no-search", "--out", model])
    for name, said in (("without", True), ("test", False)):
        capsys.readouterr()
        assert run(["evaluate", model, str(tables / f"{name}.csv")]) == 0
        assert ("has no column 'who'" in capsys.readouterr().err) == said


def test_diagnose(tables, record):
    table = read_table(tables / "train.csv", label="y", environment="e", clusters="who")
    found = record("diagnose", tables / "train.csv", *ROLES)
    rows, how = (table.X, table.y, table.environments), {"compare": False, "random_state": 0}
    expected, ignoring = (
        isrlearn.diagnose(*rows, clusters=clusters, **how).means
        for clusters in (table.clusters, None)
    )
    assert found["means"]["p_value"] == expected.p_value
    assert expected.p_value > ignoring.p_value


@pytest.mark.parametrize("other", ["train", "test"])
def test_report(tables, record, tmp_path, other):
    """Intervals of clusters of five are wider than those of as many single rows."""
    pytest.importorskip("jinja2")
    widths = []
    for given in (ROLES, (*ROLES[:4], "--features", "f*")):
        model, page = tmp_path / "m.isr", tmp_path / "r.html"
        fit = ("fit", tables / "train.csv", *given, "--no-search", "--n-spurious", "1")
        record(*fit, "--out", model)
        arguments = (model, tables / f"{other}.csv", "--train", tables / "train.csv")
        found = record("report", *arguments, "--out", page)
        widths.append([group["high"] - group["low"] for group in found["model"]["groups"]])
    assert np.greater(*widths).all()
