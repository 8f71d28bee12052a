"""What `isrlearn.diagnose` recommends on data with a known ground truth.

    python benchmarks/diagnosis.py --seeds 10 --jobs 2 --out docs/benchmarks/diagnosis

Five spurious dimensions, 5,000 samples per environment. Also draws the spectra that the number of
dimensions is read from: how far each direction shifts, and the level of sampling noise.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from isrlearn import diagnose
from isrlearn.core import joint_rank, mean_rank
from isrlearn.datasets import EnvironmentData, load_digits_on_paper, make_waterbirds_like
from isrlearn.engine import cell_moments
from isrlearn.paper.datasets import (
    make_linear_unit_test,
    make_multiclass_unit_test,
    make_regression_unit_test,
)
from isrlearn.paper.figures import drawn
from isrlearn.paper.tables import Table, markdown, write_files

#: Findings that limit the answer, in the words of the table.
LIMITS = {
    "too-few-environments": "too few environments",
    "covariances-equal": "covariances do not differ",
    "weak-covariances": "covariances differ little",
    "single-class-environments": "environments with one class",
    "no-shift": "nothing shifts",
}


def unit_test(name: str, E: int, seed: int) -> EnvironmentData:
    """A linear unit test."""
    return make_linear_unit_test(name, n_environments=E, n_samples=5000, random_state=seed).train


def classes(E: int, seed: int) -> EnvironmentData:
    """Three classes."""
    return make_multiclass_unit_test(3, n_environments=E, n_samples=5000, random_state=seed).train


def regression(E: int, seed: int) -> EnvironmentData:
    """The regression test."""
    return make_regression_unit_test(n_environments=E, n_samples=5000, random_state=seed).train


def single_class(E: int, seed: int) -> EnvironmentData:
    """Example-3s with a class missing in the last environment."""
    data = unit_test("3s", E, seed)
    last = data.environments == np.unique(data.environments)[-1]
    kept = ~(last & (data.y == np.unique(data.y)[0]))
    return EnvironmentData(data.X[kept], data.y[kept], data.environments[kept])


def nothing(E: int, seed: int) -> EnvironmentData:
    """Features that depend on the class and not on the environment."""
    rng = np.random.default_rng(seed)
    y, e = rng.integers(2, size=5000 * E), np.repeat(np.arange(E), 5000)
    X = rng.normal(size=(5000 * E, 10))
    X[:, 0] += 2 * y
    return EnvironmentData(X, y, e)


Maker = Callable[[int, int], EnvironmentData]
DATA: list[tuple[str, int, Maker]] = [
    *(("Example-2s", E, partial(unit_test, "2s")) for E in (3, 6)),
    *(("Example-3s", E, partial(unit_test, "3s")) for E in (4, 8)),
    *(("Example-3s'", E, partial(unit_test, "3s'")) for E in (2, 3, 6)),
    ("Example-3s, a class missing in one environment", 8, single_class),
    *(("three classes", E, classes) for E in (2, 3)),
    *(("regression", E, regression) for E in (4, 7)),
    ("no effect of the environment", 3, nothing),
]


def advice(make: Maker, E: int, seed: int) -> tuple[str, list[str]]:
    """Method and number of dimensions, and what limits them."""
    data = make(E, seed)
    found = diagnose(data.X, data.y, data.environments, n_bootstrap=20).recommendation
    chosen = found.parameters
    if chosen.get("n_spurious") == 0:
        said = "remove nothing"
    else:
        said = f"`{chosen.get('method', 'ISRRegressor')}`, {chosen['n_spurious']}"
    return said, [LIMITS[code] for code in found.codes if code in LIMITS]


def table(found: list[list[tuple[str, list[str]]]]) -> Table:
    """What was recommended, and in how many seeds unless in all."""
    lines = []
    for (name, E, _), answers in zip(DATA, found, strict=True):
        said = Counter(answer for answer, _ in answers)
        limits = Counter(limit for _, listed in answers for limit in listed)
        lines.append([name, str(E), _counted(said, len(answers)), _counted(limits, len(answers))])
    return Table("Advice", ["data", "environments", "method, dimensions", "limits found"], lines)


def _counted(words: Counter, n: int) -> str:
    return "; ".join(w if c == n else f"{w} ({c} of {n})" for w, c in words.most_common()) or "–"


def spectra() -> dict[str, Any]:
    """Rank test of each panel, by its name."""
    panels = {
        "Example-3s, means": unit_test("3s", 8, 0),
        "Waterbirds-like": make_waterbirds_like(random_state=0).train,
        "digits on paper": load_digits_on_paper().train,
    }
    tests = {
        name: mean_rank(cell_moments(data.X, data.y, data.environments, pooled=True))
        for name, data in panels.items()
    }
    data = unit_test("3s'", 3, 0)
    tests["Example-3s', joint method"] = joint_rank(cell_moments(data.X, data.y, data.environments))
    return tests


def figure(tests: dict[str, Any]) -> dict[str, bytes]:
    """Spectra as bars, the noise level as a line; bars of directions that are removed are dark."""

    def draw(figure: Any) -> None:
        for axis, (name, test) in zip(figure.subplots(1, len(tests)), tests.items(), strict=True):
            shown = np.maximum(test.spectrum[:12], 1e-3)
            colours = ["#0072B2" if i < test.rank else "#BBBBBB" for i in range(len(shown))]
            axis.bar(np.arange(1, len(shown) + 1), shown, color=colours)
            axis.axhline(test.noise, color="#D55E00", linestyle="--", label="noise")
            axis.set(yscale="log", xlabel="direction", xlim=(0.4, max(len(shown), 4) + 0.6))
            axis.set_ylim(bottom=1)
            axis.set_title(f"{name}: {test.rank}", fontsize=9)
            axis.set_xticks(range(1, len(shown) + 1, 1 + len(shown) // 7))
        figure.axes[0].set_ylabel("squared shift / noise variance")
        figure.axes[0].legend(frameon=False)

    return drawn((11, 2.8), draw, "spectra")


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("isr-bench/diagnosis"))
    options = parser.parse_args()
    run = Parallel(n_jobs=options.jobs)
    answers = run(
        delayed(advice)(make, E, seed) for _, E, make in DATA for seed in range(options.seeds)
    )
    found = [answers[i : i + options.seeds] for i in range(0, len(answers), options.seeds)]
    notes = [
        f"Made by `python benchmarks/diagnosis.py --seeds {options.seeds}`.",
        f"Five spurious dimensions, 5,000 samples per environment, {options.seeds} seeds.",
    ]
    page = markdown("What the diagnosis says", notes, [table(found)])
    record = [
        {"data": name, "environments": E, "answers": said}
        for (name, E, _), said in zip(DATA, found, strict=True)
    ]
    files = {"table.md": page, "answers.json": json.dumps(record, indent=1)}
    write_files(options.out, {**files, **figure(spectra())})
    print(page)


if __name__ == "__main__":
    main()
