"""Fits that one process, or each of several, computes: `python -m tests.predictors.ranked FOLDER`.

The environment says which rank it is, as torchrun does; the histories go to a file of the folder.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from torch import distributed

import forewise as fw
from forewise.exceptions import InvalidInputError
from forewise.predictors import AllProcesses, MeanField, MeanFieldPredictor, NormalHead
from tests.predictors.interruption import interrupting

RANK, COUNT = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
PROBLEM = fw.Newsvendor(3, 1)


def table() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(101, 2))
    return X, rng.gamma(4.0, np.exp(0.3 * X[:, :1]))


def training(**settings) -> fw.Training:
    made = {"epochs": 6, "batch_size": 25, "patience": 4, "ranks": AllProcesses()}
    return fw.Training(**(made | settings))


def learners() -> dict[str, fw.Learner]:
    common = {"hidden_sizes": (8,), "training": training(), "random_state": 0}
    return {
        "Gaussian": fw.DecoupledLearner(PROBLEM, fw.GaussianPredictor(**common)),
        "mixture": fw.DecoupledLearner(PROBLEM, fw.MixturePredictor(**common)),
        "mean field": fw.DecoupledLearner(PROBLEM, MeanFieldPredictor(**common)),
        "members": fw.DecoupledLearner(PROBLEM, fw.BayesianPredictor(**common)),
        "drawn activations": fw.DecoupledLearner(
            PROBLEM, fw.BayesianPredictor(inference=MeanField(), head=NormalHead(), **common)
        ),
        "combined": fw.CombinedLearner(PROBLEM, fw.GaussianPredictor(**common), 8),
        "combined members": fw.CombinedLearner(
            PROBLEM, fw.BayesianPredictor(**common), 8, training=training(epochs=4)
        ),
    }


def main(folder: Path) -> None:
    warnings.simplefilter("ignore")
    X, y = table()
    found = {}
    for name, learner in learners().items():
        learner.fit(X, y)
        found[name] = [learner.history_, np.asarray(learner.decide(X[:5])).tolist()]
    checkpointed = training(checkpoint=folder / f"checkpoint-{RANK}")
    half = fw.GaussianPredictor((8,), training=checkpointed, random_state=0)
    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(KeyboardInterrupt):
        interrupting(patch, 3)
        half.fit(X, y)
    found["resumed"] = [half.fit(X, y).history_, []]
    if COUNT > 1:
        try:
            fw.GaussianPredictor((8,), training=training(), random_state=RANK).fit(X, y)
        except InvalidInputError as error:
            found["told apart"] = [str(error), []]
    (folder / f"{COUNT}-{RANK}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    if COUNT > 1:  # by a file: nothing listens but on loopback
        method = f"file://{os.environ['FOREWISE_STORE']}"
        distributed.init_process_group("gloo", method, rank=RANK, world_size=COUNT)
    main(Path(sys.argv[1]))
