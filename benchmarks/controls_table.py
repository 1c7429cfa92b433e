"""All trained controls through all protocols: the tables of docs/calibration_controls.md and docs/one_thing.md.

``python -m benchmarks.controls_table --out DIR`` draws the stimuli, trains the controls that are missing (in the folder
of weights), shows them everything and prints the tables; ``--write`` puts them between the marks of the two pages.
What is done already is not done again. ``--seeds N``: so many networks of shape, both and texture, one fewer of the
other convolutional classifiers, one of each transformer and each that segments. ``--quick``: few pictures.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks._controls_tables import LEVELS, SMALL, SMALL_SIDE, Runs, named, of_architecture, tables
from benchmarks._marks import filled
from cuebench.analyses.demo import PROTOCOLS, SEGMENTATION
from cuebench.analyses.demo.stimuli import OBJECTS, make_stimuli
from cuebench.controls.train import train_controls
from cuebench.observers.control_files import CONTROLS, weights_folder
from cuebench.runs.evaluate import evaluate

DOCS = Path(__file__).parents[1] / "docs"
RESAMPLES = 2000
IMPORTANT = ("shape", "both", "texture")
"""Controls of which there are most networks, to tell how far training moves a headline."""


class Sizes(NamedTuple):
    """How many pictures of each kind.

    Parameters
    ----------
    conflicts : int
        Of cue conflict.
    numbers : mapping
        Of other kinds, as options of the toy world.
    novel : mapping
        Options of the novel objects.
    levels, small : int
        About how many pictures each protocol with many levels shows, and feature suppression of small ones.
    """

    conflicts: int
    numbers: Mapping[str, int]
    novel: Mapping[str, Any]
    levels: int
    small: int


FULL = Sizes(512, {"photographs": 240, "patches": 160, "objects": 80, "scenes": 64}, {}, 5000, 6000)
QUICK = Sizes(128, {}, OBJECTS, 500, 1500)


def measure(out: Path, sizes: Sizes, seeds: int, names: Sequence[str] = tuple(CONTROLS)) -> Runs:
    """Draw the stimuli, train what is missing, show everything to everybody.

    Parameters
    ----------
    out : Path
        Stimuli and runs go here.
    sizes : Sizes
        Of the stimuli.
    seeds : int
        Networks of the most important kinds; see `networks`.
    names : sequence of str
        Controls.
    """
    runs, data = Runs(*(out / name for name in Runs._fields)), out / "data"
    say("stimuli")
    make_stimuli(data, count=sizes.conflicts, numbers=sizes.numbers, novel=sizes.novel)
    chosen = networks(seeds, names)
    for seed in range(seeds):
        say(f"controls of seed {seed}")
        train_controls([name for name, number in chosen if number == seed], weights_folder(), seed=seed)
    observers = {
        segments: [named(*one) for one in chosen if one[0] in of_architecture(segments=segments)]
        for segments in (False, True)
    }
    common: dict[str, Any] = {"resamples": RESAMPLES, "offline": True, "cache": out / "pixels"}
    single = [p for p in PROTOCOLS if p not in LEVELS]
    say("protocols of single pictures")
    evaluate(
        observers[False], single, data_root=data, out=runs.single, settings={"triplets.experiments": "3"}, **common
    )
    say("protocols of many levels")
    evaluate(observers[False], LEVELS, data_root=data, out=runs.levels, limit=sizes.levels, **common)
    evaluate(observers[False], SMALL, data_root=data, out=runs.small, limit=sizes.small,
             settings={f"{SMALL}.size": SMALL_SIDE}, **common)  # fmt: skip
    if observers[True]:
        say("segmentation")
        evaluate(observers[True], SEGMENTATION, data_root=data / "segmentation", out=runs.segmentation, **common)
    return runs


def networks(seeds: int, names: Sequence[str] = tuple(CONTROLS)) -> list[tuple[str, int]]:
    """Return names and seeds of the controls: seed by seed, most of those of shape, both and texture."""
    fewer = [name for name, control in CONTROLS.items() if control.architecture == "convnet"]
    wanted = dict.fromkeys(CONTROLS, 1) | dict.fromkeys(fewer, max(1, seeds - 1)) | dict.fromkeys(IMPORTANT, seeds)
    return [(name, seed) for seed in range(seeds) for name, number in wanted.items() if name in names and seed < number]


def say(text: str) -> None:
    """Print what begins, and when."""
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def command(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and write the pages where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for stimuli and runs")
    parser.add_argument("--seeds", type=int, default=3, help="networks of shape, both and texture; see above")
    parser.add_argument("--quick", action="store_true", help="few pictures: the sizes of the demo")
    parser.add_argument("--write", action="store_true", help="put the tables into the pages of docs/")
    given = parser.parse_args(arguments)
    made = tables(measure(given.out, QUICK if given.quick else FULL, given.seeds))
    for page, parts in made.items():
        print(f"\n# {page}")
        for name, text in parts.items():
            print(f"\n## {name}\n\n{text}")
        if given.write:
            path = DOCS / page
            path.write_text(filled(path.read_text("utf-8"), parts), "utf-8")


if __name__ == "__main__":
    command()
