"""The paper's numbers beside ours, and what to know before comparing them.

The numbers are in the settings files of `forewise_lab.experiments`, in the units of the paper's
tables; this module matches them with ours.
"""

from __future__ import annotations

from forewise_lab.experiments import Settings
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

COMPARING = (
    "The paper gives means and standard deviations of 5 runs. ▼ and ▲ mark means that are "
    "significantly below (better) and above (worse) the paper's: Welch's t-test, two-sided, 5 %, "
    "not corrected for the number of tests. ≈: no significant difference. No mark: not tested, "
    "because the paper gives no standard deviation, we have fewer than three seeds, or our sizes "
    "differ. We take means over test rows; the authors took means of batch means."
)
CAVEATS = {
    ("nvqp", "FR"): (
        "NVQP, FR: the paper's oracle has 32 draws, so that its FR is about 15 table units too "
        "small against a converged one. FR32 is like for like."
    ),
    ("pop", "FR"): (
        "POP: most optima are not unique, and the paper broke ties differently for decoupled and "
        "combined methods. Here all methods get the centre of the optimal face, or all a corner."
    ),
    ("pop-ridge", "FR"): (
        "With a quadratic term: the paper's combined methods learn and decide so, its decoupled "
        "ones decide without the term. The term is larger than the risk it is added to."
    ),
    ("pop2", "R"): (
        "POP2: over test rows “everything in DJI” has R = 826 and equal weights 1064; in the "
        "paper's way of averaging 777 and 1021. Our means here are over rows, too: they are about "
        "5 % above what the paper would have shown for the same decisions."
    ),
    ("pop2-strict", "R"): (
        "POP2, strict: features of the day before. The paper has no such protocol, so there is "
        "nothing to compare with but the constant decisions."
    ),
    ("table2", "FR"): (
        "Table 2: a perfect model with M = 16 would itself show FR 34 to 43. Much of the fall "
        "with M is the error of few draws."
    ),
}


def scale_note(scale: float) -> str:
    """How table units come from raw values; nothing where they are the same."""
    if scale == 1:
        return ""
    return f"raw × {scale:,.0f}" if scale > 1 else f"raw ÷ {1 / scale:,.0f}"


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
        if (figure.method, figure.metric) != (method, wanted):
            continue
        if figure.m is None:
            return PaperValue(figure.mean, figure.std)
        if (figure.m_train, figure.m) == pair:
            return PaperValue(figure.mean, figure.std)
    return None
