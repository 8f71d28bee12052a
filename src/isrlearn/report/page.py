"""A report as one HTML file that loads nothing and runs no script but its own."""

from __future__ import annotations

import base64
import hashlib
import inspect
import json
import platform
from collections import defaultdict
from functools import partial
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
import sklearn

from isrlearn import __version__
from isrlearn.report import figures

if TYPE_CHECKING:
    from isrlearn.report.report import Report

#: Longest parameter that is shown, in characters.
_LONGEST = 4000


def render(report: Report) -> str:
    """The page."""
    try:
        import jinja2
    except ImportError:
        message = 'a report needs jinja2: pip install "isrlearn[report]"'
        raise ImportError(message, name="jinja2") from None
    style, script = _part("style.css"), _part("script.js")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("isrlearn.report", "template"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    metric = report.evidence.after.metric
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    functions = {
        "group": figures.group_name,
        "interval": partial(figures.interval, metric=metric),
        "literal": partial(json.dumps, ensure_ascii=False),
        "name": figures.name_of,
        "plural": figures.plural,
        "score": partial(figures.score_text, metric=metric),
    }
    environment.filters |= functions
    environment.globals |= functions
    return environment.get_template("report.html").render(
        **_content(report),
        # Both are files of this package; the policy allows exactly these by their hashes.
        style=jinja2.utils.markupsafe.Markup(style),
        script=jinja2.utils.markupsafe.Markup(script),
        policy=(
            f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
            "base-uri 'none'; form-action 'none'"
        ),
    )


def _part(name: str) -> str:
    """A text file of the template, with the line ends that its hash is computed with."""
    text = resources.files("isrlearn.report").joinpath("template", name).read_text("utf-8")
    return text.replace("\r\n", "\n")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def _content(report: Report) -> dict[str, Any]:
    """Variables of the template."""
    estimator, found = report.estimator, report.evidence
    headline, caution = figures.headline(found.before, found.after)
    moments = estimator.moments_
    unlabelled = 0.0 if moments.unlabelled is None else moments.unlabelled.count.sum()
    diagnosis = None if isinstance(report.diagnosis, str) else report.diagnosis
    return {
        "report": report,
        "headline": headline,
        "caution": caution,
        "n_train": round(float(moments.count.sum() + unlabelled)),
        "regression": not hasattr(estimator, "classes_"),
        "bars": figures.group_bars(found.before, found.after),
        "trade_off": figures.trade_off_figure(found) if len(found.counts) > 1 else None,
        "spectrum": figures.spectrum_figure(estimator.spectrum_, report.rank_test),
        "diagnosis": diagnosis,
        "advice": [report.diagnosis] if diagnosis is None else diagnosis.recommendation.sentences,
        "angles": None if diagnosis is None else diagnosis.stability,
        "angle": figures.Axis(0.0, 90.0, 64, figures.WIDTH - 14),
        "width": figures.WIDTH,
        "most_angles": figures.MOST_ANGLES,
        "sources": defaultdict(str, report.sources),
        "parameters": _parameters(estimator),
        "versions": {
            "isrlearn": __version__,
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "scikit-learn": sklearn.__version__,
            "Python": platform.python_version(),
        },
    }


def _parameters(estimator: Any) -> list[tuple[str, str, bool]]:
    """Name, value as Python code and whether it was changed; changed parameters first."""
    found = []
    for name, parameter in inspect.signature(type(estimator)).parameters.items():
        value = getattr(estimator, name)
        value = value.item() if isinstance(value, np.generic) else value
        text = "(coef, intercept)" if isinstance(value, tuple) else " ".join(repr(value).split())
        found.append((name, text[:_LONGEST], text != repr(parameter.default)))
    return sorted(found, key=lambda entry: not entry[2])
