"""Networks that are loaded while others answer: the same run, whether in one wave or in many."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import cuebench as cb
from cuebench.responses.events import Event
from cuebench.runs import waves
from cuebench.runs.record import RunOptions

pytestmark = [pytest.mark.torch, pytest.mark.xdist_group("torch")]

SMALL = "weights=random&preprocess.size=64&preprocess.resize=64"
NETS = [f"timm:test_resnet?{SMALL}&seed={i}&name=net{i}" for i in range(5)]


def run(out: Path, root: Path, observers: list[str], **options: Any) -> cb.Scores:
    options = {"device": "cpu", "workers": 1, "resamples": 100, **options}
    return cb.evaluate(observers, "imagenet_accuracy", data_root=root, out=out, **options)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two photographs of each of three classes, in the layout of ImageNet's validation images."""
    import numpy as np
    from PIL import Image

    from cuebench.labels import label_space

    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    for wnid in label_space("imagenet1k").ids[:3]:
        place = folder / "imagenet_val" / wnid
        place.mkdir(parents=True)
        for number in range(2):
            pixels = rng.integers(0, 256, (64, 64, 3), np.uint8)
            Image.fromarray(pixels).save(place / f"{number}.png")
    return folder


@pytest.fixture
def two_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waves, "NETWORKS", 2)


def test_waves_give_the_same_run(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    observers = [*NETS[:3], "ideal:shape", *NETS[3:]]
    run(tmp_path / "one", root, observers)
    monkeypatch.setattr(waves, "NETWORKS", 2)
    cuts = waves.cut(observers, RunOptions())
    assert [len(wave) for wave in cuts] == [3, 2, 1]  # the ideal observer is in the first
    events: list[Event] = []
    run(tmp_path / "many", root, observers, on_event=events.append)
    for name in ("scores.parquet", "scores.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "many" / name).read_bytes()
    one, many = (json.loads((tmp_path / name / "run.json").read_text()) for name in ("one", "many"))
    for part in ("jobs", "stimuli", "files", "failures", "skipped", "status"):
        assert one[part] == many[part], part
    totals = [event.total for event in events if event.kind == "start"]
    assert len(totals) == 3
    assert len(set(totals)) == 1  # what is to come is counted from the beginning
    assert [e.done for e in events if e.kind == "batch"][-1] == totals[0]


@pytest.mark.usefixtures("two_at_once")
class TestLater:
    def test_a_network_that_cannot_be_loaded_is_a_row(self, tmp_path: Path, root: Path) -> None:
        scores = run(tmp_path / "run", root, [*NETS[:4], "timm:no_such_network"], on_event=lambda event: None)
        assert [f for f in scores.failures if "no_such_network" in str(f)]
        assert {s.observer for s in scores} >= {f"net{i}" for i in range(4)}

    def test_a_name_that_is_taken_is_a_row(self, tmp_path: Path, root: Path) -> None:
        events: list[Event] = []
        again = f"timm:test_resnet?{SMALL}&seed=9&name=net0"
        scores = run(tmp_path / "run", root, [*NETS[:3], again], on_event=events.append)
        assert any("two observers are called 'net0'" in event.message for event in events if event.kind == "failed")
        assert {s.observer for s in scores} >= {"net0", "net1", "net2"}
        record = json.loads((tmp_path / "run" / "run.json").read_text())
        assert [job["spec"] for job in record["jobs"] if job["observer"] == "net0"] == [NETS[0]]

    def test_the_same_command_again_asks_nothing(self, tmp_path: Path, root: Path) -> None:
        run(tmp_path / "run", root, NETS)
        before = (tmp_path / "run" / "scores.json").read_bytes()
        events: list[Event] = []
        run(tmp_path / "run", root, NETS, on_event=events.append)
        assert (tmp_path / "run" / "scores.json").read_bytes() == before
        assert not [e for e in events if "holds answers of" in e.message]
        assert not [e for e in events if e.kind == "probe"]  # nothing is missing

    def test_an_error_in_the_first_wave_loads_no_more(self, tmp_path: Path, root: Path) -> None:
        asked: list[str] = []

        def stop(event: Event) -> None:
            asked.append(event.kind)
            if event.kind == "batch":
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            run(tmp_path / "run", root, NETS, on_event=stop)
        assert json.loads((tmp_path / "run" / "run.json").read_text())["status"] == "stopped"
        scores = run(tmp_path / "run", root, NETS)
        assert len({s.observer for s in scores}) == len(NETS)

    def test_a_run_that_is_killed_between_waves_is_not_finished(self, tmp_path: Path, root: Path) -> None:
        """Its status says so while the next networks are being loaded, which can take minutes."""
        record, states = tmp_path / "run" / "run.json", []

        def look(event: Event) -> None:
            if record.is_file():
                states.append(json.loads(record.read_text())["status"])

        run(tmp_path / "run", root, NETS, on_event=look)
        assert set(states[: states.index("collected")]) == {"running"}
        assert json.loads(record.read_text())["status"] == "complete"
        batches = [j["observer"] for j in json.loads(record.read_text())["jobs"]]
        assert len(batches) == len(NETS)


def test_own_code_is_loaded_before_anything_answers() -> None:
    own = ["python:model.py:make", *NETS, *(f"{n}1" for n in NETS)]
    assert waves.cut(own, RunOptions()) == [own]
    assert waves.cut([*NETS, *NETS], RunOptions()) == [[*NETS, *NETS]]  # refused with the usual words
    assert waves.cut(own[1:], RunOptions(engine="ray")) == [own[1:]]
    assert [len(wave) for wave in waves.cut(own[1:], RunOptions())] == [8, 2]
