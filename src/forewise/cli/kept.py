"""What `forewise evaluate` found, kept beside the policy for `forewise report`."""

from __future__ import annotations

import hashlib
import json
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd

from forewise.planner.evaluation import Evaluation
from forewise.storage import write_file

_FILE = "evaluation.json"


def keep(evaluation: Evaluation, folder: Path, table: Path, asked: list[Any]) -> None:
    """Write an evaluation, with what it was made of."""
    content = {
        "made_of": _made_of(folder, table, asked),
        "baseline": evaluation.baseline,
        "notes": evaluation.notes,
        "summary": evaluation.summary.to_json(orient="table"),
        "costs": evaluation.costs.to_json(orient="table"),
    }
    write_file(folder / _FILE, json.dumps(content).encode())


def kept(folder: Path, table: Path, asked: list[Any]) -> Evaluation | None:
    """The evaluation of this policy on this table, asked for in this way; None if there is none."""
    try:
        content = json.loads((folder / _FILE).read_text())
        if content["made_of"] != _made_of(folder, table, asked):
            return None
        summary, costs = (
            pd.read_json(StringIO(content[name]), orient="table", precise_float=True)
            for name in ("summary", "costs")
        )
        return Evaluation(summary, costs, content["baseline"], content["notes"])
    except (OSError, ValueError, KeyError, TypeError):
        return None  # it was not evaluated, or by another version: evaluating anew is always right


def _made_of(folder: Path, table: Path, asked: list[Any]) -> str:
    """A hash of the policy, the table and the question."""
    digest = hashlib.sha256(json.dumps(asked).encode())
    for file in (folder / "header.json", folder / "plan.toml", table):
        with file.open("rb") as opened:
            digest.update(hashlib.file_digest(opened, "sha256").digest())
    return digest.hexdigest()
