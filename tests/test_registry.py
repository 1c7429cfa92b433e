"""Where parts come from: files of cuebench, installed plug-ins, files of a user, objects; and what broken ones do."""

from __future__ import annotations

import importlib
import json
import os
import py_compile
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cuebench import registry
from cuebench.cues.base import CueInfo, on_images
from cuebench.errors import UserError
from cuebench.metrics.base import Metric
from cuebench.python_files import import_file, load_file
from cuebench.registry import Registry

METRIC = '''"""Share of ones."""
from cuebench.metrics.base import Metric

def share(values):
    """Return the mean of zeros and ones."""
    return sum(values) / len(values)

METRIC = Metric("{name}", "Share of ones", formula="n_1 / n", denominator="all", reference="-", compute=share)
'''
CUE = '''"""Darken an image."""
from cuebench.cues.base import CueInfo, on_images

CUE = CueInfo(kind="corruption", reference="none")

def darken(image, *, by=0.5):
    """Multiply by a number."""
    return on_images(lambda one: one * by, image)
'''


def install(folder: Path, distribution: str, entries: dict[str, dict[str, str]], **modules: str) -> None:
    """Write what an installed distribution leaves on disk: metadata with entry points, and its modules."""
    info = folder / f"{distribution.replace('-', '_')}-1.5.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.5\n")
    lines = [f"[{group}]\n" + "\n".join(f"{n} = {v}" for n, v in found.items()) for group, found in entries.items()]
    (info / "entry_points.txt").write_text("\n".join(lines))
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A folder on the path of Python; what tests import from it is forgotten afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def fresh(parts: Registry) -> Registry:
    """Return the same registry as a new process would see it."""
    importlib.invalidate_caches()
    return replace(parts, added={})


# ------------------------------------------------------------------------------------------------ installed plug-ins


def test_an_installed_metric_and_cue_are_found_and_know_their_origin(site: Path) -> None:
    install(
        site,
        "some-plugin",
        {"cuebench.metrics": {"ones": "their_metric"}, "cuebench.cues": {"darken": "their_cue:darken"}},
        their_metric=METRIC.format(name="ones"),
        their_cue=CUE + "\ndarken.info = CUE\n",
    )
    metrics, cues = fresh(registry.metrics), fresh(registry.cues)
    assert "ones" in metrics
    assert metrics.get("ones")([1, 0, 1, 1]) == 0.75
    assert metrics.origin("ones") == "some-plugin 1.5"
    assert metrics.summary("ones") == "Share of ones"
    assert metrics.module("ones").__name__ == "their_metric"
    assert metrics.origin("shape_bias") == "cuebench"
    assert cues.get("darken").info.kind == "corruption"
    assert ("darken", cues.get("darken")) in list(cues.usable())
    assert not metrics.broken()


def test_a_module_can_stand_in_the_entry_point_of_a_cue(site: Path) -> None:
    install(site, "some-plugin", {"cuebench.cues": {"darken": "their_cue"}}, their_cue=CUE)
    assert fresh(registry.cues).get("darken").info.kind == "corruption"


@pytest.mark.parametrize(
    ("entry", "text", "reason"),
    [
        ("gone", "", "ModuleNotFoundError"),
        ("broken", "import nothing_of_this_name", "nothing_of_this_name"),
        ("broken", "raise SystemExit('my library is missing')", "my library is missing"),
        ("broken:ABSENT", "x = 1", "ABSENT"),
        ("broken:x", "x = 1", "is not a metric: a int without formula, compute"),
        ("broken", METRIC.format(name="another"), "calls itself 'another'"),
    ],
)
def test_a_broken_plug_in_is_named_and_spoils_nothing_else(site: Path, entry: str, text: str, reason: str) -> None:
    install(site, "bad-plugin", {"cuebench.metrics": {"bad": entry}}, **({"broken": text} if text else {}))
    metrics = fresh(registry.metrics)
    assert "bad" in metrics
    assert "bad" not in dict(metrics.usable())
    assert "shape_bias" in dict(metrics.usable())
    assert list(metrics.broken()) == ["bad"]
    assert reason in metrics.broken()["bad"]
    assert "bad-plugin 1.5" in metrics.broken()["bad"]
    with pytest.raises(UserError, match="bad-plugin") as raised:
        metrics.get("bad")
    assert raised.value.hint


