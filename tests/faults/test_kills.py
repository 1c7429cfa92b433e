"""Every verb that writes is killed at steps of its writing and at random instants; the rerun ends in the same bytes."""

from __future__ import annotations

import errno
import hashlib
import http.server
import random
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from PIL import Image

from cuebench import cli
from cuebench.cli import module_of
from cuebench.files import read_parquet
from cuebench.study.simulate import Population
from study_data import make_study, small_design, take_part, write_refined_bias

KILL = 9
COMMANDS: dict[str, tuple[str, ...]] = {
    "board build": ("board_build",),
    "calibrate": ("calibrate",),
    "compare": ("compare",),
    "controls": ("controls",),
    "correlate": ("correlate",),
    "cue": ("cue", "cue_sheet"),
    "data balance": ("data_balance",),
    "fetch": ("fetch",),
    "figure": ("figure",),
    "import answers": ("import_answers",),
    "import model-vs-human": ("import_model_vs_human",),
    "make": ("make_cue_conflict", "make_textures", "make_novel_objects", "make_cue_decomposition", "make_refined_bias",
             "make_toy_world"),
    "merge": ("merge",),
    "new": ("new",),
    "published agree": ("published_agree",),
    "published export": ("published_export", "published_export_run"),
    "report": ("report", "report_page"),
    "run": ("run", "run_more", "run_fresh", "run_save_config"),
    "score": ("score",),
    "study analyse": ("study_analyse",),
    "study bundle": ("study_bundle",),
    "study export": ("study_export",),
    "study new": ("study_new",),
    "texture-of": ("texture_of",),
    "trials": ("trials",),
}  # fmt: skip
"""Command that writes → how it is called here."""
ELSEWHERE = {
    "curate": "a server on this machine: tests/stimuli/test_curation.py",
    "demo": "make, controls, run and report in turn",
    "study rehearse": "a study with simulated people in a temporary folder; --out is study export",
    "study serve": "a server: tests/study/test_server_process.py",
}
"""Command that writes → where it is killed instead."""
NOTHING_WRITTEN = {
    "board check", "data check", "doctor", "explain", "list", "power", "published check", "published list",
    "published place", "steer", "study power", "validity agreement", "validity classes", "validity difficulty",
    "validity distortion",
}  # fmt: skip
VERBS = tuple(verb for verbs in COMMANDS.values() for verb in verbs)
SLOW = {
    "board_build": 20, "calibrate": 4, "controls": 1, "correlate": 10, "cue_sheet": 8, "figure": 20,
    "make_novel_objects": 20, "make_toy_world": 2, "published_agree": 10, "report_page": 12, "study_analyse": 12,
    "texture_of": 20,
}  # fmt: skip
"""Verbs that take seconds even for the smallest result → how often they are killed, all of them by ``make faults``."""
ONCE = ("study_bundle", "study_new")
"""Verbs that refuse a folder that they have finished: what they make has secrets of its own."""


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


