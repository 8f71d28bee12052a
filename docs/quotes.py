"""Numbers in sentences of the README and the documentation, computed from the committed results.

An entry of `quotes.toml` is a part of a sentence with a hole for each number, and an expression in
the functions below that gives the numbers. The test suite fills the holes and looks for the words
on the page. Other numbers on the pages are settings and published figures, and listed there too.
"""

from __future__ import annotations

import json
import re
import runpy
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

from isrlearn.paper import published_results
from isrlearn.paper.real.tables import paper_score

HERE = Path(__file__).parent
TABLES = runpy.run_path(str(HERE / "tables.py"))
read = cache(TABLES["read"])
Numbers = list[float]

EVERY = range(2, 11)
SHIFTED = ("3", "3s", "3'", "3s'")
BIRDS, DIGITS = "Waterbirds-like features", "digits on paper"
PARTIAL = ("waterbirds-like", "digits-on-paper")
OURS, GUESSED = "`ISRClassifierCV()`", "the same, environments guessed by"


def values(path: str, column: str, **where: object) -> Numbers:
    """A column of a file of results, in the rows where other columns have the values given."""
    wanted = {name: str(value) for name, value in where.items()}.items()
    return [float(row[column]) for row in read(path) if wanted <= row.items()]


def cell(folder: str, dataset: str, method: str, E: int, column: str = "mean") -> float:
    """A number of a synthetic experiment."""
    where = {"dataset": dataset, "method": method, "n_environments": E}
    (found,) = values(f"{folder}/summary.csv", column, **where)
    return found


def diagnosed() -> Numbers:
    """Draws whose prediction is right, all draws, and draws in which ISR makes no difference."""
    rows = read("diagnosis/results.csv")
    right = sum(row["predicted"] == row["found"] for row in rows)
    return [right, len(rows), sum(row["found"] == "no difference" for row in rows)]


def unseen_by(data: str, model: str) -> dict[str, float]:
    """Error of a regression in each environment when it is left out, mean over seeds."""
    errors: dict[str, Numbers] = {}
    for row in read("regression-unseen/results.csv"):
        if (row["data"], row["model"]) == (data, model):
            errors.setdefault(row["environment"], []).append(float(row["rmse"]))
    return {environment: mean(found) for environment, found in errors.items()}


def unseen(data: str, *models: str) -> Numbers:
    """Errors of regressions in environments left out, means over environments."""
    return [mean(unseen_by(data, model).values()) for model in models]


def unseen_gap(data: str) -> Numbers:
    """How many standard errors the search of regressions is behind tuned ridge."""
    ours, ridge = unseen_by(data, "ISRRegressorCV()"), unseen_by(data, "ridge, tuned")
    gap = [ours[environment] - ridge[environment] for environment in ours]
    return [mean(gap) / (stdev(gap) / len(gap) ** 0.5)]


def scanned() -> Numbers:
    """Tables in most draws of which the shortcut is first: where columns carry it, and in all."""
    tables: dict[str, list[dict[str, str]]] = {}
    for row in read("scan/results.csv"):
        if row["kind"] != "null":
            tables.setdefault(row["data"], []).append(row)
    carried = [t for t in tables.values() if mean(float(row["carried"]) for row in t) >= 0.5]
    counts: Numbers = []
    for some in (carried, list(tables.values())):
        first = [mean(row["first"] == "shortcut" for row in rows) > 0.5 for rows in some]
        counts += [sum(first), len(first)]
    return counts


def scanned_nulls() -> Numbers:
    """Draws of the nulls in which nothing is found, and all of them."""
    found = [row["found"] for row in read("scan/results.csv") if row["kind"] == "null"]
    return [found.count("0"), len(found)]


def reported(page: str) -> Numbers:
    """Worst groups and their difference, as a page of `howto/reports` gives them."""
    text = (HERE / "howto/reports" / f"{page}.html").read_text(encoding="utf-8")
    sentence = (
        text[text.index("the accuracy of the worst group is") :]
        .split(")")[0]
        .replace("95% interval", "")
    )
    return [float(number) for number in re.findall(r"[+-]?\d+\.\d", sentence)]


def harmed() -> list[str]:
    """What was found in the draws for which harm was predicted."""
    return [row["found"] for row in read("diagnosis/results.csv") if row["predicted"] == "hurts"]


def missing_groups() -> Numbers:
    """Draws with a missing group whose prediction is right, and their worst group without, with."""
    rows = [row for row in read("diagnosis/results.csv") if "missing" in row["data"]]
    right = sum(row["predicted"] == row["found"] for row in rows)
    return [right, *(mean(float(row[column]) for row in rows) for column in ("before", "after"))]


