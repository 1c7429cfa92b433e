"""Readers of a study of people: the design, the folder, and what comes over the network."""

from __future__ import annotations

import asyncio
import io
import json
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import checksums  # type: ignore[import-not-found]
from base import Reader, file, unchecked  # type: ignore[import-not-found]

from cuebench.stimuli.curation.cues import find_cues
from cuebench.stimuli.curation.server import Curation, _Handler
from cuebench.stimuli.curation.verdict_log import COLUMNS, read_logs
from cuebench.study import database as db
from cuebench.study.analysis import analyse
from cuebench.study.assign import assign
from cuebench.study.design import BUILT_IN, placeholders, read_design
from cuebench.study.exclusions import TEMPLATE, read_rules
from cuebench.study.folder import Study, open_study
from cuebench.study.limits import Limiter
from cuebench.study.markdown import to_html
from cuebench.study.server import create_app
from small_study import DESIGN, TIMELINE, answer_to, make_study  # type: ignore[import-not-found]

EXPORT = b"""participant,group,task,kind,stimulus,shape,texture,options,response,correct,finished,rt_ms,excluded
p0001,A,shape,trial,cat1-dog2,cat,dog,cat|dog,cat,true,true,640,
p0002,B,shape,trial,cat1-dog2,cat,dog,cat|dog,dog,false,true,512.5,
p0001,A,category,trial,dog1-cat2,dog,cat,cat|dog,dog,,true,90,reaction time below 150 ms
p0002,B,category,trial,dog1-cat2,dog,cat,cat|dog,,,true,,
p0001,A,same_kind,trial,dax-a|dax-b|wug-a,dax,a,dax-b|wug-a,dax-b,,true,700,
p0002,B,words,trial,photo,,dotted,dotted|woven,dotted|woven,,true,900,
"""
_ALL_TIMES = "\n[times]\n" + "".join(
    f"{name}_ms = 200\n" for name in ("fixation", "image", "mask", "response", "noise", "pause")
)
_WORDS = b"""title = "A study"
language = "English"
[page]
next = "Go on"
[options]
cat = "a cat"
[questions]
shape = "Which shape?"
[blocks.shape]
title = "Shapes"
text = "Look."
"""


