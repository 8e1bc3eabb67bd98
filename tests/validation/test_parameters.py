"""One validator for each kind of setting; every message names it, and what came."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch

from forewise.exceptions import InvalidInputError
from forewise.validation import is_frame, is_series
from forewise.validation.parameters import (
    as_generator,
    as_random_state,
    require_bounds,
    require_choice,
    require_count,
    require_instance,
    require_level,
    require_number,
    require_positive,
)


def test_what_is_valid_comes_back_as_a_plain_number():
    assert type(require_count("n", np.int32(3))) is int
    assert require_count("n", 0, at_least=0) == 0
    assert type(require_positive("x", np.float32(0.5))) is float
    assert require_number("x", -1, at_least=-1, below=0) == -1
    assert require_level("level", torch.tensor([0.25])) == require_level("level", 0.25) == 0.25
    assert require_bounds("x", [1, 2.0]) == (1.0, 2.0)
    assert require_choice("kind", "a", ("a", "b")) == "a"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        *[
            (lambda v=v: require_count("n", v), r"^n must be a positive integer, but is ")
            for v in (0, True, 1.0, "3", None)
        ],
        (
            lambda: require_count("n", 1, at_least=2),
            "^n must be an integer of at least 2",
        ),
        *[
            (lambda v=v: require_positive("x", v), "^x must be a finite number above 0, but is ")
            for v in (0, -1, np.inf, np.nan, "1", None, True, 1j)
        ],
        (lambda: require_number("x", 1, at_least=0, below=1), "^x .*of at least 0 and below 1"),
        (lambda: require_number("x", 2, at_most=1), "^x .*at most 1, but is 2"),
        *[
            (lambda v=v: require_level("level", v), "^level must lie strictly between 0 and 1")
            for v in (0, 1, 95, "0.9", None, np.nan, True)
        ],
        (lambda: require_bounds("x", 3), "^x must be a pair"),
        (lambda: require_bounds("x", (2, 1)), "^x must have its lower end first"),
        (lambda: require_bounds("x", (0, 1)), "x must be a finite number above 0, but is 0"),
        (lambda: require_choice("kind", "c", ("a", "b")), "^kind must be one of 'a', 'b', but is"),
        (
            lambda: require_instance("x", 3, str, "'a'"),
            "^x .*str such as 'a', but is a int",
        ),
        (
            lambda: require_instance("x", str, str, "'a'"),
            r"^x .*class str itself: .*str\(...\)",
        ),
        (lambda: require_instance("x", 3, str, "'a'", optional=True), "^x must be .* or None"),
        (lambda: as_random_state(np.random.default_rng(0)), "^random_state must .*draw a seed"),
        (lambda: as_random_state(torch.Generator()), "^random_state must .*initial_seed"),
        (lambda: as_generator(-1), "^random_state must"),
    ],
)
def test_what_is_not_valid_is_named(call, message):
    with pytest.raises(InvalidInputError, match=message):
        call()


def test_random_states_are_those_of_numpy():
    state = np.random.RandomState(3)
    assert as_random_state(state) is state
    assert as_random_state(3).randint(2**31) == state.randint(2**31)
    require_instance("x", None, str, "'a'", optional=True)


def test_frames_and_series_are_known():
    assert is_frame(pd.DataFrame({"a": [1]}))
    assert is_series(pd.Series([1]))
    assert not is_frame(np.ones((2, 2)))
    assert not is_series([1])


def test_checks_need_neither_pandas_nor_rich():
    """Not even to take arrays; scikit-learn imports pandas by itself where it is installed."""
    code = """
import sys
sys.modules.update({"pandas": None, "rich": None})
import numpy as np
import forewise as fw
import forewise.display, forewise.storage, forewise.validation.tables
from forewise.validation.given import Given
assert fw.Scenarios(np.ones((2, 3, 1))).n_contexts == 2
assert len(Given(price=[1, 2])[[0]]) == 1
forewise.validation.tables.check_same_rows(X=np.ones((2, 1)), y=[1, 2])
try:
    fw.Scenarios([[[None]]])
except fw.InvalidInputError:
    pass
"""
    subprocess.run([sys.executable, "-c", code], check=True)
