"""``isr bench``: the experiments of the paper and the other benchmarks, one command each."""

import os
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from click import Choice, IntRange, option

import isrlearn
from isrlearn.cli.console import Group, Result, say, table, working
from isrlearn.cli.tables import FOLDER, Output, forced, options

#: Options that change where a result goes or how fast it arrives, but not the result.
_INCIDENTAL = {"again", "cache", "out", "n_jobs", "as_json", "figures", "force"}
#: Files that every folder of results has.
_MARKS = ("results.jsonl", "results.csv", "table.md")
#: Options that go to the run of a plan, not to the plan.
_RUNNING = ("again", "cache", "compare", "n_jobs")


def _names(context: click.Context, parameter: click.Parameter, value: str | None) -> Any:
    """Comma-separated names; None if not given."""
    return None if value is None else tuple(name.strip() for name in value.split(","))


def numbers(context: Any, parameter: Any, text: str) -> tuple[int, ...]:
    """Integers of a range such as ``2:10``, ends included, or a list such as ``2,4,8``."""
    try:
        found = tuple(int(part) for part in text.split(":" if ":" in text else ","))
        first, last = found if ":" in text else (min(found), max(found))
    except ValueError:
        raise ValueError(
            f"{text!r} is neither a range such as 2:10 nor a list such as 2,4,8"
        ) from None
    if not 1 <= first <= last <= 10_000:
        raise ValueError(f"{text!r} must name integers from 1 to 10,000, the smaller end first")
    return tuple(range(first, last + 1)) if ":" in text else found


def _shares(context: click.Context, parameter: click.Parameter, value: str) -> Any:
    """Comma-separated percentages as shares."""
    try:
        return tuple(float(part) / 100 for part in value.split(","))
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a list of percentages like 100,10") from None


def _count(flag: str, default: int | None, text: str, *, least: int = 1) -> Callable[[Any], Any]:
    """The option of a number: ``--some-things`` is the argument ``n_some_things``."""
    name = f"n_{flag.removeprefix('--').replace('-', '_')}"
    return option(flag, name, type=IntRange(least), default=default, help=text)


DATASETS = option("--datasets", callback=_names, help="Data sets, separated by commas.")
METHODS = option("--methods", callback=_names, help="Methods, separated by commas.")
FIGURES = option("--figures/--no-figures", default=True, help="Draw the figures.")
JOBS = _count("--jobs", os.cpu_count() or 1, "Processes.")
SYNTHETIC = (
    _count("--seeds", 50, "Seeds of the data."),
    DATASETS,
    METHODS,
    option("--environments", callback=numbers, default="2:10", help="Range 2:10 or list 2,4,8."),
    option(
        "--optimizer",
        type=Choice(["converged", "published"]),
        default="converged",
        help="Baselines fitted to convergence, or by 10,000 steps of Adam as published.",
    ),
    _count("--trials", 20, "Hyper-parameters tried for each method that has any."),
    _count("--search-seeds", 3, "Seeds whose validation error chooses among the trials."),
    _count("--samples", 10_000, "Samples per environment and split.", least=10),
    JOBS,
    FIGURES,
)
COMPARED = (
    *SYNTHETIC,
    option("--compare", type=Choice(["published"]), help="Show the published results too."),
)
PARTIAL = (
    _count("--draws", 20, "Draws of the data and of the labelled rows."),
    DATASETS,
    METHODS,
    option("--labels", "fractions", callback=_shares, default="100,50,25,10,5", help="Percents."),
    JOBS,
    FIGURES,
)
REGIMES = (
    _count("--seeds", 5, "Seeds of the splits."),
    DATASETS,
    option("--regimes", callback=_names, help="Regimes, separated by commas."),
    METHODS,
    option("--again", is_flag=True, help="Compute these scores again, recorded or not."),
    FIGURES,
)
REAL = (
    _count("--seeds", None, "Seeds of the networks."),
    option("--full", is_flag=True, help="Use the paper's sizes, on a machine with a GPU."),
    option("--trained-with", callback=_names, help="Objectives, separated by commas."),
    METHODS,
    option("--cache", type=FOLDER, help="Folder of trained features. [default: OUT/features]"),
    _count("--jobs", 1, "Processes."),
)
TRAINED = (
    option("--network", help="Network to train."),
    option("--precision", type=Choice(["float32", "bfloat16"]), help="Of the convolutions."),
    *REAL,
)
FOLDERS = (
    option("--data", type=click.Path(exists=True, file_okay=False), help="Folder of the data set."),
    option(
        "--features",
        type=click.Path(exists=True, dir_okay=False),
        multiple=True,
        help="Features as .npz; repeat the option for the features of further networks.",
    ),
    option("--network", help="Network to train, or encoder to run."),
    *REAL,
)


