"""One network fitted by two processes, or on another device, is the network of one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import forewise as fw
from forewise.exceptions import InvalidInputError
from forewise.predictors import (
    AllProcesses,
    MeanField,
    MeanFieldPredictor,
    NormalHead,
)
from forewise.predictors.networks.checkpoint import TrainingState
from forewise.predictors.networks.ranks import OneProcess
from forewise.predictors.networks.training import optimiser_of
from forewise.predictors.sampling import RowGenerator, stratified_normals

ROOT = Path(__file__).parents[2]


def started(folder: Path, rank: int, count: int) -> subprocess.Popen[bytes]:
    environment = os.environ | {
        "RANK": str(rank),
        "WORLD_SIZE": str(count),
        "FOREWISE_STORE": str(folder / "store"),
        "GLOO_SOCKET_IFNAME": "lo",
    }
    call = [sys.executable, "-m", "tests.predictors.ranked", str(folder)]
    return subprocess.Popen(call, env=environment, cwd=ROOT)


@pytest.fixture(scope="module")
def fits(tmp_path_factory):
    """Histories and decisions of one process, and of each of two."""
    folder = tmp_path_factory.mktemp("ranks")
    running = [started(folder, 0, 1), *(started(folder, rank, 2) for rank in range(2))]
    assert [process.wait(300) for process in running] == [0, 0, 0]
    names = ("1-0", "2-0", "2-1")
    return [json.loads((folder / f"{name}.json").read_text()) for name in names]


#: Largest difference of a loss, relative to the losses: combined learning passes on what rounding
#: does to decisions.
TOLERANCES = {
    "Gaussian": 1e-6,
    "mixture": 1e-6,
    "mean field": 1e-6,
    "members": 1e-6,
    "drawn activations": 1e-6,
    "resumed": 1e-6,
    "combined": 1e-3,
    "combined members": 1e-3,
}


@pytest.mark.parametrize("name", TOLERANCES)
def test_two_processes_have_the_losses_of_one(fits, name):
    alone, first, second = (fit[name][0] for fit in fits)
    assert first == second
    assert len(alone) == len(first)
    for figure in ("loss", "validation"):
        curves = [[record.get(figure, 0.0) for record in fit] for fit in (alone, first)]
        scale = np.abs(curves[0]).max()
        assert scale > 0
        np.testing.assert_allclose(*curves, rtol=0, atol=TOLERANCES[name] * max(1.0, scale))


def test_processes_decide_alike(fits):
    for name in TOLERANCES:
        assert fits[1][name][1] == fits[2][name][1]
        close = 1e-2 if "combined" in name else 1e-4
        np.testing.assert_allclose(fits[0][name][1], fits[1][name][1], rtol=close)


def test_processes_with_other_seeds_are_told(fits):
    for fit in fits[1:]:
        assert "differ in the training rows, random_state" in fit["told apart"][0]


@pytest.mark.parametrize("size", [1, 2, 5, 8])
def test_shares_are_the_batch_and_its_noise(size):
    class Third(OneProcess):
        count = property(lambda self: 3)

        def __init__(self, rank):
            object.__setattr__(self, "_rank", rank)

        rank = property(lambda self: self._rank)

    rows, whole = torch.arange(size), RowGenerator()
    whole.manual_seed(0)
    noise = stratified_normals(4, size, 2, whole)
    total, found = 0.0, []
    for rank in range(3):
        generator = RowGenerator()
        generator.manual_seed(0)
        own, weight = Third(rank).share(rows, generator)
        drawn = stratified_normals(4, len(own), 2, generator)
        torch.testing.assert_close(drawn, noise[:, own], rtol=0, atol=0)
        assert generator.get_state().equal(whole.get_state())
        total += weight
        found += own.tolist() if weight else []
    assert total == pytest.approx(1.0)
    assert found == list(range(size))


def test_without_torchrun_all_processes_are_one(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    X, y = np.arange(40.0).reshape(20, 2), np.arange(20.0)
    fits = [
        fw.GaussianPredictor((4,), training=fw.Training(epochs=2, ranks=ranks), random_state=0)
        for ranks in (None, AllProcesses())
    ]
    alone, together = (fit.fit(X, y).history_ for fit in fits)
    assert alone == together


def test_interrupts_end_all_processes():
    with pytest.raises(InvalidInputError, match='on_interrupt must be "raise" with ranks'):
        fw.Training(ranks=AllProcesses(), on_interrupt="keep_best")


def test_policies_with_ranks_are_stored(tmp_path):
    settings = fw.Training(epochs=1, ranks=AllProcesses(), device="cpu")
    learner = fw.DecoupledLearner(
        fw.Newsvendor(3, 1), fw.GaussianPredictor((4,), training=settings, random_state=0)
    )
    learner.fit(np.arange(40.0).reshape(20, 2), np.arange(20.0)).policy_.save(tmp_path / "policy")
    assert fw.load_policy(tmp_path / "policy").predictor.training == settings


@pytest.mark.parametrize("device", ["cuda:7", "toaster"])
def test_devices_that_are_not_there(device):
    with pytest.raises(InvalidInputError, match="device must be one that is there"):
        fw.Training(device=device)


NETWORKS = {
    "Gaussian": fw.GaussianPredictor((4,)),
    "factors": fw.GaussianPredictor((4,), n_factors=1),
    "mixture": fw.MixturePredictor(2, (4,)),
    "mean field": MeanFieldPredictor((4,)),
    "ensemble": fw.EnsemblePredictor(fw.GaussianPredictor((4,)), 2),
    "quantiles": fw.BayesianPredictor((4,)),
    "normal": fw.BayesianPredictor((4,), inference=MeanField(), head=NormalHead()),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_no_tensor_of_a_step_stays_on_the_processor(name):
    """On torch's meta device, which has shapes and no numbers."""
    predictor = NETWORKS[name].set_params(random_state=0)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), rng.gamma(4.0, size=(40, 2))
    rows, validation = predictor.prepare(X, y)
    objective = predictor.likelihood(rows, validation).on("meta")
    job = predictor.job(objective, rows)
    network = job.network.to("meta")
    settings = fw.Training(epochs=1).completed(job.defaults, objective.n_rows)
    optimiser = optimiser_of(network, settings)
    generator = RowGenerator()
    generator.manual_seed(0)
    batch = objective.batches(settings.batch_size, generator)[0]
    loss = objective.loss(network, batch, generator).sum()
    if job.divergence_weight:
        loss = loss + network.divergence().sum()
    loss.backward()
    assert loss.device.type == "meta"
    assert {p.grad.device.type for p in network.parameters() if p.grad is not None} == {"meta"}
    assert optimiser.param_groups
    values, _ = network.scenarios(rows.x_scaled.to("meta"), 8, generator)
    assert values.device.type == "meta"
    if name in ("quantiles", "normal"):
        network.update_posterior(objective.rows.x[objective.folds.train])
        network.update_correlations(
            objective.rows.x[objective.folds.held], objective.rows.y[objective.folds.held]
        )


def test_the_best_weights_are_kept_on_the_processor():
    network = torch.nn.Linear(2, 1)
    state = TrainingState()
    state.consider({"validation": 1.0}, network)
    kept = {name: value.clone() for name, value in state.best.items()}
    with torch.no_grad():
        network.weight += 1
    assert all(value.equal(state.best[name]) for name, value in kept.items())
    assert {value.device.type for value in state.best.values()} == {"cpu"}
