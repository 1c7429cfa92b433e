"""Simulated participants in a real browser: they read, click or tap, and answer as they would."""

from __future__ import annotations

import contextlib
import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from cuebench.errors import UserError
from cuebench.study.folder import Study
from cuebench.study.simulate import Person
from cuebench.study.types import Trial, trial_from

DESKTOP: Mapping[str, Any] = {"viewport": {"width": 1280, "height": 800}}
PHONE: Mapping[str, Any] = {
    "viewport": {"width": 390, "height": 844},
    "device_scale_factor": 2,
    "has_touch": True,
    "is_mobile": True,
}
DEVICES = {"desktop": DESKTOP, "phone": PHONE}
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
SHORTEST_MS = 150.0
"""Nobody answers faster than this after having seen something."""
BEYOND_MS = 50.0
"""Simulated people wait no longer than this beyond the time below which answers are excluded: rehearsals should end."""
PATIENCE_MS = 60_000
"""How long the browser may take for any one thing."""
_CHROMIUMS = ("chromium", "chromium-browser", "google-chrome", "chrome")
# Asked for with every frame: Playwright's own waiting for an element looks every half second after a while.
_NEXT = """last => {
    const stage = document.getElementById("stage"), position = stage.dataset.position ?? "";
    const seen = element => !element.disabled && element.getClientRects().length > 0;
    const all = selector => Array.from(document.querySelectorAll(selector)).filter(seen);
    const heading = document.querySelector("#stage h1, #stage h2, #page h1, #page .text");
    const text = (heading?.textContent ?? "").slice(0, 14);
    if (all("#page .code").length) return ["end", "", position];
    if (all("#page .buttons-row button").length) return ["page", text, position];
    if (position !== last && all("#stage .option").length) return ["option", "", position];
    const buttons = all("#stage .jspsych-btn").length;
    if (!buttons || document.querySelector("#stage .trial")) return null;
    if (document.querySelector("#stage .examples")) return ["examples", "", position];
    return buttons > 1 && position === last ? null : [buttons > 1 ? "button" : "text", text, position];
}"""
"""What a participant can do next: kind, beginning of the heading, position of the trial. Null: wait."""


class Visit(NamedTuple):
    """What came of a visit: name and completion code of the participant, problems of the page."""

    participant: str
    code: str
    problems: list[str]


def find_chromium() -> str:
    """Return the path of a Chromium on this machine."""
    executable = next((path for name in _CHROMIUMS if (path := shutil.which(name))), None)
    if executable is None:
        raise UserError("a rehearsal in a browser needs Chromium", "apt-get install chromium; or rehearse with --http")
    return executable


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


