"""What the tests of faults share: commands that can be killed at any step, and the contents of folders.

``make test`` runs a short, seeded form; ``make faults`` (``CUEBENCH_FAULTS=all``) runs all of it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

EVERYTHING = os.environ.get("CUEBENCH_FAULTS") == "all"
MODEL = """
import numpy as np
import cuebench as cb

def by_colour(pixels):
    level = pixels[:, 0].mean(axis=(1, 2))
    return -np.abs(level[:, None] - 40 * np.arange(4)[None]).astype(np.float32)

def make():
    plain = cb.Preprocess(size=32, mean=(0, 0, 0), std=(1, 1, 1), scale=1)
    return cb.wrap(by_colour, preprocess=plain, labels=("cat", "dog", "car", "clock"), name="red", fingerprint="red-1")
"""


class Commands:
    """Runs commands of cuebench, each in a process of its own, that may be killed at a step or after a time."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(Path(__file__).with_name("zygote.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def __call__(self, *arguments: Any, **request: Any) -> dict[str, Any]:
        """Run a command; return its status, its number of steps, and the signal that ended it."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps({"arguments": [str(a) for a in arguments], "log": str(self._log), **request}) + "\n")
        stdin.flush()
        return {**json.loads(stdout.readline()), "output": self._log.read_text(errors="replace")}

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(10)


@pytest.fixture(scope="session")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    runner = Commands(tmp_path_factory.mktemp("zygote") / "log")
    yield runner
    runner.close()


VARIABLE = ("started", "finished", "environment", "images_decoded", "notices", "checksum")
"""What ``run.json`` says of the circumstances of a run."""


def _contents(folder: Path) -> dict[str, Any]:
    """Return file → its bytes; of the record, what does not depend on time and circumstances."""
    files: dict[str, Any] = {}
    paths = [folder] if folder.is_file() else sorted(p for p in folder.rglob("*") if p.is_file())
    for path in paths:
        name = path.name if path == folder else str(path.relative_to(folder))
        if path.name == ".lock" or (path.name.startswith(".") and path.suffix == ".tmp"):
            continue
        files[name] = path.read_bytes()
        if path.name == "run.json":
            body = json.loads(files[name])
            files[name] = {key: value for key, value in body.items() if key not in VARIABLE}
            for job in body["jobs"]:  # how often it was asked is a circumstance too
                job.pop("asked_again", None)
    return files


@pytest.fixture(scope="session")
def contents() -> Callable[[Path], dict[str, Any]]:
    return _contents


@pytest.fixture(scope="session")
def everything() -> bool:
    """Whether all faults are tried, or a few."""
    return EVERYTHING


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data root with 32 tiny images, and a model in ``model.py``."""
    import numpy as np
    from PIL import Image

    root, classes = tmp_path_factory.mktemp("data"), ("cat", "dog", "car", "clock")
    for a, shape in enumerate(classes):
        (root / "cue_conflict" / "stimuli" / shape).mkdir(parents=True)
        for b, texture in enumerate(classes):
            for i in (1, 2):
                pixels = np.zeros((32, 32, 3), np.uint8)
                pixels[..., 0], pixels[..., 1], pixels[..., 2] = 40 * a, 40 * b, i
                name = f"{shape}{i}-{texture}{1 + i % 2}.png"
                Image.fromarray(pixels).save(root / "cue_conflict" / "stimuli" / shape / name)
    (root / "cue_conflict" / "labels.json").write_text(json.dumps({"targets": {name: [name] for name in classes}}))
    (root / "model.py").write_text(MODEL)
    return root


@pytest.fixture(scope="session")
def run_command(data: Path) -> Callable[..., list[str]]:
    """Return the arguments of ``cuebench run`` on the tiny data."""

    def arguments(out: Path, *observers: str) -> list[str]:
        observers = observers or (f"python:{data / 'model.py'}:make", "ideal:mixture?shape=0.4")
        flags = [word for spec in observers for word in ("-o", spec)]
        small = ["--shard-size", "8", "--resamples", "100", "--workers", "0", "-q"]
        return ["run", *flags, "-p", "cue_conflict", "--data-root", str(data), "--out", str(out), *small]

    return arguments


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print how often each verb was killed, where ``make faults`` has run."""
    kills = {
        report.nodeid.rpartition("[")[2].rstrip("]"): value
        for report in terminalreporter.getreports("passed")
        for key, value in report.user_properties
        if key == "kills"
    }
    if kills:
        terminalreporter.section("kills")
        terminalreporter.write_line(", ".join(f"{verb} {number}" for verb, number in kills.items()))
        terminalreporter.write_line(f"{sum(kills.values())} in all")
