"""From settings files to checked settings: every message names file, table and key.

The files that come with forewise are in the folder ``settings``; others can be loaded instead or
beside them. May import: exceptions, and its siblings `schema`, `case_schema`, `methods`.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from forewise.exceptions import ForewiseError, InvalidInputError
from forewise_lab.experiments.case_schema import CaseTable
from forewise_lab.experiments.methods import Method, check_method
from forewise_lab.experiments.schema import ExperimentTable, MethodTable

#: The files that come with forewise.
FOLDER = Path(__file__).parent / "settings"
_TABLES = ("methods", "experiments")
_Model = TypeVar("_Model", bound=BaseModel)


@dataclass(frozen=True)
class Settings:
    """Experiments and methods, as the files say.

    Attributes
    ----------
    experiments : mapping of str to ExperimentTable
    methods : mapping of str to MethodTable
        As written; `method` has them complete.
    files : mapping of str to tuple of str
        The experiments of each file that has some, by its name without the ending: ``table1`` and
        so on.
    cases : mapping of str to CaseTable
        Experiments that roll over time.
    """

    experiments: Mapping[str, ExperimentTable]
    methods: Mapping[str, MethodTable]
    files: Mapping[str, tuple[str, ...]]
    cases: Mapping[str, CaseTable] = field(default_factory=dict)

    def experiment_names(self, asked: Iterable[str]) -> list[str]:
        """The experiments that were asked for, by their own names or by their file's."""
        names: list[str] = []
        for name in asked:
            if name in self.experiments or name in self.cases:
                names.append(name)
            elif name in self.files:
                names.extend(self.files[name])
            else:
                raise unknown("experiment", name, [*self.experiments, *self.cases, *self.files])
        return list(dict.fromkeys(names))

    def method_names(self, experiment: str, asked: Iterable[str] | None = None) -> list[str]:
        """The experiment's methods, or those of them that were asked for."""
        known = self.cases if experiment in self.cases else self.experiments
        listed = known[experiment].methods
        if asked is None:
            return list(listed)
        wanted = set(asked)
        for name in wanted:
            if name not in self.methods:
                raise unknown("method", name, self.methods)
        return [name for name in listed if name in wanted]

    def method(self, experiment: str, name: str) -> Method:
        """A method as it is in an experiment, complete."""
        return _complete(self, experiment, name, ())

    def headline(self, experiment: str, method: str) -> tuple[int, int, int]:
        """(n_train, m_train, m) of the one figure that a table shows for a method."""
        table = self.experiments[experiment]
        m_train, m = table.headline
        own = self.method(experiment, method).m
        return table.n_train[-1], m_train, m if own is None else own[-1]


def load_settings(*paths: str | os.PathLike[str]) -> Settings:
    """Load settings files; those that come with forewise if none are named.

    Parameters
    ----------
    *paths : path
        TOML files. Methods and experiments of one file may refer to those of another.

    Returns
    -------
    Settings

    Raises
    ------
    InvalidInputError
        If a file cannot be read or says what it may not; the message has file, table and key.
    """
    files = [Path(path) for path in paths] or sorted(FOLDER.glob("*.toml"))
    raw: dict[str, dict[str, Any]] = {kind: {} for kind in _TABLES}
    origin: dict[tuple[str, str], Path] = {}
    for file in files:
        for kind, tables in _read(file).items():
            for name, table in tables.items():
                if (kind, name) in origin:
                    raise InvalidInputError(
                        f"{file}: [{kind}.{name}] is defined in {origin[kind, name]} too: give "
                        "one of them another name"
                    )
                raw[kind][name] = table
                origin[kind, name] = file
    methods = {
        name: _checked(MethodTable, table, origin["methods", name], f"methods.{name}")
        for name, table in raw["methods"].items()
    }
    experiments: dict[str, ExperimentTable] = {}
    cases: dict[str, CaseTable] = {}
    for name in raw["experiments"]:
        file, where = origin["experiments", name], f"experiments.{name}"
        whole = _with_parents(raw["experiments"], name, file, ())
        if "evaluation" in whole:
            cases[name] = _checked(CaseTable, whole, file, where)
        else:
            experiments[name] = _checked(ExperimentTable, whole, file, where)
    by_file: dict[str, tuple[str, ...]] = {}
    for name in raw["experiments"]:  # a file of methods alone is none that can be run
        stem = origin["experiments", name].stem
        by_file[stem] = (*by_file.get(stem, ()), name)
    settings = Settings(experiments, methods, by_file, cases)
    for name in experiments:
        _check_experiment(settings, name, origin["experiments", name])
    for name, case in cases.items():
        where = f"{origin['experiments', name]}: [experiments.{name}]"
        _require_methods(settings, [*case.methods, *case.only], where)
    return settings


