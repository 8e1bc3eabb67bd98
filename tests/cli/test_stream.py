"""Files of any length: what comes out piece by piece is what comes out at once."""

from __future__ import annotations

import tracemalloc
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import forewise as fw
from forewise import tables
from forewise.cli import reading, stream


def at_once(past, future):
    decided = fw.load_policy("policy").decide(tables.read(past), future=tables.read(future))
    return decided.reset_index(drop=True)


@pytest.mark.parametrize("order", ["by day", "none"])
def test_pieces_and_blocks_decide_as_the_whole(shops, monkeypatch, order):
    """Days that an earlier block has are past for a later one."""
    table = tables.read("sales.csv")
    days = sorted(table["date"].unique())
    late = table["date"].isin(days[-9:])
    tables.write(table[~late], "past.csv")
    future = table[late].drop(columns="sales").sample(frac=1.0, random_state=0)
    if order == "by day":
        future = future.sort_values("date", kind="stable")
    tables.write(future, "future.csv")
    expected = at_once("past.csv", "future.csv")
    for block, piece in ((1000, 20), (17, 5), (25, 1000)):
        monkeypatch.setattr(stream, "_BLOCK", block)
        monkeypatch.setattr(stream, "_PIECE", piece)
        parts = list(stream.decisions(fw.load_policy("policy"), "past.csv", "future.csv"))
        assert len(parts) == (-(-len(future) // block) if order == "by day" else 1)
        found = pd.concat(parts, ignore_index=True)
        pd.testing.assert_frame_equal(found, expected)


def test_only_the_past_that_matters_is_kept(shops):
    policy = fw.load_policy("policy")
    kept = stream.recent(policy, "sales.csv", np.datetime64("2023-05-20"))
    assert kept["date"].min() == "2023-02-18"  # 91 days before
    again = policy.decide(kept, future=tables.read("tomorrow.csv"))
    np.testing.assert_array_equal(again["decision"].shape, (6,))


@pytest.mark.parametrize(("most", "chunk"), [(50, 20), (100, 7), (350, 100_000)])
def test_of_a_very_long_table_the_last_days_are_learned_from(
    shops, monkeypatch, capsys, most, chunk
):
    monkeypatch.setattr(reading, "MOST", most)
    monkeypatch.setattr(tables, "chunks", partial(tables.chunks, rows=chunk))
    whole = tables.read("sales.csv").sample(frac=1.0, random_state=0)
    tables.write(whole, "shuffled.csv")
    roles = fw.load_policy("policy").roles
    kept = reading.rows_to_learn_from(Path("shuffled.csv"), roles)
    n_days = most // 6  # six rows a day
    assert len(kept) == 6 * n_days
    assert set(kept["date"]) == set(sorted(whole["date"].unique())[-n_days:])
    assert "those of the last days" in " ".join(capsys.readouterr().err.split())


def test_of_a_very_long_table_without_days_some_rows_are_learned_from(shops, monkeypatch):
    monkeypatch.setattr(reading, "MOST", 100)
    monkeypatch.setattr(tables, "chunks", partial(tables.chunks, rows=30))
    roles = fw.Planner(None, outcome="sales").roles
    kept = reading.rows_to_learn_from(Path("sales.csv"), roles)
    assert list(kept.index) == list(range(4, 362, 4))  # of 360 rows, the header being row 1


@pytest.mark.slow
def test_a_million_rows_need_little_memory(shops):
    """A table without days, decided piece by piece."""
    random = np.random.default_rng(0)
    learned = pd.DataFrame({"x": random.normal(size=500), "kind": random.choice(list("abc"), 500)})
    learned["sales"] = random.gamma(4.0, np.exp(0.3 * learned["x"]))
    planner = fw.Planner(fw.Newsvendor(3, 1), outcome="sales", learner=fw.ForestPredictor(20))
    planner.fit(learned).save("plain")
    rows = pd.DataFrame({"x": random.normal(size=10**6), "kind": random.choice(list("abc"), 10**6)})
    tables.write(rows, "rows.csv")
    tracemalloc.start()
    with tables.Writer("orders.csv") as writer:
        for part in stream.decisions(fw.load_policy("plain"), None, "rows.csv"):
            writer.append(part)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert writer.rows == 10**6
    assert peak < 2**29
