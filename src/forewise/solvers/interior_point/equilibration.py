"""Units of the variables: programs whose columns are of very different size, brought to one.

Beside losses around 1e8, neither a path nor a residual relative to the largest variable can see
holdings around 1. Such contexts are solved, and verified, in units of the variables in which the
coefficients of each row that links variables, and the roots of the quadratic costs' diagonals, are
alike. A variable that no row links to others is measured by the right-hand sides of its rows. Rows
need no scaling: residuals are relative to a row's largest coefficient. Units are powers of two, so
that they round nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch

from forewise.problems.programs import ScenarioProgram
from forewise.solvers.solution import Solution

_SPREAD = 16  # powers of two between the units from which on they are used
_ROUNDS = 40  # of fitting rows and columns in turn
_LARGE_COUNTS = 4.0  # times as much as a small one does an entry that is larger than the others
_SMALLEST = 2.0**-50  # of a row's largest coefficient: below, an entry may be rounding noise
_NOISE_BITS = 30.0  # below the longest distance to a row: shorter ones may be rounding noise

# Which units multiply the trailing dimensions of a block: z's, u's, or none (rows).
_UNITS = {
    **{"q": "z", "P": "zz", "G": "-z", "E": "-z", "T": "-z", "F": "-z"},
    **{"d": "u", "D": "uu", "W": "-u", "V": "-u"},
}


def solve_in_units(
    program: ScenarioProgram,
    contexts: torch.Tensor,
    units: torch.Tensor,
    solve: Callable[[ScenarioProgram], Solution],
) -> Solution:
    """Solve a program, some contexts in the units of their variables that `other_units` found.

    `solve` must treat every context alone.
    """
    changed = _in_units(program.take(contexts.to(program.weights.device)), units, solve)
    if len(contexts) == program.n_contexts:
        return changed
    rest = sorted(set(range(program.n_contexts)) - set(contexts.tolist()))
    unchanged = solve(program.take(torch.tensor(rest, device=program.weights.device)))
    unsolved = Solution.unsolved(program, [None] * program.n_contexts)
    return unsolved.with_contexts(rest, unchanged).with_contexts(contexts.tolist(), changed)


def _in_units(
    program: ScenarioProgram,
    units: torch.Tensor,
    solve: Callable[[ScenarioProgram], Solution],
) -> Solution:
    """Solve a program in units ``(n_contexts, n_z + n_u)`` of its variables."""
    of = {"z": units[:, : program.n_decisions], "u": units[:, program.n_decisions :]}

    def scaled(name: str, block: torch.Tensor) -> torch.Tensor:
        letters = _UNITS.get(name, "")
        for place, letter in enumerate(letters):
            if letter != "-":
                shape = [len(units), *(1,) * (block.ndim - 1)]
                shape[place - len(letters)] = -1
                block = block * of[letter].reshape(shape)
        return block

    found = solve(program.map(scaled))
    z, u = of["z"], of["u"].unsqueeze(1)
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


def other_units(program: ScenarioProgram) -> tuple[torch.Tensor, torch.Tensor]:
    """The contexts that need other units, and those, ``(contexts, n_z + n_u)``."""
    entries, right = _pattern(program)
    top = entries.amax(-1, keepdim=True)
    present = entries > _SMALLEST * top
    least = torch.where(present, entries, torch.inf).amin(-1, keepdim=True)
    linking = present & (present.sum(-1, keepdim=True) > 1)
    alone = present.any(1) & ~linking.any(1)
    wide = (top > 2.0**_SPREAD * least).flatten(1).any(1) | alone.any(1)
    if not bool(wide.any()):
        return torch.zeros(0, dtype=torch.long), entries.new_zeros(0, entries.shape[-1])
    candidates = wide.expand(program.n_contexts).nonzero().flatten()

    def of_candidates(block: torch.Tensor) -> torch.Tensor:
        return block.expand(program.n_contexts, *block.shape[1:])[candidates]

    exponents = _fit(of_candidates(torch.where(linking, entries.log2(), torch.nan)))
    if bool(alone.any()):
        lengths = (right.unsqueeze(-1) / entries).log2()
        lengths = torch.where(present & (right > 0).unsqueeze(-1), lengths, torch.nan)
        exponents = _placed(exponents, of_candidates(lengths), of_candidates(alone))
    exponents = exponents.round()
    changed = exponents.amax(1) - exponents.amin(1) >= _SPREAD
    return candidates[changed], torch.exp2(exponents[changed]).to(program.weights)


def _placed(exponents: torch.Tensor, lengths: torch.Tensor, alone: torch.Tensor) -> torch.Tensor:
    """Units of variables that no row links to others, ``(B, columns)``.

    Rows say nothing of how large such a variable is beside the others, but right-hand sides do:
    `lengths` (B, rows, columns) are logarithms of |b| / |a|, and in the units that are found they
    are alike. A variable all of whose rows pass through the origin gets the unit of the others.
    """
    longest = lengths.nan_to_num(-torch.inf).amax(1, keepdim=True)
    lengths = torch.where(lengths > longest - _NOISE_BITS, lengths, torch.nan)
    natural = lengths.nanmedian(1).values
    linked = torch.where(alone, torch.nan, natural - exponents).nanmedian(1, keepdim=True).values
    placed = torch.where(alone, natural - linked.nan_to_num(0.0), torch.nan)
    usual = torch.where(alone, placed, exponents).nanmedian(1, keepdim=True).values
    placed = torch.where(placed.isnan(), usual.nan_to_num(0.0), placed)
    return torch.where(alone, placed, exponents)


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
