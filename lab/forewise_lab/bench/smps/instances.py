"""The programs: the classic sets where they are on this computer, and a family made here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse as sp

import forewise as fw
from forewise.datasets.files import search_places

CLASSIC = ("lands3", "pgp2", "retail", "sgsc", "fxm2_16", "stocfor2", "ssn", "20term")
PLANTS = "plants"


def available(data_dir: str | Path | None = None) -> tuple[list[str], list[str]]:
    """The instances that can be measured, and a line for each that is not here."""
    folders = [place / "smps" for place in search_places(data_dir)]
    there = [name for name in CLASSIC if any((folder / name).is_dir() for folder in folders)]
    sought = ", ".join(map(str, folders))
    missing = [f"{name} is not in {sought}" for name in CLASSIC if name not in there]
    return [PLANTS, *there], missing


def instance(name: str, data_dir: str | Path | None = None) -> fw.smps.TwoStageProgram:
    """An instance by name."""
    if name == PLANTS:
        return plants()
    folders = [place / "smps" / name for place in search_places(data_dir)]
    return fw.smps.read(next(folder for folder in folders if folder.is_dir()))


def scenarios_of(program: fw.smps.TwoStageProgram, n_scenarios: int) -> fw.Scenarios:
    """Draws of a fixed seed, or every scenario where there are no more."""
    if program.n_scenarios <= n_scenarios:
        return program.scenarios()
    return program.sample(n_scenarios, random_state=0)


def plants(
    n_plants: int = 8, n_modes: int = 6, n_values: int = 25, seed: int = 0
) -> fw.smps.TwoStageProgram:
    """Capacities of power plants before the demand of every mode of the year is known.

    min c'z + Σ k_im u_im + 1000 Σ short_m    s.t.  Σ z ≥ 12,  c'z ≤ budget,
    Σ_m u_im ≤ z_i,   Σ_i u_im + short_m ≥ demand_m,   0 ≤ z ≤ 10,  0 ≤ u, short
    """
    generator = np.random.default_rng(seed)
    build, run = generator.uniform(6, 16, n_plants), generator.uniform(3, 6, n_plants)
    hours = np.sort(generator.uniform(0.5, 10, n_modes))[::-1]
    decisions = [f"Z{i}" for i in range(n_plants)]
    operated = [f"U{i}.{m}" for i in range(n_plants) for m in range(n_modes)]
    demand = [f"DEMAND{m}" for m in range(n_modes)]
    eye_plants, eye_modes = sp.eye(n_plants), sp.eye(n_modes)
    matrix = sp.bmat(
        [
            [np.ones((1, n_plants)), None, None],
            [build[None], None, None],
            [-eye_plants, sp.kron(eye_plants, np.ones((1, n_modes))), None],
            [None, sp.kron(np.ones((1, n_plants)), eye_modes), eye_modes],
        ],
        format="csr",
    )
    below = np.concatenate([[0.0], np.full(1 + n_plants, -np.inf), np.zeros(n_modes)])
    above = np.concatenate([[np.inf], np.zeros(1 + n_plants), np.full(n_modes, np.inf)])
    cost = np.concatenate([build, np.outer(run, hours).ravel(), np.full(n_modes, 1000.0)])
    core = fw.smps.Core(
        name=PLANTS,
        objective="COST",
        rows=("LEAST", "BUDGET", *(f"CAPACITY{i}" for i in range(n_plants)), *demand),
        columns=(*decisions, *operated, *(f"SHORT{m}" for m in range(n_modes))),
        matrix=matrix,
        cost=cost,
        constant=0.0,
        rhs=np.concatenate([[12.0, 30 * build.mean()], np.zeros(n_plants), np.full(n_modes, 3.0)]),
        below=below,
        above=above,
        lower=np.zeros(len(cost)),
        upper=np.where(np.arange(len(cost)) < n_plants, 10.0, np.inf),
    )
    groups = []
    for m in range(n_modes):
        element = fw.smps.Element(fw.smps.Place.RIGHT_SIDE, demand[m])
        values = np.sort(generator.gamma(4.0, 0.9, size=n_values))[:, None]
        weights = np.full(n_values, 1 / n_values)
        groups.append(fw.smps.Discrete(str(element), (element,), values, weights))
    return fw.smps.TwoStageProgram(core, n_plants, tuple(groups))
