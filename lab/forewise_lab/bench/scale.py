"""What grows: decisions of folders on engines, fits on workers, scenarios of one context.

Measurements of memory run in a process of their own.
"""

from __future__ import annotations

import json
import resource
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import torch
from rich.console import Console

import forewise as fw
from forewise.bulk import Engine, decide_files
from forewise.bulk.engines import ENGINES
from forewise.bulk.job import Job
from forewise.exceptions import InvalidInputError
from forewise.parallel import Map, Processes, RayMap

_PARTS = 16
_FITS = 24
_ENGINES = "local:1,local:2,ray:2,dask:2"
_RATE_ROWS = 400_000  # decided in memory, for the rate that others are compared with

Row = dict[str, Any]


def run_scale_bench(what: str, folder: Path, console: Console, **sizes: Any) -> list[Row]:
    """Measure one of `MEASURED`; print rows and append them to scale.json."""
    if what not in MEASURED:
        raise InvalidInputError(f"what must be one of {', '.join(MEASURED)}, but is {what!r}")
    rows = MEASURED[what](**sizes)
    for row in rows:
        console.print("  ".join(f"{name} {_shown(value)}" for name, value in row.items()))
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "scale.json"
    known = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps(known | {what: rows}, indent=1) + "\n")
    return rows


def newsvendor_rows(rows: int = 5_000_000, engines: str = _ENGINES) -> list[Row]:
    """A Gaussian network and the newsvendor's closed form."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(2000, 6)), columns=[f"x{i}" for i in range(6)])
    y = pd.DataFrame({"demand": rng.gamma(4.0, np.exp(0.3 * X["x0"]))})
    network = fw.GaussianPredictor((64, 64), training=fw.Training(epochs=5), random_state=0)
    learner = fw.DecoupledLearner(fw.Newsvendor(3, 1), network).fit(X, y)
    return _on_engines(learner.policy_, list(X.columns), rows, engines)


def budget_rows(rows: int = 200_000, engines: str = _ENGINES) -> list[Row]:
    """Six items that share a budget."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(2000, 6)), columns=[f"x{i}" for i in range(6)])
    items = [f"item{i}" for i in range(6)]
    y = pd.DataFrame(rng.gamma(9.0, 2.0, size=(2000, 6)), columns=items)
    problem = fw.QuadraticNewsvendor(
        quadratic=1.0, linear=2.0, shortage_quadratic=3.0, shortage=40.0, excess_quadratic=1.0,
        excess=5.0, price=[4.0, 2.0, 3.0, 1.0, 2.0, 3.0], budget=200.0,
    )  # fmt: skip
    network = fw.GaussianPredictor((64, 64), training=fw.Training(epochs=5), random_state=0)
    learner = fw.DecoupledLearner(problem, network).fit(X, y)
    return _on_engines(learner.policy_, list(X.columns), rows, engines)


def _on_engines(policy: Any, names: list[str], rows: int, engines: str) -> list[Row]:
    """The same folder in memory, in this process and on engines."""
    found = []
    with TemporaryDirectory(prefix="forewise-scale-") as made:
        folder = Path(made)
        policy.save(folder / "policy")
        (folder / "data").mkdir()
        rng, size = np.random.default_rng(1), rows // _PARTS
        for part in range(_PARTS):
            table = pd.DataFrame(rng.normal(size=(size, len(names))), columns=names)
            table.assign(id=np.arange(size)).to_parquet(folder / f"data/part{part:02}.parquet")
        found.append(_alone(_in_memory, folder, min(rows, _RATE_ROWS)))
        for engine in engines.split(","):
            name, _, jobs = engine.partition(":")
            measured = _alone(_by_engine, folder, name, int(jobs or 1))
            found.append(measured | {"rows": size * _PARTS})
            shutil.rmtree(folder / "out")
    for row in found:
        row["rows_per_core_second"] = row["rows"] / row["seconds"] / row["workers"]
        # Of processor time: what else runs on the machine does not count.
        row["rows_per_cpu_second"] = row["rows"] / row.pop("cpu")
        for name in ("core", "cpu"):
            rate = f"rows_per_{name}_second"
            row[f"of_memory_{name}"] = row[rate] / found[0][rate]
    return found


def _in_memory(folder: Path, rows: int) -> Row:
    torch.set_num_threads(1)
    policy = fw.load_policy(folder / "policy")
    frame = pd.concat([pd.read_parquet(f) for f in sorted((folder / "data").iterdir())])[:rows]
    frame = frame.drop(columns="id").reset_index(drop=True)
    policy.decide(frame[:1000])
    start, cpu = time.perf_counter(), time.process_time()
    policy.decide(frame)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    return {"engine": "memory", "workers": 1, "rows": rows, "seconds": seconds, "cpu": cpu}


