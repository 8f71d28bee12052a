"""Tables in the documentation, made from the committed results of the benchmarks.

A table stands between `<!-- table: NAME -->` and `<!-- end -->`. The name is one of `TABLES`, or
a folder of `docs/benchmarks`; then the first table of its page is repeated. `python docs/tables.py`
rewrites all of them, and the pages of the benchmarks on real data, whose texts may have changed
since they ran; the test suite checks that nothing would change.
"""

from __future__ import annotations

import csv
import json
import re
import runpy
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import mean, stdev

from isrlearn.paper.real import RealPlan
from isrlearn.paper.real.run import page as real_page
from isrlearn.paper.real.tables import CellScore

HERE = Path(__file__).parent
RESULTS = HERE / "benchmarks"
BLOCK = re.compile(r"(<!-- table: ([\w/-]+) -->\n).*?(<!-- end -->)", flags=re.DOTALL)


def read(path: str) -> list[dict[str, str]]:
    """Rows of a CSV file of results."""
    with (RESULTS / path).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def markdown(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table, numbers to the right."""
    lines = [columns, [":--", *["--:"] * (len(columns) - 1)], *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def demo() -> str:
    """Accuracy in the demonstration, over its seeds."""
    found = json.loads((RESULTS / "demo/result.json").read_text(encoding="utf-8"))
    models = [name for name in found if name != "seeds"]
    rows = [
        [label, *("{mean:.3f} ± {std:.3f}".format(**found[m][score]) for m in models)]
        for label, score in (("worst group", "worst"), ("average", "average"))
    ]
    return markdown(["accuracy", *models], rows)


#: Methods of the regimes that summaries compare, first ours.
COMPARED = (
    *("ISRClassifierCV()", "ISRClassifier()", "class-balanced", "group-balanced", "DFR", "CRM"),
    *("LEACE", "LEACE within classes", "anchor"),
)


def regime_scores() -> dict[tuple[str, str], dict[str, float]]:
    """Scores of the methods by regime and data set, means over the seeds that all of them have."""
    found: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
    for row in read("regimes/results.csv"):
        if row["method"] in COMPARED and row["score"]:
            scores = found.setdefault((row["regime"], row["dataset"]), {})
            scores.setdefault(row["method"], {})[row["seed"]] = float(row["score"])
    means = {}
    for key, scores in found.items():
        seeds = set.intersection(*map(set, scores.values()))
        if len(scores) == len(COMPARED) and seeds:
            means[key] = {m: mean(scores[m][seed] for seed in seeds) for m in COMPARED}
    return means


def regimes() -> str:
    """Mean score over the data sets in every regime."""
    scores = regime_scores()
    rows = []
    for regime in dict.fromkeys(key[0] for key in scores):
        own = [found for key, found in scores.items() if key[0] == regime]
        means = [mean(found[m] for found in own) for m in COMPARED]
        best = max(means)
        shown = (f"**{value:.3f}**" if value == best else f"{value:.3f}" for value in means)
        rows.append([regime, str(len(own)), *shown])
    names = (f"`{m}`" if m.startswith("ISR") else m for m in COMPARED)
    return markdown(["regime", "data sets", *names], rows)


def environments() -> str:
    """How often an algorithm needs exactly as many environments as its bound."""
    found = read("theory/results.csv")
    rows = []
    for name in dict.fromkeys(line["algorithm"] for line in found):
        cases = [line for line in found if line["algorithm"] == name]
        exact = [sum(c[form] == c["bound"] for c in cases) for form in ("paper", "pooled")]
        rows.append([name, str(len(cases)), *(f"{n} of {len(cases)}" for n in exact)])
    head = ["algorithm", "cases (d_s, k)", "needs exactly its bound, paper's form", "pooled form"]
    return markdown(head, rows)


def worst_group() -> str:
    """Accuracy of the worst group by method, on both data sets."""
    found = read("worst-group/results.csv")
    methods = (
        *("ERM", "group reweighting", "group reweighting, whitened"),
        *("paper's ISR-Mean, first class", "paper's ISR-Mean, second class"),
        *("`ISRClassifierCV()`", "DFR, trained on the validation split", "true subspace removed"),
    )
    data = list(dict.fromkeys(line["data"] for line in found))

    def cell(method: str, name: str) -> str:
        here = [line for line in found if (line["data"], line["method"]) == (name, method)]
        worst = [float(line["worst"]) for line in here]
        # The true spurious subspace of pixels is not known.
        return f"{mean(worst):.3f} ± {stdev(worst):.3f}" if worst else ""

    rows = [[method, *(cell(method, name) for name in data)] for method in methods]
    return markdown(["method", *data], rows)


def summary(
    path: str, value: str, cells: Sequence[tuple[str, int]], methods: dict[str, str]
) -> str:
    """A summary's values at some data sets and numbers of environments, by method."""
    at = {
        (line["dataset"], line["method"], int(line["n_environments"])): float(line[value])
        for line in read(f"{path}/summary.csv")
    }
    head, last = [], ""
    for dataset, E in cells:
        title = dataset.removeprefix("anticausal-").replace("=", " = ")
        head.append(f"{title}, E = {E}" if dataset != last else f"E = {E}")
        last = dataset
    rows = [
        [label, *(f"{at[dataset, method, E]:.4f}" for dataset, E in cells)]
        for method, label in methods.items()
    ]
    return markdown(["method", *head], rows)


def excess() -> str:
    """Excess error on Example-3s and 3s'."""
    cells = [*(("3s", E) for E in (5, 6, 7)), *(("3s'", E) for E in range(2, 7))]
    methods = {
        "isr-mean": "ISR-Mean",
        "isr-mean-pooled": "ISR-Mean, pooled",
        "isr-cov": "ISR-Cov (flag mean)",
        "isr-cov-pooled": "ISR-Cov, pooled",
        "isr-joint": "ISR-Joint",
        "isr-joint-auto": "ISR-Joint, rank tested",
        "erm": "ERM",
        "irmv1": "IRMv1",
    }
    return summary("linear-unit-tests", "excess_mean", cells, methods)


def below_the_bound() -> str:
    """Excess error of means below, at and beyond their bound."""
    methods = {"isr-mean-pooled": "ISR-Mean, pooled", "erm": "ERM"}
    cells = [("3s", E) for E in range(2, 8)]
    return summary("linear-unit-tests", "excess_mean", cells, methods)


def too_many() -> str:
    """Error on Example-2 with five dimensions removed, and with the rank tested."""
    methods = {"isr-joint": "ISR-Joint, given 5", "isr-joint-auto": "ISR-Joint, rank tested"}
    return summary("linear-unit-tests", "mean", [("2", E) for E in (2, 4, 6, 8, 10)], methods)


def few_environments() -> str:
    """Error of ISR-Mean with the two ways to deal with fewer environments than dimensions."""
    cells = [*(("2s", E) for E in (2, 3, 4, 6)), *(("3s", E) for E in (2, 4, 6))]
    methods = {
        "isr-mean": "the E − 1 directions seen removed (the paper)",
        "isr-mean-authors": "all but d_c directions removed (the unit-test code)",
        "oracle": "oracle",
    }
    return summary("few-environments", "mean", cells, methods)


def forms() -> str:
    """Error of the three forms of ISR-Multiclass where environments are many."""
    cells = [(f"k={k}", E) for k in (2, 3, 4) for E in (4, 6, 10)]
    methods = {
        "isr-multiclass": "the box of the paper",
        "isr-multiclass-authors": "the authors' code",
        "isr-multiclass-pooled": "pooled",
    }
    return summary("multiclass-forms", "mean", cells, methods)


def regression_published() -> str:
    """Mean squared error of the regression under the paper's optimiser."""
    cells = [*(("d_s=3", E) for E in (3, 4, 5)), *(("d_s=5", E) for E in (5, 6, 7))]
    cells += [("d_s=6", E) for E in (6, 7, 8)]
    methods = {"isr-regression": "ISR-Regression", "erm": "ERM", "irmv1": "IRMv1"}
    methods |= {"oracle": "oracle"}
    return summary("regression-published", "mean", cells, methods)


def anticausal() -> str:
    """Mean squared error of the anti-causal regression."""
    cells = [*(("anticausal-d_s=3", E) for E in (4, 5, 7))]
    cells += [("anticausal-d_s=5", E) for E in (6, 7, 8, 9)]
    methods = {
        "isr-regression": "ISR-Regression",
        "isr-regression-pooled": "ISR-Regression, pooled",
        "least-squares": "least squares",
        "irmv1": "IRMv1, penalty chosen on validation",
        "irmv1-best": "IRMv1, penalty chosen on test",
    }
    return summary("regression", "mean", cells, methods)


def partial_labels() -> str:
    """Worst-group accuracy against the share of rows whose environment is known."""
    text = (RESULTS / "partial-labels/curves.json").read_text(encoding="utf-8")
    curves = [c for c in json.loads(text)["curves"] if c["score"] == "worst group"]
    shares = sorted({c["fraction"] for c in curves}, reverse=True)
    at = {(c["dataset"], c["method"], c["fraction"]): c["mean"] for c in curves}
    labels = {"isr": "ISR-Mean", "isr-filled": "ISR-Mean, filled in", "isr-cov": "ISR-Cov"}
    labels |= {"reweighting": "groups reweighted"}
    labels |= {"reweighting-filled": "groups reweighted, filled in", "plain": "nothing removed"}
    data = {"waterbirds-like": "Waterbirds-like", "digits-on-paper": "digits on paper"}
    rows = [
        [f"{title}: {label}", *(f"{at[name, method, share]:.3f}" for share in shares)]
        for name, title in data.items()
        for method, label in labels.items()
    ]
    return markdown(["known environments", *(f"{share:.0%}" for share in shares)], rows)


def law_school() -> str:
    """R² on Law School after a network trained by ERM, by what is done to its features."""
    labels = {
        "original": "the network's own head",
        "refit": "new head, nothing removed",
        "isr-regression": "ISR-Regression",
        "isr-regression-published": "ISR-Regression, as published",
        "leace": "LEACE",
        "correlation-remover": "CorrelationRemover, given the test environments",
    }
    found = {
        (line["method"], line["score"]): f"{float(line['mean']):.3f} ± {float(line['std']):.3f}"
        for line in read("law-school/summary.csv")
        if line["trained_with"] == "ERM"
    }
    scores = ("worst_group_r2", "average_r2")
    rows = [[label, *(found[name, score] for score in scores)] for name, label in labels.items()]
    return markdown(["Law School", "worst-group R²", "average R²"], rows)


def real_data() -> str:
    """The worst group on real data: as trained, with a new head, with ISR under the same head."""
    cells = {
        "mc-cmnist": (
            "digits in ten colours, worst 10 of 100 groups, accuracy",
            "worst_10_group_accuracy",
            [("ERM", "original"), ("ERM", "reweighted"), ("ERM", "isr-multiclass")],
        ),
        "pretrained": (
            "garments on photographs, pretrained encoder, accuracy",
            "worst_group_accuracy",
            [("ERM", "original"), ("Reweighting", "original"), ("Reweighting", "isr-mean")],
        ),
        "rcfmnist": (
            "angle of coloured garments, RMSE (lower is better)",
            "worst_group_rmse",
            [("ERM", "original"), ("ERM", "refit"), ("ERM", "isr-regression")],
        ),
        "law-school": (
            "grades at law school, R²",
            "worst_group_r2",
            [("ERM", "original"), ("ERM", "refit"), ("ERM", "isr-regression")],
        ),
    }
    rows = []
    for name, (title, score, picked) in cells.items():
        found = {
            (line["trained_with"], line["method"]): line
            for line in read(f"{name}/summary.csv")
            if line["score"] == score
        }
        shown = [found[pick] for pick in picked]
        values = [f"{float(line['mean']):.3f} ± {float(line['std']):.3f}" for line in shown]
        rows.append([title, shown[0]["n_seeds"], *values])
    return markdown(["worst group", "seeds", "as trained", "new head", "new head and ISR"], rows)


def paper() -> str:
    """Every algorithm, theorem, table, figure and remark of the paper."""
    found = runpy.run_path(str(HERE / "paper.py"))
    lines = markdown(found["COLUMNS"], found["rows"]()).splitlines()
    return "\n".join([lines[0], lines[1].replace("--:", ":--"), *lines[2:], ""])


TABLES: dict[str, Callable[[], str]] = {
    "anticausal": anticausal,
    "below-the-bound": below_the_bound,
    "demo": demo,
    "regimes": regimes,
    "environments": environments,
    "excess": excess,
    "few": few_environments,
    "forms": forms,
    "law-school": law_school,
    "paper": paper,
    "partial-labels": partial_labels,
    "real-data": real_data,
    "step": regression_published,
    "too-many": too_many,
    "worst-group": worst_group,
}


def repeated(folder: str) -> str:
    """The first table on the page of a benchmark."""
    page = (RESULTS / folder / "table.md").read_text(encoding="utf-8")
    return page[page.index("\n|") + 1 :].partition("\n\n")[0].rstrip("\n") + "\n"


def renewed(text: str) -> str:
    """A page with its tables made from the results."""

    def table(name: str) -> str:
        return TABLES[name]() if name in TABLES else repeated(name)

    return BLOCK.sub(lambda found: found[1] + table(found[2]) + found[3], text)


def pages() -> list[Path]:
    """Pages that may hold tables: the README and the documentation."""
    return [HERE.parent / "README.md", *sorted(HERE.rglob("*.md"))]


def described(folder: Path) -> str:
    """The page of a benchmark on real data, from its results."""
    kept = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    cells = [
        CellScore(**{k: float("nan") if v is None else v for k, v in cell.items()})
        for cell in kept["cells"]
    ]
    page = (folder / "table.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^Made by `([^`]+)`", page, flags=re.MULTILINE)
    return real_page(RealPlan(**kept["plan"]), cells, command=command)


#: Benchmarks on real data.
REAL = sorted(path.parent for path in RESULTS.glob("*/result.json") if path.parent.name != "demo")


def main() -> None:
    """Rewrite the tables."""
    for folder in REAL:
        (folder / "table.md").write_text(described(folder), encoding="utf-8")
    for page in pages():
        text = page.read_text(encoding="utf-8")
        new = renewed(text)
        if new != text:
            page.write_text(new, encoding="utf-8")
            print(page.relative_to(HERE.parent))


if __name__ == "__main__":
    main()
