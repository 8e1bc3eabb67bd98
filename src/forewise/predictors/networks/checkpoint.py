"""The state of an unfinished training run, in memory and on disk.

May import: exceptions, storage, its sibling `network`.
"""

from __future__ import annotations

import contextlib
import copy
import math
import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Self

import numpy as np
import torch

from forewise.exceptions import StorageError
from forewise.predictors.networks.network import Network
from forewise.storage import read_folder, write_folder

_KIND, _VERSION = "checkpoint", 2


@dataclass
class Progress:
    """How far training has come."""

    epoch: int
    history: list[dict[str, float]]
    best: dict[str, torch.Tensor] | None
    best_figure: float
    epochs_since_best: int

    @classmethod
    def start(cls) -> Self:
        """Before the first epoch."""
        return cls(0, [], None, math.inf, 0)

    def add(self, record: dict[str, float], network: Network) -> None:
        """Take note of an epoch, and of the weights if it is the best so far."""
        self.history.append(record)
        self.epoch += 1
        self.epochs_since_best += 1
        self.consider(record, network)

    def consider(self, figures: dict[str, float], network: Network) -> None:
        """Take note of the weights if their figures are the best so far."""
        figure = figures.get("validation", math.inf) + figures.get("penalty", 0.0)
        if figure < self.best_figure:
            self.best = copy.deepcopy(network.state_dict())
            self.best_figure = figure
            self.epochs_since_best = 0


@dataclass(frozen=True)
class Checkpoint:
    """A folder that holds a training run until it is finished."""

    folder: str | os.PathLike[str]
    marks: dict[str, str]  # of all that decides how the run goes on, by a name for people

    def resume(self, network: Network, optimiser: torch.optim.Optimizer) -> Progress | None:
        """Put network and optimiser where they were; None if there is nothing to resume."""
        if not (Path(self.folder) / "header.json").exists():
            return None
        _, content = read_folder(self.folder, kind=_KIND, versions=[_VERSION])
        self._require_same(content["marks"])
        network.load_state_dict(_tensors(content["network"]))
        saved = optimiser.state_dict()
        saved["state"] = {int(key): _tensors(value) for key, value in content["moments"].items()}
        optimiser.load_state_dict(saved)
        best = content["best"]
        return Progress(
            epoch=content["epoch"],
            history=content["history"],
            best=None if best is None else _tensors(best),
            best_figure=content["best_figure"],
            epochs_since_best=content["epochs_since_best"],
        )

    def _require_same(self, found: dict[str, str]) -> None:
        """Raise, with the parts that differ, unless the checkpoint is one of this very fit."""
        names = [*self.marks, *(name for name in found if name not in self.marks)]
        other = [name for name in names if self.marks.get(name) != found.get(name)]
        if other:
            raise StorageError(
                f"the checkpoint in {self.folder} belongs to another fit, which differs in "
                f"{', '.join(other)}: delete the folder to start anew, give this fit a folder of "
                "its own, or go back to what it was"
            )

    def save(self, network: Network, optimiser: torch.optim.Optimizer, state: Progress) -> None:
        """Write everything that the next epoch needs."""
        moments = optimiser.state_dict()["state"]
        content = {name.name: getattr(state, name.name) for name in fields(state)} | {
            "marks": self.marks,
            "network": dict(network.state_dict()),
            "moments": {str(key): dict(value) for key, value in moments.items()},
        }
        write_folder(self.folder, content, kind=_KIND, version=_VERSION)

    def clear(self) -> None:
        """Remove what was written: the run is finished."""
        folder = Path(self.folder)
        for file in [folder / "header.json", *folder.glob("arrays-*.safetensors")]:
            file.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # something else is in the folder: it stays
            folder.rmdir()


def _tensors(arrays: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
    return {name: torch.tensor(values) for name, values in arrays.items()}
