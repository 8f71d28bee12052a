"""The documentation names files, tests and functions that exist, and all that are public."""

from __future__ import annotations

import importlib
import inspect
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SOURCE = ROOT / "src/isrlearn"
API = (DOCS / "api.rst").read_text(encoding="utf-8")
PAGES = sorted(DOCS.rglob("*.md"))


def listed_names():
    """The names that the reference lists, by module."""
    found = {}
    for module, text in re.findall(
        r"currentmodule:: (\S+)\n(.*?)(?=\.\. currentmodule|\Z)", API, re.S
    ):
        names = re.findall(r"^   (\w+)$", text, flags=re.MULTILINE)
        found.setdefault(module, set()).update(names)
    return found


REFERENCE = listed_names()
PACKAGES = {f"isrlearn.{path.parent.name}" for path in SOURCE.glob("*/__init__.py")}
MODULES = sorted({"isrlearn", *PACKAGES} - {"isrlearn.cli"})


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_in_the_reference(module):
    loaded = imported(module)
    public = {name for name in loaded.__all__ if callable(getattr(loaded, name))}
    listed = REFERENCE[module] | REFERENCE["isrlearn"]
    assert public <= listed, f"add to docs/api.rst: {sorted(public - listed)}"


@pytest.mark.parametrize("module", REFERENCE)
def test_the_reference_names_what_exists(module):
    missing = [name for name in REFERENCE[module] if not hasattr(imported(module), name)]
    assert not missing, f"{module} has no {missing}"


def imported(module):
    """The module, if its extra is installed."""
    extra = module.removeprefix("isrlearn.").removeprefix("paper.").replace("training", "torch")
    if extra in ("torch", "dask"):
        pytest.importorskip(extra, reason=f"{module} needs {extra}")
    return importlib.import_module(module)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_tests_that_are_named_exist(page):
    for path, name in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page.read_text(encoding="utf-8")):
        source = (ROOT / path).read_text(encoding="utf-8")
        assert f"def {name}(" in source, f"{path} has no {name}"


def test_every_algorithm_names_its_tests():
    text = (DOCS / "theory/index.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", text, flags=re.M | re.S))
    for name in ("ISR-Mean", "ISR-Cov", "ISR-Multiclass", "ISR-Regression"):
        for part in ("**Assumption.**", "**Theorem.**", "**Checked by**", ".svg"):
            assert part in sections[name], (name, part)


MAP = (DOCS / "map.md").read_text(encoding="utf-8")


def place_of(path):
    inside = path.startswith(("tests/", "docs/", "examples/"))
    return (ROOT if inside else SOURCE) / path


def test_the_map_names_files_that_exist():
    tables = "\n".join(line for line in MAP.splitlines() if line.startswith("|"))
    paths = re.findall(r"`([\w/]+(?:/|\.\w+))`", tables)
    assert len(paths) > 30
    for path in paths:
        assert place_of(path).exists(), path


def test_the_map_names_what_its_files_hold():
    """Wherever it says `name` in `file`, the file has that name."""
    named = re.findall(r"`([\w-]+)` (?:in|of) `([\w/]+\.\w+)`", MAP)
    assert len(named) > 8
    for name, path in named:
        assert name in place_of(path).read_text(encoding="utf-8"), (name, path)


def test_the_map_names_every_part():
    packages = {f"{path.parent.name}/" for path in SOURCE.glob("*/__init__.py")}
    modules = {path.name for path in SOURCE.glob("*.py")} - {"__init__.py"}
    missing = {part for part in packages | modules if f"`{part}`" not in MAP}
    assert not missing


def test_every_page_can_be_found():
    """Each page is named by a toctree, directly or by a pattern."""
    named = set()
    for page in PAGES:
        for tree in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text("utf-8"), flags=re.S):
            for line in tree.splitlines():
                line = re.sub(r".*<(.*)>", r"\1", line)  # an entry may have a title of its own
                if line and not line.startswith(":"):
                    folder = page.parent / Path(line).parent
                    named |= {
                        p.resolve()
                        for p in folder.parent.glob(f"{folder.name}/{Path(line).name}.md")
                    }
                    named |= {
                        p.resolve() for p in page.parent.glob(f"{line}.md") if ".." not in line
                    }
    lost = {page.resolve() for page in PAGES} - named - {DOCS / "index.md"}
    assert not lost


class TestTheCheckOfTheSite:
    """docs/check_site.py, run by `make docs`, sees what is broken."""

    PAGE = '<html><body id="top"><a href="{}">x</a></body></html>'

    @pytest.mark.parametrize(
        ("link", "dead"),
        [
            ("b.html#top", False),
            ("b.html", False),
            ("#top", False),
            ("https://example.org/gone", False),
            ("c.html", True),
            ("b.html#gone", True),
            ("#gone", True),
            ("picture.png", True),
        ],
    )
    def test_dead_links(self, tmp_path, link, dead):
        check = runpy.run_path(str(DOCS / "check_site.py"))
        (tmp_path / "a.html").write_text(self.PAGE.format(link))
        (tmp_path / "b.html").write_text(self.PAGE.format("a.html"))
        assert bool(check["dead_links"](tmp_path)) is dead


def test_pictures_are_those_of_the_script():
    drawn = runpy.run_path(str(DOCS / "theory/draw.py"))
    names = {name.removeprefix("draw_") for name, f in drawn.items() if name.startswith("draw_")}
    assert {path.stem for path in (DOCS / "theory").glob("*.svg")} == names
    assert all(inspect.isfunction(drawn[f"draw_{name}"]) for name in names)
