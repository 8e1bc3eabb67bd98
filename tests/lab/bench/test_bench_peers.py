"""Peers agree with each other, and say so when they cannot run."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp

from forewise_lab.bench.accuracy import WANTED, relative_errors
from forewise_lab.bench.instances import FAMILIES, nvqp, pop, recourse
from forewise_lab.bench.peers import default_peers
from forewise_lab.bench.peers.base import lift
from forewise_lab.bench.peers.cvxpylayers_layer import CvxpyLayersPeer
from forewise_lab.bench.peers.moreau_batch import MoreauBatch, without_sign_rows
from forewise_lab.bench.peers.qpth_dense import QpthDense
from forewise_lab.bench.peers.solvers import (
    ClarabelLoop,
    ForewisePeer,
    HighsLoop,
    with_column_bounds,
)


def prepared(peer, instance):
    """The peer built on the instance; the test is skipped where it is not installed."""
    line = peer.missing()
    if line is not None:
        pytest.skip(line)
    assert peer.supports(instance.program) is None
    return peer.prepare(instance)


INSTANCES = {
    "nvqp": nvqp(n_scenarios=6, n_contexts=3),
    "pop": pop(n_scenarios=32, n_contexts=3),
    "recourse": recourse(n_scenarios=4, n_contexts=2),
}
PAIRS = [
    (peer, name)
    for peer in default_peers()
    for name in INSTANCES
    if not isinstance(peer, ClarabelLoop) and peer.supports(INSTANCES[name].program) is None
]


@pytest.mark.parametrize(("peer", "name"), PAIRS, ids=[f"{p.name}-{n}" for p, n in PAIRS])
def test_peer_reaches_the_cost_that_clarabel_reaches(peer, name):
    instance = INSTANCES[name]
    answer = prepared(peer, instance).forward()
    trusted = ClarabelLoop(tolerance=1e-10).prepare(instance).forward()
    assert answer.n_unsolved == 0
    errors = relative_errors(instance, {"peer": answer, "Clarabel": trusted})
    assert errors["peer"] < WANTED
    assert errors["Clarabel"] < WANTED


@pytest.mark.parametrize("peer", [MoreauBatch(), CvxpyLayersPeer(), ForewisePeer()])
def test_gradient_of_recourse_is_that_of_qpth(peer):
    instance = recourse(n_scenarios=3, n_contexts=2)
    exact = prepared(QpthDense(), instance).forward_backward().of
    found = prepared(peer, instance).forward_backward().of
    # cvxpylayers differentiates iteratively, to a few digits; the others where they stopped.
    tolerance = 0.05 if isinstance(peer, CvxpyLayersPeer) else 1e-3
    assert set(found) == set(exact) == {"T", "W", "r", "q", "d"}
    for name, gradient in exact.items():
        assert np.abs(found[name] - gradient).max() < tolerance * np.abs(gradient).max()


@pytest.mark.parametrize(
    ("peer", "module"),
    [
        (MoreauBatch(), "moreau.torch"),
        (CvxpyLayersPeer(), "cvxpylayers.torch"),
        (QpthDense(), "qpth.qp"),
    ],
)
def test_missing_package_gives_a_line_that_says_how_to_install_it(peer, module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    line = peer.missing()
    assert line is not None
    assert "\n" not in line
    assert "pip install" in line


def test_peers_say_what_they_cannot_solve():
    assert HighsLoop().supports(INSTANCES["nvqp"].program) is not None
    assert QpthDense().supports(INSTANCES["pop"].program) is not None
    assert QpthDense(largest=5).supports(INSTANCES["nvqp"].program) is not None
    assert CvxpyLayersPeer(largest=20).supports(INSTANCES["nvqp"].program) is not None


def test_single_entry_rows_become_bounds():
    # Rows: −x0 ≤ 0, 2 x1 ≤ 6, x1 ≤ 5, x0 + x1 ≤ 4.
    A = sp.csr_matrix([[-1.0, 0.0], [0.0, 2.0], [0.0, 1.0], [1.0, 1.0]])
    found = with_column_bounds(A, np.array([0.0, 6.0, 5.0, 4.0]))
    np.testing.assert_array_equal(found.lower, [0.0, -np.inf])
    np.testing.assert_array_equal(found.upper, [np.inf, 3.0])
    np.testing.assert_array_equal(found.A.toarray(), [[1.0, 1.0]])
    np.testing.assert_array_equal(found.b, [4.0])


@pytest.mark.parametrize("family", FAMILIES)
def test_sign_rows_are_the_only_ones_taken_out(family):
    lifted = lift(INSTANCES[family].program)
    rest, positive = without_sign_rows(lifted)
    dense, kept = lifted.A.dense()[0].numpy(), rest.A.dense()[0].numpy()
    signs = -np.eye(dense.shape[1])[positive]
    assert len(kept) + len(signs) == len(dense)
    assert {tuple(row) for row in dense} == {tuple(row) for row in np.vstack([kept, signs])}
