"""Parsing of text as numbers, booleans or dates, in the spellings that spreadsheets use.

A whole column is parsed at once, because one value alone can be ambiguous: "1,234" has a decimal
comma if "1,2" is in the column, and "03/04/2024" is in April if "25/04/2024" is. Each parser
returns None where the column is something else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

#: Spellings of a missing value, in lower case.
MISSING = {
    *("", "na", "n/a", "n.a.", "k.a.", "k. a.", "nan", "null", "?", "-", "--", "–", "—", "<na>"),
    *("nat", "#n/a", "#nv", "#value!", "#wert!", "#ref!", "#bezug!", "#div/0!", "#name?"),
}
_TRUE = {"1", "true", "t", "yes", "y", "on", "ja", "j", "oui", "si", "sí", "wahr", "vrai", "x", "✓"}
_CROSSES = _TRUE - {"1"}  # where it is the only value, an empty cell means no
_FALSE = {"0", "false", "f", "no", "n", "off", "nein", "non", "falsch", "faux"}

_CURRENCY = " €$£¥"
_POINT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
_COMMA = re.compile(r"[+-]?(\d+,?\d*|,\d+)(e[+-]?\d+)?", re.IGNORECASE)
_GROUPED_POINT = re.compile(r"[+-]?\d{1,3}([ ',]\d{3})+(\.\d+)?")  # 1,234.5
_GROUPED_COMMA = re.compile(r"[+-]?\d{1,3}([ '.]\d{3})+(,\d+)?")  # 1.234,5
_AMBIGUOUS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")  # 1,234: 1234 or 1.234
_POINTED_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}\.\d{3}")

_YEAR_FIRST = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?:[T ](.+))?")
_DAY_FIRST = re.compile(r"(\d{1,2})[.-](\d{1,2})[.-](\d{4}|\d{2})(?: (.+))?")
_SLASHES = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4}|\d{2})(?: (.+))?")
_NAMED = re.compile(r"\d{1,2}[ -][A-Za-z]{3,9}\.?[ -]\d{4}|[A-Za-z]{3,9}\.? \d{1,2},? \d{4}")
_COMPACT = re.compile(r"(?:19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])")


def distinct(column: pd.Series) -> tuple[np.ndarray, list[str | None]]:
    """Codes (n_rows,) of the distinct texts of a column, and these texts, stripped of spaces.

    The last text is None, for missing values.
    """
    import pandas as pd

    codes, values = pd.factorize(column, use_na_sentinel=True)
    texts = [str(value).strip() for value in values]
    known = [None if text.lower() in MISSING else text for text in texts]
    return np.where(codes < 0, len(known), codes), [*known, None]


def as_booleans(texts: Iterable[str | None]) -> dict[str, float] | None:
    """1 for each spelling of yes and 0 for each of no; None unless the column has both.

    A column whose only value means yes ("x", "yes") is boolean too: its empty cells mean no. One
    of nothing but 1 is a number.
    """
    present = {text for text in texts if text is not None}
    lower = {text.lower() for text in present}
    if not present or not lower <= _TRUE | _FALSE:
        return None
    if not (lower & _TRUE and lower & _FALSE) and not lower <= _CROSSES:
        return None
    return {text: float(text.lower() in _TRUE) for text in present}


def as_numbers(texts: Iterable[str | None], decimal: str) -> dict[str, float]:
    """The number of each text, all with this decimal mark; others are left out."""
    plain, grouped = (_POINT, _GROUPED_POINT) if decimal == "." else (_COMMA, _GROUPED_COMMA)
    separators = str.maketrans("", "", " '" + ("," if decimal == "." else "."))
    numbers = {}
    for text in texts:
        spaced = _bare(text or "")
        if plain.fullmatch(spaced) or grouped.fullmatch(spaced):
            numbers[str(text)] = float(spaced.translate(separators).replace(decimal, "."))
    return numbers


def _bare(text: str) -> str:
    """A number's text with plain spaces, and without the sign of a currency around it."""
    return text.replace("\u00a0", " ").replace("\u202f", " ").strip(_CURRENCY)


