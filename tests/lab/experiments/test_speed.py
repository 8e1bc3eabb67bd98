"""How much faster two workers are: printed, not asserted, as other work may share the cores."""

from __future__ import annotations

import time

import pandas as pd
import pytest

from forewise.parallel import Processes
from forewise_lab.experiments.runner import run
from tests.lab.experiments.tiny import TEXT, comparable, tiny_settings

FITS = 24


class Started(Processes):
    """Another map, and when its first result came: before that, workers were starting."""

    first = 0.0

    def imap_unordered(self, function, tasks):
        for result in super().imap_unordered(function, tasks):
            if not self.first:
                object.__setattr__(self, "first", time.perf_counter())
            yield result


@pytest.fixture(scope="module")
def fits(tmp_path_factory):
    """Runs 24 fits of a few seconds each with any map: how long it took, also without its start."""
    folder = tmp_path_factory.mktemp("speed")
    larger = TEXT.replace("n_train = [30]", "n_train = [600]").replace(
        "epochs = 2,", "epochs = 150,"
    )
    larger = larger.replace("hidden_sizes = [4, 4]", "hidden_sizes = [64, 64]")
    settings = tiny_settings(folder, larger)

    def timed(name, n_jobs):
        timing = Started(n_jobs)
        begun = time.perf_counter()
        run("all", ["bnn"], FITS, settings=settings, output=folder / name, map=timing,
            progress=False)  # fmt: skip
        ended = time.perf_counter()
        return ended - begun, ended - timing.first, comparable(folder / name)

    return timed


@pytest.fixture(scope="module")
def serial(fits):
    return fits("serial", 1)


@pytest.mark.slow
def test_two_workers_against_one(fits, serial, capsys):
    two = fits("processes", 2)
    pd.testing.assert_frame_equal(serial[2], two[2])
    whole, running = (serial[i] / two[i] for i in range(2))
    with capsys.disabled():
        print(
            f"\n{FITS} fits: serial {serial[0]:.1f} s, 2 processes {two[0]:.1f} "
            f"s: {whole:.2f} times as fast with the workers' start, {running:.2f} without"
        )
