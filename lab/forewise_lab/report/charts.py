"""Charts as inline SVG: no script, no font and no file from elsewhere; colours come from the page.

A series is told apart by colour, marker and dash, never by colour alone. Classes `s0` to `s7` have
their colours in the page's style sheet, so that light, dark and print each have their own. May
import: nothing of forewise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

_LETTER = 6.6  # mean width of a letter at the page's size for charts, 12 pixels
_MARKER = 3.6


@dataclass(frozen=True)
class Point:
    """A mean at `x`, with the ends of its interval (equal to the mean where there is none)."""

    x: float
    mean: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Series:
    """Points of one name; `style` is 0 to 7."""

    name: str
    points: tuple[Point, ...]
    style: int
    dashed: bool = False


@dataclass(frozen=True)
class Axis:
    """What an axis shows."""

    label: str
    logarithmic: bool = False


@dataclass(frozen=True)
class _Scale:
    """From values to places in the picture."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        low, high, value = (self._of(v) for v in (self.low, self.high, value))
        share = 0.5 if high == low else (value - low) / (high - low)
        return self.start + share * (self.end - self.start)

    def _of(self, value: float) -> float:
        return math.log(value) if self.logarithmic else value


def line_chart(
    series: Sequence[Series], x: Axis, y: Axis, title: str, description: str, width: int = 600
) -> Markup:
    """Lines with intervals over a logarithmic or linear x; y starts at zero if it can.

    Parameters
    ----------
    series : sequence of Series
        At least one, with at least one point.
    x, y : Axis
    title, description : str
        What a reader who does not see the picture is told.
    width : int
        In pixels; the height follows.
    """
    height = round(0.36 * width + 150)
    legend, legend_height = _legend(series, width)
    left, right, top, bottom = 52, 14, legend_height + 26, 44
    points = [point for one in series for point in one.points]
    places = sorted({point.x for point in points})
    low, ticks, high = _y_range(points)
    to_x = _Scale(places[0], places[-1], left + 18, width - right - 18, x.logarithmic)
    to_y = _Scale(low, high, height - bottom, top)
    parts = [legend, _text(left - 44, top - 12, y.label, "axis")]
    for tick in ticks:
        parts.append(_line(left, to_y(tick), width - right, to_y(tick), "grid"))
        parts.append(_text(left - 8, to_y(tick) + 4, _short(tick), "tick end"))
    for place in _thinned(places, to_x):
        parts.append(_line(to_x(place), height - bottom, to_x(place), height - bottom + 5, "rule"))
        parts.append(_text(to_x(place), height - bottom + 19, _short(place), "tick middle"))
    parts.append(_line(left, height - bottom, width - right, height - bottom, "rule"))
    parts.append(_text((left + width - right) / 2, height - 6, x.label, "axis middle"))
    for number, one in enumerate(series):
        # Side by side, so that intervals at the same place do not hide each other.
        shift = (number - (len(series) - 1) / 2) * min(5.0, 26 / len(series))
        parts.append(_drawn(one, lambda v, s=shift: to_x(v) + s, to_y, high, low))  # type: ignore[misc]
    return _svg(width, height, title, description, parts)


def dot_chart(
    names: Sequence[str],
    series: Sequence[Series],
    x: Axis,
    title: str,
    description: str,
    *,
    bounds: tuple[float, float],
    ticks: Sequence[float],
    tick_text: Callable[[float], str],
    reference: float | None = None,
    width: int = 400,
) -> Markup:
    """One line per name, with a dot for each series; a point's `x` is the place of its name.

    Parameters
    ----------
    names : sequence of str
    series : sequence of Series
    x : Axis
    title, description : str
    bounds : (float, float)
        Ends of the axis.
    ticks : sequence of float
    tick_text : callable
        From tick to what is written below it.
    reference : float, optional
        Where an upright line stands.
    width : int
    """
    shown = [_cut(name, 24) for name in names]
    left = round(min(max(len(name) for name in shown) * _LETTER + 14, 0.45 * width))
    legend, legend_height = _legend(series, width, lines=False) if len(series) > 1 else ("", 0)
    top, right, step = legend_height + 8, 16, 21
    bottom = top + step * len(names)
    to_x = _Scale(*bounds, left + 6, width - right, x.logarithmic)
    parts = [legend]
    for tick in ticks:
        parts.append(_line(to_x(tick), top, to_x(tick), bottom, "grid"))
        parts.append(_text(to_x(tick), bottom + 16, tick_text(tick), "tick middle"))
    if reference is not None:
        parts.append(_line(to_x(reference), top - 4, to_x(reference), bottom, "reference"))
    for place, name in enumerate(shown):
        parts.append(_text(left - 8, top + step * (place + 0.5) + 4, name, "name end"))
    for one in series:
        for point in one.points:
            y = top + step * (point.x + 0.5)
            ends = [to_x(min(max(v, bounds[0]), bounds[1])) for v in (point.lower, point.upper)]
            if ends[0] != ends[1]:
                parts.append(_line(ends[0], y, ends[1], y, f"interval s{one.style}"))
            middle = to_x(min(max(point.mean, bounds[0]), bounds[1]))
            parts.append(_marker(one, middle, y))
    parts.append(_text((left + width - right) / 2, bottom + 36, x.label, "axis middle"))
    return _svg(width, bottom + 44, title, description, parts)