def test_a_plug_in_cannot_take_a_name_that_is_taken(site: Path) -> None:
    text = METRIC.format(name="shape_bias")
    install(site, "thief", {"cuebench.metrics": {"shape_bias": "thief_metric"}}, thief_metric=text)
    metrics = fresh(registry.metrics)
    assert metrics.get("shape_bias") is registry.metrics.get("shape_bias")
    assert metrics.broken() == {"shape_bias": "thief 1.5: the name 'shape_bias' is taken by cuebench itself"}


def test_the_second_plug_in_of_a_name_is_reported(site: Path) -> None:
    text = METRIC.format(name="ones")
    install(site, "a-plugin", {"cuebench.metrics": {"ones": "metric_a"}}, metric_a=text)
    install(site, "b-plugin", {"cuebench.metrics": {"ones": "metric_b"}}, metric_b=text)
    metrics = fresh(registry.metrics)
    assert metrics.origin("ones") == "a-plugin 1.5"
    assert metrics.broken() == {"ones": "b-plugin 1.5: the name 'ones' is taken by a-plugin 1.5"}


@pytest.mark.parametrize("kind", list(registry.KINDS))
def test_the_entry_point_groups_are_named_after_the_words_of_list(kind: str) -> None:
    assert registry.KINDS[kind].group == f"cuebench.{kind}"


# ------------------------------------------------------------------------------------------------ files and objects


def test_a_part_of_a_file_is_named_by_its_place(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(METRIC.format(name="ones"))
    metrics = fresh(registry.metrics)
    spec = f"python:{file}:METRIC"
    assert metrics.get(spec)([1, 0]) == 0.5
    assert metrics.resolve(spec) == "ones"
    assert metrics.origin("ones") == spec
    assert metrics.get("ones") is metrics.get(spec)
    assert metrics.module("ones").__file__ == str(file)
    assert "ones" not in fresh(registry.metrics), "a file of one session must not be seen by the next"


def test_a_file_is_imported_once_and_again_after_a_change(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("VALUE = 1\n")
    module = load_file(file)
    assert load_file(file) is module
    file.write_text("VALUE = 22\n")
    assert load_file(file).VALUE == 22


def test_a_file_has_the_same_module_name_in_every_process(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("")
    code = f"from cuebench.python_files import load_file; print(load_file({str(file)!r}).__name__)"
    names = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert names == {load_file(file).__name__ + "\n"}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("python:absent.py:METRIC", None, "there is no Python file"),
        ("python:mine.py", "", "does not name a part of a file"),
        ("python:mine.py:METRC", METRIC.format(name="ones"), "Did you mean 'METRIC'"),
        ("python:mine.py:METRIC", "METRIC = 3", "is not a metric: a int"),
        ("python:mine.py:METRIC", "METRIC = 1 / 0", "ZeroDivisionError"),
        ("python:mine.py:METRIC", "raise SystemExit(3)", "SystemExit"),
    ],
)
def test_a_wrong_file_is_an_error_that_says_what_to_write(tmp_path: Path, monkeypatch, name, text, message) -> None:
    monkeypatch.chdir(tmp_path)
    if text is not None:
        (tmp_path / "mine.py").write_text(text)
    with pytest.raises(UserError, match=message) as raised:
        fresh(registry.metrics).get(name)
    assert raised.value.hint


def test_an_object_is_a_part_of_this_session() -> None:
    @CueInfo(kind="corruption", reference="none")
    def brighten(image):
        return on_images(lambda one: one * 0.5 + 0.5, image)

    cues = fresh(registry.cues)
    assert cues.resolve(brighten) == "brighten"
    assert cues.get("brighten") is brighten
    assert cues.origin("brighten") == registry.OBJECT


def test_an_object_that_is_no_part_or_takes_a_name_is_refused() -> None:
    metrics = fresh(registry.metrics)
    with pytest.raises(UserError, match="is not a metric"):
        metrics.resolve(len)
    with pytest.raises(UserError, match="unknown metric"):
        metrics.resolve("shape_bia")
    other = Metric("shape_bias", "Mine", "1", "1", "-", compute=lambda: 1.0)
    with pytest.raises(UserError, match="cuebench has one of that name"):
        metrics.resolve(other)
    with pytest.raises(UserError, match="has no name"):
        metrics.resolve(Metric("", "Mine", "1", "1", "-", compute=lambda: 1.0))
    assert metrics.resolve(metrics.get("shape_bias")) == "shape_bias"


# ------------------------------------------------------------------------------------------------ files of cuebench


def test_a_new_file_is_a_new_part(tmp_path: Path) -> None:
    (tmp_path / "fresh.py").write_text('"""Fresh."""\nMETRIC = 3\n')
    (tmp_path / "helper.py").write_text('"""No part."""\n')
    (tmp_path / "_private.py").write_text("METRIC = 4\n")
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "__init__.py").write_text('"""A room."""\nMETRIC = 5\n')

    class Here(registry.Registry):
        @property
        def folder(self) -> Path:
            return tmp_path

    parts = Here("gadget", "nowhere", "METRIC")
    assert parts.names() == ["fresh", "room"]
    assert parts.summary("fresh") == "Fresh."
    assert parts.summary("room") == "A room."


