"""One fit: its rows, and that nothing is scored that should not be."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace

import numpy as np
import pytest

import forewise as fw
from forewise.predictors.networks.network import Layout
from forewise_lab.datasets.paper import paper_split
from forewise_lab.experiments import fits
from forewise_lab.experiments.fits import all_fits, make_evaluation
from forewise_lab.experiments.kinds import Solvers
from forewise_lab.experiments.methods import Task, _learner, _translated, fit_rule
from forewise_lab.experiments.rows import KEY, compute, key_of
from tests.lab.experiments.tiny import TEXT, tiny_settings


@pytest.fixture
def settings(tmp_path):
    return tiny_settings(tmp_path)


def fit_of(settings, method, experiment="all"):
    return all_fits(settings, [experiment], [method], [3])[0]


def values(result, m=8):
    return {row["metric"]: row["value"] for row in result.rows if row["m"] == m}


def test_rows_are_those_that_were_announced(settings):
    for fit in all_fits(settings, ["small", "all"], None, [0]):
        result = compute(fit)
        assert result.error is None
        assert {key_of(row) for row in result.rows} == set(fit.row_keys())
        assert all(np.isfinite(row["value"]) for row in result.rows)
        assert all(row["seconds"] >= 0 and row["peak_memory_mib"] > 10 for row in result.rows)


def test_figures_are_those_of_the_public_functions(settings):
    """A fit by hand, with forewise's own names only."""
    found = values(compute(fit_of(settings, "bnn")))
    split = paper_split("nv1", 3, n_train=30)
    validation, test = split.validation[:20], split.test[:15]
    problem = fw.datasets.nv_problem()
    n_weights = Layout((1, 4, 4, 2)).n_weights
    predictor = fw.predictors.MeanFieldPredictor(
        hidden_sizes=(4, 4),
        n_scenarios=2,
        kl_weight=1.0 * 30 / (2 * n_weights * 2),
        prior_std=1.3,
        training=fw.Training(
            epochs=2,
            batch_size=16,
            learning_rate=0.001,
            schedule=fw.predictors.ExponentialSchedule(0.99),
        ),
        random_state=3,
    )
    learner = fw.DecoupledLearner(problem, predictor)
    learner.fit(split.train.X, split.train.y, validation.X, validation.y)
    decision = learner.decide(test.X, 8, random_state=3)
    scenarios = learner.policy_.predictor.sample(test.X, 8, random_state=3)
    true = test.true_scenarios(50, np.random.default_rng([3, 50]))
    few = test.true_scenarios(8, np.random.default_rng([3, 8]))
    expected = {
        "R": fw.regret(problem, decision, test.y),
        "FR": fw.fair_regret(problem, decision, test.y, true),
        "EFR": fw.metrics.expected_regret(problem, decision, true),
        "FR32": fw.fair_regret(problem, decision, test.y, few),
        "cost": problem.cost(decision, test.y).mean().item(),
        "CRPS": fw.metrics.crps(scenarios, test.y).mean().item(),
        "coverage90": fw.metrics.interval_coverage(scenarios, test.y, 0.9).mean().item(),
    }
    assert found == pytest.approx(expected, rel=1e-12)


def test_the_same_fit_has_the_same_values(settings):
    for method in ("bnn", "combined", "direct", "truth"):
        fit = fit_of(settings, method)
        assert values(compute(fit)) == values(compute(fit))


def spelled_out(tmp_path, written):
    """The predictor of a method with such settings; M_train is 2, the seed 3."""
    settings = tiny_settings(tmp_path, TEXT.replace('kind = "neighbor", n_neighbors = 5', written))
    fit = fit_of(settings, "knn", "small")
    split = make_evaluation(fit.setting).split
    problem = fw.datasets.nv_problem()
    task = Task(problem, split.train, split.validation, split.test, 2, 3, Solvers())
    return _learner(fit.method, task).predictor


