"""The local server of the curation page: standard library only, for this machine only.

Every address begins with a random token, so that no other page of the browser and no other user of the machine can read
or write without having been given it; requests under another host name are refused (DNS rebinding). Images are asked
for by number, never by path. A verdict is on the disk before it is confirmed.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import parse_qs, urlsplit

from cuebench.errors import UserError
from cuebench.files import json_bytes
from cuebench.stimuli.curation.agreement import agreement
from cuebench.stimuli.curation.cues import SHOWN, Cues
from cuebench.stimuli.curation.verdict_log import FOLDER, VerdictLog, read_logs

HOST = "127.0.0.1"
LONGEST = 4096
"""Most bytes of a request."""
PAGE = {"": ("page.html", "text/html"), "page.js": ("page.js", "text/javascript"), "page.css": ("page.css", "text/css")}
"""Address → file beside this one, and its type."""
REASONS = ("not recognisable", "wrong mask", "noise", "texture in the shape", "shape in the texture", "grid shows")
"""Reasons that a judge can choose with one key: what the paper filters out, and what goes wrong most often."""
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; img-src 'self' data:; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(frozen=True)
class Curation:
    """What the page shows and where verdicts go.

    Parameters
    ----------
    cues : Cues
        The images.
    judge : str
        Name that the page begins with; empty: it asks.
    token : str
        First part of every address.
    """

    cues: Cues
    judge: str = ""
    token: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    lock: Lock = field(default_factory=Lock)

    @property
    def folder(self) -> Path:
        """Folder of the logs."""
        return self.cues.home / FOLDER

    def listing(self) -> dict[str, Any]:
        """Return what the page needs to know, without any path."""
        files = [{"name": f.name, "cue": f.cue, "label": f.label, "said": f.inspection} for f in self.cues.files]
        return {"title": self.cues.home.name, "judge": self.judge, "cues": files, "reasons": REASONS}

    def verdicts_of(self, judge: str) -> dict[str, Any]:
        """Return a judge's verdicts by the number of the cue; the most recent one last."""
        verdicts = VerdictLog(self.folder, judge).read()
        place = {f.name: i for i, f in enumerate(self.cues.files)}
        return {"verdicts": [[place[name], *v] for name, v in verdicts.items() if name in place]}

    def decide(self, judge: str, number: int, verdict: str, reason: str) -> dict[str, Any]:
        """Store a verdict."""
        if not 0 <= number < len(self.cues.files):
            raise UserError(f"there is no cue number {number}")
        with self.lock:
            VerdictLog(self.folder, judge).add(self.cues.files[number].name, verdict, reason)
        return {"saved": True}

    def undo(self, judge: str) -> dict[str, Any]:
        """Take back the most recent verdict of a judge and return the number of its cue."""
        with self.lock:
            name = VerdictLog(self.folder, judge).undo()
        return {"undone": next((i for i, f in enumerate(self.cues.files) if f.name == name), None)}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    curation: Curation

    @property
    def hosts(self) -> tuple[str, ...]:
        return f"{HOST}:{self.server_port}", f"localhost:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    timeout = 60
    server_version, sys_version = "cuebench", ""

    def do_GET(self) -> None:
        """Send the page, the list of cues, an image, a judge's verdicts or the agreement."""
        address = self._address()
        if address is None:
            return
        curation, query = self.server.curation, parse_qs(urlsplit(self.path).query)
        if address in PAGE:
            file, kind = PAGE[address]
            self._send(Path(__file__).with_name(file).read_bytes(), f"{kind}; charset=utf-8")
        elif address.startswith("image/"):
            self._send_image(address.removeprefix("image/"))
        elif address == "cues":
            self._answer(curation.listing)
        elif address == "verdicts":
            self._answer(lambda: curation.verdicts_of(query.get("judge", [""])[0]))
        elif address == "agreement":
            self._answer(lambda: agreement(read_logs(curation.folder)))
        else:
            self._refuse(HTTPStatus.NOT_FOUND, "no such page")

    def do_POST(self) -> None:
        """Store a verdict, or take one back."""
        address = self._address()
        if address is None:
            return
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > LONGEST or self.headers.get_content_type() != "application/json":
            self.close_connection = True
            self._refuse(HTTPStatus.BAD_REQUEST, f"expected JSON of at most {LONGEST} bytes")
            return
        try:
            given = json.loads(self.rfile.read(int(length)))
            texts = {name: str(given.get(name, "")) for name in ("judge", "verdict", "reason")}
            number = given.get("cue")
        except (ValueError, AttributeError, RecursionError):
            self._refuse(HTTPStatus.BAD_REQUEST, "expected a JSON object")
            return
        curation = self.server.curation
        if address == "undo":
            self._answer(lambda: curation.undo(texts["judge"]))
        elif address == "verdict" and isinstance(number, int):
            self._answer(lambda: curation.decide(texts["judge"], number, texts["verdict"], texts["reason"]))
        else:
            self._refuse(HTTPStatus.BAD_REQUEST, "expected a verdict about the number of a cue, or undo")

    def _address(self) -> str | None:
        """Return the address after the token; refuse requests without it or for another host."""
        token, _, rest = urlsplit(self.path).path.removeprefix("/").partition("/")
        if self.headers.get("Host", "") not in self.server.hosts:
            self._refuse(HTTPStatus.FORBIDDEN, "another host")
        elif not secrets.compare_digest(token.encode(), self.server.curation.token.encode()):
            self._refuse(HTTPStatus.FORBIDDEN, "open the address that `cuebench curate` has printed")
        else:
            return rest
        return None

    def _send_image(self, text: str) -> None:
        files = self.server.curation.cues.files
        if not text.isascii() or not text.isdigit() or len(text) > 9 or int(text) >= len(files):
            self._refuse(HTTPStatus.NOT_FOUND, "no such image")
            return
        path = files[int(text)].path
        try:
            data = path.read_bytes()
        except OSError as error:
            self._refuse(HTTPStatus.NOT_FOUND, f"{path.name}: {error.strerror}")
            return
        self._send(data, SHOWN[path.suffix.lower()])

    def _answer(self, answer: Any) -> None:
        try:
            self._send(json_bytes(answer()), "application/json")
        except UserError as error:
            self._refuse(HTTPStatus.BAD_REQUEST, error.message)
        except OSError as error:
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, f"not saved: {error}")

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        self.close_connection = True  # what is left of the request has not been read
        self._send(json_bytes({"error": message}), "application/json", status)

    def _send(self, data: bytes, kind: str, status: HTTPStatus = HTTPStatus.OK) -> None:
        headers: Mapping[str, str] = {
            **_HEADERS, "Content-Type": kind, "Content-Length": str(len(data)), "Cache-Control": "no-store",
        }  # fmt: skip
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing: the terminal belongs to the person who judges."""


def serve(curation: Curation, port: int = 0) -> ThreadingHTTPServer:
    """Return a server on this machine, ready for ``serve_forever``; port 0: one that is free."""
    try:
        server = _Server((HOST, port), _Handler)
    except OSError as error:
        raise UserError(
            f"port {port} cannot be used: {error.strerror}", "leave --port out: a free one is chosen"
        ) from None
    server.curation = curation
    return server


def address_of(server: ThreadingHTTPServer, curation: Curation) -> str:
    """Return what to open in a browser."""
    return f"http://{HOST}:{server.server_port}/{curation.token}/"
