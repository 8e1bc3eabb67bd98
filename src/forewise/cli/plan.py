"""`plan.toml`: what the columns of a table mean and what is decided; read, checked, and used.

Every error says the line, what was expected, and what to write. A plan names no code: a problem
of the user's own comes from the command line alone.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forewise.cli.templates import TEMPLATES, Key, whole_number
from forewise.exceptions import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from forewise.problems import Problem

_KINDS = ("number", "boolean", "category", "date", "ignore")


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _are_names(value: Any) -> bool:
    names = isinstance(value, list) and all(_is_name(name) for name in value)
    return _is_name(value) or (names and len(set(value)) == len(value))


_NAME = "the name of a column"
_NAMES = "names of columns, none twice"
COLUMNS = {
    "outcome": Key(_NAMES, '"sales"', lambda v: _are_names(v) and v != [], required=True),
    "date": Key(_NAME, '"date"', _is_name),
    "series": Key(_NAMES, '["store", "product"]', _are_names),
    "known": Key(_NAMES, '["promotion", "price"]', _are_names),
    "given": Key(_NAMES, '["budget"]', _are_names),
    "sold_out": Key(_NAMES, '"sold_out"', _are_names),
    "closed": Key(_NAME, '"closed"', _is_name),
    "kinds": Key(
        f"columns with their kind, one of {', '.join(_KINDS)}",
        '{ store = "category" }',
        lambda v: isinstance(v, dict) and all(kind in _KINDS for kind in v.values()),
    ),
}
PLANNING = {
    "horizon": whole_number("1", at_least=1),
    "time_limit": Key(
        "a number of seconds above 0",
        "600",
        lambda v: isinstance(v, int | float) and not isinstance(v, bool) and v > 0,
    ),
    "n_scenarios": whole_number("64", at_least=1),
    "n_jobs": Key(
        "an integer number of processes, -1 for one per core",
        "1",
        lambda v: type(v) is int and v != 0,
    ),
    "random_state": whole_number("0", at_least=0),
}
_SECTIONS = ("columns", "problem", "planning")
_HEADER = re.compile(r"\s*\[\s*([\w-]+)\s*(?:\.\s*([\w-]+)\s*)?\]")
_KEY = re.compile(r"\s*[\"']?([\w-]+)[\"']?\s*[.=]")


@dataclass(frozen=True)
class Plan:
    """A checked plan: the values of its sections, and the line of each for messages.

    `lines` has (section, key), and (section, "") for a section's own line.
    """

    path: Path
    columns: dict[str, Any]
    problem: dict[str, Any]
    planning: dict[str, Any]
    lines: dict[tuple[str, str], int]

    @property
    def outcomes(self) -> list[str]:
        """Names of the outcome's columns."""
        return _listed(self.columns["outcome"])

    def named(self) -> Iterator[tuple[str, str]]:
        """Each role with each column that it names."""
        for role, value in self.columns.items():
            for name in value if role == "kinds" else _listed(value):
                yield role, name

    def require_columns(self, table: pd.DataFrame, file: Path) -> None:
        """Raise with the line of a column that the table has not."""
        there = [str(name) for name in table.columns]
        for role, name in self.named():
            if name not in there:
                near = difflib.get_close_matches(name, there, 1)
                advice = f"write {near[0]!r}" if near else f"it has {', '.join(there)}"
                raise self.refused(
                    "columns",
                    role,
                    f"{role} names {name!r}, but {file} has no such column: {advice}",
                )

    def made_problem(self, own: Problem | None = None) -> Problem:
        """The template's problem, or the user's own; raise where it does not fit the columns."""
        template = self.problem["template"]
        if own is None and template == "cvxpy":
            raise self.refused(
                "problem",
                "template",
                "template 'cvxpy' is a problem in your own code, which is never taken from a file: "
                "name it on the command line, as --problem problem:problem for `problem` of "
                "problem.py",
            )
        with self._reported("problem"):
            problem = own or TEMPLATES[template].make(self.problem, self.outcomes, self.given)
        count = problem.n_outcomes
        if count is not None and count != len(self.outcomes):
            raise self.refused(
                "columns",
                "outcome",
                f"outcome names {len(self.outcomes)} columns, but the problem decides about "
                f"{count}: name {count}, or change [problem]",
            )
        return problem

    @property
    def given(self) -> list[str]:
        """Names of the columns that are given to the problem."""
        return _listed(self.columns.get("given", []))

    def arguments(self) -> dict[str, Any]:
        """Arguments of `fw.Planner` but the problem."""
        return self.columns | self.planning

    def refused(self, section: str, key: str, what: str) -> InvalidInputError:
        """The error that says where a plan is wrong."""
        line = self.lines.get((section, key)) or self.lines.get((section, ""))
        place = f"{self.path}, line {line}" if line else str(self.path)
        return InvalidInputError(f"{place}: {what}")

    @contextmanager
    def _reported(self, section: str) -> Iterator[None]:
        try:
            yield
        except InvalidInputError as error:
            key = next((key for key in self.problem if str(error).startswith(key)), "")
            raise self.refused(section, key, str(error)) from error


