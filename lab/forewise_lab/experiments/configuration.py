"""Settings files: experiments, methods, cases, and the paper's own numbers.

A file is TOML with two kinds of tables, ``[methods.NAME]`` and ``[experiments.NAME]``; the classes
below are their keys. An experiment with ``evaluation = "rolling"`` is a case. Shipped files are in
the folder ``settings``; others can be loaded instead. Every error names file, table and key.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cached_property, reduce
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

import pydantic
from pydantic import Field

import forewise as fw
from forewise_lab.experiments import kinds
from forewise_lab.experiments.kinds import closest, unknown
from forewise_lab.experiments.methods import Method, check_method

#: The shipped files, and what is smaller in the quick version.
FOLDER = Path(__file__).parent / "settings"
QUICK = tomllib.loads((Path(__file__).parent / "quick.toml").read_text(encoding="utf-8"))
#: Data that a case can be about, and what is decided in them.
SOURCES = ("bakery-series", "bakery-stores", "victoria")
DECISIONS = ("newsvendor", "oven", "day-ahead")

Count = Annotated[pydantic.StrictInt, Field(ge=1)]
Positive = Annotated[float, Field(gt=0)]
#: M_train and M.
Pair = tuple[Count, Count]
#: A table of settings that is checked where it is used.
Free = dict[str, Any]
_Model = TypeVar("_Model", bound=pydantic.BaseModel)


def known_in(names: Collection[str]) -> pydantic.AfterValidator:
    """For a field whose text must be one of these."""

    def check(name: str) -> str:
        if name not in names:
            raise ValueError(f"must be one of {', '.join(names)}, but is {name!r}")
        return name

    return pydantic.AfterValidator(check)


class SettingsTable(pydantic.BaseModel):
    """A table of a settings file: unknown keys are mistakes."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)


class DatasetTable(SettingsTable):
    """Which data: `name`, and how many rows to validate and test on if not the paper's."""

    name: Annotated[str, known_in(kinds.DATASETS)]
    n_assets: Count | None = None
    n_validation: Count | None = None
    n_test: Count | None = None


class ProblemTable(SettingsTable):
    """Which problem: `name`, and the few numbers that can be set."""

    name: Annotated[str, known_in(kinds.PROBLEMS)]
    budget: float | None = None
    minimum_return: float | None = None


class OracleTable(SettingsTable):
    """Draws from the true distribution for the oracle, and for the metric FR32."""

    draws: Count
    few_draws: Count = 32


class RollingTable(SettingsTable):
    """How a method learns in a case, an experiment that rolls over time."""

    each: Literal["all", "series"] = "all"  # one model of all rows, or one for each series
    history_days: Count | None = None  # to train on before a window; all by default
    relative: bool = False  # outcomes as multiples of a recent mean, where the case has one
    trials: tuple[Free, ...] = ()  # changes; the best on the tuning days is chosen


class MethodTable(SettingsTable):
    """How decisions are learned; what is left out comes from `like`, or from the experiment.

    `learner` and `predictor` have a `kind` and that class's own settings, `training` those of
    `forewise.Training`. Weight draws of decoupled Bayesian training are M_train, unless the
    predictor has `n_scenarios`. `keep` is the epoch whose weights are kept: the best on the
    validation rows, or the last. `m` replaces the experiment's M. `rolling` is for cases alone.
    """

    title: str | None = None
    like: str | None = None
    learner: Free = {}
    predictor: Free = {}
    training: Free = {}
    keep: Literal["best", "last"] | None = None
    m: tuple[Count, ...] | None = None
    rolling: RollingTable | None = None


class NetworkTable(SettingsTable):
    """What all networks of an experiment have, unless a method says otherwise."""

    hidden_sizes: tuple[Count, ...]
    training: Free = {}


class PaperFigure(SettingsTable):
    """A figure of the paper, in the units of its tables."""

    method: str
    metric: str
    mean: float
    std: float | None = None
    m_train: Count | None = None
    m: Count | None = None


class _Study(SettingsTable):
    """What experiments and cases have in common."""

    title: str
    methods: tuple[str, ...]
    network: NetworkTable
    only: dict[str, MethodTable] = {}  # what is special to one method here


