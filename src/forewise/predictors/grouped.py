"""Past outcomes of the same group: of the same weekday, or of the same shop.

May import: exceptions, scenarios, tables, and its siblings `base`, `parameter_checks`,
`weighted_support`.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np

from forewise.exceptions import InvalidInputError
from forewise.predictors.base import Predictor
from forewise.predictors.weighted_support import outcome_order, systematic_picks
from forewise.scenarios import Scenarios
from forewise.validation.parameters import require_choice
from forewise.validation.tables import check_training_data

_SHOWN = 3  # unseen groups that an error message lists


class GroupedPredictor(Predictor):
    """Every past outcome with the same values in some columns is a scenario, equally likely.

    Prefer it as the first step beyond `EmpiricalPredictor`, and as what many do by hand: decisions
    from it are SAA per weekday, or per shop and weekday,

        z*(x) = argmin_z  mean of f(z, y_i) over the rows i with x_i = x in the columns `by`.

    Parameters
    ----------
    by : str, int or sequence of them
        Names of columns, or their numbers; the first column by default.
    unseen : {"raise", "pool"}
        What happens when a group is asked for that had no training row: an error, or the outcomes
        of all groups.

    Attributes
    ----------
    columns_ : array (n_by,)
        Numbers of the columns.
    groups_ : array (n_groups, n_by)
        The values of each group.
    outcomes_ : array (n_rows, n_outcomes)
        The training outcomes, group by group, in order within a group.
    starts_ : array (n_groups + 1,)
        Where each group begins, and the end.

    Examples
    --------
    >>> predictor = GroupedPredictor().fit([[0.0], [1.0], [1.0]], [30.0, 20.0, 10.0])
    >>> predictor.sample([[1.0]]).values.flatten()
    tensor([10., 20.], dtype=torch.float64)
    """

    columns_: np.ndarray
    groups_: np.ndarray
    outcomes_: np.ndarray
    starts_: np.ndarray

    def __init__(self, by: str | int | Sequence[str | int] = 0, unseen: str = "raise") -> None:
        self.by = by
        self.unseen = unseen

    def fit(self, X: Any, y: Any) -> Self:
        """Remember the outcomes (n_contexts, n_outcomes) by group."""
        X, y = check_training_data(self, X, y)
        require_choice("unseen", self.unseen, ("raise", "pool"))
        self.columns_ = np.array([self._column(name) for name in self._names()])
        self.groups_, group = np.unique(X[:, self.columns_], axis=0, return_inverse=True)
        order = outcome_order(y)
        order = order[np.argsort(group[order], kind="stable")]
        self.outcomes_ = y[order]
        self.starts_ = np.concatenate([[0], np.bincount(group).cumsum()])
        return self

    def _names(self) -> list[Any]:
        by: Any = self.by
        names = [by] if isinstance(by, str | Integral) else list(by)
        if not names:
            raise InvalidInputError("by must name at least one column, but is empty")
        return names

    def _column(self, name: Any) -> int:
        known = list(getattr(self, "feature_names_in_", []))
        if isinstance(name, str) and name in known:
            return known.index(name)
        number = isinstance(name, Integral) and not isinstance(name, bool)
        if number and 0 <= name < self.n_features_in_:
            return int(name)
        named = ", ".join(known) if known else f"numbers 0 to {self.n_features_in_ - 1}, no names"
        raise InvalidInputError(
            f"by must name columns of X, but has {name!r}; the columns of X are: {named}"
        )

    def _scenarios(self, X: np.ndarray, n_scenarios: int, random: np.random.Generator) -> Scenarios:
        asked, row = np.unique(X[:, self.columns_], axis=0, return_inverse=True)
        members = [self._members(group) for group in self._numbers_of(asked)]
        # The width must not depend on which groups are asked for together.
        pooled = self.unseen == "pool"
        most = len(self.outcomes_) if pooled else int(np.diff(self.starts_).max())
        width, start = min(n_scenarios, most), random.random()
        values = np.empty((len(asked), width, self.outcomes_.shape[1]))
        weights = np.zeros((len(asked), width))
        for i, outcomes in enumerate(members):
            if len(outcomes) > width:
                picks = systematic_picks(np.ones((1, len(outcomes))), width, start)[0]
            else:
                # What is left over repeats the last one, with no weight.
                picks = np.minimum(np.arange(width), len(outcomes) - 1)
            values[i] = outcomes[picks]
            weights[i, : len(outcomes)] = 1 / min(len(outcomes), width)
        return Scenarios(values[row], weights[row])

    def _numbers_of(self, asked: np.ndarray) -> list[int | None]:
        """Number of each group; None for one that was not seen, where that is allowed."""
        known = {tuple(values): number for number, values in enumerate(self.groups_.tolist())}
        numbers = [known.get(tuple(values)) for values in asked.tolist()]
        unseen = [asked[i].tolist() for i, number in enumerate(numbers) if number is None]
        if unseen and self.unseen == "raise":
            more = f" and {len(unseen) - _SHOWN} more" if len(unseen) > _SHOWN else ""
            listed = "; ".join(str(values) for values in unseen[:_SHOWN])
            raise InvalidInputError(
                f"X has groups in the columns {self.by!r} that had no row in training: {listed}"
                f'{more}. Fit on rows of them, or use unseen="pool" for the outcomes of all groups'
            )
        return numbers

    def _members(self, group: int | None) -> np.ndarray:
        """Outcomes of a group, or of all, in order."""
        if group is None:
            return self.outcomes_[outcome_order(self.outcomes_)]
        return self.outcomes_[self.starts_[group] : self.starts_[group + 1]]
