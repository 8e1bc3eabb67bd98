"""The page about real data: from rows, whole or in part, to tables, sentences and pictures."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest

from forewise.evaluation import Difference
from forewise.exceptions import InvalidInputError, StorageError
from forewise_lab.experiments import rolling
from forewise_lab.experiments.cases import cost_or_risk
from forewise_lab.experiments.configuration import Settings, load_settings
from forewise_lab.experiments.runner import run
from forewise_lab.report.cases import gather_cases
from forewise_lab.report.pay import (
    answer,
    cost_table,
    difference,
    in_words,
    level_table,
    lower_bound,
    ranked,
    write_pay_page,
)
from forewise_lab.report.pay_figures import COLOURS, moving_mean
from tests.lab.experiments.made_up_data import TEXT, load_made_up
from tests.lab.experiments.tiny import TEXT as PAPER
from tests.lab.experiments.tiny import write

# The page knows some methods by name: plain SAA, and which network belongs to which.
NAMED = {
    '"saa"': '"real-saa"', "methods.saa]": "methods.real-saa]", '"bnn"': '"real-d-bnn"',
    "methods.bnn]": "methods.real-d-bnn]", "methods.bnn.": "methods.real-d-bnn.",
    '"bnn-each"': '"real-d-bnn-each"', "methods.bnn-each]": "methods.real-d-bnn-each]",
    '"c-bnn"': '"real-c-bnn"', "methods.c-bnn]": "methods.real-c-bnn]",
}  # fmt: skip


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    text = TEXT.replace('"c-bnn"]', '"c-bnn", "foresight"]')
    for old, new in NAMED.items():
        text = text.replace(old, new)
    return load_settings(write(tmp_path_factory.mktemp("settings"), text))


@pytest.fixture(scope="module")
def folder(settings, tmp_path_factory):
    place = tmp_path_factory.mktemp("results")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rolling, "load_case", load_made_up)
        run("shops", settings=settings, output=place, progress=False)
    return place


def test_the_page_has_everything(settings, folder, tmp_path):
    remarks = tmp_path / "remarks.md"
    remarks.write_text("## Why\n\nBecause.\n")
    page = write_pay_page(folder, tmp_path / "page.md", settings, remarks=remarks).read_text()
    wanted = ["At a glance", "Shops", "against Plain", "cost at service level", "What a percent"]
    for part in [*wanted, "Does combined learning win?", "One model for all series", "Because."]:
        assert part in page
    assert "Not finished" not in page
    assert page.startswith(f"# Does it pay?\n\n{answer(gather_cases(folder, settings))}")
    for picture in ("pay.png", "pay_shops.png"):
        assert (tmp_path / picture).stat().st_size > 10_000
        assert f"({picture})" in page


def test_figures_are_those_of_the_costs(settings, folder):
    (result,) = gather_cases(folder, settings)
    plain = result.method("real-saa")
    assert plain is not None
    costs = plain.costs[["0.25", "0.9"]].to_numpy().mean(axis=1)
    assert plain.scored(None) == pytest.approx(costs)
    assert f"{costs.mean():.4g}" in cost_table(result)
    best = ranked(result)[0]
    gap = difference(result, best, plain)
    assert gap.estimate == pytest.approx(best.scored(None).mean() / costs.mean() - 1)


def test_plain_saa_is_compared_with_once(settings, folder):
    """Also where it is the best of the baselines."""
    (result,) = gather_cases(folder, settings)
    plain = [method for method in result.methods if method.name == "real-saa"]
    head = cost_table(dataclasses.replace(result, methods=plain)).splitlines()[0]
    assert head.count("against") == 1


def test_who_knows_the_future_is_reported_apart_from_methods(settings, folder):
    (result,) = gather_cases(folder, settings)
    assert result.foresight is not None
    assert "foresight" not in [method.name for method in ranked(result)]
    best, plain = (
        ranked(result)[0].scored(None).mean(),
        result.method("real-saa").scored(None).mean(),
    )
    reported = lower_bound(result)
    assert "would still be 0" in reported  # a newsvendor's cost
    assert f"{100 * (1 - best / plain):.0f} % of the gap between Plain" in reported
    assert lower_bound(dataclasses.replace(result, foresight=None)) == ""


def test_a_page_has_no_rows_of_a_quick_run(settings, tmp_path, monkeypatch):
    monkeypatch.setattr(rolling, "load_case", load_made_up)
    # Cases that are made up have no quick version.
    monkeypatch.setattr(Settings, "quick", lambda self: self)
    run("shops", ["real-saa"], settings=settings, output=tmp_path, quick=True, progress=False)
    with pytest.raises(InvalidInputError, match="quick"):
        write_pay_page(tmp_path, tmp_path / "page.md", settings)


def test_equal_costs_are_all_bold(settings, folder):
    (result,) = gather_cases(folder, settings)
    best = ranked(result)[0]
    twin = dataclasses.replace(best, name="twin", title="Twin")
    both = dataclasses.replace(result, methods=(*result.methods, twin))
    for table in (cost_table(both), level_table(both)):
        lines = {line.split("|")[1].strip(): line for line in table.splitlines()}
        assert lines["Twin"].count("**") == lines[best.title].count("**") >= 2


def test_a_page_needs_its_folder_and_its_remarks(settings, folder, tmp_path):
    with pytest.raises(StorageError, match="page"):
        write_pay_page(folder, tmp_path / "nowhere" / "page.md", settings)
    with pytest.raises(StorageError, match="remarks"):
        write_pay_page(folder, tmp_path / "page.md", settings, remarks=tmp_path / "none.md")


@pytest.mark.parametrize(
    ("gap", "reported"),
    [
        ((-0.0004, -0.007, 0.006), "the same [−0.7 %, +0.6 %]"),
        ((-0.091, -0.107, -0.075), "9.1 % less [−10.7 %, −7.5 %]"),
        ((0.009, -0.0002, 0.02), "0.9 % more [0.0 %, +2.0 %], not significant"),
    ],
)
def test_differences_are_reported_as_people_read_them(gap, reported):
    assert in_words(Difference(*gap, level=0.95)) == reported


def test_the_tail_is_that_of_each_weekday():
    random = np.random.default_rng(0)
    days = np.tile(np.datetime64("2020-01-06") + 7 * np.arange(200), 2)  # Mondays of two shops
    series, cost = np.repeat([0, 1], 200), random.gamma(2.0, 1.0, 400)
    found = cost_or_risk(cost, days, series, 0.9).mean()
    tails = [np.sort(cost[series == s])[-20:].mean() for s in (0, 1)]
    assert found == pytest.approx(np.mean(tails), rel=0.02)
    assert cost_or_risk(cost, days, series, None) is cost


def test_what_is_missing_is_reported(settings, folder, tmp_path):
    part = tmp_path / "part"
    part.mkdir()
    (part / "costs").symlink_to(folder / "costs")
    lines = (folder / "rows.jsonl").read_text().splitlines(keepends=True)
    kept = [line for line in lines if '"real-c-bnn"' not in line or '"fold": 1' not in line]
    (part / "rows.jsonl").write_text("".join(kept))
    page = write_pay_page(part, tmp_path / "page.md", settings).read_text()
    assert "Not finished, and not in the table:** c-bnn: 1 of 2 windows" in page.replace(
        "real-c-bnn", "c-bnn"
    )


def test_a_folder_of_the_paper_is_refused(settings, tmp_path):
    paper = load_settings(write(tmp_path, PAPER))
    run("small", ["saa"], 1, settings=paper, output=tmp_path / "rows", progress=False)
    with pytest.raises(InvalidInputError, match="no rows of real cases"):
        write_pay_page(tmp_path / "rows", tmp_path / "page.md", settings)


def test_themoving_mean_counts_decisions_and_not_weeks():
    """One dear Sunday, then eight cheap weeks from Monday on: the Sunday is one day of 22."""
    days = pd.date_range("2018-07-01", periods=1 + 8 * 7)
    costs = pd.Series(np.r_[100.0, np.ones(8 * 7)], index=days)
    found = moving_mean(costs)
    assert found.index[0] == pd.Timestamp("2018-07-22")
    assert found.iloc[0] == pytest.approx((100 + 21) / 22)
    assert np.allclose(found.iloc[1:], 1)


def test_a_short_or_broken_record_is_drawn_as_far_as_it_goes():
    days = pd.DatetimeIndex(["2018-07-02", "2018-07-03", "2018-07-16"])
    assert moving_mean(pd.Series([1.0, 2.0, 6.0], index=days)).tolist() == [3.0]


def test_the_answer_counts_what_the_tables_say(settings, folder):
    (result,) = gather_cases(folder, settings)
    learner, saa = ranked(result, learners=True)[0], result.method("real-saa")
    saved = -100 * difference(result, learner, saa).estimate
    assert f"{saved:.1f} % less** in 1 cases".replace("-", "−") in answer([result])
    assert "nothing to compare" in answer([])
    alone = dataclasses.replace(result, methods=(learner,))
    assert "nothing to compare" in answer([alone])


def test_a_method_has_one_colour():
    assert len(set(COLOURS.values())) == len(COLOURS)
    assert set(COLOURS) <= set(load_settings().methods)
