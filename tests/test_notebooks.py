"""Notebooks: docs/notebooks.md in a real kernel, the bar, and names that are no HTML."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

import cuebench
from cuebench.protocols.headline import Column
from cuebench.reports.comparison import Comparison, compare_runs
from cuebench.reports.paired import Paired
from cuebench.responses.events import Event
from cuebench.runs import notebook
from cuebench.stimuli import show
from cuebench.types import Score, Stimulus, StimulusSet
from small_data import write_cue_conflict

PAGE = Path(__file__).parents[1] / "docs" / "notebooks.md"
HOSTILE = "<img src=x onerror=alert(1)>\x1b[31m&\"'"
TAGS = {"div", "table", "caption", "thead", "tbody", "tr", "th", "td", "p", "br", "b", "span", "progress", "img",
        "figure", "figcaption", "tfoot"}  # fmt: skip


def check_escaped(html: str) -> None:
    """The hostile name is text: it opens no tag, ends no attribute and holds no control character."""
    assert "\x1b" not in html
    assert set(re.findall(r"</?([a-zA-Z]+)", html)) <= TAGS
    assert "onerror" in html, "the name is shown"
    assert all("onerror" not in tag or "&lt;img" in tag for tag in re.findall(r"<[^>]*>", html))
    assert not re.search(r"<img src=x", html)


# ------------------------------------------------------------------------------------------- a real notebook


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> list[list[Any]]:
    """The outputs of the cells of docs/notebooks.md, run by Jupyter."""
    nbformat = pytest.importorskip("nbformat", reason="needs nbclient and ipykernel: pip install nbclient ipykernel")
    client = pytest.importorskip("nbclient", reason="needs nbclient: pip install nbclient")
    pytest.importorskip("ipykernel", reason="needs ipykernel: pip install ipykernel")
    cells = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    folder = str(tmp_path_factory.mktemp("notebook"))
    executed = client.NotebookClient(book, timeout=200, resources={"metadata": {"path": folder}})
    asyncio.run(executed.async_execute())
    return [cell.outputs for cell in book.cells]


@pytest.mark.slow
@pytest.mark.xdist_group("notebook")
def test_stimuli_show_their_pictures(outputs: list[list[Any]]) -> None:
    (sheet,), (one,) = outputs[:2]
    html = sheet["data"]["text/html"]
    assert html.count('<img src="data:image/jpeg;base64,') == 15
    assert "15 stimuli" in html
    assert ">shape: bow_tie</div>" in html
    assert len(sheet["data"]["text/plain"]) < 200
    assert "<td style='text-align:left'>bow_tie</td>" in one["data"]["text/html"]


@pytest.mark.slow
@pytest.mark.xdist_group("notebook")
def test_a_run_leaves_one_line_and_shows_its_scores(outputs: list[list[Any]]) -> None:
    bar, scores = outputs[2]
    assert bar["output_type"] == "display_data", "one output that is replaced, not a flood"
    assert re.fullmatch(r"\d+ scores in .*, in \d:\d\d", bar["data"]["text/plain"])
    assert "<progress" not in bar["data"]["text/html"], "the bar is gone when the run is finished"
    html = scores["data"]["text/html"]
    assert "cue_conflict · shape_bias" in html
    assert re.search(r">ideal:shape</td><td [^>]*>1\.000", html)
    assert re.search(r">ideal:texture</td><td [^>]*>0\.000", html)


@pytest.mark.slow
@pytest.mark.xdist_group("notebook")
def test_figures_and_comparisons_show_themselves(outputs: list[list[Any]]) -> None:
    (figure,), (comparison,) = outputs[3:]
    assert {"application/vnd.vegalite.v6+json", "image/png"} <= set(figure["data"])
    assert "pairs differ" in comparison["data"]["text/html"]
    assert comparison["data"]["text/plain"].startswith("<Comparison: 3 observers on cue_conflict")


# ------------------------------------------------------------------------------------------- the bar


class Kernel:
    """Stands for IPython in a kernel: keeps what is displayed and every update of it."""

    def __init__(self) -> None:
        self.shown: list[dict[str, str]] = []
        self.displays = 0

    def get_ipython(self) -> Any:
        return SimpleNamespace(kernel=object())

    def display(self, bundle: dict[str, str], *, raw: bool, display_id: bool) -> Kernel:
        assert raw
        assert display_id
        self.displays += 1
        self.shown.append(bundle)
        return self

    def update(self, bundle: dict[str, str], *, raw: bool) -> None:
        self.shown.append(bundle)


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    made = Kernel()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=made.get_ipython))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=made.display))
    return made


class Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(notebook, "time", made)
    return made


def test_the_bar_has_an_eta_of_what_is_new_and_is_drawn_seldom(kernel: Kernel, clock: Clock) -> None:
    with notebook.listening(None) as tell:
        clock.now += 10  # loading
        tell(Event("batch", "net", done=500, total=1000))  # 500 were stored before
        for done in range(501, 601):
            clock.now += 0.1
            tell(Event("batch", "net", done=done, total=1000))
        assert 30 <= len(kernel.shown) <= 52, "100 events in 10 s: at most five drawings a second"
        assert re.search(r"(598|599|600)/1,000 · 0:20 · ETA 0:40", kernel.shown[-1]["text/plain"])
        assert re.search('value="(598|599|600)" max="1000"', kernel.shown[-1]["text/html"])
        clock.now += 40
        tell(Event("scored", "net", done=1, total=2))
        clock.now += 3
        tell(Event("scored", "other", done=1, total=2))
        assert "ETA" not in kernel.shown[-1]["text/plain"], "the pace of answers says nothing of scoring"
    assert kernel.displays == 1
    assert kernel.shown[-1]["text/plain"] == "finished in 1:03"


def test_the_bar_of_a_run_that_fails_says_so(kernel: Kernel, clock: Clock) -> None:
    def run() -> None:
        with notebook.listening(None) as tell:
            tell(Event("failed", HOSTILE, fields={"hint": "try another"}))
            for i in range(notebook.MOST_LINES + 2):
                tell(Event("notice", f"notice {i}"))
            clock.now += 3725
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run()
    last = kernel.shown[-1]
    assert last["text/plain"].startswith("stopped after 1:02:05")
    assert "→ try another" in last["text/plain"]
    assert "and 3 more" in last["text/html"]
    check_escaped(last["text/html"])


def test_only_a_notebook_gets_a_bar(kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_cue_conflict(tmp_path)
    run = {"data_root": tmp_path, "out": tmp_path / "run", "resamples": 100}
    heard: list[Event] = []
    cuebench.evaluate("ideal:shape", "cue_conflict", **run, on_event=heard.append)
    assert heard
    assert not kernel.shown, "a listener of the user's own replaces the bar"
    cuebench.score(tmp_path / "run")
    assert kernel.displays == 1
    cuebench.evaluate(["ideal:shape", "ideal:nothing"], "cue_conflict", **run)  # no warning: the bar shows the failure
    assert "unknown ideal observer" in kernel.shown[-1]["text/plain"]
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: SimpleNamespace())  # IPython in a terminal
    assert not notebook.in_notebook()


# ------------------------------------------------------------------------------------------- what is displayed


def test_names_are_text(tmp_path: Path) -> None:
    Image.fromarray(np.full((9, 20, 3), 90, np.uint8)).save(tmp_path / "a.png")
    stimulus = Stimulus(HOSTILE, "a.png", label=HOSTILE, condition=HOSTILE)
    stimuli = StimulusSet(HOSTILE, (stimulus,), str(tmp_path), partial=(HOSTILE,), notes=(HOSTILE,))
    check_escaped(stimuli._repr_html_())
    check_escaped(stimulus._repr_html_())
    check_escaped(StimulusSet("x", (Stimulus(HOSTILE, HOSTILE),), str(tmp_path))._repr_html_())
    row = Score(HOSTILE, 1, HOSTILE, HOSTILE, HOSTILE, 0.5, 0.4, 0.6, "images", 3, 0, f"partial data: {HOSTILE}")
    column = Column(HOSTILE, HOSTILE, HOSTILE, {HOSTILE: row})
    check_escaped(Comparison((column,), (HOSTILE,), {}, {HOSTILE: HOSTILE}, {HOSTILE: Paired(notes=(HOSTILE,))})
                  ._repr_html_())  # fmt: skip


def test_a_sheet_is_spread_over_the_set_and_says_what_it_leaves_out(tmp_path: Path) -> None:
    root = write_cue_conflict(tmp_path)
    stimuli = cuebench.protocols.cue_conflict.read(root)
    stimuli = stimuli.only(stimuli.stimuli, why="a part")
    chosen = show.spread(stimuli, 8)
    assert len({s.id for s in chosen}) == 8
    assert {s.shape for s in chosen} == {s.shape for s in stimuli}
    html = show.set_html(stimuli, most=8)
    assert f"8 of {len(stimuli)} shown" in html
    assert html.count("<figure") == html.count("<img ") == 8
    assert "partial: a part" in html
    (next(Path(stimuli.root).rglob(Path(chosen[0].path).name))).write_bytes(b"no picture")
    broken = show.set_html(stimuli, most=8)
    assert broken.count("<img ") == 7
    assert chosen[0].path in broken, "the reason stands in its place"
    recorded = StimulusSet("names", (Stimulus("cat1-dog2", shape="cat", texture="dog"),))
    assert "known by its name only" in recorded._repr_html_()


def test_a_slow_sheet_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stimuli = cuebench.protocols.cue_conflict.read(write_cue_conflict(tmp_path))
    monkeypatch.setattr(show, "PATIENCE", -1.0)
    assert "took too long" in show.set_html(stimuli)


def test_a_stimulus_without_a_file_is_drawn() -> None:
    from cuebench.protocols.texture_association import colours

    html = colours(1).stimuli[0]._repr_html_()
    assert html.count("<img ") == 1
    assert "colour/" in html


def test_stimuli_by_place_and_id(tmp_path: Path) -> None:
    stimuli = cuebench.protocols.cue_conflict.read(write_cue_conflict(tmp_path))
    assert stimuli[0] is stimuli.stimuli[0]
    assert stimuli[stimuli[3].id] is stimuli[3]
    assert stimuli[:2].stimuli == stimuli.stimuli[:2]
    with pytest.raises(cuebench.UserError, match="Did you mean"):
        stimuli[stimuli[3].id[:-1]]


def test_a_comparison_is_what_the_verb_prints(tmp_path: Path) -> None:
    observers = ["ideal:shape", "ideal:texture", "ideal:mixture?shape=0.7"]
    root = write_cue_conflict(tmp_path)
    cuebench.evaluate(observers, "cue_conflict", data_root=root, out=tmp_path / "run", resamples=100)
    html = compare_runs([tmp_path / "run"])._repr_html_()
    assert html.index("ideal:shape") < html.index("ideal:mixture") < html.index("ideal:texture"), "in order"
    assert "larger means more shape" in html
    assert "of 3 pairs differ" in html
    assert "different" in html
