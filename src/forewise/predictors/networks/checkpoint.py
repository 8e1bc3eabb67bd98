"""The state of an unfinished training run, in memory and on disk.

What the fit was made of, data, problem, solver and settings, is stored as a digest of each part,
over every byte of every number: a checkpoint is resumed only by the very fit that wrote it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import math
import os
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator

from forewise.exceptions import StorageError
from forewise.predictors.networks.network import Network
from forewise.storage import read_folder, write_folder

_KIND, _VERSION = "checkpoint", 4
#: Metadata of a dataclass's field that does not affect the result: where files go, what is shown.
CHANGES_NOTHING: Mapping[str, Any] = MappingProxyType({"changes_nothing": True})


@dataclass
class TrainingState:
    """How far training has come."""

    epoch: int = 0
    history: list[dict[str, float]] = field(default_factory=list)
    best: dict[str, torch.Tensor] | None = None
    best_figure: torch.Tensor = field(
        default_factory=lambda: torch.tensor(math.inf, dtype=torch.float64)
    )
    epochs_since_best: int = 0

    def add(self, figures: dict[str, Any], network: Network) -> None:
        """Record an epoch, and its weights if it is the best so far."""
        self.history.append({name: _mean(figure) for name, figure in figures.items()})
        self.epoch += 1
        self.epochs_since_best += 1
        self.consider(figures, network)

    def consider(self, figures: dict[str, Any], network: Network) -> None:
        """Keep the weights if validation loss plus penalty is the lowest so far.

        Members that have a figure each are kept each at its own best.
        """
        figure = torch.as_tensor(figures.get("validation", math.inf), dtype=torch.float64)
        figure = figure.cpu() + figures.get("penalty", 0.0)
        better = figure < self.best_figure
        if not better.any():
            return
        if self.best is None or better.dim() == 0:
            weights = network.state_dict().items()
            self.best = {name: value.detach().cpu().clone() for name, value in weights}
        else:
            for name, parameter in network.named_parameters():
                self.best[name][better] = parameter.detach().cpu()[better]
        self.best_figure = torch.where(better, figure, self.best_figure)
        self.epochs_since_best = 0


def _mean(figure: Any) -> float:
    return figure.double().mean().item() if isinstance(figure, torch.Tensor) else figure


@dataclass(frozen=True)
class Checkpoint:
    """A folder with the state of a training run until it is finished."""

    folder: str | os.PathLike[str]
    digests: dict[str, str]  # of all that decides how the run goes on, by a name for people

    def resume(self, network: Network, optimiser: torch.optim.Optimizer) -> TrainingState | None:
        """Restore network and optimiser; None if there is nothing to resume.

        Raises, with the parts that differ, unless the checkpoint is one of this very fit.
        """
        if not (Path(self.folder) / "header.json").exists():
            return None
        _, content = read_folder(self.folder, kind=_KIND, versions=[_VERSION])
        found = content.pop("digests")
        names = dict.fromkeys([*self.digests, *found])
        other = [name for name in names if self.digests.get(name) != found.get(name)]
        if other:
            raise StorageError(
                f"the checkpoint in {self.folder} belongs to another fit, which differs in "
                f"{', '.join(other)}: delete the folder to start anew, give this fit a folder of "
                "its own, or go back to what it was"
            )
        network.load_state_dict(_tensors(content.pop("network")))
        moments = content.pop("moments").items()
        saved = optimiser.state_dict()
        saved["state"] = {int(key): _tensors(value) for key, value in moments}
        optimiser.load_state_dict(saved)
        best, figure = content.pop("best"), content.pop("best_figure")
        return TrainingState(
            **content,
            best=None if best is None else _tensors(best),
            best_figure=torch.tensor(figure, dtype=torch.float64),
        )

    def save(
        self, network: Network, optimiser: torch.optim.Optimizer, state: TrainingState
    ) -> None:
        """Write everything that the next epoch needs."""
        moments = optimiser.state_dict()["state"]
        content = vars(state) | {
            "digests": self.digests,
            "best_figure": state.best_figure.tolist(),
            "network": _on_processor(network.state_dict()),
            "moments": {str(key): _on_processor(value) for key, value in moments.items()},
        }
        write_folder(self.folder, content, kind=_KIND, version=_VERSION)

    def clear(self) -> None:
        """Remove what was written: the run is finished."""
        folder = Path(self.folder)
        for file in [folder / "header.json", *folder.glob("arrays-*.safetensors")]:
            file.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # something else is in the folder: it stays
            folder.rmdir()


def _on_processor(values: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: value.cpu() for name, value in values.items()}


def _tensors(arrays: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
    return {name: torch.tensor(values) for name, values in arrays.items()}


def digest(value: Any, name: str) -> str:
    """SHA-256 of a value and of all that it holds, equal in every process.

    `name` is for the message if the value has no digest.
    """
    sha = hashlib.sha256()
    for piece in _pieces(value, name):
        # With its length, so that no two sequences of pieces run together to the same bytes.
        sha.update(struct.pack("<q", len(piece)))
        sha.update(piece)
    return sha.hexdigest()


def settings_of(value: Any) -> dict[str, Any]:
    """The fields of a dataclass that affect the result."""
    return {
        entry.name: getattr(value, entry.name)
        for entry in dataclasses.fields(value)
        if not entry.metadata.get("changes_nothing", False)
    }


def parameters_of(estimator: BaseEstimator) -> dict[str, Any]:
    """The parameters of an estimator, but training and seed, which have digests of their own."""
    parameters = estimator.get_params(deep=False).items()
    return {k: value for k, value in parameters if k not in ("training", "random_state")}


def _pieces(value: Any, name: str) -> Iterator[bytes]:
    """The value as bytes: what kind of thing it is, and what is in it."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().numpy()
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        yield f"{type(value).__name__} {value!r}".encode()
    elif isinstance(value, os.PathLike):
        yield f"path {os.fspath(value)!r}".encode()
    elif isinstance(value, np.ndarray) and value.dtype.kind in "biufcmM":
        yield f"array {value.dtype.str} {value.shape}".encode()
        yield np.ascontiguousarray(value).tobytes()
    elif isinstance(value, type):
        yield f"class {value.__module__}.{value.__qualname__}".encode()
    else:
        yield f"{type(value).__module__}.{type(value).__qualname__}".encode()
        parts = _parts(value, name)
        yield str(len(parts)).encode()
        for part in parts:
            yield from _pieces(part, name)


def _parts(value: Any, name: str) -> list[Any]:
    """What a container or an object holds."""
    kind: Any = type(value)
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, np.ndarray):  # of text or objects
        return [value.shape, value.ravel().tolist()]
    if isinstance(value, dict):
        return [(key, value[key]) for key in sorted(value, key=repr)]
    if isinstance(value, BaseEstimator):
        return [parameters_of(value)]
    if kind.__reduce__ is not object.__reduce__:
        # It says itself what a copy is made from, as problems do.
        return list(value.__reduce__()[1:])
    if dataclasses.is_dataclass(value):
        return [settings_of(value)]
    raise StorageError(
        f"a checkpoint cannot tell one {kind.__name__} from another, which is in {name}: make "
        "it a frozen dataclass, or fit without a checkpoint"
    )
