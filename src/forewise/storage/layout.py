"""The files of a folder: their names, and the number of this arrangement. May import: nothing."""

from __future__ import annotations

import re
import secrets

HEADER = "header.json"
#: Of the two files; the version of what is in them is the caller's.
LAYOUT = 1
ARRAYS_FILE = re.compile(r"arrays-[0-9a-f]{16}\.safetensors")
TEMPORARY_FILE = re.compile(r"\.forewise-[0-9a-f]{16}\.tmp")


def arrays_file(digest: str) -> str:
    """Name of the arrays' file whose SHA-256 is `digest`."""
    return f"arrays-{digest[:16]}.safetensors"


def temporary_file() -> str:
    """A name that no other writer has."""
    return f".forewise-{secrets.token_hex(8)}.tmp"
