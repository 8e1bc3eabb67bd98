"""The committed results stay those of the shipped settings: no renaming may lose them."""

from __future__ import annotations

from pathlib import Path

import pytest

from forewise_lab.experiments.configuration import load_settings
from forewise_lab.experiments.fits import all_fits
from forewise_lab.experiments.rolling import CaseGrid
from forewise_lab.experiments.rows import key_of, read_rows

RESULTS = Path(__file__).parents[3] / "lab" / "results"


def finished(fits, rows) -> int:
    keys = {key_of(row) for row in rows}
    return sum(all(key in keys for key in fit.row_keys()) for fit in fits)


def as_rows(folder) -> list[dict]:
    rows = read_rows(RESULTS / folder).to_dict("records")
    # Windows have no training size; in a table of numbers that is NaN.
    return [row | {"n_train": None} if row["n_train"] != row["n_train"] else row for row in rows]


@pytest.mark.parametrize(("folder", "n_finished"), [("paper", 613), ("real", 742)])
def test_fits_of_the_settings_are_found(folder, n_finished):
    settings, rows = load_settings(), as_rows(folder)
    if folder == "paper":
        fits = all_fits(settings, list(settings.experiments), None)
    else:
        grid = CaseGrid(settings, list(settings.cases), None, [0])
        fits = [*grid.trials(), *grid.windows(rows)]
    assert finished(fits, rows) >= n_finished
