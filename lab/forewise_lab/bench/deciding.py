"""Deciding for very many contexts: how fast, and in how much memory.

A fresh process decides, so that its memory can be measured; it prints one line of JSON.
May import: the public names, and its siblings.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch
from rich.console import Console

import forewise as fw
from forewise_lab.bench.files import write_text
from forewise_lab.bench.machine import description
from forewise_lab.bench.memory import peak_memory, restarted_peak
from forewise_lab.bench.threads import one_core

_SCENARIOS, _HIDDEN = 64, (512, 128, 128)


def run_deciding_bench(output: Path, n_contexts: int, console: Console) -> None:
    """Measure in a fresh process, on one core; print and write what came out."""
    call = f"from forewise_lab.bench.deciding import measure; measure({n_contexts})"
    command = [sys.executable, "-c", call]
    with one_core():
        # The child's progress bar goes to the terminal as it is; its result comes back.
        ended = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found = json.loads(ended.stdout)
    told = (
        f"{n_contexts:,} contexts, NVQP, {_SCENARIOS} scenarios each, Bayesian network "
        f"{'-'.join(map(str, _HIDDEN))}, one thread:\n"
        f"{found['seconds']:,.0f} s, {n_contexts / found['seconds']:,.0f} decisions a second; "
        f"peak memory {found['peak']:,.0f} MiB, of which {found['above']:,.0f} MiB came with the "
        "number of contexts.\n"
    )
    console.print(told, highlight=False, markup=False)
    write_text(output / "deciding.md", told)
    write_text(output / "deciding_machine.txt", description())


def measure(n_contexts: int) -> None:
    """Print seconds and MiB of one call of `decide`; contexts and decisions are memory too."""
    torch.set_num_threads(1)
    data = fw.datasets.nvqp(2000, random_state=0)
    predictor = fw.BayesianPredictor(
        _HIDDEN, training=fw.Training(epochs=1, batch_size=256), random_state=0
    )
    learner = fw.DecoupledLearner(fw.datasets.nvqp_problem(), predictor).fit(data.X, data.y)
    many = np.resize(data.X, (n_contexts, data.X.shape[1]))
    learner.decide(many[:4096], _SCENARIOS)
    baseline = restarted_peak()
    start = time.perf_counter()
    decisions = learner.decide(many, _SCENARIOS, progress=True)
    seconds = time.perf_counter() - start
    if not np.isfinite(decisions).all():
        raise RuntimeError("a context has no decision")
    peak = peak_memory()
    print(json.dumps({"seconds": seconds, "peak": peak, "above": peak - baseline}))