class _Measured(Job):
    """A job whose records say how much memory the worker had at most."""

    def decide(self, part: Any) -> Row:
        start, cpu = time.perf_counter(), time.process_time()
        said = super().decide(part)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        line = {"gb": peak, "start": start, "end": time.perf_counter()}
        line["cpu"] = time.process_time() - cpu
        with (Path(self.policy).parent / "measured.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")
        return said


class _Watched(Engine):
    """An engine whose jobs are measured."""

    def __init__(self, engine: Engine) -> None:
        object.__setattr__(self, "engine", engine)

    def records(self, job: Job, parts: list[Any]) -> Any:
        yield from self.engine.records(_Measured(**vars(job)), parts)  # type: ignore[attr-defined]


def _by_engine(folder: Path, name: str, jobs: int) -> Row:
    torch.set_num_threads(1)
    lines = folder / "measured.jsonl"
    lines.unlink(missing_ok=True)
    start = time.perf_counter()
    engine = _Watched(ENGINES[name](jobs))
    summary = decide_files(folder / "policy", folder / "data", folder / "out", engine=engine)
    seconds = time.perf_counter() - start
    if summary.errors:
        raise RuntimeError(f"{name}: {summary.errors}")
    measured = [json.loads(line) for line in lines.read_text().splitlines()]
    steady = max(m["end"] for m in measured) - min(m["start"] for m in measured)
    return {
        "engine": name, "workers": jobs, "seconds": steady, "with_start": seconds,
        "cpu": sum(m["cpu"] for m in measured),
        "gb_per_worker": max(m["gb"] for m in measured),
    }  # fmt: skip


def equal_fits(fits: int = _FITS, workers: int = 2) -> list[Row]:
    """Equal fits: candidates of an `AutoLearner` on the first fold, wherever the map says."""
    found = [_alone(_timed_fits, fits, 1, False)]
    found += [_alone(_timed_fits, fits, workers, ray) for ray in (False, True)]
    for row in found:
        row["faster"] = found[0]["seconds"] / row["seconds"]
    costs = {json.dumps(row.pop("costs")) for row in found}
    if len(costs) > 1:
        raise RuntimeError("the maps do not agree to the bit")
    return found


