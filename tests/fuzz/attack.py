"""Attack readers for a stated time: ``python tests/fuzz/attack.py --seconds 60 [-j 2] [READER …]``.

Seconds are CPU seconds of each reader, so that an hour is an hour on a busy machine too. Every reader is attacked in a
process of its own. An input that ends in anything but success or a ``UserError``, takes too long, needs too much memory
or ends the process is written to ``tests/fuzz/corpus/READER/`` and replayed by ``make test`` from then on.

Changes are made by ``mutate.py``; with ``--atheris`` they are guided by the coverage of cuebench's own code, and it is
said after which share of the inputs the last one came that reached a place where none had been.
``--until 01:05`` goes on in slices of ``--seconds`` until that time (UTC): next is the format that had the least time
since one of its readers failed, and of its readers the one that had; where every format had its hour, the reader that
had least of all.
``--tally FILE`` adds what was done to a table; ``--table`` prints it.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
CORPUS = Path(__file__).parent / "corpus"
TALLY = Path(__file__).parent / "tally.csv"
FOLDERS = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Where the attacked files are written: in memory where that is possible."""
LONGEST = 10
"""CPU seconds after which a reader counts as hanging."""
BLOCKED = 120
"""Seconds of waiting, without work, after which it counts as hanging."""
HOUR = 3_600
"""CPU seconds that every format gets before readers are treated alike."""
MEMORY = 6 << 30
"""Bytes of address space of a process under attack: a small file that needs more is a failure."""
PLACES = re.compile(r"^#(\d+)\s+[A-Z]+\s+cov: (\d+)", re.MULTILINE)
"""What libFuzzer writes: the number of an input, and how many places were reached so far."""
TALLIED = ("cpu_seconds", "inputs", "failures", "slices", "clean_seconds")
LAST_INPUT, REPORT = "last input", "report.json"


class Hangs(BaseException):
    """A reader takes too long; no ``except Exception`` of a reader may catch this."""


@contextmanager
def time_limit() -> Iterator[None]:
    """Raise where the block works or waits too long."""

    def stop(number: int, _: object) -> None:
        worked = number == signal.SIGPROF
        raise Hangs(f"more than {LONGEST} s of work" if worked else f"more than {BLOCKED} s of waiting")

    timers = {signal.SIGPROF: (signal.ITIMER_PROF, LONGEST), signal.SIGALRM: (signal.ITIMER_REAL, BLOCKED)}
    before = {number: signal.signal(number, stop) for number in timers}
    for timer, seconds in timers.values():
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for number, (timer, _) in timers.items():
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])


