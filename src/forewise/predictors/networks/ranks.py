"""Several processes that fit one network together, or one alone.

Every process (a *rank*) has the whole table, draws the same batches and the same noise, and takes
its share of a batch's rows; losses and gradients are summed. So all take the same steps, and the
loss is that of one process, up to rounding.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor, distributed, nn

from forewise.exceptions import ForewiseError, InvalidInputError
from forewise.predictors.sampling import RowGenerator

T = TypeVar("T")


class Ranks(ABC):
    """The processes of one fit."""

    @property
    @abstractmethod
    def rank(self) -> int:
        """Number of this process, from 0."""

    @property
    @abstractmethod
    def count(self) -> int:
        """How many there are."""

    @abstractmethod
    def total(self, value: Tensor) -> Tensor:
        """The sum over all processes, the same to the bit in each."""

    @abstractmethod
    def of_first(self, make: Callable[[], T]) -> T:
        """What the first process makes, or the error that it raises; in all of them."""

    @abstractmethod
    def require_same(self, digests: dict[str, str]) -> None:
        """Raise in all processes where they were not given the same to fit."""

    def share(self, rows: Tensor, generator: RowGenerator) -> tuple[Tensor, float]:
        """This process's rows of a batch (..., rows), and their weight in its mean.

        The generator draws for the whole batch and keeps what belongs to these rows.
        """
        size = rows.shape[-1]
        ends = [size * place // self.count for place in (self.rank, self.rank + 1)]
        # Of a batch with fewer rows than processes some have none: a row of weight zero stands in.
        own = slice(*ends) if ends[0] < ends[1] else slice(0, 1)
        generator.keep(own, size)
        return rows[..., own], (ends[1] - ends[0]) / size

    def add_gradients(self, network: nn.Module) -> None:
        """Replace every gradient by the sum over all processes."""
        for parameter in network.parameters():
            if parameter.grad is not None:
                parameter.grad = self.total(parameter.grad)

    @abstractmethod
    def agree(self, network: nn.Module) -> None:
        """Give all processes the first one's weights: processors may round differently."""


@dataclass(frozen=True)
class OneProcess(Ranks):
    """This process alone."""

    @property
    def rank(self) -> int:
        return 0

    @property
    def count(self) -> int:
        return 1

    def total(self, value: Tensor) -> Tensor:
        return value

    def of_first(self, make: Callable[[], T]) -> T:
        return make()

    def require_same(self, digests: dict[str, str]) -> None:
        """One is the same as itself."""

    def agree(self, network: nn.Module) -> None:
        """And agrees with itself."""


@dataclass(frozen=True)
class AllProcesses(Ranks):
    """All processes of `torch.distributed`, as ``torchrun`` starts them; one, without it.

    Call the same fit in each, with the same table, settings and a `random_state` that is a number,
    as ``Training(ranks=AllProcesses())``. Fitted predictors are the same in all; let the first one
    save.

    Examples
    --------
    >>> import forewise as fw
    >>> fw.predictors.AllProcesses().count  # without torchrun
    1
    """

    @property
    def _is_alone(self) -> bool:
        if not distributed.is_available():
            return True
        if not distributed.is_initialized():
            if int(os.environ.get("WORLD_SIZE", "1")) == 1:
                return True
            distributed.init_process_group("gloo")
        return distributed.get_world_size() == 1

    @property
    def rank(self) -> int:
        return 0 if self._is_alone else distributed.get_rank()

    @property
    def count(self) -> int:
        return 1 if self._is_alone else distributed.get_world_size()

    def total(self, value: Tensor) -> Tensor:
        if self._is_alone:
            return value
        held = value.contiguous()
        distributed.all_reduce(held)
        return held

    def of_first(self, make: Callable[[], T]) -> T:
        if self._is_alone:
            return make()
        made: list[Any] = [None, None]
        if self.rank == 0:
            try:
                made[0] = make()
            except ForewiseError as error:
                made[1] = error
        distributed.broadcast_object_list(made)
        if made[1] is not None:
            raise made[1]
        return made[0]

    def require_same(self, digests: dict[str, str]) -> None:
        if self._is_alone:
            return
        found: list[Any] = [None] * self.count
        distributed.all_gather_object(found, digests)
        names = dict.fromkeys(name for each in found for name in each)
        other = [name for name in names if len({each.get(name) for each in found}) > 1]
        if other:
            raise InvalidInputError(
                f"all {self.count} processes must fit the same, but differ in {', '.join(other)}: "
                "give each the whole table, and a random_state that is a number"
            )

    def agree(self, network: nn.Module) -> None:
        if self._is_alone:
            return
        with torch.no_grad():
            for values in network.state_dict().values():
                distributed.broadcast(values, 0)
