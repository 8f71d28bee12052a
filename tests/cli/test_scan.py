"""``isr scan``: the same answer as in Python, from files of any format."""

from __future__ import annotations

import json

import numpy as np
import pytest

from isrlearn import scan
from isrlearn.cli import main
from isrlearn.io import write_columns

N = 600


@pytest.fixture(scope="module")
def columns():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, N)
    hospital = np.where(rng.random(N) < 0.9, y, 1 - y)
    return {
        "dose": y + rng.normal(size=N),
        "brightness": 3 * hospital + rng.normal(size=N),
        "hospital": np.array(["north", "south"])[hospital],
        "weekday": rng.integers(0, 7, N),
        "ill": np.array(["no", "yes"])[y],
    }


@pytest.fixture
def isr(capsys):
    def run(*arguments):
        with pytest.raises(SystemExit) as stop:
            main(["scan", *map(str, arguments)])
        captured = capsys.readouterr()
        return stop.value.code, captured.out, captured.err

    return run


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "npz"])
def test_any_format_gives_the_answer_of_python(columns, isr, tmp_path, ending):
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path / f"table.{ending}"
    write_columns(path, columns)
    code, out, _ = isr(path, "--label", "ill", "--json")
    assert code == 0
    wanted = scan(columns, "ill").to_dict()
    assert [each["name"] for each in json.loads(out)["table"]] == ["hospital", "weekday"]
    assert json.loads(out)["table"][0]["gap"] == pytest.approx(wanted["table"][0]["gap"])


def test_array_with_a_table_of_labels(columns, isr, tmp_path):
    np.save(tmp_path / "X.npy", np.column_stack([columns["dose"], columns["brightness"]]))
    write_columns(tmp_path / "X.labels.csv", {k: columns[k] for k in ("hospital", "ill")})
    _, out, _ = isr(tmp_path / "X.npy", "--label", "ill")
    assert "hospital is a shortcut" in out


def test_page_is_written_and_replaced(columns, isr, tmp_path):
    write_columns(tmp_path / "t.csv", columns)
    page = tmp_path / "scan.html"
    for _ in range(2):
        code, out, _ = isr(tmp_path / "t.csv", "--label", "ill", "--out", page)
        assert code == 0
        assert f"The page is in {page}." in out
    assert "hospital is a shortcut" in page.read_text("utf-8")


def test_mistakes_are_named(columns, isr, tmp_path):
    write_columns(tmp_path / "t.csv", columns)
    code, _, err = isr(tmp_path / "t.csv", "--label", "il")
    assert code == 2
    assert "did you mean 'ill'" in err
    code, _, err = isr(tmp_path / "t.csv", "--label", "dose")
    assert code == 2
    assert "look continuous" in err
    code, _, err = isr(tmp_path / "t.csv", "--label", "ill", "--candidates", "hospital, dose")
    assert code == 2
    assert "candidate 'dose'" in err
    gaps = columns | {"ill": np.append("", columns["ill"][1:]), "weight": np.arange(N) * 2}
    write_columns(tmp_path / "t.csv", gaps)
    code, _, err = isr(tmp_path / "t.csv", "--label", "ill")
    assert code == 2
    assert f"{tmp_path / 't.csv'}: the label is missing in row 1; drop such rows" in err
    code, _, err = isr(tmp_path / "t.csv", "--label", "weight")
    assert code == 2
    assert f"there are {N} different labels in {N} rows" in err
    (tmp_path / "t.csv").write_text("dose,ill\n")
    code, _, err = isr(tmp_path / "t.csv", "--label", "ill")
    assert code == 2
    assert "the table has no rows" in err


def test_classes_of_few_rows_are_named(columns, isr, tmp_path):
    columns = columns | {
        "ill": np.where(np.arange(N) < 3, ["a", "b", "a"] * (N // 3), columns["ill"])
    }
    write_columns(tmp_path / "t.csv", columns)
    _, out, _ = isr(tmp_path / "t.csv", "--label", "ill")
    assert "Left out: class 'a', 'b' (fewer than 5 rows)." in out


@pytest.mark.filterwarnings("always::UserWarning")
def test_a_warning_is_shown_once(isr, columns, tmp_path):
    """Although every fold gives it."""
    names = ("brightness", "hospital", "ill")
    write_columns(tmp_path / "t.csv", {name: columns[name] for name in names})
    status, _, err = isr(tmp_path / "t.csv", "--label", "ill")
    assert (status, err.count("isr: warning: all 1 dimensions shift")) == (0, 1)
