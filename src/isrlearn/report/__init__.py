"""Reports: one HTML page that shows what a model gained, from what, and with what certainty."""

from isrlearn.report.report import Report, make_report

__all__ = ["Report", "make_report"]