@click.group(cls=Group)
def bench() -> None:
    """Run the benchmarks, among them those of the paper.

    An interrupted run resumes where it stopped when the same command is given again.
    """


def _synthetic(name: str, **given: Any) -> tuple[Any, Any, Any]:
    """Plan of an experiment on synthetic data, and how to run and write it."""
    paper, known = isrlearn.paper, isrlearn.paper.EXPERIMENTS[name]
    usual = {"datasets": known.datasets, "methods": known.default_methods(given["optimizer"])}
    return paper.Plan(name, **usual | given), paper.run, paper.write_result


def _partial(name: str, **given: Any) -> tuple[Any, Any, Any]:
    """Plan of the experiment with few environment labels, and how to run and write it."""
    from isrlearn.paper.partial_labels import LabelsPlan, run_partial_labels, write_partial_labels

    return LabelsPlan(**given), run_partial_labels, write_partial_labels


def _regimes(name: str, **given: Any) -> tuple[Any, Any, Any]:
    """Plan of the comparison with rivals in every regime, and how to run and write it."""
    from isrlearn.paper.regimes.page import run, write_regimes
    from isrlearn.paper.regimes.scores import RegimesPlan

    return RegimesPlan(**given), run, write_regimes


def _real(name: str, **given: Any) -> tuple[Any, Any, Any]:
    """Plan of an experiment on real data, and how to run and write it."""
    from isrlearn.paper.real import RealPlan, run_real, write_real

    own = {"n_seeds", "trained_with", "methods", "full"} & given.keys()
    chosen = {option: given.pop(option) for option in own}
    return RealPlan(name, **chosen, options=given), run_real, write_real


def _add(
    prepare: Callable[..., Any], declared: Sequence[Any], name: str, example: str, summary: str
) -> None:
    """Add the command of one experiment that keeps records."""

    def callback(out: Path | None, **given: Any) -> tuple[Any, Any, int]:
        folder, command = out or Path("isr-bench") / name, _command_line()
        _check_folder(folder)
        running = {option: given.pop(option) for option in _RUNNING if option in given}
        writing = {option: given.pop(option) for option in ("figures",) if option in given}
        if writing.get("figures"):
            isrlearn.paper.figures.require_matplotlib()
        given = {option: value for option, value in given.items() if value not in (None, ())}
        plan, run, write = prepare(name, **given)
        try:
            with working(name, quietly=True):
                result = run(plan, folder, command=command, **running)
        except KeyboardInterrupt:
            say(f"Finished cells are in {folder}; the same command resumes.")
            raise
        write(result, folder, command=command, **writing)
        say(f"Records, tables and figures are in {folder}.")
        if result.failures:
            first, n = result.failures[0], len(result.failures)
            where = f"{first.key.method} on {first.key.dataset}, seed {first.key.seed}"
            say(f"isr: {n} cells failed; first {where}: {first.message}")
        return result.to_dict(), _shown(result.tables()), int(bool(result.failures))

    callback.__doc__ = f"{summary}\n\nExample: isr bench {name} {example}"
    text = f"Folder to write to. [default: isr-bench/{name}]"
    out = option("--out", type=Output(folder=True), help=text)
    bench.command(name)(options(*declared, out)(callback))


