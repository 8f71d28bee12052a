"""Numbers in sentences of README and documentation are those of the committed results."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = runpy.run_path(str(ROOT / "docs/quotes.py"))
LISTING = DOCS["listing"]()
PAGES = [
    str(page.relative_to(ROOT)) for page in DOCS["TABLES"]["pages"]() if page.name != "table.md"
]
# What a result looks like: a decimal fraction, a percentage, points, how many times.
NUMBER = re.compile(r"(?<![\w.])\d+\.\d+(?!\w|\.\d)|\d+(?= ?%| points| times )")
# Code, targets of links, formulas and numbers of preprints.
LITERAL = re.compile(r"`[^`]*`|\]\([^)]*\)|\$\$.*?\$\$|\$[^$]*\$|arXiv:[\d.]+")


def words(page):
    """The text of a page without its tables, code and links, in one line."""
    text = DOCS["TABLES"]["BLOCK"].sub("", (ROOT / page).read_text(encoding="utf-8"))
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    return " ".join(text.split())


def unexplained(text, quotes):
    """Numbers that are in no quotation."""
    for quote in quotes:
        text = text.replace(quote, "")
    return sorted(set(NUMBER.findall(re.sub(LITERAL, "", text))))


@pytest.mark.parametrize("page", LISTING["quotes"])
def test_what_is_quoted_is_what_was_found(page):
    text = words(page)
    for quote in DOCS["quotes"](page):
        assert quote in text, f"{page} should say: {quote}"


@pytest.mark.parametrize("page", PAGES)
def test_every_number_is_a_result_or_a_setting(page):
    assert unexplained(words(page), DOCS["quotes"](page)) == LISTING["settings"].get(page, [])


@pytest.mark.parametrize(
    "page",
    [
        "docs/guide/will-it-help-me.md",
        "docs/howto/compare-models.md",
        "docs/howto/new-sites.md",
        "docs/index.md",
    ],
)
def test_the_output_shown_is_the_one_made(page, capsys):
    text, names = (ROOT / page).read_text(encoding="utf-8"), {}
    pairs = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", text, flags=re.DOTALL)
    assert pairs
    for code, shown in pairs:
        exec(code, names)
        made = [split(line) for line in capsys.readouterr().out.splitlines()]
        for line in shown.splitlines():
            around, numbers = split(line)
            # Solvers differ in the last digits.
            same = [found for words, found in made if words == around]
            close = any(found == pytest.approx(numbers, abs=0.011) for found in same)
            assert line == "..." or close, line


def split(line):
    """The words of a line and its numbers."""
    numbers = re.findall(r"\d+(?:\.\d+)?", line)
    return re.sub(r"\d+(?:\.\d+)?", "#", line), [float(number) for number in numbers]


def test_pages_named_exist():
    assert LISTING["quotes"].keys() | LISTING["settings"].keys() <= set(PAGES)


def test_a_number_that_is_off_is_seen():
    text = "The error falls from 0.25 to 0.125, by half (`0.5`), in 12 % of the time."
    assert unexplained(text, ["falls from 0.25 to 0.125,"]) == ["12"]
    assert unexplained(text, ["falls from 0.25 to 0.126,"]) == ["0.125", "0.25", "12"]
