"""Regrets, the values of information and the optimality gap, against brute force and textbooks."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest
import torch
from scipy import stats

import forewise as fw
from forewise import metrics


def draw(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def separable(n=3):
    return fw.QuadraticNewsvendor(
        quadratic=1 + draw(1, n).abs(), linear=draw(2, n), shortage_quadratic=draw(3, n).abs(),
        shortage=10 + 5 * draw(4, n).abs(), excess_quadratic=draw(5, n).abs(),
        excess=draw(6, n).abs(), price=1 + draw(7, n).abs(), budget=12.0,
    )  # fmt: skip


def coupled(n=3):
    """Needs the interior point."""
    A = draw(1, n, n)
    return fw.QuadraticNewsvendor(
        quadratic=A @ A.T + torch.eye(n), linear=draw(2, n), shortage_quadratic=draw(3, n).abs(),
        shortage=10 + 5 * draw(4, n).abs(), excess_quadratic=draw(5, n).abs(),
        excess=draw(6, n).abs(), price=1 + draw(7, n).abs(), budget=12.0,
    )  # fmt: skip


PROBLEMS = {
    "newsvendor": fw.Newsvendor([3.0, 1.0, 2.0], [1.0, 4.0, 2.0]),
    "separable": separable(),
    "coupled": coupled(),
    "portfolio": fw.Portfolio([0.1, 0.2, 0.15], 0.1, budget=1.0),
}
every_problem = pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS.keys())


def outcomes(problem, seed, *shape):
    """Mostly positive demand; returns that often leave no way not to lose."""
    return (-2 if isinstance(problem, fw.Portfolio) else 4) + 3 * draw(seed, *shape)


def feasible_decision(problem, n_contexts, seed=11):
    """Decisions that meet the constraints and are good for other outcomes than those tested."""
    return fw.solve(problem, fw.Scenarios(outcomes(problem, seed, n_contexts, 3, 3))).decision


def some_scenarios(problem, n_contexts, n_scenarios=6, seed=8):
    weights = draw(seed + 1, n_contexts, n_scenarios).abs()
    return fw.Scenarios(outcomes(problem, seed, n_contexts, n_scenarios, 3), weights)


def cost_table(problem, decision, scenarios):
    """Cost of every scenario, looped: (n_contexts, n_scenarios)."""
    columns = [problem.cost(decision, scenarios.values[:, j]) for j in range(scenarios.n_scenarios)]
    return torch.stack(columns, dim=1)


def split_in_half(scenarios):
    """The same distribution, with every scenario written twice and in another order."""
    values = torch.cat([scenarios.values, scenarios.values.flip(1)], dim=1)
    return fw.Scenarios(values, torch.cat([scenarios.weights, scenarios.weights.flip(1)], dim=1))


# Regret


@every_problem
def test_regrets_are_costs_beyond_the_reference_optimum(problem):
    outcome, decision = outcomes(problem, 9, 8, 3), feasible_decision(problem, 8)
    reference = fw.solve(problem, fw.Scenarios(outcome[:, None]), fw.ReferenceSolver())
    expected = problem.cost(decision, outcome) - reference.objective
    found = metrics.regrets(problem, decision, outcome)
    assert torch.allclose(found, expected, atol=1e-6)
    assert float(found.min()) >= -1e-7
    assert float(found.max()) > 1e-2
    assert metrics.regret(problem, decision, outcome) == pytest.approx(float(expected.mean()))


@every_problem
def test_who_knew_the_outcome_regrets_nothing(problem):
    outcome = outcomes(problem, 9, 8, 3)
    informed = fw.solve(problem, fw.Scenarios(outcome[:, None])).decision
    assert metrics.regret(problem, informed, outcome) == pytest.approx(0.0, abs=1e-7)


@pytest.mark.parametrize("sign", ["any", "negative", "positive"])
def test_one_asset_is_the_best_portfolio_for_known_returns(sign):
    """Without a budget, an asset that does not fall costs nothing; else the one that falls least.

    Optimal holdings are an unbounded face here, which the solver must still call optimal.
    """
    expected = torch.tensor([0.05, 0.1, 0.2, 0.12], dtype=torch.float64)
    returns = {"any": draw(1, 300, 4), "negative": -draw(1, 300, 4).abs(),
               "positive": draw(1, 300, 4).abs()}[sign]  # fmt: skip
    problem = fw.Portfolio(expected, 0.1)
    nothing_lost = (returns >= 0).any(1)
    least = torch.where(nothing_lost, 0.0, (-returns * 0.1 / expected).amin(1))
    decision = draw(2, 300, 4).abs() + 1
    found = metrics.regrets(problem, decision, returns)
    assert torch.allclose(found, problem.cost(decision, returns) - least, atol=1e-9)


def test_relative_regret_is_a_share_of_the_optimal_cost():
    problem = separable()
    outcome, decision = outcomes(problem, 9, 8, 3), feasible_decision(separable(), 8)
    least = fw.solve(problem, fw.Scenarios(outcome[:, None]), fw.ReferenceSolver()).objective
    expected = (problem.cost(decision, outcome) - least).sum() / least.abs().sum()
    found = metrics.relative_regret(problem, decision, outcome)
    assert found == pytest.approx(float(expected), rel=1e-6)


@pytest.mark.parametrize(
    "problem",
    [
        PROBLEMS["newsvendor"],
        fw.Portfolio([0.1, 0.2, 0.15], 0.1),
        # Its optimal cost is not zero, but too small a part of the decisions' cost to be trusted.
        fw.QuadraticNewsvendor([1e-12] * 3, 0.0, 0.0, 3.0, 0.0, 1.0),
    ],
)
def test_relative_regret_needs_something_to_be_relative_to(problem):
    outcome = draw(9, 5, 3).abs()
    decision = torch.ones(5, 3, dtype=torch.float64)
    with pytest.raises(fw.InvalidInputError, match=r"optimal costs other than zero.*use regret"):
        metrics.relative_regret(problem, decision, outcome)


# Fair and expected regret


@every_problem
def test_expected_regret_is_the_looped_difference_to_the_reference(problem):
    scenarios, decision = some_scenarios(problem, 5), feasible_decision(problem, 5)
    best = fw.solve(problem, scenarios, fw.ReferenceSolver())
    costs = (scenarios.weights * cost_table(problem, decision, scenarios)).sum(1)
    found = metrics.expected_regrets(problem, decision, scenarios)
    assert torch.allclose(found, costs - best.objective, atol=1e-6)
    assert float(found.min()) >= -1e-7
    assert float(found.max()) > 1e-2
    assert metrics.expected_regret(problem, decision, scenarios) == pytest.approx(
        float(found.mean())
    )


@every_problem
def test_expected_regret_is_the_mean_of_fair_regret_over_outcomes(problem):
    scenarios, decision = some_scenarios(problem, 5), feasible_decision(problem, 5)
    fair = [
        metrics.fair_regrets(problem, decision, scenarios.values[:, j], scenarios) for j in range(6)
    ]
    mean = (scenarios.weights * torch.stack(fair, dim=1)).sum(1)
    assert torch.allclose(metrics.expected_regrets(problem, decision, scenarios), mean, atol=1e-9)


@every_problem
def test_the_oracle_may_be_computed_once(problem):
    scenarios, decision = some_scenarios(problem, 5), feasible_decision(problem, 5)
    outcome = outcomes(problem, 3, 5, 3)
    oracle = metrics.oracle_decision(problem, scenarios)
    assert torch.equal(
        metrics.expected_regrets(problem, decision, scenarios, oracle=oracle.numpy()),
        metrics.expected_regrets(problem, decision, scenarios),
    )
    solved = metrics.fair_regret(problem, decision, outcome, scenarios)
    assert metrics.fair_regret(problem, decision, outcome, oracle=oracle) == solved
    assert metrics.expected_regret(problem, oracle, scenarios) == pytest.approx(0.0, abs=1e-12)


def test_the_given_oracle_is_the_one_that_is_used():
    problem = fw.Newsvendor(1.0, 1.0)
    found = metrics.fair_regrets(problem, [[3.0]], [[5.0]], fw.Scenarios([[[9.0]]]), oracle=[[4.0]])
    assert found.tolist() == [1.0]


def test_fair_regret_by_hand():
    """Demand 2 or 6, as likely; shortage dear: the oracle orders 6. Ordering 4 is luckier at 2."""
    problem, scenarios = fw.Newsvendor(3.0, 1.0), fw.Scenarios([[[2.0], [6.0]], [[2.0], [6.0]]])
    found = metrics.fair_regrets(problem, [[4.0], [4.0]], [[2.0], [6.0]], scenarios)
    assert found.tolist() == [2.0 - 4.0, 6.0 - 0.0]
    assert metrics.expected_regrets(problem, [[4.0], [6.0]], scenarios).tolist() == [2.0, 0.0]


# Perfect information and the stochastic solution


@every_problem
def test_wait_and_see_costs_least_and_the_mean_outcome_most(problem):
    scenarios = some_scenarios(problem, 5)
    reference = fw.ReferenceSolver()
    singles = [
        fw.solve(problem, fw.Scenarios(scenarios.values[:, j : j + 1]), reference).objective
        for j in range(6)
    ]
    wait_and_see = (scenarios.weights * torch.stack(singles, dim=1)).sum(1)
    recourse = fw.solve(problem, scenarios, reference).objective
    mean = (scenarios.weights.unsqueeze(-1) * scenarios.values).sum(1, keepdim=True)
    for_the_mean = fw.solve(problem, fw.Scenarios(mean)).decision
    eev = (scenarios.weights * cost_table(problem, for_the_mean, scenarios)).sum(1)
    evpi = metrics.expected_value_of_perfect_information(problem, scenarios)
    vss = metrics.value_of_stochastic_solution(problem, scenarios)
    assert torch.allclose(evpi, recourse - wait_and_see, atol=1e-6)
    assert torch.allclose(vss, eev - recourse, atol=1e-6)
    assert min(evpi.min(), vss.min()) >= -1e-7
    # Not in vain: both are worth something here.
    assert min(evpi.max(), vss.max()) > 1e-3


@pytest.mark.parametrize(
    ("demand", "recourse", "for_the_mean"),
    [
        # Uniform on [10, 30]: width · s e / (2 (s + e)), and width · (s + e) / 8 at the mean.
        (stats.uniform(10, 20), 20 * 3 * 1 / (2 * 4), 20 * 4 / 8),
        # Normal: (s + e) σ φ(Φ⁻¹(s / (s + e))), and (s + e) σ φ(0) at the mean.
        (
            stats.norm(100, 5),
            4 * 5 * stats.norm.pdf(stats.norm.ppf(0.75)),
            4 * 5 * stats.norm.pdf(0),
        ),
    ],
    ids=["uniform", "normal"],
)
def test_newsvendor_has_its_textbook_values(demand, recourse, for_the_mean):
    """Knowing demand, the newsvendor pays nothing: EVPI is the whole cost."""
    levels = (np.arange(20_000) + 0.5) / 20_000
    scenarios = fw.Scenarios(demand.ppf(levels)[None, :, None])
    problem = fw.Newsvendor(shortage=3.0, excess=1.0)
    evpi = metrics.expected_value_of_perfect_information(problem, scenarios)
    vss = metrics.value_of_stochastic_solution(problem, scenarios)
    assert evpi.item() == pytest.approx(recourse, rel=1e-3)
    assert vss.item() == pytest.approx(for_the_mean - recourse, rel=1e-3)


@every_problem
def test_without_uncertainty_there_is_nothing_to_know(problem):
    same = fw.Scenarios(outcomes(problem, 8, 4, 1, 3).expand(4, 5, 3))
    for value in (
        metrics.expected_value_of_perfect_information,
        metrics.value_of_stochastic_solution,
    ):
        assert torch.allclose(value(problem, same), torch.zeros(4).double(), atol=1e-7)


# What holds for all of them


@every_problem
def test_splitting_scenarios_changes_nothing(problem):
    scenarios, decision = some_scenarios(problem, 4), feasible_decision(problem, 4)
    halves = split_in_half(scenarios)
    for measure in (
        lambda s: metrics.expected_regrets(problem, decision, s),
        lambda s: metrics.expected_value_of_perfect_information(problem, s),
        lambda s: metrics.value_of_stochastic_solution(problem, s),
    ):
        assert torch.allclose(measure(scenarios), measure(halves), atol=1e-6)


def test_means_are_the_means_of_all_contexts():
    problem, scenarios = separable(), some_scenarios(separable(), 5)
    decision, outcome = feasible_decision(problem, 5), outcomes(problem, 3, 5, 3)
    for mean, every, arguments in (
        (metrics.regret, metrics.regrets, (outcome,)),
        (metrics.fair_regret, metrics.fair_regrets, (outcome, scenarios)),
        (metrics.expected_regret, metrics.expected_regrets, (scenarios,)),
    ):
        found = mean(problem, decision, *arguments, on_infeasible="infinite")
        assert found == every(problem, decision, *arguments).mean().item()
        assert isinstance(found, float)
        assert pickle.loads(pickle.dumps(mean)) is mean
        assert list(inspect.signature(mean).parameters) == list(inspect.signature(every).parameters)


def test_scenarios_of_weight_zero_do_not_matter():
    problem, decision = separable(), feasible_decision(separable(), 4)
    scenarios = some_scenarios(problem, 4)
    oracle = metrics.oracle_decision(problem, scenarios)

    def padded(value):
        junk = torch.full((4, 1, 3), value, dtype=torch.float64)
        values = torch.cat([scenarios.values, junk], dim=1)
        weights = torch.cat([scenarios.weights, torch.zeros(4, 1).double()], dim=1)
        return fw.Scenarios(values, weights)

    for value in (torch.nan, torch.inf, -1e300):  # where nothing is solved
        found = metrics.expected_regrets(problem, decision, padded(value), oracle=oracle)
        expected = metrics.expected_regrets(problem, decision, scenarios, oracle=oracle)
        assert torch.allclose(found, expected, rtol=1e-12)
    for measure in (
        lambda s: metrics.expected_value_of_perfect_information(problem, s),
        lambda s: metrics.value_of_stochastic_solution(problem, s),
        lambda s: metrics.optimality_gap(problem, decision, [s, s]).estimate,
    ):
        assert torch.allclose(measure(padded(-500.0)), measure(scenarios), atol=1e-6)


@pytest.mark.parametrize("name", ["newsvendor", "separable"])
def test_large_tables_give_what_their_rows_give(name):
    """4,100 contexts do not fit into one chunk."""
    problem, n, last = PROBLEMS[name], 4100, slice(4090, 4100)
    scenarios, decision = some_scenarios(problem, n, 3), feasible_decision(problem, n)
    outcome = outcomes(problem, 3, n, 3)

    def measured(rows):
        z, y, s = decision[rows], outcome[rows], scenarios[rows]
        return torch.stack([
            metrics.regrets(problem, z, y),
            metrics.fair_regrets(problem, z, y, s),
            metrics.expected_regrets(problem, z, s),
            metrics.expected_value_of_perfect_information(problem, s),
            metrics.value_of_stochastic_solution(problem, s),
        ])  # fmt: skip

    assert torch.allclose(measured(slice(None))[:, last], measured(last), atol=1e-9)


def test_a_failed_context_keeps_its_number():
    values = 4 + draw(8, 4100, 2, 3)
    values[4097, 1, 0] = torch.nan
    scenarios = fw.Scenarios(values)
    for measure in (metrics.oracle_decision, metrics.expected_value_of_perfect_information):
        with pytest.raises(fw.SolveError, match=r"context 4097 is invalid .*another solver"):
            measure(separable(), scenarios)


def test_many_failed_contexts_are_counted():
    too_demanding = fw.Portfolio([0.1, 0.2], 9.0, budget=1.0)
    with pytest.raises(fw.SolveError, match=r"context 4 is infeasible \(.*; and 2 more\. Leave"):
        metrics.oracle_decision(too_demanding, fw.Scenarios([[[1.0, 2.0]]] * 7))


@every_problem
def test_results_are_constants_in_double_precision(problem):
    single = fw.Scenarios(some_scenarios(problem, 4).values.float().requires_grad_())
    double = fw.Scenarios(single.values.detach().double())
    decision = feasible_decision(problem, 4).requires_grad_()
    for measure in (
        lambda s: metrics.oracle_decision(problem, s),
        lambda s: metrics.regrets(problem, decision, s.values[:, 0]),
        lambda s: metrics.fair_regrets(problem, decision, s.values[:, 0], s),
        lambda s: metrics.expected_regrets(problem, decision, s),
        lambda s: metrics.expected_value_of_perfect_information(problem, s),
        lambda s: metrics.value_of_stochastic_solution(problem, s),
        lambda s: metrics.optimality_gap(problem, decision, [s, s]).upper,
    ):
        found = measure(single)
        assert found.dtype == torch.float64
        assert not found.requires_grad
        assert torch.equal(found, measure(double))


# The optimality gap


def normal_newsvendor_cost(order, mean, std, shortage, excess):
    """Expected cost of an order when demand is normal."""
    k = (order - mean) / std
    loss = stats.norm.pdf(k) - k * stats.norm.sf(k)
    return std * (excess * k + (shortage + excess) * loss)


def gap_batches(seed, n_batches, n_contexts, n_scenarios):
    for k in range(n_batches):
        yield fw.Scenarios(100 + 15 * draw(1000 * seed + k, n_contexts, n_scenarios, 1))


def test_gap_bound_covers_the_true_gap_as_often_as_it_says():
    """Every context is one trial of the same estimate."""
    problem, order, trials = fw.Newsvendor(3.0, 1.0), 95.0, 1500
    best = stats.norm.ppf(0.75, 100, 15)
    truth = normal_newsvendor_cost(order, 100, 15, 3, 1) - normal_newsvendor_cost(
        best, 100, 15, 3, 1
    )
    decision = np.full((trials, 1), order)
    gap = metrics.optimality_gap(problem, decision, gap_batches(1, 8, trials, 300), level=0.8)
    assert gap.n_batches == 8
    assert gap.estimate.mean().item() == pytest.approx(truth, rel=0.03)
    # Three standard errors of a share of 0.8 are 0.031; the bound may only err to the safe side.
    assert 0.77 <= (gap.upper >= truth).double().mean().item() <= 0.85
    some = (batch[:100] for batch in gap_batches(1, 8, trials, 300))
    wider = metrics.optimality_gap(problem, decision[:100], some, level=0.99)
    assert (wider.upper > gap.upper[:100]).all()
    assert torch.allclose(wider.estimate, gap.estimate[:100])


def test_gap_of_the_true_optimum_vanishes_as_batches_grow():
    problem, best = fw.Newsvendor(3.0, 1.0), [[stats.norm.ppf(0.75, 100, 15)]]
    uppers = [
        metrics.optimality_gap(problem, best, gap_batches(2, 5, 1, size)).upper.item()
        for size in (20, 20_000)
    ]
    assert 0 <= uppers[1] < 0.01 < uppers[0]


def test_gap_by_hand():
    """Batches whose gaps are 1 and 3: mean 2, standard error 1."""
    problem = fw.Newsvendor(1.0, 1.0)
    batches = [fw.Scenarios([[[4.0], [4.0]]]), fw.Scenarios([[[8.0], [8.0]]])]
    gap = metrics.optimality_gap(problem, [[5.0]], batches, level=0.9)
    assert gap.estimate.tolist() == [2.0]
    assert gap.upper.item() == pytest.approx(2 + stats.t.ppf(0.9, df=1))


# What they say of bad input


ONE = fw.Scenarios(np.ones((2, 3, 3)))
GOOD = np.ones((2, 3))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda p: metrics.regrets(p, GOOD, np.ones((3, 1, 2))),
            r"outcome must have .*\(3, 1, 2\)",
        ),
        (lambda p: metrics.regret(p, np.ones((0, 3)), np.ones((0, 3))), "both at least 1"),
        (lambda p: metrics.regrets(p, np.ones((2, 4)), GOOD), r"decision .*\(2, 3\).*\(2, 4\)"),
        (lambda p: metrics.regrets(p, GOOD, GOOD * np.nan), "outcome must be finite"),
        (lambda p: metrics.regrets(p, GOOD * np.inf, GOOD), "decision must be finite"),
        (lambda p: metrics.regrets(p, np.ones((2, 2)), np.ones((2, 2))), "must have 3 outcome"),
        (lambda p: metrics.regrets(p, "ab", GOOD), "decision must be numbers"),
        (lambda p: metrics.fair_regrets(p, GOOD, GOOD), "both are missing.*use regrets"),
        (lambda p: metrics.fair_regrets(p, GOOD, GOOD, GOOD), "true_scenarios must be a forewise"),
        (
            lambda p: metrics.fair_regrets(p, GOOD[:1], GOOD[:1], ONE),
            r"outcome .*scenarios .*\(1, 3\)",
        ),
        (lambda p: metrics.fair_regrets(p, GOOD, GOOD, oracle=GOOD[:1]), "oracle must have shape"),
        (lambda p: metrics.expected_regrets(p, GOOD, GOOD), "true_scenarios .*ndarray: wrap"),
        (lambda p: metrics.expected_regrets(p, GOOD[:1], ONE), "decision must have shape"),
        (lambda p: metrics.expected_regrets(p, GOOD, ONE, oracle=[[1.0]]), "oracle must have"),
        (lambda p: metrics.oracle_decision(p, [1.0]), "true_scenarios must be .*list: wrap"),
        (lambda p: metrics.value_of_stochastic_solution(p, GOOD), "scenarios must be a forewise"),
        (
            lambda p: metrics.expected_value_of_perfect_information(p, GOOD),
            "scenarios must be a forewise",
        ),
        (lambda p: metrics.optimality_gap(p, GOOD, ONE), "iterable .*Scenarios: pass a list"),
        (lambda p: metrics.optimality_gap(p, GOOD, 3), "iterable .*is a int"),
        (lambda p: metrics.optimality_gap(p, GOOD, [ONE]), "at least 2 batches, but has 1"),
        (lambda p: metrics.optimality_gap(p, GOOD, [ONE, GOOD]), r"batches\[1\] must be a forew"),
        (lambda p: metrics.optimality_gap(p, GOOD, [ONE, ONE[:1]]), r"\[1\] .*2 context.* has 1"),
        (lambda p: metrics.optimality_gap(p, GOOD[:, :2], [ONE, ONE]), "decision must have shape"),
        (lambda p: metrics.optimality_gap(p, GOOD, [ONE, ONE], 95), "level .* is 95: 95 % is 0.95"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(fw.InvalidInputError, match=message):
        call(PROBLEMS["newsvendor"])
