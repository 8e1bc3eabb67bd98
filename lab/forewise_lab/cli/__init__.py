"""`forewise-lab run | table | report | bench | data`."""

from __future__ import annotations

import typer

from forewise.cli import run_app
from forewise_lab.cli.bench import bench
from forewise_lab.cli.data import data
from forewise_lab.cli.experiments import report, report_real, run, table

app = typer.Typer(
    help="The laboratory of forewise: experiments, real cases and benches.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (run, table, report, report_real):
    app.command()(command)
app.add_typer(bench, name="bench")
app.add_typer(data, name="data")


def main() -> None:
    """Run the command line."""
    run_app(app)
