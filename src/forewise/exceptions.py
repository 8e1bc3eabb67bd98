"""The errors forewise raises on purpose, all under one base class, and its warnings.

Every message says what was expected, what came, and what to do. This module imports
nothing from forewise.
"""

from __future__ import annotations

from sklearn.exceptions import NotFittedError


class ForewiseError(Exception):
    """Base of every error that forewise raises on purpose.

    Examples
    --------
    One clause catches all of them, and lets real bugs through:

    >>> import forewise as fw
    >>> try:
    ...     fw.Newsvendor(shortage=-1, excess=1)
    ... except fw.ForewiseError as error:
    ...     print(type(error).__name__)
    InvalidInputError
    """


class InvalidInputError(ForewiseError, ValueError):
    """An argument has the wrong shape, type or value; the message names the argument.

    Examples
    --------
    It is a `ValueError` too.

    >>> import forewise as fw
    >>> fw.Newsvendor(shortage=-1, excess=1)
    Traceback (most recent call last):
        ...
    forewise.exceptions.InvalidInputError: shortage must be at least 0, but its smallest entry is -1
    """


class InputTypeError(InvalidInputError, TypeError):
    """An argument is of a kind that is not supported: sparse, dates, a class, another object.

    Examples
    --------
    It is a `TypeError` too.

    >>> import forewise as fw
    >>> try:
    ...     fw.Scenarios({"demand": [1.0, 2.0]})
    ... except TypeError as error:
    ...     print(type(error).__name__)
    InputTypeError
    """


class ModelError(InvalidInputError):
    """A CVXPY problem cannot become a stochastic program.

    The message quotes the expression in question and proposes what to write instead.

    Examples
    --------
    A cost must be convex in the decision, and the model says which part is not:

    >>> import cvxpy as cp
    >>> import forewise as fw
    >>> z, y = cp.Variable(1, name="order"), cp.Parameter(1, name="demand")
    >>> try:
    ...     fw.CvxpyProblem(cp.Minimize(cp.sum(cp.sqrt(z - y))), [], decision=z, outcome=y)
    ... except fw.exceptions.ModelError as error:
    ...     print(str(error).splitlines()[0][:60])
    the problem is not convex by CVXPY's rules (DCP), because of
    """


class InfeasibleDecisionError(InvalidInputError):
    """A decision breaks the problem's constraints, so that its cost says nothing.

    Examples
    --------
    A budget of 10 does not buy 8 and 8; a regret of that would say nothing.

    >>> import forewise as fw
    >>> costs = dict(quadratic=0, linear=1, shortage_quadratic=1, shortage=4, excess_quadratic=1)
    >>> problem = fw.QuadraticNewsvendor(**costs, excess=1, price=[1, 1], budget=10)
    >>> try:
    ...     fw.regret(problem, [[8.0, 8.0]], [[5.0, 6.0]])
    ... except fw.exceptions.InfeasibleDecisionError as error:
    ...     print("not allowed:", float(problem.violation([[8.0, 8.0]])))
    not allowed: 0.6
    """


class UnfittedError(ForewiseError, NotFittedError):
    """An estimator was used before `fit`.

    Examples
    --------
    >>> import forewise as fw
    >>> try:
    ...     fw.ForestPredictor().sample([[1.0]], 10)
    ... except fw.exceptions.UnfittedError as error:
    ...     print("fit first")
    fit first
    """


class StorageError(ForewiseError, ValueError):
    """A stored policy or checkpoint cannot be read: damaged, cut short, foreign or too new.

    Examples
    --------
    >>> from pathlib import Path
    >>> import forewise as fw
    >>> folder = Path("not_a_policy")
    >>> folder.mkdir()
    >>> try:
    ...     fw.load_policy(folder)
    ... except fw.exceptions.StorageError as error:
    ...     print("not read, and nothing was run")
    not read, and nothing was run
    """


