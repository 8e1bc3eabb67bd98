"""Learning with a risk in the place of the mean."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import forewise as fw

RANDOM = np.random.default_rng(3)
N = 400
X = RANDOM.uniform(-1, 1, size=(N, 1))
# Demand whose spread grows with x, and is skewed: mean and tail want different orders.
Y = 5 + 2 * X + (1.2 + X) * RANDOM.exponential(size=(N, 1))


def gaussian(epochs: int = 12) -> fw.GaussianPredictor:
    training = fw.Training(epochs=epochs, batch_size=64, learning_rate=5e-3, progress=False)
    return fw.GaussianPredictor(hidden_sizes=(16,), training=training, random_state=0)


def test_combined_learning_makes_the_tail_smaller():
    """Its decisions have less CVaR than those that were trained for the mean."""
    problem, risk = fw.Newsvendor(2.0, 1.0), fw.CVaR(0.8)
    averse = fw.CombinedLearner(
        problem.with_risk(risk), gaussian(), n_scenarios=16, pretraining=False
    ).fit(X, Y)
    neutral = fw.CombinedLearner(problem, gaussian(), n_scenarios=16, pretraining=False).fit(X, Y)
    tails = [
        risk(problem.cost(torch.from_numpy(learner.decide(X)), torch.from_numpy(Y))).item()
        for learner in (averse, neutral)
    ]
    assert tails[0] < 0.97 * tails[1]
    assert averse.score(X, Y) == pytest.approx(-tails[0])


def test_training_lowers_what_it_is_judged_by():
    problem = fw.Newsvendor(2.0, 1.0).with_risk(fw.MeanCVaR(0.5, 0.8))
    learner = fw.CombinedLearner(problem, gaussian(), n_scenarios=8, pretraining=False).fit(X, Y)
    assert learner.history_[-1]["validation"] < learner.history_[0]["validation"]


def test_the_realised_risk_is_least_at_the_true_threshold():
    costs = torch.from_numpy(RANDOM.exponential(size=20000))
    risk = fw.MeanCVaR(0.7, 0.9)
    threshold = torch.quantile(costs, 0.9)
    at = {shift: risk.realised(costs, threshold + shift).mean() for shift in (-0.3, 0.0, 0.3)}
    assert min(at, key=at.get) == 0.0
    assert at[0.0].item() == pytest.approx(risk(costs).item(), rel=1e-6)


def test_a_stored_policy_keeps_its_risk(tmp_path):
    problem = fw.Newsvendor(2.0, 1.0).with_risk(fw.CVaR(0.8))
    learner = fw.DecoupledLearner(problem, fw.EmpiricalPredictor()).fit(X, Y)
    learner.policy_.save(tmp_path / "policy")
    loaded = fw.load_policy(tmp_path / "policy")
    assert loaded.problem.risk == fw.CVaR(0.8)
    np.testing.assert_array_equal(loaded.decide(X[:5], 50), learner.decide(X[:5], 50))


def test_what_cannot_be_learned_says_what_can():
    worst = fw.Newsvendor(2.0, 1.0).with_risk(fw.WorstCase())
    with pytest.raises(fw.exceptions.UnsupportedProblemError, match=r"train with CVaR\(0.95\)"):
        fw.CombinedLearner(worst, gaussian()).fit(X, Y)
    averse = fw.Newsvendor(2.0, 1.0).with_risk(fw.CVaR(0.8))
    with pytest.raises(fw.exceptions.UnsupportedProblemError, match="has no distribution"):
        fw.DirectLearner(averse).fit(X, Y)
    assert fw.DecoupledLearner(worst, gaussian(2)).fit(X, Y).decide(X[:3]).shape == (3, 1)
