"""Every algorithm, theorem, table, figure and remark of the paper, and what we have for it.

`rows()` is the table of `benchmarks/paper.md`, which `tables.py` writes; results are read from the
committed records, the paper's numbers from its tables as printed. Run as a script, it draws the
picture of that page.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from isrlearn.paper import published_results
from isrlearn.paper.figures import STYLES, drawn
from isrlearn.paper.tables import write_files

RESULTS = Path(__file__).parent / "benchmarks"
PRINTED = RESULTS.parents[1] / "src/isrlearn/paper/real/paper_tables.csv"
COLUMNS = ("in the paper", "command", "seeds", "same conditions?", "result, and the paper's")
BOXES = "python -m pytest tests/core/test_subspace.py -k"
THEOREMS = "python -m pytest tests/core/test_theorems.py -k"
PROCEDURE = "python -m pytest tests/estimators/test_published_procedure.py"
GPU = "not run: needs the data, or the features of trained networks, and a GPU to make them"
MULTICLASS = ("isr-multiclass", "ISR-Multiclass")
REGRESSION = ("isr-regression", "ISR-Regression")
NAMES = ("ISR-Mean", "ISR-Cov", "ISR-Multiclass", "ISR-Regression")


def read(path: Path) -> list[dict[str, str]]:
    """Rows of a CSV file."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def needed(algorithm: str) -> str:
    """In how many cases an algorithm needs exactly as many environments as its bound."""
    found = [r for r in read(RESULTS / "theory/results.csv") if r["algorithm"] == algorithm]
    exact = sum(r["paper"] == r["bound"] for r in found)
    return f"exactly the bound in {exact} of {len(found)} cases"


def seeds(folder: str) -> str:
    """Number of seeds of a synthetic experiment."""
    return read(RESULTS / folder / "summary.csv")[0]["n_seeds"]


def errors(folder: str, dataset: str, *cells: tuple[str, int]) -> str:
    """Mean errors of methods at numbers of environments."""
    at = {
        (row["method"], int(row["n_environments"])): float(row["mean"])
        for row in read(RESULTS / folder / "summary.csv")
        if row["dataset"] == dataset
    }
    return ", ".join(f"{name} {at[name, E]:.3f} (E = {E})" for name, E in cells)


def real(folder: str, table: str, score: str, method: str, column: str) -> str:
    """Scores before and after ISR for networks trained by ERM: ours, then the paper's."""
    here = {
        row["method"]: float(row["mean"])
        for row in read(RESULTS / folder / "summary.csv")
        if (row["score"], row["trained_with"]) == (score, "ERM")
    }
    there = {
        row["method"]: float(row["mean"])
        for row in read(PRINTED)
        if (row["table"], row["metric"], row["trained_with"]) == (table, score, "ERM")
    }
    percent = score.endswith("accuracy")
    ours = [(100 if percent else 1) * here[name] for name in ("original", method)]
    theirs = [there["Original"], there[column]]
    digits = 1 if percent else 3
    shown = [" → ".join(f"{value:.{digits}f}" for value in pair) for pair in (ours, theirs)]
    what = f"ERM, {score.replace('_', ' ')}"
    return f"{what}: {shown[0]}; paper {shown[1]} ([table]({folder}/table.md))"


def printed(table: str, dataset: str, method: str) -> str:
    """The paper's worst group before and after ISR for networks trained by ERM."""
    at = {
        row["method"]: row["mean"]
        for row in read(PRINTED)
        if (row["table"], row["dataset"], row["metric"], row["trained_with"])
        == (table, dataset, "worst_group_accuracy", "ERM")
    }
    before = at.get("Original") or at["Linear Probing"]
    return f"paper, worst group: {before} → {at[method]}"


