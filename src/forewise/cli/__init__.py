"""The command line: `app` names the commands, each of which stands in a module of its own.

`plan`, `templates`, `proposal` and `writing` are the plan; `stream` decides files piece by piece;
`screen` is how commands speak. What a command needs is imported when it runs: `--help` and
`--version` are for reading.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated

import typer

from forewise import __version__
from forewise.cli import screen
from forewise.cli.learn import evaluate, fit
from forewise.cli.serve import serve
from forewise.cli.start import init
from forewise.cli.tour import demo
from forewise.cli.tune import tune
from forewise.cli.use import decide, explain, report
from forewise.exceptions import ForewiseError

HELP = """From a table of days to tomorrow's decisions, with what they cost and how sure that is.

[bold]The way[/bold], with a table of your own, or that of [cyan]forewise demo --files .[/cyan]:

  [cyan]forewise init sales.csv[/cyan]           looks at it, writes plan.toml
  [cyan]forewise fit sales.csv[/cyan]            learns by the plan, says what that is worth
  [cyan]forewise decide policy sales.csv --future tomorrow.csv -o orders.csv[/cyan]
  [cyan]forewise report policy sales.csv[/cyan]  one page to look at and to pass on
"""
app = typer.Typer(
    help=HELP,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"forewise {__version__}")
        raise typer.Exit


@app.callback(help=HELP)
def common(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Options of all commands."""


# Each with a call that runs as it stands, in a folder with the files of `forewise demo --files .`
_COMMANDS: dict[Callable[..., None], str] = {
    init: "forewise init sales.csv --yes --force",
    fit: "forewise fit sales.csv --plan plan.toml -o policy",
    decide: "forewise decide policy sales.csv --future tomorrow.csv -o orders.csv",
    evaluate: "forewise evaluate policy sales.csv",
    explain: "forewise explain policy sales.csv --future tomorrow.csv --row 2",
    report: "forewise report policy sales.csv --future tomorrow.csv -o report.html",
    serve: "forewise serve policy --table sales.csv",
    tune: "forewise tune sales.csv --plan plan.toml --trials 8 -o policy",
    demo: "forewise demo --files .",
}
for _command, _example in _COMMANDS.items():
    app.command(epilog=f"Example: [cyan]{_example}[/]")(_command)


def run_app(app: typer.Typer) -> None:
    """Run a command line; expected errors are one line, without a traceback.

    Ends with 0 if all went well, 1 after an expected error, 2 after a wrong call, 130 if stopped.
    """
    try:
        with screen.notes_for_warnings():
            app()
    except BrokenPipeError:  # as after `| head`
        sys.stderr.close()
        sys.exit(0)
    except (ForewiseError, OSError) as error:
        screen.error(str(error))
        sys.exit(1)
    except KeyboardInterrupt:
        screen.note("stopped")
        sys.exit(130)


def main() -> None:
    """Run the command line."""
    run_app(app)
