"""Table 1 and Table 2: the right figures beside the paper's."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from forewise.exceptions import InvalidInputError
from forewise_lab.experiments.configuration import load_settings
from forewise_lab.report.paper import paper_value
from forewise_lab.report.rendering import as_markdown
from forewise_lab.report.results import gather
from forewise_lab.report.statistics import PaperValue
from forewise_lab.report.tables import table1, table2

# Typed once more from the paper: R and FR (std) of D-ANN, D-GP, D-BNN, C-ANN, C-BNN.
PAPER = {
    "nv1": [(958, 531, 70), (617, 191, 16), (460, 33, 7), (461, 33, 12), (457, 30, 3)],
    "nv2": [(950, 589, 67), (583, 222, 20), (421, 60, 8), (410, 49, 22), (400, 39, 11)],
    "nvqp": [(1456, 419, 12), (1337, 300, 15), (1252, 214, 11), (1263, 226, 30), (1242, 204, 7)],
    "pop": [(2137, 1938, 79), (274, 75, 13), (246, 47, 15), (2138, 1939, 84), (245, 46, 36)],
}
PAPER_POP2 = [(1228, 283), (852, 31), (944, 83), (1022, 61), (721, 95)]
PAIRS = [(4, 8), (8, 8), (8, 16), (16, 16), (16, 32), (16, 64)]
PAPER_TABLE2 = {"c-bnn": [259, 234, 221, 217, 209, 204], "d-bnn": [354, 331, 262, 259, 231, 214]}
METHODS = ["d-ann", "d-gp", "d-bnn", "c-ann", "c-bnn"]


def cell_of(table, line, group, label):
    (cell,) = (
        cell
        for cell in table.cells
        if (cell.line, cell.label) == (line, label) and cell.group.startswith(group)
    )
    return cell


def best_of(table):
    return [cell.line for cell in table.cells if cell.best]


def test_the_papers_figures_are_the_papers():
    settings = load_settings()
    for name, lines in PAPER.items():
        for method, (regret, fair, std) in zip(METHODS, lines, strict=True):
            assert paper_value(settings, name, method, "R", None) == PaperValue(regret)
            assert paper_value(settings, name, method, "FR", None) == PaperValue(fair, std)
    for method, figures in zip(METHODS, PAPER_POP2, strict=True):
        assert paper_value(settings, "pop2", method, "R", None) == PaperValue(*figures)
        assert paper_value(settings, "pop2-strict", method, "R", None) is None
    for method, means in PAPER_TABLE2.items():
        for pair, mean in zip(PAIRS, means, strict=True):
            assert paper_value(settings, "table2", method, "FR", pair).mean == mean


def test_the_last_pair_of_table2_has_the_std_of_table1():
    settings = load_settings()
    assert paper_value(settings, "table2", "c-bnn", "FR", (16, 64)) == PaperValue(204, 7)
    assert paper_value(settings, "table2", "c-bnn", "FR", (16, 32)) == PaperValue(209)


def test_scales():
    settings = load_settings()
    scales = {name: settings.experiments[name].scale for name in ("nv1", "nvqp", "pop", "pop2")}
    assert scales == {"nv1": 1, "nvqp": 0.1, "pop": 1, "pop2": 1e4}


@pytest.mark.parametrize(
    ("experiment", "group", "metric", "scale", "m"),
    [
        ("nv1", "NV1", "FR", 1, 4096),
        ("nvqp", "NVQP", "FR", 0.1, 64),
        ("pop2", "POP2 ", "R", 1e4, 64),
    ],
)
def test_cells_agree_with_scipy(all_rows, experiment, group, metric, scale, m):
    rows = all_rows.query("experiment == @experiment and method == 'd-bnn' and m == @m")
    values = rows.loc[rows["metric"] == metric, "value"].to_numpy() * scale
    assert len(values) == 5
    cell = cell_of(table1(all_rows), "D-BNN", group, metric)
    expected = stats.t.interval(0.95, 4, values.mean(), stats.sem(values))
    assert cell.ours.mean == pytest.approx(values.mean())
    assert cell.ours.std == pytest.approx(values.std(ddof=1))
    assert (cell.ours.lower, cell.ours.upper) == pytest.approx(expected)
    test = stats.ttest_ind_from_stats(
        values.mean(), values.std(ddof=1), 5, cell.paper.mean, cell.paper.std, 5, equal_var=False
    )
    assert cell.comparison.p_value == pytest.approx(test.pvalue)
    assert cell.missing == ()


def test_fr32_stands_beside_the_papers_fr(all_rows):
    assert cell_of(table1(all_rows), "C-BNN", "NVQP", "FR32").paper == PaperValue(204, 7)


def test_methods_with_an_m_of_their_own_say_so(all_rows):
    table = table1(all_rows)
    assert cell_of(table, "kNN-SAA", "NV1", "R").note == "M 1000"
    assert cell_of(table, "D-BNN", "NV1", "R").note == ""


def test_missing_seeds_are_counted(all_rows):
    gone = all_rows.eval("experiment == 'nv1' and method == 'c-bnn' and seed in (1, 3)")
    gone |= all_rows.eval("experiment == 'nv1' and method == 'c-ann'")
    table = table1(all_rows[~gone])
    cell = cell_of(table, "C-BNN", "NV1", "FR")
    assert (cell.ours.n, cell.missing, cell.aside) == (3, (1, 3), "2 missing")
    cell = cell_of(table, "C-ANN", "NV1", "FR")
    assert (cell.ours, cell.missing) == (None, (0, 1, 2, 3, 4))
    assert cell.paper == PaperValue(33, 12)
    # What nobody planned is not missing.
    cell = cell_of(table, "All in DJI", "NV1", "FR")
    assert (cell.planned, cell.missing) == (False, ())


def test_one_seed(all_rows):
    table = table1(all_rows[all_rows["seed"] == 0])
    cell = cell_of(table, "D-BNN", "NV1", "FR")
    assert cell.ours.n == 1
    assert math.isnan(cell.ours.lower)
    assert cell.comparison is None


def test_best_is_the_least_of_the_complete(all_rows):
    def line_of_best(rows):
        table = table1(rows.query("experiment == 'nv1' and metric == 'FR'"))
        return best_of(table)

    # The truth itself does not compete.
    assert line_of_best(all_rows) == ["C-BNN, tuned"]
    lucky = all_rows.eval("method == 'c-bnn-tuned' and seed > 0")
    assert line_of_best(all_rows[~lucky]) != ["C-BNN, tuned"]


def test_table2_has_the_papers_pairs(all_rows):
    table = table2(all_rows)
    assert table.lines == [f"({a}, {b})" for a, b in PAIRS]
    cell = cell_of(table, "(16, 64)", "FR ", "D-BNN")
    assert cell.paper == PaperValue(214, 11)
    assert cell.comparison is not None
    cell = cell_of(table, "(8, 16)", "FR ", "D-BNN")
    assert cell.paper == PaperValue(262)
    assert cell.comparison is None
    assert sorted(best_of(table)) == sorted(2 * table.lines)  # once for each metric


def test_settings_are_not_mixed(all_rows):
    """A fit that was run again with other settings replaces the old one, and does not join it."""
    one = all_rows.query("experiment == 'nv1' and method == 'd-bnn'")
    again = one.assign(
        value=one["value"] + 1000, config_hash="new", finished_at="2025-02-02T00:00:00+00:00"
    )
    both = pd.concat([again[again["seed"] < 2], all_rows], ignore_index=True)
    results = gather(both)
    assert results.superseded == len(one)
    cell = cell_of(table1(results), "D-BNN", "NV1", "R")
    assert cell.ours.n == 2
    assert cell.ours.mean > 1000


def test_other_sizes_are_shown_but_not_tested(all_rows):
    small = all_rows.query("experiment == 'nv1' and m == 64").assign(n_train=120, m=32)
    cell = cell_of(table1(small), "D-BNN", "NV1", "FR")
    assert cell.note == "120 rows, M_train 16, M 32"
    assert cell.comparison is None


def test_unknown_methods_have_a_place_and_unknown_experiments_none(all_rows):
    rows = all_rows.query("experiment == 'nv1'").replace({"method": {"mixture": "my <method>"}})
    mine = rows.assign(experiment="mine")
    table = table1(pd.concat([rows, mine], ignore_index=True))
    assert set(table.groups) == {"NV1"}
    assert "my <method>" in table.lines
    with pytest.raises(InvalidInputError, match="rows"):
        table1(mine)


def test_lines_stand_in_the_order_of_the_settings(all_rows):
    """Whatever experiment a method first appears in."""
    settings = load_settings()
    titles = [settings.methods[name].title for name in settings.methods]
    lines = [line for line in table1(gather(all_rows)).lines if line in titles]
    assert lines == sorted(lines, key=titles.index)
    assert "Bayesian ensemble" in lines


def test_failures_are_no_figures(all_rows):
    failed = all_rows.query("experiment == 'nv1' and method == 'd-bnn'").copy()
    failed.loc[failed["seed"] == 1, "value"] = np.nan
    failed.loc[failed["seed"] == 2, "value"] = np.inf
    assert cell_of(table1(failed), "D-BNN", "NV1", "FR").missing == (1, 2)


@pytest.mark.parametrize(
    ("rows", "match"),
    [
        ([], "must be a DataFrame"),
        (pd.DataFrame(), "no column experiment"),
        (pd.DataFrame({"experiment": ["nv1"]}), "no column method"),
    ],
)
def test_what_is_no_results_table(rows, match):
    with pytest.raises(InvalidInputError, match=match):
        table1(rows)


def test_an_empty_table(all_rows):
    with pytest.raises(InvalidInputError, match="is empty"):
        table1(all_rows[:0])


def test_only_failures(all_rows):
    failed = all_rows[:3].assign(metric="error", value=None, note="SolveError: no optimum")
    with pytest.raises(InvalidInputError, match="every fit failed: SolveError: no optimum"):
        table1(failed)


def test_nothing_to_show(all_rows):
    pop = all_rows[all_rows["experiment"] == "pop-rows"]
    with pytest.raises(InvalidInputError, match="are of pop-rows"):
        table1(pop)
    with pytest.raises(InvalidInputError, match="experiment table2"):
        table2(pop)


def test_ties_in_print_are_all_bold(all_rows):
    """POP's best three: the same figure to the reader, whatever the decimals behind it."""
    rows = all_rows[(all_rows["experiment"] == "nv1") & (all_rows["metric"] == "R")].copy()
    value = {"c-bnn": 229.2, "d-bnn": 229.4, "c-ann": 228.9, "d-ann": 229.6, "oracle": 229.0}
    rows["value"] = rows["method"].map(value).fillna(900.0) + rows["seed"]
    table = table1(rows)
    assert set(best_of(table)) == {"C-BNN", "D-BNN", "C-ANN"}  # all 231; D-ANN is 232


