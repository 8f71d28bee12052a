"""Reports: one HTML page that says whether a model is worth using, with the evidence."""

from isrlearn.report.report import Report, make_report

__all__ = ["Report", "make_report"]