def partial() -> str:
    """Partial labels, in the paper's words and ours."""
    found = {r["method"]: r["mean"] for r in read(PRINTED) if r["table"].startswith("partial")}
    mean, cov = (found[f"{name} labels"] for name in ("ISR-Mean at 10%", "ISR-Cov at 50%"))
    return (
        f"paper: ISR-Mean {mean} with a tenth of the labels, ISR-Cov {cov} with half; ours: "
        "[table](partial-labels/table.md)"
    )


def rows() -> list[tuple[str, ...]]:
    """The rows of the table."""
    unit, n = "linear-unit-tests", seeds("regression-published")
    return [
        (
            "Table 1 (section 1): environments needed",
            "`isr bench theory`",
            "20 models per case",
            "yes: exact moments",
            "; ".join(f"{name}: {needed(name)}" for name in NAMES),
        ),
        (
            "Figures 1 and 2 (3.1, 3.3): causal graphs",
            "`python docs/theory/draw.py`",
            "–",
            "yes",
            "[drawn](../theory/index.md)",
        ),
        (
            "Proposition 1 (3.4): optimal invariant predictor",
            f"`{THEOREMS} proposition_1`",
            "–",
            "yes: exact moments",
            "holds",
        ),
        (
            "IRMv1 (3.4)",
            "`isr bench linear-unit-tests --seeds 5 --datasets 2,2s,3,3s "
            "--methods erm,irmv1,iga,andmask,oracle --optimizer published --compare published`",
            "5 (paper 50)",
            "optimiser and settings as published; fewer seeds",
            "[agreement with the published means](linear-unit-tests-published/table.md)",
        ),
        (
            "Algorithm 1 (4.1.1)",
            f"`{BOXES} algorithm_1`",
            "–",
            "yes",
            'the box to the letter, `ISRClassifier("mean", variant="paper")`',
        ),
        (
            "Theorem 1 (4.1.1, A.1): ISR-Mean",
            f"`{THEOREMS} means`",
            "–",
            "yes: exact moments",
            needed("ISR-Mean"),
        ),
        (
            "Figure 3 (4.1.1): geometry of ISR-Mean",
            "`python docs/theory/draw.py`",
            "–",
            "two dimensions instead of three",
            "[drawn](../theory/index.md)",
        ),
        (
            "Algorithm 2 (4.1.2): one pair of environments",
            f"`{BOXES} algorithm_2`",
            "–",
            "yes",
            'the box to the letter; `ISRClassifier("cov", variant="paper")` with the environments '
            "of other rows unknown",
        ),
        (
            "Robust ISR-Cov (4.1.2): flag mean",
            f"`{BOXES} algorithm_2`",
            "–",
            "yes; all classes, as in the authors' unit tests",
            '`ISRClassifier("cov", variant="paper")`',
        ),
        (
            "Theorem 2 (4.1.2, A.2): ISR-Cov",
            f"`{THEOREMS} covariances`",
            "–",
            "yes: exact moments",
            needed("ISR-Cov"),
        ),
        (
            "Figure 4 (4.1.2): geometry of ISR-Cov",
            "`python docs/theory/draw.py`",
            "–",
            "two dimensions instead of three",
            "[drawn](../theory/index.md)",
        ),
        (
            "Algorithm 3 (4.2)",
            f"`{BOXES} algorithm_3`",
            "–",
            "the box, and the authors' code, which differs",
            '`variant="paper"` and `variant="authors"` ([compared](multiclass-forms/table.md))',
        ),
        (
            "Theorem 3 (4.2, A.3): ISR-Multiclass",
            f"`{THEOREMS} multiclass`",
            "–",
            "yes: exact moments",
            needed("ISR-Multiclass"),
        ),
        (
            "Algorithm 4 (4.3)",
            f"`{BOXES} algorithm_4`",
            "–",
            "yes",
            '`ISRRegressor(variant="paper", alpha=0)`',
        ),
        (
            "Theorem 4 (4.3, A.4): ISR-Regression",
            f"`{THEOREMS} regression`",
            "–",
            "yes: exact moments",
            needed("ISR-Regression"),
        ),
        (
            "Figure 5 (5.1.1): linear unit tests",
            "`isr bench linear-unit-tests --seeds 50`",
            "50 (paper 50)",
            "data yes; all methods converged, ISR given d_s",
            "Example-3s: " + errors(unit, "3s", ("isr-mean", 5), ("isr-mean", 6), ("oracle", 6)),
        ),
        (
            "the same, the paper's optimiser",
            "`isr bench linear-unit-tests --seeds 3 --datasets 3s --methods isr-mean,oracle "
            "--environments 2:7 --optimizer published --search-seeds 1`",
            "3 for ISR; 5 for the baselines (paper 50)",
            "yes: 10,000 Adam steps, 20 trials, ISR's head as well; one data set, fewer "
            "environments and seeds, trials compared on the first seed",
            "Example-3s: "
            + errors("linear-unit-tests-paper", "3s", *(("isr-mean", E) for E in (5, 6, 7)))
            + "; Example-3s', ISR-Cov ([table](linear-unit-tests-paper-cov/table.md), settings of "
            "the oracle searched too): "
            + errors("linear-unit-tests-paper-cov", "3s'", *(("isr-cov", E) for E in (2, 3, 4)))
            + "; baselines on Example-2 to 3s in [their "
            "table](linear-unit-tests-published/table.md)",
        ),
        (
            "the same, all methods and data sets in one run",
            "`isr bench linear-unit-tests --seeds 1 --optimizer published --search-seeds 1`",
            "1 (paper 50)",
            "yes: 10,000 Adam steps; 20 trials for ISR's heads, and for all methods on 3' and 3s'",
            "Example-3s', E = 6: "
            + errors(
                "linear-unit-tests-paper-all",
                "3s'",
                *((name, 6) for name in ("isr-mean", "isr-cov", "erm", "irmv1", "oracle")),
            )
            + " ([table](linear-unit-tests-paper-all/table.md))",
        ),
        (
            "Figure 6 (5.1.2): samples of the data sets",
            "`isr datasets show waterbirds --data FOLDER --out waterbirds.png`",
            "–",
            "yes",
            "not run: needs the images",
        ),
        *(
            (
                f"Table 2 (5.1.2): {name}",
                f"`isr bench {name.lower()} --data FOLDER --full`",
                "0 (paper 10)",
                GPU,
                f"{printed('real_datasets', name, 'ISR-Mean')} by ISR-Mean",
            )
            for name in ("Waterbirds", "CelebA", "MultiNLI")
        ),
        (
            "Figure 7 (5.1.3): partial environment labels",
            "`isr bench partial-labels`",
            "20 draws (paper 10 × 10)",
            "shares of labels as far as the paper names them, and others; simulated features and "
            "digits instead of Waterbirds; every method chooses its C; the published procedure "
            "beside ours",
            partial(),
        ),
        (
            "the same, features of networks: MC-CMNIST",
            "`isr bench partial-labels --draws 5 --datasets mc-cmnist --labels 100,50,25,10`",
            "5 draws (paper 10 × 10)",
            "as above; the network of the smaller MC-CMNIST below",
            "[table](partial-labels-mc-cmnist/table.md)",
        ),
        (
            "the same, features of networks: garments on photographs",
            "`isr bench partial-labels --draws 2 --datasets pretrained --labels 100,50,25,10`",
            "2 draws (paper 10 × 10)",
            "as above; another encoder",
            "[table](partial-labels-pretrained/table.md)",
        ),
        (
            "Table 3 (5.1.4): CLIP",
            "`isr bench clip --data FOLDER`",
            "0 (paper 10)",
            GPU,
            f"{printed('clip', 'Waterbirds', 'ISR-Mean')} by ISR-Mean; another encoder and data: "
            "[table](pretrained/table.md)",
        ),
        (
            "Figure 8 (5.2.1): multiclass unit test",
            "`isr bench multiclass --seeds 5`",
            "5 (paper 5, 5 trials each)",
            "data yes; all methods converged",
            "k = 3: "
            + errors("multiclass", "k=3", ("isr-multiclass", 2), ("isr-multiclass", 3))
            + ", "
            + errors("multiclass", "k=3", ("oracle", 3)),
        ),
        (
            "the same, the paper's optimiser",
            "`isr bench multiclass --seeds 5 --optimizer published --trials 5 --search-seeds 5`",
            "0 (paper 5, 5 trials each)",
            "yes: Adam, ISR's head as well; 10,000 steps, a number that the paper gives for the "
            "binary tests only",
            "not run: estimated at 3 hours of one core per seed",
        ),
        (
            "Figure 9 (5.2.2): samples of MC-CMNIST",
            "`isr datasets show mc-cmnist --out mc-cmnist.png`",
            "–",
            "yes",
            "drawn by the command",
        ),
        (
            "Table 4 (5.2.2): MC-CMNIST",
            "`isr bench mc-cmnist --full --precision bfloat16 --seeds 1`",
            "1 (paper 5)",
            "network, optimiser and sizes of the code that the paper names, convolutions in "
            "bfloat16; a tenth, not a fifth, is held out; heads and settings of ISR are ours",
            real("mc-cmnist-full", "mc_cmnist", "average_accuracy", *MULTICLASS),
        ),
        (
            "the same, a smaller network",
            "`isr bench mc-cmnist --seeds 3`",
            "3 (paper 5)",
            "another network and optimiser, 45,000 of 70,000 images",
            real("mc-cmnist", "mc_cmnist", "average_accuracy", *MULTICLASS),
        ),
        (
            "Figure 10 (5.3.1): regression unit test, the paper's optimiser",
            f"`isr bench regression --seeds {n} --datasets d_s=3,d_s=4,d_s=5,d_s=6 "
            f"--optimizer published --trials 5 --search-seeds {n}`",
            f"{n} (paper 20)",
            "yes: 10,000 Adam steps, 5 trials compared on all seeds, ISR's head as well",
            "d_s = 5: "
            + errors(
                "regression-published",
                "d_s=5",
                *(("isr-regression", E) for E in (4, 5, 6)),
                ("oracle", 6),
            ),
        ),
        (
            "the same, converged",
            "`isr bench regression --seeds 20`",
            "20 (paper 20)",
            "data yes; all methods converged",
            "no step: every method is near 0 from E = 2 on ([table](regression/table.md))",
        ),
        (
            "Figure 11 (5.3.2): samples of RCFMNIST",
            "`isr datasets show rcfmnist --out rcfmnist.png`",
            "–",
            "pixels interpolated linearly",
            "drawn by the command",
        ),
        (
            "Table 5 (5.3.2): RCFMNIST",
            "`isr bench rcfmnist --seeds 3`",
            "3",
            "a small network instead of a ResNet-18, a quarter of the images",
            real("rcfmnist", "rcfmnist", "worst_group_rmse", *REGRESSION),
        ),
        (
            "the same, the paper's network and sizes",
            "`isr bench rcfmnist --full --precision bfloat16 --seeds 1`",
            "1",
            "network and numbers of images yes, with random instead of pretrained weights and "
            "convolutions in bfloat16",
            real("rcfmnist-full", "rcfmnist", "worst_group_rmse", *REGRESSION),
        ),
        (
            "Figure 12 (5.3.3): Law School",
            "`isr datasets show law-school --out law-school.png`",
            "–",
            "the skew is ours: the paper shows it in a figure only",
            "drawn by the command",
        ),
        (
            "Table 6 (5.3.3): Law School",
            "`isr bench law-school --seeds 20`",
            "20",
            "the skew is ours",
            real("law-school", "law_school", "worst_group_r2", *REGRESSION),
        ),
        (
            "Remark (1): ISR is cheaper than IRM",
            "`python benchmarks/isr_vs_irm.py`",
            "5",
            "our own code for both",
            "true of 10,000 Adam steps; converged IRMv1 is as fast ([table](isr-vs-irm/table.md))",
        ),
        (
            "Remark (4.1.1, A.1): E ≤ d_s, two ways",
            "`isr bench linear-unit-tests --seeds 20 --datasets 2s,3s "
            "--methods isr-mean,isr-mean-authors,oracle --environments 2:7`",
            "20",
            "data yes; converged",
            "Example-2s: "
            + errors("few-environments", "2s", ("isr-mean", 2), ("isr-mean-authors", 2))
            + "; the paper recommends the first",
        ),
        (
            "Numerical techniques (B.3): PCA, scale, logistic regression",
            f"`{PROCEDURE}`",
            "200 configurations",
            "yes",
            'the same predictions on at least 99.9 % of rows, `variant="paper"`',
        ),
    ]


