"""Learning and deciding with cones and integers."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import forewise as fw

BRIEF = fw.Training(epochs=2, batch_size=16)


def conic():
    z, y = cp.Variable(2, nonneg=True, name="z"), cp.Parameter(2, name="y")
    cost = cp.norm(z - y) + cp.sum(cp.exp(0.3 * (y - z)))
    return fw.CvxpyProblem(cp.Minimize(cost), [cp.norm(z) <= 6], decision=z, outcome=y)


def staffing():
    z, y = cp.Variable(2, integer=True, name="staff"), cp.Parameter(2, name="work")
    cost = 2 * cp.sum(z) + 5 * cp.sum(cp.pos(y - 1.5 * z))
    return fw.CvxpyProblem(cp.Minimize(cost), [z >= 0], decision=z, outcome=y)


def table(n=32):
    random = np.random.default_rng(0)
    X = random.normal(size=(n, 2))
    return X, 3 + X + 0.3 * random.normal(size=(n, 2))


def gaussian():
    return fw.GaussianPredictor((4,), training=BRIEF, random_state=0)


@pytest.mark.parametrize(
    "learner",
    [
        lambda: fw.DecoupledLearner(conic(), fw.NeighborPredictor()),
        lambda: fw.CombinedLearner(conic(), gaussian(), 3, pretraining=False),
        lambda: fw.DirectLearner(
            conic(), fw.PointPredictor((4,), training=BRIEF, random_state=0)
        ),
        lambda: fw.DecoupledLearner(staffing(), fw.NeighborPredictor()),
    ],
    ids=["decoupled conic", "combined conic", "direct conic", "decoupled integer"],
)  # fmt: skip
def test_learn_decide_score_and_store(learner, tmp_path):
    X, y = table()
    fitted = learner().fit(X, y)
    decided = np.asarray(fitted.decide(X[:4], n_scenarios=5))
    assert np.isfinite(decided).all()
    assert np.isfinite(fitted.score(X[:4], y[:4]))
    fitted.policy_.save(tmp_path / "policy")
    again = fw.load_policy(tmp_path / "policy").decide(X[:4], n_scenarios=5)
    assert np.array_equal(np.asarray(again), decided)
    if "staff" in repr(fitted.problem):
        assert np.array_equal(decided, decided.round())
    else:
        assert (np.linalg.norm(decided, axis=1) <= 6 + 1e-5).all()


@pytest.mark.parametrize(
    "learner",
    [fw.CombinedLearner(staffing(), gaussian()), fw.DirectLearner(staffing())],
    ids=["combined", "direct"],
)
def test_integers_are_not_learned_through(learner):
    with pytest.raises(
        fw.exceptions.UnsupportedProblemError,
        match=r"integers, .* no gradient: use a DecoupledLearner; or .* relaxation",
    ):
        learner.fit(*table())
