"""The stoch file: random elements, and what values they have with which probability."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from forewise.exceptions import InvalidInputError
from forewise.smps.core import Core
from forewise.smps.distribution import FAMILIES, Continuous, Discrete, Element, Group, Place
from forewise.smps.lines import Line

_BOUNDS = {"UP": Place.UPPER, "LO": Place.LOWER, "FX": Place.FIXED}
_MODIFIERS = ("REPLACE", "ADD", "MULTIPLY")
# Published probabilities are rounded; they are scaled to sum to one if they nearly do.
_PROBABILITY_SLACK = 1e-3


@dataclass
class _Realisation:
    """Values of some elements, with the probability of all of them together."""

    line: Line
    probability: float
    values: dict[Element, float]
    given: set[Element] = field(default_factory=set)  # not inherited


class _Reader:
    """What was read so far of a stoch file."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.rows = {name: i for i, name in enumerate(core.rows)}
        self.columns = {name: j for j, name in enumerate(core.columns)}
        self.section, self.family, self.modifier = "", "", "REPLACE"
        self.single: dict[Element, _Single] = {}
        self.blocks: dict[str, list[_Realisation]] = {}
        self.scenarios: dict[str, _Realisation] = {}
        self.current: _Realisation | None = None

    def header(self, line: Line) -> None:
        self.section, self.current = line.fields[0].upper(), None
        if self.section == "STOCH":
            return
        words = [word.upper() for word in line.fields[1:]]
        if self.section not in ("INDEP", "BLOCKS", "SCENARIOS"):
            raise line.expected("a section STOCH, INDEP, BLOCKS, SCENARIOS or ENDATA")
        families = ("DISCRETE", *FAMILIES) if self.section == "INDEP" else ("DISCRETE",)
        self.family = words[0] if words and words[0] not in _MODIFIERS else "DISCRETE"
        if self.family not in families:
            raise line.error(
                f"{self.section} may be {', '.join(families)}, but found {self.family}"
            )
        rest = words[1:] if words and words[0] == self.family else words
        self.modifier = next((word for word in rest if word in _MODIFIERS), "REPLACE")

    def data(self, line: Line) -> None:
        if self.section == "INDEP":
            self.independent(line)
        elif self.section in ("BLOCKS", "SCENARIOS"):
            starts = {"BLOCKS": "BL", "SCENARIOS": "SC"}[self.section]
            # A column may be called BL too; then numbers stand at other places.
            if line.fields[0].upper() == starts and starts not in self.columns:
                self.current = (self.block if starts == "BL" else self.scenario)(line)
            elif self.current is None:
                raise line.expected(f"a line {starts} that opens a realisation")
            else:
                self.realised(line, self.current)
        else:
            raise line.expected("a section INDEP, BLOCKS or SCENARIOS before the first data")

    def independent(self, line: Line) -> None:
        fields = line.fields
        n_head = 3 if self.is_bound(fields) else 2
        if len(fields) not in (n_head + 2, n_head + 3):
            raise line.expected(
                "a column (or RHS), a row, a value, perhaps a period, and a "
                + ("probability" if self.family == "DISCRETE" else "second parameter")
            )
        element = self.element(line, fields[:n_head])
        first, second = line.value(fields[n_head]), line.value(fields[-1])
        known = self.single.setdefault(element, _Single(line, self.family))
        if known.family != self.family or (known.values and self.family != "DISCRETE"):
            raise line.error(f"the {element} has a distribution already")
        if self.family == "DISCRETE":
            self.require_probability(line, second)
            known.values.append((self.modified(line, element, first), second))
        else:
            known.values.append(self.parameters(line, element, first, second))

    def block(self, line: Line) -> _Realisation:
        if len(line.fields) not in (3, 4):
            raise line.expected("BL, the name of a block, perhaps a period, and a probability")
        probability = line.value(line.fields[-1])
        self.require_probability(line, probability)
        known = self.blocks.setdefault(line.fields[1], [])
        # Realisations name what differs from the first one.
        known.append(_Realisation(line, probability, dict(known[0].values) if known else {}))
        return known[-1]

    def scenario(self, line: Line) -> _Realisation:
        if len(line.fields) not in (4, 5):
            raise line.expected("SC, a name, the parent or 'ROOT', a probability and a period")
        name, parent = line.fields[1], line.fields[2]
        probability = line.value(line.fields[3])
        self.require_probability(line, probability)
        if name in self.scenarios:
            raise line.error(f"the scenario {name!r} is here for the second time")
        values: dict[Element, float] = {}
        if parent.strip("'\"").upper() != "ROOT":
            if parent not in self.scenarios:
                raise line.error(f"expected 'ROOT' or an earlier scenario, but found {parent!r}")
            values = dict(self.scenarios[parent].values)
        self.scenarios[name] = _Realisation(line, probability, values)
        return self.scenarios[name]

    def realised(self, line: Line, into: _Realisation) -> None:
        """Values of a block or of a scenario."""
        for head, text in self.entries(line):
            element = self.element(line, head)
            if element in into.given:
                raise line.error(f"the {element} is here for the second time")
            into.given.add(element)
            into.values[element] = self.modified(line, element, line.value(text))

    def entries(self, line: Line) -> Iterator[tuple[tuple[str, ...], str]]:
        fields = line.fields
        if self.is_bound(fields) and len(fields) == 4:
            yield fields[:3], fields[3]
            return
        what = "a column (or RHS), a row and a value, and perhaps a second row and value"
        for row, text in line.pairs(fields[1:], what):
            yield (fields[0], row), text

    def is_bound(self, fields: tuple[str, ...]) -> bool:
        """Whether a line is about a bound: UP, the name of the bounds, a column."""
        named = len(fields) > 3 and fields[0].upper() in _BOUNDS and fields[2] in self.columns
        return named and not (fields[0] in self.columns and fields[1] in self.rows)

    def element(self, line: Line, head: tuple[str, ...]) -> Element:
        if len(head) == 3:
            return Element(_BOUNDS[head[0].upper()], column=head[2])
        column, row = head
        at_cost = row == self.core.objective
        if not at_cost and row not in self.rows:
            raise line.error(f"expected a row of the core file, but found {row!r}")
        if column in self.columns:
            return Element(Place.COST if at_cost else Place.ENTRY, "" if at_cost else row, column)
        if column == self.core.rhs_set or column.upper() == "RHS":
            if not at_cost and self.is_free(row):
                raise line.error(
                    f"the right-hand side of row {row!r} is infinite in the core file, which makes "
                    "it no row: give it a finite one there"
                )
            return Element(Place.OFFSET) if at_cost else Element(Place.RIGHT_SIDE, row)
        raise line.error(f"expected a column of the core file or RHS, but found {column!r}")

    def is_free(self, row: str) -> bool:
        """Whether a row of the core bounds nothing."""
        i = self.rows[row]
        return bool(np.isinf(self.core.below[i]) and np.isinf(self.core.above[i]))

    def base(self, element: Element) -> float:
        """The core's own value of an element."""
        core, column = self.core, self.columns.get(element.column, 0)
        match element.place:
            case Place.COST:
                return float(core.cost[column])
            case Place.ENTRY:
                return float(core.matrix[self.rows[element.row], column])
            case Place.RIGHT_SIDE:
                return float(core.rhs[self.rows[element.row]])
            case Place.OFFSET:
                return -core.constant
            case Place.UPPER:
                return float(core.upper[column])
        return float(core.lower[column])

    def modified(self, line: Line, element: Element, value: float) -> float:
        if self.modifier == "REPLACE":
            return value
        base = self.base(element)
        if np.isinf(base):
            raise line.error(f"{self.modifier} needs a finite {element} in the core file")
        return base + value if self.modifier == "ADD" else base * value

    def parameters(
        self, line: Line, element: Element, first: float, second: float
    ) -> tuple[float, float]:
        """Checked parameters of a density, those of the sum or product with the core's value."""
        shapes = self.family in ("GAMMA", "BETA")
        if (self.family == "UNIFORM" and first > second) or (
            self.family == "NORMAL" and second < 0
        ):
            raise line.error(f"expected {FAMILIES[self.family]}, but found {first:g}, {second:g}")
        if shapes and min(first, second) <= 0:
            raise line.error(f"expected two positive numbers, {FAMILIES[self.family]}")
        if self.modifier == "REPLACE":
            return first, second
        if shapes:
            raise line.error(f"{self.modifier} is read for DISCRETE, UNIFORM and NORMAL only")
        ends = (self.modified(line, element, first), self.modified(line, element, second))
        if self.family == "UNIFORM":
            return min(ends), max(ends)
        square = self.base(element) ** 2 if self.modifier == "MULTIPLY" else 1.0
        return ends[0], second * square

    def require_probability(self, line: Line, probability: float) -> None:
        if not 0 <= probability <= 1:
            raise line.error(f"expected a probability from 0 to 1, but found {probability:g}")

    def groups(self) -> tuple[Group, ...]:
        found: list[Group] = []
        for element, single in self.single.items():
            if single.family != "DISCRETE":
                found.append(Continuous(element, single.family, *single.values[0]))
                continue
            values, probabilities = np.array(single.values).T
            scaled = _scaled(str(element), probabilities, single.line)
            found.append(Discrete(str(element), (element,), values[:, None], scaled))
        parts = [*self.blocks.items()]
        if self.scenarios:
            parts.append(("scenarios", list(self.scenarios.values())))
        return (*found, *(self.joint(name, part) for name, part in parts))

    def joint(self, name: str, parts: list[_Realisation]) -> Discrete:
        elements = tuple(dict.fromkeys(element for part in parts for element in part.values))
        base = {element: self.base(element) for element in elements}
        values = [list((base | part.values).values()) for part in parts]
        probabilities = np.array([part.probability for part in parts])
        scaled = _scaled(name, probabilities, parts[0].line)
        return Discrete(name, elements, np.array(values).reshape(len(parts), -1), scaled)


@dataclass
class _Single:
    """An element by itself: (value, probability) of each realisation, or two parameters."""

    line: Line
    family: str
    values: list[tuple[float, float]] = field(default_factory=list)


def _scaled(name: str, probabilities: np.ndarray, line: Line) -> np.ndarray:
    total = float(probabilities.sum())
    if abs(total - 1) > _PROBABILITY_SLACK:
        raise line.error(f"the probabilities of {name!r} sum to {total:g}, but must to 1")
    return probabilities / total


def read_groups(lines: list[Line], core: Core) -> tuple[Group, ...]:
    """The independent groups of random elements of the lines of a stoch file."""
    reader = _Reader(core)
    for line in lines:
        (reader.header if line.is_header else reader.data)(line)
    groups = reader.groups()
    path = lines[0].path if lines else "the stoch file"
    elements = [element for group in groups for element in group.elements]
    if not elements:
        raise InvalidInputError(f"{path} says of nothing that it is random")
    twice, count = Counter(elements).most_common(1)[0]
    if count > 1:
        raise InvalidInputError(f"{path}: the {twice} is in two independent groups")
    return groups