class UnsupportedProblemError(ForewiseError, TypeError):
    """A solver was given a problem that it cannot solve; the message names one that can.

    Examples
    --------
    >>> import forewise as fw
    >>> portfolio = fw.Portfolio([1.0], minimum_return=1.0)
    >>> try:
    ...     fw.solve(portfolio, fw.Scenarios([[[1.0]]]), fw.solvers.WeightedQuantileSolver())
    ... except fw.exceptions.UnsupportedProblemError as error:
    ...     print(str(error).split("; ")[-1])
    use AutoSolver()
    """


class SolveError(ForewiseError, RuntimeError):
    """At least one context of a batch has no optimal decision.

    The whole batch's result is kept: ``error.solution`` is the same object that
    ``on_failure="return"`` would have returned.

    Examples
    --------
    A return of 100 from holdings of at most 1 cannot be; the other context is solved all the same.

    >>> import forewise as fw
    >>> order = fw.Portfolio([1.0], minimum_return=100.0, upper=1.0)
    >>> try:
    ...     fw.solve(order, fw.Scenarios([[[1.0], [2.0]]]))
    ... except fw.SolveError as error:
    ...     print(error.solution.status[0].name)
    INFEASIBLE
    """

    def __init__(self, message: str, solution: object) -> None:
        super().__init__(message)
        self.solution = solution


class InsufficientMemoryError(ForewiseError, MemoryError):
    """Solving would take more memory than there is; nothing was allocated.

    Examples
    --------
    It is a `MemoryError` too, so that a program that already handles one needs no change.

    >>> import forewise as fw
    >>> issubclass(fw.exceptions.InsufficientMemoryError, MemoryError)
    True
    """


class MissingDependencyError(ForewiseError, ImportError):
    """An optional package is needed; the message says how to install it.

    Examples
    --------
    It is an `ImportError` too: whatever tests for optional packages works here.

    >>> import forewise as fw
    >>> issubclass(fw.exceptions.MissingDependencyError, ImportError)
    True
    """


class MissingDataError(ForewiseError, FileNotFoundError):
    """A data set is not on this computer; the message says where it was sought, how to get it.

    Examples
    --------
    >>> import forewise as fw
    >>> try:
    ...     fw.datasets.bakery("nowhere")
    ... except fw.MissingDataError as error:
    ...     print(str(error).split(" is not here")[0])
    the data set bakery (Daily demand of 3 products in 35 bakeries, 2016-2019)
    """


class DiscardedTrainingWarning(UserWarning):
    """Training through the solver made nothing better; the weights before it were kept.

    Examples
    --------
    Whoever compares many settings does not want to read it each time:

    >>> import warnings
    >>> import forewise as fw
    >>> warnings.simplefilter("ignore", fw.exceptions.DiscardedTrainingWarning)
    """


class ExtrapolationWarning(UserWarning):
    """Contexts far outside those of training were decided by a network, which may say anything.

    Examples
    --------
    A service may treat it as an error, and let a person decide:

    >>> import warnings
    >>> import numpy as np
    >>> import forewise as fw
    >>> X = np.linspace(0, 1, 64)[:, None]
    >>> network = fw.GaussianPredictor((8,), training=fw.Training(epochs=1), random_state=0)
    >>> learner = fw.DecoupledLearner(fw.Newsvendor(3, 1), network).fit(X, 5 + X[:, 0])
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", fw.exceptions.ExtrapolationWarning)
    ...     try:
    ...         learner.decide([[50.0]])
    ...     except fw.exceptions.ExtrapolationWarning:
    ...         print("unlike anything in training")
    unlike anything in training
    """


class ColumnWarning(UserWarning):
    """A table has categories or missing values that training had not; the message counts them.

    Examples
    --------
    >>> import warnings
    >>> import pandas as pd
    >>> import forewise as fw
    >>> columns = fw.features.Columns.from_frame(pd.DataFrame({"shop": ["north", "south"] * 4}))
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     encoded = columns.encode(pd.DataFrame({"shop": ["west"]}))
    >>> caught[0].category.__name__
    'ColumnWarning'
    """