def read_plan(path: str | Path) -> Plan:
    """The plan of a file, checked but for what only a table can tell."""
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise InvalidInputError(
            f"{file} does not exist: `forewise init` with the name of your table writes it"
        ) from error
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{file} must be text in UTF-8, but is not: save it so") from error
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInputError(
            f"{file} is not TOML: {error}. Text stands in quotes, lists in [ ], as in "
            'series = ["store", "product"]'
        ) from error
    plan = Plan(file, {}, {}, {}, _lines(text))
    for name, value in content.items():
        if name not in _SECTIONS or not isinstance(value, dict):
            near = difflib.get_close_matches(name, _SECTIONS, 1)
            homes = {"columns": COLUMNS, "planning": PLANNING}
            home = next((section for section, keys in homes.items() if name in keys), None)
            advice = f"write [{near[0]}]" if near else "there are [columns], [problem], [planning]"
            if home:
                advice = f"{name} belongs below [{home}]"
            line = plan.lines.get((name, "")) or plan.lines.get(("", name))
            place = f"{file}, line {line}" if line else str(file)
            raise InvalidInputError(f"{place}: {name!r} is no section of a plan: {advice}")
    plan.columns.update(_checked(plan, "columns", content.get("columns", {}), COLUMNS))
    plan.planning.update(_checked(plan, "planning", content.get("planning", {}), PLANNING))
    problem = content.get("problem", {})
    choice = Key(
        f"one of {', '.join(TEMPLATES)}", '"newsvendor"', lambda v: v in TEMPLATES, required=True
    )
    kind = _checked(plan, "problem", {k: v for k, v in problem.items() if k == "template"},
                    {"template": choice})["template"]  # fmt: skip
    keys = {"template": choice, **TEMPLATES[kind].keys}
    plan.problem.update(_checked(plan, "problem", problem, keys))
    return plan


def _checked(
    plan: Plan, section: str, values: Mapping[str, Any], keys: Mapping[str, Key]
) -> dict[str, Any]:
    """The values of a section, none unknown, none of the wrong type, none missing."""
    for name, value in values.items():
        if name not in keys:
            near = difflib.get_close_matches(name, keys, 1)
            advice = f"did you mean {near[0]}? " if near else ""
            raise plan.refused(
                section, name, f"{name} is no key of [{section}]: {advice}It has {', '.join(keys)}"
            )
        if not keys[name].fits(value):
            example = f"{name} = {keys[name].example}"
            raise plan.refused(
                section,
                name,
                f"{name} must be {keys[name].expected}, but is {value!r}: write, say, {example}",
            )
    for name, key in keys.items():
        if key.required and name not in values:
            raise plan.refused(
                section,
                "",
                f"[{section}] must say {name}, {key.expected}: write, say, {name} = {key.example}",
            )
    return dict(values)


def _lines(text: str) -> dict[tuple[str, str], int]:
    """The line of each section and key; of keys in tables within a section, that of the table."""
    found: dict[tuple[str, str], int] = {}
    section, inner = "", False
    for number, line in enumerate(text.splitlines(), 1):
        if match := _HEADER.match(line):
            section, inner = match[1], match[2] is not None
            found.setdefault((section, match[2] or ""), number)
        elif (match := _KEY.match(line)) and not inner:
            found.setdefault((section, match[1]), number)
    return found


def _listed(value: str | Iterable[str]) -> list[str]:
    return [value] if isinstance(value, str) else list(value)
