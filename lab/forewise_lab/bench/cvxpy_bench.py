"""What a problem written in CVXPY costs: against the built-in ones, and against cvxpylayers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from rich.console import Console

import forewise as fw
from forewise_lab.bench import cvxpy_problems as written
from forewise_lab.bench import instances
from forewise_lab.bench.instances import Instance
from forewise_lab.bench.peers import cvxpylayers_layer as layers
from forewise_lab.bench.peers.cvxpylayers_layer import CvxpyLayersPeer
from forewise_lab.bench.peers.solvers import ForewisePeer
from forewise_lab.bench.results import (
    LEGENDS,
    Bar,
    Page,
    TextTable,
    at_least,
    at_most,
    bars_table,
    seconds,
)
from forewise_lab.bench.timing import Announce, take_turns
from forewise_lab.machine import one_core

FOREWISE = ForewisePeer.name
LOOP, AT_ONCE = "cvxpylayers, a loop over scenarios", "cvxpylayers, all scenarios in one array"
LAYERS = LOOP, AT_ONCE
BUILT_IN, IN_CVXPY, CLOSED_FORM = "built-in", "in CVXPY", "closed form"
DIFFERENCES = ["decisions", "gradients"]
# cvxpylayers takes seconds for what takes forewise milliseconds.
LAYER_TURNS = 3
# The bars.
LONGEST_RATIO, LARGEST_DIFFERENCE, LONGEST_CONSTRUCTION = 2.0, 1e-6, 0.1
LEAST_SPEED_UP, LEAST_BUILD_SPEED_UP = 50.0, 10.0
# Below this share of CPU time the page says that the core was shared.
_QUIET = 0.9


@dataclass(frozen=True)
class Sizes:
    """Contexts, scenarios and decisions of the measured problems."""

    newsvendor: tuple[int, int] = (32, 64)
    portfolio: tuple[int, int] = (128, 64)
    layer_contexts: int = 32
    layer_scenarios: tuple[int, ...] = (16, 64)
    n_decisions: int = 100
    lifted: tuple[int, ...] = (16, 64, 1024)


_QUICK = Sizes((2, 4), (2, 16), 2, (2, 3), 8, (2, 3))

#: Decisions, and the gradient of Σ v·decision.
Pass = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True, eq=False)
class Findings:
    """Medians in seconds, and the largest differences of decisions and gradients.

    `built_in` has a row for each of the paper's problems; `layers`, by M, one for forewise and each
    use of cvxpylayers; `constructions` one for each large problem: making it, and lifting it to
    each M. `share` is CPU time over wall time of the whole run.
    """

    built_in: pd.DataFrame
    layers: dict[int, pd.DataFrame]
    constructions: pd.DataFrame
    share: float

    def bars(self) -> list[Bar]:
        """Every bar with what was measured."""
        ratios = self.built_in[IN_CVXPY] / self.built_in[BUILT_IN]
        largest = self.built_in[DIFFERENCES].max(axis=1)
        bars = [
            at_most(f"{name}: in CVXPY / built-in, forward + backward",
                    f"{LONGEST_RATIO:g}×", LONGEST_RATIO, ratio, "{:.2f}×")
            for name, ratio in ratios.items()
        ]  # fmt: skip
        bars += [
            at_most(f"{name}: largest difference of decisions and gradients",
                    f"{LARGEST_DIFFERENCE:g}", LARGEST_DIFFERENCE, value, "{:.0e}")
            for name, value in largest.items()
        ]  # fmt: skip
        for M, found in self.layers.items():
            what = f"M = {M}: faster than {LOOP}, forward + backward"
            both = found["forward + backward"]
            bars.append(at_least(what, LEAST_SPEED_UP, both[FOREWISE], both.get(LOOP)))
        build = found["build"]
        what = f"M = {M}: building faster than {LOOP}"
        bars.append(at_least(what, LEAST_BUILD_SPEED_UP, build[FOREWISE], build.get(LOOP)))
        made = self.constructions["construction"]
        what = f"construction, any M: the slowest, {made.idxmax()}"
        return [*bars, Bar(what, f"≤ {seconds(LONGEST_CONSTRUCTION)}", seconds(made.max()),
                           bool(made.max() <= LONGEST_CONSTRUCTION))]  # fmt: skip

    def tables(self) -> list[TextTable]:
        """The bars last."""
        own = self.built_in
        ratio = (own[IN_CVXPY] / own[BUILT_IN]).map("{:.2f}×".format)
        shown = pd.concat([_times(own[[BUILT_IN, IN_CVXPY]]), ratio.rename("ratio"),
                           _differences(own), _times(own[[CLOSED_FORM]])], axis=1)  # fmt: skip
        shown = shown.set_axis(own["title"].rename("interior point, forward + backward"))
        tables = [_table("The paper's problems, built-in and in CVXPY", shown)]
        for M, found in self.layers.items():
            times = found[["build", "forward + backward"]]
            ratios = (times / times.loc[FOREWISE]).map("{:.1f}×".format)
            both = pd.concat([_times(times), ratios.add_prefix("ratio of ")], axis=1)
            shown = pd.concat([both, _differences(found)], axis=1).rename_axis("who")
            tables.append(_table(f"The quadratic newsvendor, M = {M}", shown, FOREWISE))
        made = _times(self.constructions).rename_axis("problem")
        tables.append(_table("Construction, and lifting to the scenarios of some contexts", made))
        return [*tables, bars_table(self.bars(), "The bars for problems written in CVXPY")]


def _times(table: pd.DataFrame) -> pd.DataFrame:
    return table.map(lambda value: seconds(None if np.isnan(value) else value))


def _differences(table: pd.DataFrame) -> pd.DataFrame:
    return table[DIFFERENCES].map("{:.0e}".format)


def _table(title: str, shown: pd.DataFrame, highlighted: str = "") -> TextTable:
    rows = [tuple(map(str, row)) for row in shown.itertuples()]
    return TextTable(title, (str(shown.index.name), *shown.columns), rows, highlighted)


def run_cvxpy_bench(output: Path, repeats: int, console: Console, quick: bool = False) -> Findings:
    """Measure `CvxpyProblem` in turns, on one core; print, and write cvxpy.md to `output`.

    `repeats` are the turns of what forewise does; cvxpylayers has three at most. `quick` is a tiny
    version, whose numbers mean little.
    """
    sizes, turns = _QUICK if quick else Sizes(), min(repeats, LAYER_TURNS)
    missing = CvxpyLayersPeer().missing()
    output.mkdir(parents=True, exist_ok=True)
    wall, cpu = time.perf_counter(), time.process_time()
    with one_core(), console.status("starting") as status:
        say = status.update
        lifted = [instances.nvqp(M, sizes.layer_contexts) for M in sizes.layer_scenarios]
        made = {name: _construction(name, write, sizes, repeats, say)
                for name, write in _large(sizes.n_decisions)}  # fmt: skip
        found = Findings(
            pd.DataFrame([_against_built_in(*p, repeats, say) for p in _pairs(sizes)])
            .set_index("name"),
            {one.n_scenarios: _against_layers(one, turns, say, not missing) for one in lifted},
            pd.DataFrame.from_dict(made, orient="index"),
            share=(time.process_time() - cpu) / (time.perf_counter() - wall),
        )  # fmt: skip
    notes = [f"Not measured: {missing}."] if missing else []
    if found.share < _QUIET:
        notes.append(
            f"Other work ran on the core meanwhile: this run had {found.share:.0%} of it. Times "
            "are longer than on a quiet machine; ratios, taken in turns, less so."
        )
    legend = LEGENDS["cvxpy"].format(turns=repeats, layer_turns=turns)
    page = Page("Problems written in CVXPY", legend, found.tables(), {"Remarks": notes})
    page.publish(output, "cvxpy", console)
    return found


def _pairs(sizes: Sizes) -> Iterator[tuple[Instance, fw.CvxpyProblem]]:
    (contexts, scenarios), (many, draws) = sizes.newsvendor, sizes.portfolio
    nv, nvqp = instances.nv(scenarios, contexts), instances.nvqp(scenarios, contexts)
    pop = instances.pop(draws, many)
    assert isinstance(nv.problem, fw.Newsvendor)
    assert isinstance(nvqp.problem, fw.QuadraticNewsvendor)
    assert isinstance(pop.problem, fw.Portfolio)
    yield nv, written.newsvendor(nv.problem, nv.program.n_decisions)
    yield nvqp, written.quadratic_newsvendor(nvqp.problem)
    yield pop, written.portfolio(pop.problem)


def _against_built_in(
    instance: Instance, again: fw.CvxpyProblem, repeats: int, announce: Announce
) -> dict[str, Any]:
    """Both with the interior point; a closed form is of the built-in problem alone."""
    problem = instance.problem
    assert problem is not None
    calls = {
        BUILT_IN: partial(_pass, problem, instance, fw.InteriorPointSolver()),
        IN_CVXPY: partial(_pass, again, instance, fw.InteriorPointSolver()),
    }
    if not isinstance(fw.AutoSolver().choice(problem), fw.InteriorPointSolver):
        calls[CLOSED_FORM] = partial(_pass, problem, instance, fw.AutoSolver())
    timed = take_turns(calls, repeats, lambda text: announce(f"{instance.name}: {text}"))
    differences = map(_difference, timed[IN_CVXPY].result, timed[BUILT_IN].result)
    return {
        "name": instance.name,
        "title": f"{instance.title}, M = {instance.n_scenarios}",
        CLOSED_FORM: float("nan"),
        **{name: own.median for name, own in timed.items()},
        **dict(zip(DIFFERENCES, differences, strict=True)),
    }


def _pass(problem: fw.Problem, instance: Instance, solver: Any) -> Pass:
    leaf = instance.leaves()["scenarios"]
    decision = fw.solve(problem, fw.Scenarios(leaf), solver).decision
    (gradient,) = torch.autograd.grad((decision * instance.direction()).sum(), leaf)
    return decision.detach(), gradient


def _layer_pass(lifted: written.Lifted, layer: Any, instance: Instance) -> Pass:
    leaf = instance.leaves()["scenarios"]
    (decision,) = layers.call_layer(layer, lifted.values(leaf), layers.SOLVE_AND_DIFFERENTIATE)
    with layers.quiet_conversions():
        (gradient,) = torch.autograd.grad((decision * instance.direction()).sum(), leaf)
    return decision.detach(), gradient


def _against_layers(instance: Instance, turns: int, announce: Announce, able: bool) -> pd.DataFrame:
    """Making the problem and lifting it to the scenarios, then forward and backward passes."""
    problem, scenarios, M = instance.problem, instance.scenarios, instance.n_scenarios
    assert isinstance(problem, fw.QuadraticNewsvendor)
    assert scenarios is not None

    def ours() -> fw.CvxpyProblem:
        again = written.quadratic_newsvendor(problem)
        again.program(scenarios)
        return again

    def theirs(write: Callable[..., written.Lifted]) -> tuple[written.Lifted, Any]:
        lifted = write(problem, M)
        return lifted, layers.make_layer(lifted.problem, lifted.parameters, [lifted.decision])

    builds: dict[str, Callable[[], Any]] = {FOREWISE: ours}
    if able:
        builds[LOOP] = partial(theirs, written.lifted_in_a_loop)
        builds[AT_ONCE] = partial(theirs, written.lifted_at_once)
    built = take_turns(builds, turns, lambda text: announce(f"M = {M}: building, {text}"), {})
    passes: dict[str, Callable[[], Pass]] = {
        FOREWISE: partial(_pass, built[FOREWISE].result, instance, fw.AutoSolver())
    }
    for name in LAYERS:
        if name in built:
            lifted, layer = built[name].result
            passes[name] = partial(_layer_pass, lifted, layer, instance)
    timed = take_turns(passes, turns, lambda text: announce(f"M = {M}: {text}"), {})
    ours_found = timed[FOREWISE].result
    rows = {
        name: [built[name].median, own.median, *map(_difference, own.result, ours_found)]
        for name, own in timed.items()
    }
    columns = ["build", "forward + backward", *DIFFERENCES]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns)


def _large(n: int) -> Iterator[tuple[str, Callable[[], fw.CvxpyProblem]]]:
    """Problems with n decisions; each call writes and makes one anew."""
    costs = {name: np.resize(values, n) for name, values in instances.NEWSVENDOR_COSTS.items()}
    budget = instances.NEWSVENDOR_BUDGET * n / 6
    full = {
        name: np.diag(values) + 1.0 if name.endswith("quadratic") else values
        for name, values in costs.items()
    }
    expected = np.abs(np.random.default_rng(0).normal(0.3, 0.1, size=n))
    nv = fw.Newsvendor(shortage=100.0, excess=900.0)
    yield "nv", partial(written.newsvendor, nv, n)
    for name, terms in (("nvqp", costs), ("nvqp, full matrices", full)):
        problem = fw.QuadraticNewsvendor(**terms, budget=budget)
        yield name, partial(written.quadratic_newsvendor, problem)
    yield "pop", partial(written.portfolio, fw.Portfolio(expected, minimum_return=1.0))
    name = f"transport to 10 towns, {10 * n + 10} recourse variables"
    yield name, partial(written.transport, n)


def _construction(
    name: str, write: Callable[[], fw.CvxpyProblem], sizes: Sizes, repeats: int, announce: Announce
) -> dict[str, float]:
    problem, generator = write(), np.random.default_rng(0)
    calls: dict[str, Callable[[], Any]] = {"construction": write}
    for M in sizes.lifted:
        draws = generator.uniform(0.0, 20.0, size=(sizes.layer_contexts, M, problem.n_outcomes))
        calls[f"then to M = {M}"] = partial(problem.program, fw.Scenarios(draws))
    timed = take_turns(calls, repeats, lambda text: announce(f"{name}: {text}"))
    return {what: own.median for what, own in timed.items()}


def _difference(ours: torch.Tensor, theirs: torch.Tensor) -> float:
    """The largest difference of two entries, relative to those above 1."""
    return float(((ours - theirs).abs() / theirs.abs().clamp_min(1.0)).max())
