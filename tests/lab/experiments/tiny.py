"""A grid so small that it can be computed, killed and computed again many times."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from forewise_lab.experiments.configuration import Settings, load_settings
from forewise_lab.experiments.rows import KEY, VARYING, read_rows

TEXT = """
[methods.saa]
learner = { kind = "decoupled" }
predictor = { kind = "empirical" }

[methods.knn]
learner = { kind = "decoupled" }
predictor = { kind = "neighbor", n_neighbors = 5 }
m = [16]

[methods.bnn]
title = "Bayesian"
learner = { kind = "decoupled" }
predictor = { kind = "bayesian", kl_weight = { paper = 1.0 }, prior_std = 1.3 }
training = { schedule = { kind = "exponential", rate = 0.99 } }

[methods.bnn-cosine]
like = "bnn"
training = { schedule = { kind = "cosine" }, learning_rate = 0.003 }

[methods.combined]
learner = { kind = "combined" }
predictor = { kind = "bayesian", kl_weight = { paper = 1.0 } }

[methods.direct]
learner = { kind = "direct" }
predictor = { kind = "point" }

[methods.five]
learner = { kind = "constant", decision = [5.0] }

[methods.negative]
learner = { kind = "constant", decision = [-5.0] }

[methods.wrong-shape]
learner = { kind = "constant", decision = [1.0, 2.0] }

[methods.long]
like = "bnn"
training = { epochs = 100000 }

[methods.truth]
learner = { kind = "oracle" }

[experiments.small]
title = "Small"
dataset = { name = "nv1", n_validation = 20, n_test = 15 }
problem = { name = "nv" }
oracle = { draws = 50, few_draws = 8 }
n_train = [30]
scenarios = [[2, 4], [2, 8], [3, 4]]
headline = [2, 8]
metrics = ["R", "FR", "EFR", "FR32", "cost", "CRPS", "coverage90"]
methods = ["saa", "knn", "bnn", "five"]

[experiments.small.network]
hidden_sizes = [4, 4]
training = { epochs = 2, batch_size = 16, learning_rate = 0.001 }

[experiments.all]
like = "small"
title = "All"
scenarios = [[2, 8]]
methods = ["saa", "bnn", "bnn-cosine", "combined", "direct", "five", "truth"]
scale = 0.1

[experiments.all.only]
bnn-cosine = { training = { epochs = 1 } }

[experiments.kept]
like = "all"
title = "Kept"
methods = ["bnn", "five"]
n_seeds = 2
keep_policies = true

[experiments.broken]
like = "all"
methods = ["five", "negative", "wrong-shape"]

[experiments.endless]
like = "all"
methods = ["five", "long"]
"""


def tiny_settings(folder: Path, text: str = TEXT) -> Settings:
    """The settings of a file with this text."""
    return load_settings(write(folder, text))


def write(folder: Path, text: str, name: str = "tiny.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def comparable(folder: Path) -> pd.DataFrame:
    """The table of a folder without what differs from run to run, in one order."""
    table = read_rows(folder).drop(columns=list(VARYING))
    return table.sort_values(list(KEY)).reset_index(drop=True)