def _read(file: Path) -> dict[str, dict[str, Any]]:
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InvalidInputError(f"{file}: there is no such settings file") from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInputError(f"{file}: cannot be read as TOML: {error}") from error
    for kind, tables in content.items():
        if kind not in _TABLES:
            raise InvalidInputError(
                f"{file}: [{kind}] must be one of [methods.NAME] and [experiments.NAME]"
            )
        for name, table in tables.items() if isinstance(tables, dict) else [("", None)]:
            if not isinstance(table, dict):
                raise InvalidInputError(
                    f"{file}: [{kind}] must hold tables like [{kind}.NAME], but {name!r} is none"
                )
    return content


def _checked(model: type[_Model], table: dict[str, Any], file: Path, where: str) -> _Model:
    try:
        return model.model_validate(table)
    except ValidationError as error:
        told = []
        for fault in error.errors():
            # What is wrong with the table as a whole has no key.
            *inner, key = [str(part) for part in fault["loc"]] or ["settings"]
            place = ".".join([where, *inner])
            message = fault["msg"].removeprefix("Value error, ")
            if fault["type"] == "extra_forbidden":
                message = "is not a key of this table" + _hint(key, model.model_fields)
            told.append(f"{file}: [{place}] {key}: {message}")
        raise InvalidInputError("\n".join(told)) from error


def _with_parents(
    tables: dict[str, Any], name: str, file: Path, seen: tuple[str, ...]
) -> dict[str, Any]:
    """The table with what it takes over from the one it is `like`."""
    table = dict(tables[name])
    parent = table.pop("like", None)
    if parent is None:
        return table
    if parent not in tables or parent in (name, *seen):
        raise InvalidInputError(
            f"{file}: [experiments.{name}] like: must be another experiment, but is {parent!r}"
            + _hint(str(parent), tables)
        )
    return merged(_with_parents(tables, parent, file, (*seen, name)), table)


def merged(base: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with `change`: inner tables are merged too, but one of another kind replaces."""
    result = dict(base)
    for key, value in change.items():
        old = result.get(key)
        if (
            isinstance(old, Mapping)
            and isinstance(value, Mapping)
            and value.get("kind", old.get("kind")) == old.get("kind")
        ):
            result[key] = merged(old, value)
        else:
            result[key] = value
    return result


def _complete(settings: Settings, experiment: str, name: str, seen: tuple[str, ...]) -> Method:
    table = settings.methods[name]
    if table.like is not None:
        if table.like not in settings.methods or table.like in (name, *seen):
            raise InvalidInputError(
                f"[methods.{name}] like: must be another method, but is {table.like!r}"
                + _hint(table.like, settings.methods)
            )
        base = _complete(settings, experiment, table.like, (*seen, name)).as_table()
    else:
        network = settings.experiments[experiment].network
        base = {"training": network.training, "hidden_sizes": network.hidden_sizes}
    special = settings.experiments[experiment].only.get(name, MethodTable())
    for change in (table, special):
        base = merged(base, change.model_dump(exclude_unset=True, exclude={"like"}))
    return Method.of(name, base)


def _check_experiment(settings: Settings, name: str, file: Path) -> None:
    table = settings.experiments[name]
    where = f"{file}: [experiments.{name}]"
    _require_methods(settings, [*table.methods, *table.only], where)
    if table.headline not in table.scenarios:
        raise InvalidInputError(f"{where} headline: must be one of the pairs in scenarios")
    needing = {"FR", "EFR", "FR32"} & set(table.metrics)
    if needing and table.oracle is None:
        raise InvalidInputError(
            f"{where} oracle: is missing, but needed for {', '.join(sorted(needing))}"
        )
    for method in table.methods:
        try:
            check_method(settings.method(name, method))
        except ForewiseError as error:
            raise InvalidInputError(f"{where} with [methods.{method}]: {error}") from error


def _require_methods(settings: Settings, named: Iterable[str], where: str) -> None:
    for method in named:
        if method not in settings.methods:
            raise InvalidInputError(f"{where} {unknown('method', method, settings.methods)}")


def unknown(kind: str, name: str, known: Iterable[str]) -> InvalidInputError:
    """The error for a name that does not exist, with those that it may have meant."""
    known = list(dict.fromkeys(known))
    hint = _hint(name, known)
    return InvalidInputError(
        f"there is no {kind} named {name!r}{hint or '; there are ' + ', '.join(known)}"
    )


def _hint(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=3)
    return f"; did you mean {' or '.join(close)}?" if close else ""
