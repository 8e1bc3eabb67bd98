"""cvxpylayers: the lifted problem written in CVXPY, solved and differentiated by diffcp."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch

import forewise as fw
from forewise.problems.bounds import with_bounds_as_rows
from forewise.problems.cvxpy.expressions import import_cvxpy
from forewise_lab.bench.instances import Instance
from forewise_lab.bench.peers.base import (
    Answer,
    Array,
    Gradient,
    Peer,
    PeerFailedError,
    Prepared,
    gradient,
)

SOLVE = {"solve_method": "Clarabel", "n_jobs_forward": 1}
SOLVE_AND_DIFFERENTIATE = {**SOLVE, "n_jobs_backward": 1}


@dataclass(frozen=True)
class CvxpyLayersPeer(Peer):
    """A layer whose parameters are the blocks that depend on the scenarios.

    Differentiating its cone programs takes long, so it is given small ones only.
    """

    name: str = "cvxpylayers"
    largest: int = 1000
    packages: ClassVar[tuple[str, ...]] = ("cvxpylayers.torch", "diffcp")

    def supports(self, program: fw.ScenarioProgram) -> str | None:
        size = program.n_decisions + program.n_scenarios * program.n_recourse
        if size > self.largest:
            return f"not run beyond {self.largest} variables, here {size}"
        shared = (program.P, program.G, program.h, program.E, program.e, program.D)
        one_cost = all(len(block) == 1 for block in shared) and program.D.shape[1] == 1
        if program.V.shape[2] or not one_cost or (program.weights != program.weights[:1]).any():
            return "is written here only for a cost and first-stage rows that contexts share"
        return None

    def prepare(self, instance: Instance) -> Prepared:
        leaves = instance.leaves()
        layer, values = _layer(with_bounds_as_rows(instance.program_of(leaves)))
        constants = [value.detach() for value in values]
        direction = instance.direction()

        def forward() -> Answer:
            decision, recourse = call_layer(layer, constants, SOLVE)
            return Answer(decision.numpy(), recourse.numpy())

        def forward_backward() -> Gradient:
            decision, _ = call_layer(layer, values, SOLVE_AND_DIFFERENTIATE)
            with quiet_conversions():
                return gradient((decision * direction).sum(), leaves)

        return Prepared(forward, forward_backward)


@dataclass(frozen=True)
class _Parameters:
    """The CVXPY parameters made so far, and their values ``(n_contexts, ...)``."""

    n_contexts: int
    made: list[Any] = field(default_factory=list)
    values: list[torch.Tensor] = field(default_factory=list)

    def block(self, tensor: torch.Tensor, shape: tuple[int, ...]) -> Any:
        """A tensor ``(n_contexts | 1, ...)`` as a constant where contexts share it, else not."""
        if len(tensor) == 1 and not tensor.requires_grad:
            return tensor.reshape(shape).numpy()
        full = tensor.expand(self.n_contexts, *tensor.shape[1:])
        self.made.append(import_cvxpy().Parameter(shape))
        self.values.append(full.reshape(self.n_contexts, *shape))
        return self.made[-1]


def make_layer(problem: Any, parameters: list[Any], variables: list[Any]) -> Any:
    """The layer of a CVXPY problem, from values of the parameters to those of the variables."""
    from cvxpylayers.torch import CvxpyLayer

    with warnings.catch_warnings():
        # CVXPY warns that many parameters take long to compile; that time is shown as the build.
        warnings.simplefilter("ignore", UserWarning)
        return CvxpyLayer(problem, parameters, variables)


def call_layer(
    layer: Any, values: list[torch.Tensor], arguments: dict[str, Any]
) -> tuple[torch.Tensor, ...]:
    """The variables' values, each ``(n_contexts, ...)``."""
    import diffcp

    try:
        with quiet_conversions():
            return tuple(layer(*values, solver_args=arguments))
    except diffcp.SolverError as error:
        raise PeerFailedError(f"diffcp failed: {error}") from error


@contextmanager
def quiet_conversions() -> Iterator[None]:
    """cvxpylayers turns tensors into arrays in a way that NumPy 2 warns about."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "__array__ implementation", DeprecationWarning)
        yield


def _layer(program: fw.ScenarioProgram) -> tuple[Any, list[torch.Tensor]]:
    cp = import_cvxpy()
    z = cp.Variable(program.n_decisions)
    u = cp.Variable((program.n_scenarios, program.n_recourse))
    parameters = _Parameters(program.n_contexts)
    cost = _cost(program, parameters, z, u)
    problem = cp.Problem(cp.Minimize(cost), _constraints(program, parameters, z, u))
    return make_layer(problem, parameters.made, [z, u]), parameters.values


def _cost(program: fw.ScenarioProgram, parameters: _Parameters, z: Any, u: Any) -> Any:
    cp = import_cvxpy()
    weights = program.weights[:1, :, None]
    cost = parameters.block(program.q, z.shape) @ z
    cost += cp.sum(cp.multiply(parameters.block(weights * program.d, u.shape), u))
    if program.P.any():
        cost += 0.5 * cp.sum_squares(_root(program.P[0]) @ z)
    if program.D.any():
        spread = cp.multiply(np.sqrt(weights[0].numpy()), u @ _root(program.D[0, 0]).T)
        cost += 0.5 * cp.sum_squares(spread)
    return cost


def _constraints(program: fw.ScenarioProgram, parameters: _Parameters, z: Any, u: Any) -> list[Any]:
    cp = import_cvxpy()
    M, (touching, n_z), (rows, n_u) = u.shape[0], program.T.shape[2:], program.W.shape[2:]
    if program.T.shape[1] == 1:
        once = parameters.block(program.T, (touching, n_z)) @ z
        of_decision = np.ones((M, 1)) @ cp.reshape(once, (1, touching), order="C")
    else:
        stacked = parameters.block(program.T, (M * touching, n_z)) @ z
        of_decision = cp.reshape(stacked, (M, touching), order="C")
    if program.W.shape[1] == 1:
        of_recourse = u @ parameters.block(program.W, (rows, n_u)).T
    else:
        each = [parameters.block(program.W[:, j], (rows, n_u)) @ u[j] for j in range(M)]
        of_recourse = cp.vstack(each)
    right = program.r.expand(len(program.r), M, rows)
    constraints = [
        of_decision + of_recourse[:, :touching]
        <= parameters.block(right[..., :touching], (M, touching))
    ]
    if rows > touching:
        limit = parameters.block(right[..., touching:], (M, rows - touching))
        constraints.append(of_recourse[:, touching:] <= limit)
    if program.G.shape[1]:
        constraints.append(program.G[0].numpy() @ z <= program.h[0].numpy())
    if program.E.shape[1]:
        constraints.append(program.E[0].numpy() @ z == program.e[0].numpy())
    return constraints


def _root(matrix: torch.Tensor) -> Array:
    """R with R'R = matrix, for a positive semidefinite matrix."""
    values, vectors = np.linalg.eigh(matrix.numpy())
    return np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
