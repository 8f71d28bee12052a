"""Accuracy in a hospital, scanner or batch that was not trained on: ISR against harmonisation.

    python benchmarks/new_sites.py --seeds 3 --jobs 2 --out docs/benchmarks/new-sites

Every site of a table is left out in turn, each method is fitted on the others, and its accuracy in
the site left out is recorded, classes counting the same. All methods choose their settings by one
rule: the accuracy in the training sites, left out in turn once more (except a site without which no
class is left in two sites). Of a table with more than 3,000 rows every seed draws that many;
smaller ones are used whole, once; generated data are drawn anew for every seed.
"""

from __future__ import annotations

import argparse
import csv
import io
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray

from isrlearn import ISRClassifier, ISRClassifierCV, TablePreparer
from isrlearn.paper.datasets import load_table
from isrlearn.paper.datasets.files import Resource, content
from isrlearn.paper.tables import Table, markdown, write_files

MOST_ROWS = 3_000
ADULT = Resource(
    "adult/adult.csv.gz", "", "c30ce1e55a965b04950321870db74c19f4aa437120a692f32e72f6a4fa31c418"
)
REGIONS = {
    "Asia": "Cambodia China Hong India Iran Japan Laos Philippines Taiwan Thailand Vietnam",
    "Caribbean": "Cuba Dominican-Republic Haiti Jamaica Puerto-Rico Trinadad&Tobago",
    "Europe": "England France Germany Greece Holand-Netherlands Hungary Ireland Italy Poland "
    "Portugal Scotland Yugoslavia",
    "Latin America": "Columbia Ecuador El-Salvador Guatemala Honduras Mexico Nicaragua Peru",
    "United States": "United-States",
}
#: Name and environment of the tables that have a loader.
TABLES = {
    "gene expression: batch": ("bladderbatch", "batch"),
    "smartwatch: person": ("watch", "subject"),
    "employment: year": ("employment-ma", "year"),
    "employment: race": ("employment-ma", "RAC1P"),
    "arrests: race": ("compas", "race"),
}
CENSUS = "income: region of birth"
#: What differs between the sites of generated data.
GENERATED = (
    "generated: class means, two directions",
    "generated: an offset, two directions",
    "generated: an offset, every direction",
    "generated: an offset, and the mix of classes",
)
DATA = (*TABLES, CENSUS, *GENERATED)
RULE = {"selection": "average", "threshold": None}
NOTHING = {"n_spurious": 0, "scale": 1.0, **RULE}
PENALTIES = (0.001, 0.01, 0.1, 1.0)
Data = tuple[NDArray, NDArray, NDArray]


@cache
def census() -> Data:
    """The census table; the region of birth is the site, and no column of the features."""
    frame = pd.read_csv(io.BytesIO(content(ADULT)), na_values="?")
    regions = {name: region for region, names in REGIONS.items() for name in names.split()}
    site = frame.pop("native-country").map(regions)
    y = frame.pop("income-per-year").to_numpy()
    X = TablePreparer(exclude=["education", "fnlwgt"]).fit_transform(frame)
    known = site.notna().to_numpy()
    return np.asarray(X)[known], y[known], site[known].to_numpy(dtype=str)


def generated(kind: str, seed: int, *, E: int = 6, n: int = 100, d: int = 20) -> Data:
    """Two classes that differ in the first three features; two others shift with the site."""
    rng = np.random.default_rng(seed)
    e = np.repeat(np.arange(E), n)
    share = rng.uniform(0.1, 0.9, E) if "mix" in kind else np.full(E, 0.5)
    y = (rng.random(E * n) < share[e]).astype(int)
    X = rng.normal(size=(E * n, d))
    X[:, :3] += 0.6 * (2 * y - 1)[:, None]
    if "class means" in kind:
        X[:, 3:5] += (2 * y - 1)[:, None] * rng.normal(0.5, 1.5, (E, 2))[e]
    elif "every" in kind:
        X += 1.5 * rng.normal(size=(E, d))[e]
    else:
        X += 1.5 * rng.normal(size=(E, 2))[e] @ rng.normal(size=(2, d))
    return X, y, e.astype(str)


@cache
def whole(name: str) -> Data:
    """All rows of a table."""
    if name == CENSUS:
        return census()
    data = load_table(TABLES[name][0], environment=TABLES[name][1])
    return data.X, data.y, data.environments.astype(str)


