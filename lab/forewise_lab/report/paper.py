"""The paper's numbers beside ours, and what to know before comparing them."""

from __future__ import annotations

import tomllib
from pathlib import Path

from forewise_lab.experiments.configuration import Settings
from forewise_lab.report.statistics import PaperValue

#: The paper's methods, in its order.
METHODS = ("d-ann", "d-gp", "d-bnn", "c-ann", "c-bnn")
#: Experiments of Table 1 (POP with ties broken in three ways, POP2 in two, and in two protocols).
TABLE1 = (
    "nv1", "nv2", "nvqp", "pop", "pop2", "pop2-strict", "pop-ridge", "pop-vertex", "pop2-ridge",
)  # fmt: skip
TABLE2 = "table2"
OVER_SCENARIOS = "pop-scenarios"
OVER_ROWS = "pop-rows"

# The paper's FR is against an oracle of 32 draws.
_COUNTERPART = {"FR32": "FR"}

_NOTES = tomllib.loads((Path(__file__).parent / "templates/notes.toml").read_text("utf-8"))
COMPARING: str = _NOTES["comparing"]
#: What the paper says, and how it was checked, by the name of the check.
CLAIMS: dict[str, tuple[str, str]] = {
    name: (text["title"], text["method"]) for name, text in _NOTES["claims"].items()
}
#: By experiment and metric.
CAVEATS = {tuple(key.split()): text for key, text in _NOTES["caveats"].items()}


def paper_value(
    settings: Settings, experiment: str, method: str, metric: str, pair: tuple[int, int] | None
) -> PaperValue | None:
    """The paper's number for a method's metric, or None.

    `pair` is (M_train, M), where the experiment has several.
    """
    table = settings.experiments.get(experiment)
    if table is None:
        return None
    wanted = _COUNTERPART.get(metric, metric)
    for figure in table.paper:
        anywhere = figure.m is None or (figure.m_train, figure.m) == pair
        if (figure.method, figure.metric) == (method, wanted) and anywhere:
            return PaperValue(figure.mean, figure.std)
    return None
