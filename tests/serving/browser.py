"""A browser for the tests of the page, and a service for it to look at."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.serving.test_server import free_port

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


def chromium() -> str:
    """The path of a Chromium, or a skipped test."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("no Chromium is here: `apt install chromium` (Debian) brings one")
    return found


@contextmanager
def browser() -> Iterator[Any]:
    """Chromium without a window, for as long as the block lasts."""
    playwright = pytest.importorskip("playwright.sync_api", reason="the page needs Playwright")
    with playwright.sync_playwright() as engine:
        opened = engine.chromium.launch(executable_path=chromium(), args=FLAGS)
        try:
            yield opened
        finally:
            opened.close()


@contextmanager
def page_of(arguments: Sequence[Path | str], environment: dict[str, str] | None = None) -> Any:
    """The address of `forewise serve` with these arguments, in a process of its own."""
    port = free_port()
    command = [sys.executable, "-m", "forewise", "serve", *map(str, arguments)]
    process = subprocess.Popen(
        [*command, "--port", str(port)],
        stderr=subprocess.DEVNULL,
        env=os.environ | (environment or {}),
    )
    address = f"http://127.0.0.1:{port}"
    try:
        until = time.monotonic() + 60
        while True:
            assert process.poll() is None, "the service has ended"
            assert time.monotonic() < until, "the service does not answer"
            try:
                httpx.get(f"{address}/ready")
                break
            except httpx.TransportError:
                time.sleep(0.1)
        yield address
    finally:
        process.terminate()
        process.wait()
