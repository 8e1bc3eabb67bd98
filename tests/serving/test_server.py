"""The command as a process: loopback, logs, drain; and what it does not import."""

from __future__ import annotations

import ast
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

import forewise
from forewise import cli
from forewise.exceptions import InvalidInputError
from tests.serving.conftest import TOKEN

ROOM = Path(forewise.__file__).parent / "serving"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.mark.skipif(os.name == "nt", reason="SIGTERM is a POSIX signal")
def test_sigterm_drains(plain):
    """What is being answered is answered; the process ends well; logs are JSON without secrets."""
    port = free_port()
    command = [sys.executable, "-m", "forewise", "serve", str(plain), "--port", str(port)]
    server = subprocess.Popen(
        [*command, "--token-env", "OUR_TOKEN"], stderr=subprocess.PIPE, text=True,
        env=os.environ | {"OUR_TOKEN": TOKEN},
    )  # fmt: skip
    url, rows = f"http://127.0.0.1:{port}", [{"heat": 20.0, "day": "sun"}] * 2000
    headers = {"Authorization": f"Bearer {TOKEN}"}
    try:
        until = time.monotonic() + 120
        while time.monotonic() < until and server.poll() is None:
            try:
                httpx.get(f"{url}/ready")
                break
            except httpx.TransportError:
                time.sleep(0.1)
        assert httpx.post(f"{url}/decide", json={"rows": rows[:1]}).status_code == 401
        answers = []

        def ask() -> None:
            body = {"rows": rows, "n_scenarios": 500}
            answers.append(httpx.post(f"{url}/decide", json=body, headers=headers, timeout=60))

        asking = [threading.Thread(target=ask) for _ in range(4)]
        for thread in asking:
            thread.start()
        while (
            'path="/decide",status="401"'
            not in (text := httpx.get(f"{url}/metrics", headers=headers).text)
            or 'forewise_waiting_requests{policy="ice"} 0.0' in text
        ):
            if answers:
                break
        server.send_signal(signal.SIGTERM)
        for thread in asking:
            thread.join()
        _, errors = server.communicate(timeout=60)
    finally:
        server.kill()
    assert [answer.status_code for answer in answers] == [200] * 4
    assert server.returncode == 0, errors
    lines = [json.loads(line) for line in errors.splitlines()]
    assert {"serving", "request", "ended"} <= {line["event"] for line in lines}
    assert TOKEN not in errors


def test_the_command_is_safe_by_default(plain, tmp_path, monkeypatch):
    for arguments, message in (
        (["--host", "0.0.0.0"], "needs a token"),
        (["--token-env", "NO_TOKEN"], "NO_TOKEN must have the token"),
        (["--table", "sales.csv"], "leave the table out"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            CliRunner().invoke(cli.app, ["serve", str(plain), *arguments], catch_exceptions=False)


def test_nothing_here_trains():
    """Beyond what policies of a planner import, and explanations when they are asked for."""
    for path in ROOM.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            for name in names:
                assert not name.startswith(("forewise.learners", "forewise.planner.planner"))
                assert name != "pickle"
    code = (
        "import sys, forewise.planner.policy; before = set(sys.modules)\n"
        "import forewise.serving.server\n"
        "print([m for m in set(sys.modules) - before if m.startswith('forewise.') and not "
        "m.startswith(('forewise.serving', 'forewise.tables'))], "
        "'forewise.planner.training' in sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.split("\n")[0] == "[] False"
