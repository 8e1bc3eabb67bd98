"""The paper's experiments: the problem of each, and which data each run is given.

May import: exceptions, arguments, problems, and its siblings `base` and `synthetic`. To add an
experiment on synthetic data: a function for its problem, and a line in `_PLANS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from forewise.datasets.base import Dataset, Split, as_count
from forewise.datasets.synthetic import nv1, nv2, nvqp, pop
from forewise.exceptions import InvalidInputError
from forewise.problems import Newsvendor, Portfolio, QuadraticNewsvendor
from forewise.validation.arguments import as_finite

# A mean return below this is not believed: the holdings that it asks for would be huge.
_LEAST_EXPECTED_RETURN = 0.01


def nv_problem() -> Newsvendor:
    """Problem of NV1 and NV2: shortage 100, excess 900, so the 0.1 quantile of demand."""
    return Newsvendor(shortage=100.0, excess=900.0)


def nvqp_problem(budget: float = 14400.0) -> QuadraticNewsvendor:
    """Problem of NVQP: six items with quadratic costs that share a budget.

    Parameters
    ----------
    budget : float
        The paper's binds in about 4 % of the contexts only; 6000 makes it matter.
    """
    return QuadraticNewsvendor(
        quadratic=[6.0, 4.0, 6.0, 6.0, 8.0, 8.0],
        linear=[37.0, 40.0, 32.0, 50.0, 56.0, 32.0],
        shortage_quadratic=[24.0, 28.0, 17.0, 15.0, 21.0, 24.0],
        shortage=[1644.0, 687.0, 1369.0, 1784.0, 1682.0, 1246.0],
        excess_quadratic=[17.0, 13.0, 14.0, 8.0, 15.0, 20.0],
        excess=[172.0, 186.0, 157.0, 127.0, 84.0, 90.0],
        price=[53.0, 109.0, 64.0, 50.0, 54.0, 73.0],
        budget=budget,
    )


def pop_problem(y_train: Any, minimum_return: float = 10000.0) -> Portfolio:
    """Problem of POP: the least expected loss for a return of `minimum_return`.

    Parameters
    ----------
    y_train : array (n_contexts, n_assets)
        Returns to train on; the expected return of an asset is their mean, at least 0.01.
    minimum_return : float
    """
    returns = as_finite("y_train", y_train)
    if returns.ndim != 2 or 0 in returns.shape:
        raise InvalidInputError(
            "y_train must have shape (n_contexts, n_assets), all at least 1, but has shape "
            f"{tuple(returns.shape)}"
        )
    return Portfolio(returns.mean(dim=0).clamp_min(_LEAST_EXPECTED_RETURN), minimum_return)


def pop2_problem() -> Portfolio:
    """Problem of POP2: how to split 100 over five indices.

    The mean daily returns are far below 0.01, so that all five are taken as 0.01, and a required
    return of 1 asks for holdings of 100.
    """
    return Portfolio([_LEAST_EXPECTED_RETURN] * 5, minimum_return=1.0)


@dataclass(frozen=True)
class _Plan:
    """Sizes of the three data sets, and what is added to the seed of a run for the last two."""

    generate: Callable[..., Dataset]
    sizes: tuple[int, int, int]
    validation_seed: int
    test_seed: int


_PLANS = {
    "nv1": _Plan(nv1, (1800, 1200, 1200), 100, 200),
    "nv2": _Plan(nv2, (1800, 1200, 1200), 100, 200),
    "nvqp": _Plan(nvqp, (4000, 2000, 2000), 100, 200),
    "pop": _Plan(pop, (1500, 900, 1500), 80, 160),
}


def paper_split(
    name: str, seed: int = 0, *, n_train: int | None = None, n_assets: int | None = None
) -> Split:
    """The data of one run of an experiment on synthetic data.

    Run s trains on the data of seed s; NV1, NV2 and NVQP are validated on s + 100 and tested on
    s + 200, POP on s + 80 and s + 160. Runs share no data while their seeds differ by less than
    100 (POP: 80).

    Parameters
    ----------
    name : {"nv1", "nv2", "nvqp", "pop"}
    seed : int
        Number of the run.
    n_train : int, optional
        Rows to train on, instead of the paper's 1800, 1800, 4000 and 1500.
    n_assets : int, optional
        Number of assets of POP, instead of 15.
    """
    if name not in _PLANS:
        hint = "; for POP2 use pop2_paper() or pop2_strict()" if name == "pop2" else ""
        raise InvalidInputError(f"name must be one of {sorted(_PLANS)}, but is {name!r}{hint}")
    if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool) or seed < 0:
        raise InvalidInputError(f"seed must be a whole number of at least 0, but is {seed!r}")
    if n_assets is not None and name != "pop":
        raise InvalidInputError(f"n_assets must be left out for {name}: only pop has assets")
    plan = _PLANS[name]
    assets = {} if n_assets is None else {"n_assets": as_count("n_assets", n_assets)}
    n_rows = plan.sizes[0] if n_train is None else as_count("n_train", n_train)
    return Split(
        train=plan.generate(n_rows, random_state=seed, **assets),
        validation=plan.generate(plan.sizes[1], random_state=seed + plan.validation_seed, **assets),
        test=plan.generate(plan.sizes[2], random_state=seed + plan.test_seed, **assets),
    )
