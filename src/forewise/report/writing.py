"""The function that writes a report."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from forewise.exceptions import StorageError
from forewise.explanation import Explanation
from forewise.planner.evaluation import Evaluation
from forewise.planner.planner import Planner
from forewise.planner.policy import PlannerPolicy
from forewise.predictors.base import require_fitted
from forewise.report.inputs import Content
from forewise.report.page import page
from forewise.storage import write_file


def report(
    policy: PlannerPolicy | Planner,
    table: Any,
    evaluation: Evaluation | None,
    path: str | os.PathLike[str],
    *,
    decisions: Any = None,
    explanation: Explanation | None = None,
) -> Path:
    """Write one self-contained page: what a policy saves, how sure that is, and what is next.

    The page needs no network and has no scripts; it is made for wide screens and phones, by day
    and by night. The file is there whole or not at all.

    Parameters
    ----------
    policy : PlannerPolicy, or a fitted Planner
    table : data frame
        The table that was evaluated: outcomes are looked up in it.
    evaluation : Evaluation or None
        What ``Planner.evaluate`` returned; without it the page has no savings.
    path : str or Path
        The page's file.
    decisions : data frame, optional
        What ``decide`` returned for the days to come.
    explanation : Explanation, optional
        Of the first of these decisions.

    Returns
    -------
    Path
        The file that was written.
    """
    if isinstance(policy, Planner):
        require_fitted(policy)
        policy = policy.policy_
    content = Content.checked(policy, table, evaluation, decisions, explanation)
    target = Path(path)
    try:
        write_file(target, page(content).encode())
    except OSError as error:
        raise StorageError(
            f"the report cannot be written to {target}: {error.strerror or error}; choose a "
            "file in a folder that exists and can be written to"
        ) from error
    return target
