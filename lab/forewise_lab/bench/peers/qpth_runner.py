"""One solve with qpth, timed where it runs; also a script for an environment of its own.

Imports nothing from forewise, because qpth's own environment does not have it. As a script:
``python qpth_runner.py problem.npz answer.npz``.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import torch

Arrays = dict[str, np.ndarray]
NAMES = ("Q", "p", "G", "h", "A", "b")


def solve(problem: Arrays) -> Arrays:
    """Solve min ½ x'Q x + p'x s.t. G x ≤ h, A x = b for a batch, and differentiate if asked.

    Q, p, G, h, A and b have a leading n_contexts, or 1 where contexts share them; `direction`
    (n_contexts, n_z), or empty, is v of the loss Σ v·z that is differentiated. The answer has x
    (n_contexts, n_variables), seconds, and the gradient of all but Q that contexts do not share.
    """
    from qpth.qp import QPFunction

    direction = torch.as_tensor(problem["direction"])
    values = [_as_qpth_takes_it(torch.as_tensor(problem[name])) for name in NAMES]
    whole = {name for name in NAMES if len(problem[name]) == len(problem["p"])} - {"Q"}
    wanted = {n: v for n, v in zip(NAMES, values, strict=True) if n in whole and v.numel()}
    for value in wanted.values():
        value.requires_grad_(direction.numel() > 0)
    start = time.perf_counter()
    x = QPFunction(verbose=-1, check_Q_spd=False)(*values)
    gradients: tuple[torch.Tensor, ...] = ()
    if direction.numel():
        loss = (x[:, : direction.shape[1]] * direction).sum()
        gradients = torch.autograd.grad(loss, list(wanted.values()))
    seconds = time.perf_counter() - start
    answer = {"x": x.detach().numpy(), "seconds": np.array(seconds)}
    return answer | {name: g.numpy() for name, g in zip(wanted, gradients, strict=False)}


def _as_qpth_takes_it(value: torch.Tensor) -> torch.Tensor:
    """Without its leading 1 if it is a shared matrix, without any dimension if it is absent."""
    if not value.numel():
        return torch.empty(0, dtype=value.dtype)
    return value[0] if value.ndim == 3 and len(value) == 1 else value


def _warm_up() -> None:
    """Solve min ½ x² s.t. x ≤ 1 once, so that a fresh process does not time its own start."""
    one = np.ones((1, 1, 1))
    empty = np.empty((1, 0))
    problem = {"Q": one, "p": one[0], "G": one, "h": one[0], "A": empty, "b": empty}
    solve(problem | {"direction": one[0]})


if __name__ == "__main__":
    torch.set_num_threads(1)
    _warm_up()
    with np.load(sys.argv[1]) as file:
        given = dict(file)
    np.savez(sys.argv[2], allow_pickle=False, **solve(given))