@pytest.mark.parametrize("kind", list(registry.KINDS))
def test_every_part_has_a_summary_and_unknown_ones_a_suggestion(kind: str) -> None:
    parts = registry.KINDS[kind]
    assert parts.names()
    assert all(parts.summary(name) for name in parts)
    with pytest.raises(UserError, match="Did you mean"):
        parts.get(parts.names()[0] + "x")


# ------------------------------------------------------------------------------------------------ the command line


def cuebench(*arguments: str, site: Path) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": paths}
    command = [sys.executable, "-m", "cuebench", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def broken_site(tmp_path: Path) -> Path:
    """A folder with a plug-in in which every kind of part is broken."""
    names = {f"cuebench.{kind}": {f"bad_{kind}": "bad_module"} for kind in registry.KINDS}
    install(tmp_path, "bad-plugin", names, bad_module="raise RuntimeError('half an upgrade')")
    return tmp_path


@pytest.mark.parametrize("kind", ["protocols", "observers", "cues", "metrics", "stimuli", "figures"])
def test_list_names_a_broken_plug_in_and_lists_the_rest(broken_site: Path, kind: str) -> None:
    done = cuebench("list", kind, "--json", site=broken_site)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    broken = [json.dumps(row) for row in rows if row["name"].startswith("bad_")]
    assert broken
    assert all("bad-plugin 1.5" in row and "half an upgrade" in row for row in broken)
    assert len(rows) > len(broken) + 1


def test_list_shows_people_the_reason_too(broken_site: Path) -> None:
    shown = cuebench("list", "protocols", site=broken_site)
    assert "half an upgrade" in " ".join(shown.stdout.split())


@pytest.mark.slow
def test_doctor_names_a_broken_plug_in(broken_site: Path) -> None:
    done = cuebench("doctor", "--json", site=broken_site)
    lines = [json.dumps(f) for f in json.loads(done.stdout)]
    for kind in registry.KINDS:
        assert any(f"bad_{kind}" in line and "half an upgrade" in line for line in lines), kind


@pytest.mark.slow
def test_a_broken_plug_in_ends_nobodys_run(broken_site: Path, data_root: Path) -> None:
    out = broken_site / "run"
    done = cuebench(
        "run", "-p", "cue_conflict", "-o", "ideal:shape", "--data-root", str(data_root), "--out", str(out),
        site=broken_site,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (out / "scores.json").is_file()
    without_data = cuebench("run", "-p", "cue_conflict", "-o", "ideal:shape", "--out", str(out), site=broken_site)
    assert "half an upgrade" not in without_data.stderr
    assert "--data-root" in without_data.stderr


def test_a_changed_file_is_never_run_from_its_compiled_copy(tmp_path, monkeypatch):
    """An edit of the same length in the same second: Python itself would run the old code."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    file = tmp_path / "mine.py"
    for number in (1, 2):
        file.write_text(f"NUMBER = {number}\n")
        os.utime(file, (1_700_000_000, 1_700_000_000))
        module = import_file(file)
        assert module.NUMBER == number  # noqa: SIM300
        py_compile.compile(str(file))
