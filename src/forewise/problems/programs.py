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

import numpy as np
import scipy.sparse as sp
import torch

from forewise.exceptions import InvalidInputError
from forewise.problems.cones import Cones
from forewise.problems.sparse import SparseBlock
from forewise.validation.arguments import WORKING_DTYPE, as_finite, as_tensor

# Block -> the sizes of its trailing dimensions, by name: z and u are the variables, g and e
# the first-stage rows, t the scenario rows that touch z, r all scenario inequalities, s the
# scenario equalities.
FIRST_STAGE = {"q": "z", "P": "zz", "G": "gz", "h": "g", "E": "ez", "e": "e", "c": ""}
RECOURSE = {"d": "u", "D": "uu", "T": "tz", "W": "ru", "r": "r", "F": "sz", "V": "su", "s": "s"}
BLOCKS = {**FIRST_STAGE, **RECOURSE}
RIGHT_SIDES = frozenset({"h", "e", "r", "s"})
MATRICES = frozenset(name for name, letters in BLOCKS.items() if len(letters) == 2)
# Numbers above which a matrix of zeros is a sparse one.
_LARGE = 100_000
#: Bounds of the variables, by name.
BOUNDS = {"lower": "z", "upper": "z", "recourse_lower": "u", "recourse_upper": "u"}


