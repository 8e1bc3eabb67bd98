"""The quick version of every case on the real data, and what one pooled fit costs. Slow."""

from __future__ import annotations

import time

import numpy as np
import pytest

import forewise as fw
from forewise.datasets import bakery, locate
from forewise.exceptions import InvalidInputError, MissingDataError
from forewise.learners.out_of_fold import one_thread
from forewise_lab.datasets.real import bakery_newsvendor
from forewise_lab.experiments.cases import decide_rows, fit_trial, load_case, trials_of
from forewise_lab.experiments.configuration import load_settings
from forewise_lab.experiments.rolling import tuning_window
from forewise_lab.experiments.rows import read_rows
from forewise_lab.experiments.runner import run
from forewise_lab.report.pay import write_pay_page

MINUTES = 5
MOST_TIMES_AS_LONG = 10
SHIPPED = load_settings()

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def _data():
    try:
        locate("bakery")
        locate("vic_electricity")
    except MissingDataError as error:
        pytest.skip(f"the real data are not here: {error}")


@pytest.mark.parametrize("case", list(SHIPPED.cases))
def test_the_quick_version_of_a_case(case, tmp_path):
    """Every method tunes and decides; processor time, because others may share the machine."""
    started = time.process_time()
    summary = run(case, output=tmp_path, quick=True, progress=False)
    assert time.process_time() - started < MINUTES * 60
    assert summary.failed == {}
    rows = read_rows(tmp_path)
    decided = rows[(rows["metric"] == "cost") & (rows["fold"] == 0)]
    assert set(decided["method"]) == set(SHIPPED.cases[case].methods)
    assert np.isfinite(decided["value"]).all()
    assert (decided["value"] > 0).all()


def test_a_page_of_quick_rows(tmp_path):
    run("bakery-b-few", ["real-d-bnn"], output=tmp_path, quick=True, progress=False)
    with pytest.raises(InvalidInputError, match="quick"):
        write_pay_page(tmp_path, tmp_path / "page.md")


def test_one_pooled_fit_takes_no_longer_than_ten_fits_of_a_series(capsys):
    """And decides all series and days of a quarter in one call."""
    case = SHIPPED.cases["bakery-a"]
    window = tuning_window(case)
    rows = load_case(case.source, None, window.start)
    past = np.flatnonzero(rows.days < np.datetime64(window.start))
    problems = {"0.75": bakery_newsvendor(0.75)}
    past = past[rows.days[past] >= np.datetime64("2016-04-02")]  # two years

    def fitted(name, places):
        trial = trials_of(SHIPPED, "bakery-a", name)[0]
        pooled = trial.rolling.model_copy(update={"each": "all"})
        trial = trial.__class__(0, trial.method, pooled, {})
        with one_thread():  # as in a run
            started = time.process_time()
            rules = fit_trial(trial, rows, places, places, problems, case, 0)["0.75"]
            return time.process_time() - started, trial, rules

    # The first fit of a process is longer than any other: it does not count.
    series = [past[rows.series[past] == one] for one in np.unique(rows.series[past])[:8]]
    one = np.mean([fitted("real-d-bnn-each", places)[0] for places in series][1:])
    pooled, trial, rules = fitted("real-d-bnn", past)
    with capsys.disabled():
        print(f"\none fit of all series {pooled:.2f} s, of one {one:.2f} s")
    assert pooled <= MOST_TIMES_AS_LONG * one
    start, end = np.datetime64(window.start), np.datetime64(window.end)
    ahead = np.flatnonzero((rows.days >= start) & (rows.days < end))
    assert len(decide_rows(rules, trial, rows, ahead, case, 0)) == len(ahead)
    assert len(np.unique(rows.series[ahead])) == 105


def test_the_bakery_pays():
    """A Bayesian network of four stores costs half of what plain SAA does; a month of 2018."""
    table = bakery()
    table = table[table["store"].isin([2, 17, 21, 26])].reset_index(drop=True)
    contexts = fw.datasets.bakery_contexts(table)
    kept = ~table["closed"] & (contexts["demand_mean_28_missing"] == 0)
    kept &= table["date"] < "2018-10-01"
    contexts, table = contexts[kept], table[kept]
    unit = contexts["demand_mean_28"].clip(lower=1.0)
    training = fw.Training(epochs=40, batch_size=256)
    network = fw.predictors.MeanFieldPredictor(
        (64, 64), 4, 0.1, prior_std=0.3, initial_std=0.01, training=training, random_state=0
    )
    series = [name for name in contexts.columns if name.startswith(("store_", "product_"))]
    dates = table["date"]
    past, ahead = dates < "2018-09-01", dates >= "2018-09-01"
    problem = bakery_newsvendor(0.75)
    plain = fw.DecoupledLearner(problem, fw.GroupedPredictor(series))
    plain.fit(contexts[past], table["demand"][past])
    learned = fw.DecoupledLearner(problem, network)
    relative = (table["demand"] / unit)[past]
    learned.fit(contexts[past], relative)
    outcome = table["demand"][ahead].to_numpy()[:, None]
    costs = []
    for learner, size in ((plain, 1.0), (learned, unit[ahead].to_numpy()[:, None])):
        decided = np.asarray(learner.decide(contexts[ahead], 256)) * size
        costs.append(problem.cost(decided, outcome).mean().item())
    assert costs[1] < 0.6 * costs[0]
