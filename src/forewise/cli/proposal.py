"""What the columns of a table probably are, by their names and cells: a proposal for a plan."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations

import pandas as pd

from forewise.exceptions import InvalidInputError
from forewise.validation.columns import Columns

# Words in the names of columns, in the languages that spreadsheets come in.
_WORDS = {
    "outcome": "sales sold demand quantity qty units volume load need absatz menge verkauf "
    "verkaufe umsatz nachfrage bedarf ventes vendu ventas demanda y target",
    "sold_out": "soldout stockout outofstock oos ausverkauft rupture agotado empty",
    "closed": "closed geschlossen ferme cerrado",
    "series": "store shop item product sku article branch outlet region warehouse site station "
    "filiale laden artikel produkt markt magasin produit tienda producto id code",
    "known": "price promotion promo discount campaign holiday vacation forecast event planned "
    "weekday month day preis aktion rabatt feiertag ferien werbung prix promotions soldes precio "
    "festivo",
}  # fmt: skip
_FEW = 400  # series that a column may tell apart, as a share of rows is no help with few rows


@dataclass
class Proposal:
    """Columns by role, and what else was seen of each."""

    kinds: dict[str, str]  # of every column: number, boolean, category, date, ignored
    notes: dict[str, str]  # what is odd about a column
    outcome: list[str] = field(default_factory=list)
    date: str | None = None
    series: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    sold_out: str | None = None
    closed: str | None = None

    @property
    def unused(self) -> list[str]:
        """Columns without a role."""
        roles = [*self.outcome, self.date, *self.series, *self.known, self.sold_out, self.closed]
        return [name for name in self.kinds if name not in roles]

    def role(self, name: str) -> str:
        """The role of a column; empty if it has none."""
        lists = {"outcome": self.outcome, "series": self.series, "known": self.known}
        singles = {"date": self.date, "sold_out": self.sold_out, "closed": self.closed}
        return next(
            (role for role, names in lists.items() if name in names),
            next((role for role, column in singles.items() if column == name), ""),
        )


def propose(table: pd.DataFrame, several: bool = False) -> Proposal:
    """Roles for the columns of a table; with `several`, every number may be an outcome."""
    kinds, notes = {}, {}
    for name in map(str, table.columns):
        try:
            part = Columns.from_frame(table[[name]]).parts[0]
            flag = part.kind == "number" and table[name].isin([0, 1]).all()
            kinds[name], notes[name] = "boolean" if flag else part.kind, part.note
        except InvalidInputError as error:
            kinds[name], notes[name] = "refused", str(error)
    made = Proposal(kinds, notes)
    of_kind = {kind: [n for n in kinds if kinds[n] == kind] for kind in set(kinds.values())}
    flags = of_kind.get("boolean", [])
    made.date = next(iter(_like("date", of_kind.get("date", []))), None)
    made.sold_out = next(iter(_hinted("sold_out", flags)), None)
    made.closed = next(iter(_hinted("closed", [n for n in flags if n != made.sold_out])), None)
    numbers = of_kind.get("number", [])
    codes = [] if several else _hinted("series", numbers)
    keys = [n for n in codes if table[n].nunique() <= _FEW]
    wanted = [n for n in numbers if n not in keys]
    hinted = _hinted("outcome", wanted)
    free = [n for n in wanted if n not in _hinted("known", wanted)]
    if several:
        made.outcome = free or wanted
    else:
        made.outcome = hinted[:1] or free[-1:] or wanted[-1:]
    texts = [n for n in kinds if kinds[n] == "category" or n in keys]
    made.series = _telling_apart(table, made.date, _like("series", texts)) if made.date else []
    rest = made.unused
    usable = [n for n in rest if kinds[n] not in ("ignored", "refused")]
    # Without a date a row is decided by all that stands in it.
    made.known = _hinted("known", usable) if made.date else usable
    return made


def _telling_apart(table: pd.DataFrame, date: str, candidates: Sequence[str]) -> list[str]:
    """The fewest columns that, with the date, name every row; all if none do."""
    for count in range(len(candidates) + 1):
        for chosen in combinations(candidates, count):
            if not table.duplicated([date, *chosen]).any():
                return list(chosen)
    return list(candidates)


def _hinted(role: str, names: Sequence[str]) -> list[str]:
    """The names that have a word of a role, those of the first words first."""
    words = _WORDS[role].split()
    ranks = {}
    for name in names:
        spelled = re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower()
        parts = [part for part in re.split(r"[\W_\d]+", spelled) if part]
        places = [words.index(p) for p in [*parts, "".join(parts)] if p in words]
        if places:
            ranks[name] = min(places)
    return sorted(ranks, key=lambda name: ranks[name])


def _like(role: str, names: Sequence[str]) -> list[str]:
    """The names with a word of the role, then the others."""
    words = _hinted(role, names) if role in _WORDS else [n for n in names if role in n.lower()]
    return [*words, *(n for n in names if n not in words)]
