"""Every algorithm, theorem, table, figure and remark of the paper, and what we have for it.

`rows()` is the table of `benchmarks/paper.md`, which `tables.py` writes; results are read from the
committed records, the paper's numbers from its tables as printed. Run as a script, it draws the
picture of that page.
"""

from __future__ import annotations

import csv
import json
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
BATCHES = (
    "the network, epochs, batches, step sizes and L2 penalties are those of the authors' code; "
    "batches are not drawn with equally frequent groups, and GroupDRO adds no term for small ones"
)
FOLDERS = {
    "Waterbirds": f"{GPU}. There, {BATCHES}; images keep their margin",
    "CelebA": f"{GPU}. There, {BATCHES}",
    "MultiNLI": f"{GPU}. There, {BATCHES}; BERT's step size is constant, its gradients not clipped",
}
RCFMNIST = (
    "random weights, not pretrained ones; a step size of 0.001, not 0.00007; pixels from 0 to 1, "
    "interpolated linearly, not from -1 to 1, the nearest; validation images coloured like those "
    "for training, not at random as in the code that the data are from; C-MixUp mixes images, not "
    "feature maps as in that code; IRM's penalty, the ridge head and its 100 components are ours"
)
#: The paper's column, and our methods, of the tables on real data.
HEADS = {"isr-own-head": "own head", "isr-multiclass": "new head"}
HEADS |= {"reweighted": "new head with nothing removed"}
MULTICLASS = ("ISR-Multiclass", {"isr-multiclass-published": "as published"} | HEADS)
REGRESSION = {"isr-regression": "", "refit": "with nothing removed"}
BESIDE = {"isr-regression-published": "as published"} | REGRESSION | {"isr-regression": "ours"}
CLASSES = (("isr-multiclass", 2), ("isr-mean", 2), ("erm", 2), ("oracle", 2))
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


def real(folder: str, table: str, score: str, column: str, methods: dict[str, str]) -> str:
    """Scores for networks trained by ERM, as trained and by methods: ours, then the paper's."""
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
    factor, digits = (100, 1) if percent else (1, 3)
    ours = ", ".join(f"{factor * here[m]:.{digits}f} {how}".strip() for m, how in methods.items())
    before = f"{factor * here['original']:.{digits}f}"
    theirs = f"{there['Original']:.{digits}f} → {there[column]:.{digits}f}"
    what = f"ERM, {score.replace('_', ' ').replace('r2', 'R²').replace('rmse', 'RMSE')}"
    return f"{what}: {before} → {ours}; paper {theirs} ([table]({folder}/table.md))"


def printed(table: str, dataset: str) -> str:
    """The paper's worst group before and after ISR for networks trained by ERM."""
    at = {
        row["method"]: row["mean"]
        for row in read(PRINTED)
        if (row["table"], row["dataset"], row["metric"], row["trained_with"])
        == (table, dataset, "worst_group_accuracy", "ERM")
    }
    before = at.get("Original") or at["Linear Probing"]
    after = f"{at['ISR-Mean']} by ISR-Mean, {at['ISR-Cov']} by ISR-Cov"
    return f"paper, ERM, worst group: {before} → {after}"


def partial(folder: str, dataset: str) -> str:
    """Our worst group with all labels, half and a tenth of them, in per cent."""
    text = (RESULTS / folder / "curves.json").read_text(encoding="utf-8")
    at = {
        (c["method"], c["fraction"]): f"{100 * c['mean']:.1f}"
        for c in json.loads(text)["curves"]
        if (c["dataset"], c["score"]) == (dataset, "worst group")
    }
    methods = {"isr-published": "as published", "isr": "ours", "plain": "nothing removed"}
    shown = (
        f"{what} {at[name, 1.0]}, {at[name, 0.5]} and {at[name, 0.1]}"
        for name, what in methods.items()
    )
    return f"ISR-Mean, worst group with all, half and a tenth of the labels: {', '.join(shown)}"


def published_partial() -> str:
    """The two numbers that the paper names for partial labels."""
    found = {r["method"]: r["mean"] for r in read(PRINTED) if r["table"].startswith("partial")}
    mean, cov = (found[f"{name} labels"] for name in ("ISR-Mean at 10%", "ISR-Cov at 50%"))
    return f"paper: ISR-Mean {mean} with a tenth of the labels, ISR-Cov {cov} with half"


