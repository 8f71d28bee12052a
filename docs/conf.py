"""How Sphinx builds the site: `make docs` (warnings are errors)."""

from __future__ import annotations

import tomllib
import warnings
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

import isrlearn

HERE = Path(__file__).parent
PROJECT = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]

project = "isrlearn"
author = "The isrlearn developers"
version = release = isrlearn.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_templates"]
# Pages of results have third-level headings directly below the title.
suppress_warnings = ["myst.header", "config.cache"]
nitpicky = True
# Names of other projects are not linked: their inventories would have to be downloaded.
nitpick_ignore_regex = [("py:.*", r"(sklearn|numpy|torch)\..*"), ("py:class", "ModelFileError")]
# A name in backquotes inside a docstring may be a parameter, not an object.
default_role = None

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
# The contents of a page of the reference have room for names of methods only.
toc_object_entries_show_parents = "hide"
# Blocks without a language are output and shell commands.
highlight_language = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

html_theme = "pydata_sphinx_theme"
html_title = f"isrlearn {version}"
html_favicon = "icon.svg"
html_context = {"default_mode": "auto"}
REPOSITORY = PROJECT.get("urls", {}).get("Repository")
html_theme_options = {
    "icon_links": [{"name": "Repository", "url": REPOSITORY, "icon": "fa-brands fa-git-alt"}]
    if REPOSITORY
    else [],
    "navigation_with_keys": False,
    "show_prev_next": False,
    "header_links_before_dropdown": 7,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
# Pages without subpages.
_ALONE = ("start", "glossary", "theory/index", "compare", "limits", "map", "changelog")
html_sidebars = {page: [] for page in _ALONE}
smartquotes = False
html_copy_source = False
html_show_sourcelink = False
html_math_renderer = "mathml"
copyright = author

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "matplotlib_animations": False,
}
# Scripts of the gallery end in plt.show(), which has no display during a build.
warnings.filterwarnings("ignore", message=".*non-interactive.*")


def inline_math(writer: Any, node: nodes.math) -> None:
    """Writes a formula as MathML, which browsers draw without a script or the network."""
    writer.body.append(tex2mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def displayed_math(writer: Any, node: nodes.math_block) -> None:
    """The same for a displayed formula."""
    writer.body.append(
        '<div style="margin: 1em 0; overflow-x: auto">'
        f"{tex2mathml(node.astext(), as_block=True)}</div>"
    )
    raise nodes.SkipNode


def add_figures(app: Any, docname: str, source: list[str]) -> None:
    """Show the figures of a benchmark below its table."""
    page = Path(docname)
    if page.parts[0] == "benchmarks" and page.name == "table":
        for figure in sorted((HERE / page.parent).glob("*.svg")):
            source[0] += f"\n![{figure.stem} of this benchmark]({figure.name})\n"


def skip_member(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool:
    """Skips methods that scikit-learn documents, and fields that their class describes."""
    theirs = str(getattr(obj, "__module__", "")).startswith("sklearn.")
    return skip or theirs or str(getattr(obj, "__doc__", "")).startswith("Alias for field number")


def setup(app: Any) -> None:
    """Registers the above."""
    app.add_html_math_renderer("mathml", (inline_math, None), (displayed_math, None))
    app.connect("source-read", add_figures)
    app.connect("autodoc-skip-member", skip_member)
