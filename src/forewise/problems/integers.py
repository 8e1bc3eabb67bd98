"""IntegerProgram: a scenario program some of whose variables are whole numbers.

May import: its sibling `program`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from forewise.problems.program import ScenarioProgram


@dataclass(frozen=True, eq=False)
class IntegerProgram:
    """A batch of two-stage linear programs with whole numbers, one per context.

    Attributes
    ----------
    plain : ScenarioProgram
        The program without that condition: its continuous relaxation.
    first : mask (n_z,)
        The first-stage variables that are whole numbers.
    recourse : mask (n_u,)
        The variables of every scenario that are.
    """

    plain: ScenarioProgram
    first: torch.Tensor
    recourse: torch.Tensor

    def take(self, contexts: slice | torch.Tensor) -> IntegerProgram:
        """The programs of some contexts."""
        return replace(self, plain=self.plain.take(contexts))