def survives(reader: Any, data: bytes, folder: Path) -> BaseException | None:
    """Return what a reader raised that is no user error; None where all is well."""
    from cuebench.errors import UserError

    try:
        with time_limit(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reader.read(data, folder)
    except UserError:
        return None
    except (Exception, Hangs, SystemExit, RecursionError, MemoryError) as error:
        return error
    return None


# ------------------------------------------------------------------------------------------ one reader, in its process


class Attack:
    """What was done to one reader."""

    def __init__(self, name: str, folder: Path) -> None:
        from readers import READERS  # type: ignore[import-not-found]

        self.reader, self.folder = READERS[name], folder / "attacked"
        self.last_input = folder / LAST_INPUT
        self.folder.mkdir(exist_ok=True)
        self.examples = [*self.reader.seeds, *(path.read_bytes() for path in sorted((CORPUS / name).glob("*")))]
        self.started = time.process_time()
        self.inputs, self.failures = 0, dict[str, tuple[str, bytes]]()

    def one(self, data: bytes) -> None:
        """Read one input; keep the smallest of each kind of failure."""
        self.last_input.write_bytes(data)  # should the process die of it
        self.inputs += 1
        error = survives(self.reader, data, self.folder)
        if error is not None:
            place = error.__traceback__
            while place is not None and place.tb_next is not None:
                place = place.tb_next
            where = f"{Path(place.tb_frame.f_code.co_filename).name}:{place.tb_lineno}" if place else ""
            key = f"{type(error).__name__} at {where}"
            if key not in self.failures or len(data) < len(self.failures[key][1]):
                self.failures[key] = str(error)[:120], data

    def report(self) -> None:
        """Write what was done, for the parent."""
        failures = {f"{key}: {message}": data.hex() for key, (message, data) in self.failures.items()}
        done = {"cpu": time.process_time() - self.started, "inputs": self.inputs, "failures": failures}
        (self.last_input.parent / REPORT).write_text(json.dumps(done))


def attack(name: str, seconds: float, seed: str, folder: Path, stop_at: float = float("inf")) -> Attack:
    """Attack one reader by random changes, for so many CPU seconds."""
    from mutate import changed  # type: ignore[import-not-found]

    done, generator = Attack(name, folder), random.Random(f"{name} {seed}")
    pool, end = list(done.examples), done.started + seconds
    while time.process_time() < end and time.time() < stop_at:
        data = changed(generator.choice(pool), done.reader, generator)
        if len(pool) < 400 and generator.random() < 0.02 and len(data) < 20_000:
            pool.append(data)  # changes add up
        done.one(data)
    return done


def guided(name: str, seconds: float, seed: str, folder: Path, stop_at: float) -> None:
    """Attack one reader with atheris, which keeps the inputs that reach new lines of cuebench; never returns."""
    import atheris  # type: ignore[import-not-found]

    with atheris.instrument_imports(include=["cuebench"]):
        done = Attack(name, folder)
    from mutate import changed

    examples = folder / "examples"
    examples.mkdir()
    for number, data in enumerate(done.examples):
        (examples / str(number)).write_bytes(data)

    def one(data: bytes) -> None:
        if time.process_time() - done.started > seconds or time.time() > stop_at:
            done.report()
            os._exit(0)
        done.one(data)

    def change(data: bytes, most: int, number: int) -> bytes:
        generator = random.Random(number)
        if generator.random() < 0.3:
            data = atheris.Mutate(data, most)
            data = done.reader.seal(data) if done.reader.seal is not None else data
        else:
            data = changed(data, done.reader, generator)
        return data[:most]

    number = int(hashlib.sha256(f"{name} {seed}".encode()).hexdigest()[:7], 16) + 1
    flags = ["-verbosity=1", f"-seed={number}", "-max_len=100000", "-timeout=0", "-rss_limit_mb=0", "-detect_leaks=0"]
    atheris.Setup([sys.argv[0], *flags, str(examples)], one, custom_mutator=change)
    atheris.Fuzz()


def child(arguments: argparse.Namespace) -> None:
    """Be the process of one reader."""
    (name,), folder = arguments.readers, Path(arguments.folder)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    if arguments.atheris:
        guided(name, arguments.seconds, arguments.seed, folder, arguments.stop_at)
    attack(name, arguments.seconds, arguments.seed, folder, arguments.stop_at).report()


# ------------------------------------------------------------------------------------------ all readers, the parent


class Running(NamedTuple):
    """A reader under attack, in a process of its own."""

    name: str
    process: subprocess.Popen[bytes]
    folder: tempfile.TemporaryDirectory[str]

    @property
    def last_input(self) -> Path:
        """The input that it reads at the moment."""
        return Path(self.folder.name) / LAST_INPUT


def start(name: str, seconds: float, seed: str, stop_at: float, with_atheris: bool) -> Running:
    """Start to attack a reader."""
    folder = tempfile.TemporaryDirectory(dir=FOLDERS)
    command = [sys.executable, __file__, name, "--folder", folder.name, "--seconds", str(seconds), "--seed", seed]
    command += ["--stop-at", str(stop_at), *["--atheris"] * with_atheris]
    with (Path(folder.name) / "log").open("w") as log:
        environment = {**os.environ, "TMPDIR": folder.name, "OMP_NUM_THREADS": "1"}
        return Running(name, subprocess.Popen(command, stdout=log, stderr=log, env=environment), folder)


def last_new_place(log: str) -> int:
    """Return the number of the last input that reached a new place of the code; 0 where the attack was not guided."""
    last, most = 0, -1
    for number, places in ((int(a), int(b)) for a, b in PLACES.findall(log)):
        last, most = (number, places) if places > most else (last, most)
    return last


def finished(running: Running) -> dict[str, Any] | None:
    """Return what a process reports; None while it works. One that died or hangs has failed with its last input."""
    data = running.last_input
    waits = time.time() - data.stat().st_mtime if data.is_file() else 0.0
    if running.process.poll() is None and waits < 3 * BLOCKED:
        return None
    if running.process.returncode is None:
        running.process.kill()
    status, folder = running.process.wait(), Path(running.folder.name)
    log = (folder / "log").read_text(errors="replace")
    if status == 0 and (folder / REPORT).is_file():
        return {**json.loads((folder / REPORT).read_text()), "last_new": last_new_place(log)}
    log = log[-2_000:]
    if not data.is_file():
        print(f"{running.name} could not be attacked: status {status}\n{log}", flush=True)
        return {"cpu": 0.0, "inputs": 0, "failures": {}}
    why = f"hangs in native code: {waits:.0f} s" if waits >= 3 * BLOCKED else f"ends the process with status {status}"
    return {"cpu": 0.0, "inputs": 0, "failures": {f"{why}\n{log}": data.read_bytes().hex()}}


def keep(name: str, failures: dict[str, str], corpus: Path) -> None:
    """Write the inputs that failed."""
    for key, data in failures.items():
        path = corpus / name / hashlib.sha256(bytes.fromhex(data)).hexdigest()[:12]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes.fromhex(data))
        print(f"  {key}\n  kept as {path} ({len(data) // 2} bytes)", flush=True)


