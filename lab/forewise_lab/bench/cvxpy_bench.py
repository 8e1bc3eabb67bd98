"""What a problem written in CVXPY costs: against the built-in ones, and against cvxpylayers."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from rich.console import Console
from rich.markup import escape

import forewise as fw
from forewise_lab.bench import cvxpy_problems as written
from forewise_lab.bench import instances
from forewise_lab.bench.cvxpy_report import (
    FOREWISE,
    LAYERS,
    AgainstBuiltIn,
    AgainstLayers,
    Construction,
    Findings,
)
from forewise_lab.bench.instances import Instance
from forewise_lab.bench.peers import CvxpyLayersPeer
from forewise_lab.bench.peers.cvxpylayers_layer import (
    SOLVE_AND_DIFFERENTIATE,
    call_layer,
    make_layer,
    quiet_conversions,
)
from forewise_lab.bench.timing import Announce, take_turns
from forewise_lab.machine import description, one_core, write_whole

# cvxpylayers takes seconds for what takes forewise milliseconds.
LAYER_TURNS = 3


@dataclass(frozen=True)
class _Sizes:
    """How large the measured problems are: contexts, scenarios and decisions."""

    newsvendor: tuple[int, int] = (32, 64)
    portfolio: tuple[int, int] = (128, 64)
    layer_contexts: int = 32
    layer_scenarios: tuple[int, ...] = (16, 64)
    n_decisions: int = 100
    lifted: tuple[int, ...] = (16, 64, 1024)


_QUICK = _Sizes((2, 4), (2, 16), 2, (2, 3), 8, (2, 3))


class Pass(NamedTuple):
    """One forward and backward pass: decisions, and the gradient of Σ v·decision."""

    decision: torch.Tensor
    gradient: torch.Tensor


def run_cvxpy_bench(output: Path, repeats: int, console: Console, quick: bool = False) -> Findings:
    """Measure `CvxpyProblem` in turns, on one core; print and write what came out.

    Parameters
    ----------
    output : Path
        Folder for cvxpy.md and cvxpy_machine.txt.
    repeats : int
        Turns of what forewise does; cvxpylayers has three at most.
    console : rich Console
    quick : bool
        A tiny version, for trying it out; its numbers mean little.
    """
    sizes = _QUICK if quick else _Sizes()
    missing = CvxpyLayersPeer().missing()
    if missing:
        console.print(f"[yellow]not measured:[/] {escape(missing)}")
    output.mkdir(parents=True, exist_ok=True)
    wall, cpu = time.perf_counter(), time.process_time()
    with one_core(), console.status("starting") as status:
        announce: Announce = status.update
        built_in = [
            _against_built_in(instance, again, repeats, announce)
            for instance, again in _pairs(sizes)
        ]
        against = [
            _against_layers(instance, repeats, announce, able=not missing)
            for instance in (
                instances.nvqp(n_scenarios, sizes.layer_contexts)
                for n_scenarios in sizes.layer_scenarios
            )
        ]
        constructions = [
            _construction(name, write, sizes, repeats, announce)
            for name, write in _large_problems(sizes.n_decisions).items()
        ]
    found = Findings(
        built_in=built_in,
        layers=against,
        constructions=constructions,
        turns=repeats,
        layer_turns=min(repeats, LAYER_TURNS),
        missing=missing,
        share=(time.process_time() - cpu) / (time.perf_counter() - wall),
    )
    for table in found.tables():
        console.print(table.as_rich(), "")
    write_whole(output / "cvxpy.md", found.as_markdown())
    write_whole(output / "cvxpy_machine.txt", description())
    console.print(f"written to {escape(str(output))}")
    return found


def _pairs(sizes: _Sizes) -> list[tuple[Instance, fw.CvxpyProblem]]:
    """The paper's three problems, and the same in CVXPY."""
    (contexts, scenarios), (many, draws) = sizes.newsvendor, sizes.portfolio
    nv = instances.nv(scenarios, contexts)
    nvqp = instances.nvqp(scenarios, contexts)
    pop = instances.pop(draws, many)
    assert isinstance(nv.problem, fw.Newsvendor)
    assert isinstance(nvqp.problem, fw.QuadraticNewsvendor)
    assert isinstance(pop.problem, fw.Portfolio)
    return [
        (nv, written.newsvendor(nv.problem, nv.program.n_decisions)),
        (nvqp, written.quadratic_newsvendor(nvqp.problem)),
        (pop, written.portfolio(pop.problem)),
    ]


def _against_built_in(
    instance: Instance, again: fw.CvxpyProblem, repeats: int, announce: Announce
) -> AgainstBuiltIn:
    """Both with the interior point; a closed form is of the built-in problem alone."""
    problem = instance.problem
    assert problem is not None
    calls = {
        "built-in": partial(_pass, problem, instance, fw.InteriorPointSolver()),
        "in CVXPY": partial(_pass, again, instance, fw.InteriorPointSolver()),
    }
    if not isinstance(fw.AutoSolver().choice(problem), fw.InteriorPointSolver):
        calls["closed form"] = partial(_pass, problem, instance, fw.AutoSolver())
    timed = take_turns(calls, repeats, lambda text: announce(f"{instance.name}: {text}"))
    theirs, ours = timed["built-in"].result, timed["in CVXPY"].result
    closed_form = timed.get("closed form")
    return AgainstBuiltIn(
        name=instance.name,
        title=f"{instance.title}, M = {instance.n_scenarios}",
        built_in=timed["built-in"].median,
        written=timed["in CVXPY"].median,
        closed_form=None if closed_form is None else closed_form.median,
        decisions=_difference(ours.decision, theirs.decision),
        gradients=_difference(ours.gradient, theirs.gradient),
    )


