"""The path of a fit and of a decision is the one that docs/architecture.md lists."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import forewise as fw
from forewise.solvers.interior_point.core import follow_paths

PACKAGE = Path(fw.__file__).parent
TEXT = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text()
LISTS = re.findall(r"^`[\w.]+`, (\d+) frames.*\n\n((?: {4}.*\n)+)", TEXT, re.MULTILINE)


def path_to_kernels(call):
    """(function, file) of every frame of forewise above the solving kernel, the longest path."""
    longest: list[tuple[str, str]] = []

    def watch(frame, event, _):
        if event != "call" or frame.f_code is not follow_paths.__code__:
            return
        found, frame = [], frame.f_back
        while frame is not None:
            file = Path(frame.f_code.co_filename)
            if file.is_relative_to(PACKAGE):
                found.append((frame.f_code.co_qualname, file.relative_to(PACKAGE).as_posix()))
            frame = frame.f_back
        longest[:] = max(longest, found[::-1], key=len)

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(before)
    return longest


@pytest.fixture(scope="module")
def paths():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(40, 2)), random.uniform(1.0, 5.0, size=(40, 2))
    full = np.array([[2.0, 0.5], [0.5, 1.0]])  # not separable: no closed form
    terms = {"shortage_quadratic": full, "shortage": [3, 3], "excess_quadratic": full}
    problem = fw.QuadraticNewsvendor(
        quadratic=full, linear=[1, 1], excess=[1, 1], price=[1, 1], budget=8.0, **terms
    )
    training = fw.Training(epochs=1)
    network = fw.BayesianPredictor((4,), n_members=2, training=training, random_state=0)
    learner = fw.CombinedLearner(problem, network, 4, training=training, pretraining=False)
    return [
        path_to_kernels(lambda: learner.fit(X, y)),
        path_to_kernels(lambda: learner.decide(X, n_scenarios=4)),
    ]


@pytest.mark.parametrize(("number", "longest"), [(0, 16), (1, 8)], ids=["fit", "decide"])
def test_the_path_is_short_and_as_documented(paths, number, longest):
    length, lines = LISTS[number]
    listed = [(line.split()[0], line.split()[-1]) for line in lines.splitlines()]
    assert paths[number] == listed
    assert len(listed) == int(length) <= longest
