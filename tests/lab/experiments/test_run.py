"""Runs: going on, being killed, sharing a folder, and what a person sees."""

from __future__ import annotations

import os
import random
import signal
import time

import pandas as pd
import pytest

import forewise as fw
from forewise.exceptions import InvalidInputError, MissingDataError, StorageError
from forewise.parallel import Processes
from forewise_lab.datasets.paper import paper_split
from forewise_lab.experiments import runner
from forewise_lab.experiments.rows import FitResult, read_rows
from forewise_lab.experiments.runner import run
from tests.lab.experiments.test_rows import forked, succeeded
from tests.lab.experiments.tiny import comparable, tiny_settings

KILLS = 12


@pytest.fixture
def settings(tmp_path):
    return tiny_settings(tmp_path)


def go(settings, folder, experiments=("small",), seeds=2, **options):
    return run(
        experiments, seeds=seeds, settings=settings, output=folder, progress=False, **options
    )


def wait_for(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.005)


def n_lines(folder) -> int:
    try:
        return (folder / "rows.jsonl").read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0


def test_a_run_computes_all_and_the_next_one_nothing(settings, tmp_path, monkeypatch):
    folder = tmp_path / "results"
    summary = go(settings, folder)
    assert (summary.computed, summary.found, summary.failed) == (16, 0, {})
    assert summary.rows == len(read_rows(folder))
    before = (folder / "rows.jsonl").read_bytes()
    monkeypatch.setattr(runner, "compute", None)  # would raise if called
    again = go(settings, folder)
    assert (again.computed, again.found, again.rows) == (0, 16, 0)
    assert (folder / "rows.jsonl").read_bytes() == before


def test_rows_say_what_they_were_computed_with(settings, tmp_path):
    go(settings, tmp_path / "results", seeds=[3])
    table = read_rows(tmp_path / "results")
    assert set(table["seed"]) == {3}
    for column in ("forewise", "torch", "numpy", "python", "config_hash", "finished_at"):
        assert table[column].notna().all()
    assert table.groupby(["method", "m_train"]).size()["bnn", 2] == 2 * 7
    assert set(table.loc[table["method"] == "knn", "m"]) == {16}


def test_more_seeds_and_methods_are_added(settings, tmp_path):
    folder = tmp_path / "results"
    go(settings, folder, seeds=1, methods=["saa"])
    assert go(settings, folder, seeds=2, methods=["saa", "five"]).computed == 6
    go(settings, tmp_path / "whole", seeds=2)
    go(settings, folder)
    pd.testing.assert_frame_equal(comparable(folder), comparable(tmp_path / "whole"))


def test_fits_that_two_experiments_share_are_computed_once(settings, tmp_path):
    """Of the seven methods of "all", three are in "small" with the same settings and sizes."""
    folder = tmp_path / "results"
    go(settings, folder)
    summary = go(settings, folder, experiments=["all"])
    assert (summary.computed, summary.found) == (2 * 4, 2 * 3)
    go(settings, tmp_path / "alone", experiments=["all"])
    rows = comparable(folder)
    here = rows[rows["experiment"] == "all"].reset_index(drop=True)
    pd.testing.assert_frame_equal(here, comparable(tmp_path / "alone"))
    # The other way round there are fewer numbers of scenarios than are asked for: no half fits.
    assert go(settings, tmp_path / "alone").computed == 16
    pd.testing.assert_frame_equal(comparable(tmp_path / "alone"), rows)


def test_a_changed_setting_is_computed_anew(settings, tmp_path):
    folder = tmp_path / "results"
    go(settings, folder, methods=["bnn"])
    text = (tmp_path / "tiny.toml").read_text().replace("epochs = 2,", "epochs = 3,")
    assert go(tiny_settings(tmp_path, text), folder, methods=["bnn"]).computed == 4
    assert read_rows(folder)["config_hash"].nunique() == 2


