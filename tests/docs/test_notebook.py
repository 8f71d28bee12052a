"""A script of the gallery as an executed notebook: every object is readable in both themes."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "examples/in_a_notebook.py"
BROWSER = runpy.run_path(str(ROOT / "tests/report/test_browser.py"))
TITLES = (
    *("Diagnosis of", "expected from ISR", "worst group", "class-balanced", "report.save"),
    "hospital is a shortcut",
)


@pytest.fixture(scope="module")
def notebook():
    """The script, a cell for each of its parts, executed."""
    why = "needs: pip install nbconvert ipykernel"
    nbclient = pytest.importorskip("nbclient", reason=why)
    nbformat = pytest.importorskip("nbformat", reason=why)
    pytest.importorskip("ipykernel", reason=why)
    pytest.importorskip("pandas", reason="the script needs pandas")
    parts = re.split(r"^# %%\n", SCRIPT.read_text(encoding="utf-8"), flags=re.M)
    cells = [nbformat.v4.new_code_cell(part) for part in parts]
    found = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(found, timeout=600, kernel_name="python3").execute()
    return found


def shown(notebook):
    """What each cell after the first one shows as HTML."""
    outputs = [[o.data for o in cell.outputs if "data" in o] for cell in notebook.cells[1:]]
    return [data[-1]["text/html"] for data in outputs if data]


@pytest.mark.slow
def test_every_object_shows_itself(notebook):
    pages = shown(notebook)
    assert len(pages) == len(TITLES)
    for title, page in zip(TITLES, pages, strict=True):
        assert title in page
        assert len(page) < 30_000


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_is_readable(notebook, theme, tmp_path):
    if BROWSER["CHROMIUM"] is None:
        pytest.skip("needs a browser: apt-get install chromium")
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs: pip install playwright")
    nbconvert = pytest.importorskip("nbconvert", reason="needs: pip install nbconvert")
    exporter = nbconvert.HTMLExporter(theme=theme, require_js_url="", mathjax_url="")
    page = tmp_path / "notebook.html"
    page.write_text(exporter.from_notebook_node(notebook)[0], encoding="utf-8")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=BROWSER["CHROMIUM"], args=BROWSER["FLAGS"]
        )
        tab = browser.new_page(viewport={"width": 1000, "height": 900}, color_scheme=theme)
        tab.goto(page.as_uri())
        tab.evaluate("document.querySelectorAll('details').forEach((d) => (d.open = true))")
        own = "document.querySelectorAll('.isrlearn')"
        assert tab.evaluate(f"{own}.length") >= len(TITLES)
        wide = f"[...{own}].some((d) => d.scrollWidth > d.clientWidth + 1)"
        assert not tab.evaluate(wide)
        ours = BROWSER["CONTRASTS"].replace(
            "if (!text", "if (!node.closest('.isrlearn')) continue; if (!text"
        )
        contrasts = tab.evaluate(ours)
        browser.close()
    assert len(contrasts) > 100
    assert not [text for ratio, text in contrasts if ratio < 4.5]
