"""Results tables that nobody computed, shaped like those that `forewise run` makes."""

from __future__ import annotations

import numpy as np
import pandas as pd

from forewise_lab.experiments.configuration import Settings, load_settings

_FR = {
    "d-ann": 520, "d-gp": 190, "d-bnn": 34, "c-ann": 33, "c-bnn": 28, "bnn-ensemble": 15,
    "d-bnn-tuned": 24, "c-ann-tuned": 21, "c-bnn-tuned": 16, "saa": 820, "knn-saa": 95,
    "forest-saa": 88, "ensemble": 27, "mixture": 19, "direct": 18, "cautious-ensemble": 17,
    "oracle": 0.4,
}  # fmt: skip
_BASE = {"nv1": (420, 1.0), "nv2": (360, 1.2), "nvqp": (10300, 62.0), "pop": (200, 1.4)}
_CONSTANTS = {"all-dji": 826, "all-nasdaq": 1180, "all-nyse": 990, "all-russell": 1420,
              "all-sp": 930, "equal-weights": 1064, "saa": 826}  # fmt: skip


def made_up_rows(
    experiments: list[str] | None = None, seeds: int = 5, settings: Settings | None = None
) -> pd.DataFrame:
    """Rows of all experiments that come with forewise, or of some."""
    settings = load_settings() if settings is None else settings
    generator = np.random.default_rng(0)
    rows = []
    for name in experiments or settings.experiments:
        table = settings.experiments[name]
        for method in table.methods:
            own_m = settings.method(name, method).m
            for n_train in table.n_train:
                for seed in range(seeds):
                    luck = generator.normal()
                    for m_train in dict.fromkeys(pair[0] for pair in table.scenarios):
                        own = [pair[1] for pair in table.scenarios if pair[0] == m_train]
                        for m in own_m or own:
                            place = {
                                "experiment": name, "method": method, "seed": seed,
                                "n_train": n_train, "m_train": m_train, "m": m,
                            }  # fmt: skip
                            rows += _figures(place, table, luck, generator)
    return pd.DataFrame(rows)


def _figures(place, table, luck, generator):
    name, method = table.dataset.name, place["method"]
    noise = generator.normal()
    if name.startswith("pop2"):
        regret = (_CONSTANTS.get(method) or 700 + 30 * len(method) + 40 * luck + 9 * noise) / 1e4
        values = {"R": regret, "cost": regret + 0.01}
    else:
        base, size = _BASE[name]
        few = 0.0 if method == "oracle" else 30 / np.sqrt(place["m"])
        few *= 1.8 if method.startswith("d-") else 1.0
        hungry = 20_000 / place["n_train"] if method.startswith("d-") else 8_000 / place["n_train"]
        fair = size * (_FR[method] * (1 + 0.08 * luck + 0.03 * noise) + few + hungry)
        values = {"R": base + fair, "FR": fair, "EFR": 0.98 * fair, "cost": 3 * base + fair}
        if "FR32" in table.metrics:
            values["FR32"] = fair - 150
    if method not in _CONSTANTS | {"direct": 0}:
        covered = 0.0 if method.endswith("ann") else min(0.99, 0.87 + 0.02 * luck)
        values |= {"CRPS": 1.2 + 0.1 * luck, "coverage90": covered}
    common = {
        "seconds": (4.0 + len(method)) * (1 + 0.1 * luck**2),
        "decide_seconds": 0.002 * place["m"] ** 0.5,
        "peak_memory_mib": 410.0 + place["m"] / 10,
        "forewise": "0.1.0", "torch": "2.9.0", "numpy": "2.3.4", "python": "3.12.1",
        "revision": "4f0c2d19a7" * 4, "dirty": False,
        "config_hash": f"{method}-settings", "finished_at": "2025-01-01T00:00:00+00:00",
        "note": None,
    }  # fmt: skip
    return [
        place | {"metric": metric, "value": float(value)} | common
        for metric, value in values.items()
    ]