def drawn(name: str, seed: int) -> Data:
    """The rows of a seed: of a large table as many of every site as there are, in equal parts."""
    if name in GENERATED:
        return generated(name, seed)
    X, y, e = whole(name)
    if len(y) <= MOST_ROWS:
        return X, y, e
    rng, sites = np.random.default_rng(seed), np.unique(e)
    members = [rng.permutation(np.flatnonzero(e == site)) for site in sites]
    rows = np.concatenate([each[: MOST_ROWS // len(sites)] for each in members])
    return X[rows], y[rows], e[rows]


def folds(y: NDArray, e: NDArray) -> list[tuple[NDArray, NDArray]]:
    """Training sites left out in turn, where some class is left in two of the others."""
    found = []
    for out in (e == site for site in np.unique(e)):
        rest = pd.crosstab(y[~out], e[~out]) > 0
        if len(rest) > 1 and (rest.sum(axis=1) > 1).any():
            found.append((np.flatnonzero(~out), np.flatnonzero(out)))
    return found


@dataclass
class Harmonised:
    """A linear model on rows whose sites were given the same location and scale.

    The empirical Bayes model of ComBat (Johnson, Li and Rabinovic, 2007). With `labels`, classes
    are covariates in the training sites. A new site is harmonised by its own rows, without labels;
    with `untouched` it is not harmonised at all.
    """

    labels: bool = False
    untouched: bool = False

    def fit(self, X: NDArray, y: NDArray, environments: NDArray) -> Harmonised:
        """Choose the settings by training sites left out in turn, then fit on all of them."""
        e, hits = environments, np.zeros(len(PENALTIES))
        for train, test in folds(y, e):
            part, new = self._train(X[train], y[train], e[train]), self._new(X[test])
            for i, C in enumerate(PENALTIES):
                head = self._head(part, y[train], e[train], C)
                hits[i] += np.sum(head.predict(new) == y[test])
        self.head = self._head(self._train(X, y, e), y, e, PENALTIES[int(hits.argmax())])
        return self

    def predict(self, X: NDArray) -> NDArray:
        """Classes of all the rows of one new site."""
        return self.head.predict(self._new(X))

    @staticmethod
    def _head(X: NDArray, y: NDArray, e: NDArray, C: float) -> ISRClassifier:
        return ISRClassifier(n_spurious=0, C=C, weights="class").fit(X, y, e)

    def _train(self, X: NDArray, y: NDArray, e: NDArray) -> NDArray:
        """The training rows, harmonised; their mean and spread are those of the new sites too."""
        sites, own = np.unique(e, return_inverse=True)
        places = np.eye(len(sites))[own]
        classes = np.eye(len(np.unique(y)))[np.unique(y, return_inverse=True)[1]][:, 1:]
        covariates = classes - classes.mean(axis=0) if self.labels else classes[:, :0]
        effects = np.linalg.lstsq(np.hstack([places, covariates]), X, rcond=None)[0]
        kept = covariates @ effects[len(sites) :]
        self.mean = places.mean(axis=0) @ effects[: len(sites)]
        residual = X - places @ effects[: len(sites)] - kept
        self.spread = np.maximum(residual.std(axis=0), 1e-9)
        adjusted = np.empty_like(X)
        for s in range(len(sites)):
            rows = own == s
            adjusted[rows] = self._adjusted(X[rows] - kept[rows]) + kept[rows]
        return adjusted

    def _new(self, X: NDArray) -> NDArray:
        return X if self.untouched else self._adjusted(X)

    def _adjusted(self, X: NDArray) -> NDArray:
        """Rows of a site with the location and scale of all, both shrunk over the features."""
        z, n = (X - self.mean) / self.spread, len(X)
        location, scale = z.mean(axis=0), z.var(axis=0, ddof=1) if n > 1 else np.ones(X.shape[1])
        prior, width = location.mean(), location.var() + 1e-12
        middle, vary = scale.mean(), scale.var() + 1e-12
        a, b = 2 + middle**2 / vary, middle + middle**3 / vary
        g, s = location, np.maximum(scale, 1e-9)
        for _ in range(30):
            g = (n * width * location + s * prior) / (n * width + s)
            s = (b + 0.5 * ((z - g) ** 2).sum(axis=0)) / (n / 2 + a - 1)
        return (z - g) / np.sqrt(s) * self.spread + self.mean


MODELS: dict[str, Any] = {
    "plain": lambda: ISRClassifierCV(weights=None, **NOTHING),
    "class-balanced": lambda: ISRClassifierCV(weights="class", **NOTHING),
    "group-balanced": lambda: ISRClassifierCV(weights="group", **NOTHING),
    "`ISRClassifier`": lambda: ISRClassifier(),
    "all found removed": lambda: ISRClassifierCV(
        "multiclass", n_spurious="auto", scale=0.0, weights="class", **RULE
    ),
    "`ISRClassifierCV`": lambda: ISRClassifierCV(weights="class", **RULE),
    "harmonised": lambda: Harmonised(),
    "harmonised, labels": lambda: Harmonised(labels=True),
    "new site untouched": lambda: Harmonised(labels=True, untouched=True),
}
BASELINE = "class-balanced"


def scored(name: str, model: str, site: str, seed: int) -> dict[str, Any]:
    """Accuracy of a model in a site that was left out, the mean over its classes."""
    X, y, e = drawn(name, seed)
    out = e == site
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = MODELS[model]()
        if hasattr(fitted, "cv"):
            fitted.set_params(cv=folds(y[~out], e[~out]))
        fitted.fit(X[~out], y[~out], environments=e[~out])
        hits = fitted.predict(X[out]) == y[out]
    best = getattr(fitted, "best_estimator_", fitted)
    removed = 0
    if isinstance(best, ISRClassifier) and best.scale < 1:
        removed = int(best.n_spurious_)
    accuracy = np.mean([hits[y[out] == k].mean() for k in np.unique(y[out])])
    row = {"data": name, "model": model, "seed": seed, "site": site, "rows": int(out.sum())}
    return row | {"accuracy": round(float(accuracy), 6), "removed": removed}


def tables(rows: list[dict[str, Any]]) -> list[Table]:
    """Means over sites, differences from the balanced model, the worst site, and removals."""
    frame = pd.DataFrame(rows)
    means, gaps, worst, removed = [], [], [], []
    for name in dict.fromkeys(frame.data):
        part = frame[frame.data == name]
        by = part.pivot_table(index="site", columns="model", values="accuracy")
        gap = by.sub(by[BASELINE], axis=0)
        error = gap.std(ddof=1) / np.sqrt(len(gap))
        best = by.mean().max()
        bold = {m: "**" if by[m].mean() > best - 5e-4 else "" for m in MODELS}
        first = [name, str(len(by))]
        means.append([*first, *(f"{bold[m]}{by[m].mean():.3f}{bold[m]}" for m in MODELS)])
        others = [m for m in MODELS if m != BASELINE]
        gaps.append([*first, *(f"{gap[m].mean():+.3f} ± {error[m]:.3f}" for m in others)])
        worst.append([*first, *(f"{by[m].min():.3f}" for m in MODELS)])
        size = part.groupby("model").removed.mean()
        ours = [m for m in MODELS if "ISR" in m or "removed" in m]
        removed.append([*first, *(f"{size[m]:.1f}" for m in ours)])
    head = ["data: sites", "sites"]
    return [
        Table("Accuracy in a site left out, mean over sites", [*head, *MODELS], means),
        Table(f"Difference from {BASELINE}", [*head, *others], gaps),
        Table("The worst site", [*head, *MODELS], worst),
        Table("Directions removed, mean", [*head, *ours], removed),
    ]


def seeds_of(name: str, seeds: int) -> range:
    """The seeds of a data set; a small table is used whole, once."""
    once = name not in GENERATED and len(whole(name)[1]) <= MOST_ROWS
    return range(1, 2 if once else seeds + 1)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("isr-bench/new-sites"))
    parser.add_argument("--only", help="measure this model; the rows of others in --out are kept")
    options = parser.parse_args()
    kept: list[Any] = []
    if options.only:
        known = pd.read_csv(options.out / "results.csv", dtype={"site": str})
        kept = known[known.model != options.only].to_dict("records")
    tasks = [
        (name, model, site, seed)
        for name in DATA
        for seed in seeds_of(name, options.seeds)
        for site in np.unique(drawn(name, seed)[2]).tolist()
        for model in MODELS
        if options.only in (None, model)
    ]
    run = Parallel(n_jobs=options.jobs, backend="multiprocessing", verbose=1)
    rows = kept + run(delayed(scored)(*task) for task in tasks)
    notes = [
        f"Made by `python benchmarks/new_sites.py --seeds {options.seeds}`.",
        f"Means over {options.seeds} seeds (one run where a table has at most {MOST_ROWS:,} rows), "
        "then over sites; classes of a site count the same; ± is the standard error over sites of "
        "the paired difference. **Best**. Every method but `ISRClassifier`, which has its default, "
        "chooses C by the accuracy in training sites left out in turn; `ISRClassifierCV` "
        "also chooses how much to remove. Plain has no weights, group-balanced those of groups, "
        "`ISRClassifier` compares classes inside sites as it does by default, all others weight "
        "the classes alike (it and `ISRClassifierCV` were measured later than the other columns, "
        "on the same rows): a first look, at one site of every table but "
        "*smartwatch* with seed 0, had shown that weights chosen by accuracy lose accuracy in the "
        "rare class. "
        "*Harmonised*: location and scale of every site adjusted as ComBat does, in the new site "
        "from its own rows, which must all be there before the first prediction; *labels*: with "
        "classes as covariates in the training sites; *untouched*: the same, but the rows of the "
        "new site are used as they are. No other method uses rows of the new site.",
    ]
    page = markdown("New sites", notes, tables(rows))
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_files(options.out, {"results.csv": text.getvalue(), "table.md": page})
    print(page)


if __name__ == "__main__":
    main()
