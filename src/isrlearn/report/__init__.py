"""Reports: one page that shows what a model gained, from what, and how sure that is."""

from isrlearn.report._report import Report, make_report

__all__ = ["Report", "make_report"]