def test_missing_rows_of_a_fit_are_added_without_repeating_the_others(settings, tmp_path):
    folder = tmp_path / "results"
    go(settings, folder)
    whole = comparable(folder)
    lines = (folder / "rows.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "rows.jsonl").write_bytes(b"".join(lines[:20]) + lines[20][:30])
    summary = go(settings, folder)
    assert summary.rows == len(lines) - 20
    pd.testing.assert_frame_equal(comparable(folder), whole)


def test_a_failed_fit_is_reported_and_tried_again(settings, tmp_path):
    folder = tmp_path / "results"
    first = go(settings, folder, ["broken"], seeds=1)
    assert first.computed == 3
    assert sorted(name.split(",")[0] for name in first.failed) == [
        "broken negative",
        "broken wrong-shape",
    ]
    errors = read_rows(folder).query("metric == 'error'")
    assert errors["value"].isna().all()
    assert len(errors) == 2
    second = go(settings, folder, ["broken"], seeds=1)
    assert (second.computed, second.found, second.rows) == (2, 1, 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"experiments": ["smal"]}, "no experiment named 'smal'; did you mean small"),
        ({"experiments": ["qqqq"]}, "no experiment named 'qqqq'; there are small, all"),
        ({"methods": ["bnm"]}, "no method named 'bnm'; did you mean bnn"),
        ({"methods": ["direct"]}, "no method of small named 'direct'"),
        ({"experiments": []}, "experiments"),
        ({"seeds": 0}, "at least one seed"),
        ({"seeds": [-1]}, "at least 0, but has -1"),
    ],
)
def test_unknown_names_are_reported_before_anything_is_written(
    settings, tmp_path, arguments, message
):
    with pytest.raises(InvalidInputError, match=message):
        go(settings, tmp_path / "results", **arguments)
    assert not (tmp_path / "results").exists()


def test_a_file_stands_for_its_experiments(settings, tmp_path):
    names = settings.experiment_names(["tiny", "small"])
    assert names == ["small", "all", "kept", "broken", "endless"]


def test_missing_data_are_reported_at_once(tmp_path):
    with pytest.raises(MissingDataError, match="cnnpred"):
        run("pop2", methods=["all-dji"], output=tmp_path / "results", data_dir=tmp_path / "none")
    assert not (tmp_path / "results").exists()


def test_the_quick_version_of_a_shipped_experiment(tmp_path):
    methods = ["saa", "d-bnn", "oracle"]
    summary = run("nv1", methods, 1, output=tmp_path, quick=True, progress=False)
    assert (summary.computed, summary.failed) == (3, {})
    assert read_rows(tmp_path)["quick"].all()
    before = (tmp_path / "rows.jsonl").read_bytes()
    with pytest.raises(StorageError, match="quick"):
        run("nv1", ["saa"], 1, output=tmp_path, progress=False)
    assert (tmp_path / "rows.jsonl").read_bytes() == before


def test_a_disk_that_fills_up(settings, tmp_path, monkeypatch):
    folder = tmp_path / "results"
    go(settings, folder, seeds=1)
    finished = comparable(folder)
    write, left = os.write, [10]

    def fill_up(descriptor, line):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(28, "No space left on device")
        return write(descriptor, line)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", fill_up)
        with pytest.raises(StorageError, match="No space left on device; all finished rows"):
            go(settings, folder)
    assert n_lines(folder) == len(finished) + 10
    go(settings, folder)
    go(settings, tmp_path / "whole")
    pd.testing.assert_frame_equal(comparable(folder), comparable(tmp_path / "whole"))


def test_killed_at_random_moments(settings, tmp_path):
    """After any kill, running the same again gives the table of an undisturbed run."""
    go(settings, tmp_path / "whole")
    whole = comparable(tmp_path / "whole")
    started = time.perf_counter()  # of a second run: the first of a process takes much longer
    go(settings, tmp_path / "again")
    duration = time.perf_counter() - started
    moments = random.Random(0)
    interrupted = 0
    for kill in range(KILLS):
        folder = tmp_path / str(kill)
        child = forked(lambda folder=folder: go(settings, folder))
        time.sleep(moments.uniform(0, duration))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        interrupted += 0 < n_lines(folder) < len(whole)
        go(settings, folder)
        pd.testing.assert_frame_equal(comparable(folder), whole)
        assert n_lines(folder) == len(whole)
    assert interrupted > KILLS / 4


def test_one_run_at_a_time_and_a_killed_one_holds_nothing(settings, tmp_path):
    folder = tmp_path / "results"
    child = forked(lambda: go(settings, folder, ["endless"], seeds=1))
    try:
        wait_for(lambda: n_lines(folder) > 0)
        with pytest.raises(StorageError, match="another run"):
            go(settings, folder)
        assert set(read_rows(folder)["method"]) == {"five"}
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert go(settings, folder).computed == 16


def test_ctrl_c_stops_without_a_half_trained_row(settings, tmp_path):
    folder = tmp_path / "results"

    def work() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with pytest.raises(KeyboardInterrupt):
            go(settings, folder, ["endless"], seeds=1)

    child = forked(work)
    try:
        wait_for(lambda: n_lines(folder) == 5)  # the constant's; the long fit comes next
        time.sleep(0.3)  # well into the training
        os.kill(child, signal.SIGINT)
        assert succeeded(child)
    except AssertionError:
        os.kill(child, signal.SIGKILL)
        raise
    assert set(read_rows(folder)["method"]) == {"five"}
    go(settings, folder, methods=["five"])  # the lock is free


