"""A report as one HTML file: nothing is fetched, and nothing in it but our own script runs."""

from __future__ import annotations

import base64
import hashlib
from importlib import resources
from typing import TYPE_CHECKING, Any

from isrlearn.diagnosis import Diagnosis
from isrlearn.report import _figures, _groups, _reproduce
from isrlearn.report._words import name_of, plural, sentence_of_kind

if TYPE_CHECKING:
    from isrlearn.report._report import Report

#: Findings and answers that are shown are sentences; none is longer than a page.
_LONGEST = 1200


def render(report: Report) -> str:
    """The page."""
    jinja = _jinja()
    style, script = _part("style.css"), _part("script.js")
    environment = jinja.Environment(
        loader=jinja.PackageLoader("isrlearn.report", "template"),
        autoescape=True,
        undefined=jinja.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    return environment.get_template("report.html").render(
        **_content(report),
        # Both are files of this package, and as they stand their hashes are in the policy.
        style=jinja.utils.markupsafe.Markup(style),
        script=jinja.utils.markupsafe.Markup(script),
        policy=(
            f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
            "base-uri 'none'; form-action 'none'"
        ),
    )


def check_jinja() -> None:
    """Raise now if a page could not be made later, after the work is done."""
    _jinja()


def _jinja() -> Any:
    try:
        import jinja2
    except ImportError:
        raise ImportError(
            'a report needs jinja2: pip install "isrlearn[report]"', name="jinja2"
        ) from None
    return jinja2


def _part(name: str) -> str:
    text = resources.files("isrlearn.report").joinpath("template", name).read_text("utf-8")
    return text.replace("\r\n", "\n")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def _content(report: Report) -> dict[str, Any]:
    estimator, found, sources = report.estimator, report.evidence, report.sources
    trade_off = found.trade_off
    figure = None
    if trade_off is not None and len(trade_off.counts) > 1:
        figure = _groups.trade_off_figure(trade_off)
    n_train = _n_train(estimator)
    return {
        "title": name_of(sources.get("title") or "What changed when what moves was removed"),
        "headline": _groups.headline(found.before, found.after),
        "kind": found.kind,
        "trust": sentence_of_kind(found.kind, found.after.n, n_train, found.reason[:300]),
        "facts": _facts(report, n_train),
        "removal": _removal(estimator),
        "bars": _groups.group_bars(found.before, found.after),
        "spectrum": _figures.spectrum_figure(
            estimator.spectrum_, report.rank_test, int(estimator.n_spurious_)
        ),
        "spectrum_note": _spectrum_note(report),
        "scatter": None
        if report.view is None
        else _figures.scatter_figure(report.view, float(estimator.scale)),
        "regression": not hasattr(estimator, "classes_"),
        "trade_off": figure,
        "width": _figures.WIDTH,
        **_diagnosed(report.diagnosis, estimator),
        "command": _reproduce.short(str(sources.get("command") or "")),
        "python": _reproduce.python_source(estimator, sources),
        "parameters": _reproduce.parameters(estimator),
        "versions": _reproduce.versions(),
        "sha256": str(sources.get("sha256") or ""),
    }


def _n_train(estimator: Any) -> int:
    moments = estimator.moments_
    other = 0.0 if moments.unlabelled is None else moments.unlabelled.count.sum()
    return round(float(moments.count.sum() + other))


def _facts(report: Report, n_train: int) -> list[tuple[str, str]]:
    estimator, sources = report.estimator, report.sources
    facts = [
        ("Model", type(estimator).__name__),
        ("Fitted on", _where(plural(n_train, "row"), sources.get("train"))),
        ("Features", f"{estimator.n_features_in_:,}"),
    ]
    if hasattr(estimator, "classes_"):
        facts.append(("Classes", f"{len(estimator.classes_):,}"))
    facts.append(("Environments", f"{len(estimator.environments_):,}"))
    facts.append(("Scored on", _where(plural(report.evidence.after.n, "row"), _scored(report))))
    return facts


def _scored(report: Report) -> Any:
    if report.evidence.kind in ("folds", "chosen-folds"):
        return "5 folds of the training rows"
    return report.sources.get("scored")


def _where(rows: str, place: Any) -> str:
    return f"{rows} ({name_of(place)})" if place else rows


def _removal(estimator: Any) -> str:
    """What became of the directions that move, in a sentence."""
    r, d, scale = int(estimator.n_spurious_), estimator.n_features_in_, float(estimator.scale)
    if r == 0:
        return f"None of the {d:,} directions was found to move with the environment."
    what = f"{r} of {d:,} directions {'moves' if r == 1 else 'move'} with the environment"
    if scale == 1:
        return f"{what}; the model leaves them as they are."
    if scale == 0:
        return f"{what} and {'was' if r == 1 else 'were'} taken out."
    return f"{what} and {'was' if r == 1 else 'were'} scaled to {100 * scale:g}%."


def _spectrum_note(report: Report) -> str:
    test, r = report.rank_test, int(report.estimator.n_spurious_)
    if test is None:
        return "How strong noise alone would be is not known here: the training rows are needed."
    asked = report.estimator.n_spurious != "auto"
    how = f"{r} removed, as asked; a test finds {test.rank}" if asked else f"{r} removed, by a test"
    limit = (
        " All that these environments can show stand out: with more environments more might."
        if test.limited
        else ""
    )
    return f"{how} at level {test.level:g}.{limit}"


def _diagnosed(found: Diagnosis | str, estimator: Any) -> dict[str, Any]:
    if isinstance(found, str):
        return {"answers": [], "advice": [found[:_LONGEST]], "angles": None, "angles_note": ""}
    steady = found.stability
    note = ""
    if steady is not None and found.n_spurious != estimator.n_spurious_:
        note = (
            f"Of the {plural(found.n_spurious, 'direction')} that the diagnosis finds; the model "
            f"removes {estimator.n_spurious_}."
        )
    return {
        "answers": [(name_of(q), name_of(a, _LONGEST)) for q, a in found.answers],
        "advice": [name_of(s, _LONGEST) for s in found.recommendation.sentences],
        "angles": None if steady is None else _figures.angles_figure(steady),
        "angles_note": note,
    }
