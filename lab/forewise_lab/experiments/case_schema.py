"""What a settings file may say of a case: an experiment that rolls over time, on real data.

An experiment with ``evaluation = "rolling"`` is a case; the classes below are its keys.
May import: its sibling `schema`.
"""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from forewise_lab.experiments.schema import Count, Free, MethodTable, NetworkTable, Table, known_in

#: Data that a case can be about, and what is decided in them.
SOURCES = ("bakery-series", "bakery-stores", "victoria")
DECISIONS = ("newsvendor", "oven", "day-ahead")
Positive = Annotated[float, Field(gt=0)]


class SourceTable(Table):
    """Which rows: `name`, and of which stores (all by default).

    `oven` is the size of a store's oven as a share of its mean demand, for bakery-stores.
    """

    name: Annotated[str, known_in(SOURCES)]
    stores: tuple[Count, ...] | None = None
    oven: Positive = 1.0


class DecisionTable(Table):
    """What is decided: `name`; service levels of the newsvendor; CVaR's level of the oven."""

    name: Annotated[str, known_in(DECISIONS)]
    levels: tuple[float, ...] = ()
    cvar: float | None = None


class CaseTable(Table):
    """One case: data, decisions, periods, methods.

    Parameters
    ----------
    evaluation : "rolling"
    title : str
    source, decision : tables
    first_day, last_day : date
        What is judged; both are included.
    window : {"week", "month", "quarter", "year"}
        Methods are fitted anew at the beginning of each.
    history_days : int, optional
        No method sees more days than this before a window.
    tuning_days : int
        The trials of a method are compared on so many days before the first; they are trained
        on what came before these.
    stopping_days : int
        The last so many days of the training rows say which epoch of a network is kept.
    m, m_train : int
        Scenarios of a decision, and of each context in combined learning.
    most_m : int, optional
        Most scenarios of any method, also of one that has its own M.
    methods : list of str
    network : table
        What all networks have.
    only : table of tables
        What is special to one method in this case.
    """

    evaluation: Literal["rolling"]
    title: str
    source: SourceTable
    decision: DecisionTable
    first_day: date
    last_day: date
    window: Literal["week", "month", "quarter", "year"] = "quarter"
    history_days: Count | None = None
    tuning_days: Count = 90
    stopping_days: Count = 60
    m: Count
    m_train: Count = 16
    most_m: Count | None = None
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
        """What decides the results of every method: the part of the hash that is the case's."""
        keys = {"source", "decision", "m", "m_train", "most_m", "history_days", "stopping_days"}
        keys |= {"first_day", "tuning_days"}
        return self.model_dump(mode="json", include=keys)
