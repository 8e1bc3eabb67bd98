"""Metrics for Prometheus, and logs with one JSON object per line."""

from __future__ import annotations

import json
import logging
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

LOG = logging.getLogger("forewise.serving")
_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)


class Metrics:
    """What the service counts; each service has a registry of its own."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.requests = Counter(
            "forewise_requests", "Requests.", ["path", "status"], registry=registry
        )
        self.seconds = Histogram(
            "forewise_request_seconds", "Time of a request.", ["path"],
            buckets=_SECONDS, registry=registry,
        )  # fmt: skip
        self.rows = Counter(
            "forewise_rows", "Rows by how they ended.", ["policy", "status"], registry=registry
        )
        self.batch = Histogram(
            "forewise_batch_requests", "Requests that were answered as one batch.", ["policy"],
            buckets=(1, 2, 4, 8, 16, 32, 64, 128), registry=registry,
        )  # fmt: skip
        self.library = Histogram(
            "forewise_batch_seconds", "Time of the library for a batch.", ["policy"],
            buckets=_SECONDS, registry=registry,
        )  # fmt: skip
        self.waiting = Gauge(
            "forewise_waiting_requests", "Requests that wait for their turn.", ["policy"],
            registry=registry,
        )  # fmt: skip
        self.loads = Counter(
            "forewise_policy_loads", "Versions taken over, or refused.", ["policy", "result"],
            registry=registry,
        )  # fmt: skip


class JsonLines(logging.Formatter):
    """A record as one line of JSON; `extra={"fields": {...}}` are its own fields."""

    converter = staticmethod(time.gmtime)

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S") + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def log_as_json(level: int = logging.INFO) -> None:
    """Let the service and its server log to standard error; a full disk stops no request."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    logging.raiseExceptions = False
    for name in ("forewise.serving", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)


_listening = threading.local()


@contextmanager
def heard() -> Iterator[list[str]]:
    """Warnings that this thread causes, of categories that training has not seen say.

    They are heard within `warnings_heard` only.
    """
    _listening.notes = notes = list[str]()
    try:
        yield notes
    finally:
        _listening.notes = None


@contextmanager
def warnings_heard() -> Iterator[None]:
    """Warnings are notes for who asked (`heard`), and elsewhere lines of the log, each once."""
    reported: set[str] = set()
    lock = threading.Lock()

    def tell(message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
        text = str(message)[:500]
        notes = getattr(_listening, "notes", None)
        if notes is not None:
            notes.append(text)
            return
        with lock:
            if text in reported or len(reported) > 1000:
                return
            reported.add(text)
        LOG.warning(text, extra={"fields": {"category": category.__name__}})

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = tell
        yield
