"""Data that are not what they seem, and objects of the wrong kind, are refused by name."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
import torch

import forewise as fw

N = 40
PROBLEM = fw.Newsvendor(3, 1)
X = np.random.default_rng(0).normal(size=(N, 2))
y = np.random.default_rng(1).uniform(1, 9, (N, 1))
SCENARIOS = fw.Scenarios(np.random.default_rng(2).uniform(1, 9, (4, 5, 1)))
DATES = pd.date_range("2024-01-01", periods=N)


def masked(values):
    """The second entry is masked, and what lies under the mask is huge."""
    values = np.array(values, dtype=np.float64)
    values.flat[1] = 1e6
    return np.ma.array(values, mask=values == 1e6)


def learner(problem=PROBLEM, predictor=None, **settings):
    return fw.DecoupledLearner(problem, predictor or fw.NeighborPredictor(), **settings)


def capped():
    """A newsvendor whose order has a limit that is given."""
    z, demand = cp.Variable(1, nonneg=True, name="z"), cp.Parameter(1, name="demand")
    limit = cp.Parameter(name="limit")
    cost = 3 * cp.sum(cp.pos(demand - z)) + cp.sum(cp.pos(z - demand))
    return fw.CvxpyProblem(cp.Minimize(cost), [z <= limit], decision=z, outcome=demand, given=limit)


MASKED = {
    "values": lambda: fw.Scenarios(masked(np.ones((4, 5, 1)))),
    "weights": lambda: fw.Scenarios(SCENARIOS.values, masked(np.ones((4, 5)))),
    "shortage": lambda: fw.Newsvendor(masked([1.0, 2.0]), 1),
    "expected_return": lambda: fw.Portfolio(masked([0.1, 0.2]), 0.1),
    "X": lambda: learner().fit(masked(X), y),
    "y": lambda: learner().fit(X, masked(y)),
    "y of rows": lambda: learner().fit(X, list(masked(y))),
    "X_val": lambda: fw.PointPredictor().fit(X, y, X_val=masked(X), y_val=y),
    "X to decide": lambda: learner().fit(X, y).decide(masked(X)),
    "y to score": lambda: learner().fit(X, y).score(X, masked(y)),
    "given": lambda: learner(capped()).fit(X, y, given=masked(np.full(N, 9.0))),
    "given by name": lambda: learner(capped()).fit(X, y, given={"limit": masked(np.full(N, 9.0))}),
    "decision": lambda: PROBLEM.cost(masked(y), y),
    "outcome": lambda: fw.regret(PROBLEM, y, masked(y)),
    "outcome of a score": lambda: fw.metrics.crps(SCENARIOS, masked(np.ones((4, 1)))),
    "costs": lambda: fw.metrics.block_bootstrap(masked(np.ones(N)), DATES),
    "y of a rolling evaluation": lambda: fw.evaluate_rolling(
        learner(), X, masked(y), DATES, window=10, min_train_days=20
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MASKED)
def test_masked_data_are_refused_with_what_to_do(name):
    with pytest.raises(fw.InvalidInputError, match=rf"{name.split(' ')[0]}.*masked.*filled"):
        MASKED[name]()


def test_a_mask_that_masks_nothing_is_no_mask():
    plain = np.ma.array(np.ones((4, 5, 1)), mask=False)
    assert torch.equal(fw.Scenarios(plain).values, torch.ones(4, 5, 1, dtype=torch.float64))
    decided = learner().fit(np.ma.array(X), np.ma.array(y)).decide(np.ma.array(X))
    assert np.array_equal(decided, learner().fit(X, y).decide(X))


def test_masks_in_a_data_frame_are_missing_values():
    frame = pd.DataFrame(masked(X), columns=["a", "b"])
    fitted = learner().fit(frame, y)
    assert fitted.policy_.predictor.table_columns_.features == ["a", "b", "b_missing"]


@pytest.mark.parametrize("kind", ["Int64", "Float64", "int64[pyarrow]"])
def test_nullable_columns_are_numbers_or_missing(kind):
    if "pyarrow" in kind:
        pytest.importorskip("pyarrow")
    whole = pd.DataFrame(np.arange(2 * N).reshape(N, 2), columns=["a", "b"])
    plain = learner().fit(whole, y).decide(whole)
    nullable = whole.astype(kind)
    assert np.array_equal(learner().fit(nullable, y).decide(nullable), plain)
    series = pd.Series(np.arange(N)).astype(kind)
    assert torch.equal(
        PROBLEM.cost(series.to_frame(), series.to_frame()), torch.zeros(N, dtype=torch.float64)
    )
    nullable.iloc[3, 1] = pd.NA
    fitted = learner().fit(nullable, y)
    assert fitted.policy_.predictor.table_columns_.features == ["a", "b", "b_missing"]
    series[3] = pd.NA
    with pytest.raises(fw.InvalidInputError, match="y must be finite"):
        learner().fit(X, series)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pd.Series(DATES - DATES[0]), "'c'.*timedelta"),
        (pd.Series([{}, None] * (N // 2), dtype=object), "'c' holds a dict"),
        (pd.Series(np.ones(N) * 1j), "'c' is of type complex"),
    ],
)
def test_columns_that_cannot_be_encoded_are_named(column, message):
    with pytest.raises(fw.InvalidInputError, match=message):
        learner().fit(pd.DataFrame({"a": X[:, 0], "c": column}), y)


@pytest.mark.parametrize(
    "value",
    [
        np.array([[["2024-01-01"]]], dtype="datetime64[D]"),
        np.array([[["1,5"]]]),
        [[["1.5"]]],
        [[[None]]],
        np.array([[[pd.NA]]], dtype=object),
        np.array([[[1j]]]),
        np.zeros((1, 1, 1), dtype=[("a", float)]),
        torch.ones(1, 1, 1).to_sparse(),
        torch.ones(1, 1, 1, dtype=torch.complex64),
        pd.Categorical(["1"]),
        {"a": 1},
        None,
    ],
    ids=str,
)
def test_values_that_are_no_numbers_are_refused(value):
    with pytest.raises(fw.InvalidInputError, match="values"):
        fw.Scenarios(value)


@pytest.mark.parametrize("layout", ["to_sparse", "to_mkldnn"])
def test_sparse_tensors_say_how_to_make_them_dense(layout):
    sparse = getattr(torch.ones(3, 2), layout)()
    with pytest.raises(fw.InvalidInputError, match=r"weights.*to_dense"):
        fw.Scenarios(torch.ones(3, 2, 1), weights=sparse)
    with pytest.raises(fw.InvalidInputError, match=r"X.*to_dense"):
        learner().fit(sparse, y[:3])


def test_arrays_of_any_order_and_byte_order_are_read_right():
    values = np.arange(24.0).reshape(2, 3, 4)
    expected = torch.from_numpy(values.copy())
    frozen = values.copy()
    frozen.flags.writeable = False
    for same in (np.asfortranarray(values), values.astype(">f8"), frozen, values[::-1][::-1],
                 values.astype(object), values.astype(np.longdouble), values.tolist(),
                 [torch.tensor(row) for row in values]):  # fmt: skip
        assert torch.equal(fw.Scenarios(same).values, expected)


def test_lists_of_tensors_keep_their_gradients():
    price = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    fw.Newsvendor([price, 3.0], 1.0).cost([[0.0, 0.0]], [[5.0, 5.0]]).sum().backward()
    assert price.grad == 5


OBJECTS = {
    "problem": [
        lambda: fw.solve(fw.Newsvendor, SCENARIOS),
        lambda: fw.solve("newsvendor", SCENARIOS),
        lambda: learner(fw.Newsvendor).fit(X, y),
        lambda: fw.regret(fw.Newsvendor, y, y),
        lambda: fw.problems.certainty_equivalent(fw.Newsvendor),
        lambda: fw.metrics.value_of_stochastic_solution(fw.Newsvendor, SCENARIOS),
        lambda: fw.evaluate_rolling(
            lambda X, y: lambda X: y[: len(X)], X, y, DATES, problem=fw.Newsvendor,
            window=10, min_train_days=20,
        ),
    ],
    "solver": [
        lambda: fw.solve(PROBLEM, SCENARIOS, solver=fw.AutoSolver),
        lambda: fw.solve(PROBLEM, SCENARIOS, solver="auto"),
        lambda: fw.solve(PROBLEM, SCENARIOS, solver=False),
        lambda: fw.solve_program(PROBLEM.program(SCENARIOS), fw.InteriorPointSolver),
        lambda: learner(solver=fw.AutoSolver).fit(X, y),
        lambda: fw.DirectLearner(PROBLEM, solver=fw.InteriorPointSolver).fit(X, y),
        lambda: fw.regret(PROBLEM, y, y, solver=fw.AutoSolver),
    ],
    "scenarios": [
        lambda: fw.solve(PROBLEM, fw.Scenarios),
        lambda: fw.solve(PROBLEM, SCENARIOS.values),
    ],
    "program": [lambda: fw.solve_program(PROBLEM)],
    "predictor": [lambda: learner(predictor=fw.NeighborPredictor).fit(X, y)],
    "network": [lambda: fw.DirectLearner(PROBLEM, fw.PointPredictor).fit(X, y)],
    "member": [lambda: fw.EnsemblePredictor(fw.PointPredictor).fit(X, y)],
    "training": [lambda: fw.PointPredictor(training=fw.Training).fit(X, y)],
    "pretraining": [lambda: fw.CombinedLearner(PROBLEM, pretraining=fw.Training).fit(X, y)],
    "encoding": [lambda: fw.PointPredictor(encoding=fw.predictors.FourierFeatures).fit(X, y)],
    "risk": [lambda: PROBLEM.with_risk(fw.CVaR)],
    "method": [lambda: fw.evaluate_rolling(fw.DecoupledLearner, X, y, DATES)],
}  # fmt: skip


@pytest.mark.parametrize(("name", "call"), [(name, c) for name in OBJECTS for c in OBJECTS[name]])
def test_classes_and_other_objects_are_told_by_argument(name, call):
    with pytest.raises(fw.InvalidInputError, match=rf"^{name} must"):
        call()


@pytest.mark.parametrize("seed", [-1, 2**32, 1.5, "0", True, np.random.default_rng(0)])
@pytest.mark.parametrize(
    "use",
    [
        lambda seed: learner().fit(X, y).decide(X, random_state=seed),
        lambda seed: fw.NeighborPredictor().fit(X, y).sample(X, 4, random_state=seed),
        lambda seed: fw.PointPredictor(random_state=seed).fit(X, y),
        lambda seed: fw.ForestPredictor(random_state=seed).fit(X, y),
        lambda seed: fw.GaussianProcessPredictor(random_state=seed).fit(X, y),
    ],
)
def test_random_states_are_checked_before_any_work(use, seed):
    with pytest.raises(fw.InvalidInputError, match="random_state must"):
        use(seed)


@pytest.mark.parametrize("level", ["0.9", None, [0.1, 0.2], float("nan"), 90, -0.1, True + 1j])
def test_levels_are_numbers(level):
    for make in (fw.CVaR, lambda level: fw.MeanCVaR(0.5, level)):
        with pytest.raises(fw.InvalidInputError, match="level must"):
            make(level)
    with pytest.raises(fw.InvalidInputError, match="weight must"):
        fw.MeanCVaR(level, 0.5)


@pytest.mark.parametrize("count", ["8", 1.5, 0, True, None])
def test_numbers_of_scenarios_are_whole(count):
    with pytest.raises(fw.InvalidInputError, match="n_scenarios must"):
        learner().fit(X, y).decide(X, n_scenarios=count)


def test_messages_about_missing_values_recommend_no_other_library():
    broken = np.where(X > 2, np.nan, X)
    assert np.isnan(broken).any()
    for bad in (broken, broken.tolist(), torch.tensor(broken)):
        with pytest.raises(fw.InvalidInputError, match=r"X must be finite.*column") as raised:
            learner().fit(bad, y)
        assert "Estimator" not in str(raised.value)
        assert "sklearn" not in str(raised.value)
    with pytest.raises(fw.InvalidInputError, match="y must be finite"):
        learner().fit(X, np.where(y > 8, np.nan, y))


def test_text_in_the_outcome_is_a_number_that_was_read_as_text():
    text = pd.Series(y[:, 0]).map("{:.2f}".format)
    for bad in (text, text.to_frame("demand"), text.to_numpy(), text.tolist()):
        with pytest.raises(fw.InvalidInputError, match=r"y must .*to_numeric") as raised:
            learner().fit(X, bad)
        assert "get_dummies" not in str(raised.value)
