"""Units of the variables: programs whose columns are of very different size, brought to one.

Beside losses around 1e8, neither a path nor a residual relative to the largest variable can see
holdings around 1. Such contexts are solved, and verified, in units of the variables in which the
coefficients of each row that links variables, and the roots of the quadratic costs' diagonals, are
alike. Rows say nothing of how large variables are that none of them links, directly or through
others: there the right-hand sides may, or a loose bound may mislead. Where they say something else
than the coefficients, a solution must be accurate in both units. Rows need no scaling: residuals
are relative to a row's largest coefficient. Units are powers of two, so that they round nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch

from forewise.problems.programs import ScenarioProgram
from forewise.solvers.interior_point.core import (
    Points,
    ProgramArrays,
    as_arrays,
    balanced_units,
)
from forewise.solvers.interior_point.verification import ACCEPTED, residuals_of_points
from forewise.solvers.interior_point.warm_start import start_in_units, start_of
from forewise.solvers.solution import Solution, Status

Solve = Callable[[ScenarioProgram, ProgramArrays, Points | None], Solution]
#: Exponents (n_contexts, n_z + n_u) by the coefficients, and what is added by the right-hand sides.
Units = tuple[torch.Tensor, torch.Tensor | None]

# Which units multiply the trailing dimensions of a block: z's, u's, or none (rows).
_UNITS = {
    **{"q": "z", "P": "zz", "G": "-z", "E": "-z", "T": "-z", "F": "-z"},
    **{"d": "u", "D": "uu", "W": "-u", "V": "-u"},
}


def units_of(program: ScenarioProgram) -> tuple[ProgramArrays, Units | None]:
    """The program's arrays, and the units of its variables; None where all of them are 1."""
    arrays = as_arrays(program)
    fitted, placed = _exponents(arrays)
    return arrays, None if placed is None and not fitted.any() else (fitted, placed)


def solve_in_units(
    program: ScenarioProgram, units: Units, solve: Solve, start: Points | None = None
) -> Solution:
    """Solve a program, each context in units of its variables that suit it, from `units_of`.

    `solve` must treat every context alone.
    """
    fitted, placed = units
    if placed is None:
        return _solve_in(program, fitted, solve, start)
    solution = _solve_in(program, fitted + placed, solve, start)
    again = _not_accurate_in(program, fitted, solution, placed.any(1))
    if not again:
        return solution
    part, placed, fitted = program.take(_on(program, again)), placed[again], fitted[again]
    other = _solve_in(part, fitted, solve, None)
    wrong = _not_accurate_in(part, fitted + placed, other, placed.any(1))
    unsolved = Solution.unsolved(program, [None] * len(wrong))
    return solution.with_contexts(again, other.with_contexts(wrong, unsolved) if wrong else other)


def _not_accurate_in(
    program: ScenarioProgram, exponents: torch.Tensor, found: Solution, asked: torch.Tensor
) -> list[int]:
    """Which of the contexts asked for are inaccurate, or were not solved accurately in other units.

    What was proved of a context, that it is infeasible say, holds in any units.
    """
    contexts = [
        i
        for i in asked.nonzero().flatten().tolist()
        if found.status[i] in (Status.OPTIMAL, Status.INACCURATE)
    ]
    if not contexts:
        return []
    scaled, (z, u) = _in_units(program.take(_on(program, contexts)), exponents[contexts])
    duals = found.duals
    parts = (
        found.decision[contexts] / z,
        found.recourse[contexts] / u,
        *(part[contexts] for part in (duals.inequality, duals.scenario_inequality)),
        *(part[contexts] for part in (duals.equality, duals.scenario_equality)),
    )
    points = Points(*(part.detach().cpu().numpy() for part in parts))
    worst = residuals_of_points(as_arrays(scaled), points, program.weights.device).worst
    return [i for i, ok in zip(contexts, (worst <= ACCEPTED).tolist(), strict=True) if not ok]


def _solve_in(
    program: ScenarioProgram, exponents: torch.Tensor, solve: Solve, start: Points | None
) -> Solution:
    """Solve a program in units of its variables, powers of two; where they are all 1, as it is."""
    changed = exponents.any(1).nonzero().flatten().tolist()
    if not changed:
        return solve(program, as_arrays(program), start)
    units = exponents[changed]
    part = program.take(_on(program, changed))
    found = _solve_scaled(part, units, solve, start_of(start, changed))
    if len(changed) == program.n_contexts:
        return found
    rest = sorted(set(range(program.n_contexts)) - set(changed))
    unsolved = Solution.unsolved(program, [None] * program.n_contexts)
    unchanged = program.take(_on(program, rest))
    as_it_is = solve(unchanged, as_arrays(unchanged), start_of(start, rest))
    return unsolved.with_contexts(rest, as_it_is).with_contexts(changed, found)


def _on(program: ScenarioProgram, contexts: list[int]) -> torch.Tensor:
    return torch.tensor(contexts, device=program.weights.device)


def _solve_scaled(
    program: ScenarioProgram, exponents: torch.Tensor, solve: Solve, start: Points | None
) -> Solution:
    scaled, (z, u) = _in_units(program, exponents)
    found = solve(scaled, as_arrays(scaled), start_in_units(start, z, u))
    certificates = {
        i: certificate
        if certificate.decision_ray is None or certificate.recourse_ray is None
        else replace(
            certificate,
            decision_ray=certificate.decision_ray * z[i],
            recourse_ray=certificate.recourse_ray * u[i],
        )
        for i, certificate in found.certificates.items()
    }
    return replace(
        found, decision=found.decision * z, recourse=found.recourse * u, certificates=certificates
    )


def _in_units(
    program: ScenarioProgram, exponents: torch.Tensor
) -> tuple[ScenarioProgram, tuple[torch.Tensor, torch.Tensor]]:
    """A program in units 2^exponents ``(n_contexts, n_z + n_u)``, and those of z and u."""
    units = torch.exp2(exponents).to(program.weights)
    of = {"z": units[:, : program.n_decisions], "u": units[:, program.n_decisions :]}

    def scaled(name: str, block: torch.Tensor) -> torch.Tensor:
        letters = _UNITS.get(name, "")
        if name in program.sparse:
            pattern = program.sparse[name]
            for letter, places in zip(letters, (pattern.rows, pattern.columns), strict=True):
                if letter != "-":
                    factors = of[letter][:, places]
                    block = block * factors.reshape(len(units), *(1,) * (block.ndim - 2), -1)
            return block
        for place, letter in enumerate(letters):
            if letter != "-":
                shape = [len(units), *(1,) * (block.ndim - 1)]
                shape[place - len(letters)] = -1
                block = block * of[letter].reshape(shape)
        return block

    return program.map(scaled), (of["z"], of["u"].unsqueeze(1))


def _exponents(arrays: ProgramArrays) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Logarithms of the units that coefficients ask for, and what right-hand sides add to them.

    Each ``(n_contexts, n_z + n_u)``, 0 in contexts that need none; the second is None where no
    context does. `src/core/balance.hpp` finds them.
    """
    fitted, placed = (
        torch.from_numpy(part).expand(len(arrays.weights), -1) for part in balanced_units(arrays)
    )
    return fitted, placed if bool(placed.any()) else None