def decided(data: str) -> Numbers:
    """Worst group of the test rows by ISR and by the best alternative, means over the draws."""
    rows = [row for row in read("diagnosis/results.csv") if row["data"] == data]
    return [mean(float(row[column]) for row in rows) for column in ("after", "before")]


def in_regime(regime: str, *methods: str) -> Numbers:
    """Mean scores of methods over the data sets of a regime."""
    scores = [found for key, found in TABLES["regime_scores"]().items() if key[0] == regime]
    return [mean(found[method] for found in scores) for method in methods]


@cache
def against_balanced() -> dict[str, Numbers]:
    """Points of the worst group by `ISRClassifier()` over class-balanced, with standard error."""
    path, points = "regimes-defaults/results.csv", {}
    for data in {row["dataset"] for row in read(path)}:
        ours, balanced = (
            values(path, "score", dataset=data, method=method)
            for method in ("ISRClassifier()", "class-balanced")
        )
        gains = [100 * (a - b) for a, b in zip(ours, balanced, strict=True)]
        points[data] = [mean(gains), stdev(gains) / len(gains) ** 0.5]
    return points


def excess(dataset: str, method: str, E: int, column: str = "excess_mean") -> float:
    """Error over the oracle's in the linear unit tests."""
    return cell("linear-unit-tests", dataset, method, E, column)


def multiclass(k: int, method: str, E: int) -> float:
    """Error over the oracle's with k classes."""
    return cell("multiclass", f"k={k}", method, E, "excess_mean")


def anticausal(d_s: int, method: str, E: int) -> float:
    """Mean squared error in the anti-causal regression."""
    return cell("regression", f"anticausal-d_s={d_s}", method, E)


def ratio(d_s: int, E: int) -> float:
    """Error of ISR-Regression in units of the oracle's."""
    return anticausal(d_s, "isr-regression", E) / anticausal(d_s, "oracle", E)


def behind(methods: Iterable[str], *, near: bool) -> float:
    """Largest gap to the best method: where that is near the oracle, or elsewhere."""
    rows = read("linear-unit-tests/summary.csv")
    rivals = {row["method"] for row in rows} - {"oracle", "irmv1-best"}
    gaps = []
    for dataset in SHIFTED:
        for E in EVERY:
            best = min(excess(dataset, rival, E) for rival in rivals)
            if (best <= 0.01) == near and not (E == 2 and dataset.endswith("'")):
                gaps += [excess(dataset, method, E) - best for method in methods]
    return max(gaps)


def published(method: str) -> Numbers:
    """Published errors on Example-2 and 2s."""
    return [published_results()[data, method, E].mean for data in ("2", "2s") for E in EVERY]


def verdicts(column: int, *datasets: str) -> Numbers:
    """How often methods agree with what is published (2), or the largest difference (3).

    They are read off the page, which another test compares with the results.
    """
    page = (TABLES["RESULTS"] / "linear-unit-tests-published/table.md").read_text("utf-8")
    lines = [line.strip("| ").split(" | ") for line in page.splitlines()]
    return [float(x[column].split()[0]) for x in lines if x[0] in datasets and len(x) == 4]


def units(method: str, factor: float) -> float:
    """Test error in other units."""
    return mean(values("units/results.csv", "error", method=method, factor=factor))


def faster(kind: str = "ISR") -> Numbers:
    """How many times faster than 10,000 steps of IRMv1 a fit of ISR, or of another kind, is."""
    seconds: dict[tuple[str, str], Numbers] = {}
    for row in read("isr-vs-irm/results.csv"):
        seconds.setdefault((row["n_environments"], row["method"]), []).append(float(row["seconds"]))
    steps = "IRMv1, 10,000 steps of Adam"
    return [
        median(slow / fast for slow, fast in zip(seconds[E, steps], times, strict=True))
        for (E, method), times in seconds.items()
        if method.startswith(kind)
    ]


def steps_against_convergence(folder: str, method: str) -> list[Numbers]:
    """Error after Adam's steps minus that of the converged head, by seed and E."""
    found: dict[str, Numbers] = {}
    for row in read(f"{folder}/results.csv"):
        if row["method"] == method:
            where = {k: row[k] for k in ("dataset", "method", "n_environments", "seed")}
            (converged,) = values("linear-unit-tests/results.csv", "error", **where)
            found.setdefault(where["n_environments"], []).append(float(row["error"]) - converged)
    return list(found.values())


def adam_hours(trials: int = 20) -> float:
    """Hours of the run of all methods under the paper's optimiser, trials fitted side by side."""
    return (
        sum(
            float(row["seconds"])
            * (trials if row["method"][:3] == "isr" or "'" in row["dataset"] else 1)
            for row in read("linear-unit-tests-paper-all/results.csv")
        )
        / 3600
    )


