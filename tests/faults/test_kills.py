"""Every verb that writes is killed at steps of its writing and at random instants; the rerun ends in the same bytes."""

from __future__ import annotations

import hashlib
import http.server
import random
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

KILL = 9
VERBS = (
    "run", "run_more", "run_fresh", "score", "merge", "make_cue_conflict", "make_textures", "make_novel_objects",
    "make_cue_decomposition", "cue", "fetch", "figure", "report",
)  # fmt: skip
SLOW = ("make_novel_objects", "figure")
"""Verbs that take seconds even for the smallest result."""
counted: dict[str, int] = {}
"""Verb → kills so far, for the summary of ``make faults``."""


@pytest.fixture(scope="session")
def server() -> Iterator[tuple[str, dict[str, tuple[str, int]]]]:
    """A server on the loopback address with two files."""
    files = {f"{n}.bin": bytes([n]) * 300_000 for n in (1, 2)}

    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            data = files[self.path.lstrip("/")]
            start = int((self.headers.get("Range") or "bytes=0-")[6:-1])
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
            self.send_header("Content-Length", str(len(data) - start))
            self.end_headers()
            self.wfile.write(data[start:])

    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    facts = {name: (hashlib.sha256(data).hexdigest(), len(data)) for name, data in files.items()}
    yield f"http://127.0.0.1:{httpd.server_address[1]}", facts
    httpd.shutdown()
    httpd.server_close()


@pytest.fixture(scope="session")
def finished(
    commands: Any, run_command: Callable[..., list[str]], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path]:
    """Two finished runs of different observers."""
    folder = tmp_path_factory.mktemp("finished")
    for name, observers in (("first", ()), ("second", ("ideal:shape",))):
        result = commands(*run_command(folder / name, *observers))
        assert result["status"] == 0, result
    return folder / "first", folder / "second"


@pytest.fixture(scope="session")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, draw = tmp_path_factory.mktemp("photographs"), np.random.default_rng(0)
    for name in ("cat", "dog"):
        (folder / name).mkdir()
        for i in range(2):
            Image.fromarray(draw.integers(0, 256, (48, 48, 3), dtype=np.uint8)).save(folder / name / f"{name}{i}.png")
    return folder


@pytest.fixture
def verb(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    finished: tuple[Path, Path],
    photographs: Path,
    run_command: Callable[..., list[str]],
    server: tuple[str, dict[str, tuple[str, int]]],
) -> tuple[Path, Path | None, list[Any], dict[str, Any]]:
    """Return where the verb writes, what lies there before, its arguments, and further parts of the request."""
    out, (first, second) = tmp_path / "out", finished
    sizes = ("size=32", "resize=0", "workers=1")
    settings = [word for setting in sizes for word in ("--set", setting)]
    decomposition = ["make", "cue_decomposition", "--source", photographs, "--out", out, "--cues", "voronoi,patch"]
    figure = tmp_path / "out" / "figure.svg"
    calls: dict[str, tuple[Path, Path | None, list[Any]]] = {
        "run": (out, None, run_command(out)),
        "run_more": (out, first, run_command(out, "ideal:shape", "ideal:texture")),
        "run_fresh": (out, first, [*run_command(out), "--fresh"]),
        "score": (out, first, ["score", out, "--seed", 3, "-q"]),
        "merge": (out, None, ["merge", first, second, "--out", out, "-q"]),
        "make_cue_conflict": (out, None, ["make", "cue_conflict", "--out", out, "--count", 4, "-q"]),
        "make_textures": (out, None, ["make", "textures", "--out", out, "--count", 4, "-q"]),
        "make_novel_objects": (out, None, ["make", "novel_objects", "--out", out, "--count", 2, "-q"]),
        "make_cue_decomposition": (out, None, [*decomposition, *settings, "-q"]),
        "cue": (out, None, ["cue", "greyscale", photographs, out, "--workers", 1, "-q"]),
        "fetch": (out, None, []),
        "figure": (out, None, ["figure", "texture_sheet", "--out", figure]),
        "report": (out, None, ["report", first, "--out", out / "table.tex"]),
    }
    more = {"fetch": {"url": server[0], "root": str(out), "files": server[1]}} if request.param == "fetch" else {}
    return (*calls[request.param], more)


@pytest.mark.parametrize("verb", VERBS, indirect=True)
@pytest.mark.timeout(1800)
def test_the_rerun_ends_in_the_same_bytes(
    verb: tuple[Path, Path | None, list[Any], dict[str, Any]],
    commands: Any,
    contents: Callable[[Path], dict[str, Any]],
    everything: bool,
    request: pytest.FixtureRequest,
) -> None:
    out, start, arguments, more = verb
    name = request.node.callspec.params["verb"]
    if name in ("make_novel_objects", "figure") and not everything:
        pytest.skip("takes seconds; like verbs are killed in the short form, this one by make faults")

    def reset() -> None:
        shutil.rmtree(out, ignore_errors=True)
        if start is not None:
            shutil.copytree(start, out)

    reset()
    began = time.monotonic()
    whole = commands(*arguments, **more)
    duration = time.monotonic() - began
    assert whole["status"] == 0, whole["output"][-2000:]
    expected, steps = contents(out), whole["steps"]
    assert steps > 2, "nothing was written"
    draw = random.Random(name)
    chosen = range(1, steps + 1) if steps <= 100 else sorted(draw.sample(range(1, steps + 1), 100))
    kills: list[dict[str, Any]] = [{"kill_at": step} for step in chosen]
    kills += [{"kill_after": draw.uniform(0, duration)} for _ in range(20)]
    if name in SLOW or not everything:
        kills = draw.sample(kills, 1 + 19 * everything if name in SLOW else 2)
    for kill in kills:
        reset()
        for _ in range(draw.choice((1, 1, 2))):  # sometimes the second attempt dies too
            result = commands(*arguments, **more, **kill)
            counted[name] = counted.get(name, 0) + (result["signal"] == KILL)
        again = commands(*arguments, **more)
        assert again["status"] == 0, (kill, again["output"][-2000:])
        assert contents(out) == expected, kill


def test_how_many(capsys: pytest.CaptureFixture[str]) -> None:
    """Says how many kills there were; without any, the tests above would show nothing."""
    with capsys.disabled():
        print(f"\nkills: {sum(counted.values())} in all; " + ", ".join(f"{v} {n}" for v, n in counted.items()))
    assert not counted or sum(counted.values()) >= len(counted)
