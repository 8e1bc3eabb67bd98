"""A service of two policies, asked without a network."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pandas as pd
import pytest

import forewise as fw
from forewise.serving.app import create_app
from forewise.serving.shelf import Limits, Shelf
from forewise.serving.telemetry import warnings_heard
from tests.planner.tables import sales_table

TOKEN = "a-token-that-is-long-enough"


def weather(n_rows: int = 60, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Contexts with a number and a category, and sales that depend on both."""
    random = np.random.default_rng(seed)
    X = pd.DataFrame({"heat": random.normal(20, 5, n_rows), "day": ["sat", "sun", "mon"] * 20})
    sales = random.gamma(4, 5, n_rows) + X["heat"] + 30 * (X["day"] == "sun")
    return X, sales.to_frame("sales")


def plain_policy(shortage: float = 3.0) -> Any:
    """Decides from the rows alone."""
    learner = fw.DecoupledLearner(fw.Newsvendor(shortage, 1.0), fw.NeighborPredictor(15))
    return learner.fit(*weather()).policy_


@pytest.fixture(scope="session")
def plain(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("plain") / "ice"
    plain_policy().save(folder)
    return folder


@pytest.fixture(scope="session")
def sales() -> pd.DataFrame:
    return sales_table(56)


@pytest.fixture(scope="session")
def shops(tmp_path_factory, sales) -> Path:
    """A planner's policy and its table, as CSV."""
    folder = tmp_path_factory.mktemp("shops")
    planner = fw.Planner(
        fw.Newsvendor(3.0, 1.0), outcome="sales", date="date", series="store", known="promotion",
        closed="closed", learner=fw.EmpiricalPredictor(), n_scenarios=16,
    )  # fmt: skip
    planner.fit(sales).save(folder / "shops")
    sales.to_csv(folder / "sales.csv", index=False)
    return folder / "shops"


class Client:
    """Asks a service; `post` sends text as it stands, and anything else as JSON."""

    def __init__(self, shelf: Shelf, token: str | None = None) -> None:
        self.shelf, self.app = shelf, create_app(shelf, token)

    def all(self, ask: Callable[[httpx.AsyncClient], list[Any]]) -> list[httpx.Response]:
        """Responses to requests that are sent at once."""

        async def run() -> list[httpx.Response]:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                return await asyncio.gather(*ask(client))

        return asyncio.run(run())

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.all(lambda client: [client.get(path, **options)])[0]

    def post(self, path: str, body: Any, **options: Any) -> httpx.Response:
        return self.all(lambda client: [client.post(path, **sent(body, options))])[0]

    def decided(self, rows: Any, **fields: Any) -> list[dict[str, Any]]:
        """The rows of an answer that is one."""
        answer = self.post("/decide", {"rows": rows, **fields})
        assert answer.status_code == 200, answer.text
        return answer.json()["rows"]


def sent(body: Any, options: dict[str, Any] | None = None) -> dict[str, Any]:
    """Options of httpx for a body."""
    content = body if isinstance(body, str | bytes) else json.dumps(body)
    headers = {"Content-Type": "application/json"} | (options or {}).get("headers", {})
    return {**(options or {}), "content": content, "headers": headers}


@contextmanager
def serving(
    folders: dict[str, Path], tables: Any = None, token: str | None = None, **limits: Any
) -> Iterator[Client]:
    """A service, until the end of a test."""
    with warnings_heard():
        shelf = Shelf(folders, tables, Limits(**limits), watch=0.05)
        try:
            yield Client(shelf, token)
        finally:
            shelf.close()


@pytest.fixture(scope="module")
def client(plain) -> Iterator[Client]:
    with serving({"ice": plain}) as found:
        yield found


@pytest.fixture(scope="module")
def both(plain, shops) -> Iterator[Client]:
    with serving({"ice": plain, "shops": shops}, {"shops": shops.parent / "sales.csv"}) as found:
        yield found