def real(folder: str, score: str, method: str, column: str = "mean") -> Numbers:
    """A number per training objective of a benchmark on real data; accuracies in percent."""
    factor = 100 if score.endswith("accuracy") else 1
    return [factor * v for v in values(f"{folder}/summary.csv", column, score=score, method=method)]


def paper(score: str, method: str = "ISR-Multiclass") -> Numbers:
    """The paper's numbers for Multi-class Coloured MNIST, one per training objective."""
    ways = ("ERM", "IB-ERM", "IRM", "IB-IRM")
    return [paper_score("mc_cmnist", "MC-CMNIST", way, score, method).mean for way in ways]


def gains(folder: str, score: str, method: str = "isr-regression") -> Numbers:
    """Gain of a method over the network as trained, one per training objective."""
    return real(folder, score, method, "change")


def beyond(folder: str, score: str, method: str, other: str) -> list[Numbers]:
    """By how much a method is better than another one, and the standard error, per objective."""
    found = []
    for way in dict.fromkeys(row["optimizer"] for row in read(f"{folder}/results.csv")):
        where = {"optimizer": way, "score": score}
        both = [values(f"{folder}/results.csv", "test", method=m, **where) for m in (other, method)]
        gain = [b - a for b, a in zip(*both, strict=True)]
        if gain:
            found.append([mean(gain), stdev(gain) / len(gain) ** 0.5])
    return found


def refit_shares(folder: str, score: str) -> Numbers:
    """Gain of a new head alone, in percent of its gain with ISR."""
    pairs = zip(gains(folder, score, "refit"), gains(folder, score), strict=True)
    return [100 * alone / both for alone, both in pairs]


def kept_half(folder: str, method: str) -> Numbers:
    """Networks for which half of the spurious part is kept, and all of them."""
    rows = [row for row in read(f"{folder}/results.csv") if row["method"] == method]
    chosen = {(row["optimizer"], row["seed"]): "scale=0.5" in row["chosen"] for row in rows}
    return [sum(chosen.values()), len(chosen)]


def cnn(last_layer: str) -> Numbers:
    """The worst group's accuracy of a CNN with a last layer, seed by seed."""
    return values("torch-digits/results.csv", "worst", model=last_layer)


def cnn_gain() -> Numbers:
    """Means before and after, mean and deviation of the gain, seeds with a gain, all seeds."""
    before, after = cnn("trained by ERM"), cnn("ISR, new head")
    gain = [b - a for a, b in zip(before, after, strict=True)]
    return [mean(before), mean(after), mean(gain), stdev(gain), sum(g > 0 for g in gain), len(gain)]


def worst(data: str, method: str) -> Numbers:
    """The worst group's accuracy by a method, seed by seed."""
    return values("worst-group/results.csv", "worst", data=data, method=method)


def labelled(dataset: str, method: str, share: float) -> dict[str, float]:
    """The worst group if a share of the environments is known: mean, change, half-widths."""
    text = (TABLES["RESULTS"] / "partial-labels/curves.json").read_text("utf-8")
    key = {"dataset": dataset, "method": method, "fraction": share, "score": "worst group"}
    (found,) = (c for c in json.loads(text)["curves"] if key.items() <= c.items())
    return found


def points_lost(dataset: str, method: str, share: float) -> Numbers:
    """Loss of the worst group if a share of the environments is known, and its half-width."""
    found = labelled(dataset, method, share)
    return [-100 * found["change"], 100 * found["change_half_width"]]


def ranks(method: str) -> float:
    """Percentage of correct ranks."""
    rows = [r for r in read("rank/results.csv") if r["method"] == method]
    right = [r for r in rows if r["found"] == r["expected"]]
    return 100 * sum(int(r["seeds"]) for r in right) / sum(int(r["seeds"]) for r in rows)


def alarms() -> Numbers:
    """Percentages of draws in which a test finds a shift where there is none, level 0.01."""
    rows = [r for r in read("level/results.csv") if "sd shift" not in r["design"]]
    return [100 * int(r["found at 0.01"]) / int(r["draws"]) for r in rows]


def ends(found: Iterable[float]) -> Numbers:
    """The smallest and the largest."""
    found = list(found)
    return [min(found), max(found)]


@cache
def quotes(page: str) -> list[str]:
    """The sentences that a page must contain, word for word."""
    parts = listing()["quotes"].get(page, [])
    return [one["says"].format(*eval(one["numbers"], dict(globals()))) for one in parts]


def listing() -> dict[str, Any]:
    """Contents of `quotes.toml`: quotations, and numbers that are not results, by page."""
    return tomllib.loads((HERE / "quotes.toml").read_text(encoding="utf-8"))
