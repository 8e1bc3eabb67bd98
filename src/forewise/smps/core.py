"""The core file: one scenario's linear program, in MPS."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from forewise.exceptions import InvalidInputError
from forewise.smps.lines import INFINITE, Line

Array = np.ndarray
_INTEGER = "integer variables, which a ScenarioProgram has not; relax them to continuous ones"


@dataclass(frozen=True, eq=False)
class Core:
    """A linear program with names:

    min cost'x + constant   s.t.   rhs + below ≤ matrix x ≤ rhs + above,   lower ≤ x ≤ upper

    `below` ≤ 0 ≤ `above`: both 0 is an equality, −inf and inf are no bound. A random right-hand
    side moves both ends of a range. `matrix` also stores the zeros that were given.

    Examples
    --------
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
    >>> core.columns
    ('order', 'rush')
    """

    name: str
    objective: str  # the name of the cost row
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    matrix: sp.csr_matrix  # (n_rows, n_columns)
    cost: Array  # (n_columns,)
    constant: float
    rhs: Array  # (n_rows,)
    below: Array
    above: Array
    lower: Array  # (n_columns,)
    upper: Array
    rhs_set: str = "RHS"  # the name of the right-hand side, by which the .sto file calls it

    def with_first(self, first: Iterable[str]) -> Core:
        """The program with the columns `first` in front, and otherwise in the same order."""
        chosen = set(first)
        order = sorted(range(len(self.columns)), key=lambda j: self.columns[j] not in chosen)
        return replace(
            self,
            columns=tuple(self.columns[j] for j in order),
            matrix=sp.csr_matrix(self.matrix[:, order]),
            **{name: getattr(self, name)[order] for name in ("cost", "lower", "upper")},
        )

    def with_entries(self, rows: list[int], columns: list[int]) -> Core:
        """The program with zeros stored in these places, where nothing is stored yet."""
        old = sp.coo_matrix(self.matrix)
        width = self.matrix.shape[1]
        wanted = np.asarray(rows, dtype=int) * width + np.asarray(columns, dtype=int)
        new = np.setdiff1d(wanted, old.row.astype(int) * width + old.col)
        data = np.concatenate([old.data, np.zeros(len(new))])
        at = (np.concatenate([old.row, new // width]), np.concatenate([old.col, new % width]))
        return replace(self, matrix=sp.csr_matrix((data, at), shape=self.matrix.shape))


@dataclass
class _Draft:
    """What was read so far."""

    name: str = ""
    objective: str | None = None
    senses: dict[str, str] = field(default_factory=dict)
    ignored: set[str] = field(default_factory=set)  # free rows
    columns: dict[str, int] = field(default_factory=dict)
    cost: dict[str, float] = field(default_factory=dict)
    entries: dict[tuple[str, str], float] = field(default_factory=dict)
    rhs: dict[str, float] = field(default_factory=dict)
    ranges: dict[str, float] = field(default_factory=dict)
    lower: dict[str, float] = field(default_factory=dict)
    upper: dict[str, float] = field(default_factory=dict)
    bounded: dict[str, Line] = field(default_factory=dict)  # the last line with a bound
    sets: dict[str, str] = field(default_factory=dict)  # the name of each section's vector

    def header(self, line: Line) -> str:
        section = line.fields[0].upper()
        if section == "NAME":
            self.name = " ".join(line.fields[1:])
        elif section == "OBJSENSE":
            self.sense(line, line.fields[1:])
        elif section not in ("ROWS", "COLUMNS", "RHS", "RANGES", "BOUNDS"):
            raise line.expected("a section NAME, ROWS, COLUMNS, RHS, RANGES, BOUNDS or ENDATA")
        return section

    def sense(self, line: Line, fields: tuple[str, ...]) -> None:
        if fields and fields[0].upper() not in ("MIN", "MINIMIZE", "MINIMISE"):
            raise line.error("costs are minimised: turn the signs of the objective row, and MAX")

    def row(self, line: Line) -> None:
        if len(line.fields) != 2 or line.fields[0].upper() not in ("N", "L", "G", "E"):
            raise line.expected("one of N, L, G, E and the name of a row")
        sense, name = line.fields[0].upper(), line.fields[1]
        if name in self.senses or name in self.ignored or name == self.objective:
            raise line.error(f"the row {name!r} is here for the second time")
        if sense != "N":
            self.senses[name] = sense
        elif self.objective is None:
            self.objective = name
        else:
            self.ignored.add(name)

    def column(self, line: Line) -> None:
        if len(line.fields) > 1 and line.fields[1] == "'MARKER'":
            raise line.error(f"the program has {_INTEGER}")
        name = line.fields[0]
        self.columns.setdefault(name, len(self.columns))
        what = "a column, a row and a number, and perhaps a second row and number"
        for row, text in line.pairs(line.fields[1:], what):
            value = line.value(text)
            if row == self.objective:
                self.put(line, self.cost, name, value, f"the cost of column {name!r}")
            elif row in self.senses:
                what = f"column {name!r} in row {row!r}"
                self.put(line, self.entries, (row, name), value, what)
            elif row not in self.ignored:
                raise line.error(f"expected a row of ROWS, but found {row!r}")

    def vector(self, line: Line, section: str) -> None:
        """Right-hand sides and ranges."""
        fields = line.fields
        if len(fields) % 2:
            self.one_set(line, section, fields[0])
            fields = fields[1:]
        into = self.rhs if section == "RHS" else self.ranges
        for row, text in line.pairs(fields, "a row and a number, perhaps two, after a name"):
            if row not in self.senses and row not in self.ignored and row != self.objective:
                raise line.error(f"expected a row of ROWS, but found {row!r}")
            value = line.value(text, infinite=row != self.objective and section == "RHS")
            if section == "RANGES" and row not in self.senses:
                raise line.error(f"expected a row of sense L, G or E, but {row!r} is free")
            side = {"L": np.inf, "G": -np.inf}.get(self.senses.get(row, ""))
            if np.isinf(value) and value != side:
                raise line.error(f"the row {row!r} cannot hold with a right-hand side of {text}")
            self.put(line, into, row, value, f"row {row!r} of {section}")

    def bound(self, line: Line) -> None:
        kind, fields = line.fields[0].upper(), line.fields[1:]
        if kind in ("BV", "LI", "UI", "SC", "SI"):
            raise line.error(f"a bound of kind {kind} is of {_INTEGER}")
        if kind not in ("UP", "LO", "FX", "FR", "MI", "PL"):
            raise line.expected("a bound: UP, LO, FX, FR, MI or PL")
        valued = kind in ("UP", "LO", "FX")
        # A free bound may have a number, which says nothing.
        if not valued and len(fields) > 1 and fields[-1] not in self.columns:
            fields = fields[:-1]
        if len(fields) == 2 + valued:
            self.one_set(line, "BOUNDS", fields[0])
            fields = fields[1:]
        if len(fields) != 1 + valued:
            raise line.expected(f"{kind}, a name, a column" + (" and a number" if valued else ""))
        name = fields[0]
        if name not in self.columns:
            raise line.error(f"expected a column of COLUMNS, but found {name!r}")
        self.bounded[name] = line
        value = line.value(fields[1], infinite=kind != "FX") if valued else np.inf
        if (kind == "UP" and value == -np.inf) or (kind == "LO" and value == np.inf):
            raise line.error(f"column {name!r} cannot have {kind} {fields[1]}")
        if kind in ("LO", "FX", "FR", "MI"):
            low = value if valued else -np.inf
            self.put(line, self.lower, name, low, f"a lower bound of column {name!r}")
        if kind in ("UP", "FX", "FR", "PL"):
            self.put(line, self.upper, name, value, f"an upper bound of column {name!r}")

    def one_set(self, line: Line, section: str, name: str) -> None:
        if self.sets.setdefault(section, name) != name:
            raise line.error(
                f"{section} has two sets, {self.sets[section]!r} and {name!r}: keep one of them"
            )

    def put(self, line: Line, into: dict[Any, float], key: Any, value: float, what: str) -> None:
        if key in into:
            raise line.error(f"{what} is here for the second time")
        into[key] = value

    def finished(self, path: object) -> Core:
        if self.objective is None or not self.columns:
            what = "cost: give ROWS a row N" if self.objective is None else "columns"
            raise InvalidInputError(f"{path}: the program has no {what}")
        rows = {name: i for i, name in enumerate(self.senses)}
        n, m = len(self.columns), len(rows)
        at = np.array([(rows[r], self.columns[c]) for r, c in self.entries], dtype=int)
        at = at.reshape(-1, 2).T
        rhs, below, above = np.zeros(m), np.zeros(m), np.zeros(m)
        for name, i in rows.items():
            below[i], above[i] = _ends(self.senses[name], self.ranges.get(name))
            rhs[i] = self.rhs.get(name, 0.0)
            if np.isinf(rhs[i]):  # no row at all
                rhs[i], below[i], above[i] = 0.0, -np.inf, np.inf
        lower, upper = np.zeros(n), np.full(n, np.inf)
        for name, j in self.columns.items():
            upper[j] = self.upper.get(name, np.inf)
            lower[j] = self.lower.get(name, 0.0)
            if lower[j] > upper[j]:
                raise self.bounded[name].error(
                    f"the bounds of column {name!r} leave nothing between {lower[j]:g} and "
                    f"{upper[j]:g}"
                    # Other readers take a negative upper bound alone either way.
                    + ("" if name in self.lower else "; say MI, or LO, if 0 is not the lower one")
                )
        return Core(
            name=self.name,
            objective=self.objective,
            rows=tuple(rows),
            columns=tuple(self.columns),
            matrix=sp.csr_matrix((list(self.entries.values()), at), shape=(m, n), dtype=float),
            cost=np.array([self.cost.get(name, 0.0) for name in self.columns]),
            constant=-self.rhs.get(self.objective, 0.0),
            rhs=rhs,
            below=below,
            above=above,
            lower=lower,
            upper=upper,
            rhs_set=self.sets.get("RHS", "RHS"),
        )


def _ends(sense: str, width: float | None) -> tuple[float, float]:
    """What a row may lie below and above its right-hand side; `width` is that of RANGES."""
    if sense == "E":
        width = width or 0.0
        return min(width, 0.0), max(width, 0.0)
    size = np.inf if width is None or abs(width) >= INFINITE else abs(width)
    return (-size, 0.0) if sense == "L" else (0.0, size)


def read_core(lines: list[Line]) -> Core:
    """The program of the lines of a core file."""
    draft, section = _Draft(), ""
    for line in lines:
        if line.is_header:
            section = draft.header(line)
        elif section == "OBJSENSE":
            draft.sense(line, line.fields)
        elif section == "ROWS":
            draft.row(line)
        elif section == "COLUMNS":
            draft.column(line)
        elif section in ("RHS", "RANGES"):
            draft.vector(line, section)
        elif section == "BOUNDS":
            draft.bound(line)
        else:
            raise line.expected("a section before the first data")
    return draft.finished(lines[0].path if lines else "the core file")
