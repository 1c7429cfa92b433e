"""Start the server of a study, in one process or several, and end it without losing an answer."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cuebench.errors import MissingExtra, UserError, all_problems
from cuebench.options import Option, parse
from cuebench.study.database import Database
from cuebench.study.folder import open_study
from cuebench.study.vendor import check_present

if TYPE_CHECKING:
    from fastapi import FastAPI

GRACE = 30
"""Seconds that requests have to end when the server is told to."""
CONNECTIONS = 65_536
"""Open files that are asked for: every connection is one, and many systems allow 1,024 unless they are asked."""
KEEP_ALIVE = 75
"""Seconds that a connection is kept: people think for longer than servers wait as a rule."""
_FOLDER, _DATABASE, _DRAFT = "CUEBENCH_STUDY", "CUEBENCH_STUDY_DATABASE", "CUEBENCH_STUDY_DRAFT"
"""How worker processes learn what they serve."""


_APPLICATION = "cuebench.study.serve:app"


NUMBERS = {
    "port": Option(8000, "0: one that is free", low=0, high=65_535),
    "workers": Option(1, "processes", low=1, high=1000),
}


class Options(NamedTuple):
    """How to serve.

    ``page``: jsPsych must be there; without it only simulated participants can take part. ``draft``: to be looked at,
    also where placeholders are left; the answers do not count.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    root_path: str = ""
    trusted_proxy: str = "127.0.0.1"
    page: bool = True
    draft: bool = False


def app() -> FastAPI:
    """Return the application that the environment asks for: what worker processes call."""
    from cuebench.study.server import create_app

    study = open_study(Path(os.environ[_FOLDER]), draft=bool(os.environ.get(_DRAFT)))
    database = Database(os.environ.get(_DATABASE) or study.database_url)
    return create_app(study, database)


def serve_study(folder: Path, database: str = "", options: Options | None = None) -> int:
    """Serve a study until the process is told to end; return the exit status.

    Nothing is logged for requests: a log of them would hold addresses of participants.
    """
    try:
        import uvicorn
    except ModuleNotFoundError as error:
        raise MissingExtra("a study", "study", error.name or "") from None

    options = options or Options()
    parse(NUMBERS, {name: getattr(options, name) for name in NUMBERS}, "a server")
    study = open_study(folder, draft=options.draft)  # problems are found here, not in a worker
    if study.gaps and not options.draft:
        raise all_problems(
            f"study {folder}: participants would read what is still to be filled in",
            study.gaps,
            f"fill it in; or look at it as it is: cuebench study serve {folder} --draft",
        )
    checked = Database(database or study.database_url)
    checked.prepare(study.facts)
    checked.close()
    if options.page:
        check_present()
    _allow_connections()
    listening = _socket(options)
    os.environ |= {_FOLDER: str(folder.resolve()), _DATABASE: database, _DRAFT: "1" if options.draft else ""}
    if options.workers == 1:
        listening.listen(2048)  # connections that come before the server is ready wait
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    print(f"study  http://{shown}:{port}/")
    print(f"admin  http://{shown}:{port}/admin  token: {study.secrets.admin_token}")
    draft = f"a draft: answers do not count; they go to {checked.shown_url}" if study.draft else ""
    gaps = [f"still to be filled in: {gap}" for gap in study.gaps]
    for note in filter(None, (draft, study.rules_note, *study.settings.notes, *gaps)):
        print(f"note: {note}")
    sys.stdout.flush()
    settings: dict[str, Any] = {
        "factory": True,
        "access_log": False,
        "log_level": "warning",
        "server_header": False,
        "root_path": options.root_path,
        "proxy_headers": True,
        "forwarded_allow_ips": options.trusted_proxy,
        "timeout_graceful_shutdown": GRACE,
        "timeout_keep_alive": KEEP_ALIVE,
    }
    if options.workers == 1:
        uvicorn.Server(uvicorn.Config(_APPLICATION, **settings)).run(sockets=[listening])
    else:
        listening.close()
        uvicorn.run(_APPLICATION, host=host, port=port, workers=options.workers, **settings)
    return 0


def _allow_connections() -> None:
    """Raise the number of open files as far as this user may: people who only hold connections stop nobody else."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows has no such limit
        return
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = CONNECTIONS if most == resource.RLIM_INFINITY else min(CONNECTIONS, most)
    if now != resource.RLIM_INFINITY and now < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def _socket(options: Options) -> socket.socket:
    """Return a socket that listens: a port that is taken is found before anything else is done."""
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((options.host, options.port))
    except OSError as error:
        why = error.strerror or str(error)
        raise UserError(f"cannot listen at {options.host}:{options.port}: {why}", "try --port 0") from None
    return listening
