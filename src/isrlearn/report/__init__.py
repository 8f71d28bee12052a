"""Reports: one page that shows what a model gained, from what, and how sure that is."""

from isrlearn.report._evidence import Evidence
from isrlearn.report._page import check_jinja
from isrlearn.report._report import Report, make_report
from isrlearn.report._tradeoff import TradeOff

__all__ = ["Evidence", "Report", "TradeOff", "check_jinja", "make_report"]