def read_tally(path: Path) -> dict[str, dict[str, float]]:
    """Return reader → what was done so far; ``clean_seconds``: since a reader of its format last failed."""
    if not path.is_file():
        return {}
    with path.open(newline="") as file:
        return {row["reader"]: {key: float(row.get(key) or 0) for key in TALLIED} for row in csv.DictReader(file)}


def add_to_tally(path: Path, name: str, report: dict[str, Any]) -> None:
    """Add a slice to the table; failures are counted as they were found, also where they are fixed since.

    Readers of one format share the code that takes bytes apart: after a failure of one, all of them begin anew.
    """
    tally = read_tally(path)
    row = tally.setdefault(name, dict.fromkeys(TALLIED, 0.0))
    for key, more in zip(
        row, (report["cpu"], report["inputs"], len(report["failures"]), 1, report["cpu"]), strict=True
    ):
        row[key] += more
    for other in readers_like(name) if report["failures"] else ():
        tally.get(other, row)["clean_seconds"] = 0.0
    lines = [",".join(("reader", *TALLIED))]
    lines += [f"{n},{','.join(f'{value:.0f}' for value in row.values())}" for n, row in sorted(tally.items())]
    temporary = path.with_suffix(".tmp")
    temporary.write_text("\n".join(lines) + "\n")
    temporary.replace(path)


def readers_like(name: str) -> list[str]:
    """Return the readers of the same format."""
    from base import format_of  # type: ignore[import-not-found]
    from readers import READERS

    mine = format_of(name, READERS[name])
    return [other for other, reader in READERS.items() if format_of(other, reader) == mine]


def table(path: Path) -> str:
    """Return the tally as Markdown: the formats, then the readers."""
    from base import format_of
    from readers import READERS

    tally = read_tally(path)
    formats: dict[str, dict[str, float]] = {}
    for name, row in tally.items():
        total = formats.setdefault(format_of(name, READERS[name]), dict.fromkeys(("readers", *row), 0.0))
        for key, value in {"readers": 1, **row}.items():
            total[key] += value
    formats = dict(sorted(formats.items()))
    formats["all"] = {key: sum(row[key] for row in formats.values()) for key in next(iter(formats.values()))}
    lines = [f"| format | readers | {_HEADINGS} |", "|---|---:|---:|---:|---:|---:|"]
    lines += [f"| {name} | {row['readers']:.0f} | {_numbers(row)} |" for name, row in formats.items()]
    lines += ["", f"| reader | {_HEADINGS} |", "|---|---:|---:|---:|---:|"]
    return "\n".join([*lines, *(f"| {name} | {_numbers(row)} |" for name, row in tally.items())])


_HEADINGS = "CPU minutes | inputs | failures found | CPU minutes since the last"


def _numbers(row: dict[str, float]) -> str:
    minutes, clean = row["cpu_seconds"] / 60, row["clean_seconds"] / 60
    return f"{minutes:.1f} | {row['inputs']:,.0f} | {row['failures']:.0f} | {clean:.1f}"


def end_of(clock: str) -> float:
    """Return the next moment at which the clock shows that time, in UTC."""
    if not clock:
        return float("inf")
    now = datetime.now(UTC)
    hour, minute = map(int, clock.split(":"))
    end = now.replace(hour=hour, minute=minute, second=0, microsecond=0)
    return (end if end > now else end + timedelta(days=1)).timestamp()


