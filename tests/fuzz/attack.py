"""Attack readers for a stated time: ``python tests/fuzz/attack.py --seconds 60 [READER …]``.

Every input that ends in anything but success or a ``UserError``, or takes longer than ``LONGEST`` seconds, is written
to ``tests/fuzz/corpus/READER/`` and replayed by ``make test`` from then on. Changes are made by ``mutate.py``; where
atheris is installed, ``--atheris READER`` guides them by coverage. ``test_fuzz.py`` changes the structure of files.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from mutate import mutated  # type: ignore[import-not-found]
from readers import READERS, Reader  # type: ignore[import-not-found]

from cuebench.errors import UserError

CORPUS = Path(__file__).parent / "corpus"
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Where the attacked files are written: in memory where that is possible."""
LONGEST = 10
"""Seconds after which a reader counts as hanging."""


class Hangs(BaseException):
    """A reader takes too long; no ``except Exception`` of a reader may catch this."""


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Raise where the block takes too long."""

    def stop(*_: object) -> None:
        raise Hangs(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def survives(reader: Reader, data: bytes, folder: Path) -> BaseException | None:
    """Return what a reader raised that is no user error; None where all is well."""
    try:
        with time_limit(LONGEST), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reader.read(data, folder)
    except UserError:
        return None
    except (Exception, Hangs, SystemExit, RecursionError, MemoryError) as error:
        return error
    return None


def attack(name: str, seconds: float, seed: int, folder: Path) -> tuple[int, dict[str, bytes]]:
    """Attack one reader; return how many inputs it got, and for each distinct failure the smallest input."""
    reader, generator = READERS[name], random.Random(f"{name} {seed}")
    pool = [*reader.seeds, *(path.read_bytes() for path in sorted((CORPUS / name).glob("*")))]
    failures: dict[str, bytes] = {}
    count, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        data = mutated(generator.choice(pool), reader.kind, generator)
        if len(pool) < 400 and generator.random() < 0.02 and len(data) < 20_000:
            pool.append(data)  # changes add up
        error = survives(reader, data, folder)
        count += 1
        if error is not None:
            place = error.__traceback__
            while place is not None and place.tb_next is not None:
                place = place.tb_next
            where = f"{Path(place.tb_frame.f_code.co_filename).name}:{place.tb_lineno}" if place else ""
            key = f"{type(error).__name__}: {str(error)[:120]} at {where}"
            if key not in failures or len(data) < len(failures[key]):
                failures[key] = data
    return count, failures


def main() -> int:
    """Attack the readers one after the other and report; the exit status is 1 where something failed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("readers", nargs="*", choices=[[], *READERS])
    parser.add_argument("--seconds", type=float, default=60, help="for each reader")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--atheris", action="store_true", help="guided by coverage; needs atheris and one reader")
    arguments = parser.parse_args()
    names = arguments.readers or list(READERS)
    if arguments.atheris:
        return guided(names[0], arguments.seconds)
    failed = False
    for name in names:
        with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
            count, failures = attack(name, arguments.seconds, arguments.seed, Path(folder))
        print(f"{name:18s} {count:9,d} inputs in {arguments.seconds:g} s, {len(failures)} failures", flush=True)
        for key, data in failures.items():
            failed = True
            path = CORPUS / name / hashlib.sha256(data).hexdigest()[:12]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            print(f"  {key}\n  kept as {path} ({len(data)} bytes)", flush=True)
    return int(failed)


def guided(name: str, seconds: float) -> int:
    """Attack one reader with atheris."""
    import atheris  # type: ignore[import-not-found]

    reader = READERS[name]
    with tempfile.TemporaryDirectory() as folder:

        def one(data: bytes) -> None:
            if (error := survives(reader, data, Path(folder))) is not None:
                raise error

        atheris.instrument_all()
        atheris.Setup([sys.argv[0], f"-max_total_time={int(seconds)}", str(CORPUS / name)], one)
        atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
