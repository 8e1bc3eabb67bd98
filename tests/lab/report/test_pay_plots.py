"""Costs over time, as they are drawn."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from forewise_lab.report.pay_plots import _moving_mean


def test_the_moving_mean_counts_decisions_and_not_weeks():
    """One dear Sunday, then eight cheap weeks from Monday on: the Sunday is one day of 22."""
    days = pd.date_range("2018-07-01", periods=1 + 8 * 7)
    costs = pd.Series(np.r_[100.0, np.ones(8 * 7)], index=days)
    found = _moving_mean(costs)
    assert found.index[0] == pd.Timestamp("2018-07-22")
    assert found.iloc[0] == pytest.approx((100 + 21) / 22)
    assert np.allclose(found.iloc[1:], 1)


def test_a_short_or_broken_record_is_drawn_as_far_as_it_goes():
    days = pd.DatetimeIndex(["2018-07-02", "2018-07-03", "2018-07-16"])
    assert _moving_mean(pd.Series([1.0, 2.0, 6.0], index=days)).tolist() == [3.0]
