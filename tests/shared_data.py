"""Folders of test programs that do not come with forewise, or a skipped test."""

from __future__ import annotations

from pathlib import Path

import pytest

from forewise.datasets.files import search_places


def shared_folder(name: str) -> Path:
    """The folder `name` of the first data folder that has it."""
    places = [place / name for place in search_places()]
    found = next((place for place in places if place.is_dir()), None)
    if found is None:
        pytest.skip(f"{name} is not here: sought in {', '.join(map(str, places))}")
    return found
