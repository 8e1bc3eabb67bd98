"""Settings files: experiments, methods, cases, and the paper's own numbers.

A file is TOML with two kinds of tables, ``[methods.NAME]`` and ``[experiments.NAME]``; the classes
below are their keys. An experiment with ``evaluation = "rolling"`` is a case. Shipped files are in
the folder ``settings``; others can be loaded instead. Every error names file, table and key.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StrictInt,
    ValidationError,
    model_validator,
)

from forewise.exceptions import ForewiseError, InvalidInputError
from forewise_lab.experiments.kinds import DATASETS, METRICS, ORACLE_METRICS, PROBLEMS, SOLVERS
from forewise_lab.experiments.methods import Method, check_method

#: The shipped files.
FOLDER = Path(__file__).parent / "settings"
#: Data that a case can be about, and what is decided in them.
SOURCES = ("bakery-series", "bakery-stores", "victoria")
DECISIONS = ("newsvendor", "oven", "day-ahead")

Count = Annotated[StrictInt, Field(ge=1)]
Positive = Annotated[float, Field(gt=0)]
#: M_train and M.
Pair = tuple[Count, Count]
#: A table of settings that is checked where it is used.
Free = dict[str, Any]
_Model = TypeVar("_Model", bound=BaseModel)


def known_in(names: Collection[str]) -> AfterValidator:
    """For a field whose text must be one of these."""

    def check(name: str) -> str:
        if name not in names:
            raise ValueError(f"must be one of {', '.join(names)}, but is {name!r}")
        return name

    return AfterValidator(check)


class SettingsTable(BaseModel):
    """A table of a settings file: unknown keys are mistakes."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class DatasetTable(SettingsTable):
    """Which data: `name`, and how many rows to validate and test on if not the paper's."""

    name: Annotated[str, known_in(DATASETS)]
    n_assets: Count | None = None
    n_validation: Count | None = None
    n_test: Count | None = None


class ProblemTable(SettingsTable):
    """Which problem: `name`, and the few numbers that can be set."""

    name: Annotated[str, known_in(PROBLEMS)]
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


class ExperimentTable(SettingsTable):
    """One experiment: data, problem, methods, and what is measured.

    Of several optimal decisions `solver` "auto" gives the centre (where there is no closed form);
    "vertex" a corner, in decisions and in the oracle's; "ridge" adds the authors' quadratic term,
    in combined training and in decisions, not in the oracle's.
    """

    title: str
    dataset: DatasetTable
    problem: ProblemTable
    oracle: OracleTable | None = None  # left out where the true distribution is not known
    n_train: tuple[Count, ...]  # training rows; one fit for each
    scenarios: tuple[Pair, ...]
    headline: Pair  # of the one number per method in a table
    metrics: tuple[Annotated[str, known_in(METRICS)], ...]
    methods: tuple[str, ...]
    solver: Annotated[str, known_in(SOLVERS)] = "auto"
    network: NetworkTable
    only: dict[str, MethodTable] = {}  # what is special to one method here
    n_seeds: Count = 5
    keep_policies: bool = False  # in ``policies/EXPERIMENT/seedN/METHOD`` beside the rows
    scale: float = 1.0  # of R, FR, EFR, FR32 and cost in tables; stored values are never scaled
    paper: tuple[PaperFigure, ...] = ()  # the paper's numbers, in the units of its tables

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.headline not in self.scenarios:
            raise ValueError("headline: must be one of the pairs in scenarios")
        needing = sorted(ORACLE_METRICS & set(self.metrics))
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


class CaseTable(SettingsTable):
    """One case: data, decisions, periods, methods."""

    evaluation: Literal["rolling"]
    title: str
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
    methods: tuple[str, ...]
    network: NetworkTable
    only: dict[str, MethodTable] = Field(default_factory=dict)

    @model_validator(mode="after")
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

    experiments: Mapping[str, ExperimentTable]
    methods: Mapping[str, MethodTable]
    files: Mapping[str, tuple[str, ...]]
    cases: Mapping[str, CaseTable] = field(default_factory=dict)

    def table(self, name: str) -> ExperimentTable | CaseTable:
        return self.cases[name] if name in self.cases else self.experiments[name]

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
        listed = self.table(experiment).methods
        if asked is None:
            return list(listed)
        wanted = set(asked)
        for name in wanted:
            if name not in self.methods:
                raise unknown("method", name, self.methods)
        return [name for name in listed if name in wanted]

    def method(self, experiment: str, name: str) -> Method:
        return Method.from_table(name, self.method_table(experiment, name))

    def method_table(self, experiment: str, name: str) -> Free:
        """The settings of a method in an experiment or a case, merged.

        In an experiment, what is special to a method (`only`) holds for those that are like it.
        """
        table = self.table(experiment)
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


