"""Measuring: turns, notes, accuracy, growth and bars."""

import math
from dataclasses import dataclass, field

import numpy as np
import pytest

from forewise_lab.bench.accuracy import relative_errors, violation
from forewise_lab.bench.instances import nvqp, recourse
from forewise_lab.bench.measuring import measure
from forewise_lab.bench.peers.base import Answer, Gradient, PeerFailedError, Prepared
from forewise_lab.bench.peers.solvers import ClarabelLoop
from forewise_lab.bench.results import Measurement, Measurements, Quantity, between, fitted_exponent
from forewise_lab.bench.solver import ASSESSMENT
from forewise_lab.bench.solver_report import FOREWISE, LARGEST_EXPONENT, bars_of


@dataclass(frozen=True, eq=False)
class TimedAnswer(Answer):
    """An answer that says how long it took."""

    seconds: float = 1.0


@dataclass(frozen=True, eq=False)
class TimedGradient(Gradient):
    """As an answer."""

    seconds: float = 1.0


@dataclass(frozen=True)
class FakePeer:
    """A peer that answers at once with what it was given, and keeps a diary."""

    name: str
    answer: Answer
    diary: list = field(default_factory=list)
    seconds: float = 1.0
    refuses: str | None = None
    fails: bool = False

    def missing(self):
        return None

    def supports(self, program):
        return self.refuses

    def prepare(self, instance):
        if self.fails:
            raise PeerFailedError("too hard")

        def forward():
            self.diary.append(self.name)
            a = self.answer
            return TimedAnswer(a.decision, a.recourse, a.n_unsolved, self.seconds)

        def forward_backward():
            self.diary.append(self.name + "'")
            return TimedGradient({}, self.seconds)

        return Prepared(forward, forward_backward)


@pytest.fixture(scope="module")
def instance():
    return nvqp(n_scenarios=3, n_contexts=2)


@pytest.fixture(scope="module")
def best(instance):
    return ClarabelLoop().prepare(instance).forward()


def silent(_):
    """Announce nothing."""


def test_peers_take_turns_after_a_warm_up(instance, best):
    diary = []
    peers = [FakePeer("a", best, diary), FakePeer("b", best, diary)]
    rows = measure(instance, peers, 2, silent, ASSESSMENT)
    assert diary == ["a", "a'", "b", "b'"] * 3
    found = {(row.peer, row.quantity): row for row in rows}
    assert set(found) == {
        (peer, q) for peer in "ab" for q in (Quantity.BUILD, Quantity.FORWARD, Quantity.BOTH)
    }
    assert found["a", Quantity.FORWARD].median == 1.0
    assert found["a", Quantity.FORWARD].repeats == 2


def test_long_solves_are_not_repeated_and_short_ones_more_often(instance, best):
    slow, fast = FakePeer("slow", best, seconds=40.0), FakePeer("fast", best, seconds=0.004)
    rows = measure(instance, [slow, fast], 2, silent, ASSESSMENT)
    assert len(slow.diary) == 2
    assert len(fast.diary) == 2 * (2 + 2 * 5)  # a short call is warmed up twice
    found = {(row.peer, row.quantity): row for row in rows}
    assert found["slow", Quantity.FORWARD].median == 40.0
    assert "one run" in found["slow", Quantity.FORWARD].note
    assert found["fast", Quantity.FORWARD].median == pytest.approx(0.004)


def test_who_cannot_solve_it_is_noted_and_the_others_are_measured(instance, best):
    peers = [
        FakePeer("refusing", best, refuses="linear only"),
        FakePeer("failing", best, fails=True),
        FakePeer("able", best),
    ]
    rows = measure(instance, peers, 1, silent, ASSESSMENT)
    notes = {row.peer: row.note for row in rows if row.quantity == Quantity.SKIPPED}
    assert notes == {"refusing": "linear only", "failing": "failed: too hard"}
    assert "able" in {row.peer for row in rows if row.quantity == Quantity.FORWARD}


