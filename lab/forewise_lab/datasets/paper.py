"""The data of each run of the paper's synthetic experiments, and the problem of POP2.

To add an experiment on synthetic data: a line in `_PLANS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import forewise as fw
from forewise.validation.parameters import require_count


def pop2_problem() -> fw.Portfolio:
    """Problem of POP2: how to split 100 over five indices.

    The mean daily returns are far below 0.01, so that all five are taken as 0.01, the least that
    `pop_problem` allows, and a required return of 1 asks for holdings of 100.
    """
    return fw.Portfolio([0.01] * 5, minimum_return=1.0)


@dataclass(frozen=True)
class _Plan:
    """Sizes of the three data sets, and what is added to the seed of a run for the last two."""

    generate: Callable[..., fw.datasets.Dataset]
    sizes: tuple[int, int, int]
    validation_seed: int
    test_seed: int


_PLANS = {
    "nv1": _Plan(fw.datasets.nv1, (1800, 1200, 1200), 100, 200),
    "nv2": _Plan(fw.datasets.nv2, (1800, 1200, 1200), 100, 200),
    "nvqp": _Plan(fw.datasets.nvqp, (4000, 2000, 2000), 100, 200),
    "pop": _Plan(fw.datasets.pop, (1500, 900, 1500), 80, 160),
}


def paper_split(
    name: str, seed: int = 0, *, n_train: int | None = None, n_assets: int | None = None
) -> fw.datasets.Split:
    """The data of one run of an experiment on synthetic data: nv1, nv2, nvqp or pop.

    Run s trains on the data of seed s; NV1, NV2 and NVQP are validated on s + 100 and tested on
    s + 200, POP on s + 80 and s + 160. `n_train` replaces the paper's 1800, 1800, 4000 and 1500
    rows to train on, `n_assets` the 15 assets of POP.
    """
    if name not in _PLANS:
        hint = "; for POP2 use pop2_paper() or pop2_strict()" if name == "pop2" else ""
        raise fw.InvalidInputError(f"name must be one of {sorted(_PLANS)}, but is {name!r}{hint}")
    seed = require_count("seed", seed, 0)
    if n_assets is not None and name != "pop":
        raise fw.InvalidInputError(f"n_assets must be left out for {name}: only pop has assets")
    plan = _PLANS[name]
    assets = {} if n_assets is None else {"n_assets": require_count("n_assets", n_assets, 1)}
    n_rows = plan.sizes[0] if n_train is None else require_count("n_train", n_train, 1)
    return fw.datasets.Split(
        train=plan.generate(n_rows, random_state=seed, **assets),
        validation=plan.generate(plan.sizes[1], random_state=seed + plan.validation_seed, **assets),
        test=plan.generate(plan.sizes[2], random_state=seed + plan.test_seed, **assets),
    )
