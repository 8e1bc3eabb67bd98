"""What a problem written in CVXPY costs: against the built-in ones, and against cvxpylayers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.markup import escape

import forewise as fw
from forewise_lab.bench import cvxpy_problems as written
from forewise_lab.bench import instances
from forewise_lab.bench.instances import Instance
from forewise_lab.bench.peers import CvxpyLayersPeer, ForewisePeer
from forewise_lab.bench.peers import cvxpylayers_layer as layers
from forewise_lab.bench.results import (
    ABSENT,
    LEGENDS,
    Bar,
    TextTable,
    at_least,
    at_most,
    bars_table,
    seconds,
)
from forewise_lab.bench.timing import Announce, take_turns
from forewise_lab.machine import description, one_core, write_whole

FOREWISE = ForewisePeer.name
LOOP, AT_ONCE = "cvxpylayers, a loop over scenarios", "cvxpylayers, all scenarios in one array"
LAYERS = LOOP, AT_ONCE
# cvxpylayers takes seconds for what takes forewise milliseconds.
LAYER_TURNS = 3
# The bars.
LONGEST_RATIO, LARGEST_DIFFERENCE, LONGEST_CONSTRUCTION = 2.0, 1e-6, 0.1
LEAST_SPEED_UP, LEAST_BUILD_SPEED_UP = 50.0, 10.0
# Below this share of CPU time the report says that the core was shared.
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


@dataclass(frozen=True)
class AgainstBuiltIn:
    """Seconds of a forward and backward pass, built in and in CVXPY, and how they differ."""

    name: str
    title: str
    built_in: float
    written: float
    closed_form: float | None
    decisions: float
    gradients: float

    def bars(self) -> tuple[Bar, Bar]:
        ratio, largest = self.written / self.built_in, max(self.decisions, self.gradients)
        what = f"{self.name}: in CVXPY / built-in, forward + backward"
        other = f"{self.name}: largest difference of decisions and gradients"
        return (
            at_most(what, f"{LONGEST_RATIO:g}×", LONGEST_RATIO, ratio, "{:.2f}×"),
            at_most(other, f"{LARGEST_DIFFERENCE:g}", LARGEST_DIFFERENCE, largest, "{:.0e}"),
        )

    def row(self) -> tuple[str, ...]:
        differences = (f"{value:.0e}" for value in (self.decisions, self.gradients))
        times = (seconds(value) for value in (self.built_in, self.written))
        ratio = f"{self.written / self.built_in:.2f}×"
        return (self.title, *times, ratio, *differences, seconds(self.closed_form))


@dataclass(frozen=True)
class AgainstLayers:
    """Seconds and differences from forewise, by who was measured."""

    title: str
    n_scenarios: int
    build: dict[str, float]
    both: dict[str, float]
    decisions: dict[str, float]
    gradients: dict[str, float]

    def table(self) -> TextTable:
        heads = "who, build, ratio of builds, forward + backward, ratio, decisions, gradients"
        rows: list[tuple[str, ...]] = []
        for name in (FOREWISE, *LAYERS):
            cells = [ABSENT] * 6
            if name in self.both:
                both = ((own[name], own[FOREWISE]) for own in (self.build, self.both))
                cells = [cell for a, b in both for cell in (seconds(a), f"{a / b:.1f}×")]
                cells += [f"{found[name]:.0e}" for found in (self.decisions, self.gradients)]
            rows.append((name, *cells))
        return TextTable(self.title, tuple(heads.split(", ")), rows, FOREWISE)


@dataclass(frozen=True)
class Construction:
    """Seconds for making a problem, and for lifting it to a number of scenarios."""

    name: str
    n_decisions: int
    n_contexts: int
    seconds: float
    lifting: dict[int, float]


@dataclass(frozen=True)
class Findings:
    """All that one run measured; `share` is CPU time over wall time of the whole run."""

    built_in: Sequence[AgainstBuiltIn]
    layers: Sequence[AgainstLayers]
    constructions: Sequence[Construction]
    turns: int
    layer_turns: int
    missing: str | None
    share: float

    def bars(self) -> list[Bar]:
        times, differences = zip(*(row.bars() for row in self.built_in), strict=True)
        faster = [
            at_least(f"M = {row.n_scenarios}: faster than {LOOP}, forward + backward",
                     LEAST_SPEED_UP, row.both[FOREWISE], row.both.get(LOOP))
            for row in self.layers
        ]  # fmt: skip
        last = self.layers[-1]
        what = f"M = {last.n_scenarios}: building faster than {LOOP}"
        build = at_least(what, LEAST_BUILD_SPEED_UP, last.build[FOREWISE], last.build.get(LOOP))
        slowest = max(self.constructions, key=lambda row: row.seconds)
        what = f"construction, {slowest.n_decisions} decisions, any M: the slowest, {slowest.name}"
        wanted, met = f"≤ {seconds(LONGEST_CONSTRUCTION)}", slowest.seconds <= LONGEST_CONSTRUCTION
        made = Bar(what, wanted, seconds(slowest.seconds), met)
        return [*times, *differences, *faster, build, made]

    def tables(self) -> list[TextTable]:
        """The bars last, because that is where a terminal's reader looks first."""
        columns = ("interior point, forward + backward", "built-in", "in CVXPY", "ratio",
                   "decisions", "gradients", "closed form")  # fmt: skip
        rows = [row.row() for row in self.built_in]
        first = self.constructions[0]
        heads = ("problem", "construction", *(f"then to M = {M}" for M in first.lifting))
        made = [
            (row.name, seconds(row.seconds), *(seconds(value) for value in row.lifting.values()))
            for row in self.constructions
        ]
        title = (
            f"Construction with {first.n_decisions} decisions, and lifting to the scenarios of "
            f"{first.n_contexts} contexts"
        )
        return [
            TextTable("The paper's problems, built-in and in CVXPY", columns, rows),
            *(row.table() for row in self.layers),
            TextTable(title, heads, made),
            bars_table(self.bars(), "The bars for problems written in CVXPY"),
        ]

    def as_markdown(self) -> str:
        *others, bars = (table.as_markdown() for table in self.tables())
        notes = [f"Not measured: {self.missing}."] if self.missing else []
        if self.share < _QUIET:
            notes.append(
                f"Other work ran on the core meanwhile: this run had {self.share:.0%} of it. Times "
                "are longer than on a quiet machine; ratios, taken in turns, less so."
            )
        legend = LEGENDS["cvxpy"].format(turns=self.turns, layer_turns=self.layer_turns)
        return "\n\n".join(["# Problems written in CVXPY", legend, *notes, bars, *others]) + "\n"


