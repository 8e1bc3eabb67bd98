"""Folders of files: what comes out is what `decide` says, whatever happens on the way."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import forewise as fw
from forewise import cli
from forewise.bulk import DaskEngine, LocalEngine, RayEngine, decide_files
from forewise.bulk.job import Job
from forewise.bulk.parts import find_parts
from forewise.exceptions import InvalidInputError, MissingDependencyError, StorageError

PARTS, ROWS = 5, 400


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """policy/ and data/ with parts, an empty one among them; not to be changed."""
    folder = tmp_path_factory.mktemp("bulk")
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc"))
    y = pd.DataFrame({"demand": rng.gamma(4.0, np.exp(0.3 * X["a"]))})
    learner = fw.DecoupledLearner(fw.Newsvendor(3, 1), fw.ForestPredictor(5, random_state=0))
    learner.fit(X, y).policy_.save(folder / "policy")
    (folder / "data").mkdir()
    for number in range(PARTS):
        rows = pd.DataFrame(rng.normal(size=(ROWS, 3)), columns=list("abc"))
        keyed = rows.assign(id=np.arange(ROWS, dtype=np.int32), shop=f"s{number}")
        keyed.to_parquet(folder / f"data/part{number}.parquet", index=False)
    keyed[:0].to_parquet(folder / "data/none.parquet", index=False)
    return folder


def content(folder: Path) -> dict[str, str]:
    """Digest of every file."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    return {str(f.relative_to(folder)): hashlib.sha256(f.read_bytes()).hexdigest() for f in files}


@pytest.fixture(scope="module")
def undisturbed(made) -> dict[str, str]:
    decide_files(made / "policy", made / "data", made / "undisturbed")
    return content(made / "undisturbed")


def test_decisions_are_those_of_decide_with_the_keys_beside_them(made, undisturbed):
    assert len(undisturbed) == PARTS + 2
    policy = fw.load_policy(made / "policy")
    for number in range(PARTS):
        rows = pd.read_parquet(made / f"data/part{number}.parquet")
        found = pq.read_table(made / f"undisturbed/part{number}.parquet")
        assert found.column_names == ["id", "shop", "demand"]
        assert found.schema.field("id").type == pa.int32()
        assert found["id"].to_pylist() == rows["id"].tolist()
        expected = policy.decide(rows[list("abc")])["demand"]
        np.testing.assert_array_equal(found["demand"].to_numpy(), expected)
    assert pq.read_metadata(made / "undisturbed/none.parquet").num_rows == 0


