"""Solvers of rows, for programs with bounds: multipliers of the rows become those of the bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from forewise.problems.bounds import BoundRows
from forewise.problems.programs import ConicProgram, IntegerProgram, ScenarioProgram
from forewise.solvers.solution import Duals, Solution

P = TypeVar("P", ScenarioProgram, ConicProgram, IntegerProgram)


def solve_with_bounds(program: P, solve: Callable[[P], Solution]) -> Solution:
    """Solve a program with bounds by a solver of programs without."""
    plain = program if isinstance(program, ScenarioProgram) else program.plain
    bounds = BoundRows.of(plain)
    rows = bounds.added(plain)
    if isinstance(program, ScenarioProgram):
        return with_duals_of_bounds(bounds, solve(rows))
    return with_duals_of_bounds(bounds, solve(replace(program, plain=rows)))


def with_duals_of_bounds(bounds: BoundRows, solution: Solution) -> Solution:
    """A solution of rows as one of the program with bounds, multipliers and proofs included."""
    certificates = {
        i: proof
        if proof.multipliers is None
        else replace(proof, multipliers=split_duals(bounds, proof.multipliers))
        for i, proof in solution.certificates.items()
    }
    return replace(solution, duals=split_duals(bounds, solution.duals), certificates=certificates)


def split_duals(bounds: BoundRows, duals: Duals) -> Duals:
    """Multipliers of a program's rows and bounds, from those of the rows that they became."""
    inequality, equality, *first = bounds.first.split(duals.inequality, duals.equality)
    scenario, equal, *recourse = bounds.recourse.split(
        duals.scenario_inequality, duals.scenario_equality
    )
    return Duals(inequality, equality, scenario, equal, *first, *recourse)


def joined_duals(bounds: BoundRows, duals: Duals) -> Duals:
    """The inverse of `split_duals`."""
    inequality, equality = bounds.first.joined(
        duals.inequality, duals.equality, duals.lower, duals.upper
    )
    scenario, equal = bounds.recourse.joined(
        duals.scenario_inequality,
        duals.scenario_equality,
        duals.recourse_lower,
        duals.recourse_upper,
    )
    return Duals(inequality, equality, scenario, equal)
