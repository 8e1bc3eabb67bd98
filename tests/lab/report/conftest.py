"""Results that all tests of the report share."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.lab.report.made_up import made_up_rows


@pytest.fixture(scope="session")
def all_rows() -> pd.DataFrame:
    """Every experiment, complete. Not to be changed."""
    return made_up_rows()