@dataclass(frozen=True, eq=False, init=False)
class ScenarioProgram:
    """A batch of two-stage programs, one per context (the module's docstring is the legend).

    A block that is the same for all contexts, or for all scenarios, is given once with a
    leading dimension of size 1; its gradient is the sum over what shares it. A block that is left
    out is absent.

    Matrices may be sparse: a SciPy matrix that all contexts and scenarios share, a sparse tensor,
    or a `SparseBlock`, one pattern with entries of every context and scenario. They are solved,
    verified and differentiated by their entries; reading one as an attribute makes it dense.

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
    lower, upper : tensors (n_contexts | 1, n_z)
        Bounds of the first-stage variables, infinite where there is none.
    recourse_lower, recourse_upper : tensors (n_contexts | 1, n_scenarios | 1, n_u)

    Examples
    --------
    Order z at 1, or buy u later at 3, for a demand of 2 or 4: the program by hand.

    >>> import forewise as fw
    >>> program = fw.ScenarioProgram(
    ...     weights=[[0.5, 0.5]],
    ...     q=[[1.0]],
    ...     d=[[[3.0]]],
    ...     T=[[[[-1.0]]]],
    ...     W=[[[[-1.0]]]],
    ...     r=[[[-2.0], [-4.0]]],
    ...     lower=[[0.0]],
    ...     recourse_lower=[[[0.0]]],
    ... )
    >>> solution = fw.solve_program(program)
    >>> solution.decision.round(decimals=6), solution.recourse.round(decimals=6).flatten()
    (tensor([[4.]], dtype=torch.float64), tensor([0., 0.], dtype=torch.float64))
    """

    title: ClassVar[str] = "a linear or quadratic program"
    sparse: ClassVar[dict[str, SparseBlock]] = {}

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
    lower: torch.Tensor | None
    upper: torch.Tensor | None
    recourse_lower: torch.Tensor | None
    recourse_upper: torch.Tensor | None

    def __init__(self, weights: Any, q: Any, **blocks: Any) -> None:
        unknown = sorted(set(blocks) - set(BLOCKS) - set(BOUNDS))
        if unknown:
            raise InvalidInputError(
                f"a scenario program has no block named {', '.join(unknown)}; its blocks are "
                f"{', '.join((*BLOCKS, *BOUNDS))}"
            )
        weights = _checked_weights(weights)
        given: dict[str, Any] = {}
        for name, block in {"q": q, **blocks}.items():
            leading = 2 if name in RECOURSE or name.startswith("recourse") else 1
            sparse = SparseBlock.read(name, block, leading) if name in MATRICES else None
            if sparse is not None:
                given[name] = sparse
            elif block is not None:
                given[name] = as_tensor(name, block).to(WORKING_DTYPE)
        bounds = {name: given.pop(name) for name in BOUNDS if name in given}
        sizes = _sizes(given, tuple(weights.shape))
        for name, bound in bounds.items():
            _check_bound(name, bound, tuple(weights.shape), sizes)
        for name in ("P", "D"):
            if name in given:
                _require_symmetric(name, given[name])
        for name in BLOCKS:
            if name not in given:
                shape = [1, 1] if name in RECOURSE else [1]
                shape += [sizes[letter] for letter in BLOCKS[name]]
                large = name in MATRICES and shape[-1] * shape[-2] > _LARGE
                given[name] = (
                    SparseBlock.empty(shape)
                    if large
                    else torch.zeros(shape, dtype=WORKING_DTYPE, device=weights.device)
                )
        self._fill({"weights": weights, **given, **bounds})

    def _fill(self, blocks: dict[str, Any]) -> None:
        sparse = {name: block for name, block in blocks.items() if isinstance(block, SparseBlock)}
        dense = {name: block for name, block in blocks.items() if name not in sparse}
        vars(self).update(dict.fromkeys(BOUNDS), **dense, sparse=sparse)

    def __getattr__(self, name: str) -> torch.Tensor:
        # Only blocks that are not dense are looked for here.
        if name in MATRICES and name in self.__dict__.get("sparse", {}):
            dense: torch.Tensor = self.sparse[name].dense()
            return dense
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def block(self, name: str) -> torch.Tensor | SparseBlock:
        """A block as it is stored, dense or sparse."""
        found: torch.Tensor | SparseBlock = self.sparse.get(name) or self.__dict__[name]
        return found

    def blocks(self) -> dict[str, torch.Tensor]:
        """All tensors by name, the weights first, bounds last; sparse ones are made dense."""
        return {name: getattr(self, name) for name in ("weights", *BLOCKS)} | self.bounds

    @property
    def bounds(self) -> dict[str, torch.Tensor]:
        """The bounds of the variables that are given, by name."""
        found = {name: getattr(self, name) for name in BOUNDS}
        return {name: bound for name, bound in found.items() if bound is not None}

    def map(self, change: Callable[[str, torch.Tensor], torch.Tensor]) -> ScenarioProgram:
        """A program with `change(name, tensor)` in the place of every tensor, unchecked.

        Of a sparse block that is the tensor of its entries, whose last dimension is the matrix's.
        """
        blocks: dict[str, Any] = {}
        for name in ("weights", *BLOCKS, *self.bounds):
            block = self.block(name)
            if isinstance(block, SparseBlock):
                blocks[name] = block.with_entries(change(name, block.entries))
            else:
                blocks[name] = change(name, block)
        program = object.__new__(ScenarioProgram)
        program._fill(blocks)
        return program

    def take(self, contexts: slice | torch.Tensor) -> ScenarioProgram:
        """The programs of some contexts; what is shared stays shared."""
        return self.map(lambda _, block: _taken(block, contexts))

    def with_blocks(self, **blocks: Any) -> ScenarioProgram:
        """The program with other blocks, dense or sparse, in the place of some, unchecked."""
        program = object.__new__(ScenarioProgram)
        known = {name: block for name, block in vars(self).items() if name != "sparse"}
        program._fill(known | self.sparse | blocks)
        return program

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
        curvatures = (self.block(name) for name in "PD")
        return not any(
            bool((block.entries if isinstance(block, SparseBlock) else block).any())
            for block in curvatures
        )

    def first_stage_cost(self, z: torch.Tensor) -> torch.Tensor:
        """½ z'P z + q'z + c of each context: ``(n_contexts,)`` from ``(n_contexts, n_z)``."""
        return (z * (0.5 * apply(self.block("P"), z) + self.q)).sum(-1) + self.c

    def recourse_cost(self, u: torch.Tensor) -> torch.Tensor:
        """½ u_j'D_j u_j + d_j'u_j, unweighted: ``(B, M)`` from ``(B, M, n_u)``."""
        return (u * (0.5 * apply(self.block("D"), u) + self.d)).sum(-1)

    def objective(self, z: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
        """Cost of a decision and its recourse in each context, ``(n_contexts,)``."""
        return self.first_stage_cost(z) + (self.weights * self.recourse_cost(u)).sum(-1)


def apply(block: torch.Tensor | SparseBlock, vector: torch.Tensor) -> torch.Tensor:
    """Block times vector over broadcast leading dimensions: ``(..., r, c), (..., c)``.

    A shared block becomes one product with many columns. The vector stands on the left because a
    batch of row-times-matrix products is four times faster than of matrix-times-column products.
    """
    if isinstance(block, SparseBlock):
        return block.times(vector)
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


def _check_bound(
    name: str, bound: torch.Tensor, lead: tuple[int, int], sizes: dict[str, int]
) -> None:
    leading = lead if name.startswith("recourse") else lead[:1]
    expected = (*leading, sizes[BOUNDS[name]])
    fits = bound.ndim == len(expected) and bound.shape[-1] == expected[-1]
    if not fits or any(
        n not in (1, m) for n, m in zip(bound.shape[:-1], expected[:-1], strict=True)
    ):
        raise InvalidInputError(
            f"{name} must have shape {expected}, with 1 where it is shared, "
            f"but has shape {tuple(bound.shape)}"
        )
    wrong = torch.inf if name.endswith("lower") else -torch.inf
    if (bound.detach() == wrong).any():
        raise InvalidInputError(f"{name} is {wrong} somewhere: give {-wrong} where there is none")


def _require_symmetric(name: str, block: torch.Tensor | SparseBlock) -> None:
    if isinstance(block, SparseBlock):
        whole = sp.csr_array(
            (np.arange(1, len(block.rows) + 1), (block.rows.numpy(), block.columns.numpy())),
            shape=block.size,
        )
        turned = whole.T.tocsr()
        turned.sort_indices()
        whole.sort_indices()
        same = np.array_equal(turned.indices, whole.indices)
        if same and np.array_equal(turned.indptr, whole.indptr):
            entries = block.entries.detach()
            other = entries[..., torch.from_numpy(turned.data - 1)]
            if not ((entries - other).abs() > 1e-10 * (1 + entries.abs())).any():
                return
        raise InvalidInputError(f"{name} must be symmetric, but differs from its transpose")
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

    Examples
    --------
    `CvxpyProblem` makes one where a cost has a norm:

    >>> import cvxpy as cp
    >>> import forewise as fw
    >>> z, y = cp.Variable(2, name="place"), cp.Parameter(2, name="customer")
    >>> problem = fw.CvxpyProblem(cp.Minimize(cp.norm(z - y)), [], decision=z, outcome=y)
    >>> program = problem.program(fw.Scenarios([[[0.0, 0.0], [2.0, 0.0], [1.0, 3.0]]]))
    >>> type(program).__name__, program.scenario_cones
    ('ConicProgram', Cones(kinds=(<ConeKind.SECOND_ORDER: 'second-order'>,), sizes=(3,)))
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
            shared = (
                name in FIRST_STAGE
                or name in ("lower", "upper")
                or (block.shape[1] == 1 and name != "weights")
            )
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

    Examples
    --------
    `CvxpyProblem` makes one where a variable is an integer:

    >>> import cvxpy as cp
    >>> import forewise as fw
    >>> z, y = cp.Variable(1, integer=True, name="shifts"), cp.Parameter(1, name="work")
    >>> cost = cp.sum(10 * z + 30 * cp.pos(y - 8 * z))
    >>> problem = fw.CvxpyProblem(cp.Minimize(cost), [z >= 0], decision=z, outcome=y)
    >>> problem.program(fw.Scenarios([[[20.0], [30.0]]])).first
    tensor([True])
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
"""What `Problem.program` returns: one of the three forms, by which solvers are chosen.

Examples
--------
>>> import forewise as fw
>>> program = fw.Newsvendor(3.0, 1.0).program(fw.Scenarios([[[8.0], [12.0]]]))
>>> isinstance(program, fw.problems.Program)
True
"""
