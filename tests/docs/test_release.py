"""What is promised about versions is one promise, wherever it stands."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import isrlearn

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def release(text):
    return tuple(int(part) for part in text.split("."))


def lower_bounds():
    extras = PROJECT["optional-dependencies"]
    wanted = [*PROJECT["dependencies"], *(line for lines in extras.values() for line in lines)]
    found = {}
    for line in wanted:
        if match := re.fullmatch(r"([\w-]+)(?:\[[\w,]+\])?>=([\d.]+)", line):
            found.setdefault(match[1], set()).add(match[2])
    return found


def test_the_oldest_versions_tested_are_those_promised():
    text = (ROOT / "constraints-oldest.txt").read_text(encoding="utf-8")
    pinned = dict(re.findall(r"^([\w-]+)==([\d.]+)$", text, flags=re.MULTILINE))
    bounds = lower_bounds()
    del pinned["torch"]  # the file says why
    for name in ("numpy", "scipy", "scikit-learn"):
        assert name in pinned
    for name, version in pinned.items():
        if name not in bounds:  # a dependency of a dependency
            continue
        (bound,) = bounds[name]
        padded = release(bound) + (0,) * (len(release(version)) - len(release(bound)))
        assert padded == release(version), f"{name}: {bound} promised, {version} tested"


def test_citation_and_package_have_one_version():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.*)$", text, flags=re.MULTILINE)[1] == isrlearn.__version__
    assert "Invariant-Feature Subspace Recovery" in text


def test_changelog_has_the_version():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## {isrlearn.__version__}" in text
