"""Data sets: rows, names, true scenarios, and what they say of bad input."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest

import forewise as fw
from forewise.datasets import Dataset, nvqp


def tiny(**changes):
    fields = {
        "X": np.arange(6.0).reshape(3, 2), "y": [[1.0], [2.0], [3.0]],
        "feature_names": ["a", "b"], "outcome_names": ["demand"],
    }  # fmt: skip
    return Dataset(**{**fields, **changes})


def plain_normals(X, n_scenarios, generator):
    return generator.normal(size=(len(X), n_scenarios, 1))


def test_rows_keep_names_labels_and_distribution():
    dataset = tiny(conditional=plain_normals, index=["mon", "tue", "wed"])
    for rows in (slice(1, None), [1, 2], np.array([False, True, True])):
        part = dataset[rows]
        assert part.X.tolist() == [[2.0, 3.0], [4.0, 5.0]]
        assert part.y.tolist() == [[2.0], [3.0]]
        assert part.index.tolist() == ["tue", "wed"]
        assert (part.feature_names, part.outcome_names) == (("a", "b"), ("demand",))
        assert part.true_scenarios(5).values.shape == (2, 5, 1)
    assert (dataset.n_contexts, dataset.n_features, dataset.n_outcomes) == (3, 2, 1)
    assert "n_contexts=3" in repr(dataset)


def test_frames_have_the_names_and_labels():
    contexts, outcomes = tiny(index=["mon", "tue", "wed"]).frame()
    assert list(contexts.columns) == ["a", "b"]
    assert list(outcomes.columns) == ["demand"]
    assert contexts.loc["tue"].tolist() == [2.0, 3.0]
    assert outcomes.loc["wed", "demand"] == 3.0


def test_made_from_frames_and_independent_of_them():
    array = np.zeros((3, 2), dtype=np.float32)
    dataset = tiny(X=array, y=pd.DataFrame({"demand": [1, 2, 3]}))
    array[:] = 7.0
    assert dataset.X.dtype == dataset.y.dtype == np.float64
    assert not dataset.X.any()
    assert dataset.y[:, 0].tolist() == [1.0, 2.0, 3.0]


def test_true_scenarios_repeat_with_their_seed_only():
    dataset = nvqp(20)
    again = dataset.true_scenarios(7, random_state=3).values
    assert np.array_equal(dataset.true_scenarios(7, random_state=3).values, again)
    assert not np.array_equal(dataset.true_scenarios(7, random_state=4).values, again)
    generator = np.random.default_rng(3)
    first = dataset.true_scenarios(7, random_state=generator).values
    assert np.array_equal(first, again)
    assert not np.array_equal(dataset.true_scenarios(7, random_state=generator).values, again)


def test_true_scenarios_share_no_numbers_with_data_of_the_same_seed():
    """A data set of seed s starts with these numbers; scenarios of seed s must not."""
    dataset = tiny(conditional=plain_normals)
    of_the_data = np.random.default_rng(0).normal(size=(3, 50))
    of_the_scenarios = dataset.true_scenarios(50, random_state=0).values[:, :, 0].numpy()
    assert not np.isin(of_the_data, of_the_scenarios).any()


@pytest.mark.parametrize("shape", [(3, 5), (3, 100_000), (2000, 100), (70_000, 3)])
def test_pieces_cover_every_context_and_scenario_once(shape):
    drawn = []

    def counted(X, n_scenarios, generator):
        drawn.append(len(X) * n_scenarios * 2)
        return np.broadcast_to(X, (n_scenarios, len(X), 2)).swapaxes(0, 1)

    X = np.random.default_rng(0).normal(size=(shape[0], 2))
    dataset = Dataset(X, X, ["a", "b"], ["u", "v"], counted)
    values = dataset.true_scenarios(shape[1]).values.numpy()
    assert np.array_equal(values, np.broadcast_to(X[:, None], (*shape, 2)))
    assert sum(drawn) == values.size
    assert max(drawn) <= 2**17


@pytest.mark.parametrize(("n_contexts", "n_scenarios"), [(1000, 300), (3, 100_000)])
def test_memory_is_that_of_the_result(n_contexts, n_scenarios):
    dataset = nvqp(n_contexts)
    tracemalloc.start()
    try:
        scenarios = dataset.true_scenarios(n_scenarios)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    size = scenarios.values.numel() * scenarios.values.element_size()
    assert size <= peak < 2 * size


def test_real_data_have_no_true_distribution():
    with pytest.raises(fw.ForewiseError, match=r"true distribution.*real data do not have"):
        tiny().true_scenarios(3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tiny(X=[1.0, 2.0]), r"X must be a matrix .* but has shape \(2,\)"),
        (lambda: tiny(X=np.zeros((0, 2)), y=np.zeros((0, 1))), "X must be a matrix .* at least 1"),
        (lambda: tiny(X=[["a", "b"]] * 3), "X must be numbers"),
        (lambda: tiny(X=np.array([["a", "b"]] * 3)), "X must be numbers"),
        (lambda: tiny(y=[[1.0], [np.nan], [2.0]]), "y must be finite, but 1 of its 3"),
        (lambda: tiny(y=[[1.0]]), "X and y must have one row per context each, .* 3 and 1 rows"),
        (lambda: tiny(feature_names=["a"]), r"feature_names must be 2 different.* is 1 name"),
        (lambda: tiny(feature_names=["a", "a"]), r"feature_names must be .* repeats \['a'\]"),
        (lambda: tiny(feature_names="ab"), "feature_names must be 2 different"),
        (lambda: tiny(outcome_names=["u", "v"]), "outcome_names must be 1 different.* 2 name"),
        (lambda: tiny(index=[1, 2]), r"index must have one label per row, .* shape \(2,\)"),
        (lambda: tiny()[1], r"rows must be a slice.* but is 1; for row i use dataset\[i : i \+ 1"),
        (lambda: tiny()[[0, 3]], "rows must be row numbers below 3"),
        (lambda: tiny()[[True, False]], "rows must be row numbers below 3 or a mask"),
        (lambda: tiny()[3:], "rows must choose at least one of the 3 rows"),
        (lambda: nvqp(3).true_scenarios(0), "n_scenarios must be .* but is 0"),
        (lambda: nvqp(3).true_scenarios(2.0), r"n_scenarios must be .* 2\.0"),
        (lambda: nvqp(3).true_scenarios(2, random_state=-1), "random_state must be .* is -1"),
        (lambda: nvqp(3).true_scenarios(2, random_state="x"), "random_state must be .* is 'x'"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(fw.InvalidInputError, match=message):
        make()