class ExperimentTable(_Study):
    """One experiment: data, problem, methods, and what is measured.

    Of several optimal decisions `solver` "auto" gives the centre (where there is no closed form);
    "vertex" a corner, in decisions and in the oracle's; "ridge" adds the authors' quadratic term,
    in combined training and in decisions, not in the oracle's.
    """

    dataset: DatasetTable
    problem: ProblemTable
    oracle: OracleTable | None = None  # left out where the true distribution is not known
    n_train: tuple[Count, ...]  # training rows; one fit for each
    scenarios: tuple[Pair, ...]
    headline: Pair  # of the one number per method in a table
    metrics: tuple[Annotated[str, known_in(kinds.METRICS)], ...]
    solver: Annotated[str, known_in(kinds.SOLVERS)] = "auto"
    n_seeds: Count = 5
    keep_policies: bool = False  # in ``policies/EXPERIMENT/seedN/METHOD`` beside the rows
    scale: float = 1.0  # of R, FR, EFR, FR32 and cost in tables; stored values are never scaled
    paper: tuple[PaperFigure, ...] = ()  # the paper's numbers, in the units of its tables

    @pydantic.model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.headline not in self.scenarios:
            raise ValueError("headline: must be one of the pairs in scenarios")
        needing = sorted(kinds.ORACLE_METRICS & set(self.metrics))
        if needing and self.oracle is None:
            raise ValueError(f"oracle: is missing, but needed for {', '.join(needing)}")
        return self


class SourceTable(SettingsTable):
    """Which rows: `name`, and of which stores (all by default).

    `oven` is the size of a store's oven as a share of its mean demand, for bakery-stores.
    """

    name: Annotated[str, known_in(SOURCES)]
    stores: tuple[Count, ...] | None = None
    oven: Positive = 1.0


class DecisionTable(SettingsTable):
    """What is decided: `name`; service levels of the newsvendor; CVaR's level of the oven."""

    name: Annotated[str, known_in(DECISIONS)]
    levels: tuple[float, ...] = ()
    cvar: float | None = None


class CaseTable(_Study):
    """One case: data, decisions, periods, methods."""

    evaluation: Literal["rolling"]
    source: SourceTable
    decision: DecisionTable
    first_day: date  # of the test windows
    last_day: date  # included
    window: Literal["week", "month", "quarter", "year"] = "quarter"  # methods are refitted each
    history_days: Count | None = None  # no method sees more days than this before a window
    tuning_days: Count = 90  # before the first day: trials are compared on them
    stopping_days: Count = 60  # last training days: they choose the epoch of a network
    m: Count  # scenarios of a decision
    m_train: Count = 16  # scenarios of a context in combined learning
    most_m: Count | None = None  # of any method, also of one that has its own M

    @pydantic.model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.first_day > self.last_day:
            raise ValueError("first_day must not be after last_day")
        if (self.decision.name == "newsvendor") != bool(self.decision.levels):
            raise ValueError("decision.levels belong to the newsvendor, and it needs some")
        return self

    def scope(self) -> Free:
        """What decides the results of every method, for the configuration hash."""
        keys = {"source", "decision", "m", "m_train", "most_m", "history_days", "stopping_days"}
        return self.model_dump(mode="json", include=keys | {"first_day", "tuning_days"})


