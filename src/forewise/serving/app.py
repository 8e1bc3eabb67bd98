"""The endpoints: what can be asked, as an ASGI application."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel, ValidationError

from forewise import __version__
from forewise.serving.batching import Worker
from forewise.serving.card import example, model_card
from forewise.serving.deciding import Edition, Question
from forewise.serving.gate import App, Gate
from forewise.serving.reading import DecideRequest, ExplainRequest, RequestError, parsed
from forewise.serving.shelf import Limits, Served, Shelf
from forewise.serving.telemetry import LOG, warnings_heard

_LARGE = 50_000  # bytes of a body that is read beside the event loop
_Body = TypeVar("_Body", bound=DecideRequest)


def create_app(shelf: Shelf, token: str | None = None) -> App:
    """The service of a shelf of policies; the shelf ends with it.

    Parameters
    ----------
    shelf : Shelf
    token : str, optional
        Required in the header of all requests but ``/health`` and ``/ready``.
    """

    @asynccontextmanager
    async def living(_: FastAPI) -> AsyncIterator[None]:
        with warnings_heard():
            yield
        await asyncio.to_thread(shelf.close)

    app = FastAPI(
        title="forewise", version=__version__, lifespan=living, docs_url=None, redoc_url=None,
        description="Decisions of learned policies, with what they cost and how sure that is.",
    )  # fmt: skip
    _add_decisions(app, shelf)
    _add_descriptions(app, shelf)

    @app.exception_handler(RequestError)
    async def refused(_: Request, error: RequestError) -> JSONResponse:
        retry = error.retry_after
        headers = None if retry is None else {"Retry-After": str(retry)}
        return JSONResponse({"error": str(error)}, error.status, headers)

    paths = frozenset(path for route in app.routes if (path := getattr(route, "path", None)))
    return Gate(app, shelf.limits, shelf.metrics, paths, lambda: shelf.full, token)


def _add_decisions(app: FastAPI, shelf: Shelf) -> None:
    """The endpoints that compute."""
    limits = shelf.limits

    @app.post("/decide", openapi_extra=_documented(DecideRequest, shelf))
    async def decide(request: Request) -> JSONResponse:
        """Decide for one or many rows; each has its status, decision and certificate."""
        body = await _read(request, DecideRequest)
        policy = shelf.find(body.policy)
        edition, answer = await _asked(policy, policy.deciding, body, limits)
        return JSONResponse(_named(policy, edition) | vars(answer))

    @app.post("/explain", openapi_extra=_documented(ExplainRequest, shelf))
    async def explain(request: Request) -> JSONResponse:
        """Why a row is decided as it is: scenarios, constraints, prices, similar days."""
        body = await _read(request, ExplainRequest)
        policy = shelf.find(body.policy)
        edition, answer = await _asked(policy, policy.explaining, body, limits)
        return JSONResponse(_named(policy, edition) | answer)


def _add_descriptions(app: FastAPI, shelf: Shelf) -> None:
    """The endpoints that tell."""

    @app.get("/policies")
    async def policies() -> dict[str, Any]:
        """Names and versions of the policies."""
        found = shelf.policies.values()
        return {"policies": [_named(p, p.edition) for p in found]}

    @app.get("/policy")
    async def policy(name: str | None = None) -> JSONResponse:
        """The model card: problem, columns, rows, comparison, calibration, versions."""
        found = shelf.find(name)
        return JSONResponse(await asyncio.to_thread(model_card, found.name, found.edition))

    @app.get("/health")
    async def health() -> dict[str, str]:
        """The process answers."""
        return {"status": "alive"}

    @app.get("/ready")
    async def ready() -> JSONResponse:
        """Every policy takes questions."""
        if shelf.ready:
            return JSONResponse({"status": "ready"})
        return JSONResponse({"status": "not ready"}, 503, {"Retry-After": "1"})

    @app.get("/metrics", response_class=PlainTextResponse)
    async def metrics() -> Response:
        """Counts and times, for Prometheus."""
        text = generate_latest(shelf.metrics.registry)
        return Response(text, media_type=CONTENT_TYPE_LATEST)


async def _read(request: Request, model: type[_Body]) -> _Body:
    """The body as a checked request."""
    body = await request.body()

    def read() -> _Body:
        try:
            return model.model_validate(parsed(body))
        except ValidationError as error:
            raise RequestError(422, _listed(error)) from None

    return await asyncio.to_thread(read) if len(body) > _LARGE else read()


async def _asked(
    policy: Served, worker: Worker[Question], body: DecideRequest, limits: Limits
) -> tuple[Edition, Any]:
    """The answer of a worker, in time."""
    n_rows, n_past = len(body.rows), len(body.past or ())
    if n_rows > limits.rows or n_past > 10 * limits.rows:
        most = limits.rows
        raise RequestError(
            413, f"rows must be at most {most} and past {10 * most}, but are {n_rows} and {n_past}"
        )
    if body.n_scenarios is not None and body.n_scenarios > limits.scenarios:
        raise RequestError(422, f"n_scenarios must be at most {limits.scenarios}")
    fields = body.model_dump(exclude={"policy"})
    future = policy.ask(worker, Question(**fields))
    try:
        async with asyncio.timeout(limits.seconds):
            edition, answer = await asyncio.wrap_future(future)
            return edition, answer
    except TimeoutError:
        raise RequestError(503, "the answer was not ready in time: ask again later", 5) from None
    except RequestError:
        raise
    except Exception as error:
        LOG.exception("failed", extra={"fields": {"policy": policy.name}})
        raise RequestError(500, f"the policy failed ({type(error).__name__})") from error


def _named(policy: Served, edition: Edition) -> dict[str, Any]:
    return {"policy": policy.name, "version": edition.version}


def _listed(error: ValidationError) -> str:
    """The first mistakes of a request, by their place."""
    found = [
        f"{'.'.join(str(part)[:80] for part in e['loc'][:3]) or 'the body'}: {e['msg']}"
        for e in error.errors(include_url=False, include_input=False, include_context=False)[:3]
    ]
    return "; ".join(dict.fromkeys(found))


def _documented(model: type[BaseModel], shelf: Shelf) -> dict[str, Any]:
    """The body of an endpoint in OpenAPI, with a request of each policy that can be sent."""
    examples = {}
    for name, policy in shelf.policies.items():
        value = example(policy.edition)
        if value is not None:
            examples[name] = {"value": value | ({"policy": name} if len(shelf.names) > 1 else {})}
    content = {"schema": model.model_json_schema(), "examples": examples}
    errors = {"400": "not strict JSON", "404": "no such policy", "413": "too large",
              "415": "not JSON", "422": "fields or rows that the policy cannot take",
              "429": "too many requests wait", "503": "not in time"}  # fmt: skip
    return {
        "requestBody": {"required": True, "content": {"application/json": content}},
        "responses": {code: {"description": text} for code, text in errors.items()},
    }
