"""What stands before every request: a limit on the size of bodies, and headers that keep the page to itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from contextlib import suppress
from typing import Any

LARGEST_BODY = 16 * 1024
"""Most bytes of a request: an answer has a few hundred."""
SLOWEST_BODY = 30.0
"""Seconds that the next piece of a body may take; a client that sends nothing more is disconnected."""

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]


def security_headers(frame_ancestors: Sequence[str] = ()) -> list[tuple[bytes, bytes]]:
    """Return the headers of every response.

    Parameters
    ----------
    frame_ancestors : sequence of str
        Hosts that may show the study in a frame, as MTurk does; default: nobody.
    """
    # jsPsych and its plug-ins set style attributes; scripts, also inline ones, come from this server only.
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; "
        "img-src 'self' data: blob:; media-src 'self' blob:; font-src 'self'; connect-src 'self'; "
        "manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors "
    )
    headers = {
        "content-security-policy": policy + (" ".join(frame_ancestors) or "'none'"),
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "permissions-policy": "camera=(), microphone=(), geolocation=(), fullscreen=(self)",
    }
    if not frame_ancestors:
        headers["x-frame-options"] = "DENY"
    return [(name.encode(), value.encode()) for name, value in headers.items()]


class Guard:
    """Middleware: adds the headers, refuses large and unfinished bodies, lets caches keep nothing of ``/api``."""

    def __init__(self, app: Application, headers: Sequence[tuple[bytes, bytes]]) -> None:
        self._app, self._headers = app, list(headers)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if not scope.get("query_string", b"").isascii():  # a browser escapes everything else
            await self._refuse(send, *_UNREADABLE)
            return
        if _announced(scope) > LARGEST_BODY:
            await self._refuse(send, *_LARGE)
            return
        size, whole, late, begun = 0, False, False, False

        async def guarded_receive() -> Message:
            nonlocal size, whole, late
            try:
                async with asyncio.timeout(None if whole else SLOWEST_BODY):
                    message: Message = await receive()
            except TimeoutError:
                late = True
                raise _Refused from None
            size += len(message.get("body", b""))
            whole = not message.get("more_body", False)
            if size > LARGEST_BODY:
                raise _Refused
            return message

        async def guarded_send(message: Message) -> None:
            nonlocal begun
            if size <= LARGEST_BODY and not late:
                begun = True
                await self._respond(send, message)

        with suppress(_Refused):
            await self._app(scope, guarded_receive, guarded_send)
        if (size > LARGEST_BODY or late) and not begun:  # whatever was made of it
            await self._refuse(send, *(_LATE if late else _LARGE))

    async def _refuse(self, send: Send, status: int, body: bytes) -> None:
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await self._respond(send, {"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _respond(self, send: Send, message: Message) -> None:
        if message["type"] == "http.response.start":
            names = {name for name, _ in message["headers"]}
            kept = [] if b"cache-control" in names else [(b"cache-control", b"no-store")]
            message = {**message, "headers": [*message["headers"], *self._headers, *kept]}
        await send(message)


_LARGE = (413, b'{"detail":"the request is too large","code":"too_large"}')
_UNREADABLE = (400, b'{"detail":"the address is not ASCII","code":"unreadable"}')
_LATE = (408, b'{"detail":"the request was never finished","code":"too_slow"}')


class _Refused(Exception):
    """A body is larger than any request of the page, or does not come to its end."""


def _announced(scope: Message) -> int:
    text = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    return int(text) if text.isdigit() else 0
