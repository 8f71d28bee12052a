"""Do regressions with ISR harm in environments that were left out?

    python benchmarks/regression.py --seeds 3 --jobs 2 --out docs/benchmarks/regression-unseen

Every environment of a table is left out in turn (with more than twenty, a twentieth at a time),
each model is fitted on the others, and its error in the environment left out is recorded. Ridge
regression and its search over penalties are the yardstick; all searches choose by the same rule.
Generated data are drawn anew for every seed. Of a table with more than 2,000 rows every seed draws
that many; smaller ones are used whole, once. The rule was designed on other generated data; that
weights have to prove themselves too was decided after a first run here.
"""

from __future__ import annotations

import argparse
import io
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from isrlearn import ISRRegressor, ISRRegressorCV
from isrlearn.paper.datasets.files import Resource, content
from isrlearn.paper.datasets.law_school import LAW_SCHOOL_FILE
from isrlearn.paper.tables import Table, csv_text, markdown, write_files

MOST_ROWS, MOST_FOLDS = 2_000, 20
_GITHUB = "https://raw.githubusercontent.com/"
FILES = {
    "communities": Resource(
        "communities/communities.data",
        _GITHUB + "lucjb/pydata2017/d176b70e3e6880d8dce91c08cec357306a5fb22e/communities.data",
        "96d0c0b5105e6543f0344af654a147036d842b60768d998717cad880e159f5c3",
    ),
    "cars": Resource(
        "mpg/mpg.csv",
        _GITHUB + "mwaskom/seaborn-data/master/mpg.csv",
        "c14b8b855ea7ee86cb9736bf8caaf281c4685ca08826f3eb2acaccaaf40f0d5a",
    ),
    "housing": Resource(
        "california-housing/housing.csv",
        _GITHUB + "ageron/handson-ml2/master/datasets/housing/housing.csv",
        "8a3727f4cf54ac1a327f69b1d5b4db54c5834ea81c6e4efc0d163300022a685e",
    ),
    "law school": LAW_SCHOOL_FILE,
    "adult": Resource(
        "adult/adult.csv.gz",
        "",
        "c30ce1e55a965b04950321870db74c19f4aa437120a692f32e72f6a4fa31c418",
    ),
    "compas": Resource(
        "compas/compas.csv.gz",
        _GITHUB + "propublica/compas-analysis/master/compas-scores-two-years.csv",
        "c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d",
    ),
}
#: File, target, environment, and columns that are not features, of each table.
TABLES = {
    "communities: crime by state": (
        "communities",
        "ViolentCrimesPerPop",
        "state",
        "county community communityname fold",
    ),
    "cars: consumption by origin": ("cars", "mpg", "origin", "name"),
    "cars: consumption by year": ("cars", "mpg", "model_year", "name"),
    "housing: value by distance to the ocean": (
        "housing",
        "median_house_value",
        "ocean_proximity",
        "",
    ),
    "law school: grades by tier": ("law school", "ugpa", "cluster", ""),
    "adult: hours by employer": ("adult", "hours-per-week", "workclass", "fnlwgt education"),
    "compas: earlier crimes by race": ("compas", "priors_count", "race", ""),
}
COMPAS = "sex age race juv_fel_count juv_misd_count juv_other_count priors_count c_charge_degree"
#: What is planted in generated data, with eight environments.
GENERATED = ("nothing", "features shift", "target shifts", "a follower with offsets", "a turncoat")
MODELS: dict[str, Any] = {
    "ridge": ISRRegressor(0),
    "published": ISRRegressor(compare="means"),
    "given target": ISRRegressor(compare="given-target"),
    "ISRRegressor()": ISRRegressor(),
    "ridge, tuned": ISRRegressorCV(0, compare="means", scale=1.0, weights=None),
    "ISRRegressorCV()": ISRRegressorCV(),
}
Data = tuple[np.ndarray, np.ndarray, np.ndarray]


@cache
def table(name: str) -> Data:
    """Features, target and environments of a table."""
    file, target, environment, others = TABLES[name]
    text = content(FILES[file]).decode("utf-8")
    if file == "communities":  # its header leaves out the first columns
        text = f"state,{others.replace(' ', ',')},{text}"
    frame = pd.read_csv(io.StringIO(text), na_values="?")
    frame = frame[COMPAS.split()] if file == "compas" else frame.drop(columns=others.split())
    frame = frame.dropna(subset=[target, environment]).reset_index(drop=True)
    y, e = frame.pop(target), frame.pop(environment)
    frame = frame.loc[:, frame.isna().mean() < 0.5]
    X = pd.get_dummies(frame.fillna(frame.median(numeric_only=True)), dtype=float)
    X = X.loc[:, X.std() > 0]
    return X.to_numpy(float), y.to_numpy(float), e.astype(str).to_numpy()