@dataclass(frozen=True)
class Settings:
    """Experiments, cases and methods, as the files say.

    `methods` are as written; `method` has them complete. `files` are the experiments of each file
    that has some, by its name without the ending: ``table1`` and so on.
    """

    tables: Mapping[str, ExperimentTable | CaseTable]
    methods: Mapping[str, MethodTable]
    files: Mapping[str, tuple[str, ...]]

    @cached_property
    def experiments(self) -> dict[str, ExperimentTable]:
        return {n: one for n, one in self.tables.items() if isinstance(one, ExperimentTable)}

    @cached_property
    def cases(self) -> dict[str, CaseTable]:
        return {n: one for n, one in self.tables.items() if isinstance(one, CaseTable)}

    def experiment_names(self, asked: Iterable[str]) -> list[str]:
        """The experiments that were asked for, by their own names or by their file's."""
        names: list[str] = []
        for name in asked:
            if name not in self.tables and name not in self.files:
                raise unknown("experiment", name, [*self.experiments, *self.cases, *self.files])
            names += [name] if name in self.tables else self.files[name]
        return list(dict.fromkeys(names))

    def method_names(self, experiment: str, asked: Iterable[str] | None = None) -> list[str]:
        listed = self.tables[experiment].methods
        wanted = set(listed if asked is None else asked)
        for name in wanted - set(self.methods):
            raise unknown("method", name, self.methods)
        return [name for name in listed if name in wanted]

    def method(self, experiment: str, name: str) -> Method:
        return Method.from_table(name, self.method_table(experiment, name))

    def method_table(self, experiment: str, name: str) -> Free:
        """The settings of a method in an experiment or a case, merged.

        In an experiment, what is special to a method (`only`) holds for those that are like it.
        """
        table = self.tables[experiment]
        whole: Free = table.network.model_dump(include={"training", "hidden_sizes"})
        parents = {method: own.like for method, own in self.methods.items()}
        for ancestor in _lineage("[methods", parents, name):
            changes = [self.methods[ancestor]]
            if ancestor in table.only and (ancestor == name or experiment not in self.cases):
                changes.append(table.only[ancestor])
            for change in changes:
                whole = merged(whole, change.model_dump(exclude_unset=True, exclude={"like"}))
        return whole | {"title": self.methods[name].title}

    def headline(self, experiment: str, method: str) -> tuple[int, int, int]:
        """(n_train, m_train, m) of the one figure that a table shows for a method."""
        table = self.experiments[experiment]
        m_train, m = table.headline
        own = self.method(experiment, method).m
        return table.n_train[-1], m_train, m if own is None else own[-1]

    def quick(self) -> Settings:
        """Everything so small that a whole table is a matter of minutes; see ``quick.toml``."""
        tables: dict[str, ExperimentTable | CaseTable] = {}
        for name, table in self.tables.items():
            is_case = isinstance(table, CaseTable)
            kind = table.source.name if isinstance(table, CaseTable) else "experiment"
            whole = merged(table.model_dump(exclude_unset=True), QUICK[kind])
            whole = limited(whole, QUICK["limits"] | (QUICK["limits_of_cases"] if is_case else {}))
            if isinstance(table, CaseTable):
                last = table.first_day + timedelta(days=whole["tuning_days"] - 1)
                whole["last_day"] = min(table.last_day, last)
            for key in whole.keys() & {"n_train", "scenarios"}:
                whole[key] = tuple(dict.fromkeys(whole[key]))
            tables[name] = type(table).model_validate(whole)
        methods = {}
        parents = {name: own.like for name, own in self.methods.items()}
        for name, own in self.methods.items():
            whole = limited(own.model_dump(exclude_unset=True), QUICK["limits"])
            if "trials" in whole.get("rolling", {}):
                lineage = (self.methods[one].learner for one in _lineage("[methods", parents, name))
                learner: Free = reduce(merged, lineage, {})
                whole["rolling"]["trials"] = whole["rolling"]["trials"][
                    : QUICK["trials"].get(learner.get("kind"), 1)
                ]
            methods[name] = MethodTable.model_validate(whole)
        return replace(self, tables=tables, methods=methods)


def load_settings(*paths: str | os.PathLike[str]) -> Settings:
    """Load TOML files, which may refer to each other; the shipped ones if none are named.

    Raises an `InvalidInputError` that names file, table and key.
    """
    raw: dict[str, dict[str, Free]] = {"methods": {}, "experiments": {}}
    origin: dict[tuple[str, str], Path] = {}
    by_file: dict[str, tuple[str, ...]] = {}  # a file of methods alone is none that can be run
    for file in [Path(path) for path in paths] or sorted(FOLDER.glob("*.toml")):
        for kind, name, table in _read(file):
            if (kind, name) in origin:
                raise fw.InvalidInputError(
                    f"{file}: [{kind}.{name}] is defined in {origin[kind, name]} too: give "
                    "one of them another name"
                )
            raw[kind][name] = table
            origin[kind, name] = file
            if kind == "experiments":
                by_file[file.stem] = (*by_file.get(file.stem, ()), name)
    methods = {
        name: _checked(MethodTable, table, f"{origin['methods', name]}: [methods.{name}")
        for name, table in raw["methods"].items()
    }
    tables: dict[str, ExperimentTable | CaseTable] = {}
    parents = {name: table.get("like") for name, table in raw["experiments"].items()}
    for name in raw["experiments"]:
        where = f"{origin['experiments', name]}: [experiments"
        lineage = [raw["experiments"][one] for one in _lineage(where, parents, name)]
        whole: Free = reduce(merged, lineage, {})
        whole.pop("like", None)
        model: Any = CaseTable if "evaluation" in whole else ExperimentTable
        tables[name] = _checked(model, whole, f"{where}.{name}")
    settings = Settings(tables, methods, by_file)
    for name in tables:
        _check_methods(settings, name, f"{origin['experiments', name]}: [experiments.{name}]")
    return settings


