"""How all figures look: one palette, one colour and marker per method, light axes."""

from __future__ import annotations

from collections.abc import Iterable
from zlib import crc32

#: Lines, text and axes; the report replaces it by the page's own colour of text.
INK = "#1b1f24"
#: What accompanies: bands, other draws, what is not allowed.
QUIET = "#8a939e"
# Okabe and Ito's colours, which colour-blind readers can tell apart, without the yellow that
# nobody sees on white; where a figure has more methods, markers tell them apart as well.
BLUE, ORANGE, GREEN, SKY = "#0072B2", "#E69F00", "#009E73", "#56B4E9"
VERMILION, PINK, OLIVE, VIOLET = "#D55E00", "#CC79A7", "#999933", "#8B6FD6"

# What is decided has the same colour in every figure, and so has every method that is common.
_KNOWN = {
    "policy": (BLUE, "o"), "planner": (BLUE, "o"), "forewise": (BLUE, "o"), "union": (BLUE, "o"),
    "today": (QUIET, "s"), "empirical": (ORANGE, "D"), "SAA": (ORANGE, "D"),
    "linear residuals": (PINK, "v"), "neighbours": (GREEN, "^"), "forest": (SKY, "P"),
    "boosted quantiles": (VERMILION, "X"), "boosted residuals": (VERMILION, "v"),
    "Gaussian process": (OLIVE, "h"), "Bayesian network": (VIOLET, "p"),
}  # fmt: skip
_OTHERS = [
    (colour, marker)
    for marker in ("<", ">", "d", "8")
    for colour in (GREEN, PINK, SKY, VERMILION, OLIVE, VIOLET, ORANGE)
]

STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "forewise",
    "svg.fonttype": "none",
}
"""Settings of Matplotlib with which all figures are drawn, for figures beside them.

Examples
--------
>>> import matplotlib as mpl
>>> import forewise as fw
>>> with mpl.rc_context(fw.plots.STYLE):
...     mpl.rcParams["axes.spines.top"]
False
"""
#: That of displays, which stand alone or in a page.
DISPLAY_STYLE = {
    **STYLE,
    "font.family": "sans-serif",
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.titlesize": 10,
    "axes.titlecolor": INK,
    "axes.linewidth": 0.8,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    # Names come from tables: a dollar is a dollar.
    "text.parse_math": False,
}


def looks(methods: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Colour and marker of every method, the same for a name in all figures.

    A name that is not known has a place by its letters; of two with the same place the second one
    in the alphabet gets the next.

    Examples
    --------
    >>> import forewise as fw
    >>> fw.plots.looks(["planner"])
    {'planner': ('#0072B2', 'o')}
    """
    names = set(methods)
    found = {name: _KNOWN[name] for name in names if name in _KNOWN}
    for name in sorted(names - set(_KNOWN)):
        start = crc32(name.encode()) % len(_OTHERS)
        places = [_OTHERS[(start + i) % len(_OTHERS)] for i in range(len(_OTHERS))]
        free = [place for place in places if place not in found.values()]
        found[name] = (free or places)[0]
    return found
