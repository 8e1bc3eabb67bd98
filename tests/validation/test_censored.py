"""Which outcomes are censored: what may be passed, and what is refused with what to do."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from forewise.exceptions import InputTypeError, InvalidInputError
from forewise.validation.censored import check_censored

Y = np.arange(4.0)
FLAGS = np.array([True, False, False, True])


@pytest.mark.parametrize(
    "censored",
    [
        FLAGS,
        FLAGS[:, None],
        FLAGS.tolist(),
        FLAGS.astype(int),
        FLAGS.astype(object),
        torch.from_numpy(FLAGS),
        pd.Series(FLAGS),
        pd.Series(FLAGS, dtype="boolean"),
        pd.DataFrame({"demand": FLAGS}),
        np.ma.masked_array(FLAGS, mask=False),
    ],
)
def test_truth_values_of_any_kind(censored: Any) -> None:
    found = check_censored(censored, Y, Y[:, None])
    assert found is not None
    assert np.array_equal(found, FLAGS[:, None])
    assert found.dtype == bool


def test_none_and_all_false_are_the_same() -> None:
    assert check_censored(None, Y, Y[:, None]) is None
    assert check_censored(np.zeros(4, dtype=bool), Y, Y[:, None]) is None


@pytest.mark.parametrize(
    ("censored", "message"),
    [
        (FLAGS[:3], "shape (4,) or (4, 1)"),
        (np.ones((4, 2), dtype=bool), "has shape (4, 2)"),
        (np.array([3.0, 0, 0, 2.0]), "or 0 and 1, but has 3.0"),
        (np.array([np.nan, 0, 0, 1]), "missing for 1"),
        (pd.Series([True, None, False, None]), "missing for 2"),
        (pd.Series([True, None, False, True], dtype="boolean"), "missing for 1"),
        (np.ma.masked_array(FLAGS, mask=[True, False, False, True]), "missing for 2"),
        (np.array(["yes", "no", "no", "yes"]), "truth values"),
    ],
)
def test_what_is_no_truth_value(censored: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        check_censored(censored, Y, Y[:, None])


def test_text_is_a_wrong_type() -> None:
    with pytest.raises(InputTypeError, match="truth values"):
        check_censored(["a"] * 4, Y, Y[:, None])


def test_labels_in_another_order_are_refused() -> None:
    y = pd.Series(Y, index=list("abcd"))
    with pytest.raises(InvalidInputError, match="same order"):
        check_censored(pd.Series(FLAGS, index=list("bacd")), y, Y[:, None])


def test_columns_in_another_order_are_refused() -> None:
    y = pd.DataFrame({"bread": Y, "cake": Y})
    flags = pd.DataFrame({"cake": FLAGS, "bread": FLAGS})
    with pytest.raises(InvalidInputError, match="columns in the order of y"):
        check_censored(flags, y, y.to_numpy())


def test_a_vector_does_not_say_which_of_several_outcomes() -> None:
    with pytest.raises(InvalidInputError, match="a column for each outcome"):
        check_censored(FLAGS, np.ones((4, 2)), np.ones((4, 2)))
