"""A folder with something stored in it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.storage.helpers import write


@pytest.fixture
def stored(tmp_path) -> Path:
    folder = tmp_path / "stored"
    write(folder, {"a": np.arange(5.0), "flags": np.array([True, False]), "b": [1, 2.5, "x"]})
    return folder
