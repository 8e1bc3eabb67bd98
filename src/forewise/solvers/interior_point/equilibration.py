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

import numpy as np
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from forewise.problems.programs import ScenarioProgram
from forewise.solvers.interior_point.core import Points, as_arrays
from forewise.solvers.interior_point.verification import ACCEPTED, residuals_of_points
from forewise.solvers.solution import Solution, Status

Solve = Callable[[ScenarioProgram], Solution]

_SPREAD = 10  # powers of two between the units from which on they are used
_ROUNDS = 40  # of fitting rows and columns in turn
_LARGE_COUNTS = 4.0  # times as much as a small one does an entry that is larger than the others
_SMALLEST = 2.0**-50  # of a row's largest coefficient: below, an entry may be rounding noise
_NOISE_BITS = 30.0  # below the longest distance to a row: shorter ones may be rounding noise

# Which units multiply the trailing dimensions of a block: z's, u's, or none (rows).
_UNITS = {
    **{"q": "z", "P": "zz", "G": "-z", "E": "-z", "T": "-z", "F": "-z"},
    **{"d": "u", "D": "uu", "W": "-u", "V": "-u"},
}


def solve_in_units(program: ScenarioProgram, solve: Solve) -> Solution:
    """Solve a program, each context in units of its variables that suit it.

    `solve` must treat every context alone.
    """
    fitted, placed = _exponents(program)
    if placed is None:
        return _solve_in(program, fitted, solve)
    fitted = torch.zeros_like(placed) if fitted is None else fitted
    solution = _solve_in(program, fitted + placed, solve)
    again = _not_accurate_in(program, fitted, solution, placed.any(1))
    if not again:
        return solution
    part, placed, fitted = program.take(_on(program, again)), placed[again], fitted[again]
    other = _solve_in(part, fitted, solve)
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


def _solve_in(program: ScenarioProgram, exponents: torch.Tensor | None, solve: Solve) -> Solution:
    """Solve a program in units of its variables, powers of two; where they are all 1, as it is."""
    changed = [] if exponents is None else exponents.any(1).nonzero().flatten().tolist()
    if not changed or exponents is None:
        return solve(program)
    units = exponents[changed]
    found = _solve_scaled(program.take(_on(program, changed)), units, solve)
    if len(changed) == program.n_contexts:
        return found
    rest = sorted(set(range(program.n_contexts)) - set(changed))
    unsolved = Solution.unsolved(program, [None] * program.n_contexts)
    as_it_is = solve(program.take(_on(program, rest)))
    return unsolved.with_contexts(rest, as_it_is).with_contexts(changed, found)


def _on(program: ScenarioProgram, contexts: list[int]) -> torch.Tensor:
    return torch.tensor(contexts, device=program.weights.device)


def _solve_scaled(program: ScenarioProgram, exponents: torch.Tensor, solve: Solve) -> Solution:
    scaled, (z, u) = _in_units(program, exponents)
    found = solve(scaled)
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
        for place, letter in enumerate(letters):
            if letter != "-":
                shape = [len(units), *(1,) * (block.ndim - 1)]
                shape[place - len(letters)] = -1
                block = block * of[letter].reshape(shape)
        return block

    return program.map(scaled), (of["z"], of["u"].unsqueeze(1))


def _exponents(program: ScenarioProgram) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    """Logarithms of the units that coefficients ask for, and what right-hand sides add to them.

    Each ``(n_contexts, n_z + n_u)``, 0 in contexts that need none; None where no context does.
    """
    entries, right = _pattern(program)
    top = entries.amax(-1, keepdim=True)
    present = entries > _SMALLEST * top
    least = torch.where(present, entries, torch.inf).amin(-1, keepdim=True)
    linking = present & (present.sum(-1, keepdim=True) > 1)
    wide = (top > 2.0**_SPREAD * least).flatten(1).any(1)
    fitted = None
    if bool(wide.any()):
        logs = torch.where(linking, entries.log2(), torch.nan)[wide]
        found = _fit(logs)
        alone = ~linking[wide].any(1)
        usual = torch.where(alone, torch.nan, found).nanmedian(1, keepdim=True).values
        found = torch.where(alone, usual, found).round()
        needed = found.amax(1, keepdim=True) - found.amin(1, keepdim=True) >= _SPREAD
        fitted = entries.new_zeros(len(entries), entries.shape[-1])
        fitted[wide] = torch.where(needed, found, 0.0)
    linked = linking[:, :-1]  # the last row, of the costs, ties no variable to another
    if bool((linked.sum(-1) == entries.shape[-1]).any(1).all()):
        placed = None
    else:
        placed = _placed(entries, right, present, linked, fitted)
    n = program.n_contexts
    return (
        None if fitted is None else fitted.expand(n, -1),
        None if placed is None else placed.expand(n, -1),
    )


