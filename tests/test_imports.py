"""Imports point one way, and nothing optional is loaded before it is used."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import isrlearn

ROOT = Path(isrlearn.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

# Which parts of the package each part may import. A new part needs a line here.
ESTIMATOR_LAYER = {"core", "engine", "markup", "validation", "metrics"}
MAY_IMPORT: dict[str, set[str]] = {
    "core": set(),
    "engine": {"core"},
    "markup": set(),
    "metrics": {"core", "markup"},
    "datasets": {"core"},
    "validation": {"core", "engine"},
    "progress": set(),
    "estimators": ESTIMATOR_LAYER | {"progress"},
    "diagnosis": ESTIMATOR_LAYER | {"estimators"},
    "io": ESTIMATOR_LAYER | {"estimators", "datasets"},
    "report": ESTIMATOR_LAYER | {"diagnosis", "estimators", "io"},
    "displays": ESTIMATOR_LAYER | {"estimators", "io", "report"},
    "torch": ESTIMATOR_LAYER | {"datasets", "progress", "estimators", "io"},
    "dask": ESTIMATOR_LAYER | {"estimators", "io"},
    "paper": ESTIMATOR_LAYER
    | {"dask", "datasets", "diagnosis", "estimators", "io", "progress", "report", "torch"},
}
UNBOUND = {"cli", "__init__"}

# Third-party packages that may be imported when a module is loaded; the rest inside functions.
# joblib comes with scikit-learn.
ALWAYS_INSTALLED = {"numpy", "scipy", "sklearn", "joblib", "safetensors", "threadpoolctl"}
AT_TOP_LEVEL: dict[str, set[str]] = {
    "core": {"numpy", "scipy"},
    "torch": ALWAYS_INSTALLED | {"torch"},
    "dask": ALWAYS_INSTALLED | {"dask", "distributed"},
    "cli": ALWAYS_INSTALLED | {"click", "rich"},
}


def module_name(path: Path) -> str:
    """Dotted name of a file of the package."""
    parts = ["isrlearn", *path.relative_to(ROOT).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def part(path: Path) -> str:
    """First name below the package: the part of the library a file belongs to."""
    return path.relative_to(ROOT).with_suffix("").parts[0]


def statements(tree: ast.AST, *, inside_functions: bool) -> Iterator[ast.Import | ast.ImportFrom]:
    """Import statements that run; with `inside_functions` those that run later as well."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            if inside_functions:
                yield from statements(node, inside_functions=True)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            for branch in node.orelse:
                yield from statements(branch, inside_functions=inside_functions)
        else:
            yield from statements(node, inside_functions=inside_functions)


def imported(path: Path, *, inside_functions: bool) -> Iterator[str]:
    """Absolute dotted names a file imports, relative ones resolved."""
    tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    name = module_name(path)
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in statements(tree, inside_functions=inside_functions):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
            continue
        base = node.module or ""
        if node.level:
            outer = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join([*outer, base] if base else outer)
        # "from isrlearn import core" names a module, "from numpy import array" does not; the
        # longer name does no harm to a check of first and second parts.
        yield from (f"{base}.{alias.name}" for alias in node.names)


def relative_name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", FILES, ids=relative_name)
def test_imports_point_one_way(path):
    own = part(path)
    if own in UNBOUND:
        return
    assert own in MAY_IMPORT, f"give isrlearn.{own} a line in MAY_IMPORT"
    names = {
        name.split(".")[1]
        for name in imported(path, inside_functions=True)
        if name.startswith("isrlearn.")
    }
    # "from isrlearn import ISRClassifier" is an import of the module that defines it.
    inner = {isrlearn._MODULE_OF.get(name, name).split(".")[0] for name in names} - {
        own,
        "__version__",
    }
    assert inner <= MAY_IMPORT[own], f"{module_name(path)} imports {inner - MAY_IMPORT[own]}"


@pytest.mark.parametrize("path", FILES, ids=relative_name)
def test_private_modules_stay_in_their_package(path):
    foreign = [
        name
        for name in imported(path, inside_functions=True)
        if name.startswith("isrlearn.")
        and len(parts := name.split(".")) > 2
        and parts[1] != part(path)
        and any(p.startswith("_") and not p.startswith("__") for p in parts[2:])
    ]
    assert not foreign