def _check_folder(folder: Path) -> None:
    """Raise if a folder holds files, but no results of a benchmark, unless forced."""
    known = any((folder / name).is_file() for name in _MARKS)
    if folder.is_dir() and any(folder.iterdir()) and not known and not forced():
        raise click.UsageError(
            f"{folder} holds files other than results of isr bench; choose another folder, or "
            "replace files of the same name with --force"
        )


def _command_line() -> str:
    """The command that gives the same result again, without the options that do not change it."""
    context = click.get_current_context()
    words = ["isr", "bench", str(context.info_name)]
    for parameter in context.command.params:
        name = str(parameter.name)
        source = context.get_parameter_source(name)
        if name in _INCIDENTAL or source != click.core.ParameterSource.COMMANDLINE:
            continue
        value = context.params[name]
        if name == "fractions":
            value = tuple(f"{100 * share:g}" for share in value)
        for each in value if parameter.multiple else [value]:
            words.append(parameter.opts[0])
            if not isinstance(each, bool):
                words.append(",".join(map(str, each)) if isinstance(each, tuple) else str(each))
    # Double quotes, since the names of data sets have single ones: 3s'.
    return " ".join(word if shlex.quote(word) == word else f'"{word}"' for word in words)


def _shown(tables: Iterable[Any]) -> list[Any]:
    """Tables of the paper as text for the terminal."""
    return [table(each.title, each.columns, each.rows) for each in tables]


@bench.command()
@option("--spurious", callback=numbers, default="1:8", help="Spurious dimensions.")
@option("--classes", callback=numbers, default="2:7", help="Numbers of classes.")
@option("--repeats", type=IntRange(1), default=20, help="Random models per number.")
@option("--out", type=Output(folder=True), help="Folder to write to.")
def theory(
    spurious: Sequence[int], classes: Sequence[int], repeats: int, out: Path | None
) -> Result:
    """Environments that each algorithm needs, and its bound.

    Example: isr bench theory --spurious 5 --classes 2:7 --json
    """
    measured = isrlearn.paper.theory
    if out is not None:
        _check_folder(out)
    found = measured.environment_complexity(spurious, classes, n_repeats=repeats)
    if out is not None:
        measured.write_complexity(found, out, _command_line(), n_repeats=repeats)
    return [asdict(each) for each in found], _shown([measured.complexity_table(found)])


_add(_synthetic, COMPARED, "linear-unit-tests", "--seeds 5", "Errors on Example-2, 2s, 3 to 3s'.")
_add(_synthetic, SYNTHETIC, "multiclass", "--seeds 20", "Errors with 2 to 7 classes.")
_add(_synthetic, SYNTHETIC, "regression", "--seeds 20", "Errors with 3 to 6 spurious dimensions.")
_add(_partial, PARTIAL, "partial-labels", "--draws 5", "Accuracy with few environment labels.")
_add(_regimes, REGIMES, "regimes", "--seeds 2", "ISR and its competitors where groups are missing.")
_add(_real, TRAINED, "mc-cmnist", "--seeds 2", "ISR-Multiclass on Multi-class Coloured MNIST.")
_add(_real, TRAINED, "rcfmnist", "--seeds 3", "ISR-Regression on Rotated Coloured Fashion-MNIST.")
_add(_real, REAL, "law-school", "--seeds 20", "ISR-Regression on grades of law students.")
_add(_real, REAL, "pretrained", "--seeds 5", "Heads on a pretrained encoder of photographs.")
_add(_real, FOLDERS, "waterbirds", "--data waterbirds", "ISR-Mean and ISR-Cov on Waterbirds.")
_add(_real, FOLDERS, "celeba", "--data celeba --full", "ISR-Mean and ISR-Cov on CelebA.")
_add(_real, FOLDERS, "multinli", "--features bert.npz", "ISR-Mean and ISR-Cov on MultiNLI.")
_add(_real, FOLDERS, "clip", "--features clip.npz", "Heads on CLIP's features of Waterbirds.")
