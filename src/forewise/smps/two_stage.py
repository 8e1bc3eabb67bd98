"""A two-stage stochastic linear program with names, and its scenarios as a `ScenarioProgram`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch

from forewise.exceptions import InvalidInputError
from forewise.problems import ScenarioProgram
from forewise.problems.sparse import SparseBlock
from forewise.scenarios import Scenarios
from forewise.smps.core import Core
from forewise.smps.distribution import Discrete, Element, Group, Place
from forewise.validation.arguments import WORKING_DTYPE
from forewise.validation.parameters import as_generator, require_count

Array = np.ndarray
#: More scenarios than these are listed only where all are asked for, and more than those never.
MANY_SCENARIOS, LISTABLE_SCENARIOS = 10_000, 10_000_000


class Realised(NamedTuple):
    """The core's numbers in every scenario: ``(n_contexts, n_scenarios, n)`` where one of them is
    random, else ``(1, 1, n)``.

    Examples
    --------
    >>> import forewise as fw
    >>> fw.smps.Realised._fields
    ('cost', 'constant', 'entries', 'rhs', 'lower', 'upper')
    """

    cost: torch.Tensor  # n_columns
    constant: torch.Tensor  # 1
    entries: torch.Tensor  # of the matrix, as `Core.matrix.data`
    rhs: torch.Tensor  # n_rows
    lower: torch.Tensor  # n_columns
    upper: torch.Tensor


class Rows(NamedTuple):
    """Rows of one block: sign × (row of the core) of each."""

    number: Array
    sign: Array


@dataclass(frozen=True, eq=False, repr=False)
class TwoStageProgram:
    """A linear program whose first columns are decided before its random elements are seen.

    Parameters
    ----------
    core : Core
        One scenario's program, the first stage's columns in front. Numbers that are random stand
        for themselves only.
    n_decisions : int
        How many columns the first stage has.
    groups : tuple of Discrete or Continuous
        The random elements, in groups that are independent of each other.

    Examples
    --------
    An order at 1, rush orders at 3, and a demand of 8 or 12, with names:

    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> import forewise as fw
    >>> core = fw.smps.Core(
    ...     name="shop",
    ...     objective="cost",
    ...     rows=("demand",),
    ...     columns=("order", "rush"),
    ...     matrix=sp.csr_matrix([[1.0, 1.0]]),
    ...     cost=np.array([1.0, 3.0]),
    ...     constant=0.0,
    ...     rhs=np.array([10.0]),
    ...     below=np.array([0.0]),
    ...     above=np.array([np.inf]),
    ...     lower=np.zeros(2),
    ...     upper=np.full(2, np.inf),
    ... )
    >>> demand = fw.smps.Element(fw.smps.Place.RIGHT_SIDE, row="demand")
    >>> values, probabilities = np.array([[8.0], [12.0]]), np.array([0.5, 0.5])
    >>> groups = (fw.smps.Discrete("demand", (demand,), values, probabilities),)
    >>> program = fw.smps.TwoStageProgram(core, n_decisions=1, groups=groups)
    >>> solution = fw.solve_program(program.program(program.scenarios()))
    >>> program.decision_names, solution.decision.round(decimals=6)
    (('order',), tensor([[12.]], dtype=torch.float64))
    """

    core: Core
    n_decisions: int
    groups: tuple[Group, ...]

    def __post_init__(self) -> None:
        """Store a place in the matrix for every random entry."""
        at = [e for e in self.elements if e.place is Place.ENTRY]
        rows, columns = [self._row[e.row] for e in at], [self._column[e.column] for e in at]
        object.__setattr__(self, "core", self.core.with_entries(rows, columns))
        for element in self.elements:
            if element.place is Place.FIXED and self._column[element.column] < self.n_decisions:
                raise InvalidInputError(
                    f"the {element} is random, but {element.column!r} is decided before it is seen"
                )

    @property
    def name(self) -> str:
        """The name that the files give the program."""
        return self.core.name

    @cached_property
    def elements(self) -> tuple[Element, ...]:
        """The random elements, which are the outcomes of scenarios, in this order."""
        return tuple(element for group in self.groups for element in group.elements)

    @property
    def decision_names(self) -> tuple[str, ...]:
        """The columns of the first stage, in the order of `Solution.decision`."""
        return self.core.columns[: self.n_decisions]

    @property
    def recourse_names(self) -> tuple[str, ...]:
        """The columns of the second stage, in the order of `Solution.recourse`."""
        return self.core.columns[self.n_decisions :]

    @property
    def row_names(self) -> dict[str, tuple[str, ...]]:
        """The names of the rows of G, E, W and V, in the order of `Solution.duals`.

        A range has two rows of its name.
        """
        names = self.core.rows
        return {name: tuple(names[i] for i in rows.number) for name, rows in self._rows.items()}

    @property
    def n_scenarios(self) -> int | float:
        """How many scenarios there are, exactly; infinity where an element has a density."""
        if not all(isinstance(group, Discrete) for group in self.groups):
            return math.inf
        return math.prod(group.size for group in self.groups if isinstance(group, Discrete))

    def __repr__(self) -> str:
        count = self.n_scenarios
        return (
            f"TwoStageProgram({self.name!r}: {self.n_decisions} decisions, "
            f"{len(self.recourse_names)} recourse variables, {len(self.core.rows)} rows, "
            f"{len(self.elements)} random elements, "
            f"{count if count < 10**9 else f'{float(count):.3g}'} scenarios)"
        )

    def scenarios(self, *, all: bool = False) -> Scenarios:
        """Every scenario with its probability, ``(1, n_scenarios, n_elements)``.

        Without `all`, only of a program that has no more than `MANY_SCENARIOS`.
        """
        count, most = self.n_scenarios, LISTABLE_SCENARIOS if all else MANY_SCENARIOS
        if count > most:
            raise InvalidInputError(
                f"{self!r} has too many scenarios to list: draw some with .sample(n_scenarios)"
                + (", or list them with all=True" if count <= LISTABLE_SCENARIOS else "")
            )
        discrete = [group for group in self.groups if isinstance(group, Discrete)]
        at = np.unravel_index(np.arange(int(count)), [group.size for group in discrete])
        chosen = list(zip(discrete, at, strict=True))
        values = np.concatenate([group.values[i] for group, i in chosen], axis=1)
        weights = np.prod([group.probabilities[i] for group, i in chosen], axis=0)
        return Scenarios(values[None], weights[None])

    def sample(self, n_scenarios: int, random_state: Any = 0) -> Scenarios:
        """Independent draws of equal weight, ``(1, n_scenarios, n_elements)``."""
        count = require_count("n_scenarios", n_scenarios)
        generator = as_generator(random_state)
        draws = [group.sample(count, generator) for group in self.groups]
        return Scenarios(np.concatenate(draws, axis=1)[None])

    def realised(self, scenarios: Scenarios) -> Realised:
        """The core's numbers with the scenarios' values of the random elements in their places."""
        if scenarios.n_outcomes != len(self.elements):
            raise InvalidInputError(
                f"scenarios must have {len(self.elements)} outcomes, one for each random element, "
                f"but have {scenarios.n_outcomes}"
            )
        core, values = self.core, scenarios.values.to(WORKING_DTYPE)
        entries = iter(self._random_entries.tolist())
        where: dict[str, list[tuple[int, int]]] = {name: [] for name in Realised._fields}
        for k, element in enumerate(self.elements):
            row, column = self._row.get(element.row, -1), self._column.get(element.column, -1)
            match element.place:
                case Place.COST:
                    where["cost"].append((column, k))
                case Place.OFFSET:
                    where["constant"].append((0, k))
                case Place.ENTRY:
                    where["entries"].append((next(entries), k))
                case Place.RIGHT_SIDE:
                    where["rhs"].append((row, k))
            if element.place in (Place.LOWER, Place.FIXED):
                where["lower"].append((column, k))
            if element.place in (Place.UPPER, Place.FIXED):
                where["upper"].append((column, k))
        base = {
            "cost": core.cost,
            "constant": np.array([-core.constant]),
            "entries": core.matrix.data,
            "rhs": core.rhs,
            "lower": core.lower,
            "upper": core.upper,
        }
        parts = {name: _placed(base[name], where[name], values) for name in base}
        # The file's number is minus the constant.
        return Realised(**{**parts, "constant": -parts["constant"]})

    def program(self, scenarios: Scenarios) -> ScenarioProgram:
        """The program of the scenarios; what is not random is shared by all of them.

        Matrices are sparse, and bounds are bounds. A first-stage cost that is random counts with
        its mean, a bound of a decision that is with its tightest value. Gradients flow from the
        program to the scenarios' values.
        """
        found, n = self.realised(scenarios), self.n_decisions
        mean = scenarios.weights.to(WORKING_DTYPE)[..., None]

        def averaged(part: torch.Tensor) -> torch.Tensor:
            return part[:, 0] if part.shape[:2] == (1, 1) else (mean * part).sum(1)

        def tightest(lower: torch.Tensor) -> torch.Tensor:
            if lower.shape[:2] == (1, 1):
                return lower[:, 0]
            return torch.where(mean > 0, lower, -torch.inf).amax(1)

        blocks: dict[str, Any] = {
            "q": averaged(found.cost[..., :n]),
            "c": averaged(found.constant)[..., 0],
            "d": self._late(found.cost, Place.COST),
            "lower": tightest(found.lower[..., :n]),
            "upper": -tightest(-found.upper[..., :n]),
            "recourse_lower": self._late(found.lower, Place.LOWER, Place.FIXED),
            "recourse_upper": self._late(found.upper, Place.UPPER, Place.FIXED),
        }
        first, second = slice(0, n), slice(n, len(self.core.columns))
        for name, right in (("G", "h"), ("E", "e")):
            if len(self._rows[name].number):
                matrix, sides = self._matrix(found, name, first), self._sides(found, name)
                blocks[name] = matrix.with_entries(matrix.entries[:, 0])
                blocks[right] = sides[:, 0]
        for coupling, name, right in (("T", "W", "r"), ("F", "V", "s")):
            if len(self._rows[name].number):
                blocks[coupling] = self._matrix(found, name, first)
                blocks[name] = self._matrix(found, name, second)
                blocks[right] = self._sides(found, name)
        return ScenarioProgram(scenarios.weights, **blocks)

    @cached_property
    def _row(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.core.rows)}

    @cached_property
    def _column(self) -> dict[str, int]:
        return {name: j for j, name in enumerate(self.core.columns)}

    @cached_property
    def _stored(self) -> sp.csr_matrix:
        """The number of each stored entry of the matrix, counted from 1."""
        matrix = self.core.matrix
        numbers = np.arange(1, matrix.nnz + 1)
        return sp.csr_matrix((numbers, matrix.indices, matrix.indptr), shape=matrix.shape)

    @cached_property
    def second_stage(self) -> Array:
        """Mask of the rows of the second stage: they touch its columns, or are random."""
        found = np.diff(self._stored[:, self.n_decisions :].indptr) > 0
        found[[self._row[element.row] for element in self.elements if element.row]] = True
        return found

    @cached_property
    def _rows(self) -> dict[str, Rows]:
        """The rows of each block."""
        core, second = self.core, self.second_stage
        equal = (core.below == 0) & (core.above == 0)
        upper, lower = ~equal & np.isfinite(core.above), ~equal & np.isfinite(core.below)
        rows = {}
        for inequalities, equalities, stage in (("G", "E", ~second), ("W", "V", second)):
            numbers = [np.flatnonzero(stage & ends) for ends in (upper, lower, equal)]
            signs = np.repeat([1.0, -1.0], [len(part) for part in numbers[:2]])
            rows[inequalities] = Rows(np.concatenate(numbers[:2]), signs)
            rows[equalities] = Rows(numbers[2], np.ones(len(numbers[2])))
        return rows

    def _late(self, part: torch.Tensor, *places: Place) -> torch.Tensor:
        """The second stage's columns of a part, shared if nothing of them is random."""
        columns = {e.column for e in self.elements if e.place in places}
        return _shared_unless(
            not columns.isdisjoint(self.recourse_names), part[..., self.n_decisions :]
        )

    def _matrix(self, found: Realised, name: str, columns: slice) -> SparseBlock:
        """The signed rows of a block in some columns."""
        rows = self._rows[name]
        stored = self._stored[rows.number][:, columns].tocoo()
        entries = stored.data - 1
        is_random = bool(np.isin(entries, self._random_entries).any())
        values = _shared_unless(is_random, found.entries)[..., torch.from_numpy(entries)]
        signed = values * torch.as_tensor(rows.sign[stored.row])
        return SparseBlock(stored.row, stored.col, signed, stored.shape)

    @cached_property
    def _random_entries(self) -> Array:
        at = [e for e in self.elements if e.place is Place.ENTRY]
        numbers = [self._stored[self._row[e.row], self._column[e.column]] - 1 for e in at]
        return np.array(numbers, dtype=int)

    def _sides(self, found: Realised, name: str) -> torch.Tensor:
        """The right-hand sides of a block, ``(lead, n_rows)``."""
        core, (number, sign) = self.core, self._rows[name]
        ends = sign * np.where(sign > 0, core.above[number], core.below[number])
        random = {e.row for e in self.elements if e.place is Place.RIGHT_SIDE}
        rhs = _shared_unless(not random.isdisjoint(core.rows[i] for i in number), found.rhs)
        return torch.as_tensor(sign) * rhs[..., number] + torch.as_tensor(ends)


def _shared_unless(is_random: bool, part: torch.Tensor) -> torch.Tensor:
    """The part itself, or, where it is the same in all scenarios, what they share."""
    return part if is_random else part[:1, :1]


def _placed(base: Array, where: list[tuple[int, int]], values: torch.Tensor) -> torch.Tensor:
    """The base with the outcomes k at the places i, for every (i, k)."""
    shared = torch.from_numpy(np.array(base, dtype=float))[None, None]
    if not where:
        return shared.to(values.device)
    at, outcomes = torch.tensor(where, device=values.device).T
    spread = shared.to(values.device).expand(*values.shape[:2], -1)
    return spread.index_copy(2, at, values[..., outcomes])
