"""Rehearse a study: simulated participants go through the whole of it, in a real browser or over HTTP.

A server of its own is started on this machine with a database of its own: the answers of a rehearsal never mix with
those of people. What the simulated people answer is planted (``study/simulate.py``): the analysis must find it again.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from cuebench.errors import UserError
from cuebench.study.database import Database, sqlite_url
from cuebench.study.export import write_export
from cuebench.study.folder import Study, open_study
from cuebench.study.simulate import Person, person, population
from cuebench.study.types import Answer, Trial, trial_from

DESKTOP: Mapping[str, Any] = {"viewport": {"width": 1280, "height": 800}}
PHONE: Mapping[str, Any] = {
    "viewport": {"width": 390, "height": 844},
    "device_scale_factor": 2,
    "has_touch": True,
    "is_mobile": True,
}
DEVICES = {"desktop": DESKTOP, "phone": PHONE}
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
HESITATION_MS = 300
"""Simulated people wait as long as their reaction time says, but no longer than this: rehearsals should end."""
PATIENCE_MS = 60_000
"""How long the browser may take for any one thing."""
_NEXT = (
    '#stage .jspsych-btn:enabled:visible, #stage:not([data-position="{last}"]) .option:enabled:visible, '
    "#page .buttons-row button:enabled:visible, #page .code"
)
"""What a participant can do next, or the end."""
_LOOK = """found => {
    const stage = document.getElementById("stage");
    const heading = document.querySelector("#stage h1, #stage h2, #page h1, #page .text");
    const kind = found.matches(".option") ? "option" : found.matches(".code") ? "code"
        : document.querySelector("#stage .examples") ? "examples" : found.matches(".jspsych-btn") ? "text" : "page";
    return [kind, kind === "examples" ? "" : (heading?.textContent ?? "").slice(0, 14), stage.dataset.position ?? ""];
}"""
"""What that is: kind, beginning of the heading, position of the trial."""
_CHROMIUMS = ("chromium", "chromium-browser", "google-chrome", "chrome")


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
    """

    finished: list[str] = field(default_factory=list)
    codes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    answers: int = 0
    seconds: float = 0.0


class Running(NamedTuple):
    """A server that runs for a rehearsal."""

    address: str
    database: str


