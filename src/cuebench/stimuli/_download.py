"""Download a file over HTTP into a ``.part`` file: resume, bounded retries, no web page in place of data."""

from __future__ import annotations

import http.client
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from functools import cache
from pathlib import Path
from typing import Any

from cuebench._version import __version__
from cuebench.files import write_error
from cuebench.stimuli.structure import looks_like_html

CONNECT_TIMEOUT, READ_TIMEOUT = 3.0, 30.0
ATTEMPTS = 3
PAUSE = 0.3  # seconds before the second attempt, doubled for the third
CHUNK = 1 << 18


LARGEST = 64 << 30
"""Most bytes that are received where the size of a file is not known."""


class Refused(Exception):
    """The file cannot be had from this address: try the next mirror."""


class Unreachable(Refused):
    """No server answers at this address: do not ask it for other files either."""


class _Cut(Exception):
    """The connection ended early: the part that arrived is kept, try again from there."""


def download(url: str, part: Path, size: int = 0) -> None:
    """Complete ``part`` from ``url``; an unfinished file is continued, not fetched again.

    Raises
    ------
    Refused
        After ``ATTEMPTS`` attempts, or at once where another attempt cannot help (404, a web page).
    UserError
        When the disk is full or the folder cannot be written to.
    """
    if urllib.parse.urlsplit(url).scheme not in {"http", "https"}:
        raise Refused(f"{url}: only http and https addresses can be fetched")
    reason, reached = "", False
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(PAUSE * 2 ** (attempt - 1))
        try:
            return _once(url, part, size)
        except urllib.error.HTTPError as error:
            reason, reached = f"HTTP {error.code} {error.reason}", True
            if error.code < 500 and error.code not in {408, 429}:
                break
        except _Cut as error:
            reason, reached = str(error), True
        except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
            reason = f"no answer ({getattr(error, 'reason', None) or error})"
    if not reached:
        raise Unreachable(reason)
    raise Refused(f"{url}: {reason}")


def _once(url: str, part: Path, size: int) -> None:
    have = part.stat().st_size if part.is_file() else 0
    if size and have == size:
        return
    if size and have > size:
        part.unlink()
        have = 0
    request = urllib.request.Request(url, headers={"User-Agent": f"cuebench/{__version__}"})
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        answer = _opener().open(request, timeout=CONNECT_TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code == 416 and have:  # the part is longer than the file, or complete: only a fresh start can tell
            part.unlink(missing_ok=True)
            raise _Cut("the server could not continue the partial file") from error
        raise
    with answer:
        if "html" in answer.headers.get("Content-Type", ""):
            raise Refused(f"{url}: a web page came instead of the file")
        continues = answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        _receive(answer, url, part, have if continues else 0, size or LARGEST)


def _receive(answer: Any, url: str, part: Path, start: int, most: int) -> None:
    """Write the answer to ``part`` from ``start`` on; more than ``most`` bytes in all are refused."""
    header, got = answer.headers.get("Content-Length") or "", 0
    announced = int(header) if header.isascii() and header.isdigit() and len(header) < 19 else None
    if announced is not None and start + announced > most:
        part.unlink(missing_ok=True)
        raise Refused(f"{url}: the server announces {start + announced:,} bytes, expected {most:,} at most")
    try:
        file = part.open("r+b" if start else "wb")
    except OSError as error:
        raise write_error(part, error) from error
    with file:
        file.seek(start)
        while chunk := answer.read(CHUNK):
            if not start and not got and looks_like_html(chunk[:64]):
                raise Refused(f"{url}: a web page came instead of the file")
            got += len(chunk)
            if start + got > most:
                file.close()
                part.unlink(missing_ok=True)
                raise Refused(f"{url}: more than {most:,} bytes came")
            _write(file, chunk, part)
        file.flush()
        os.fsync(file.fileno())
    if announced is not None and got < announced:
        raise _Cut(f"the connection ended after {start + got:,} of {start + announced:,} bytes")


def _write(file: Any, chunk: bytes, part: Path) -> None:
    # Apart from reading: a full disk and a lost connection are both an OSError, and mean different things.
    try:
        file.write(chunk)
    except OSError as error:
        raise write_error(part, error) from error


# Connecting must fail soon, but a slow server may pause between two chunks: two different time limits.
class _HTTPConnection(http.client.HTTPConnection):
    def connect(self) -> None:
        super().connect()
        self.sock.settimeout(READ_TIMEOUT)


class _HTTPSConnection(http.client.HTTPSConnection):
    def connect(self) -> None:
        super().connect()
        self.sock.settimeout(READ_TIMEOUT)


class _HTTPHandler(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(_HTTPConnection, req)


class _HTTPSHandler(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(_HTTPSConnection, req)


@cache
def _opener() -> urllib.request.OpenerDirector:
    # One for the whole process: it loads the system's certificates.
    return urllib.request.build_opener(_HTTPHandler, _HTTPSHandler)
