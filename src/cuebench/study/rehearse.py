"""Rehearse a study: simulated participants go through the whole of it, in a real browser or over HTTP.

A server of its own is started on this machine with a database of its own: the answers of a rehearsal never mix with
those of people. What the simulated people answer is planted (``study/simulate.py``): the analysis must find it again.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from cuebench.errors import UserError
from cuebench.options import SEED, Option, parse
from cuebench.study.database import Database, sqlite_url
from cuebench.study.export import write_export
from cuebench.study.folder import Study, open_study
from cuebench.study.simulate import Person, person, population
from cuebench.study.types import Answer, trial_from
from cuebench.study.visitor import Visit, own_seconds, visit_all, with_truth

NUMBERS = {
    "participants": Option(4, "simulated participants", low=1, high=10_000),
    "at_once": Option(0, "browsers at the same time", low=0, high=64),
    "seed": SEED,
}
BROWSERS = 2
"""Browsers at once for each core: most of a session is waiting."""
AT_ONCE = 32
"""Participants over HTTP at the same time; each is kept to the rate of the study."""


@dataclass
class Rehearsal:
    """What happened in a rehearsal.

    Parameters
    ----------
    finished : list of str
        Names of the participants that came to the end.
    codes : list of str
        Their completion codes.
    problems : list of str
        Errors of the page, requests that failed or left the server, violations of the content policy.
    answers : int
        Answers in the database; fewer than the participants gave are a problem.
    seconds : float
        How long it took.
    own_seconds : float
        What noise, pauses and brief images of one session take by its design.
    hurried : bool
        These were left out, and no times were stored.
    """

    finished: list[str] = field(default_factory=list)
    codes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    answers: int = 0
    seconds: float = 0.0
    own_seconds: float = 0.0
    hurried: bool = False


class Running(NamedTuple):
    """A server that runs for a rehearsal."""

    address: str
    database: str


@contextlib.contextmanager
def running_server(folder: Path, database: str = "", *, draft: bool = False) -> Iterator[Running]:
    """Serve a study on this machine while the context lasts, with a database that is not the study's own."""
    with tempfile.TemporaryDirectory(prefix="cuebench-rehearsal-") as place:
        url = database or sqlite_url(Path(place) / "rehearsal.sqlite")
        command = [sys.executable, "-m", "cuebench", "study", "serve", str(folder), "--port", "0", "--database", url]
        command += ["--draft"] if draft else []
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                _, error = process.communicate()
                raise UserError(
                    f"the server does not start: {error.strip()[:2000]}", f"try: cuebench study serve {folder}"
                )
            address = line.split()[1].rstrip("/")
            _wait_for(address, process)
            yield Running(address, url)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    stream.close()