def visit_all(
    study: Study,
    address: str,
    people: Sequence[Person],
    *,
    devices: Sequence[str],
    at_once: int,
    hurry: bool = False,
    screenshots: Path | None = None,
    answered: Callable[[], None] = lambda: None,
) -> list[Visit]:
    """Let people go through a study, several at once, each with a browser of their own.

    Parameters
    ----------
    study, address
        The study, and where it is served.
    people : sequence of Person
        Who comes.
    devices : sequence of str
        ``desktop`` and ``phone``, in turn.
    at_once : int
        How many browsers.
    hurry : bool
        See ``Visitor``.
    screenshots : Path, optional
        Folder for a picture of every kind of page, from the first participant of each device.
    answered : callable
        Called after each answer.

    Returns
    -------
    list of Visit
        In the order of the people.
    """
    visits: dict[int, Visit] = {}
    stop = threading.Event()

    def visit_some(first: int) -> None:
        try:
            with opened_browser() as browser:
                for number in range(first, len(people), at_once):
                    device = devices[number % len(devices)]
                    pictures = Pictures(screenshots, device) if screenshots and number < len(devices) else None
                    context = browser.new_context(**DEVICES[device])
                    visitor = Visitor(context.new_page(), study, people[number], pictures, hurry=hurry)
                    visitor.open(f"{address}/?id=rehearsal-{number}")
                    while not stop.is_set() and visitor.step(answered):
                        pass
                    visits[number] = Visit(visitor.participant, visitor.code, visitor.problems)
                    context.close()
                    if stop.is_set():
                        return
        except BaseException:
            stop.set()  # the others need not go on
            raise

    with ThreadPoolExecutor(at_once) as pool:
        try:
            list(pool.map(visit_some, range(at_once)))
        except BaseException:
            stop.set()
            raise
    return [visits[number] for number in range(len(people))]


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
    """A simulated participant in front of a browser.

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
    hurry : bool
        Noise, pauses and images that are shown for a time take one frame, and nobody hesitates. Reaction times and
        durations are then not sent: they would be those of nothing.
    """

    def __init__(
        self, page: Any, study: Study, someone: Person, pictures: Pictures | None = None, *, hurry: bool = False
    ) -> None:
        self.page, self.study, self.someone, self.pictures = page, study, someone, pictures
        self.problems: list[str] = []
        self.trials: list[Trial] = []
        self.participant, self.code, self.last = "", "", -1
        self.host: str | None = None
        self.wait_ms = 0.0 if hurry else max(study.rules.rt_min_ms or 0.0, SHORTEST_MS) + BEYOND_MS
        page.set_default_timeout(PATIENCE_MS)
        page.on("pageerror", lambda error: self.problems.append(f"error of the page: {error}"))
        page.on("console", self._heard)
        page.on("requestfailed", lambda request: self.problems.append(f"request failed: {request.url}"))
        page.on("request", self._asked)
        page.on("response", self._answered)
        if hurry:
            page.route(lambda url: urlsplit(url).path.endswith("/api/study"), _without_waits)
            page.route(lambda url: urlsplit(url).path.endswith("/api/answers"), _without_times)

    def open(self, address: str) -> None:
        """Open the page."""
        self.host = urlsplit(address).hostname
        self.page.goto(address)

    def visit(self, address: str) -> None:
        """Go through the whole study."""
        self.open(address)
        while self.step():
            pass

    def step(self, answered: Callable[[], None] = lambda: None) -> bool:
        """Do what the page asks for next; False at the end. ``answered`` is called where that was an answer."""
        kind, text, position = self._next()
        if kind == "end":
            self._picture("end")
            self.code = self.page.locator("#page .code").inner_text()
            return False
        if kind in ("option", "button"):
            while not self.trials:  # the reply to the page is still being read here
                self.page.wait_for_timeout(20)
            self._answer(self.trials[int(position)], kind)
        else:
            self._picture(f"{kind} {text}")
            # Before the trials the last button is the one that changes nothing: "continue without full screen".
            self._press("#page .buttons-row button:last-child" if kind == "page" else "#stage .jspsych-btn")
        if kind in ("option", "button", "examples"):
            answered()
        return True

    def _next(self) -> tuple[str, str, str]:
        from playwright.sync_api import TimeoutError as TooLong

        try:
            handle = self.page.wait_for_function(_NEXT, arg=str(self.last) if self.last >= 0 else None)
        except TooLong:
            where = f"after trial {self.last + 1}" if self.last >= 0 else "before the first trial"
            raise UserError(
                f"a simulated participant found nothing to press for {PATIENCE_MS // 1000} s, {where}",
                "look at it: cuebench study serve STUDY; keys, sliders and forms of jsPsych: rehearse with --http",
            ) from None
        kind, text, position = handle.json_value()
        return kind, text, position

    def _answer(self, trial: Trial, layout: str = "option") -> None:
        answer = self.someone.answer(trial, self.study.images)
        self._picture(f"{trial.block} {trial.kind}")
        self.last = trial.position
        time.sleep(min(answer.rt_ms or 0, self.wait_ms) / 1000)
        if layout == "button":  # of jsPsych, in the order of the options; there is no way to give no answer
            chosen = (*answer.response, *trial.options)[0]
            self.page.locator("#stage .jspsych-btn").nth(trial.options.index(chosen)).click()
            return
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


def with_truth(study: Study, shown: Sequence[Trial], participant: str) -> list[Trial]:
    """Return trials, as the page was given them, with the correct answers: the assignment that they are from."""
    as_shown = [trial.shown() for trial in shown]
    likely = int(participant.lstrip("p")) - 1
    for slot in (likely, *range(likely), *range(likely + 1, likely + 1000)):
        trials = study.assign(slot)[1]
        if [trial.shown() for trial in trials] == as_shown:
            return trials
    raise UserError(f"{participant} was shown trials that no assignment of this study has", "make the study anew")


# ---- in a hurry ------------------------------------------------------------------------------------------------------


def _without_waits(route: Any) -> None:
    """Hand the page the study with sequences of frames that take one frame each."""
    reply = route.fetch()
    content = reply.json()
    for node in _nodes(content.get("timeline", {})):
        if node.get("type") == "frames":
            node["sequence"] = [{**part, "ms": 1} for part in node["sequence"]]
    route.fulfill(response=reply, json=content)


def _without_times(route: Any) -> None:
    """Send an answer without the times that were measured."""
    answer = json.loads(route.request.post_data)
    answer |= {"rt_ms": None, "shown_ms": None, "client": {**answer["client"], "hurried": True}}
    route.continue_(post_data=json.dumps(answer))


def _nodes(node: Mapping[str, Any]) -> Iterator[Any]:
    """Walk through a timeline."""
    yield node
    for child in node.get("timeline", ()):
        yield from _nodes(child)


def own_seconds(study: Study, trials: Sequence[Trial]) -> float:
    """Return how long the sequences of frames of a session take by its design: noise, pauses, brief images."""
    times = study.design.times

    def lasts(value: Any, trial: Trial) -> float:
        if value == "$planned_ms":
            return float(trial.planned_ms or 0)
        return float(times.get(value.removeprefix("$times."), 0) if isinstance(value, str) else value or 0)

    def fits(node: Mapping[str, Any], trial: Trial) -> bool:
        allowed = {key: [value] if isinstance(value, str) else value for key, value in node.get("when", {}).items()}
        return all(getattr(trial, key) in values for key, values in allowed.items())

    frames = [node for node in _nodes(study.design.timeline) if node.get("type") == "frames"]
    parts = [(part, trial) for trial in trials for node in frames if fits(node, trial) for part in node["sequence"]]
    return sum(lasts(part.get("ms"), trial) for part, trial in parts) / 1000
