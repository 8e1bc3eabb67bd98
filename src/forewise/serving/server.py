"""Running the service: where it listens, who may ask, and how it ends."""

from __future__ import annotations

import gc
import ipaddress
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import uvicorn

from forewise.exceptions import InvalidInputError
from forewise.serving.app import create_app
from forewise.serving.shelf import Limits, Shelf
from forewise.serving.telemetry import LOG, log_as_json

_SHORTEST = 16  # characters of a token


def run(
    folders: Sequence[Path],
    *,
    tables: Sequence[str] = (),
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    limits: Limits | None = None,
) -> None:
    """Serve policies until SIGTERM; requests that are being answered then are answered.

    Parameters
    ----------
    folders : list of paths
        A policy is called by the name of its folder.
    tables : list of str
        Tables of the past, as ``name=file``; the name may be left out for a single policy.
    host, port
        Other hosts than the loopback ones need a token.
    token : str, optional
    limits : Limits, optional
    """
    require_safe(host, token)
    limits = limits or Limits()
    log_as_json()
    # Threads that compute let go more often, so that the one that listens is not kept waiting.
    sys.setswitchinterval(0.001)
    names = named(folders)
    shelf = Shelf(names, tables_of(tables, list(names)), limits)
    # What was loaded stays: looking through it for garbage would stop all requests for a while.
    gc.collect()
    gc.freeze()
    config = uvicorn.Config(
        create_app(shelf, token, local=token is None), host=host, port=port, log_config=None,
        access_log=False, server_header=False, ws="none", timeout_keep_alive=15,
        timeout_graceful_shutdown=int(2 * limits.seconds) + 1,
    )  # fmt: skip
    # uvicorn raises the signal that stopped it once more when all is answered: that is no failure.
    signal.signal(signal.SIGTERM, lambda *_: None)
    LOG.info("serving", extra={"fields": {"host": host, "port": port, "policies": list(names)}})
    uvicorn.Server(config).run()
    LOG.info("ended")


def named(folders: Sequence[Path]) -> dict[str, Path]:
    """Policies by the names of their folders."""
    found: dict[str, Path] = {}
    for folder in folders:
        name = folder.resolve().name
        if name in found:
            raise InvalidInputError(
                f"policies must have different names, but two folders are called {name!r}: "
                "rename one"
            )
        found[name] = folder
    return found


def tables_of(tables: Sequence[str], names: Sequence[str]) -> dict[str, Path]:
    """Tables of the past by the name of their policy."""
    found = {}
    for text in tables:
        name, mark, file = text.partition("=")
        if not mark or (name not in names and len(names) == 1):
            if len(names) > 1:
                raise InvalidInputError(
                    f"with several policies a table must be name=file, but is {text!r}"
                )
            name, file = names[0], text
        found[name] = Path(file)
    return found


def require_safe(host: str, token: str | None) -> None:
    """Raise if anybody on the network could ask, or if a token is easy to guess."""
    if token is not None and (len(token) < _SHORTEST or not token.isascii() or " " in token):
        raise InvalidInputError(
            f"the token must have at least {_SHORTEST} ASCII characters and no space: make one "
            'with python -c "import secrets; print(secrets.token_urlsafe(32))"'
        )
    if token is None and not _is_loopback(host):
        raise InvalidInputError(
            f"--host {host} can be reached from outside: it needs a token, in an environment "
            "variable (--token-env NAME) or a file (--token-file FILE); or leave out --host"
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def token_from(variable: str | None, file: Path | None) -> str | None:
    """The token of an environment variable or a file."""
    if variable is not None and file is not None:
        raise InvalidInputError("the token must come from --token-env or --token-file, not both")
    if variable is not None:
        value = os.environ.get(variable, "")
        where = f"the environment variable {variable}"
    elif file is not None:
        value, where = file.read_text(), str(file)
    else:
        return None
    if not value.strip():
        raise InvalidInputError(f"{where} must have the token, but is empty")
    return value.strip()
