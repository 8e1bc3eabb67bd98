"""`forewise serve`: policies behind an API."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from forewise.exceptions import MissingDependencyError


def serve(
    policies: Annotated[list[Path], typer.Argument(help="Folders; their names are the names.")],
    host: Annotated[str, typer.Option(help="Beyond loopback, a token is needed.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8000,
    table: Annotated[
        list[str] | None,
        typer.Option(help="The past that decisions are made from: FILE, or POLICY=FILE."),
    ] = None,
    token_env: Annotated[
        str | None, typer.Option(help="Environment variable with the token.")
    ] = None,
    token_file: Annotated[Path | None, typer.Option(help="File with the token.")] = None,
) -> None:
    """Answer requests for decisions over HTTP; a policy written anew is taken over at once."""
    try:
        from forewise.serving.server import run, token_from
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "forewise":
            raise
        raise MissingDependencyError(
            f"forewise serve needs {error.name}: pip install 'forewise[serve]'"
        ) from error
    token = token_from(token_env, token_file)
    run(policies, tables=table or (), host=host, port=port, token=token)