def test_what_is_done_stays_and_what_changed_is_decided_again(made, undisturbed, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    for file in (made / "data").iterdir():
        os.link(file, data / file.name)
    out = tmp_path / "out"
    first = decide_files(made / "policy", data / "part[01].parquet", out)
    assert (first.done, first.skipped, first.rows) == (2, 0, 2 * ROWS)
    again = decide_files(made / "policy", str(data / "*.parquet"), out)
    assert (again.done, again.skipped, again.rows) == (PARTS - 1, 2, PARTS * ROWS)
    assert content(out) == undisturbed
    (data / "part0.parquet").unlink()
    pd.read_parquet(data / "part1.parquet")[:7].to_parquet(data / "part0.parquet")
    (out / "part3.parquet").unlink()
    third = decide_files(made / "policy", data, out)
    assert (third.done, third.skipped) == (2, PARTS - 1)
    assert pq.read_metadata(out / "part0.parquet").num_rows == 7


@pytest.mark.parametrize("change", [{"random_state": 1}, {"n_scenarios": 8}, {"keep": ["id"]}])
def test_parts_made_otherwise_are_not_mixed(made, undisturbed, change):
    with pytest.raises(StorageError, match=f"made otherwise: {next(iter(change))}"):
        decide_files(made / "policy", made / "data", made / "undisturbed", **change)
    assert content(made / "undisturbed") == undisturbed


def test_another_policy_and_a_strange_folder_are_refused(made, undisturbed, tmp_path):
    fw.load_policy(made / "policy").save(tmp_path / "other")
    with pytest.raises(StorageError, match="made otherwise: policy differ"):
        decide_files(tmp_path / "other", made / "data", made / "undisturbed")
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(StorageError, match="must be an empty folder"):
        decide_files(made / "policy", made / "data", tmp_path)
    with pytest.raises(InvalidInputError, match="none matches"):
        decide_files(made / "policy", made / "data/*.csv", tmp_path / "out")
    with pytest.raises(InvalidInputError, match="must not be among the files"):
        decide_files(made / "policy", made / "**/*.parquet", made / "undisturbed")


def test_a_part_that_cannot_be_read_is_told_and_the_others_are_done(made, undisturbed, tmp_path):
    data, out = tmp_path / "data", tmp_path / "out"
    data.mkdir()
    for file in (made / "data").iterdir():
        os.link(file, data / file.name)
    whole = (data / "part2.parquet").read_bytes()
    (data / "part2.parquet").unlink()
    (data / "part2.parquet").write_bytes(whole[: len(whole) // 2])
    pd.DataFrame({"a": [1.0], "b": [2.0]}).to_parquet(data / "narrow.parquet")
    call = ["decide", made / "policy", data / "*.parquet", "-o", out, "--engine", "local"]
    ended = CliRunner().invoke(cli.app, [str(part) for part in call])
    assert ended.exit_code == 1
    assert "part2.parquet" in ended.output
    assert "narrow.parquet" in ended.output
    assert f"{(PARTS - 1) * ROWS:,} rows are in" in ended.stdout
    assert set(content(out)) == set(undisturbed) - {"part2.parquet"}
    (data / "narrow.parquet").unlink()
    (data / "part2.parquet").write_bytes(whole)
    ended = CliRunner().invoke(cli.app, [str(part) for part in call])
    assert ended.exit_code == 0, ended.output
    assert set(content(out)) == set(undisturbed)


def test_one_program_at_a_time(made, tmp_path):
    import fcntl

    out = tmp_path / "out"
    out.mkdir()
    descriptor = os.open(out, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    with pytest.raises(StorageError, match="another program decides into"):
        decide_files(made / "policy", made / "data", out)
    os.close(descriptor)


@pytest.mark.slow
def test_a_worker_that_is_killed_is_replaced(made, undisturbed, tmp_path):
    killed = []

    def kill(summary):
        if not killed:  # one of the processes that decide right now
            listed = subprocess.run(
                ["pgrep", "-P", str(os.getpid()), "-f", "popen_loky"],
                capture_output=True,
                text=True,
            )
            killed.extend(int(pid) for pid in listed.stdout.split())
            for pid in killed[:1]:
                os.kill(pid, signal.SIGKILL)

    out = tmp_path / "out"
    summary = decide_files(made / "policy", made / "data", out, engine=LocalEngine(2), watch=kill)
    assert killed
    assert not summary.errors
    assert content(out) == undisturbed


class Deadly(Job):
    def _said(self, part):
        os.kill(os.getpid(), signal.SIGKILL)


class Poisoned(Job):
    """A job whose part 2 kills every worker."""

    def decide(self, part):
        return (Deadly if part.name == "part2.parquet" else Job)(**vars(self)).decide(part)


@pytest.mark.slow
@pytest.mark.parametrize("engine", [LocalEngine(2), DaskEngine(2)], ids=["local", "dask"])
def test_a_part_that_kills_its_workers_is_told_and_the_others_are_done(made, tmp_path, engine):
    if isinstance(engine, DaskEngine):
        pytest.importorskip("distributed")
    tmp_path.joinpath("out").mkdir()
    job = Poisoned(**vars(Job.make(made / "policy", tmp_path / "out", None, None, 0, None)))
    said = list(engine.records(job, find_parts(made / "data", tmp_path / "out")))
    errors = [record for record in said if "error" in record]
    assert [record["part"] for record in errors] == ["part2.parquet"]
    assert "its worker died again and again" in errors[0]["error"]
    assert len(said) == PARTS + 1


DRIVER = """
import sys
from forewise.bulk import decide_files
from forewise.bulk.engines import ENGINES
policy, data, out, engine, jobs = sys.argv[1:]
if __name__ == "__main__":
    print("begins", flush=True)
    decide_files(policy, data, out, engine=ENGINES[engine](int(jobs)))
"""


def killed_until_done(made: Path, data: Path, out: Path, jobs: int, times: int, window: float):
    """Kill the driver at random moments, look at what is visible, and let it finish."""
    rng, script = random.Random(jobs), out.with_suffix(".py")
    script.write_text(DRIVER)
    call = [sys.executable, str(script), *map(str, (made / "policy", data, out)), "local"]
    seen = []
    for _ in range(times):
        with subprocess.Popen([*call, str(jobs)], stdout=subprocess.PIPE) as started:
            assert started.stdout is not None
            assert started.stdout.readline() == b"begins\n"
            time.sleep(rng.uniform(0.0, window))
            started.kill()
        files = list(out.glob("*.parquet"))
        assert {pq.read_metadata(file).num_rows for file in files} <= {0, ROWS}
        seen.append(len(files))
    subprocess.run([*call, "1"], check=True)
    return seen


@pytest.mark.slow
def test_killed_at_random_moments_it_ends_as_undisturbed(made, tmp_path):
    """Fourteen times in the middle of its work, six times with workers of its own."""
    data = tmp_path / "data"
    data.mkdir()
    for copy in range(24):
        for file in (made / "data").iterdir():
            os.link(file, data / f"{copy:02}-{file.name}")
    decide_files(made / "policy", data, tmp_path / "whole")
    seen = killed_until_done(made, data, tmp_path / "one", 1, 14, 1.5)
    assert len(set(seen)) > 2, seen  # it was killed with some parts done and others not
    killed_until_done(made, data, tmp_path / "two", 2, 6, 8.0)
    for name in ("one", "two"):
        assert content(tmp_path / name) == content(tmp_path / "whole")


@pytest.mark.slow
def test_dask_decides_the_same(made, undisturbed, tmp_path):
    pytest.importorskip("distributed")
    summary = decide_files(made / "policy", made / "data", tmp_path / "out", engine=DaskEngine(2))
    assert not summary.errors
    assert content(tmp_path / "out") == undisturbed


@pytest.mark.slow
def test_dask_listens_on_loopback_alone_and_has_no_dashboard():
    pytest.importorskip("distributed")
    with DaskEngine(1)._client() as client:
        lines = subprocess.run(["ss", "-ltnpH"], capture_output=True, text=True, check=True).stdout
        ours = [line.split()[3] for line in lines.splitlines() if f"pid={os.getpid()}," in line]
        assert ours
        assert not [host for host in ours if not host.startswith("127.")]
        port = client.scheduler_info()["services"]["dashboard"]
        with pytest.raises(HTTPError, match="404"):
            urlopen(f"http://127.0.0.1:{port}/status", timeout=10)


@pytest.mark.slow
def test_ray_decides_the_same(made, undisturbed, tmp_path):
    pytest.importorskip("ray")
    (tmp_path / "driver.py").write_text(DRIVER)
    call = [sys.executable, tmp_path / "driver.py", made / "policy", made / "data"]
    call += [tmp_path / "out", "ray", 2]
    environment = os.environ | {"RAY_AUTH_MODE": "disabled"}
    subprocess.run([str(part) for part in call], check=True, env=environment, timeout=200)
    assert content(tmp_path / "out") == undisturbed


@pytest.mark.slow
def test_ray_workers_that_are_killed_are_replaced(made, undisturbed, tmp_path):
    pytest.importorskip("ray")
    (tmp_path / "driver.py").write_text(DRIVER)
    call = [sys.executable, tmp_path / "driver.py", made / "policy", made / "data"]
    call += [tmp_path / "out", "ray", 2]
    environment = os.environ | {"RAY_AUTH_MODE": "disabled"}
    killed: list[int] = []
    with subprocess.Popen([str(part) for part in call], env=environment) as started:
        while started.poll() is None:
            time.sleep(0.2)
            done = list((tmp_path / "out").glob("part*.parquet"))
            if len(killed) < 2 and done:
                listed = subprocess.run(
                    ["pgrep", "-f", r"^ray::(MapWorker|.*Worker\))"], capture_output=True, text=True
                )
                killed += [int(pid) for pid in listed.stdout.split()][:1]
                for pid in killed[-1:]:
                    os.kill(pid, signal.SIGKILL)
    assert started.returncode == 0
    assert content(tmp_path / "out") == undisturbed


@pytest.mark.parametrize(("engine", "package"), [(RayEngine, "ray"), (DaskEngine, "dask")])
def test_without_the_package_it_is_told_how_to_get_it(made, tmp_path, monkeypatch, engine, package):
    monkeypatch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependencyError, match=rf"pip install 'forewise\[{package}\]'"):
        decide_files(made / "policy", made / "data", tmp_path / "out", engine=engine(2))


def test_the_past_belongs_to_planners(made, tmp_path):
    with pytest.raises(InvalidInputError, match="needs no past"):
        decide_files(
            made / "policy", made / "data", tmp_path / "out", past=made / "data/part0.parquet"
        )