def decimal_mark(texts: Iterable[str | None]) -> str | None:
    """The decimal point or comma of a column's numbers; None where not all texts are numbers."""
    present = [_bare(text) for text in texts if text is not None]
    if not present:
        return None
    if all(_POINT.fullmatch(text) for text in present):
        return "," if _are_thousands(present) else "."
    if all(_COMMA.fullmatch(text) for text in present):
        # If three digits follow every comma (1,234 and 12,500), commas separate thousands: few
        # columns have three decimals throughout. 0,125 can only be a decimal comma.
        commas = [text for text in present if "," in text]
        return "." if all(_AMBIGUOUS.fullmatch(text) for text in commas) else ","
    if all(_POINT.fullmatch(text) or _GROUPED_POINT.fullmatch(text) for text in present):
        return "."
    if all(_COMMA.fullmatch(text) or _GROUPED_COMMA.fullmatch(text) for text in present):
        return ","
    return None


def _are_thousands(texts: list[str]) -> bool:
    """Whether points separate thousands: 1.090 beside 980 and 50.

    Three digits follow every point, and what is below a thousand has none. Decimals have three
    digits throughout too, as 1.250 beside 0.980 and 50.000, but then in every number.
    """
    pointed = [text for text in texts if "." in text]
    plain = [text.lstrip("+-") for text in texts if "." not in text]
    return (
        bool(pointed and plain)
        and all(_POINTED_THOUSANDS.fullmatch(text) for text in pointed)
        and all(text.isdecimal() and len(text) <= 3 for text in plain)
    )


def as_days(texts: Iterable[str | None], day_first: bool | None = None) -> dict[str, Any] | None:
    """The moment of each text as datetime64[s]; spellings may differ from row to row.

    2024-04-03, 2024/04/03, 20240403, 03.04.2024 (day first), 3 Apr 2024, 3/4/2024. Where
    slashes are ambiguous in every row, `day_first` decides; without it the column is not a date.
    """
    present = {text for text in texts if text is not None}
    if not present:
        return None
    if day_first is None:
        day_first = slash_order(present)
        if day_first is None:
            return None
    days = {text: _day(text, bool(day_first)) for text in present}
    return None if any(day is None for day in days.values()) else days


def slash_order(texts: Iterable[str | None]) -> bool | None:
    """Whether 3/4/2024 has its day first, by the other rows; None if they leave it open."""
    slashed = [match for text in texts if text and (match := _SLASHES.fullmatch(text))]
    if not slashed:
        return False
    first = max(int(match[1]) for match in slashed)
    second = max(int(match[2]) for match in slashed)
    if (first > 12) == (second > 12):
        return None
    return first > 12


def _day(text: str, day_first: bool) -> np.datetime64 | None:
    import pandas as pd

    if match := _YEAR_FIRST.fullmatch(text):
        year, month, day, time = match.groups()
    elif match := _DAY_FIRST.fullmatch(text):
        day, month, year, time = match.groups()
    elif match := _SLASHES.fullmatch(text):
        one, two, year, time = match.groups()
        day, month = (one, two) if day_first else (two, one)
    elif _COMPACT.fullmatch(text):
        year, month, day, time = text[:4], text[4:6], text[6:], None
    elif _NAMED.fullmatch(text):
        moment = pd.to_datetime(text, errors="coerce")
        return None if pd.isna(moment) else np.datetime64(moment, "s")
    else:
        return None
    year = f"20{year}" if len(year) == 2 else year
    moment = pd.to_datetime(f"{year}-{int(month):02}-{int(day):02} {time or ''}", errors="coerce")
    if pd.isna(moment):
        return None
    return np.datetime64(moment.tz_localize(None), "s")
