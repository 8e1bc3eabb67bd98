"""Which instances are measured, at which sizes: the full run and the quick one.

May import: instances.
"""

from __future__ import annotations

from dataclasses import dataclass

from forewise_lab.bench.instances import FAMILIES, Instance


@dataclass(frozen=True)
class Case:
    """One instance of a family, not yet drawn."""

    family: str
    n_contexts: int
    n_scenarios: int

    def instance(self) -> Instance:
        """Draw it."""
        return FAMILIES[self.family](self.n_scenarios, self.n_contexts)


@dataclass(frozen=True)
class Plan:
    """The cases in the order of measuring, smallest first in each family.

    `growth` are the cases whose memory is measured too and whose time is fitted. A peer whose
    solve would take longer than `limit_seconds` is left out from that size on.
    """

    cases: tuple[Case, ...]
    growth: tuple[Case, ...]
    limit_seconds: float = 30.0


GROWTH_SIZES = (256, 1024, 4096)

FULL = Plan(
    cases=(
        *(Case("nvqp", 32, size) for size in (8, 16, 32, 64, *GROWTH_SIZES)),
        *(Case("pop", 128, size) for size in (16, 64, *GROWTH_SIZES)),
        Case("recourse", 32, 128),
    ),
    growth=(
        *(Case("nvqp", 32, size) for size in GROWTH_SIZES),
        *(Case("pop", 128, size) for size in GROWTH_SIZES),
    ),
)

QUICK = Plan(
    cases=(Case("nvqp", 3, 4), Case("nvqp", 3, 8), Case("pop", 3, 32), Case("recourse", 2, 4)),
    growth=(Case("nvqp", 3, 4), Case("nvqp", 3, 8)),
)