def _wait_for(address: str, process: subprocess.Popen[str], seconds: float = 60) -> None:
    """Wait until the server answers."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(OSError), contextlib.closing(Client(address)) as client:
            client.ask("GET", "/health")
            return
        time.sleep(0.1)
    raise UserError(f"the server at {address} does not answer", "run the same command again")


def rehearse(
    folder: Path,
    *,
    participants: int = 4,
    observer: str = "ideal:mixture?shape=0.7",
    browser: bool = True,
    devices: Sequence[str] = ("desktop", "phone"),
    hurry: bool = False,
    at_once: int = 0,
    seed: int = 0,
    out: Path | None = None,
    screenshots: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Rehearsal:
    """Let simulated participants go through a study, and export their answers.

    Parameters
    ----------
    folder : Path
        The study folder; its own database is not touched.
    participants : int
        How many.
    observer : str
        Whom they are drawn from; see ``study.simulate.population``.
    browser : bool
        In Chromium; else over HTTP.
    devices : sequence of str
        ``desktop`` and ``phone``, in turn.
    hurry : bool
        In the browser: noise, pauses and brief images take one frame, nobody hesitates, and no times are stored.
    at_once : int
        Browsers at the same time; 0: two for each core.
    seed : int
        Of the simulated people.
    out : Path, optional
        Where their answers are exported to: ``.parquet`` or ``.csv``.
    screenshots : Path, optional
        Folder for a picture of every kind of page, from the first participant of each device.
    progress : callable, optional
        Called with the number of answers that are given and of all.
    """
    given_numbers = {"participants": participants, "at_once": at_once, "seed": seed}
    participants, at_once, seed = parse(NUMBERS, given_numbers, "a rehearsal").values()
    study = open_study(folder)
    served = replace(study, draft=bool(study.gaps))  # texts need not be finished for a rehearsal
    wanted = study.settings.participants
    if 0 < wanted < participants:
        hint = f"--participants {wanted}, or change participants in {folder / 'study.toml'}"
        raise UserError(f"the study takes {wanted:,} people, and {participants:,} are to rehearse it", hint)
    if hurry and not browser:
        raise UserError("--hurry is for browsers: over HTTP nobody waits", "leave out --hurry or --http")
    people = [person(population(observer), number, seed) for number in range(participants)]
    trials = study.assign(0)[1]
    given = participants * len(trials)
    result = Rehearsal(own_seconds=own_seconds(study, trials), hurried=hurry)
    answered = _counter(given, progress)
    begun = time.perf_counter()
    with running_server(folder, draft=served.draft) as server:
        if browser:
            browsers = min(at_once or BROWSERS * (os.cpu_count() or 1), participants)
            visits = visit_all(
                study,
                server.address,
                people,
                devices=devices,
                at_once=browsers,
                hurry=hurry,
                screenshots=screenshots,
                answered=answered,
            )
        else:
            visits = _over_http(study, server.address, people, answered)
        result.finished = [visit.participant for visit in visits]
        result.codes = [visit.code for visit in visits]
        result.problems = [problem for visit in visits for problem in visit.problems]
        source = Database(server.database)
        source.prepare(served.facts)
        with contextlib.closing(source), tempfile.TemporaryDirectory() as place:
            result.answers = len(write_export(study, source, out or Path(place) / "answers.parquet"))
    if result.answers != given:
        result.problems.append(f"{given:,} answers were given, {result.answers:,} are stored")
    result.seconds = time.perf_counter() - begun
    return result


def _counter(total: int, progress: Callable[[int, int], None] | None) -> Callable[[], None]:
    """Return what several threads call after each answer."""
    if progress is None:
        return lambda: None
    progress(0, total)
    done, lock = 0, threading.Lock()

    def count() -> None:
        nonlocal done
        with lock:
            done += 1
            progress(done, total)

    return count


# ---- over HTTP -------------------------------------------------------------------------------------------------------


def _over_http(study: Study, address: str, people: Sequence[Person], answered: Callable[[], None]) -> list[Visit]:
    def take_part(number: int) -> Visit:
        with contextlib.closing(Client(address)) as client:
            entry = {"id": f"rehearsal-{number}"}
            session = client.ask("POST", "/api/participants", {"consent": True, "entry": entry})
            client.token = session["token"]
            shown = [trial_from(trial) for trial in session["trials"]]
            trials = with_truth(study, shown, session["participant"])
            for answer in people[number].answers(trials, study.images):
                client.ask("POST", "/api/answers", as_sent(answer))
                answered()
            return Visit(session["participant"], client.ask("POST", "/api/finish")["code"], [])

    with ThreadPoolExecutor(min(AT_ONCE, max(1, len(people)))) as pool:
        return list(pool.map(take_part, range(len(people))))


def as_sent(answer: Answer) -> dict[str, Any]:
    """Return an answer as the page sends it."""
    return {**asdict(answer), "response": list(answer.response), "client": {"rehearsal": True}}


class Client:
    """A small HTTP client that keeps its connection and waits where it is too fast."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        self._path = parts.path
        self.token = ""

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the answer of the server."""
        headers = {"Content-Type": "application/json"}
        headers |= {"Authorization": f"Bearer {self.token}"} if self.token else {}
        while True:
            self._connection.request(method, self._path + path, json.dumps(body) if body else None, headers)
            reply = self._connection.getresponse()
            content = json.loads(reply.read() or b"{}")
            if reply.status == 429:
                time.sleep(float(reply.headers.get("Retry-After", 1)))
                continue
            if reply.status >= 400:
                raise UserError(
                    f"{method} {path}: {reply.status} {content.get('detail', '')}", "see the server's output"
                )
            return dict(content)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