def _timed_fits(fits: int, workers: int, ray: bool) -> Row:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 6))
    y = rng.gamma(4.0, np.exp(0.3 * X[:, :1]))
    where: Map = RayMap(workers) if ray else Processes(workers)
    list(where.imap(abs, range(2 * workers)))  # workers are there, and have imported what they need
    list(where.imap(_imports, range(2 * workers)))
    candidates = {
        f"network {i}": fw.GaussianPredictor(
            (64, 64), training=fw.Training(epochs=60), random_state=i
        )
        for i in range(fits // 2)
    }
    learner = fw.AutoLearner(fw.Newsvendor(3, 1), candidates, n_folds=2, map=where, random_state=0)
    torch.set_num_threads(1)
    start = time.perf_counter()
    learner.fit(X, y)
    seconds = time.perf_counter() - start
    name = "ray" if ray else "processes"
    costs = learner.leaderboard_["cost"].tolist()
    return {"map": name, "workers": workers, "fits": fits, "seconds": seconds, "costs": costs}


def _imports(number: int) -> int:
    fw.GaussianPredictor((2,), training=fw.Training(epochs=1)).fit(np.eye(9), np.arange(9.0))
    return number


def million_scenarios(values: int = 100) -> list[Row]:
    """Three independent demands with so many values each: 4 + 12 variables, values³ scenarios."""
    return [_alone(_capacity, values)]


def _capacity(n_values: int) -> Row:
    from forewise.solvers import AggregatedSolver

    torch.set_num_threads(1)
    values = np.linspace(0.0, 3.96, n_values)
    demand = np.stack(np.meshgrid(values, values, 0.9 * values, indexing="ij"), -1).reshape(-1, 3)
    M, cost = len(demand), np.array([10.0, 7, 16, 6])
    running = np.array([[40, 24, 4], [45, 27, 4.5], [32, 19.2, 3.2], [55, 33, 5.5]])
    T, W, r = np.zeros((7, 4)), np.zeros((7, 12)), np.zeros((1, M, 7))
    T[range(4), range(4)] = -1.0
    for plant in range(4):
        W[plant, 3 * plant : 3 * plant + 3] = 1.0
    for kind in range(3):
        W[4 + kind, kind::3] = -1.0
    r[0, :, 4:] = -demand
    program = fw.ScenarioProgram(
        np.full((1, M), 1 / M), cost[None], G=np.array([[-np.ones(4), cost]]),
        h=np.array([[-12.0, 120.0]]), T=T[None, None], W=W[None, None], r=r,
        d=running.reshape(1, 1, 12), lower=np.zeros((1, 4)), recourse_lower=np.zeros((1, 1, 12)),
    )  # fmt: skip
    start, cpu = time.perf_counter(), time.process_time()
    solution = fw.solve_program(program, AggregatedSolver())
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {
        "scenarios": M, "seconds": seconds, "cpu_seconds": cpu, "gb": peak,
        "gap": float(solution.gap),
        "objective": float(solution.objective),
    }  # fmt: skip


def growth() -> list[Row]:
    """Processor time of a decision by rows, scenarios, items and columns, one at a time."""
    grown = {
        "rows": (2000, 8000, 32000),
        "scenarios": (16, 64, 256, 1024),
        "items": (2, 6, 24),
        "columns": (6, 24, 96),
    }
    return [
        {"grows": name, "size": size} | _decided({name: size})
        for name, sizes in grown.items()
        for size in sizes
    ]


def _decided(sizes: dict[str, int]) -> Row:
    torch.set_num_threads(1)
    rows, scenarios, items, columns = (
        sizes.get(name, usual)
        for name, usual in (("rows", 2000), ("scenarios", 64), ("items", 6), ("columns", 6))
    )
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(500, columns)), rng.gamma(9.0, 2.0, size=(500, items))
    budget = fw.QuadraticNewsvendor(
        quadratic=1.0, linear=2.0, shortage_quadratic=3.0, shortage=40.0, excess_quadratic=1.0,
        excess=5.0, price=np.full(items, 2.0), budget=30.0 * items,
    )  # fmt: skip
    network = fw.GaussianPredictor((64, 64), training=fw.Training(epochs=2), random_state=0)
    taken: Row = {}
    for name, problem in (("newsvendor", fw.Newsvendor(3, 1)), ("budget", budget)):
        outcome = y[:, :1] if name == "newsvendor" else y
        policy = fw.DecoupledLearner(problem, network).fit(X, outcome).policy_
        contexts = rng.normal(size=(rows, columns))
        policy.decide(contexts[:64], scenarios)
        cpu = time.process_time()
        policy.decide(contexts, scenarios)
        taken[f"{name}_microseconds"] = 1e6 * (time.process_time() - cpu) / rows
    return taken


def training_steps() -> list[Row]:
    """Processor time of a step of training by the rows of its batch."""
    sizes = (32, 128, 512, 2048)
    return [{"batch": size} | _steps(size) for size in sizes]


def _steps(size: int) -> Row:
    from forewise.predictors.networks.training import optimiser_of, step
    from forewise.predictors.sampling import RowGenerator

    torch.set_num_threads(1)
    rng, taken = np.random.default_rng(0), {}
    X, y = rng.normal(size=(size, 6)), rng.gamma(9.0, 2.0, size=(size, 6))
    budget = fw.QuadraticNewsvendor(
        quadratic=1.0, linear=2.0, shortage_quadratic=3.0, shortage=40.0, excess_quadratic=1.0,
        excess=5.0, price=np.full(6, 2.0), budget=200.0,
    )  # fmt: skip
    settings = fw.Training(epochs=1, batch_size=size)
    for name in ("decoupled", "combined"):
        predictor = fw.GaussianPredictor((64, 64), training=settings, random_state=0)
        rows, _ = predictor.prepare(X, y, X[:2], y[:2])
        objective = predictor.likelihood(rows, None)
        if name == "combined":
            objective = fw.CombinedLearner(budget, predictor, 16).objective(predictor, rows, None)
        job, generator = predictor.job(objective, rows), RowGenerator()
        generator.manual_seed(0)
        complete = settings.completed(job.defaults, size)
        optimiser, batch = optimiser_of(job.network, complete), torch.arange(size)
        times = []
        for _ in range(12):
            cpu = time.process_time()
            step(job, complete, optimiser, batch, generator)
            times.append(time.process_time() - cpu)
        taken[f"{name}_milliseconds"] = 1e3 * float(np.median(times[2:]))
    return taken


def _alone(function: Callable[..., Row], *arguments: Any) -> Row:
    """In a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


MEASURED: dict[str, Callable[..., list[Row]]] = {
    "newsvendor": newsvendor_rows,
    "budget": budget_rows,
    "fits": equal_fits,
    "scenarios": million_scenarios,
    "growth": growth,
    "steps": training_steps,
}
