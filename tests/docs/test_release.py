"""Versions agree wherever they are stated."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import isrlearn

ROOT = Path(__file__).parents[2]
# Extras that only this project's own tools need.
TOOLS = {"dev", "docs", "recipes", "release", "networks"}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def release(text):
    return tuple(int(part) for part in text.split("."))


def lower_bounds():
    extras = [
        lines for name, lines in PROJECT["optional-dependencies"].items() if name not in TOOLS
    ]
    found = {}
    for line in [*PROJECT["dependencies"], *(line for lines in extras for line in lines)]:
        if match := re.fullmatch(r"([\w-]+)(?:\[[\w,]+\])?>=([\d.]+)", line):
            found.setdefault(match[1], set()).add(match[2])
        else:
            assert line.startswith("isrlearn["), f"{line} has no lower bound"
    return found


def test_the_oldest_versions_tested_are_those_promised():
    text = (ROOT / "constraints-oldest.txt").read_text(encoding="utf-8")
    pinned = dict(re.findall(r"^([\w-]+)==([\d.]+)$", text, flags=re.MULTILINE))
    bounds = lower_bounds()
    assert bounds.keys() <= pinned.keys()
    del bounds["torch"]  # the file says why
    for name, (bound,) in bounds.items():
        version = pinned[name]
        padded = release(bound) + (0,) * (len(release(version)) - len(release(bound)))
        assert padded == release(version), f"{name}: {bound} promised, {version} tested"


def test_citation_and_package_have_one_version():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.*)$", text, flags=re.MULTILINE)[1] == isrlearn.__version__
    assert "Invariant-Feature Subspace Recovery" in text


def test_changelog_has_the_version():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## {isrlearn.__version__}" in text
