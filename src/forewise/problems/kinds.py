"""What kind of program a problem becomes, which decides who can solve it.

May import: nothing of forewise.
"""

from __future__ import annotations

from enum import StrEnum


class ProgramKind(StrEnum):
    """The kinds of programs; the value is how messages call them."""

    QUADRATIC = "linear or quadratic"
    CONIC = "conic"
    INTEGER = "integer"

    @property
    def with_article(self) -> str:
        """As a noun of a sentence: "an integer program"."""
        return f"{'an' if self is ProgramKind.INTEGER else 'a'} {self} program"
