"""Tables and pages as text, and the files that hold them."""

import csv
import io
import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from isrlearn.io.files import atomic_write
from isrlearn.paper.records import Failure


@dataclass(frozen=True)
class Table:
    """Rows of text under a title; the first column holds the names of the rows."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        """The table in Markdown, numbers aligned to the right."""
        lines = [self.columns, [":--", *["--:"] * (len(self.columns) - 1)], *self.rows]
        return "\n".join(
            [f"### {self.title}", "", *("| " + " | ".join(line) + " |" for line in lines), ""]
        )


def number(value: float, exponent: bool = False) -> str:
    """A number with four decimals, or with an exponent where these would hide it."""
    if math.isnan(value):
        return "–"
    if exponent and value != 0 and not 5e-4 <= abs(value) < 1000:
        return f"{value:.2e}"
    return f"{value:.4f}"


def plus_minus(mean: float, spread: float, digits: int = 3, sign: str = "") -> str:
    """A mean with its spread; without it if that is NaN, as the spread of a single run is."""
    text = f"{mean:{sign}.{digits}f}"
    return text if math.isnan(spread) else f"{text} ± {spread:.{digits}f}"


@cache
def notes(name: str) -> tuple[str, ...]:
    """Paragraphs for readers of the page of an experiment, or of its runs of one kind."""
    text = files(__package__).joinpath("data", "notes.toml").read_text(encoding="utf-8")
    return tuple(tomllib.loads(text).get(name, ()))


def markdown(
    heading: str, notes: Sequence[str], tables: Iterable[Table], *, command: str = ""
) -> str:
    """A Markdown page: heading, the command that made it, one paragraph per note, tables."""
    notes = [f"Made by `{command}`.", *notes] if command else notes
    parts = [f"# {heading}", "", *(line for note in notes for line in (note, ""))]
    return "\n".join([*parts, *(table.markdown() for table in tables)])


def csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """Rows as CSV: floats with six significant digits, nothing for NaN."""
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _digits(value) for name, value in row.items()} for row in rows)
    return out.getvalue()


def csv_of(kind: type, items: Iterable[Any]) -> str:
    """Instances of a dataclass as CSV; see `csv_text`."""
    return csv_text([field.name for field in fields(kind)], map(asdict, items))


def _digits(value: Any) -> Any:
    """Six significant digits of a float: more than seeds resolve, and files stay small."""
    if not isinstance(value, float):
        return value
    return "" if math.isnan(value) else f"{value:.6g}"


def result_dict(plan: Any, failures: Iterable[Failure], **values: Iterable[Any]) -> dict[str, Any]:
    """A plan, lists of dataclasses by name, and failures, ready for JSON; None stands for NaN."""
    found = {
        name: [{k: None if v != v else v for k, v in asdict(item).items()} for item in items]
        for name, items in values.items()
    }
    failed = [{**asdict(failure.key), "message": failure.message} for failure in failures]
    return {"plan": asdict(plan), **found, "failures": failed}


def write_files(folder: Path | str, contents: Mapping[str, str | bytes]) -> list[Path]:
    """Paths of the files written to a folder, each replaced atomically."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        with atomic_write(folder / name) as file:
            file.write(content.encode() if isinstance(content, str) else content)
    return [folder / name for name in contents]
