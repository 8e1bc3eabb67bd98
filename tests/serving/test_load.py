"""Many connections at once: nothing lost, nothing mixed, and faster than one by one."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager

import numpy as np
import pytest

import forewise as fw
from tests.serving.conftest import weather
from tests.serving.test_server import free_port

SERVER = """
import sys
from pathlib import Path
from forewise.serving.server import run
from forewise.serving.shelf import Limits
limits = Limits(batch_rows=int(sys.argv[3]), waiting=int(sys.argv[4]))
run([Path(sys.argv[1])], port=int(sys.argv[2]), limits=limits)
"""
POST = (
    "POST /decide HTTP/1.1\r\nHost: localhost:1\r\nContent-Type: application/json\r\n"
    "Content-Length: {}\r\n\r\n{}"
)


@contextmanager
def server(folder, batch_rows, waiting):
    """The port of a process with a policy."""
    port = free_port()
    arguments = [str(folder), str(port), str(batch_rows), str(waiting)]
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, *arguments], stderr=subprocess.DEVNULL
    )
    try:
        while True:
            try:
                asyncio.run(ask(port, None))
                break
            except OSError:
                assert process.poll() is None
                time.sleep(0.1)
        yield port
    finally:
        process.terminate()
        process.wait()


async def ask(port, bodies, seconds=0.0, found=None):
    """Ask again and again over one connection; keeps (body, status, answer, seconds)."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    until = time.perf_counter() + seconds
    while bodies and time.perf_counter() < until:
        place = len(found) % len(bodies)
        start = time.perf_counter()
        writer.write(POST.format(len(bodies[place]), bodies[place]).encode())
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        size = int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
        answer = await reader.readexactly(size)
        found.append((place, int(head.split()[1]), answer, time.perf_counter() - start))
        if found[-1][1] == 429:
            await asyncio.sleep(0.05)
    writer.close()


def loaded(port, bodies, connections, seconds):
    """What many connections were answered."""
    found = []

    async def run():
        await asyncio.gather(*[ask(port, bodies, seconds, found) for _ in range(connections)])

    asyncio.run(run())
    return found


@pytest.mark.slow
def test_load(tmp_path):
    X, sales = weather()
    brief = fw.Training(epochs=2)
    learner = fw.DecoupledLearner(fw.Newsvendor(3.0, 1.0), fw.BayesianPredictor(training=brief))
    policy = learner.fit(X, sales).policy_
    policy.save(tmp_path / "ice")
    expected = policy.decide(X)["sales"].to_numpy()
    bodies = [json.dumps({"rows": [row]}) for row in X.to_dict("records")]
    good = {}
    for batch_rows, waiting, connections in ((1, 128, 32), (256, 128, 32), (256, 8, 320)):
        with server(tmp_path / "ice", batch_rows, waiting) as port:
            found = loaded(port, bodies, connections, 5.0)
            alone = [seconds for *_, seconds in loaded(port, bodies, 1, 2.0)]
        for place, status, answer, _ in found:
            assert status == 200 or (status == 429 and connections > 32)
            if status == 200:
                decided = json.loads(answer)["rows"][0]["decision"]["sales"]
                assert decided == expected[place]
        times = {code: [t for _, c, _, t in found if c == code] for code in (200, 429)}
        good[batch_rows, connections] = len(times[200]) / 5.0
        quantiles = {c: np.quantile(t, (0.5, 0.99)).round(3) for c, t in times.items() if t}
        print(
            f"batch {batch_rows}, {connections} connections: {good[batch_rows, connections]:.0f}/s,"
            f" {Counter(c for _, c, *_ in found)}, p50 and p99 in s {quantiles};"
            f" alone p50 {np.median(alone):.4f}"
        )
    assert good[256, 32] >= 3 * good[1, 32]