def bound(algorithm: str, d_s: int, k: int) -> str:
    """Number of environments that an algorithm was measured to need."""
    found = read(RESULTS / "theory/results.csv")
    where = {"algorithm": algorithm, "n_spurious": str(d_s), "n_classes": str(k)}
    (row,) = (row for row in found if where.items() <= row.items())
    return row["paper"]


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
            "yes: data, optimiser and settings of the published code; fewer seeds",
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
            "data of the published code, where Example-2's invariant scale is 0.01 (0.02 in the "
            "paper's text), but σ_e drawn once per environment, not again for every split; all "
            "methods converged",
            "Example-3s: "
            + errors(unit, "3s", *(("isr-mean", E) for E in (5, 6, 7)), ("oracle", 7))
            + "; Example-3s': "
            + errors(unit, "3s'", *(("isr-cov", E) for E in (2, 3, 4)), ("oracle", 4))
            + "; paper, in words: ISR-Mean at the oracle from E = 6, ISR-Cov from E = 2",
        ),
        (
            "the same, the paper's optimiser: ISR-Mean",
            "`isr bench linear-unit-tests --seeds 3 --datasets 3s --methods isr-mean,oracle "
            "--environments 2:7 --optimizer published --search-seeds 1`",
            "3 (paper 50)",
            "yes: data as above, 10,000 Adam steps, 20 trials, ISR's head as well; "
            "one data set, fewer environments and seeds, trials compared on the first seed",
            "Example-3s: "
            + errors("linear-unit-tests-paper", "3s", *(("isr-mean", E) for E in (5, 6, 7)))
            + " ([table](linear-unit-tests-paper/table.md)); baselines on Example-2 to 3s with "
            "five seeds in [their table](linear-unit-tests-published/table.md)",
        ),
        (
            "the same, the paper's optimiser: ISR-Cov",
            '`isr bench linear-unit-tests --seeds 3 --datasets "3s\'" --methods isr-cov,oracle '
            "--environments 2:4 --optimizer published --search-seeds 1`",
            "3 (paper 50)",
            "as above, settings of the oracle searched too",
            "Example-3s': "
            + errors("linear-unit-tests-paper-cov", "3s'", *(("isr-cov", E) for E in (2, 3, 4)))
            + " ([table](linear-unit-tests-paper-cov/table.md))",
        ),
        (
            "the same, all methods and data sets in one run",
            "`isr bench linear-unit-tests --seeds 1 --optimizer published --search-seeds 1`",
            "1 (paper 50)",
            "yes: data as above, 10,000 Adam steps; 20 trials for ISR's heads, and for all methods "
            "on 3' and 3s'; one seed, which also compares the trials",
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
            "not run: needs the images; the same with `celeba`",
        ),
        *(
            (
                f"Table 2 (5.1.2): {name}",
                f"`isr bench {name.lower()} --data FOLDER --full`",
                "0 (paper 10)",
                differs,
                printed("real_datasets", name),
            )
            for name, differs in FOLDERS.items()
        ),
        (
            "Figure 7 (5.1.3): partial environment labels",
            "`isr bench partial-labels`",
            "20 draws (paper 10 × 10)",
            "simulated features and digits instead of Waterbirds; 100 to 5 % of the labels, in the "
            "paper 100 to 10 %; every method chooses its C at every share, where the paper keeps "
            "the settings of its Table 2; the head is fitted on all rows, in the authors' code on "
            "the labelled ones; the published procedure (C chosen too) beside ours",
            f"{partial('partial-labels', 'waterbirds-like')} "
            f"([table](partial-labels/table.md)); {published_partial()}",
        ),
        (
            "the same, features of networks: MC-CMNIST",
            "`isr bench partial-labels --draws 5 --datasets mc-cmnist --labels 100,50,25,10`",
            "5 draws (paper 10 × 10)",
            "as above; 100 groups, and the network of the smaller MC-CMNIST below, trained on "
            "15,000 images for 18 epochs",
            f"{partial('partial-labels-mc-cmnist', 'mc-cmnist')} "
            "([table](partial-labels-mc-cmnist/table.md))",
        ),
        (
            "the same, features of networks: garments on photographs",
            "`isr bench partial-labels --draws 2 --datasets pretrained --labels 100,50,25,10`",
            "2 draws (paper 10 × 10)",
            "as above; garments on photographs in the proportions of Waterbirds, and an encoder "
            "that is not trained on them",
            f"{partial('partial-labels-pretrained', 'pretrained')} "
            "([table](partial-labels-pretrained/table.md))",
        ),
        (
            "Table 3 (5.1.4): CLIP",
            "`isr bench clip --data FOLDER`",
            "0 (paper: not said)",
            "not run: needs the images. The encoder is the paper's, which does not say how the "
            "settings of ISR were chosen",
            f"{printed('clip', 'Waterbirds')}; another encoder and data: "
            "[table](pretrained/table.md)",
        ),
        (
            "Figure 8 (5.2.1): multiclass unit test",
            "`isr bench multiclass --seeds 5`",
            "5 (paper 5, 5 trials each)",
            "data yes; all methods converged, to which the five trials make no difference; "
            "ISR-Mean compares the last class, not class 0",
            "k = 3: "
            + errors("multiclass", "k=3", ("isr-multiclass", 2), ("isr-multiclass", 3))
            + ", "
            + errors("multiclass", "k=3", ("oracle", 3))
            + "; paper, in words: optimal from E = 3 with k = 3, from E = 2 beyond k = 5",
        ),
        (
            "the same, the paper's optimiser: three classes",
            "`isr bench multiclass --seeds 1 --datasets k=3 --optimizer published --trials 5 "
            "--search-seeds 1`",
            "1 (paper 5, 5 trials each)",
            "yes: Adam, 5 trials, ISR's head as well; 10,000 steps, a number that the paper gives "
            "for the binary tests only; one seed, which also compares the trials; ISR-Mean as "
            "above",
            "k = 3: "
            + errors("multiclass-paper", "k=3", *(("isr-multiclass", E) for E in (2, 3)))
            + ", "
            + errors("multiclass-paper", "k=3", ("isr-mean", 3), ("erm", 3), ("oracle", 3))
            + " ([table](multiclass-paper/table.md))",
        ),
        (
            "the same, two to seven classes",
            "`isr bench multiclass --seeds 1 --environments 2,3,4 --optimizer published "
            "--trials 5 --search-seeds 1`",
            "1 (paper 5, 5 trials each)",
            "as above; two to four environments, not two to ten",
            "k = 5: "
            + errors("multiclass-paper-classes", "k=5", *CLASSES)
            + "; k = 7: "
            + errors("multiclass-paper-classes", "k=7", *CLASSES)
            + " ([table](multiclass-paper-classes/table.md))",
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
            "network, optimiser and sizes of the code that the paper names, but convolutions in "
            "bfloat16, a tenth held out, not a fifth, 2,300 batches, not 2,000; the penalties of "
            "IRM and of the bottlenecks are fixed, not the best of a grid; as in the paper the own "
            "head is adapted, by our subspace, whose dimension validation samples choose; the new "
            "head is ours",
            real("mc-cmnist-full", "mc_cmnist", "average_accuracy", "ISR-Multiclass", HEADS),
        ),
        (
            "the same, a smaller network",
            "`isr bench mc-cmnist --seeds 3`",
            "3 (paper 5)",
            "another network, optimiser and number of batches, 45,000 of 70,000 images, single "
            "precision; the rest as above",
            real("mc-cmnist", "mc_cmnist", "average_accuracy", *MULTICLASS),
        ),
        (
            "Figure 10 (5.3.1): regression unit test, the paper's optimiser",
            f"`isr bench regression --seeds {n} --datasets d_s=3,d_s=4,d_s=5,d_s=6 "
            f"--optimizer published --trials 5 --search-seeds {n}`",
            f"{n} (paper 20)",
            "yes: Adam, 5 trials compared on all seeds, ISR's head as well; 10,000 steps and the "
            "weights and offsets of the model, standard normal, are not in the paper; fewer seeds",
            "d_s = 5: "
            + errors(
                "regression-published",
                "d_s=5",
                *(("isr-regression", E) for E in (4, 5, 6)),
                ("oracle", 6),
            )
            + "; paper, in words: at the oracle from E = d_s + 1",
        ),
        (
            "the same, converged",
            "`isr bench regression --seeds 20`",
            "20 (paper 20)",
            "data as above; all methods converged",
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
            "Table without a number (5.3.2): RCFMNIST",
            "`isr bench rcfmnist --full --precision bfloat16 --seeds 1`",
            "1 (paper: not said)",
            "network, epochs, batches and numbers of images yes; convolutions in bfloat16; "
            + RCFMNIST,
            real("rcfmnist-full", "rcfmnist", "worst_group_rmse", "ISR-Regression", REGRESSION),
        ),
        (
            "the same, a small network",
            "`isr bench rcfmnist --seeds 3`",
            "3 (paper: not said)",
            "another network, 10 epochs, not 30, a quarter of the images, single precision; the "
            "rest as above",
            real("rcfmnist", "rcfmnist", "worst_group_rmse", "ISR-Regression", BESIDE),
        ),
        (
            "Figure 12 (5.3.3): Law School",
            "`isr datasets show law-school --out law-school.png`",
            "–",
            "the skew is ours: the paper shows it in a figure only",
            "drawn by the command",
        ),
        (
            "Table 5 (5.3.3): Law School",
            "`isr bench law-school --seeds 20`",
            "20 (paper: not said)",
            "network, optimiser, epochs and ten components yes; the skew, the split and batches "
            "of 64 rows are ours",
            real("law-school", "law_school", "worst_group_r2", "ISR-Regression", BESIDE),
        ),
        (
            "Remark (3.2): symmetric means need more environments",
            "`isr bench theory`",
            "20 models per case",
            "yes: exact moments",
            f"d_s = 5, two classes: {bound('ISR-Mean', 5, 2)} environments if their means mirror "
            f"each other, {bound('ISR-Multiclass', 5, 2)} if not",
        ),
        (
            "Footnote (3.3): ISR-Regression with d_s > d_c",
            "`isr bench theory`",
            "20 models per case",
            "yes: exact moments, d_c = 5",
            "; ".join(
                f"d_s = {d}: {bound('ISR-Regression', d, 1)} environments" for d in (6, 7, 8)
            ),
        ),
        (
            "Remark (4.1.1 to 4.3): global convergence",
            "`python -m pytest tests/engine/test_logistic.py -k same_minimum`",
            "–",
            "yes: eigenvectors, and a convex head",
            "the head reaches the same minimum from any first guess of its curvature",
        ),
        (
            "Remark (1): ISR is cheaper than IRM",
            "`python benchmarks/isr_vs_irm.py`",
            "5",
            "our own code for both; on Example-3s'",
            "true of 10,000 Adam steps; converged IRMv1 is as fast ([table](isr-vs-irm/table.md))",
        ),
        (
            "Remark (4.1.1, A.1): E ≤ d_s, two ways",
            "`isr bench linear-unit-tests --seeds 20 --datasets 2s,3s "
            "--methods isr-mean,isr-mean-authors,oracle --environments 2:7`",
            "20",
            "data of the published code; converged",
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
        (
            "Remark (B.3): the network's own head adapted",
            "`isr bench mc-cmnist --seeds 3`",
            "3",
            "digits in ten colours",
            real("mc-cmnist", "mc_cmnist", "average_accuracy", *MULTICLASS),
        ),
    ]


ADAM = ("linear-unit-tests-paper-all", "linear-unit-tests-published", "linear-unit-tests-paper")
#: Panels of the picture: title, data set, folder of the converged run, folders of the runs under
#: the paper's optimiser, those with more seeds last.
PANELS = (
    *((f"Example-{name}", name, "linear-unit-tests", ADAM) for name in ("2s", "3s", "3s'")),
    ("three classes", "k=3", "multiclass", ("multiclass-paper",)),
    ("six classes", "k=6", "multiclass", ("multiclass-paper-classes",)),
    *(
        (f"regression, d_s = {d}", f"d_s={d}", "regression", ("regression-published",))
        for d in (3, 5)
    ),
)
SHOWN = {
    "isr-mean": "ISR-Mean",
    "isr-cov": "ISR-Cov",
    "isr-multiclass": "ISR-Multiclass",
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
    write_files(RESULTS / "paper", drawn((20, 4.6), draw))