ADAM = ("linear-unit-tests-paper-all", "linear-unit-tests-published", "linear-unit-tests-paper")
#: Panels of the picture: title, data set, folder of the converged run, folders of the runs under
#: the paper's optimiser, those with more seeds last.
PANELS = (
    *((f"Example-{name}", name, "linear-unit-tests", ADAM) for name in ("2s", "3s", "3s'")),
    *(
        (f"regression, d_s = {d}", f"d_s={d}", "regression", ("regression-published",))
        for d in (3, 5)
    ),
)
SHOWN = {
    "isr-mean": "ISR-Mean",
    "isr-cov": "ISR-Cov",
    "isr-regression": "ISR-Regression",
    "erm": "ERM",
    "least-squares": "ERM",
    "irmv1": "IRMv1",
    "oracle": "oracle",
}


def curves(folder: str, dataset: str) -> dict[str, dict[int, float]]:
    """Mean errors of the methods shown, by number of environments."""
    found: dict[str, dict[int, float]] = {}
    for row in read(RESULTS / folder / "summary.csv"):
        if row["dataset"] == dataset and row["method"] in SHOWN:
            found.setdefault(row["method"], {})[int(row["n_environments"])] = float(row["mean"])
    return found


def draw(figure: Any) -> None:
    """The paper's curves, ours under its optimiser and ours converged, in one picture."""
    looks = {
        "the paper's": {"linestyle": "--", "markerfacecolor": "none", "linewidth": 0.9},
        "ours, its optimiser": {"linewidth": 1.4},
        "ours, converged": {"linestyle": ":", "linewidth": 1.4},
    }
    axes = figure.subplots(1, len(PANELS))
    for axis, (title, dataset, converged, published) in zip(axes, PANELS, strict=True):
        printed: dict[str, dict[int, float]] = {}
        for (name, method, E), result in published_results().items():
            if name == dataset and method in SHOWN:
                printed.setdefault(method, {})[E] = result.mean
        ours: dict[str, dict[int, float]] = {}
        for folder in published:
            ours |= curves(folder, dataset)
        for label, found in zip(looks, (printed, ours, curves(converged, dataset)), strict=True):
            for method, line in found.items():
                colour, marker = STYLES[method]
                look = {"color": colour, "marker": marker, "markersize": 4} | looks[label]
                values = [max(value, 1e-7) for value in line.values()]
                axis.plot(list(line), values, label=f"{SHOWN[method]}, {label}", **look)
        axis.set(title=title, xlabel="Environments E")
        if dataset.startswith("d_s"):
            axis.set_yscale("log")
        axis.grid(alpha=0.3, linewidth=0.5)
    axes[0].set_ylabel("Test error")
    axes[-2].set_ylabel("Mean squared error")
    entries = {}
    for axis in axes:
        handles, names = axis.get_legend_handles_labels()
        entries |= dict(zip(names, handles, strict=True))
    names = sorted(entries)
    figure.legend(
        [entries[n] for n in names], names, loc="outside lower center", ncols=4, frameon=False
    )


if __name__ == "__main__":
    write_files(RESULTS / "paper", drawn((16, 4.6), draw))