def test_poor_answers_are_marked(instance, best):
    poor = Answer(best.decision * 0.9, n_unsolved=1)
    rows = measure(
        instance, [FakePeer("good", best), FakePeer("poor", poor)], 1, silent, ASSESSMENT
    )
    found = {row.peer: row for row in rows if row.quantity == Quantity.FORWARD}
    assert found["good"].relative_error < 1e-6
    assert found["good"].note == ""
    assert found["poor"].relative_error > 1e-6
    assert "1 contexts not solved" in found["poor"].note
    assert "misses the accuracy" in found["poor"].note


def test_a_cheap_answer_that_breaks_a_constraint_is_not_the_best(instance, best):
    free = Answer(best.decision * 2)
    assert violation(instance, free).max() > 1e-3
    errors = relative_errors(instance, {"best": best, "free": free})
    assert errors["best"] == 0.0
    assert errors["free"] > 1e-3


def test_recourse_is_judged_too():
    instance = recourse(n_scenarios=2, n_contexts=2)
    best = ClarabelLoop().prepare(instance).forward()
    broken = Answer(best.decision, best.recourse + 5.0)
    assert violation(instance, best).max() < 1e-6
    assert violation(instance, broken).max() > 0.1
    with pytest.raises(ValueError, match="recourse"):
        violation(instance, Answer(best.decision))


def test_one_answer_alone_has_no_error(instance, best):
    assert math.isnan(relative_errors(instance, {"only": best})["only"])


@pytest.mark.parametrize("power", [0.5, 1.0, 3.0])
def test_fitted_exponent_of_known_growth(power):
    values = {size: 7.0 * size**power for size in (256, 1024, 4096)}
    assert fitted_exponent(values) == pytest.approx(power)


def test_exponent_needs_two_sizes():
    assert math.isnan(fitted_exponent({256: 1.0}))
    assert math.isnan(fitted_exponent({256: 0.0, 1024: 1.0}))
    assert between({1: 2.0, 3: 4.0}, [3, 5]) == {3: 4.0}


def row(family, size, peer, quantity, value, error=None):
    unit = "MiB" if quantity in (Quantity.PEAK, Quantity.ABOVE_BASELINE) else "s"
    return Measurement(family, 32, size, peer, quantity, unit, value, value, 1, error)


def test_bars_compare_with_what_was_measured():
    rows = [
        row("nvqp", 64, FOREWISE, Quantity.BOTH, 0.01, error=1e-9),
        row("nvqp", 64, "Clarabel loop", Quantity.FORWARD, 0.25),
        row("nvqp", 64, "Moreau", Quantity.BOTH, 0.15),
        row("nvqp", 4096, FOREWISE, Quantity.PEAK, 1500.0),
        *(row("nvqp", size, FOREWISE, Quantity.BOTH, size**1.2) for size in (256, 1024, 4096)),
        *(
            row("nvqp", size, FOREWISE, Quantity.ABOVE_BASELINE, float(size))
            for size in (256, 4096)
        ),
    ]
    bars = {bar.what: bar for bar in bars_of(Measurements(rows))}
    assert bars["nvqp, M = 64: faster than Clarabel loop, forward"].met is True
    assert bars["nvqp, M = 64: faster than Clarabel loop, forward"].measured == "25.0×"
    assert bars["nvqp, M = 64: faster than Moreau, forward + backward"].met is False
    assert bars["nvqp, M = 32: faster than qpth, forward + backward"].met is None
    assert bars["nvqp, M = 256 to 4096: exponent of time"].met is False
    assert bars["nvqp, M = 256 to 4096: exponent of peak memory"].met is True
    assert bars["nvqp, M = 4096: peak memory of the process"].met is True
    assert bars["forewise's largest relative error"].met is True


def test_bars_without_any_measurement_are_open():
    assert {bar.met for bar in bars_of(Measurements())} == {None}
    assert LARGEST_EXPONENT == 1.05


def test_series_is_in_the_order_of_sizes():
    results = Measurements(
        [row("nvqp", size, "a", Quantity.FORWARD, float(size)) for size in (64, 8, 16)]
    )
    results.rows.extend([Measurement("nvqp", 32, 32, "a", Quantity.SKIPPED, note="why")])
    assert list(results.series("nvqp", "a", Quantity.FORWARD)) == [8, 16, 64]
    np.testing.assert_array_equal(
        list(results.series("nvqp", "a", Quantity.FORWARD).values()), [8, 16, 64]
    )