def main() -> int:
    """Attack the readers and report; the exit status is 1 where something failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("readers", nargs="*")
    parser.add_argument("--seconds", type=float, default=60, help="CPU seconds for each reader, or for each slice")
    parser.add_argument("--seed", default="0")
    parser.add_argument("-j", "--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--until", default="", metavar="HH:MM", help="go round in slices until this time, UTC")
    parser.add_argument("--atheris", action="store_true", help="guided by coverage; needs atheris")
    parser.add_argument("--tally", type=Path, metavar="FILE", help="add what was done to this table")
    parser.add_argument("--table", action="store_true", help="print the table, attack nothing")
    parser.add_argument("--corpus", type=Path, default=CORPUS, help="where inputs that failed are kept")
    parser.add_argument("--folder", default="", help=argparse.SUPPRESS)
    parser.add_argument("--stop-at", type=float, default=float("inf"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.folder:
        child(arguments)
        return 0
    if arguments.table:
        print(table(arguments.tally or TALLY))
        return 0
    from readers import READERS

    unknown = [name for name in arguments.readers if name not in READERS]
    if unknown:
        parser.error(f"unknown readers {', '.join(unknown)}; known: {', '.join(READERS)}")
    return attack_all(arguments.readers or list(READERS), arguments)


class Queue:
    """Which reader comes next: each once, or round and round."""

    def __init__(self, names: list[str], before: dict[str, dict[str, float]], endless: bool) -> None:
        from base import format_of
        from readers import READERS

        self._formats = {name: format_of(name, reader) for name, reader in READERS.items()}
        self._seconds = {name: before.get(name, {}).get("clean_seconds", 0.0) for name in READERS}
        self._waiting, self._endless = set(names), endless

    def take(self) -> str | None:
        """Return the reader that had the least time, of the format that lacks most of its hour; None if none waits."""
        by_format: dict[str, float] = {}
        for name, seconds in self._seconds.items():
            by_format[self._formats[name]] = by_format.get(self._formats[name], 0.0) + seconds

        def time_had(name: str) -> tuple[float, float]:
            return min(by_format[self._formats[name]], HOUR), self._seconds[name]

        least = min(sorted(self._waiting), key=time_had, default=None)
        self._waiting.discard(least or "")
        return least

    def expect(self, name: str, seconds: float) -> None:
        """Count time that a reader is getting; several of one format may be under attack at once."""
        self._seconds[name] += seconds

    def put_back(self, name: str, *, failed: bool) -> None:
        """Let a reader wait for its next slice, if there is one; after a failure its format begins anew."""
        for other in readers_like(name) if failed else ():
            self._seconds[other] = 0.0
        if self._endless:
            self._waiting.add(name)


def attack_all(names: list[str], arguments: argparse.Namespace) -> int:
    """Attack readers, some at a time, once or round and round."""
    failed, stop_at = False, end_of(arguments.until)
    before = read_tally(arguments.tally) if arguments.tally else {}
    slices = {name: row["slices"] for name, row in before.items()}
    waiting = Queue(names, before, endless=bool(arguments.until))
    running: list[Running] = []
    try:
        while True:
            while len(running) < max(arguments.jobs, 1) and time.time() < stop_at and (name := waiting.take()):
                waiting.expect(name, arguments.seconds)
                slices[name] = slices.get(name, 0) + 1
                seed = f"{arguments.seed} {slices[name]:.0f}"
                running.append(start(name, arguments.seconds, seed, stop_at, arguments.atheris))
            if not running:
                break
            time.sleep(0.2)
            for one in list(running):
                if (report := finished(one)) is None:
                    continue
                running.remove(one)
                one.folder.cleanup()
                failures, inputs = report["failures"], report["inputs"]
                line = f"{one.name:18s} {inputs:9,d} inputs in {report['cpu']:.0f} CPU s, {len(failures)} failures"
                if report.get("last_new"):
                    line += f", last new place after {report['last_new'] / max(inputs, 1):.0%}"
                print(line, flush=True)
                keep(one.name, failures, arguments.corpus)
                failed |= bool(failures)
                if arguments.tally:
                    add_to_tally(arguments.tally, one.name, report)
                waiting.put_back(one.name, failed=bool(failures))
    finally:
        for one in running:
            one.process.kill()
            one.process.wait()
            one.folder.cleanup()
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
