"""`forewise data list | fetch`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from forewise import datasets
from forewise_lab.datasets import fetch as download

data = typer.Typer(help="Real data sets: what is there, and how to get the rest.",
                   no_args_is_help=True)  # fmt: skip
DataDir = Annotated[
    Path | None,
    typer.Option(help="Folder with a subfolder for each data set; FOREWISE_DATA by default."),
]


@data.command("list")
def list_command(data_dir: DataDir = None) -> None:
    """Say which data sets are there, which are missing, and where to get them."""
    console = Console()
    for found in datasets.available(data_dir):
        console.print(str(found), highlight=False, markup=False, soft_wrap=True)


@data.command()
def fetch(
    name: Annotated[str, typer.Argument(help="Of the data set, such as cnnpred.")],
    data_dir: DataDir = None,
) -> None:
    """Download a data set, check it, and put it in its place."""
    console = Console()
    with console.status(f"fetching {name}"):
        folder = download(name, data_dir)
    console.print(f"{name} is in [bold]{escape(str(folder))}[/]", highlight=False)
