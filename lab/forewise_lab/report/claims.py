"""The paper's claims, each with a verdict and the intervals it rests on.

All estimates are paired over seeds: both methods of a seed have the same data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from forewise_lab.report import paper
from forewise_lab.report.rendering import number
from forewise_lab.report.results import At, Results
from forewise_lab.report.statistics import Summary, paired_difference, slope_per_doubling

HOLDS, REFUTED, OPEN, ABSENT = "holds", "refuted", "open", "no data"
HOLDS_IN_PART, REFUTED_IN_PART, MIXED = "holds in part", "refuted in part", "mixed"
COMBINED, DECOUPLED, POINT = "c-bnn", "d-bnn", "d-ann"
# What the lines of a claim call the experiments whose titles say more than is needed there.
_SHORT = {paper.TABLE2: "NVQP", paper.OVER_SCENARIOS: "POP", paper.OVER_ROWS: "POP, 10 assets"}
#: "Few scenarios": at most so many.
FEW = 16

BySeed = Mapping[int, float]


@dataclass(frozen=True)
class Evidence:
    """One estimate: below zero it supports a claim, above zero it contradicts it.

    `what` says where it was measured, `metric` which one where a claim has several; `n_planned`
    are the seeds that the experiment plans. `estimate` is None where the rows are missing.
    """

    what: str
    estimate: Summary | None
    metric: str = ""
    n_planned: int = 0

    @property
    def verdict(self) -> str:
        """`HOLDS` or `REFUTED` where the interval leaves out zero, otherwise `OPEN`."""
        if self.estimate is None:
            return ABSENT
        if self.estimate.upper < 0:
            return HOLDS
        return REFUTED if self.estimate.lower > 0 else OPEN

    def as_text(self) -> str:
        if self.estimate is None:
            return "–"
        decimals = 0 if abs(self.estimate.mean) >= 100 else 1
        text = number(self.estimate.mean, decimals)
        if not self.estimate.has_interval:
            return f"{text} ({self.estimate.excuse})"
        ends = (number(end, decimals) for end in (self.estimate.lower, self.estimate.upper))
        return f"{text} [{', '.join(ends)}]"

    @property
    def aside(self) -> str:
        """How many of the planned seeds it rests on; empty where on all of them."""
        if self.estimate is None or self.estimate.n >= self.n_planned:
            return ""
        return f"{self.estimate.n} of {self.n_planned} seeds"


@dataclass(frozen=True)
class Claim:
    """What the paper says, how it was checked, and the evidence."""

    title: str
    method: str
    evidence: tuple[Evidence, ...]

    @property
    def verdict(self) -> str:
        """Of all the evidence that there is; in part where some of it is open."""
        verdicts = {piece.verdict for piece in self.evidence} - {ABSENT}
        if not verdicts:
            return ABSENT
        if len(verdicts) == 1:
            return next(iter(verdicts))
        if {HOLDS, REFUTED} <= verdicts:
            return MIXED
        return HOLDS_IN_PART if HOLDS in verdicts else REFUTED_IN_PART

    @property
    def counts(self) -> str:
        found = [piece.verdict for piece in self.evidence]
        kinds = [kind for kind in (HOLDS, OPEN, REFUTED, ABSENT) if kind in found]
        return ", ".join(f"{kind} in {found.count(kind)}" for kind in kinds)


def check_claims(results: Results) -> tuple[Claim, ...]:
    """All claims, whether there are rows for them or not."""
    checks = {
        "uncertainty": _in_table1(results, DECOUPLED, POINT),
        "at_least": _in_table1(results, COMBINED, DECOUPLED),
        "few_scenarios": _with_few_scenarios(results),
        "falling": _falling(results),
        "few_rows": _with_few_rows(results),
        "closing": _closing_gap(results),
    }
    return tuple(Claim(*paper.CLAIMS[name], evidence) for name, evidence in checks.items())


def _evidence(
    results: Results, experiment: str, what: str, estimate: Summary | None, metric: str = ""
) -> Evidence:
    return Evidence(what, estimate, metric, results.settings.experiments[experiment].n_seeds)


def _in_table1(results: Results, first: str, second: str) -> tuple[Evidence, ...]:
    pieces = []
    for name in paper.TABLE1:
        metric = "R" if name.startswith("pop2") else "FR"
        values = (
            results.values(name, method, metric, results.headline(name, method, metric))
            for method in (first, second)
        )
        title = results.settings.experiments[name].title
        pieces.append(_evidence(results, name, title, paired_difference(*values), metric))
    return tuple(pieces)


def _by_place(results: Results, name: str) -> dict[At, tuple[BySeed, BySeed]]:
    """Fair regrets of the combined and the decoupled network, where both have some."""
    combined, decoupled = (
        {at: results.values(name, method, "FR", at) for at in results.places(name, method, "FR")}
        for method in (COMBINED, DECOUPLED)
    )
    return {at: (combined[at], decoupled[at]) for at in combined if at in decoupled}


def _with_few_scenarios(results: Results) -> tuple[Evidence, ...]:
    pieces = []
    for name in (paper.TABLE2, paper.OVER_SCENARIOS):
        few = {at: both for at, both in _by_place(results, name).items() if at.m <= FEW}
        for at, both in few.items():
            where = f"{_SHORT[name]} ({at.m_train}, {at.m})"
            pieces.append(_evidence(results, name, where, paired_difference(*both)))
        if not few:
            pieces.append(_evidence(results, name, _SHORT[name], None))
    return tuple(pieces)


def _falling(results: Results) -> tuple[Evidence, ...]:
    pieces = []
    for name, m_train in ((paper.TABLE2, 16), (paper.OVER_SCENARIOS, 32)):
        for method in (DECOUPLED, COMBINED):
            places = [at for at in results.places(name, method, "FR") if at.m_train == m_train]
            by_m = {at.m: results.values(name, method, "FR", at) for at in places}
            what = f"{_SHORT[name]}, {results.method_title(method)}"
            pieces.append(_evidence(results, name, what, slope_per_doubling(by_m)))
    return tuple(pieces)


def _with_few_rows(results: Results) -> tuple[Evidence, ...]:
    name, places = paper.OVER_ROWS, _by_place(results, paper.OVER_ROWS)
    if not places:
        return (_evidence(results, name, _SHORT[name], None),)
    fewest = min(places, key=lambda at: at.n_train)
    where = f"{_SHORT[name]}, {fewest.n_train} rows"
    return (_evidence(results, name, where, paired_difference(*places[fewest])),)


def _closing_gap(results: Results) -> tuple[Evidence, ...]:
    name = paper.OVER_ROWS
    gaps = {
        at.n_train: {s: decoupled[s] - combined[s] for s in combined.keys() & decoupled.keys()}
        for at, (combined, decoupled) in _by_place(results, name).items()
    }
    return (_evidence(results, name, _SHORT[name], slope_per_doubling(gaps)),)
