"""The whole page: self-contained, without scripts."""

from __future__ import annotations

from html import escape

from forewise.report import sections
from forewise.report.inputs import Content
from forewise.report.style import CSS

_PARTS = (
    sections.answer,
    sections.decisions,
    sections.comparison,
    sections.calibration,
    sections.over_time,
    sections.worst_days,
    sections.learned_from,
)


def page(content: Content) -> str:
    """HTML with its style and figures inside."""
    roles = content.policy.roles
    title = f"Decisions for {', '.join(roles.outcome)}"
    by = f"by {', '.join(roles.series)}" if roles.series else ""
    last = f"data up to {content.policy.card.last}" if content.policy.card.last else ""
    about = ", ".join(part for part in (by, last) if part)
    body = "\n".join(part(content) for part in _PARTS)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{CSS}</style>
</head>
<body>
<main>
<header><h1>{escape(title)}</h1><p>{escape(about)}</p></header>
{body}
<footer>Made by forewise.</footer>
</main>
</body>
</html>
"""