def _read(file: Path) -> Iterator[tuple[str, str, Free]]:
    """Kind, name and content of each table of a file."""
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise fw.InvalidInputError(f"{file}: there is no such settings file") from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise fw.InvalidInputError(f"{file}: cannot be read as TOML: {error}") from error
    for kind, tables in content.items():
        if kind not in ("methods", "experiments"):
            raise fw.InvalidInputError(
                f"{file}: [{kind}] must be one of [methods.NAME] and [experiments.NAME]"
            )
        for name, table in tables.items() if isinstance(tables, dict) else [("", None)]:
            if not isinstance(table, dict):
                raise fw.InvalidInputError(
                    f"{file}: [{kind}] must hold tables like [{kind}.NAME], but {name!r} is none"
                )
            yield kind, name, table


def _checked(model: type[_Model], table: Free, where: str) -> _Model:
    """The table, checked; `where` is its place, without the closing bracket."""
    try:
        return model.model_validate(table)
    except pydantic.ValidationError as error:
        found = []
        for fault in error.errors():
            message = fault["msg"].removeprefix("Value error, ")
            *inner, key = [str(part) for part in fault["loc"]] or [""]
            if fault["type"] == "extra_forbidden":
                message = "is not a key of this table" + closest(key, model.model_fields)
            # What is wrong with the table as a whole has no key, and names what it is about.
            found.append(f"{'.'.join([where, *inner])}] {key}{': ' if key else ''}{message}")
        raise fw.InvalidInputError("\n".join(found)) from error


def merged(base: Mapping[str, Any], change: Mapping[str, Any]) -> Free:
    """`base` with `change`: inner tables are merged too, but one of another kind replaces."""
    result = dict(base)
    for key, value in change.items():
        old: Any = result.get(key)
        both = isinstance(old, Mapping) and isinstance(value, Mapping)
        if both and value.get("kind", old.get("kind")) == old.get("kind"):
            result[key] = merged(old, value)
        else:
            result[key] = value
    return result


def limited(value: Any, limits: Mapping[str, int], most: int | None = None) -> Any:
    """The table with the numbers of some names made smaller, wherever they stand."""
    if isinstance(value, Mapping):
        return {key: limited(one, limits, limits.get(key)) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return tuple(limited(one, limits, most) for one in value)
    return min(value, most) if isinstance(value, int) and most is not None else value


def _lineage(
    kind: str, parents: Mapping[str, Any], name: str, seen: tuple[str, ...] = ()
) -> list[str]:
    """The name, after those of the tables that it is `like`."""
    parent = parents[name]
    if parent is None:
        return [name]
    if parent not in parents or parent in (name, *seen):
        raise fw.InvalidInputError(
            f"{kind}.{name}] like: must be another of its kind, but is {parent!r}"
            + closest(str(parent), parents)
        )
    return [*_lineage(kind, parents, parent, (*seen, name)), name]


def _check_methods(settings: Settings, name: str, where: str) -> None:
    """Raise unless the methods of an experiment exist; in a case, trials are checked later."""
    table = settings.tables[name]
    for method in (*table.methods, *table.only):
        if method not in settings.methods:
            raise fw.InvalidInputError(f"{where} {unknown('method', method, settings.methods)}")
    for method in table.methods if name in settings.experiments else ():
        try:
            check_method(settings.method(name, method))
        except fw.ForewiseError as error:
            raise fw.InvalidInputError(f"{where} with [methods.{method}]: {error}") from error