def load_settings(*paths: str | os.PathLike[str]) -> Settings:
    """Load TOML files, which may refer to each other; the shipped ones if none are named.

    Raises an `InvalidInputError` that names file, table and key.
    """
    files = [Path(path) for path in paths] or sorted(FOLDER.glob("*.toml"))
    raw: dict[str, dict[str, Any]] = {"methods": {}, "experiments": {}}
    origin: dict[tuple[str, str], Path] = {}
    by_file: dict[str, tuple[str, ...]] = {}  # a file of methods alone is none that can be run
    for file in files:
        for kind, name, table in _read(file):
            if (kind, name) in origin:
                raise InvalidInputError(
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
    experiments: dict[str, ExperimentTable] = {}
    cases: dict[str, CaseTable] = {}
    parents = {name: table.get("like") for name, table in raw["experiments"].items()}
    for name in raw["experiments"]:
        where = f"{origin['experiments', name]}: [experiments.{name}"
        whole: Free = {}
        for ancestor in _lineage(f"{origin['experiments', name]}: [experiments", parents, name):
            whole = merged(whole, raw["experiments"][ancestor])
        whole.pop("like", None)
        if "evaluation" in whole:
            cases[name] = _checked(CaseTable, whole, where)
        else:
            experiments[name] = _checked(ExperimentTable, whole, where)
    settings = Settings(experiments, methods, by_file, cases)
    for name in raw["experiments"]:
        _check_methods(settings, name, f"{origin['experiments', name]}: [experiments.{name}]")
    return settings


def _read(file: Path) -> Iterator[tuple[str, str, Free]]:
    """Kind, name and content of each table of a file."""
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InvalidInputError(f"{file}: there is no such settings file") from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInputError(f"{file}: cannot be read as TOML: {error}") from error
    for kind, tables in content.items():
        if kind not in ("methods", "experiments"):
            raise InvalidInputError(
                f"{file}: [{kind}] must be one of [methods.NAME] and [experiments.NAME]"
            )
        for name, table in tables.items() if isinstance(tables, dict) else [("", None)]:
            if not isinstance(table, dict):
                raise InvalidInputError(
                    f"{file}: [{kind}] must hold tables like [{kind}.NAME], but {name!r} is none"
                )
            yield kind, name, table


def _checked(model: type[_Model], table: Free, where: str) -> _Model:
    """The table, checked; `where` is its place, without the closing bracket."""
    try:
        return model.model_validate(table)
    except ValidationError as error:
        found = []
        for fault in error.errors():
            message = fault["msg"].removeprefix("Value error, ")
            *inner, key = [str(part) for part in fault["loc"]] or [""]
            if fault["type"] == "extra_forbidden":
                message = "is not a key of this table" + _hint(key, model.model_fields)
            # What is wrong with the table as a whole has no key, and names what it is about.
            found.append(f"{'.'.join([where, *inner])}] {key}{': ' if key else ''}{message}")
        raise InvalidInputError("\n".join(found)) from error


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


def _lineage(
    kind: str, parents: Mapping[str, Any], name: str, seen: tuple[str, ...] = ()
) -> list[str]:
    """The name, after those of the tables that it is `like`."""
    parent = parents[name]
    if parent is None:
        return [name]
    if parent not in parents or parent in (name, *seen):
        raise InvalidInputError(
            f"{kind}.{name}] like: must be another of its kind, but is {parent!r}"
            + _hint(str(parent), parents)
        )
    return [*_lineage(kind, parents, parent, (*seen, name)), name]


def _check_methods(settings: Settings, name: str, where: str) -> None:
    """Raise unless the methods of an experiment exist; in a case, trials are checked later."""
    table = settings.table(name)
    for method in (*table.methods, *table.only):
        if method not in settings.methods:
            raise InvalidInputError(f"{where} {unknown('method', method, settings.methods)}")
    for method in table.methods if name in settings.experiments else ():
        try:
            check_method(settings.method(name, method))
        except ForewiseError as error:
            raise InvalidInputError(f"{where} with [methods.{method}]: {error}") from error


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