def _pass(problem: fw.Problem, instance: Instance, solver: Any) -> Pass:
    leaf = instance.leaves()["scenarios"]
    decision = fw.solve(problem, fw.Scenarios(leaf), solver).decision
    (gradient,) = torch.autograd.grad((decision * instance.direction()).sum(), leaf)
    return Pass(decision.detach(), gradient)


def _against_layers(
    instance: Instance, repeats: int, announce: Announce, able: bool
) -> AgainstLayers:
    """Making the problem and lifting it to the scenarios, then forward and backward passes."""
    problem, scenarios = instance.problem, instance.scenarios
    assert isinstance(problem, fw.QuadraticNewsvendor)
    assert scenarios is not None
    turns, M = min(repeats, LAYER_TURNS), instance.n_scenarios
    forms = dict(zip(LAYERS, (written.lifted_in_a_loop, written.lifted_at_once), strict=True))

    def say(text: str) -> None:
        announce(f"{instance.name}, M = {M}: {text}")

    def ours() -> fw.CvxpyProblem:
        again = written.quadratic_newsvendor(problem)
        again.program(scenarios)
        return again

    def theirs(write: Callable[..., written.Lifted]) -> tuple[written.Lifted, Any]:
        lifted = write(problem, M)
        return lifted, make_layer(lifted.problem, lifted.parameters, [lifted.decision])

    builds: dict[str, Callable[[], Any]] = {FOREWISE: ours}
    if able:
        builds |= {name: partial(theirs, write) for name, write in forms.items()}
    built = take_turns(builds, turns, lambda text: say(f"building, {text}"), {})
    passes: dict[str, Callable[[], Pass]] = {
        FOREWISE: partial(_pass, built[FOREWISE].result, instance, fw.AutoSolver())
    }
    for name in LAYERS:
        if name in built:
            lifted, layer = built[name].result
            passes[name] = partial(_layer_pass, lifted, layer, instance)
    timed = take_turns(passes, turns, say, {})
    best = timed[FOREWISE].result
    return AgainstLayers(
        title=f"{instance.title}, M = {M}",
        n_scenarios=M,
        build={name: value.median for name, value in built.items()},
        both={name: value.median for name, value in timed.items()},
        decisions={n: _difference(v.result.decision, best.decision) for n, v in timed.items()},
        gradients={n: _difference(v.result.gradient, best.gradient) for n, v in timed.items()},
    )


def _layer_pass(lifted: written.Lifted, layer: Any, instance: Instance) -> Pass:
    leaf = instance.leaves()["scenarios"]
    (decision,) = call_layer(layer, lifted.values(leaf), SOLVE_AND_DIFFERENTIATE)
    with quiet_conversions():
        (gradient,) = torch.autograd.grad((decision * instance.direction()).sum(), leaf)
    return Pass(decision.detach(), gradient)


def _large_problems(n: int) -> dict[str, Callable[[], fw.CvxpyProblem]]:
    """Problems with n decisions; each call writes and makes one anew."""
    costs = {name: np.resize(values, n) for name, values in instances.NEWSVENDOR_COSTS.items()}
    budget = instances.NEWSVENDOR_BUDGET * n / 6
    full = {
        name: np.diag(values) + 1.0 if name.endswith("quadratic") else values
        for name, values in costs.items()
    }
    expected = np.abs(np.random.default_rng(0).normal(0.3, 0.1, size=n))
    return {
        "nv": partial(written.newsvendor, fw.Newsvendor(shortage=100.0, excess=900.0), n),
        "nvqp": partial(
            written.quadratic_newsvendor, fw.QuadraticNewsvendor(**costs, budget=budget)
        ),
        "nvqp, full matrices": partial(
            written.quadratic_newsvendor, fw.QuadraticNewsvendor(**full, budget=budget)
        ),
        "pop": partial(written.portfolio, fw.Portfolio(expected, minimum_return=1.0)),
        f"transport to 10 towns, {10 * n + 10} recourse variables": partial(written.transport, n),
    }


def _construction(
    name: str, write: Callable[[], fw.CvxpyProblem], sizes: _Sizes, repeats: int, announce: Announce
) -> Construction:
    """Making a problem, which no scenario is needed for, and lifting it to some."""
    problem, generator = write(), np.random.default_rng(0)
    calls: dict[str, Callable[[], Any]] = {"made": write}
    for M in sizes.lifted:
        draws = generator.uniform(0.0, 20.0, size=(sizes.layer_contexts, M, problem.n_outcomes))
        calls[str(M)] = partial(problem.program, fw.Scenarios(draws))
    timed = take_turns(
        calls, repeats, lambda text: announce(f"{name}, {sizes.n_decisions} decisions: {text}")
    )
    return Construction(
        name=name,
        n_decisions=sizes.n_decisions,
        n_contexts=sizes.layer_contexts,
        seconds=timed["made"].median,
        lifting={M: timed[str(M)].median for M in sizes.lifted},
    )


def _difference(ours: torch.Tensor, theirs: torch.Tensor) -> float:
    """The largest difference of two entries, relative to those above 1."""
    return float(((ours - theirs).abs() / theirs.abs().clamp_min(1.0)).max())
