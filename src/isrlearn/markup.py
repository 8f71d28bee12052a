"""Results as text, JSON, short HTML for light and dark notebooks, and pages of their own."""

import json
import re
from collections.abc import Sequence
from dataclasses import is_dataclass
from html import escape
from typing import Any

#: Rows of a table that are shown at once; the others are folded.
_MOST_SHOWN = 12
_LINE = "border-bottom:1px solid color-mix(in srgb, currentColor 25%, transparent)"
_TABLE = "border-collapse:collapse;margin:.5em 0;color:inherit;background:none;font-size:inherit"
_CELL = f"padding:.2em .7em;{_LINE};color:inherit;background:none;overflow-wrap:normal"
_BLOCK = "color:inherit;max-width:62rem;overflow-x:auto;overflow-wrap:anywhere"
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} - isrlearn report</title>
<style>:root {{ color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }}
body {{ max-width: 62rem; margin: 0 auto; padding: 1rem }}</style></head>
<body><h1>{title}</h1>{body}</body></html>
"""


def line(value: Any, longest: int | None = None) -> str:
    r"""A value as one line of text that cannot rearrange its surroundings.

    Of a long one the middle is left out: names often differ only at one of their ends.

    Examples
    --------
    >>> line("<b>\u202e\n"), line("University Hospital, ward 12", 15)
    ('<b>??', 'Univers…ward 12')
    """
    text = "".join(c if c.isprintable() else "?" for c in str(value))
    if longest is None or len(text) <= longest:
        return text
    return f"{text[: longest // 2]}…{text[len(text) - (longest - 1) // 2 :]}"


def number(value: float, sign: str = "") -> str:
    """A number with three digits, or below a million with all digits before the point.

    Examples
    --------
    >>> number(0.012345), number(64123.4, "+"), number(2.5e7)
    ('0.0123', '+64,123', '2.5e+07')
    """
    text = f"{value:{sign}.3g}"
    return f"{value:{sign},.0f}" if "e+" in text and abs(value) < 1e6 else text


def names_in(text: str) -> list[str]:
    """Names that are separated by commas; one that contains a comma is in double quotes.

    Examples
    --------
    >>> names_in('age, "weight, kg"')
    ['age', 'weight, kg']
    """
    found = re.findall(r'\s*"([^"]*)"\s*(?:,|\Z)|([^,]+)', text)
    return [name for pair in found if (name := "".join(pair).strip())]


def listed(names: Sequence[str], most: int) -> str:
    """The first names, and the number of the others.

    Examples
    --------
    >>> listed(["a", "b", "c", "d"], 2)
    'a, b and 2 more'
    """
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def as_json(value: Any) -> Any:
    """A value as JSON represents it: results as dicts, None for non-finite numbers, else text."""
    return json.loads(json.dumps(value, default=_plain), parse_constant=lambda _: None)


def _plain(value: Any) -> Any:
    """What takes the place of a value that JSON does not know."""
    for method in ("tolist", "to_dict"):
        if hasattr(value, method):
            return getattr(value, method)()
    return vars(value) if is_dataclass(value) else str(value)


def paragraph(value: Any, *, strong: bool = False) -> str:
    """A paragraph of text."""
    weight = "font-weight:600;" if strong else ""
    return f'<p style="{weight}margin:.4em 0;color:inherit">{escape(line(value))}</p>'


def table(rows: Sequence[Sequence[Any]], sides: str) -> str:
    """A table whose first row is its head, with columns aligned to the sides, "<" or ">".

    Rows after the twelfth are folded.

    Examples
    --------
    >>> table([["group", "n"], ["a & b", 3]], "<>").count("<tr>")
    2
    """
    shown, rest = rows[1 : _MOST_SHOWN + 1], rows[_MOST_SHOWN + 1 :]
    head = _rows("th", rows[:1], sides)
    found = f'<table style="{_TABLE}">{head}{_rows("td", shown, sides)}</table>'
    if rest:
        more = f'<table style="{_TABLE}">{_rows("td", rest, sides)}</table>'
        found += folded(f"{len(rest)} more row{'s' * (len(rest) > 1)}", more)
    return found


def aligned(rows: Sequence[Sequence[Any]], sides: str) -> list[str]:
    """Lines of a table whose columns are aligned to the sides given, "<" or ">" for each."""
    cells = [[line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(f"{v:{s}{w}}" for v, s, w in zip(row, sides, widths, strict=False)).rstrip()
        for row in cells
    ]


def folded(title: str, *parts: str) -> str:
    """Parts that are shown on request."""
    return f"<details><summary>{escape(line(title))}</summary>{''.join(parts)}</details>"


def block(*parts: str) -> str:
    """Parts together, in the colours and the font of what surrounds them."""
    return f'<div class="isrlearn" style="{_BLOCK}">{"".join(parts)}</div>'


def page(title: str, body: str) -> str:
    """A self-contained page without scripts."""
    return _PAGE.format(title=escape(line(title)), body=body)


def _rows(tag: str, rows: Sequence[Sequence[Any]], sides: str) -> str:
    """Rows of a table."""
    aligned = {"<": "text-align:left", ">": "text-align:right;white-space:nowrap"}
    found = ""
    for row in rows:
        cells = (
            f'<{tag} style="{_CELL};{aligned[side]}">{escape(line(value))}</{tag}>'
            for value, side in zip(row, sides, strict=False)
        )
        found += f"<tr>{''.join(cells)}</tr>"
    return found