def generated(kind: str, seed: int, *, E: int = 8, n: int = 100) -> Data:
    """Six features, three of them causes of the target and one, perhaps, its follower."""
    rng = np.random.default_rng(seed)
    e = np.repeat(np.arange(E), n)
    X, noise = rng.normal(size=(E * n, 6)), rng.normal(size=E * n)
    if kind == "features shift":
        X += 0.7 * rng.normal(size=(E, 6))[e]
    y = X[:, :3] @ [1.0, -1.0, 0.5] + noise
    if kind == "target shifts":
        y = noise + rng.normal(size=E)[e]
        X += np.outer(y, [1.0, -1.0, 0.5, 0.0, 0.0, 0.0])
    if kind in GENERATED[3:]:
        gain = np.where(np.arange(E) % 2, 1.0, -1.0) if kind == "a turncoat" else np.ones(E)
        X[:, 5] = gain[e] * y + rng.normal(size=E)[e] + 0.3 * X[:, 5]
    return X, y, e.astype(str)


def drawn(name: str, seed: int) -> Data:
    """The rows of a seed; an environment needs ten of them."""
    if name not in TABLES:
        return generated(name, seed)
    X, y, e = table(name)
    rows = np.random.default_rng(seed).permutation(len(y))[:MOST_ROWS]
    names, count = np.unique(e[rows], return_counts=True)
    rows = rows[np.isin(e[rows], names[count >= 10])]
    return X[rows], y[rows], e[rows]


def errors(name: str, model: str, fold: int, seed: int) -> list[dict]:
    """Root mean squared errors of a model in the environments of a fold that was left out."""
    X, y, e = drawn(name, seed)
    names = np.unique(e)
    out = np.isin(e, names[np.arange(len(names)) % min(len(names), MOST_FOLDS) == fold])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = MODELS[model].fit(X[~out], y[~out], e[~out])
    best = getattr(fitted, "best_estimator_", fitted)
    removed = best.n_spurious_ if best.scale < 1 else 0
    found = []
    for environment in np.unique(e[out]):
        held = e == environment
        error = float(f"{np.sqrt(np.mean((fitted.predict(X[held]) - y[held]) ** 2)):.6g}")
        row = {"data": name, "model": model, "seed": seed, "environment": environment}
        found.append(row | {"rows": int(held.sum()), "rmse": error, "removed": removed})
    return found


def tables(rows: list[dict]) -> list[Table]:
    """Mean error over environments; differences with a standard error over environments."""
    frame = pd.DataFrame(rows)
    lines = []
    for name in [*TABLES, *GENERATED]:
        part = frame[frame.data == name]
        by = part.pivot_table(index="environment", columns="model", values="rmse")
        scale = 10.0 ** np.floor(np.log10(by["ridge"].mean()))
        shown = 1.0 if 0.1 <= scale <= 10 else scale
        line = [f"{name}" + ("" if shown == 1.0 else f" ({shown:,.0f})"), str(len(by))]
        line += [f"{by[model].mean() / shown:.3f}" for model in list(MODELS)[:3]]
        for model, against in (("ISRRegressor()", "ridge"), ("ISRRegressorCV()", "ridge, tuned")):
            if model == "ISRRegressorCV()":
                line.append(f"{by[against].mean() / shown:.3f}")
            gap = (by[model] - by[against]) / shown
            error = gap.std(ddof=1) / np.sqrt(len(gap))
            removes = (part[part.model == model].removed > 0).mean()
            line.append(f"{by[model].mean() / shown:.3f}")
            line.append(f"{gap.mean():+.3f} ± {error:.3f}")
            line.append(f"{100 * removes:.0f} %")
        lines.append(line)
    one, two = ["ISRRegressor()", "minus ridge", "removes"], ["ISRRegressorCV()", "minus tuned"]
    columns = ["data", "environments", "ridge", "published", "given target", *one, "ridge, tuned"]
    title = "Root mean squared error in environments left out"
    return [Table(title, [*columns, *two, "removes"], lines)]


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("isr-bench/regression-unseen"))
    options = parser.parse_args()
    tasks = []
    for name in [*TABLES, *GENERATED]:
        whole = name in TABLES and len(table(name)[1]) <= MOST_ROWS
        for seed in range(1 if whole else options.seeds):
            n_folds = min(len(np.unique(drawn(name, seed)[2])), MOST_FOLDS)
            tasks += [(name, model, k, seed) for model in MODELS for k in range(n_folds)]
    run = Parallel(n_jobs=options.jobs, verbose=1)
    rows = [row for found in run(delayed(errors)(*task) for task in tasks) for row in found]
    notes = [
        f"Made by `python benchmarks/regression.py --seeds {options.seeds}`.",
        f"Means over {options.seeds} seeds (one run where a table has at most {MOST_ROWS:,} rows), "
        "then over environments; ± is the standard error over environments of the paired "
        "difference. *Removes*: share of fits that remove anything. *Published* is "
        '`compare="means"`, *given target* `compare="given-target"`, both with the tested '
        "number of dimensions and the penalty of *ridge*. Environments of fewer than ten rows are "
        "left out. Units of errors are in brackets. The last five are generated: a *follower* of "
        "the target has an offset in each environment, a *turncoat* also changes its sign.",
    ]
    page = markdown("Regression in environments left out", notes, tables(rows))
    write_files(options.out, {"results.csv": csv_text(list(rows[0]), rows), "table.md": page})
    print(page)


if __name__ == "__main__":
    main()