def test_members_of_an_ensemble_have_settings_of_their_own(tmp_path):
    written = 'kind = "ensemble", n_members = 3, member = { kind = "gaussian", n_factors = 2 }'
    predictor = spelled_out(tmp_path, written)
    assert predictor.n_members == 3
    assert predictor.random_state == 3
    assert predictor.member.n_factors == 2
    assert predictor.member.hidden_sizes == (4, 4)
    assert predictor.member.training.epochs == 2


def test_members_may_be_bayesian_with_an_encoding_and_a_fallback(tmp_path):
    encoding = 'encoding = { kind = "periodic", n_frequencies = 3 }, off_support = { reach = 2.0 }'
    written = f'kind = "ensemble", member = {{ kind = "bayesian", kl_weight = 0.5, {encoding} }}'
    member = spelled_out(tmp_path, written).member
    assert (member.kl_weight, member.n_scenarios) == (0.5, 2)
    assert member.encoding == fw.predictors.FourierFeatures(n_frequencies=3)
    assert member.off_support == fw.predictors.OffSupportFallback(reach=2.0)


def test_without_scenarios_no_forecast_is_scored(settings):
    for method in ("direct", "five"):
        assert set(values(compute(fit_of(settings, method)))) == {"R", "FR", "EFR", "FR32", "cost"}


def test_true_scenarios_are_hard_to_beat(settings):
    truth = values(compute(fit_of(settings, "truth")))
    assert truth["EFR"] < values(compute(fit_of(settings, "five")))["EFR"]


@pytest.mark.parametrize(
    ("method", "reason"),
    [("negative", "15 of 15 do not"), ("wrong-shape", "size|shape")],
)
def test_what_fails_becomes_a_row_that_says_so(settings, method, reason):
    result = compute(fit_of(settings, method, "broken"))
    (row,) = result.rows
    assert row["metric"] == "error"
    assert row["value"] is None
    assert re.search(reason, row["note"])
    assert all(column in row for column in KEY)


def test_an_infeasible_decision_is_never_scored(settings):
    evaluation = make_evaluation(fit_of(settings, "five").setting)
    decision = np.full((15, 1), 5.0)
    decision[7] = -1e-3
    with pytest.raises(fw.exceptions.InfeasibleDecisionError, match=r"1 of 15 .* row 7 breaks"):
        evaluation.metrics(decision, None, ["R"])


def test_combined_learning_goes_through_the_training_solver(settings):
    """Decided alike, but trained through a large quadratic term, it is another network."""
    fit = fit_of(settings, "combined")
    evaluation = make_evaluation(fit.setting)
    split = evaluation.split
    # No divergence: its weight depends on the solver, too.
    predictor = {**fit.method.predictor, "kl_weight": 0.0}
    method = replace(fit.method, keep="last", predictor=predictor)

    def decided(solvers):
        task = Task(evaluation.problem, split.train, split.validation, split.test, 2, 3, solvers)
        return fit_rule(method, task).decide(split.test.X, 8, 0)

    plain, ridged = decided(Solvers()), decided(Solvers(training=fw.solvers.RidgeSolver(100.0)))
    assert np.abs(plain - ridged).max() > 1e-6


def test_combined_learning_translates_k_with_its_own_unit(settings):
    """cost + K · KL / (n_weights · n_batches), divided by the unit, is forewise's loss."""
    fit = fit_of(settings, "combined")
    evaluation = make_evaluation(fit.setting)
    split = evaluation.split
    task = Task(evaluation.problem, split.train, split.validation, split.test, 2, 3, Solvers())
    weight = _translated(7.0, fit.method, task)
    unit = fw.learners.objectives.context_free_regret(evaluation.problem, split.train.y, None)
    n_weights = Layout((1, 4, 4, 2)).n_weights
    ours = unit * weight / (30 * 1)
    assert ours == pytest.approx(7.0 / (n_weights * 2))


def test_warnings_are_kept_as_notes(settings, monkeypatch):
    def warn(*arguments):
        warnings.warn("look here", stacklevel=1)
        return original(*arguments)

    original = fits.fit_rule
    monkeypatch.setattr(fits, "fit_rule", warn)
    result = compute(fit_of(settings, "five"))
    assert {row["note"] for row in result.rows} == {"look here"}