def test_ties_in_a_line_of_table2(all_rows):
    rows = all_rows[(all_rows["experiment"] == "table2") & (all_rows["metric"] == "FR")].copy()
    tied = {"c-bnn": 2001.0, "d-bnn": 1999.0}  # 200.3 and 200.1 in the table's units
    rows["value"] = rows["method"].map(tied).fillna(9000.0) + rows["seed"]
    table = table2(rows)
    for line in table.lines:
        best = {cell.label for cell in table.cells if cell.best and cell.line == line}
        assert best == {"C-BNN", "D-BNN"}


def test_seeds_are_missing_only_where_they_are_planned(all_rows):
    """pop-vertex plans two."""
    table = table1(all_rows[(all_rows["experiment"] != "pop-vertex") | (all_rows["seed"] < 2)])
    cell = cell_of(table, "D-BNN", "POP, ties broken at a corner", "FR")
    assert (cell.ours.n, cell.missing) == (2, ())
    assert "two seeds" in cell.aside
    assert "[" not in as_markdown(table).split("at a corner")[1].split("###")[0]
    one = table1(all_rows[(all_rows["experiment"] != "pop-vertex") | (all_rows["seed"] < 1)])
    assert cell_of(one, "D-BNN", "POP, ties broken at a corner", "FR").missing == (1,)


def test_quick_rows_stand_in_no_table(all_rows):
    nv1 = all_rows[all_rows["experiment"] == "nv1"]
    quick = nv1.assign(
        value=3215.0, quick=True, config_hash="quick", finished_at="2030-01-01T00:00:00+00:00"
    )
    mixed = pd.concat([nv1, quick], ignore_index=True)
    whole, beside = table1(nv1), table1(mixed)
    assert beside.cells == whole.cells
    assert any("quick" in note for note in beside.notes)
    with pytest.raises(InvalidInputError, match="quick"):
        table1(quick)
    asked = table1(gather(quick, quick=True))
    assert "quick" in asked.title
    with pytest.raises(InvalidInputError, match="quick"):
        gather(nv1, quick=True)
