"""Figures of a page: as vectors, once for wide screens and once for phones, in the page's ink."""

from __future__ import annotations

import io
import re
import warnings
from html import escape

import matplotlib as mpl

from forewise.figures import Display
from forewise.figures.style import BLUE, DISPLAY_STYLE, INK

_WIDE, _NARROW = 8.6, 4.3  # inches
_HEADER = re.compile(r"^.*?(?=<svg)", re.DOTALL)
_METADATA = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)
_SIZE = re.compile(r'<svg ([^>]*?)height="[^"]*"([^>]*?)width="[^"]*"')


def picture(display: Display, label: str, height: float, share: float = 1.0) -> str:
    """A display in two widths, of which the page shows one; `label` is read to the blind."""
    wide = _svg(display, (_WIDE * share, height), label)
    narrow = _svg(display, (_NARROW, height), label)
    return f'<div class="figure wide">{wide}</div><div class="figure narrow">{narrow}</div>'


def _svg(display: Display, size: tuple[float, float], label: str) -> str:
    file = io.StringIO()
    with mpl.rc_context(DISPLAY_STYLE), warnings.catch_warnings():
        # The browser draws the text, with fonts that Matplotlib need not have.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure = display.plot(size=size).figure_
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    text = _METADATA.sub("", _HEADER.sub("", file.getvalue(), count=1))
    opening = rf'<svg role="img" aria-label="{escape(label)}" \1\2'
    text = _SIZE.sub(opening, text, count=1)
    # By night the page's accent is a lighter blue.
    return text.replace(INK, "currentColor").replace(BLUE.lower(), "var(--accent)")
