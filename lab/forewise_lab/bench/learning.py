"""What a step of training costs, and how fast very many contexts are decided."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from rich.console import Console

import forewise as fw
from forewise.predictors.networks.training import optimiser_of, step
from forewise.predictors.sampling import RowGenerator
from forewise_lab.bench.results import Bar, Page, TextTable, at_most, bars_table, seconds
from forewise_lab.bench.timing import take_turns
from forewise_lab.distributed import in_new_process
from forewise_lab.machine import description, one_core, peak_memory, restart_peak, write_whole

_BATCH, _SCENARIOS, _HIDDEN = 256, 16, (512, 128, 128)
_NETWORK = "-".join(map(str, _HIDDEN))
_DECIDING_SCENARIOS = 64


def run_training_bench(output: Path, repeats: int, console: Console) -> dict[str, float]:
    """Time the three kinds of step in turns, on one core; print and write the medians."""
    output.mkdir(parents=True, exist_ok=True)
    with one_core(), console.status("measuring") as status:
        steps = {
            "plain": plain_step(),
            "decoupled": forewise_step(combined=False),
            "combined": forewise_step(combined=True),
        }
        timed = take_turns(steps, repeats, status.update)
    found = {name: own.median for name, own in timed.items()}
    title = f"One step: NVQP, batch {_BATCH}, {_SCENARIOS} scenarios, network {_NETWORK}"
    times = [(f"{name} step", seconds(value)) for name, value in found.items()]
    tables = [
        TextTable("Medians", ("what", "measured"), times),
        bars_table(training_bars(found), "The bars for training"),
    ]
    page = Page(title, "One thread, medians of turns in one run.", tables)
    page.publish(output, "training", console)
    return found


def training_bars(found: dict[str, float]) -> list[Bar]:
    """What a step may cost."""
    combined = found["combined"] / found["decoupled"]
    by_hand = found["decoupled"] / found["plain"]
    return [
        at_most("combined step / decoupled step", "2", 2.0, combined, "{:.2f}"),
        at_most("decoupled step / the same in plain torch", "1.1", 1.1, by_hand, "{:.2f}"),
    ]


def forewise_step(*, combined: bool) -> Callable[[], object]:
    """One step of forewise's own loop, on the paper's NVQP."""
    data = fw.datasets.nvqp(_BATCH, random_state=0)
    settings = fw.Training(batch_size=_BATCH)
    predictor = fw.predictors.MeanFieldPredictor(
        _HIDDEN, n_scenarios=_SCENARIOS, training=settings, random_state=0
    )
    rows, _ = predictor.prepare(data.X, data.y, data.X[:2], data.y[:2])
    if combined:
        learner = fw.CombinedLearner(fw.datasets.nvqp_problem(), predictor, _SCENARIOS)
        job = predictor.job(learner.objective(predictor, rows, None), rows)
    else:
        job = predictor.job(predictor.likelihood(rows, None), rows)
    complete = settings.completed(job.defaults, _BATCH)
    optimiser = optimiser_of(job.network, complete)
    generator = RowGenerator()
    generator.manual_seed(0)
    everything = torch.arange(_BATCH)
    return lambda: step(job, complete, optimiser, everything, generator)


def plain_step() -> Callable[[], object]:
    """The same decoupled step as one would write it by hand: a bmm per layer, in plain torch."""
    data = fw.datasets.nvqp(_BATCH, random_state=0)
    x = torch.from_numpy((data.X - data.X.mean(0)) / data.X.std(0)).float()
    y = torch.from_numpy((data.y - data.y.mean(0)) / data.y.std(0)).float()
    n_outcomes = y.shape[1]
    sizes = (x.shape[1], *_HIDDEN, 2 * n_outcomes)
    generator = torch.Generator().manual_seed(0)
    means, rhos = [], []
    for inputs, outputs in itertools.pairwise(sizes):
        start = (torch.rand(inputs + 1, outputs, generator=generator) - 0.5) / math.sqrt(inputs)
        means.append(start.requires_grad_())
        rhos.append(torch.full((inputs + 1, outputs), -4.5).requires_grad_())
    optimiser = torch.optim.Adam([*means, *rhos], lr=1e-3)

    def take() -> None:
        optimiser.zero_grad()
        hidden = x.expand(_SCENARIOS, -1, -1)
        divergence = torch.zeros(())
        for index, (mean, rho) in enumerate(zip(means, rhos, strict=True)):
            std = torch.nn.functional.softplus(rho)
            noise = torch.randn(_SCENARIOS, *mean.shape, generator=generator)
            weight = mean + std * noise
            if index:
                hidden = hidden.relu()
            hidden = torch.bmm(hidden, weight[:, :-1]) + weight[:, -1:]
            divergence = divergence + (0.5 * (std**2 + mean**2) - std.log() - 0.5).sum()
        centre, log_variance = hidden.split(n_outcomes, dim=-1)
        loss = 0.5 * ((y - centre) ** 2 * torch.exp(-log_variance) + log_variance).mean()
        (loss + 1e-6 * divergence).backward()
        torch.nn.utils.clip_grad_norm_([*means, *rhos], 10.0)
        optimiser.step()

    return take


def run_deciding_bench(output: Path, n_contexts: int, console: Console) -> None:
    """Decide for very many contexts in a fresh process, on one core; print and write the result."""
    output.mkdir(parents=True, exist_ok=True)
    with one_core():
        found = in_new_process(measure_deciding, n_contexts)
    text = (
        f"{n_contexts:,} contexts, NVQP, {_DECIDING_SCENARIOS} scenarios each, Bayesian network "
        f"{_NETWORK}, one thread:\n"
        f"{found['seconds']:,.0f} s, {n_contexts / found['seconds']:,.0f} decisions a second; "
        f"peak memory {found['peak']:,.0f} MiB, of which {found['above']:,.0f} MiB came with the "
        "number of contexts.\n"
    )
    console.print(text, highlight=False, markup=False)
    write_whole(output / "deciding.md", text)
    write_whole(output / "deciding_machine.txt", description())


def measure_deciding(n_contexts: int) -> dict[str, float]:
    """Seconds and MiB of one call of `decide`."""
    torch.set_num_threads(1)
    data = fw.datasets.nvqp(2000, random_state=0)
    training = fw.Training(epochs=1, batch_size=256)
    predictor = fw.predictors.MeanFieldPredictor(_HIDDEN, training=training, random_state=0)
    learner = fw.DecoupledLearner(fw.datasets.nvqp_problem(), predictor).fit(data.X, data.y)
    many = np.resize(data.X, (n_contexts, data.X.shape[1]))
    learner.decide(many[:4096], _DECIDING_SCENARIOS)
    baseline = restart_peak()
    start = time.perf_counter()
    decisions = learner.decide(many, _DECIDING_SCENARIOS, progress=True)
    taken = time.perf_counter() - start
    if not np.isfinite(decisions).all():
        raise RuntimeError("a context has no decision")
    peak = peak_memory()
    return {"seconds": taken, "peak": peak, "above": peak - baseline}
