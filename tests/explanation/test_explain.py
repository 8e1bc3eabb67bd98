"""Explanations against closed forms, re-solves and brute force."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import binom

import forewise as fw
from forewise.exceptions import InvalidInputError, UnfittedError
from forewise.explanation import Unavailable

N = 400
UNIFORM = (np.arange(N) + 0.5) / N * 100.0  # demand whose quantile at τ is 100 τ


def uniform(problem, scale=1.0, n_scenarios=N, **options):
    """The explanation of a decision for uniform demand."""
    X = np.zeros((N, 1))
    learner = fw.DecoupledLearner(problem, fw.EmpiricalPredictor()).fit(X, scale * UNIFORM)
    return fw.explain(learner, X[:1], n_scenarios=n_scenarios, **options)


@pytest.fixture(scope="module")
def shop():
    """Two products whose sales depend on weather, a promotion and the day."""
    random = np.random.default_rng(0)
    n = 200
    X = pd.DataFrame({
        "temperature": random.normal(15, 8, n).round(1),
        "promotion": random.random(n) < 0.2,
        "day": random.choice(["Mon", "Tue", "Sat"], n),
        "constant": 1.0,
    })  # fmt: skip
    bread = 50 + X["temperature"] + 20 * X["promotion"] + 10 * (X["day"] == "Sat")
    noise = random.normal(0, 6, (n, 2))
    y = pd.DataFrame({"bread": bread + noise[:, 0], "milk": 80 - X["temperature"] + noise[:, 1]})
    return X, y, [f"row {i}" for i in range(n)]


@pytest.fixture(scope="module")
def neighbours(shop):
    X, y, _ = shop
    problem = fw.Newsvendor(shortage=3, excess=1)
    return fw.DecoupledLearner(problem, fw.NeighborPredictor(n_neighbors=30)).fit(X, y)


def by_name(sensitivities):
    return {sensitivity.name: sensitivity for sensitivity in sensitivities}


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize(("shortage", "excess"), [(3.0, 1.0), (0.5, 2.0)])
def test_a_quantile_moves_with_its_costs_as_the_closed_form_says(shortage, excess, scale):
    why = uniform(fw.Newsvendor(shortage=shortage, excess=excess), scale)
    level = shortage / (shortage + excess)
    total = (shortage + excess) ** 2
    found = by_name(why.sensitivities)
    (name,) = why.names
    assert found["shortage"].decision[name] == pytest.approx(scale * 100 * excess / total, rel=0.05)
    slope = -scale * 100 * shortage / total
    assert found["excess"].decision[name] == pytest.approx(slope, rel=0.05)
    short = scale * 100 * (1 - level) ** 2 / 2  # expected shortage, by the envelope theorem
    assert found["shortage"].cost == pytest.approx(short, rel=0.02)
    assert found["excess"].cost == pytest.approx(scale * 100 * level**2 / 2, rel=0.02)
    assert found["shortage"].how == "re-solves"


def test_the_influence_of_a_scenario_is_the_chance_that_it_is_the_quantile():
    why = uniform(fw.Newsvendor(shortage=3, excess=1))
    # With Dirichlet weights, scenario j is the quantile at τ with this probability.
    chance = binom.pmf(np.arange(N), N - 1, 0.75)
    order = np.argsort(why.drivers.outcome[:, 0])
    share = why.drivers.share[0][order]
    assert share.sum() == pytest.approx(1)
    windows = [slice(k, k + 20) for k in range(0, N, 20)]
    for window in windows:
        assert share[window].sum() == pytest.approx(chance[window].sum(), abs=0.1)
    leading = why.drivers.outcome[why.drivers.leading(0), 0]
    assert abs(leading - 75).max() < 10
    assert why.drivers.more[0] == pytest.approx(0.25, abs=0.01)
    assert why.drivers.less[0] == pytest.approx(0.75, abs=0.01)
    # The deviation of the mean of a Dirichlet quantile: √(τ(1−τ)/N) in probability.
    assert why.decision_error["decision_0"] == pytest.approx(100 * (0.1875 / N) ** 0.5, rel=0.2)


def test_the_decision_is_that_of_the_policy_to_the_bit(shop, neighbours):
    X, _, _ = shop
    decided = neighbours.decide(X.iloc[3:6], n_scenarios=16, random_state=5).to_numpy()
    why = fw.explain(neighbours, X.iloc[3:6], n_scenarios=16, random_state=5)
    assert np.array_equal([list(one.decision.values()) for one in why], decided)
    alone = fw.explain(neighbours.policy_, X.iloc[4:5], n_scenarios=16, random_state=5)
    assert alone.to_dict() == why[1].to_dict()


def test_a_cost_curve_is_least_at_the_decision_and_has_its_costs():
    problem = fw.Newsvendor(shortage=3, excess=1)
    why = uniform(problem)
    (curve,) = why.cost_curves
    assert curve.cost.min() == pytest.approx(why.expected_cost, rel=1e-9)
    assert curve.value[curve.cost.argmin()] == curve.chosen == why.decision["decision_0"]
    for value, cost in zip(curve.value[::8], curve.cost[::8], strict=True):
        if value < 0:
            assert cost == np.inf
        else:
            own = problem.cost(np.full((N, 1), value), UNIFORM).mean()
            assert cost == pytest.approx(float(own), rel=1e-9)


def test_a_risk_is_what_the_curve_and_the_objective_are_of():
    risky = fw.Newsvendor(shortage=3, excess=1).with_risk(fw.CVaR(0.8))
    why = uniform(risky)
    (curve,) = why.cost_curves
    assert why.objective > why.expected_cost
    assert curve.cost.min() == pytest.approx(why.objective, rel=1e-6)
    assert set(by_name(why.sensitivities)) == {"shortage", "excess"}
    # Costs are homogeneous: Σ p ∂C/∂p = C.
    total = sum(s.value * s.cost for s in why.sensitivities)
    assert total == pytest.approx(why.objective, rel=1e-5)


def budgeted(budget):
    return fw.QuadraticNewsvendor(
        quadratic=0.1, linear=0, shortage_quadratic=2, shortage=3, excess_quadratic=1, excess=1,
        price=[1, 2], budget=budget,
    )  # fmt: skip


def test_the_shadow_price_of_a_budget_is_what_re_solving_says(shop):
    X, y, _ = shop
    predictor = fw.NeighborPredictor().fit(X, y)

    def at(budget):
        policy = fw.policy.ScenarioPolicy(budgeted(budget), predictor)
        return fw.explain(policy, X.iloc[:1])

    why = at(120.0)
    assert [binding.name for binding in why.constraints] == ["budget"]
    slope = (at(120.5).objective - at(119.5).objective) / 1.0
    assert why.constraints[0].shadow_price == pytest.approx(slope, rel=1e-3)
    assert by_name(why.sensitivities)["budget"].cost == pytest.approx(slope, rel=1e-3)
    assert at(1e4).constraints == []


def test_sensitivities_by_gradient_are_those_of_re_solves(shop):
    X, y, _ = shop
    predictor = fw.NeighborPredictor().fit(X, y)

    def at(shortage):
        problem = fw.QuadraticNewsvendor(1, 0, 2, [shortage, 3.0], 1, 1)
        scenarios = predictor.sample(X.iloc[:1], 64, random_state=0)
        return fw.solve(problem, scenarios).objective.item()

    policy = fw.policy.ScenarioPolicy(fw.QuadraticNewsvendor(1, 0, 2, [3.0, 3.0], 1, 1), predictor)
    found = by_name(fw.explain(policy, X.iloc[:1]).sensitivities)["shortage[bread]"]
    assert found.how == "gradient"
    assert found.cost == pytest.approx((at(3.01) - at(2.99)) / 0.02, rel=1e-4)
    assert found.decision["bread"] > 0 == found.decision["milk"]


def planned(**options):
    order = cp.Variable(2, nonneg=True, name="order", **options)
    demand, room = cp.Parameter(2, name="demand"), cp.Parameter(name="room")
    cost = 3 * cp.sum(cp.pos(demand - order)) + cp.sum(cp.pos(order - demand))
    rows = [cp.sum(order) <= room, order[0] >= 70]
    return fw.CvxpyProblem(cp.Minimize(cost), rows, decision=order, outcome=demand, given=room)


def test_given_data_and_rows_of_a_cvxpy_problem(shop):
    X, y, _ = shop
    policy = fw.policy.ScenarioPolicy(planned(), fw.NeighborPredictor(14).fit(X, y))
    why = fw.explain(policy, X.iloc[:2], given={"room": [100.0, 130.0]})
    prices = [{b.name: b.shadow_price for b in one.constraints} for one in why]
    assert set(prices[0]) == {"order[0] + order[1] ≤ 100", "order[0] ≥ 70"}
    assert "order[0] + order[1] ≤ 130" in prices[1]
    (room,) = why[0].sensitivities
    assert (room.name, room.kind, room.how) == ("room", "given", "gradient")
    assert room.cost == pytest.approx(prices[0]["order[0] + order[1] ≤ 100"], rel=1e-3)
    # All of one more unit of room goes to the order that is short of it.
    assert room.decision["order[1]"] == pytest.approx(1, rel=1e-3)
    assert prices[0]["order[0] ≥ 70"] > 0 > room.cost


def test_the_sign_of_a_constraint_that_is_turned_over():
    random = np.random.default_rng(0)
    returns = random.normal([1.0, 2.0], 3.0, (60, 2))
    problem = fw.Portfolio([1.0, 2.0], 1.5, budget=1.0, upper=2.0)
    X = np.zeros((60, 1))
    learner = fw.DecoupledLearner(problem, fw.EmpiricalPredictor()).fit(X, returns)
    why = fw.explain(learner, X[:1])
    prices = {binding.name: binding.shadow_price for binding in why.constraints}
    if "minimum return" in prices:
        assert prices["minimum return"] >= -1e-9
    found = by_name(why.sensitivities)
    assert found["budget"].cost == pytest.approx(prices["budget"], abs=1e-5)
    (curve, _) = why.cost_curves
    assert np.isinf(np.delete(curve.cost, 20)).all()  # nothing moves alone in a budget


def test_integers_have_no_derivatives_and_say_so():
    boxes, demand = cp.Variable(name="boxes", integer=True), cp.Parameter(name="demand")
    cost = 3 * cp.pos(demand - 10 * boxes) + cp.pos(10 * boxes - demand)
    problem = fw.CvxpyProblem(cp.Minimize(cost), [boxes >= 0], decision=boxes, outcome=demand)
    why = uniform(problem, n_scenarios=20)
    for part in (why.drivers.share, why.constraints, why.sensitivities, why.neighbours):
        assert isinstance(part, Unavailable)
    assert "integers" in why.drivers.share.reason
    curve = why.cost_curves[0]
    assert np.array_equal(curve.value, curve.value.round())
    assert curve.cost.min() == pytest.approx(why.expected_cost)


def test_neighbours_are_those_of_brute_force(shop, neighbours):
    X, y, labels = shop
    why = fw.explain(neighbours, X.iloc[10:11], past=(X, y, labels))
    assert why.neighbours[0].label == "row 10"
    assert why.neighbours[0].distance == 0
    encoded = neighbours.policy_.predictor.check_contexts(X)
    std = encoded.std(0)
    used = std > 0
    every = np.sqrt((((encoded - encoded[10])[:, used] / std[used]) ** 2).mean(1))
    nearest = np.argsort(every, kind="stable")[:5]
    assert [row.label for row in why.neighbours] == [labels[i] for i in nearest]
    decided = pd.DataFrame([why.decision] * 5, index=X.index[nearest])
    cost = neighbours.problem.cost(decided, y.iloc[nearest])
    assert [row.cost for row in why.neighbours] == pytest.approx(cost.tolist())
    assert why.neighbours[1].outcome == y.iloc[nearest[1]].to_dict()


def test_rows_in_another_order_explain_the_same(shop, neighbours):
    X, y, labels = shop
    order = np.random.default_rng(1).permutation(len(X))
    other = X.iloc[order], y.iloc[order], [labels[i] for i in order]
    one, two = (fw.explain(neighbours, X.iloc[7:8], past=past) for past in ((X, y, labels), other))
    assert one.to_dict()["changes"] == two.to_dict()["changes"]
    distances = [[row.distance for row in why.neighbours] for why in (one, two)]
    assert distances[0] == pytest.approx(distances[1])
    assert [row.label for row in one.neighbours] == [row.label for row in two.neighbours]


def test_a_change_moves_the_decision_and_no_nearer_one_does(shop, neighbours):
    X, y, labels = shop
    row = X.iloc[[0]]
    why = fw.explain(neighbours, row, past=(X, y, labels))
    assert {"temperature"} <= {change.column for change in why.changes} <= set(X.columns)
    assert [c.distance for c in why.changes] == sorted(c.distance for c in why.changes)
    for change in why.changes:
        decided = neighbours.decide(row.assign(**{change.column: change.then})).to_numpy()[0]
        assert list(change.decision.values()) == decided.tolist()
        today = np.array(list(why.decision.values()))
        assert (abs(decided - today) > 0.05 * today).any()
        if change.column == "temperature":
            assert change.distance == pytest.approx(
                abs(
                    np.mean(X["temperature"] < change.then) - np.mean(X["temperature"] < change.now)
                ),
                abs=0.02,
            )


def test_the_two_parts_of_the_variance_are_the_predictors(shop):
    X, y, _ = shop
    numbers = X[["temperature"]]
    predictor = fw.GaussianProcessPredictor(random_state=0).fit(numbers, y)
    policy = fw.policy.ScenarioPolicy(fw.Newsvendor(3, 1), predictor)
    why = fw.explain(policy, numbers.iloc[:1])
    for k, parts in enumerate(zip(*predictor.epistemic_aleatoric(numbers.iloc[:1]), strict=True)):
        epistemic, aleatoric = parts[0], parts[1]
        assert k == 0
        for i, found in enumerate(why.uncertainty):
            assert (found.epistemic, found.aleatoric) == (epistemic[i], aleatoric[i])
            assert 0 < found.epistemic_share < 0.5


def test_a_union_disagrees_by_the_variance_between_its_parts(shop):
    X, y, _ = shop
    parts = [fw.NeighborPredictor().fit(X, y), fw.EmpiricalPredictor().fit(X, y)]
    union = fw.predictors.StackedPredictor.from_fitted(parts, [0.25, 0.75])
    why = fw.explain(fw.policy.ScenarioPolicy(fw.Newsvendor(3, 1), union), X.iloc[:1])
    drawn = [part.sample(X.iloc[:1], 256, random_state=0) for part in parts]
    means = [(own.weights[0] @ own.values[0]) for own in drawn]
    between = (0.25 * 0.75 * (means[0] - means[1]) ** 2).tolist()
    assert [part.epistemic for part in why.uncertainty] == pytest.approx(between, rel=0.1)
    whole = union.sample(X.iloc[:1], 2000, random_state=0)
    middle = whole.weights[0] @ whole.values[0]
    total = whole.weights[0] @ (whole.values[0] - middle) ** 2
    found = [part.epistemic + part.aleatoric for part in why.uncertainty]
    assert found == pytest.approx(total.tolist(), rel=0.1)


class Tags(HTMLParser):
    """Checks that tags close in order, and collects text."""

    def __init__(self):
        super().__init__()
        self.open, self.text = [], []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def test_names_are_escaped_and_everything_is_json(shop):
    X, y, _ = shop
    evil = "<script>alert('&')</script>"
    X, y = X.rename(columns={"temperature": evil}), y.rename(columns={"bread": evil})
    learner = fw.DecoupledLearner(fw.Newsvendor(3, 1), fw.NeighborPredictor()).fit(X, y)
    why = fw.explain(learner, X.iloc[:1], past=(X, y, [evil] * len(X)))
    page = why.html()
    parser = Tags()
    parser.feed(page)
    parser.close()
    assert parser.open == []
    assert "<script" not in page
    assert evil in "".join(parser.text)
    assert why._repr_html_() == page
    plain = json.loads(json.dumps(why.to_dict(), allow_nan=False))
    assert plain["decision"][evil] == why.decision[evil]
    for title in ("Decision", "Most similar past rows", "What would change it"):
        assert title in why.text()
    assert evil in repr(why)


def test_the_figure_has_the_numbers_of_the_explanation(shop, neighbours):
    X, _, _ = shop
    why = fw.explain(neighbours, X.iloc[:1])
    axes = why.plot().axes
    assert len(axes) == 4
    line = axes[0].lines[0]
    known = np.isfinite(why.cost_curves[0].cost)
    assert np.array_equal(line.get_ydata(), why.cost_curves[0].cost[known])
    heights = sum(patch.get_height() for patch in axes[1].patches if patch.get_height() <= 1)
    assert heights == pytest.approx(1)


def test_many_decisions_are_explained_by_the_largest():
    random = np.random.default_rng(0)
    y = random.gamma(5, 2, (50, 20)) * np.arange(1, 21)
    X = np.zeros((50, 1))
    learner = fw.DecoupledLearner(fw.Newsvendor(3, 1), fw.EmpiricalPredictor()).fit(X, y)
    why = fw.explain(learner, X[:1])
    assert len(why.decision) == 20
    assert len(why.names) == 12
    assert "8 smaller decisions" in why.text()
    smallest = min(why.decision[name] for name in why.names)
    assert all(v <= smallest for n, v in why.decision.items() if n not in why.names)


def test_one_scenario_has_an_explanation():
    why = uniform(fw.Newsvendor(3, 1), n_scenarios=1)
    assert why.drivers.weight.tolist() == [1]
    assert why.decision_error["decision_0"] == 0
    assert why.text()


@pytest.mark.parametrize(
    ("past", "message"),
    [
        ("yesterday", "past must be"),
        ((np.zeros((3, 1)), np.zeros(2)), "as many rows"),
        ((np.zeros((3, 1)), np.zeros((3, 2))), "outcome"),
        ((np.zeros((3, 1)), np.zeros(3), ["a"]), "as many rows"),
    ],
)
def test_past_rows_that_do_not_fit(past, message):
    with pytest.raises(InvalidInputError, match=message):
        uniform(fw.Newsvendor(3, 1), past=past)


def test_what_has_no_scenarios_is_refused(shop):
    with pytest.raises(UnfittedError):
        fw.explain(fw.DecoupledLearner(fw.Newsvendor(3, 1)), np.zeros((1, 1)))
    with pytest.raises(InvalidInputError, match="policy must be"):
        fw.explain(torch.nn.Linear(1, 1), np.zeros((1, 1)))
    direct = fw.policy.DirectPolicy(fw.Newsvendor(3, 1), fw.PointPredictor(), 1)
    with pytest.raises(InvalidInputError, match="direct rule"):
        fw.explain(direct, np.zeros((1, 1)))


def test_variances_of_a_relative_predictor_are_in_the_units_of_the_outcome(shop):
    X, y, _ = shop
    numbers = X[["temperature"]].assign(level=np.log(100.0))
    inner = fw.GaussianProcessPredictor(random_state=0)
    predictor = fw.RelativePredictor(inner, [1]).fit(numbers, y)
    policy = fw.policy.ScenarioPolicy(fw.Newsvendor(3, 1), predictor)
    why = fw.explain(policy, numbers.iloc[:1])
    plain = predictor.part_.epistemic_aleatoric(numbers.iloc[:1])
    assert [p.epistemic for p in why.uncertainty] == pytest.approx((1e4 * plain[0][0]).tolist())
    assert [p.aleatoric for p in why.uncertainty] == pytest.approx((1e4 * plain[1][0]).tolist())