@pytest.fixture(scope="session")
def scored(commands: Any, data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of six observers and two protocols."""
    folder = tmp_path_factory.mktemp("scored")
    write_refined_bias(folder / "data", per_class=2)
    shutil.copytree(data / "cue_conflict", folder / "data" / "cue_conflict")
    observers = [f"ideal:mixture?shape={share}" for share in (0.1, 0.3, 0.5, 0.7, 0.9)] + ["ideal:shape"]
    arguments = ["run", "-p", "cue_conflict", "-p", "refined_bias", "--data-root", folder / "data", "--resamples", 100]
    result = commands(*arguments, *(f"-o{spec}" for spec in observers), "--out", folder / "run", "-q")
    assert result["status"] == 0, result
    return folder / "run"


@pytest.fixture(scope="session")
def files(commands: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with answers of other tools, textures with a model that sees them, cut-out objects, a study."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "answers.csv").write_text("stimulus,shape,texture,decision\na,ball,brick,ball\n")
    (folder / "raw-data" / "edge").mkdir(parents=True)
    (folder / "raw-data" / "edge" / "edge_subject-01_session-1.csv").write_text(RAW)
    for name, level in (("dim", 30), ("glare", 230)):
        (folder / "textures" / name).mkdir(parents=True)
        for i in range(4):
            pixels = np.full((16, 16, 3), level + i, np.uint8)
            Image.fromarray(pixels).save(folder / "textures" / name / f"{i}.png")
    y, x = np.mgrid[:160, :160]
    for name, period in (("tiger", 4), ("zebra", 6)):
        (folder / "cut_out" / name).mkdir(parents=True)
        noise = np.random.default_rng(period).integers(40, 220, (160, 160, 3)) * ((x // period + y // 7) % 2)[..., None]
        pixels = np.dstack([noise, 255 * ((y - 80) ** 2 + (x - 80) ** 2 < 3600)]).astype(np.uint8)
        Image.fromarray(pixels, "RGBA").save(folder / "cut_out" / name / "0.png")
    (folder / "bright.py").write_text(BRIGHT)
    (folder / "labels.json").write_text('{"names": ["night", "day"]}')
    design = small_design("refined_bias", folder / "design", count="6", pixels="16")
    data = write_refined_bias(folder / "data", per_class=6)
    take_part(make_study(folder / "study", design, data), Population(accuracy={"shape": 0.9, "texture": 0.6}), 4)
    return folder


RAW = """subj,session,trial,rt,object_response,category,condition,imagename
subject-01,1,1,0.9,cat,cat,0,0001_edg_dnn_0_cat_00_n02123159_0.png
subject-01,1,2,0.8,dog,car,0,0002_edg_dnn_0_car_00_n02814533_1.png
"""
BRIGHT = """
import numpy as np
def make():
    return lambda images: np.stack([-8 * images.mean(axis=(1, 2, 3)), 8 * images.mean(axis=(1, 2, 3))], 1)
"""


class Call(NamedTuple):
    """A command that writes, which can be given again and again."""

    name: str
    out: Path
    before: Path | None
    """What lies in ``out`` before it, if anything."""
    arguments: list[Any]
    more: dict[str, Any]
    """Further parts of the request."""
    commands: Any
    contents: Callable[[Path], dict[str, Any]]

    def reset(self) -> None:
        shutil.rmtree(self.out, ignore_errors=True)
        if self.before is not None:
            shutil.copytree(self.before, self.out)

    def give(self, **fault: Any) -> dict[str, Any]:
        return self.commands(*self.arguments, **self.more, **fault)  # type: ignore[no-any-return]

    def written(self) -> dict[str, Any]:
        return comparable(self.name, self.contents(self.out))

    def check_rerun(self, expected: dict[str, Any], fault: Any) -> None:
        again = self.give()
        if not (self.name in ONCE and "is there already" in again["output"]):  # it had come to its last step
            assert again["status"] == 0, (fault, again["output"][-2000:])
        assert self.written() == expected, fault


@pytest.fixture
def verb(
    request: pytest.FixtureRequest,
    commands: Any,
    contents: Callable[[Path], dict[str, Any]],
    tmp_path: Path,
    finished: tuple[Path, Path],
    scored: Path,
    photographs: Path,
    files: Path,
    data: Path,
    run_command: Callable[..., list[str]],
    server: tuple[str, dict[str, tuple[str, int]]],
) -> Call:
    """Return how a verb is called."""
    out, (first, second) = tmp_path / "out", finished
    sizes = ("size=32", "resize=0", "workers=1")
    settings = [word for setting in sizes for word in ("--set", setting)]
    decomposition = ["make", "cue_decomposition", "--source", photographs, "--out", out, "--cues", "voronoi,patch"]
    bright = f"python:{files / 'bright.py'}:make?labels={files / 'labels.json'}&preprocess.size=16&fingerprint=1"
    design = files / "design"
    study = ["study", "new", out, "--design", design, "--data-root", files / "data", "-q"]
    pair = ["-p", "cue_conflict", "-p", "refined_bias", "--kind", "ideal"]
    calls: dict[str, tuple[Path | None, list[Any]]] = {
        "run": (None, run_command(out)),
        "run_more": (first, run_command(out, "ideal:shape", "ideal:texture")),
        "run_fresh": (first, [*run_command(out), "--fresh"]),
        "run_save_config": (None, [*run_command(out), "--save-config", out / "config.toml"]),
        "score": (first, ["score", out, "--seed", 3, "-q"]),
        "merge": (None, ["merge", first, second, "--out", out, "-q"]),
        "make_cue_conflict": (None, ["make", "cue_conflict", "--out", out, "--count", 4, "-q"]),
        "make_textures": (None, ["make", "textures", "--out", out, "--count", 4, "-q"]),
        "make_novel_objects": (None, ["make", "novel_objects", "--out", out, "--count", 2, "-q"]),
        "make_cue_decomposition": (None, [*decomposition, *settings, "-q"]),
        "make_refined_bias": (None, ["make", "refined_bias", "--source", files / "cut_out", "--out", out, "--set",
                                     "grids=4", "-q"]),
        "make_toy_world": (None, ["make", "toy_world", "--out", out, "--count", 4, "-q"]),
        "cue": (None, ["cue", "greyscale", photographs, out, "--workers", 1, "-q"]),
        "cue_sheet": (None, ["cue", "--sheet", out / "sheet.png", photographs / "cat" / "cat0.png", "-q"]),
        "fetch": (None, []),
        "figure": (None, ["figure", "texture_sheet", "--out", out / "figure.svg"]),
        "report": (None, ["report", first, "--out", out / "table.tex"]),
        "report_page": (None, ["report", first, "--out", out / "page.html", "--images", 4, "--no-figures"]),
        "board_build": (None, ["board", "build", first, second, "--out", out, "--workers", 1, "-q"]),
        "calibrate": (None, ["calibrate", "-p", "cue_conflict", "--quick", "--workers", 1, "--out", out]),
        "compare": (None, ["compare", scored, "--out", out / "pairs.csv"]),
        "controls": (None, ["controls", "segment_shape", "--out", out, "-q"]),
        "correlate": (None, ["correlate", scored, *pair, "--corrected", "--out", out / "figure.svg"]),
        "data_balance": (None, ["data", "balance", scored, "--classes", 1, "--out", out / "classes.json"]),
        "import_answers": (None, ["import", "answers", files / "answers.csv", "--out", out]),
        "import_model_vs_human": (None, ["import", "model-vs-human", files, "--out", out / "all.parquet"]),
        "new": (None, ["new", "cue", "mine", "--to", out]),
        "published_agree": (None, ["published", "agree", "--out", out / "figure.svg"]),
        "published_export": (None, ["published", "export", "--out", out / "published.csv"]),
        "published_export_run": (None, ["published", "export", scored, "--out", out]),
        "study_new": (None, study),
        "study_export": (None, ["study", "export", files / "study", "--out", out / "answers.parquet"]),
        "study_analyse": (None, ["study", "analyse", files / "study", "--out", out]),
        "study_bundle": (None, ["study", "bundle", files / "study", "--out", out, "--domain", "example.org",
                                "--postgresql"]),
        "texture_of": (None, ["texture-of", files / "textures" / "dim" / "0.png", "-o", bright, "--run", out,
                              "--data-root", files, "--draw", out / "card.svg", "-q"]),
        "trials": (None, ["trials", scored, "--out", out / "trials.parquet"]),
    }  # fmt: skip
    more = {"fetch": {"url": server[0], "root": str(out), "files": server[1]}} if request.param == "fetch" else {}
    return Call(request.param, out, *calls[request.param], more, commands, contents)


def comparable(name: str, files: dict[str, Any]) -> dict[str, Any]:
    """Return what must be the same of the files of a verb: not secrets, which are drawn anew, nor seconds."""
    if name == "controls":
        return {file: without(data, b'"cpu_seconds"') for file, data in files.items()}
    if name == "study_bundle":
        return {file: None if file == ".env" else data for file, data in files.items()}
    if name != "study_new":
        return files
    images = read_parquet(files.pop("stimuli.parquet")).to_pylist()
    shown = {row["name"]: (files.pop(f"images/{row['file']}"), row["role"], row["shape"]) for row in images}
    assert len(shown) == len(images)
    settings = without(files.pop("study.toml"), b"identity = ", b"made_at = ")
    return {**files, "secret": len(files["secret"]), "settings": settings, "shown": shown}


def without(data: bytes, *starts: bytes) -> list[bytes]:
    """Return the lines of a file without those that begin so."""
    return [line for line in data.splitlines() if not line.strip().startswith(starts)]


@pytest.mark.parametrize("verb", VERBS, indirect=True)
@pytest.mark.timeout(1800)
def test_the_rerun_ends_in_the_same_bytes(verb: Call, everything: bool, request: pytest.FixtureRequest) -> None:
    if verb.name in SLOW and not everything:
        pytest.skip("takes seconds; like verbs are killed in the short form, this one by make faults")
    verb.reset()
    began = time.monotonic()
    whole = verb.give()
    duration = time.monotonic() - began
    assert whole["status"] == 0, whole["output"][-2000:]
    expected, steps = verb.written(), whole["steps"]
    assert steps > 2, "nothing was written"
    draw = random.Random(verb.name)
    chosen = range(1, steps + 1) if steps <= 100 else sorted(draw.sample(range(1, steps + 1), 100))
    kills: list[dict[str, Any]] = [{"kill_at": step} for step in chosen]
    # A random instant can come after the end: the short form has none.
    kills += [{"kill_after": draw.uniform(0, duration)} for _ in range(20 * everything)]
    if verb.name in SLOW or not everything:
        kills = draw.sample(kills, SLOW.get(verb.name, 1))
    killed = 0
    for kill in kills:
        verb.reset()
        for _ in range(draw.choice((1, 1, 2))):  # sometimes the second attempt dies too
            killed += verb.give(**kill)["signal"] == KILL
        verb.check_rerun(expected, kill)
    assert killed
    request.node.user_properties.append(("kills", killed))


@pytest.mark.parametrize("verb", VERBS, indirect=True)
@pytest.mark.timeout(1800)
def test_a_full_disk_is_said_and_the_rerun_ends_in_the_same_bytes(verb: Call, everything: bool) -> None:
    if verb.name not in ONCE and not everything:
        pytest.skip("the long form: make faults")
    verb.reset()
    whole = verb.give()
    assert whole["status"] == 0, whole["output"][-2000:]
    expected, draw = verb.written(), random.Random(verb.name)
    steps = range(1, whole["steps"] + 1)
    for step in draw.sample(steps, min(len(steps), 2 if verb.name in SLOW or not everything else 12)):
        verb.reset()
        error = draw.choice((errno.ENOSPC, errno.EROFS, errno.EDQUOT))
        result = verb.give(fail_at=step, errno=error)
        told = (step, result["output"][-1500:])
        assert result["status"] in (0, 1, 2), told  # 0: nothing was left to write; 1: a row says why
        assert "Traceback" not in result["output"], told
        assert result["status"] != 2 or "→" in result["output"], told
        verb.check_rerun(expected, step)


def test_every_command_that_writes_is_killed_somewhere() -> None:
    known = [*COMMANDS, *ELSEWHERE, *NOTHING_WRITTEN]
    assert sorted(known) == sorted(all_commands())
    for command in NOTHING_WRITTEN:
        verb, _, sub = command.partition(" ")
        function = getattr(module_of(verb), "COMMANDS", {}).get(sub) or module_of(verb).command
        assert not {"out", "to", "target", "draw", "sheet", "save_config"} & set(signature(function).parameters)


def all_commands() -> Iterator[str]:
    for verb in cli.verbs():
        module = module_of(verb)
        yield from [f"{verb} {sub}" for sub in module.COMMANDS] if hasattr(module, "COMMANDS") else [verb]