def test_a_person_is_reported_how_far_it_is(settings, tmp_path, capsys):
    run("small", ["five"], 2, output=tmp_path / "results", settings=settings)
    reported = capsys.readouterr().err.splitlines()
    assert reported[0].startswith("1/4 small five, seed 0, 30 rows, M_train 2: R ")
    assert reported[-1].startswith("4/4 ")
    run("small", ["five"], 3, output=tmp_path / "results", settings=settings)
    assert "4 of 6 fits were finished before" in capsys.readouterr().err


class Backwards(Processes):
    """Computes here, in another order."""

    def imap_unordered(self, function, tasks):
        results: list[FitResult] = [function(task) for task in tasks]
        yield from reversed(results)


def test_the_order_of_results_does_not_matter(settings, tmp_path):
    go(settings, tmp_path / "forwards", ["all"])
    go(settings, tmp_path / "backwards", ["all"], map=Backwards(1))
    pd.testing.assert_frame_equal(
        comparable(tmp_path / "forwards"), comparable(tmp_path / "backwards")
    )


def test_processes_give_the_same_rows(settings, tmp_path):
    go(settings, tmp_path / "serial", ["all"])
    go(settings, tmp_path / "processes", ["all"], map=Processes(2))
    pd.testing.assert_frame_equal(
        comparable(tmp_path / "serial"), comparable(tmp_path / "processes")
    )


def descendants(process: int, called: str) -> list[int]:
    """Processes that this one has started, directly or not, whose command line has `called`."""
    parents, names = {}, {}
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/stat") as stat, open(f"/proc/{entry}/cmdline") as command:
                parents[int(entry)] = int(stat.read().rsplit(")", 1)[1].split()[1])
                names[int(entry)] = command.read()
        except (OSError, ValueError):
            continue
    found, generation = [], [process]
    while generation:
        generation = [child for child, parent in parents.items() if parent in generation]
        found += [child for child in generation if called in names[child]]
    return found


def workers_of(driver: int) -> list[int]:
    """Processes of the driver's pool."""
    return descendants(driver, "popen_loky")


@pytest.mark.slow
def test_killed_workers_and_drivers(settings, tmp_path):
    """Workers are killed in turn with their driver; in the end the table is the same."""
    go(settings, tmp_path / "whole", ["all"], seeds=4)
    whole = comparable(tmp_path / "whole")
    folder = tmp_path / "results"
    moments = random.Random(1)
    for victim in ("worker", "driver", "worker", "driver"):
        child = forked(lambda: go(settings, folder, ["all"], seeds=4, map=Processes(2)))
        wait_for(lambda child=child: len(workers_of(child)) == 2)
        before = n_lines(folder)
        wait_for(lambda before=before: n_lines(folder) > before)
        time.sleep(moments.uniform(0, 0.2))
        workers = workers_of(child)
        target = child if victim == "driver" or not workers else moments.choice(workers)
        os.kill(target, signal.SIGKILL)
        if victim == "worker":
            assert succeeded(child)
            pd.testing.assert_frame_equal(comparable(folder), whole)
            (folder / "rows.jsonl").unlink()
        else:
            os.waitpid(child, 0)
            wait_for(lambda workers=workers: not any(map(alive, workers)))
    go(settings, folder, ["all"], seeds=4)
    pd.testing.assert_frame_equal(comparable(folder), whole)


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_policies_are_kept_beside_the_rows(settings, tmp_path):
    """They decide as the rows say, also where another experiment has the same fit."""
    run("all", ["bnn"], 2, settings=settings, output=tmp_path / "out", progress=False)
    done = run("kept", settings=settings, output=tmp_path / "out", progress=False)
    assert (done.computed, done.found) == (4, 0)
    kept = tmp_path / "out" / "policies" / "kept"
    assert [str(path.relative_to(kept)) for path in sorted(kept.glob("*/*"))] == [
        "seed0/Bayesian",
        "seed1/Bayesian",
    ]
    policy = fw.load_policy(kept / "seed1" / "Bayesian")
    split = paper_split("nv1", 1, n_train=30)
    test = split.test[:15]
    decision = policy.decide(test.X, 8, random_state=1)
    rows = read_rows(tmp_path / "out").query(
        "experiment == 'kept' and method == 'bnn' and seed == 1 and metric == 'R'"
    )
    found = fw.regret(fw.datasets.nv_problem(), decision, test.y)
    assert found == pytest.approx(rows["value"].item(), rel=1e-12)
    assert run("kept", settings=settings, output=tmp_path / "out", progress=False).computed == 0
