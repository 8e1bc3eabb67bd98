"""Tables and a report, made from nothing but the results table of `forewise_lab.experiments`.

`results` checks the rows, `paper` has what belongs beside them, `statistics` the intervals and
tests. `tables` makes Table 1 and Table 2 of `cells`, which `text`, `markdown` and `latex` render.
`claims`, `figures` (drawn by `charts`), `panels` and `missing` are the other parts of the `page`.
`pay` is the page about real data, made of `cases`, `pay_tables` and `pay_plots`.
May import: everything up to experiments and plots. To add a section: a function of `Results` in a
module of its own, and a place in the template.
"""

from forewise_lab.report.cells import Cell, Column, Table
from forewise_lab.report.claims import Claim, Evidence, check_claims
from forewise_lab.report.latex import as_latex
from forewise_lab.report.markdown import as_markdown
from forewise_lab.report.missing import MissingFits, failed_fits, missing_fits
from forewise_lab.report.page import render_report, write_report
from forewise_lab.report.panels import kept_panels
from forewise_lab.report.pay import write_pay_page
from forewise_lab.report.results import Results, gather
from forewise_lab.report.statistics import Comparison, PaperValue, Summary, compare, summarise
from forewise_lab.report.tables import table1, table2
from forewise_lab.report.text import as_text, print_table

__all__ = [
    "Cell",
    "Claim",
    "Column",
    "Comparison",
    "Evidence",
    "MissingFits",
    "PaperValue",
    "Results",
    "Summary",
    "Table",
    "as_latex",
    "as_markdown",
    "as_text",
    "check_claims",
    "compare",
    "failed_fits",
    "gather",
    "kept_panels",
    "missing_fits",
    "print_table",
    "render_report",
    "summarise",
    "table1",
    "table2",
    "write_pay_page",
    "write_report",
]
