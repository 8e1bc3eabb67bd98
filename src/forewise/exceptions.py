"""The errors forewise raises on purpose, all under one base class, and its warnings.

Every message says what was expected, what came, and what to do. This module imports
nothing from forewise.
"""

from __future__ import annotations

from sklearn.exceptions import NotFittedError


class ForewiseError(Exception):
    """Base of every error that forewise raises on purpose."""


class InvalidInputError(ForewiseError, ValueError):
    """An argument has the wrong shape, type or value; the message names the argument."""


class InputTypeError(InvalidInputError, TypeError):
    """An argument is of a kind that is not supported: sparse, dates, a class, another object."""


class ModelError(InvalidInputError):
    """A CVXPY problem cannot become a stochastic program.

    The message quotes the expression in question and proposes what to write instead.
    """


class InfeasibleDecisionError(InvalidInputError):
    """A decision breaks the problem's constraints, so that its cost says nothing."""


class UnfittedError(ForewiseError, NotFittedError):
    """An estimator was used before `fit`."""


class StorageError(ForewiseError, ValueError):
    """A stored policy or checkpoint cannot be read: damaged, cut short, foreign or too new."""


class UnsupportedProblemError(ForewiseError, TypeError):
    """A solver was given a problem that it cannot solve; the message names one that can."""


class SolveError(ForewiseError, RuntimeError):
    """At least one context of a batch has no optimal decision.

    The whole batch's result is kept: ``error.solution`` is the same object that
    ``on_failure="return"`` would have returned.
    """

    def __init__(self, message: str, solution: object) -> None:
        super().__init__(message)
        self.solution = solution


class InsufficientMemoryError(ForewiseError, MemoryError):
    """Solving would take more memory than there is; nothing was allocated."""


class MissingDependencyError(ForewiseError, ImportError):
    """An optional package is needed; the message says how to install it."""


class MissingDataError(ForewiseError, FileNotFoundError):
    """A data set is not on this computer; the message says where it was sought, how to get it."""


class DiscardedTrainingWarning(UserWarning):
    """Training through the solver made nothing better; the weights before it were kept."""


class ExtrapolationWarning(UserWarning):
    """Contexts far outside those of training were decided by a network, which may say anything."""


class ColumnWarning(UserWarning):
    """A table has categories or missing values that training had not; the message counts them."""