def _placed(
    entries: torch.Tensor,
    right: torch.Tensor,
    present: torch.Tensor,
    linked: torch.Tensor,
    fitted: torch.Tensor | None,
) -> torch.Tensor | None:
    """What makes |b| / |a| alike in all groups of variables that rows link, ``(B | 1, columns)``.

    A group all of whose rows pass through the origin gets the unit of the others.
    """
    lead, _, n = entries.shape
    same = bool((linked == linked[:1]).all())
    context, row, column = (linked[:1] if same else linked).nonzero().numpy().T
    n_rows, size = linked.shape[1], (1 if same else lead) * n
    pairs = (context * n_rows + row, context * n + column)
    graph = coo_array((np.ones(len(row), bool), pairs), (int(pairs[0].max(initial=-1)) + 1, size))
    _, labels = connected_components((graph.T @ graph).tocoo(), directed=False)
    labels = np.broadcast_to(labels.reshape(-1, n), (lead, n))

    known = present & ((right > 0) & right.isfinite()).unsqueeze(-1)
    context, row, column = known.nonzero().numpy().T
    length = right.numpy()[context, row] / entries.numpy()[context, row, column]
    length = np.log2(length)
    if fitted is not None:
        length = length - fitted.numpy()[context, column]
    groups = labels + np.arange(lead)[:, None] * (labels.max(initial=0) + 1)
    offsets = torch.from_numpy(_typical(length, groups[context, column], groups))
    offsets = offsets - offsets.nanmedian(1, keepdim=True).values
    found = offsets.nan_to_num(0.0).round()
    needed = found.amax(1, keepdim=True) - found.amin(1, keepdim=True) >= _SPREAD
    return torch.where(needed, found, 0.0) if bool(needed.any()) else None


def _typical(lengths: np.ndarray, group: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The median length of each wanted group, without those that may be noise; NaN for none."""
    medians = np.full(int(wanted.max(initial=0)) + 1, np.nan)
    if len(lengths):
        order = np.lexsort((lengths, group))
        lengths, group = lengths[order], group[order]
        starts = np.flatnonzero(np.diff(group, prepend=-1))
        ends = np.append(starts[1:], len(group))
        kept = lengths > np.repeat(lengths[ends - 1], ends - starts) - _NOISE_BITS
        counts = np.add.reduceat(kept.astype(int), starts)
        medians[group[starts]] = lengths[ends - counts + (counts - 1) // 2]
    return medians[wanted]


def _fit(logs: torch.Tensor) -> torch.Tensor:
    """What to add to the columns so that the entries of each row are alike, ``(B, columns)``.

    Rows and columns are fitted in turn. Absolute deviations count, and those of large entries
    more: a small one may as well be missing.
    """
    there = ~logs.isnan()
    logs = logs.nan_to_num(0.0)
    rows, columns = logs.new_zeros(*logs.shape[:2], 1), logs.new_zeros(len(logs), 1, logs.shape[2])
    for _ in range(_ROUNDS):
        for dim in (2, 1):
            off = logs + columns - rows
            weight = there * torch.where(off > 0, _LARGE_COUNTS, 1.0) / (off.abs() + 1.0)
            step = (weight * off).sum(dim, True) / weight.sum(dim, True).clamp_min(1e-9)
            rows, columns = (rows + step, columns) if dim == 2 else (rows, columns - step)
    return columns.squeeze(1)


def _pattern(program: ScenarioProgram) -> tuple[torch.Tensor, torch.Tensor]:
    """Largest coefficients ``(B | 1, rows, n_z + n_u)``, right-hand sides ``(B | 1, rows)``.

    Of all scenarios; roots of the quadratic costs' diagonals are the last row.
    """
    P, G, E, h, e = (getattr(program, name).detach().abs() for name in "PGEhe")
    D, T, W, F, V, r, s = (_over_scenarios(getattr(program, name)) for name in "DTWFVrs")
    # The diagonals bound a convex cost's other entries: |P_ij|² ≤ P_ii P_jj.
    P, D = (block.diagonal(dim1=-2, dim2=-1).sqrt().unsqueeze(1) for block in (P, D))
    T = torch.nn.functional.pad(T, (0, 0, 0, W.shape[-2] - T.shape[-2]))
    lead = max(block.shape[0] for block in (P, G, E, D, T, W, F, V, h, e, r, s))
    G, E = (torch.nn.functional.pad(block, (0, program.n_recourse)) for block in (G, E))
    pairs = ((G,), (E,), (T, W), (F, V), (P, D))
    rows = [torch.cat([part.expand(lead, -1, -1) for part in pair], dim=-1) for pair in pairs]
    right = [part.expand(lead, -1) for part in (h, e, r, s, h.new_zeros(1, 1))]
    return torch.cat(rows, dim=1).cpu(), torch.cat(right, dim=1).cpu()


def _over_scenarios(block: torch.Tensor) -> torch.Tensor:
    """Largest absolute value over the scenarios, ``(B | 1, rows, columns)``."""
    block = block.detach()
    if not block.numel():
        return block.new_zeros(block.shape[0], *block.shape[2:])
    low, high = torch.aminmax(block, dim=1)
    return torch.maximum(high, -low)
