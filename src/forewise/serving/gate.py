"""What stands before the endpoints: token, body, number of requests, log. Pure ASGI."""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from forewise.serving.reading import RequestError
from forewise.serving.shelf import Limits
from forewise.serving.telemetry import LOG, Metrics

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

#: What a container or a load balancer asks for without a token.
OPEN = frozenset({"/health", "/ready"})
_LOOPBACK = frozenset({b"localhost", b"127.0.0.1", b"[::1]"})
#: Of every answer; the page's files have a policy of their own.
_SAFE = [(b"x-content-type-options", b"nosniff"), (b"cross-origin-resource-policy", b"same-origin")]
_NO_PAGE = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'")


class Gate:
    """Middleware: who may ask, how much, and what was asked.

    Parameters
    ----------
    app : ASGI application
    limits : Limits
    metrics : Metrics
    page : set of str
        Paths of the page's files, which need no token.
    full : callable
        Whether requests for decisions are to be refused before they are read.
    token : str, optional
        What ``Authorization: Bearer`` must have.
    local : bool
        Only answer who calls this service by a name of this computer. A page of another site could
        else point its own name here, and read what has no token.
    """

    def __init__(
        self,
        app: App,
        limits: Limits,
        metrics: Metrics,
        page: frozenset[str],
        full: Callable[[], bool],
        token: str | None,
        local: bool = False,
    ) -> None:
        self._app, self._limits, self._metrics = app, limits, metrics
        self._open_to_all, self._full, self._local = OPEN | page, full, local
        self._token = None if token is None else token.encode()
        self._open = 0

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return  # nothing else is spoken here
        start, status = time.perf_counter(), 500
        number = secrets.token_hex(8)

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [*message["headers"], *_SAFE, (b"x-request-id", number.encode())]
                if scope["path"] not in self._open_to_all:
                    headers.append(_NO_PAGE)
                message["headers"] = headers
            await send(message)

        self._open += 1
        try:
            body = await self._admitted(scope, receive)
            await self._app(scope, _replayed(body, receive), answer)
        except RequestError as error:
            await refuse(error, answer)
        finally:
            self._open -= 1
            seconds = time.perf_counter() - start
            # Known to who routed the request; whatever else was asked for shares a label.
            path = getattr(scope.get("route"), "path", "other")
            self._metrics.requests.labels(path, str(status)).inc()
            self._metrics.seconds.labels(path).observe(seconds)
            fields = {"method": scope["method"], "path": path, "status": status}
            fields |= {"ms": round(1e3 * seconds, 2), "request": number}
            LOG.info("request", extra={"fields": fields})

    async def _admitted(self, scope: MutableMapping[str, Any], receive: Receive) -> bytes:
        """The body of a request that may pass; a `RequestError` otherwise."""
        headers = dict(scope["headers"])
        if self._local and _name(headers.get(b"host", b"")) not in _LOOPBACK:
            raise RequestError(421, _FOREIGN)
        if self._token is not None and scope["path"] not in self._open_to_all:
            scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
            right = hmac.compare_digest(token.strip(), self._token)
            if scheme.lower() != b"bearer" or not right:
                raise RequestError(401, "the header Authorization: Bearer must have the token")
        if self._open > self._limits.connections and scope["path"] not in OPEN:
            raise RequestError(503, "too many requests at a time: ask again later", 1)
        if scope["method"] == "POST":
            _check_type(headers)
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and len(length) < 20 and int(length) > self._limits.body_bytes:
            raise self._too_large
        try:
            async with asyncio.timeout(self._limits.seconds):
                body = await self._body(receive)
        except TimeoutError:
            raise RequestError(408, "the body did not arrive in time") from None
        if scope["path"] == "/decide" and self._full():
            raise RequestError(429, "too many requests wait: ask again later", 1)
        return body

    async def _body(self, receive: Receive) -> bytes:
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise RequestError(400, "the body was cut short")
            body += message.get("body", b"")
            if len(body) > self._limits.body_bytes:
                raise self._too_large
            if not message.get("more_body", False):
                return bytes(body)

    @property
    def _too_large(self) -> RequestError:
        most = self._limits.body_bytes
        return RequestError(413, f"the body must have at most {most} bytes: send fewer rows")


def _name(host: bytes) -> bytes:
    """The name in a Host header, without the port."""
    name, _, port = host.rpartition(b":")
    return (name if port.isdigit() else host).lower()


_FOREIGN = (
    "without a token this service is asked as localhost or 127.0.0.1, with its port: to give it "
    "another name, start it with a token"
)


def _check_type(headers: dict[bytes, bytes]) -> None:
    if headers.get(b"content-encoding", b"identity").lower() != b"identity":
        raise RequestError(415, "the body must not be compressed")
    kind, _, rest = headers.get(b"content-type", b"").decode("latin-1").lower().partition(";")
    charset = rest.replace(" ", "").replace('"', "")
    if kind.strip() != "application/json" or charset not in ("", "charset=utf-8"):
        raise RequestError(415, "Content-Type must be application/json, in UTF-8")


def _replayed(body: bytes, receive: Receive) -> Receive:
    """A `receive` that has the whole body first."""
    parts: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return parts.pop() if parts else await receive()

    return replay


async def refuse(error: RequestError, send: Send) -> None:
    """Answer with what went wrong."""
    body = json.dumps({"error": str(error)}).encode()
    headers = [(b"content-type", b"application/json")]
    headers += [(b"content-length", str(len(body)).encode())]
    if error.retry_after is not None:
        headers.append((b"retry-after", str(error.retry_after).encode()))
    if error.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if error.status in (408, 413):
        headers.append((b"connection", b"close"))  # the rest of the body is not read
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
