"""A data set: contexts, the outcomes observed with them, and, if known, their distribution."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from forewise.exceptions import ForewiseError, InvalidInputError
from forewise.scenarios import Scenarios
from forewise.validation.arguments import as_finite
from forewise.validation.parameters import as_generator, require_count

if TYPE_CHECKING:
    import pandas as pd

# Draws are made in pieces of about this many numbers: the intermediate results of a generator then
# need little memory beside the scenarios.
_NUMBERS_PER_PIECE = 2**17


class Conditional(Protocol):
    """The true distribution of the outcome given the context, as a function that draws from it.

    Examples
    --------
    A function with this signature is one:

    >>> import numpy as np
    >>> import forewise as fw
    >>> def around_the_context(X, n_scenarios, generator):
    ...     return X[:, None, :] + generator.normal(size=(len(X), n_scenarios, 1))
    >>> X, y = [[1.0], [2.0]], [[1.1], [1.9]]
    >>> data = fw.datasets.Dataset(X, y, ["x"], ["y"], around_the_context)
    >>> data.true_scenarios(5).values.shape
    torch.Size([2, 5, 1])
    """

    def __call__(
        self, X: np.ndarray, n_scenarios: int, generator: np.random.Generator
    ) -> np.ndarray:
        """Independent draws for each row of X: ``(n_contexts, n_scenarios, n_outcomes)``."""


@dataclass(frozen=True, eq=False, init=False)
class Dataset:
    """Contexts and outcomes, row by row, with the true distribution where it is known.

    Parameters
    ----------
    X : array (n_contexts, n_features)
        Contexts; kept as float64.
    y : array (n_contexts, n_outcomes)
        The outcome observed with each context; kept as float64.
    feature_names, outcome_names : sequence of str
        One name per column, no two alike.
    conditional : Conditional, optional
        Draws outcomes from their true distribution given contexts; for synthetic data only.
    index : array (n_contexts,), optional
        A label of each row, for instance its date; 0, 1, 2 ... by default.

    Examples
    --------
    >>> import forewise as fw
    >>> dataset = fw.datasets.nv1(n_contexts=6, random_state=0)
    >>> dataset[:2].true_scenarios(n_scenarios=100)
    Scenarios(n_contexts=2, n_scenarios=100, n_outcomes=1, equal weights, torch.float64)
    """

    X: np.ndarray
    y: np.ndarray
    feature_names: tuple[str, ...]
    outcome_names: tuple[str, ...]
    conditional: Conditional | None
    index: np.ndarray

    def __init__(
        self,
        X: Any,
        y: Any,
        feature_names: Iterable[str],
        outcome_names: Iterable[str],
        conditional: Conditional | None = None,
        index: Any = None,
    ) -> None:
        contexts, outcomes = _as_matrix("X", X), _as_matrix("y", y)
        n_contexts = len(contexts)
        if len(outcomes) != n_contexts:
            raise InvalidInputError(
                "X and y must have one row per context each, but have "
                f"{n_contexts} and {len(outcomes)} rows"
            )
        labels = np.arange(n_contexts) if index is None else np.asarray(index)
        if labels.shape != (n_contexts,):
            raise InvalidInputError(
                f"index must have one label per row, shape ({n_contexts},), but has shape "
                f"{labels.shape}"
            )
        fields = {
            "X": contexts,
            "y": outcomes,
            "feature_names": _as_names("feature_names", feature_names, contexts.shape[1]),
            "outcome_names": _as_names("outcome_names", outcome_names, outcomes.shape[1]),
            "conditional": conditional,
            "index": labels,
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @property
    def n_contexts(self) -> int:
        """Number of rows."""
        return self.X.shape[0]

    @property
    def n_features(self) -> int:
        """Number of columns of X."""
        return self.X.shape[1]

    @property
    def n_outcomes(self) -> int:
        """Number of columns of y."""
        return self.y.shape[1]

    def __getitem__(self, rows: Any) -> Dataset:
        """Some rows, by a slice, a list of row numbers or a mask; the true distribution stays."""
        if not isinstance(rows, slice):
            rows = np.asarray(rows)
            if rows.ndim != 1:
                raise InvalidInputError(
                    "rows must be a slice, a list of row numbers or a mask, but is "
                    f"{rows.tolist()!r}; for row i use dataset[i : i + 1]"
                )
        try:
            X, y, index = self.X[rows], self.y[rows], self.index[rows]
        except IndexError as error:
            raise InvalidInputError(
                f"rows must be row numbers below {self.n_contexts} or a mask of that length, "
                f"but do not fit: {error}"
            ) from error
        if not len(X):
            raise InvalidInputError(
                f"rows must choose at least one of the {self.n_contexts} rows, but chose none"
            )
        return Dataset(X, y, self.feature_names, self.outcome_names, self.conditional, index)

    def true_scenarios(self, n_scenarios: int, random_state: Any = 0) -> Scenarios:
        """Draws from the true distribution of the outcome, given each row's context.

        They are independent of X and y of a data set made with the same `random_state`. Where the
        result is too large, take the rows in parts, each with a `random_state` of its own.

        Parameters
        ----------
        n_scenarios : int
            Number of draws for each context.
        random_state : int or numpy.random.Generator

        Returns
        -------
        Scenarios (n_contexts, n_scenarios, n_outcomes)
        """
        if self.conditional is None:
            raise ForewiseError(
                "true_scenarios needs the true distribution of the outcome, which real data do "
                "not have. Use a synthetic data set, or evaluate decisions by their regret on y"
            )
        n_scenarios = require_count("n_scenarios", n_scenarios, 1)
        # A spawned stream shares no numbers with the one that made the data from the same seed.
        generator = as_generator(random_state).spawn(1)[0]
        values = np.empty((self.n_contexts, n_scenarios, self.n_outcomes))
        width = min(n_scenarios, max(1, _NUMBERS_PER_PIECE // self.n_outcomes))
        height = max(1, _NUMBERS_PER_PIECE // (width * self.n_outcomes))
        for top in range(0, self.n_contexts, height):
            rows = self.X[top : top + height]
            for left in range(0, n_scenarios, width):
                piece = values[top : top + height, left : left + width]
                piece[...] = self.conditional(rows, piece.shape[1], generator)
        return Scenarios(values)

    def frame(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """X and y as data frames, with the names of their columns and the rows' labels."""
        import pandas as pd

        index = pd.Index(self.index)
        return (
            pd.DataFrame(self.X, index=index, columns=list(self.feature_names)),
            pd.DataFrame(self.y, index=index, columns=list(self.outcome_names)),
        )

    def __repr__(self) -> str:
        known = "not known" if self.conditional is None else "known"
        return (
            f"Dataset(n_contexts={self.n_contexts}, n_features={self.n_features}, "
            f"n_outcomes={self.n_outcomes}, true distribution {known})"
        )


@dataclass(frozen=True, eq=False)
class Split:
    """Three data sets with the same columns.

    Examples
    --------
    >>> import forewise as fw
    >>> seeds = (0, 100, 200)
    >>> split = fw.datasets.Split(*(fw.datasets.nv1(50, random_state=seed) for seed in seeds))
    >>> split.test.n_contexts
    50
    """

    train: Dataset
    validation: Dataset
    test: Dataset


def _as_matrix(name: str, value: Any) -> np.ndarray:
    # A copy, so that a data set does not change with the array or table it was made from.
    matrix = as_finite(name, value).detach().clone().cpu().numpy()
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise InvalidInputError(
            f"{name} must be a matrix with one row per context, at least 1 × 1, but has shape "
            f"{matrix.shape}"
        )
    return matrix


def _as_names(name: str, value: Iterable[str], length: int) -> tuple[str, ...]:
    names = tuple(value)
    repeated = sorted({str(item) for item in names if names.count(item) > 1})
    if isinstance(value, str) or len(names) != length or repeated:
        found = f"repeats {repeated}" if repeated else f"is {len(names)} name(s)"
        raise InvalidInputError(
            f"{name} must be {length} different name(s), one per column, but {found}"
        )
    return names
