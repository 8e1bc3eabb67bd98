"""Contexts far from the training rows are decided with a warning."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import forewise as fw

PROBLEM = fw.Newsvendor(3, 1)
FEW = fw.Training(epochs=2)
random = np.random.default_rng(0)
X = np.column_stack([random.normal(size=(60, 2)), np.ones(60)])
y = 40 + 10 * X[:, 0] + random.normal(size=60)
far = X.copy()
far[[3, 7], 1] = 50.0


def learner(predictor):
    return fw.DecoupledLearner(PROBLEM, predictor)


NETWORKS = {
    "point": learner(fw.PointPredictor(training=FEW)),
    "Bayesian": learner(fw.BayesianPredictor(training=FEW)),
    "ensemble": learner(fw.EnsemblePredictor(fw.BayesianPredictor(training=FEW), 2)),
    "mean field": learner(fw.predictors.MeanFieldPredictor(training=FEW)),
    "auto": fw.AutoLearner(PROBLEM, [fw.BayesianPredictor(training=FEW)]),
    "combined": fw.CombinedLearner(PROBLEM, fw.GaussianPredictor(training=FEW), pretraining=False),
    "direct": fw.DirectLearner(PROBLEM, fw.PointPredictor(training=FEW)),
}
QUIET = {
    "Bayesian, held": learner(fw.BayesianPredictor(extrapolate=0.0, training=FEW)),
    "held": learner(fw.predictors.MeanFieldPredictor(extrapolate=False, training=FEW)),
    "cautious": learner(
        fw.predictors.MeanFieldPredictor(
            off_support=fw.predictors.OffSupportFallback(), training=FEW
        )
    ),
    "forest": learner(fw.ForestPredictor()),
    "neighbours": learner(fw.NeighborPredictor()),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_says_how_many_rows_it_has_seen_nothing_like(name, tmp_path):
    fitted = NETWORKS[name].fit(X, y)
    with pytest.warns(fw.exceptions.ExtrapolationWarning, match=r"2 of 60 .* rows 3, 7") as caught:
        decided = fitted.decide(far)
    assert len(caught) == 1
    fitted.policy_.save(tmp_path / "policy")
    with pytest.warns(fw.exceptions.ExtrapolationWarning, match="2 of 60"):
        again = fw.load_policy(tmp_path / "policy").decide(far)
    assert np.array_equal(decided, again)


@pytest.mark.parametrize("name", QUIET)
def test_no_warning_where_the_range_is_not_left(name):
    fitted = QUIET[name].fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted.decide(far)


def test_rows_like_those_of_training_are_decided_without_a_warning():
    fitted = NETWORKS["Bayesian"].fit(X, y)
    nearby = X + 0.05 * random.normal(size=X.shape)
    nearby[:, 2] = 9.0  # it was the same in every row, and is not looked at
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted.decide(nearby)