def _drawn(
    one: Series, to_x: Callable[[float], float], to_y: _Scale, high: float, low: float
) -> Markup:
    parts = []
    path = " ".join(f"{to_x(p.x):.1f},{to_y(min(max(p.mean, low), high)):.1f}" for p in one.points)
    dashed = " dashed" if one.dashed else ""
    parts.append(
        Markup('<polyline class="line s{}{}" points="{}"/>').format(one.style, dashed, path)
    )
    for point in one.points:
        x = to_x(point.x)
        lower, upper = (to_y(min(max(v, low), high)) for v in (point.lower, point.upper))
        if lower != upper:
            parts.append(_line(x, lower, x, upper, f"interval s{one.style}"))
        parts.append(_marker(one, x, to_y(min(max(point.mean, low), high))))
    return Markup("").join(parts)


def _y_range(points: Sequence[Point]) -> tuple[float, list[float], float]:
    """Ends and ticks. An interval much larger than the means is cut rather than let rule."""
    largest = max(point.mean for point in points)
    top = min(max(p.upper for p in points), 1.6 * largest if largest > 0 else math.inf)
    low = min(0.0, *(max(p.lower, p.mean - abs(largest)) for p in points))
    step = _nice_step((max(top, 1e-12) - low) / 5)
    first, last = math.floor(low / step + 1e-9), math.ceil(top / step - 1e-9)
    ticks = [step * k for k in range(first, max(last, first + 1) + 1)]
    return ticks[0], ticks, ticks[-1]


def _nice_step(raw: float) -> float:
    size = 10.0 ** math.floor(math.log10(raw))
    return next(size * factor for factor in (1, 2, 5, 10) if size * factor >= raw * 0.999)


def _thinned(places: Sequence[float], to_x: _Scale) -> list[float]:
    """Ticks that do not touch each other."""
    kept: list[float] = []
    for place in places:
        if not kept or to_x(place) - to_x(kept[-1]) > _LETTER * len(_short(place)) + 8:
            kept.append(place)
    return kept


def _legend(series: Sequence[Series], width: int, lines: bool = True) -> tuple[Markup, int]:
    parts, x, y = [], 8.0, 14.0
    key = 31 if lines else 19  # from the start of an entry to its name
    for one in series:
        name = _cut(one.name, 30)
        needed = key + len(name) * _LETTER + 17
        if x > 8 and x + needed > width:
            x, y = 8.0, y + 20
        if lines:
            dashed = " dashed" if one.dashed else ""
            parts.append(_line(x, y - 4, x + 24, y - 4, f"line s{one.style}{dashed}"))
        parts.append(_marker(one, x + key - 19 + (0 if lines else 6), y - 4))
        parts.append(_text(x + key, y, name, "name"))
        x += needed
    return Markup("").join(parts), round(y + 8)


def _marker(one: Series, x: float, y: float) -> Markup:
    """A shape of its own for each style, hollow on dashed lines."""
    r = _MARKER
    kind = f"dot s{one.style}" + (" hollow" if one.dashed else "")
    if one.style % 4 == 0:
        template = '<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="{}"/>'
        return Markup(template).format(kind, x, y, r)
    corners = {
        1: [(-r, -r), (r, -r), (r, r), (-r, r)],
        2: [(0, -r - 1), (r + 1, r), (-r - 1, r)],
        3: [(0, -r - 1), (r + 1, 0), (0, r + 1), (-r - 1, 0)],
    }[one.style % 4]
    points = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners)
    return Markup('<polygon class="{}" points="{}"/>').format(kind, points)


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    template = '<line class="{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>'
    return Markup(template).format(kind, x1, y1, x2, y2)


def _text(x: float, y: float, text: str, kind: str) -> Markup:
    return Markup('<text class="{}" x="{:.1f}" y="{:.1f}">{}</text>').format(kind, x, y, text)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 10 or value == round(value) else f"{value:.3g}"


def _svg(
    width: int, height: float, title: str, description: str, parts: Sequence[str | Markup]
) -> Markup:
    head = Markup(
        '<svg class="chart w{}" viewBox="0 0 {} {:.0f}" width="{}" height="{:.0f}" role="img" '
        'aria-label="{}"><desc>{}</desc>'
    ).format(width, width, height, width, height, title, description)
    return head + Markup("").join(escape(part) for part in parts) + Markup("</svg>")
