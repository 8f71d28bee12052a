"""``isr`` on a table as people have it: one preparation for every command and table."""

from __future__ import annotations

import csv
import html
import json
import re

import numpy as np
import pytest

from isrlearn.cli.app import run
from isrlearn.io import read_model, write_columns

N = 400
ROLES = ["--label", "ill", "--environment", "hospital"]


def write_messy(path, seed=0, n=N, **changes):
    """A table with ids, dates, categories, missing values, a constant and a note."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        ill, hospital = i % 2, i // 2 % 2
        rows.append(
            {
                "patient_id": int(rng.integers(10**6)),
                "row": i,
                "admitted": f"{1 + i % 28:02d}/0{1 + i % 9}/2023",
                "age": f"{rng.normal(50 + 8 * ill, 8):.1f}" if i % 11 else "NA",
                "dose": f"{rng.normal(3.0 * hospital):.6f}",
                "weight": f"{rng.normal(70 + ill):.6f}",
                "sex": ("f", "m")[int(rng.integers(2))],
                "ward": ("north", "south", "east", "")[int(rng.integers(4))],
                "zip": f"{int(rng.integers(3)):05d}",
                "unit": "mg",
                "note": f"patient {i} said {rng.integers(10**9)}",
                "hospital": "AB"[hospital],
                "ill": ("no", "yes")[ill],
            }
            | changes
        )
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.fixture
def messy(tmp_path):
    return write_messy(tmp_path / "train.csv")


@pytest.fixture
def isr(capsys):
    """Runs a command: exit code, standard output, standard error."""

    def call(*arguments):
        code = run([str(each) for each in arguments])
        out, err = capsys.readouterr()
        assert "internal error" not in err, err
        return code, out, err

    return call


@pytest.fixture
def model(isr, messy, tmp_path):
    path = tmp_path / "model.isr"
    code, _, err = isr("fit", messy, *ROLES, "--n-spurious", 1, "--out", path)
    assert code == 0
    return path, err


def test_one_table_says_what_was_done_with_each_column(model):
    path, err = model
    lines = {
        line.split()[0].strip("',"): " ".join(line.split())
        for line in err.splitlines()
        if line.strip()
    }
    assert "its name is that of an id" in lines["patient_id"]
    assert "row numbers" in lines["row"]
    assert lines["admitted"].endswith("left out dates")
    assert "37 missing values, replaced by the median" in lines["age"]
    assert "'f' is 0, 'm' is 1" in lines["sex"]
    assert "3 categories, and a mark for" in lines["ward"]
    assert lines["unit"].endswith("left out one value")
    assert "free text: 400 different values" in lines["note"]
    names = read_model(path).feature_names
    assert names[:3] == ("age", "age is missing", "dose")
    assert "patient_id" not in names


@pytest.mark.filterwarnings("default:column 'sex' holds none")
def test_later_tables_are_prepared_like_the_first(isr, model, messy, tmp_path):
    path, _ = model
    other = write_messy(tmp_path / "test.csv", seed=1, n=60, sex="x", extra="y", age="")
    code, out, err = isr("predict", path, other, "--out", tmp_path / "p.csv")
    assert code == 0
    assert "isr: warning: column 'sex' holds none of the categories" in err
    assert "such as 'm', but 'x'" in err
    code, out, _ = isr("evaluate", path, other, "--baseline", messy, "--json")
    assert code == 0
    assert json.loads(out)["model"]["n"] == 60
    code, out, _ = isr("report", path, other, "--train", messy, "--out", tmp_path / "r.html")
    assert code == 0
    page = (tmp_path / "r.html").read_text()
    assert "its name is that of an id" in page
    code, out, _ = isr("inspect", path)
    assert code == 0
    assert "its name is that of an id" in out
    assert "Share of each column" in out


def test_the_columns_that_are_removed_are_named(isr, messy, tmp_path):
    given = ["--n-spurious", 1, "--out", tmp_path / "m.isr", "--json"]
    out = isr("fit", messy, *ROLES, *given)[1]
    shares = json.loads(out)["metadata"]["shares"]
    assert shares[0]["name"] == "dose"
    assert shares[0]["removed"] > 0.9
    assert shares[0]["after"] < 0.01
    ages = next(share for share in shares if share["name"] == "age")
    assert ages["after"] > 0.3
    assert ages["before"] > 0.3
    out = isr("diagnose", messy, *ROLES)[1]
    assert "The removed directions lie in dose (9" in out


def test_predictions_are_those_of_the_pipeline(isr, model, messy, tmp_path):
    import pandas as pd

    import isrlearn

    path, _ = model
    isr("predict", path, messy, "--out", tmp_path / "p.csv")
    written = pd.read_csv(tmp_path / "p.csv")
    frame = pd.read_csv(messy, dtype={"zip": str})
    pipeline = isrlearn.load(path)
    assert np.allclose(written["probability_yes"], pipeline.predict_proba(frame)[:, 1])


def test_a_scaler_that_knows_its_columns_warns_of_nothing(isr, messy, tmp_path):
    import pandas as pd
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    import isrlearn

    table = pd.read_csv(messy)
    frame = table[["age", "dose"]].fillna(0.0)
    scaler = StandardScaler().fit(frame)
    y, e = np.arange(len(frame)) % 2, np.arange(len(frame)) // 2 % 2
    head = isrlearn.ISRClassifier(n_spurious=1).fit(scaler.transform(frame), y, environments=e)
    isrlearn.save(make_pipeline(scaler, head), tmp_path / "m.isr")
    frame[["dose", "age"]].to_csv(tmp_path / "t.csv", index=False)
    code, _, err = isr(
        "predict", tmp_path / "m.isr", tmp_path / "t.csv", "--out", tmp_path / "p.csv"
    )
    assert (code, err) == (0, "")
    written = pd.read_csv(tmp_path / "p.csv")["prediction"]
    assert (written == make_pipeline(scaler, head).predict(frame)).all()


def test_a_missing_column_is_named(isr, model, messy, tmp_path):
    lines = [line.split(",") for line in messy.read_text().splitlines()]
    place = lines[0].index("dose")
    text = "\n".join(",".join(row[:place] + row[place + 1 :]) for row in lines)
    (tmp_path / "less.csv").write_text(text)
    code, _, err = isr("predict", model[0], tmp_path / "less.csv", "--out", tmp_path / "p.csv")
    assert code == 2
    assert "there is no feature column 'dose'" in err


def test_options_override_what_was_found(isr, messy, tmp_path):
    code, _, err = isr(
        *("fit", messy, *ROLES, "--n-spurious", 1, "--out", tmp_path / "m.isr"),
        *("--include", "patient_id", "--exclude", "age,dose", "--categorical", "zip"),
    )
    assert code == 0
    names = read_model(tmp_path / "m.isr").feature_names
    assert names[0] == "patient_id"
    assert {"zip=00000", "zip=00001", "zip=00002"} <= set(names)
    assert not {"age", "dose"} & set(names)
    code, _, err = isr("predict", tmp_path / "m.isr", messy, "--out", tmp_path / "p.csv")
    assert code == 0
    code, _, err = isr("fit", messy, *ROLES, "--exclude", "agee", "--out", tmp_path / "n.isr")
    assert code == 2
    assert "exclude must be a list of columns of the table; got 'agee'; did you mean 'age'" in err


def test_a_name_with_a_comma_is_quoted(isr, tmp_path):
    rng = np.random.default_rng(0)
    columns = {
        "dose, mg": rng.integers(3, size=N),
        "age": rng.normal(size=N),
        "x": rng.normal(size=N),
    }
    columns |= {"ill": np.arange(N) % 2, "hospital": np.arange(N) // 2 % 2}
    write_columns(tmp_path / "t.csv", columns)
    out, named = ("--no-search", "--out", tmp_path / "m.isr"), '"dose, mg",age'
    for given, expected in {
        ("--features", named): ("dose, mg", "age"),
        ("--exclude", named): ("x",),
        ("--categorical", named.removesuffix(",age"), "--exclude", "x"): (
            *(f"dose, mg={i}" for i in range(3)),
            "age",
        ),
    }.items():
        code, _, err = isr("fit", tmp_path / "t.csv", *ROLES, *given, *out)
        assert code == 0, err
        assert read_model(tmp_path / "m.isr").feature_names == expected
    given = ("--label", "ill", "--candidates", '"dose, mg", hospital', "--json")
    code, said, _ = isr("scan", tmp_path / "t.csv", *given)
    assert {each["name"] for each in json.loads(said)["table"]} == {"dose, mg", "hospital"}


def test_strict_refuses_and_names_all_columns(isr, messy, tmp_path):
    code, _, err = isr("fit", messy, *ROLES, "--strict", "--out", tmp_path / "m.isr")
    assert code == 2
    assert "column 'admitted' holds '01/01/2023' in row 1, not a number; look also at 'age'" in err
    assert "without --strict" in err
    assert "--impute" in err
    numbers = ["--features", "age,dose"]
    code, _, err = isr("fit", messy, *ROLES, *numbers, "--strict", "--out", tmp_path / "m.isr")
    assert code == 2
    assert "column 'age' is missing (NaN) in row 1; impute" in err
    given = [*numbers, "--strict", "--impute", "mean"]
    code, _, err = isr("fit", messy, *ROLES, *given, "--out", tmp_path / "m.isr")
    assert code == 0
    assert read_model(tmp_path / "m.isr").feature_names == ("age", "age is missing", "dose")


def test_numbers_without_gaps_need_no_preparation(isr, messy, tmp_path):
    numbers = ["--features", "patient_id,dose,weight"]
    path = tmp_path / "m.isr"
    assert isr("fit", messy, *ROLES, *numbers, "--out", path)[0] == 0
    model = read_model(path)
    assert model.preparation == ()
    assert model.feature_names == ("dose", "weight")
    assert model.metadata["prepared"][0][2] == "its name is that of an id"
    assert isr("export", path, "--to", "numpy", "--out", tmp_path / "m.npz")[0] == 0
    assert isr("fit", messy, *ROLES, *numbers, "--impute", "median", "--out", path)[0] == 0
    assert read_model(path).preparer.plain_  # medians for the tables to come
    assert isr("export", path, "--to", "numpy", "--out", tmp_path / "m.npz")[0] == 0
    assert np.load(tmp_path / "m.npz")["feature_names"].tolist() == ["dose", "weight"]


def test_categories_are_not_exported(isr, model, tmp_path):
    code, _, err = isr("export", model[0], "--to", "numpy", "--out", tmp_path / "m.npz")
    assert code == 2
    assert "encodes the categories of 'sex', 'ward' and imputes missing values of 'age'" in err


def test_diagnose_prepares_too(isr, messy):
    code, out, err = isr("diagnose", messy, *ROLES, "--exclude", "ward")
    assert code == 0
    assert "Diagnosis of 400 rows, 6 features" in out
    assert "its name is that of an id" in err


def test_test_table_is_scored_without_a_report(isr, messy, tmp_path):
    test = write_messy(tmp_path / "test.csv", seed=2, n=80)
    given = ["--n-spurious", 1, "--out", tmp_path / "m.isr", "--test", test]
    code, out, _ = isr("fit", messy, *ROLES, *given)
    assert code == 0
    assert "test rows" in out
    assert "training rows" not in out
    code, out, _ = isr("fit", messy, *ROLES, *given, "--json")
    assert json.loads(out)["metadata"]["metrics"]["test"]["n"] == 80


def test_mistakes_of_strangers(isr, messy, tmp_path):
    fit = ["fit", messy, *ROLES, "--out", tmp_path / "m.isr"]
    code, _, err = isr("fit", messy, "--label", "ill", "--env", "hospital", "--out", "m.isr")
    assert code == 2
    assert "Did you mean --environment?" in err
    for wrong in ("r.pdf", "r.csv", "r"):
        code, _, err = isr(*fit, "--report", tmp_path / wrong)
        assert code == 2
        assert "must end in .html, .htm" in err
    code, _, err = isr("fit", messy, *ROLES, "--out", tmp_path / "model.csv")
    assert code == 2
    assert "name it model.isr" in err
    code, _, err = isr("fit", tmp_path, *ROLES, "--out", tmp_path / "m.isr")
    assert code == 2
    assert "this is a folder; name a table in it: it holds 'train.csv'" in err
    code, _, err = isr("export", "m.isr", "--to", "onnx", "--out", tmp_path / "m.npz")
    assert code == 2
    assert "this file must end in .onnx" in err


def test_text_labels_stay_text_in_parquet_and_csv(isr, messy, tmp_path):
    import pandas as pd

    frame = pd.read_csv(messy, dtype={"zip": str})
    frame["admitted"] = pd.to_datetime(frame["admitted"], dayfirst=True)
    frame.to_parquet(tmp_path / "train.parquet", index=False)
    for path in (messy, tmp_path / "train.parquet"):
        given = ["--n-spurious", 1, "--categorical", "zip"]
        assert isr("fit", path, *ROLES, *given, "--out", tmp_path / f"{path.suffix}.isr")[0] == 0
    one, other = (read_model(tmp_path / f"{end}.isr") for end in (".csv", ".parquet"))
    assert one.feature_names == other.feature_names
    assert np.allclose(one.estimator.coef_, other.estimator.coef_)


def test_one_number_as_a_category_is_found_again_however_it_is_written(isr, tmp_path):
    """Where a value is missing pandas writes 1 as 1.0; read as a number, the category is 1."""
    score = {}
    for written in ("1.0", "1", "1.00"):
        rng = np.random.default_rng(0)
        rows = [["x", "mark", "hospital", "ill"]]
        for i in range(N):
            ill = i % 2
            mark = written if rng.random() < (0.1, 0.9)[ill] else ""
            rows.append([rng.normal(i // 2 % 2), mark, "AB"[i // 2 % 2], ("no", "yes")[ill]])
        path, model = tmp_path / f"{written}.csv", tmp_path / "model.isr"
        with open(path, "w", newline="") as file:
            csv.writer(file).writerows(rows)
        if not model.exists():
            given = [*ROLES, "--no-search", "--out", model, "--json"]
            score["fitted"] = json.loads(isr("fit", path, *given)[1])["metadata"]["metrics"][
                "train"
            ]["average"]
        score[written] = json.loads(isr("evaluate", model, path, "--json")[1])["model"]["average"]
    assert score["fitted"] > 0.85
    assert len(set(score.values())) == 1


def test_booleans_of_parquet_are_the_categories_of_the_same_table_in_text(isr, tmp_path):
    rng = np.random.default_rng(0)
    ill = np.arange(N) % 2
    columns = {"x": rng.normal(size=N), "flag": rng.random(N) < np.where(ill, 0.9, 0.1)}
    columns |= {"hospital": np.arange(N) // 2 % 2, "ill": ill}
    for ending in ("csv", "parquet"):
        write_columns(tmp_path / f"t.{ending}", columns)
    model, score = tmp_path / "model.isr", set()
    assert isr("fit", tmp_path / "t.csv", *ROLES, "--no-search", "--out", model)[0] == 0
    for ending in ("csv", "parquet"):
        out = isr("evaluate", model, tmp_path / f"t.{ending}", "--json")[1]
        score.add(json.loads(out)["model"]["average"])
    assert len(score) == 1
    assert min(score) > 0.85


def test_the_code_of_a_report_reads_the_columns_that_were_used(isr, tmp_path):
    rng = np.random.default_rng(0)
    y, e = rng.integers(0, 2, (2, 200))
    table, page = tmp_path / "t.csv", tmp_path / "t.html"
    with open(table, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b", "gap", "note", "y", "e"])
        for i, (k, j) in enumerate(zip(y, e, strict=True)):
            gap = "" if i % 3 else "1.5"
            writer.writerow([rng.normal(k), rng.normal(j), gap, f"text {i}", k, j])
    given = ["--label", "y", "--environment", "e", "--exclude", "gap", "--no-search"]
    isr("fit", table, *given, "--out", tmp_path / "m.isr", "--report", page)
    code = re.search(r'aria-label="Python">(.*?)</pre>', page.read_text(), re.DOTALL)[1]
    found = {}
    exec(html.unescape(code), found)
    assert found["train"].X.shape == (200, 2)
    assert found["model"].coef_.shape == (1, 2)
