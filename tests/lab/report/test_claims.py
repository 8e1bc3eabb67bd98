"""Claims hold, are refuted or stay open as the rows say; what is missing is listed."""

from __future__ import annotations

import pytest

from forewise_lab.report.claims import (
    ABSENT,
    HOLDS,
    HOLDS_IN_PART,
    MIXED,
    OPEN,
    REFUTED,
    Claim,
    Evidence,
    check_claims,
)
from forewise_lab.report.results import failed_fits, gather, missing_fits
from forewise_lab.report.statistics import Summary, summarise


def verdicts(rows):
    return {claim.title: claim.verdict for claim in check_claims(gather(rows))}


FEW_SCENARIOS = "C-BNN is better than D-BNN with few scenarios"
FALLS = "Fair regret falls with the number of scenarios M"
CLOSES = "The gap between D-BNN and C-BNN closes with more training rows"


def test_what_was_built_in_is_found(all_rows):
    found = verdicts(all_rows)
    assert found[FEW_SCENARIOS] == found[FALLS] == found[CLOSES] == HOLDS


def test_the_opposite_is_refuted(all_rows):
    swapped = {"c-bnn": "d-bnn", "d-bnn": "c-bnn"}
    found = verdicts(all_rows.replace({"method": swapped}))
    assert found[FEW_SCENARIOS] == found[CLOSES] == REFUTED


def test_without_rows_nothing_is_said(all_rows):
    found = verdicts(all_rows[all_rows["experiment"] == "nv1"])
    assert found[FEW_SCENARIOS] == found[FALLS] == found[CLOSES] == ABSENT


def test_one_seed_decides_nothing(all_rows):
    found = verdicts(all_rows[all_rows["seed"] == 0])
    assert set(found.values()) == {OPEN}


def test_estimates_are_paired_over_seeds(all_rows):
    claim = next(c for c in check_claims(gather(all_rows)) if c.title == FEW_SCENARIOS)
    rows = all_rows.query("experiment == 'table2' and metric == 'FR' and m_train == 4 and m == 8")
    by_seed = rows.pivot(index="seed", columns="method", values="value") / 10
    expected = summarise((by_seed["c-bnn"] - by_seed["d-bnn"]).to_list())
    assert claim.evidence[0].what == "NVQP (4, 8)"
    found = claim.evidence[0].estimate
    assert (found.mean, found.lower) == pytest.approx((expected.mean, expected.lower))


def test_verdicts_of_several_pieces():
    def claim(*signs):
        ends = {"-": (-2, -1), "0": (-1, 1), "+": (1, 2)}
        pieces = (Evidence("", Summary(5, 0, 1, *ends[sign])) for sign in signs)
        return Claim("", "", (*pieces, Evidence("", None)))

    assert claim("-", "-").verdict == HOLDS
    assert claim("-", "0").verdict == HOLDS_IN_PART
    assert claim("-", "+").verdict == MIXED
    assert claim("0").verdict == OPEN
    assert claim("-", "0").counts == "holds in 1, open in 1, no data in 1"


def test_nothing_is_missing_from_a_complete_table(all_rows):
    assert missing_fits(gather(all_rows)) == ()
    assert failed_fits(gather(all_rows)) == ()


def test_missing_fits_are_listed(all_rows):
    gone = all_rows.eval("experiment == 'nv1' and method == 'c-bnn' and seed in (1, 3)")
    gone |= all_rows.eval("experiment == 'pop-rows' and method == 'd-bnn' and n_train == 250")
    gone |= all_rows.eval("experiment == 'nv2'")
    by_title = {one.experiment: one for one in missing_fits(gather(all_rows[~gone]))}
    assert by_title["NV1"].lines == ("C-BNN: seeds 1, 3",)
    assert by_title["NV1"].planned - by_title["NV1"].found == 2
    assert by_title["POP over training rows"].lines == ("D-BNN, 250 rows, M_train 32: all seeds",)
    assert by_title["NV2"].lines == ("nothing yet",)


def test_failed_fits_say_why(all_rows):
    row = all_rows.query("experiment == 'nv1' and method == 'd-gp' and seed == 4").index[0]
    rows = all_rows.copy()
    rows["note"] = rows["note"].astype(object)
    rows.loc[row, ["metric", "value", "note"]] = ["error", None, "SolveError: no optimum"]
    assert failed_fits(gather(rows)) == ("NV1, D-GP, seed 4: SolveError: no optimum",)


def test_claims_count_the_seeds_that_an_experiment_plans(all_rows):
    """The same plan as in the tables, and in what is missing."""
    rows = all_rows[(all_rows["experiment"] != "pop-vertex") | (all_rows["seed"] < 2)]
    results = gather(rows)
    assert missing_fits(results) == ()
    pieces = [piece for claim in check_claims(results) for piece in claim.evidence]
    assert {piece.aside for piece in pieces} == {""}
    (corner,) = {p.as_text() for p in check_claims(results)[0].evidence if "corner" in p.what}
    assert "two seeds: no interval" in corner
    fewer = check_claims(gather(rows[(rows["experiment"] != "nv1") | (rows["seed"] < 3)]))
    (nv1,) = {piece.aside for piece in fewer[0].evidence if piece.what == "NV1"}
    assert nv1 == "3 of 5 seeds"
