"""The report: whole, well formed, self-contained, quick."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from html.parser import HTMLParser

import pytest

import forewise as fw
from forewise.datasets import nv_problem
from forewise.exceptions import InvalidInputError, StorageError
from forewise_lab.datasets.paper import paper_split
from forewise_lab.experiments.configuration import load_settings
from forewise_lab.experiments.runner import run
from forewise_lab.report.figures import kept_panels, nv1_panels
from forewise_lab.report.page import render_report, write_report
from forewise_lab.report.results import gather, missing_fits

VOID = {"meta", "br", "hr", "img", "input", "link"}


class Checker(HTMLParser):
    """Raises where tags do not match; keeps the text and what the page would load."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.text, self.loads, self.ids, self.tags = [], [], [], [], set()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        for name, value in attrs:
            if name in ("src", "href", "xlink:href", "data", "srcset", "poster", "action"):
                self.loads.append(value)
            if name == "id":
                self.ids.append(value)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> without a start"
        assert self.open.pop() == tag, f"</{tag}> at {self.getpos()}"

    def handle_data(self, data):
        self.text.append(data)


def checked(html: str) -> Checker:
    checker = Checker()
    checker.feed(html)
    checker.close()
    assert checker.open == []
    return checker


@pytest.fixture(scope="module")
def page(all_rows):
    started = time.process_time()
    made = render_report(all_rows, machine="a machine", made_at=datetime(2025, 1, 2, tzinfo=UTC))
    assert time.process_time() - started < 10  # a person waits for it
    return made


@pytest.fixture(scope="module")
def nv1_rows(all_rows):
    """Enough for a page that takes little time."""
    return all_rows[all_rows["experiment"] == "nv1"]


def test_it_is_well_formed(page):
    checker = checked(page)
    assert page.lstrip().lower().startswith("<!doctype html>")
    assert len(checker.ids) == len(set(checker.ids))
    assert {"caption", "thead", "th", "svg", "desc", "figure", "nav", "main"} <= checker.tags


def test_it_loads_nothing(page):
    checker = checked(page)
    assert "script" not in checker.tags
    assert "link" not in checker.tags
    assert all(link.startswith("#") for link in checker.loads)
    assert {link[1:] for link in checker.loads} <= set(checker.ids)
    assert not re.findall(r"url\((?!#)|@import|https?://", page)


def test_it_has_every_method_and_every_part(page, all_rows):
    settings = load_settings()
    text = "".join(checked(page).text)
    for method in all_rows["method"].unique():
        assert settings.methods[method].title in text
    for part in ("Table 1", "Table 2", "claims", "FR against M", "FR against training rows",
                 "Decisions on NV1", "Calibration", "Time per method", "What is missing",
                 "a machine", "2025-01-02", "4f0c2d19a7", "Nothing: every fit"):  # fmt: skip
        assert part in text


def test_charts_say_what_they_show(page):
    for chart in re.findall(r"<svg[^>]*>", page):
        assert 'role="img"' in chart
        assert re.search(r'aria-label="[^"]+"', chart)


def test_any_text_is_taken_literally(nv1_rows):
    nasty = "<script>alert('x')</script> & \"q\" {{ 7 * 7 }}"
    rows = nv1_rows.replace({"method": {"mixture": nasty, "d-gp": nasty + "2"}})
    rows["note"] = "<u>"
    rows.loc[rows.index[:1], ["metric", "value"]] = ["error", None]
    html = render_report(rows)
    checker = checked(html)
    assert {"script", "u"}.isdisjoint(checker.tags)
    assert "<u>" in "".join(checker.text)
    assert nasty in "".join(checker.text)


@pytest.mark.parametrize("experiment", ["nv1", "table2", "pop-rows", "pop-scenarios", "pop2"])
def test_parts_without_rows_say_so(all_rows, experiment):
    text = "".join(checked(render_report(all_rows[all_rows["experiment"] == experiment])).text)
    assert "There are no rows" in text
    assert "nothing yet" in text


def test_the_least_that_there_can_be(all_rows):
    columns = ["experiment", "method", "seed", "n_train", "m_train", "m", "metric", "value"]
    checked(render_report(all_rows[columns].head(1)))


def test_writing_is_all_or_nothing(nv1_rows, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("old")

    def fail(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", fail)
        with pytest.raises(StorageError, match="No space left"):
            write_report(nv1_rows, path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    assert write_report(nv1_rows, path) == path
    checked(path.read_text(encoding="utf-8"))
    assert list(tmp_path.iterdir()) == [path]
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_folder_that_does_not_exist(nv1_rows, tmp_path):
    with pytest.raises(StorageError, match="choose a folder that exists"):
        write_report(nv1_rows, tmp_path / "nowhere" / "report.html")


def test_an_empty_table(all_rows, tmp_path):
    with pytest.raises(InvalidInputError, match="is empty"):
        write_report(all_rows[:0], tmp_path / "report.html")
    assert not list(tmp_path.iterdir())


def test_policies_become_panels(nv1_rows, tmp_path):
    data = paper_split("nv1", 0, n_train=60)
    training = fw.Training(epochs=1, progress=False)
    predictor = fw.PointPredictor(hidden_sizes=(4,), training=training)
    learner = fw.DecoupledLearner(nv_problem(), predictor).fit(data.train.X, data.train.y)
    learner.policy_.save(tmp_path / "D & ANN")
    html = render_report(nv1_rows, policies=tmp_path)
    checker = checked(html)
    assert 'aria-label="Decisions on NV1 over the context: D &amp; ANN"' in html
    assert all(link.startswith("#") for link in checker.loads)
    assert "http" not in html


def test_panels_are_found_where_a_run_keeps_them(tmp_path):
    assert kept_panels(tmp_path) is None
    run("nv1-panels", ["d-ann"], output=tmp_path, quick=True, progress=False)
    assert [path.name for path in kept_panels(tmp_path).iterdir()] == ["D-ANN"]
    assert 'aria-label="Decisions on NV1 over the context: D-ANN"' in nv1_panels(
        kept_panels(tmp_path)
    )
    assert nv1_panels(kept_panels(tmp_path)) == nv1_panels(kept_panels(tmp_path))


def test_what_is_missing_counts_an_experiments_own_seeds(all_rows):
    without = all_rows[all_rows["experiment"] != "nv1-panels"]
    missing = {each.experiment: each for each in missing_fits(gather(without))}
    assert missing["NV1, decisions over the context"].planned == 4


def test_a_folder_without_policies(nv1_rows, tmp_path):
    with pytest.raises(InvalidInputError, match="one subfolder per saved policy"):
        render_report(nv1_rows, policies=tmp_path)


def test_the_page_has_one_truth_about_seeds(all_rows):
    rows = all_rows[(all_rows["experiment"] != "pop-vertex") | (all_rows["seed"] < 2)]
    html = render_report(rows)
    assert not re.search(r"\d missing", html)
    assert " of 5 seeds" not in html
    assert "Nothing: every fit that the settings plan is there." in html
    assert "two seeds: no interval" in html


def test_a_page_of_a_quick_run_says_so(nv1_rows, page):
    html = render_report(gather(nv1_rows.assign(quick=True), quick=True))
    assert "mean nothing" in html
    assert "mean nothing" not in page
