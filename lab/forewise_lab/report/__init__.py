"""Tables, the report and the page on real cases, made from nothing but the results table."""

from forewise_lab.report.figures import kept_panels
from forewise_lab.report.page import render_report, write_report
from forewise_lab.report.pay import write_pay_page
from forewise_lab.report.planned import write_planner_page
from forewise_lab.report.rendering import as_latex, as_markdown, print_table
from forewise_lab.report.results import gather
from forewise_lab.report.tables import table1, table2

__all__ = [
    "as_latex",
    "as_markdown",
    "gather",
    "kept_panels",
    "print_table",
    "render_report",
    "table1",
    "table2",
    "write_pay_page",
    "write_planner_page",
    "write_report",
]