@pytest.mark.parametrize("path", FILES, ids=relative_name)
def test_extras_are_imported_when_used(path):
    own = part(path)
    if "training" in path.parts:
        own = "torch"  # the paper's network trainers are imported with torch only
    outer = {name.split(".")[0] for name in imported(path, inside_functions=own == "core")}
    allowed = AT_TOP_LEVEL.get(own, ALWAYS_INSTALLED) | sys.stdlib_module_names | {"isrlearn"}
    assert outer <= allowed, f"{module_name(path)} imports {outer - allowed} when it is loaded"


@pytest.mark.parametrize("path", FILES, ids=relative_name)
def test_only_public_modules_of_scikit_learn(path):
    private = [
        name
        for name in imported(path, inside_functions=True)
        if name.startswith("sklearn.") and any(p.startswith("_") for p in name.split(".")[1:-1])
    ]
    assert not private


def loaded_by(statement: str) -> set[str]:
    """Top-level packages in memory after a statement, in a fresh interpreter."""
    code = f"{statement}\nimport sys\nprint(*{{name.split('.')[0] for name in sys.modules}})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


OPTIONAL = {"click", "dask", "jinja2", "matplotlib", "onnx", "pandas", "polars", "pyarrow"}
OPTIONAL |= {"rich", "skops", "torch"}


def test_the_package_loads_nothing_optional():
    loaded = loaded_by("import isrlearn, isrlearn.core, isrlearn.datasets, isrlearn.metrics")
    assert "numpy" in loaded
    # scikit-learn imports pandas by itself where it is installed, and pandas pyarrow.
    assert not (loaded & OPTIONAL) - loaded_by("import sklearn.utils")
    assert not loaded & (OPTIONAL - {"pandas", "pyarrow"})


def test_core_and_package_load_no_scikit_learn():
    assert "sklearn" not in loaded_by("import isrlearn, isrlearn.core")


@pytest.mark.parametrize("name", [n for n in isrlearn.__all__ if n != "__version__"])
def test_public_names_arrive_on_first_use(name):
    value = getattr(isrlearn, name)
    assert value.__name__ == name
    assert name in dir(isrlearn)


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="'isrlearn' has no attribute 'ISRClasifier'"):
        _ = isrlearn.ISRClasifier


class TestTheCheckItself:
    """A walk that sees nothing would pass every file."""

    SOURCE = """
from typing import TYPE_CHECKING
import numpy as np
from . import sibling
from .. import core
from ..core.labels import encode
if TYPE_CHECKING:
    import torch
try:
    import click
except ImportError:
    click = None
def later():
    import matplotlib.pyplot
class Body:
    import pandas
"""

    @pytest.fixture
    def path(self, tmp_path, monkeypatch):
        monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
        file = tmp_path / "metrics" / "module.py"
        file.parent.mkdir()
        file.write_text(self.SOURCE)
        return file

    def test_names_are_resolved(self, path):
        assert set(imported(path, inside_functions=True)) == {
            "typing.TYPE_CHECKING",
            "numpy",
            "isrlearn.metrics.sibling",
            "isrlearn.core",
            "isrlearn.core.labels.encode",
            "click",
            "matplotlib.pyplot",
            "pandas",
        }

    def test_functions_run_later(self, path):
        assert "matplotlib.pyplot" not in set(imported(path, inside_functions=False))

    @pytest.mark.parametrize(
        "statement",
        [
            "import isrlearn.estimators",
            "from isrlearn import ISRClassifier",
            "from ..datasets import EnvironmentData",
            "def later():\n    from .. import cli",
        ],
    )
    def test_a_wrong_direction_fails(self, path, statement):
        path.write_text(statement)
        with pytest.raises(AssertionError, match=r"isrlearn\.metrics\.module imports"):
            test_imports_point_one_way(path)

    def test_an_extra_at_top_level_fails(self, path):
        path.write_text("import click")
        with pytest.raises(AssertionError, match="'click'"):
            test_extras_are_imported_when_used(path)

    def test_a_private_module_fails(self, path):
        path.write_text("from sklearn.utils._param_validation import Interval")
        with pytest.raises(AssertionError):
            test_only_public_modules_of_scikit_learn(path)