@contextlib.contextmanager
def running_server(folder: Path, database: str = "") -> Iterator[Running]:
    """Serve a study on this machine while the context lasts, with a database that is not the study's own."""
    with tempfile.TemporaryDirectory(prefix="cuebench-rehearsal-") as place:
        url = database or sqlite_url(Path(place) / "rehearsal.sqlite")
        command = [sys.executable, "-m", "cuebench", "study", "serve", str(folder), "--port", "0", "--database", url]
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
        In Chromium, one after the other; else over HTTP, several at once.
    devices : sequence of str
        ``desktop`` and ``phone``, in turn.
    seed : int
        Of the simulated people.
    out : Path, optional
        Where their answers are exported to: ``.parquet`` or ``.csv``.
    screenshots : Path, optional
        Folder for a picture of every kind of page, from the first participant of each device.
    progress : callable, optional
        Called with the number of participants that are done and of all.
    """
    study = open_study(folder)
    people = [person(population(observer), number, seed) for number in range(participants)]
    result = Rehearsal()
    begun = time.perf_counter()
    with running_server(folder) as server:
        visit = _in_browser if browser else _over_http
        visit(study, server.address, people, result, devices, screenshots, progress)
        source = Database(server.database)
        source.prepare(study.facts)
        with contextlib.closing(source), tempfile.TemporaryDirectory() as place:
            result.answers = len(write_export(study, source, out or Path(place) / "answers.parquet"))
    given = participants * len(study.assign(0)[1])
    if result.answers != given:
        result.problems.append(f"{given:,} answers were given, {result.answers:,} are stored")
    result.seconds = time.perf_counter() - begun
    return result


def with_truth(study: Study, shown: Sequence[Trial], participant: str) -> list[Trial]:
    """Return trials, as the page was given them, with the correct answers: the assignment that they are from."""
    told = [trial.shown() for trial in shown]
    likely = int(participant.lstrip("p")) - 1
    for slot in (likely, *range(likely), *range(likely + 1, likely + 1000)):
        trials = study.assign(slot)[1]
        if [trial.shown() for trial in trials] == told:
            return trials
    raise UserError(f"{participant} was shown trials that no assignment of this study has", "make the study anew")


# ---- in a browser ----------------------------------------------------------------------------------------------------


def find_chromium() -> str:
    """Return the path of a Chromium on this machine."""
    found = next((path for name in _CHROMIUMS if (path := shutil.which(name))), None)
    if found is None:
        raise UserError("a rehearsal in a browser needs Chromium", "apt-get install chromium; or rehearse with --http")
    return found


@contextlib.contextmanager
def opened_browser() -> Iterator[Any]:
    """Open a headless Chromium."""
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        hint = "pip install playwright; or rehearse with --http"
        raise UserError("a rehearsal in a browser needs playwright", hint) from None
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        yield browser
        browser.close()


def _in_browser(
    study: Study,
    address: str,
    people: Sequence[Person],
    result: Rehearsal,
    devices: Sequence[str],
    screenshots: Path | None,
    progress: Callable[[int, int], None] | None,
) -> None:
    with opened_browser() as browser:
        for number, someone in enumerate(people):
            device = devices[number % len(devices)]
            pictures = Pictures(screenshots, device) if screenshots and number < len(devices) else None
            context = browser.new_context(**DEVICES[device])
            visitor = Visitor(context.new_page(), study, someone, pictures)
            visitor.visit(f"{address}/?id=rehearsal-{number}")
            result.finished.append(visitor.participant)
            result.codes.append(visitor.code)
            result.problems += visitor.problems
            context.close()
            if progress is not None:
                progress(number + 1, len(people))


class Pictures:
    """Screenshots of the pages of one device, one for each kind of page."""

    def __init__(self, folder: Path, device: str) -> None:
        self.folder, self.device = folder, device
        self.taken: list[str] = []
        folder.mkdir(parents=True, exist_ok=True)

    def take(self, page: Any, kind: str) -> None:
        """Take a picture unless there is one of this kind."""
        if kind not in self.taken:
            self.taken.append(kind)
            page.screenshot(path=self.folder / f"{self.device}_{len(self.taken):02d}_{kind}.png")


class Visitor:
    """A simulated participant in front of a browser: reads, clicks or taps, and answers as they would.

    Parameters
    ----------
    page : playwright page
        A new page.
    study : Study
        The study that it shows.
    someone : Person
        Who answers.
    pictures : Pictures, optional
        Where screenshots go.
    """

    def __init__(self, page: Any, study: Study, someone: Person, pictures: Pictures | None = None) -> None:
        self.page, self.study, self.someone, self.pictures = page, study, someone, pictures
        self.problems: list[str] = []
        self.trials: list[Trial] = []
        self.participant, self.code, self.last = "", "", -1
        self.host: str | None = None
        page.set_default_timeout(PATIENCE_MS)
        page.on("pageerror", lambda error: self.problems.append(f"error of the page: {error}"))
        page.on("console", self._heard)
        page.on("requestfailed", lambda request: self.problems.append(f"request failed: {request.url}"))
        page.on("request", self._asked)
        page.on("response", self._answered)

    def open(self, address: str) -> None:
        """Open the page."""
        self.host = urlsplit(address).hostname
        self.page.goto(address)

    def visit(self, address: str) -> None:
        """Go through the whole study."""
        self.open(address)
        while self.step():
            pass

    def step(self) -> bool:
        """Do what the page asks for next; False at the end."""
        found = self.page.wait_for_selector(_NEXT.format(last=self.last))
        kind, text, position = found.evaluate(_LOOK)
        if kind == "code":
            self._picture("end")
            self.code = found.inner_text()
            return False
        if kind == "option":
            self._answer(self.trials[int(position)])
            return True
        self._picture(f"{kind} {text}")
        # Before the trials the last button is the one that changes nothing: "continue without full screen".
        self._press("#stage .jspsych-btn" if kind in ("examples", "text") else "#page .buttons-row button:last-child")
        return True

    def _answer(self, trial: Trial) -> None:
        answer = self.someone.answer(trial, self.study.images)
        self._picture(f"{trial.block} {trial.kind}")
        self.last = trial.position
        time.sleep(min(answer.rt_ms or 0, HESITATION_MS) / 1000)
        for option in answer.response:
            # Of this trial: the next one may have the same option.
            self._press(f'#stage[data-position="{trial.position}"] .option[data-option="{option}"]')
        if trial.several and answer.response:
            self._picture(f"{trial.block} chosen")
            self._press("#stage .send")

    def _press(self, selector: str) -> None:
        """Click, or tap on a phone. A response window that ends meanwhile takes the button away: no answer then."""
        from playwright.sync_api import Error

        limited = "response_ms" in self.study.design.times and ".option" in selector
        with contextlib.suppress(*([Error] if limited else [])):
            self.page.locator(selector).click(timeout=1_000 if limited else PATIENCE_MS)

    def _picture(self, kind: str) -> None:
        if self.pictures is not None:
            self.pictures.take(self.page, "".join(c if c.isalnum() else "_" for c in kind).strip("_"))

    def _heard(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(f"console: {message.text}")

    def _asked(self, request: Any) -> None:
        host = urlsplit(request.url).hostname
        if host not in (None, self.host):
            self.problems.append(f"a request to another host: {request.url}")

    def _answered(self, response: Any) -> None:
        if urlsplit(response.url).path.endswith(("/api/participants", "/api/session")) and response.ok:
            session = response.json()
            self.participant = session["participant"]
            self.trials = with_truth(self.study, [trial_from(t) for t in session["trials"]], self.participant)


# ---- over HTTP -------------------------------------------------------------------------------------------------------

AT_ONCE = 16
"""Participants that answer at the same time; each is kept to the rate of the study."""


def _over_http(
    study: Study,
    address: str,
    people: Sequence[Person],
    result: Rehearsal,
    devices: Sequence[str],
    screenshots: Path | None,
    progress: Callable[[int, int], None] | None,
) -> None:
    def take_part(number: int) -> tuple[str, str]:
        with contextlib.closing(Client(address)) as client:
            entry = {"id": f"rehearsal-{number}"}
            session = client.ask("POST", "/api/participants", {"consent": True, "entry": entry})
            client.token = session["token"]
            shown = [trial_from(trial) for trial in session["trials"]]
            trials = with_truth(study, shown, session["participant"])
            for answer in people[number].answers(trials, study.images):
                client.ask("POST", "/api/answers", as_sent(answer))
            return session["participant"], client.ask("POST", "/api/finish")["code"]

    with ThreadPoolExecutor(min(AT_ONCE, max(1, len(people)), 4 * (os.cpu_count() or 1))) as pool:
        for done, (name, code) in enumerate(pool.map(take_part, range(len(people))), 1):
            result.finished.append(name)
            result.codes.append(code)
            if progress is not None:
                progress(done, len(people))


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