def run_cvxpy_bench(output: Path, repeats: int, console: Console, quick: bool = False) -> Findings:
    """Measure `CvxpyProblem` in turns, on one core; print, and write cvxpy.md to `output`.

    `repeats` are the turns of what forewise does; cvxpylayers has three at most. `quick` is a tiny
    version, whose numbers mean little.
    """
    sizes = _QUICK if quick else Sizes()
    missing = CvxpyLayersPeer().missing()
    if missing:
        console.print(f"[yellow]not measured:[/] {escape(missing)}")
    output.mkdir(parents=True, exist_ok=True)
    wall, cpu = time.perf_counter(), time.process_time()
    with one_core(), console.status("starting") as status:
        lifted = [instances.nvqp(M, sizes.layer_contexts) for M in sizes.layer_scenarios]
        found = Findings(
            [_against_built_in(*pair, repeats, status.update) for pair in _pairs(sizes)],
            [_against_layers(one, repeats, status.update, able=not missing) for one in lifted],
            [_construction(*p, sizes, repeats, status.update) for p in _large(sizes.n_decisions)],
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
    theirs, ours, closed_form = timed["built-in"], timed["in CVXPY"], timed.get("closed form")
    return AgainstBuiltIn(
        instance.name,
        f"{instance.title}, M = {instance.n_scenarios}",
        theirs.median,
        ours.median,
        None if closed_form is None else closed_form.median,
        *map(_difference, ours.result, theirs.result),
    )


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


def _against_layers(
    instance: Instance, repeats: int, announce: Announce, able: bool
) -> AgainstLayers:
    """Making the problem and lifting it to the scenarios, then forward and backward passes."""
    problem, scenarios = instance.problem, instance.scenarios
    assert isinstance(problem, fw.QuadraticNewsvendor)
    assert scenarios is not None
    turns, M = min(repeats, LAYER_TURNS), instance.n_scenarios

    def say(text: str) -> None:
        announce(f"{instance.name}, M = {M}: {text}")

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
    built = take_turns(builds, turns, lambda text: say(f"building, {text}"), {})
    passes: dict[str, Callable[[], Pass]] = {
        FOREWISE: partial(_pass, built[FOREWISE].result, instance, fw.AutoSolver())
    }
    for name in LAYERS:
        if name in built:
            lifted, layer = built[name].result
            passes[name] = partial(_layer_pass, lifted, layer, instance)
    timed = take_turns(passes, turns, say, {})
    medians = [{name: own.median for name, own in found.items()} for found in (built, timed)]
    differences = [
        {name: _difference(own.result[i], timed[FOREWISE].result[i]) for name, own in timed.items()}
        for i in range(2)
    ]
    return AgainstLayers(f"{instance.title}, M = {M}", M, *medians, *differences)


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
) -> Construction:
    problem, generator = write(), np.random.default_rng(0)
    calls: dict[str, Callable[[], Any]] = {"made": write}
    for M in sizes.lifted:
        draws = generator.uniform(0.0, 20.0, size=(sizes.layer_contexts, M, problem.n_outcomes))
        calls[str(M)] = partial(problem.program, fw.Scenarios(draws))
    n = sizes.n_decisions
    timed = take_turns(calls, repeats, lambda text: announce(f"{name}, {n} decisions: {text}"))
    lifting = {M: timed[str(M)].median for M in sizes.lifted}
    return Construction(name, n, sizes.layer_contexts, timed["made"].median, lifting)


def _difference(ours: torch.Tensor, theirs: torch.Tensor) -> float:
    """The largest difference of two entries, relative to those above 1."""
    return float(((ours - theirs).abs() / theirs.abs().clamp_min(1.0)).max())
