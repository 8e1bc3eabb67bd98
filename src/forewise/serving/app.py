"""The endpoints: what can be asked, as an ASGI application."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel, ValidationError

from forewise import __version__
from forewise.serving.assets import Asset, assets
from forewise.serving.batching import Worker
from forewise.serving.card import example, model_card
from forewise.serving.catalogue import form, rows_on
from forewise.serving.deciding import Edition, Question
from forewise.serving.gate import App, Gate
from forewise.serving.reading import (
    DecideRequest,
    ExplainRequest,
    RequestError,
    RowsRequest,
    WhatIfRequest,
    parsed,
)
from forewise.serving.shelf import Limits, Served, Shelf
from forewise.serving.telemetry import LOG, warnings_heard
from forewise.serving.whatif import WhatIf

_LARGE = 50_000  # bytes of a body that is read beside the event loop
_MOVED = {"parameters", "factors", "risk", "trial", "about", "scenarios"}
_Body = TypeVar("_Body", bound=RowsRequest)
_Q = TypeVar("_Q")


def create_app(shelf: Shelf, token: str | None = None, local: bool = False) -> App:
    """The service of a shelf of policies; the shelf ends with it.

    Parameters
    ----------
    shelf : Shelf
    token : str, optional
        Required in the header of all requests but ``/health``, ``/ready`` and the page itself.
    local : bool
        Refuse requests that call the service by another name than ``localhost``.
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
    files = assets()
    _add_page(app, files)

    @app.exception_handler(RequestError)
    async def refused(_: Request, error: RequestError) -> JSONResponse:
        retry = error.retry_after
        headers = None if retry is None else {"Retry-After": str(retry)}
        return JSONResponse({"error": str(error)}, error.status, headers)

    page = frozenset(files)
    return Gate(app, shelf.limits, shelf.metrics, page, lambda: shelf.full, token, local)


def _add_decisions(app: FastAPI, shelf: Shelf) -> None:
    """The endpoints that compute."""
    limits = shelf.limits

    @app.post("/decide", openapi_extra=_documented(DecideRequest, shelf))
    async def decide(request: Request) -> JSONResponse:
        """Decide for one or many rows; each has its status, decision and certificate."""
        body = await _read(request, DecideRequest)
        policy = shelf.find(body.policy)
        question = _question(body, limits)
        edition, answer = await _asked(
            policy, policy.deciding, question, limits, len(question.rows)
        )
        return JSONResponse(_named(policy, edition) | vars(answer))

    @app.post("/explain", openapi_extra=_documented(ExplainRequest, shelf))
    async def explain(request: Request) -> JSONResponse:
        """Why a row is decided as it is: scenarios, constraints, prices, similar days."""
        body = await _read(request, ExplainRequest)
        policy = shelf.find(body.policy)
        question = _question(body, limits)
        edition, answer = await _asked(policy, policy.explaining, question, limits)
        return JSONResponse(_named(policy, edition) | answer)

    @app.post("/policies/{name}/whatif", openapi_extra=_documented(WhatIfRequest, shelf))
    async def whatif(name: str, request: Request) -> JSONResponse:
        """Decide a row with other costs, limits or risk; what surrounds the decision."""
        body = await _read(request, WhatIfRequest)
        policy = shelf.find(name)
        moved = body.model_dump(include=_MOVED)
        asked = WhatIf(_question(body, limits), **moved)
        edition, answer = await _asked(policy, policy.wondering, asked, limits)
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

    @app.get("/policies/{name}/form")
    async def fields(name: str) -> JSONResponse:
        """What can be asked of a policy: its columns, series and days."""
        found = shelf.find(name)
        return JSONResponse(await asyncio.to_thread(form, found.name, found.edition))

    @app.get("/policies/{name}/rows")
    async def rows(name: str, day: str, series: str | None = None) -> JSONResponse:
        """The rows of a day, of all series or one: as the table has them, or as assumed."""
        found = shelf.find(name)
        most = shelf.limits.rows
        return JSONResponse(await asyncio.to_thread(rows_on, found.edition, day, series, most))

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


def _add_page(app: FastAPI, files: Mapping[str, Asset]) -> None:
    """The page at / and its files; they are the same for everybody, and need no token."""

    async def page(request: Request) -> Response:
        asset = files[request.url.path]
        return asset.response("gzip" in request.headers.get("accept-encoding", ""))

    for path in files:
        app.add_api_route(path, page, methods=["GET"], include_in_schema=False)


async def _read(request: Request, model: type[_Body]) -> _Body:
    """The body as a checked request."""
    body = await request.body()

    def read() -> _Body:
        try:
            return model.model_validate(parsed(body))
        except ValidationError as error:
            raise RequestError(422, _listed(error)) from None

    return await asyncio.to_thread(read) if len(body) > _LARGE else read()


def _question(body: RowsRequest, limits: Limits) -> Question:
    """What is asked about rows, within the limits."""
    n_rows, n_past = len(body.rows), len(body.past or ())
    if n_rows > limits.rows or n_past > 10 * limits.rows:
        most = limits.rows
        raise RequestError(
            413, f"rows must be at most {most} and past {10 * most}, but are {n_rows} and {n_past}"
        )
    if body.n_scenarios is not None and body.n_scenarios > limits.scenarios:
        raise RequestError(422, f"n_scenarios must be at most {limits.scenarios}")
    return Question(
        rows=body.rows,
        past=body.past,
        given=body.given,
        n_scenarios=body.n_scenarios,
        random_state=body.random_state,
    )


async def _asked(
    policy: Served, worker: Worker[_Q], question: _Q, limits: Limits, weight: int = 1
) -> tuple[Edition, Any]:
    """The answer of a worker, in time."""
    future = policy.ask(worker, question, weight)
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
            several = len(shelf.names) > 1 and "policy" in model.model_fields
            examples[name] = {"value": value | ({"policy": name} if several else {})}
    content = {"schema": model.model_json_schema(), "examples": examples}
    errors = {"400": "not strict JSON", "404": "no such policy", "413": "too large",
              "415": "not JSON", "422": "fields or rows that the policy cannot take",
              "429": "too many requests wait", "503": "not in time"}  # fmt: skip
    return {
        "requestBody": {"required": True, "content": {"application/json": content}},
        "responses": {code: {"description": text} for code, text in errors.items()},
    }