@lru_cache
def small_study() -> tuple[Path, Study]:
    """Make a study once for this process; its folder is deleted with it."""
    place = tempfile.TemporaryDirectory()
    _kept.append(place)
    study = make_study(Path(place.name))
    design = study.folder / "design"
    (design / "icons").mkdir()
    (design / "icons" / "cat.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    (design / "design.toml").write_text(DESIGN + _ALL_TIMES)
    (design / "texts" / "en" / "words.toml").write_bytes(_WORDS)
    return Path(place.name), open_study(study.folder)


_kept: list[Any] = []


def copied(folder: Path) -> Path:
    """Return a copy of the small study in the folder under attack."""
    copy = folder / "study"
    if not copy.is_dir():
        shutil.copytree(small_study()[1].folder, copy)
    return copy


def with_file(name: str, use: Callable[[Path], object], under: str = "") -> Callable[[bytes, Path], object]:
    """Return a reader of a study folder (or of a folder below it) in which one file has other bytes."""

    def of_bytes(data: bytes, folder: Path) -> object:
        study = copied(folder)
        path = study / under / name
        before = path.read_bytes()
        path.write_bytes(data)
        try:
            return use(study / under)
        finally:
            path.write_bytes(before)

    return of_bytes


def use_design(folder: Path) -> None:
    """Read a design and do with it what the server does: its page, its texts, the trials of somebody."""
    design = read_design(folder)
    placeholders(design.shown(design.languages))
    for language in design.languages:
        json.dumps([design.page(language), design.title(language), design.words(language)])
        html = "".join(to_html(design.text(language, name)) for name in design.texts[language])
        assert "<script" not in html.lower()
    if sum(block.count for block in design.blocks) <= 100:
        assign(design, list(small_study()[1].images.values()), 1, 0)


def use_study(folder: Path) -> None:
    """Open a study and draw the trials of two people."""
    study = open_study(folder)
    assert all("/" not in image.file for image in study.images.values())
    for slot in (0, 1):
        study.assign(slot)
    assert study.facts.identity == study.settings.identity
    assert len(study.secrets.token(3)) > 10


def of_built_in(name: str) -> tuple[bytes, ...]:
    """Return a file of every design that is shipped."""
    return tuple(path.read_bytes() for path in sorted(BUILT_IN.glob(f"*/{name}")))


# ------------------------------------------------------------------------------------------------- the network


class Served:
    """The application of a study, asked without a network; it begins anew after some thousand requests."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.asked = self.shown = 0

    def begin(self) -> None:
        """Serve a new copy of the study."""
        if self.shown:
            self.app.state.sessions.close()
            self.place.cleanup()
        self.place = tempfile.TemporaryDirectory()
        folder = Path(self.place.name) / "study"
        shutil.copytree(small_study()[1].folder, folder)
        study = open_study(folder)
        settings = replace(study.settings, requests_per_second=0, starts_per_minute=0)
        self.study = replace(study, settings=settings)
        self.app = create_app(self.study, db.Database(self.study.database_url))
        self.shown += 1

    def request(self, data: bytes) -> tuple[int, bytes]:
        """Send a request of a head and a body; return status and body of the response."""
        if self.asked % 3000 == 0:
            self.begin()
        if self.asked % 30 == 0:  # somebody new, who has answered nothing yet
            self.asked += 1
            _, body = self.request(b'POST /api/participants\n\n{"consent": true}')
            self.token = json.loads(body)["token"]
        self.asked += 1
        head, _, body = data.partition(b"\n\n")
        words, *lines = head.replace(b"$TOKEN", self.token.encode() if self.asked > 2 else b"").split(b"\n")
        words = words.replace(b"$IMAGE", next(iter(self.study.images.values())).file.encode())
        method, _, address = words.partition(b" ")
        path, _, query = address.partition(b"?")
        headers = [(k.strip().lower(), v.strip()) for k, _, v in (line.partition(b":") for line in lines) if k.strip()]
        headers = [(k, v.replace(b"$ADMIN", self.study.secrets.admin_token.encode())) for k, v in headers]
        headers += [] if any(k == b"content-type" for k, _ in headers) else [(b"content-type", b"application/json")]
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http",
            "method": method.decode("latin-1").upper() or "GET", "path": path.decode("utf-8", "replace") or "/",
            "raw_path": path, "query_string": query, "root_path": "", "headers": headers,
            "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80),
        }  # fmt: skip
        with patch.object(Limiter, "wait", return_value=0.0):
            return self.loop.run_until_complete(self._answer(scope, body))

    async def _answer(self, scope: dict[str, Any], body: bytes) -> tuple[int, bytes]:
        sent: list[Any] = []
        waiting = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Any:
            return waiting.pop() if waiting else {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        return sent[0]["status"], b"".join(m.get("body", b"") for m in sent[1:])


@lru_cache
def served() -> Served:
    """Return the one application of this process."""
    return Served()


def ask_study(data: bytes, folder: Path) -> None:
    """Send a request to the server of a study: no error of the server, and every refusal is JSON that says why."""
    status, body = served().request(data)
    assert 200 <= status < 500, f"status {status}"
    if status >= 400 and data.partition(b" ")[2].startswith(b"/api/"):
        assert json.loads(body)["detail"], "a refusal without a reason"


class _Socket:
    """What a handler of the standard library needs of a connection."""

    def __init__(self, data: bytes) -> None:
        self.received, self.sent = io.BytesIO(data), b""

    def makefile(self, mode: str, _: int = -1) -> io.BytesIO:
        return self.received

    def sendall(self, data: bytes) -> None:
        self.sent += data

    def settimeout(self, _: float) -> None: ...


@lru_cache
def curation() -> Curation:
    """Return the cues of a small set to be judged."""
    place = tempfile.TemporaryDirectory()
    _kept.append(place)
    shutil.copytree(small_study()[0] / "data" / "cue_conflict" / "stimuli", Path(place.name) / "set")
    return Curation(find_cues(Path(place.name) / "set"), token="token")


class _Quiet(_Handler):
    def log_message(self, format: str, *args: Any) -> None: ...


def ask_curation(data: bytes, folder: Path) -> None:
    """Send a request to the server of the curation page: one reply, and none of its own errors."""
    log = curation().folder / "anna.csv"
    if log.is_file() and log.stat().st_size > 100_000:
        log.unlink()
    head, _, body = data.partition(b"\n\n")
    first, *rest = head.split(b"\n")
    lines = [first + b" HTTP/1.1" * (b"HTTP" not in first), *rest, b"Host: localhost:80", b"Connection: close"]
    if not any(line.lower().startswith(b"content-length") for line in lines):
        lines.append(b"Content-Length: %d" % len(body))
    socket = _Socket(b"\r\n".join(lines) + b"\r\n\r\n" + body)
    server: Any = SimpleNamespace(curation=curation(), hosts=("localhost:80",))
    _Quiet(socket, ("127.0.0.1", 1), server)  # type: ignore[arg-type]
    if socket.sent.startswith(b"HTTP/"):
        assert int(socket.sent.split()[1]) < 500 or socket.sent.split()[1] in (b"501", b"505"), socket.sent[:200]


_TOKEN = b"\nAuthorization: Bearer $TOKEN\n\n"
_ADMIN = b"\nAuthorization: Bearer $ADMIN\n\n"
_REQUESTS = (
    b"POST /api/answers" + _TOKEN + json.dumps(answer_to({"position": 0, "options": ["cat"]})).encode(),
    b"POST /api/answers" + _TOKEN + json.dumps({
        "position": 1, "response": ["dog"], "rt_ms": 1.5, "planned_ms": 200, "shown_ms": 199.8, "text": "",
        "client": {"dropped": 0, "focus": True, "zoom": 1.0, "agent": "x", "none": None}}).encode(),
    b'POST /api/participants\n\n{"consent": true, "language": "de", "entry": {"PROLIFIC_PID": "5f1"}}',
    b'POST /api/participants\n\n{"consent": true, "entry": {"workerId": "A", "assignmentId": "B"}}',
    b"GET /api/session" + _TOKEN, b"POST /api/finish" + _TOKEN + b"{}", b"GET /api/study?lang=de\n\n",
    b"GET /health\n\n", b"GET /images/$IMAGE\n\n", b"GET /\n\n", b"GET /web/api.js\n\n", b"GET /admin\n\n",
    b"GET /api/admin/progress" + _ADMIN, b"GET /api/admin/agreement" + _ADMIN, b"GET /api/admin/export.csv" + _ADMIN,
    b"POST /api/admin/exclude" + _ADMIN + b'{"participant": "p0001", "reason": "asked for it"}',
)  # fmt: skip
_CURATION = (
    b'POST /token/verdict\nContent-Type: application/json\n\n{"judge": "anna", "cue": 1, "verdict": "keep"}',
    b'POST /token/undo\nContent-Type: application/json\n\n{"judge": "anna"}',
    b"GET /token/verdicts?judge=anna\n\n", b"GET /token/\n\n", b"GET /token/cues\n\n", b"GET /token/agreement\n\n",
    b"GET /token/image/0\n\n",
)  # fmt: skip


def logs(path: Path) -> None:
    """Read the verdicts of judges."""
    read_logs(path.parent)


_LOG = (",".join(COLUMNS) + "\n2026-01-01,anna,cat_1,keep,\n2026-01-02,anna,dog_1,reject,noise\n").encode()
_UNDONE = _LOG + b"2026-01-03,anna,dog_1,undo,\n"
_DESIGN = "design"


def study_file(name: str) -> bytes:
    """Return a file of the small study."""
    return (small_study()[1].folder / name).read_bytes()


READERS: dict[str, Reader] = {
    "design_toml": Reader(
        with_file("design.toml", use_design, _DESIGN),
        ((DESIGN + _ALL_TIMES).encode(), *of_built_in("design.toml")),
        "toml",
    ),
    "design_timeline": Reader(
        with_file("timeline.json", use_design, _DESIGN),
        (json.dumps(TIMELINE).encode(), *of_built_in("timeline.json")),
        "json",
    ),
    "design_words": Reader(
        with_file("texts/en/words.toml", use_design, _DESIGN), (_WORDS, *of_built_in("texts/de/words.toml")), "toml"
    ),
    "design_text": Reader(
        with_file("texts/en/consent.md", use_design, _DESIGN),
        (
            b"# Consent\n\n[a](http://x) ![b](c) `d` | e |\n|---|\n| f |\n\n<script>",
            *of_built_in("texts/en/consent.md"),
        ),
        "text",
    ),
    "design_icon": Reader(with_file("icons/cat.svg", use_design, _DESIGN), (b"<svg><path d='M0 0'/></svg>",), "text"),
    "exclusion_rules": Reader(file("exclusions.toml", read_rules), (TEMPLATE.encode(),), "toml"),
    "study_toml": Reader(with_file("study.toml", use_study), (study_file("study.toml"),), "toml"),
    "study_images": Reader(
        with_file("stimuli.parquet", use_study),
        (study_file("stimuli.parquet"), unchecked(study_file("stimuli.parquet"))),
        "parquet",
        checksums.parquet,
    ),
    "study_secret": Reader(with_file("secret", use_study), (study_file("secret"),), "toml"),
    "study_export": Reader(file("a.csv", analyse), (EXPORT,), "csv"),
    "study_requests": Reader(ask_study, _REQUESTS, "http"),
    "curation_requests": Reader(ask_curation, _CURATION, "http"),
    "curation_log": Reader(file("anna.csv", logs), (_LOG, _UNDONE), "csv"),
}
