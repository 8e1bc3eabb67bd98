"""The programs that a problem becomes: linear or quadratic, with cones, or with integers.

Solvers dispatch on their type. The legend of all files that do the algebra (B contexts, M
scenarios):

    min   ½ z'P z + q'z + Σ_j w_j ( ½ u_j'D_j u_j + d_j'u_j ) + c
    s.t.  G z ≤ h                                 λ   first-stage inequalities
          E z = e                                 ν   first-stage equalities
          T_j z + W_j u_j ≤ r_j                   λ_j scenario inequalities
          F_j z + V_j u_j = s_j                   ν_j scenario equalities

Stationarity, with nonnegative λ:  ∇cost + A'λ + E'ν = 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch

from forewise.exceptions import InvalidInputError
from forewise.problems.cones import Cones
from forewise.validation.arguments import WORKING_DTYPE, as_finite, as_tensor

# Block -> the sizes of its trailing dimensions, by name: z and u are the variables, g and e
# the first-stage rows, t the scenario rows that touch z, r all scenario inequalities, s the
# scenario equalities.
FIRST_STAGE = {"q": "z", "P": "zz", "G": "gz", "h": "g", "E": "ez", "e": "e", "c": ""}
RECOURSE = {"d": "u", "D": "uu", "T": "tz", "W": "ru", "r": "r", "F": "sz", "V": "su", "s": "s"}
BLOCKS = {**FIRST_STAGE, **RECOURSE}
RIGHT_SIDES = frozenset({"h", "e", "r", "s"})


@dataclass(frozen=True, eq=False, init=False)
class ScenarioProgram:
    """A batch of two-stage programs, one per context (the module's docstring is the legend).

    A block that is the same for all contexts, or for all scenarios, is given once with a
    leading dimension of size 1; its gradient is the sum over what shares it. A block that is left
    out is absent.

    Parameters
    ----------
    weights : tensor (n_contexts, n_scenarios)
        Nonnegative, summing to one in each context. Zero: the scenario is not there.
    q : tensor (n_contexts | 1, n_z)
    P : tensor (n_contexts | 1, n_z, n_z)
    G, h : tensors (n_contexts | 1, n_rows, n_z), (n_contexts | 1, n_rows)
    E, e : tensors (n_contexts | 1, n_rows, n_z), (n_contexts | 1, n_rows)
    D, d : tensors (n_contexts | 1, n_scenarios | 1, n_u, n_u), (..., n_u)
    T, W, r : tensors (n_contexts | 1, n_scenarios | 1, n_rows, n_z), (..., n_u), (..., n_rows)
        `T` may have fewer rows than `W`: the rows that it lacks, at the end, do not touch the
        decision (bounds on the recourse are the usual ones).
    F, V, s : tensors, as `T`, `W`, `r`; `F` has as many rows as `V`.
    c : tensor (n_contexts | 1,)
        Constant part of the cost.
    """

    title: ClassVar[str] = "a linear or quadratic program"

    weights: torch.Tensor
    q: torch.Tensor
    P: torch.Tensor
    G: torch.Tensor
    h: torch.Tensor
    E: torch.Tensor
    e: torch.Tensor
    c: torch.Tensor
    d: torch.Tensor
    D: torch.Tensor
    T: torch.Tensor
    W: torch.Tensor
    r: torch.Tensor
    F: torch.Tensor
    V: torch.Tensor
    s: torch.Tensor

    def __init__(self, weights: Any, q: Any, **blocks: Any) -> None:
        unknown = sorted(set(blocks) - set(BLOCKS))
        if unknown:
            raise InvalidInputError(
                f"a scenario program has no block named {', '.join(unknown)}; its blocks are "
                f"{', '.join(BLOCKS)}"
            )
        weights = _checked_weights(weights)
        given = {
            name: as_tensor(name, block).to(WORKING_DTYPE)
            for name, block in {"q": q, **blocks}.items()
            if block is not None
        }
        sizes = _sizes(given, tuple(weights.shape))
        for name in ("P", "D"):
            if name in given:
                _require_symmetric(name, given[name])
        for name in BLOCKS:
            if name not in given:
                shape = [1, 1] if name in RECOURSE else [1]
                shape += [sizes[letter] for letter in BLOCKS[name]]
                given[name] = torch.zeros(shape, dtype=WORKING_DTYPE, device=weights.device)
        self._fill({"weights": weights, **given})

    def _fill(self, tensors: dict[str, torch.Tensor]) -> None:
        for name, tensor in tensors.items():
            object.__setattr__(self, name, tensor)

    def blocks(self) -> dict[str, torch.Tensor]:
        """All tensors by name, the weights first."""
        return {name: getattr(self, name) for name in ("weights", *BLOCKS)}

    def map(self, change: Callable[[str, torch.Tensor], torch.Tensor]) -> ScenarioProgram:
        """A program with `change(name, tensor)` in the place of every tensor, unchecked."""
        program = object.__new__(ScenarioProgram)
        program._fill({name: change(name, block) for name, block in self.blocks().items()})
        return program

    def take(self, contexts: slice | torch.Tensor) -> ScenarioProgram:
        """The programs of some contexts; what is shared stays shared."""
        return self.map(lambda _, block: _taken(block, contexts))

    @property
    def n_contexts(self) -> int:
        """Number of contexts."""
        return self.weights.shape[0]

    @property
    def n_scenarios(self) -> int:
        """Number of scenarios of each context."""
        return self.weights.shape[1]

    @property
    def n_decisions(self) -> int:
        """Number of first-stage variables z."""
        return self.q.shape[-1]

    @property
    def n_recourse(self) -> int:
        """Number of variables u_j of each scenario."""
        return self.d.shape[-1]

    @property
    def is_linear(self) -> bool:
        """Whether no context has a quadratic cost."""
        return not (self.P.any() or self.D.any())

    def first_stage_cost(self, z: torch.Tensor) -> torch.Tensor:
        """½ z'P z + q'z + c of each context: ``(n_contexts,)`` from ``(n_contexts, n_z)``."""
        return (z * (0.5 * apply(self.P, z) + self.q)).sum(-1) + self.c

    def recourse_cost(self, u: torch.Tensor) -> torch.Tensor:
        """½ u_j'D_j u_j + d_j'u_j, unweighted: ``(B, M)`` from ``(B, M, n_u)``."""
        return (u * (0.5 * apply(self.D, u) + self.d)).sum(-1)

    def objective(self, z: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
        """Cost of a decision and its recourse in each context, ``(n_contexts,)``."""
        return self.first_stage_cost(z) + (self.weights * self.recourse_cost(u)).sum(-1)


def apply(block: torch.Tensor, vector: torch.Tensor) -> torch.Tensor:
    """Block times vector over broadcast leading dimensions: ``(..., r, c), (..., c)``.

    A shared block becomes one product with many columns. The vector stands on the left because a
    batch of row-times-matrix products is four times faster than of matrix-times-column products.
    """
    if block.shape[:-2].numel() == 1:
        return vector @ block.reshape(block.shape[-2:]).mT
    if block.ndim == 4 and block.shape[1] == 1:
        return vector @ block[:, 0].mT
    if block.ndim == 4 and block.shape[0] == 1:
        return (vector.transpose(0, 1) @ block[0].mT).transpose(0, 1)
    return (vector.unsqueeze(-2) @ block.mT).squeeze(-2)


def apply_transposed(block: torch.Tensor, vector: torch.Tensor) -> torch.Tensor:
    """Transposed block times vector: ``(..., r, c), (..., r)`` to ``(..., c)``."""
    return apply(block.mT, vector)


def joined(parts: list[torch.Tensor], dim: int) -> torch.Tensor:
    """Blocks side by side along `dim`, those that are shared repeated where others are not."""
    sizes = [max(part.shape[i] for part in parts) for i in range(parts[0].ndim)]
    sizes[dim] = -1
    return torch.cat([part.expand(sizes) for part in parts], dim)


def _taken(block: torch.Tensor, contexts: slice | torch.Tensor) -> torch.Tensor:
    return block if block.shape[0] == 1 else block[contexts]


def _checked_weights(weights: Any) -> torch.Tensor:
    weights = as_finite("weights", weights)
    if weights.ndim != 2 or 0 in weights.shape:
        raise InvalidInputError(
            "weights must have shape (n_contexts, n_scenarios), both at least 1, but has shape "
            f"{tuple(weights.shape)}"
        )
    total = weights.sum(-1)
    if (weights < 0).any() or (total == 0).any():
        raise InvalidInputError(
            "weights must be at least 0 and not all zero in any context, but the smallest is "
            f"{weights.min().item():g} and the smallest sum {total.min().item():g}"
        )
    return weights


def _sizes(given: dict[str, torch.Tensor], lead: tuple[int, int]) -> dict[str, int]:
    """Read the sizes off the blocks that are there, and check that all agree."""
    sizes: dict[str, int] = {}
    source: dict[str, str] = {}
    for name, block in given.items():
        letters = BLOCKS[name]
        leading = lead if name in RECOURSE else lead[:1]
        if block.ndim != len(leading) + len(letters):
            raise InvalidInputError(
                f"{name} must have {len(leading) + len(letters)} dimensions, "
                f"but has shape {tuple(block.shape)}"
            )
        for size, wanted in zip(block.shape, leading, strict=False):
            if size not in (1, wanted):
                raise InvalidInputError(
                    f"{name} must start with (n_contexts, n_scenarios) = {lead} or with 1 where "
                    f"it is shared, but has shape {tuple(block.shape)}"
                )
        for letter, size in zip(letters, block.shape[len(leading) :], strict=True):
            if sizes.setdefault(letter, size) != size:
                raise InvalidInputError(
                    f"{name} has shape {tuple(block.shape)}, but {source[letter]} says that its "
                    f"dimension '{letter}' is {sizes[letter]}"
                )
            source.setdefault(letter, name)
    for matrix, vector in (("G", "h"), ("E", "e"), ("W", "r"), ("V", "s")):
        # A right-hand side without W or V belongs to rows that touch the decision alone.
        alone = matrix if vector not in given else vector if matrix in "GE" else None
        other = vector if alone == matrix else matrix
        if alone in given and other not in given and given[alone].numel():
            raise InvalidInputError(f"{alone} is given without {other}: both make the rows")
    for letter in "tugers":
        sizes.setdefault(letter, 0)
    if sizes["t"] > sizes["r"]:
        raise InvalidInputError(
            f"T has {sizes['t']} rows, but W and r only {sizes['r']}: give W a row of zeros for "
            "a row that touches the decision alone"
        )
    return sizes


def _require_symmetric(name: str, block: torch.Tensor) -> None:
    block = block.detach()
    if block.numel() and ((block - block.mT).abs() > 1e-10 * (1 + block.abs())).any():
        raise InvalidInputError(f"{name} must be symmetric, but differs from its transpose")


@dataclass(frozen=True, eq=False)
class ConicProgram:
    """A batch of two-stage programs with cones, one per context.

    The linear and quadratic part, and rows that must lie in cones K:

        h − G z ∈ K (first stage),    r_j − T_j z − W_j u_j ∈ K (every scenario j)

    G, h, T, W, r have the shapes of a `ScenarioProgram`, and leading dimensions of size 1 where
    they are shared. `cones` are those of G and h, `scenario_cones` those of T, W and r.
    """

    title: ClassVar[str] = "a conic program"

    plain: ScenarioProgram
    cones: Cones
    G: torch.Tensor
    h: torch.Tensor
    scenario_cones: Cones
    T: torch.Tensor
    W: torch.Tensor
    r: torch.Tensor

    @classmethod
    def from_first_stage(
        cls, plain: ScenarioProgram, cones: Cones, G: torch.Tensor, h: torch.Tensor
    ) -> ConicProgram:
        """A program whose scenarios have no cones."""
        T = h.new_zeros(1, 1, 0, plain.n_decisions)
        W = h.new_zeros(1, 1, 0, plain.n_recourse)
        return cls(plain, cones, G, h, Cones(), T, W, h.new_zeros(1, 1, 0))

    def cone_blocks(self) -> dict[str, torch.Tensor]:
        """The tensors of the cone rows, by name."""
        return {name: getattr(self, name) for name in ("G", "h", "T", "W", "r")}

    def take(self, contexts: slice | torch.Tensor) -> ConicProgram:
        """The programs of some contexts; what is shared stays shared."""
        return self._changed(self.plain.take(contexts), lambda _, block: _taken(block, contexts))

    def take_scenarios(self, scenarios: torch.Tensor) -> ConicProgram:
        """The programs with some of their scenarios, whose weights must sum to one."""

        def chosen(name: str, block: torch.Tensor) -> torch.Tensor:
            shared = name in FIRST_STAGE or (block.shape[1] == 1 and name != "weights")
            return block if shared else block[:, scenarios]

        return self._changed(self.plain.map(chosen), chosen)

    def _changed(
        self, plain: ScenarioProgram, change: Callable[[str, torch.Tensor], torch.Tensor]
    ) -> ConicProgram:
        G, h, T, W, r = (change(name, block) for name, block in self.cone_blocks().items())
        return replace(self, plain=plain, G=G, h=h, T=T, W=W, r=r)


@dataclass(frozen=True, eq=False)
class IntegerProgram:
    """A batch of two-stage linear programs with integers, one per context.

    `plain` is the continuous relaxation; `first` ``(n_z,)`` and `recourse` ``(n_u,)`` are masks of
    the variables that are integers.
    """

    title: ClassVar[str] = "an integer program"

    plain: ScenarioProgram
    first: torch.Tensor
    recourse: torch.Tensor

    def take(self, contexts: slice | torch.Tensor) -> IntegerProgram:
        """The programs of some contexts."""
        return replace(self, plain=self.plain.take(contexts))


#: What `Problem.program` may return.
Program = ScenarioProgram | ConicProgram | IntegerProgram
