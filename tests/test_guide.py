"""The user guide is true: its code runs, page by page, and its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from isrlearn import ISRClassifier
from isrlearn.core import METHODS
from isrlearn.estimators.heads import HEADS

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
EXTEND = DOCS / "howto/extend.md"


def run(page):
    """The names that the code of a page defines."""
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    names = {"__name__": "guide"}
    for block in blocks:
        exec(compile(block, str(page), "exec"), names)
    return names


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page != EXTEND], ids=lambda page: str(page.relative_to(DOCS))
)
def test_code_runs(page):
    run(page)


@pytest.fixture
def registries():
    """Restores the methods and the heads after the test."""
    before = [(registry, dict(registry)) for registry in (METHODS, HEADS)]
    yield
    for registry, entries in before:
        registry.clear()
        registry.update(entries)


@pytest.mark.usefixtures("registries")
def test_one_entry_adds_a_method_and_one_a_head():
    names = run(EXTEND)
    data, angles, clf = names["data"], names["angles"], names["clf"]
    assert len(angles) == 2
    assert angles.max() < np.radians(5)
    lda = ISRClassifier(head="lda").fit(data.X, data.y, data.environments)
    assert clf.score(data.X, data.y) > lda.score(data.X, data.y) - 0.01
    scores = data.X @ clf.coef_.T + clf.intercept_
    np.testing.assert_allclose(clf.decision_function(data.X), scores)
    parts = ISRClassifier(method="extremes", head="centroid")
    half = len(data.X) // 2
    for rows in (slice(None, half), slice(half, None)):
        parts.partial_fit(
            data.X[rows], data.y[rows], data.environments[rows], classes=np.unique(data.y)
        )
    np.testing.assert_allclose(parts.coef_, clf.coef_, atol=1e-8)


def test_the_entries_of_that_page_are_gone():
    with pytest.raises(ValueError, match="extremes"):
        ISRClassifier(method="extremes").fit([[0.0], [1.0]], [0, 1], [0, 0])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
        assert link.startswith("https://") or (page.parent / link).exists(), link


def test_there_are_pages():
    assert PAGES
