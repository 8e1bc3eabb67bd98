"""An explanation as a piece of a page: the same sentences as its text, escaped."""

from __future__ import annotations

from html import escape

from forewise.explanation.parts import Findings
from forewise.explanation.text import sentences


def as_html(why: Findings) -> str:
    """A section with a heading and a list for every part."""
    parts = [
        f"<h4>{escape(title)}</h4><ul>"
        + "".join(f"<li>{escape(line)}</li>" for line in lines)
        + "</ul>"
        for title, lines in sentences(why).items()
    ]
    return f'<section class="explanation">{"".join(parts)}</section>'
