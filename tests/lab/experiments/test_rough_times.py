"""The guesses of how long fits take, against how long those in the results table took."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from statistics import median

from forewise_lab.experiments import all_fits, load_settings

ROWS = Path(__file__).parents[3] / "lab" / "results" / "paper" / "rows.jsonl"
LONG = 20.0  # seconds: shorter fits say little of a night


def test_guesses_are_of_the_right_order():
    took = defaultdict(list)
    for line in ROWS.read_text().splitlines():
        row = json.loads(line)
        if row["seconds"] is not None:
            key = (row["experiment"], row["method"], row["n_train"], row["m_train"])
            took[key].append(row["seconds"] + row["decide_seconds"])
    settings = load_settings()
    guesses = {
        (fit.experiment, fit.method.name, fit.setting.n_train, fit.m_train): fit.rough_seconds
        for fit in all_fits(settings, ["table1", "table2"], None, [0])
    }
    long = {key: median(times) for key, times in took.items() if median(times) >= LONG}
    compared = {key: guesses[key] / seconds for key, seconds in long.items() if key in guesses}
    assert len(compared) > 20
    assert all(0.2 < ratio < 5 for ratio in compared.values()), compared
    assert 0.5 < median(compared.values()) < 2
