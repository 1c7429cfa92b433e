"""Studies that simulated people have answered, without a server: what tests of the analysis start from."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from cuebench.study import database as db
from cuebench.study.design import BUILT_IN
from cuebench.study.export import write_export
from cuebench.study.folder import NewStudy, Study, new_study
from cuebench.study.simulate import Population, person
from cuebench.study.types import Answer, Trial, is_correct

SHAPES, TEXTURES = ("balloon", "camera", "clock"), ("tiger", "elephant", "zebra")
Change = Callable[[int, Trial, Answer], Answer]


def write_refined_bias(root: Path, per_class: int = 25, size: int = 8) -> Path:
    """Write small shape and texture cues in the published layout; each file has its own grey level."""
    level = 0
    for cue, names in (("shape", SHAPES), ("texture", TEXTURES)):
        for name in names:
            folder = root / "refined_bias" / f"refined_bias_{cue}" / name
            folder.mkdir(parents=True, exist_ok=True)
            for i in range(per_class):
                level += 1
                stem = f"{name}_{i}" if cue == "shape" else f"4x4_{name}_{i}"
                pixels = np.full((size, size, 3), (level % 256, level // 256, 7), np.uint8)
                Image.fromarray(pixels).save(folder / f"{stem}.png")
    return root


def make_study(folder: Path, design: str, data_root: Path | None = None, *, seed: int = 0) -> Study:
    """Make a study folder."""
    return new_study(folder, NewStudy(design=design, data_root=data_root, seed=seed))


def take_part(
    study: Study, people: Population, number: int, *, seed: int = 0, unfinished: int = 0, change: Change | None = None
) -> None:
    """Let simulated people answer the whole study, in one transaction.

    Parameters
    ----------
    study : Study
        What they answer.
    people : Population
        Whom they are drawn from.
    number : int
        How many.
    seed : int
        Of the people.
    unfinished : int
        So many of them stop half-way.
    change : callable, optional
        Participant (from 0), trial and answer → the answer that is stored instead.
    """
    database = db.Database(study.database_url)
    database.prepare(study.facts)
    with database.writing() as connection:
        for i in range(number):
            participant, _ = db.start_participant(connection, db.Start("en"))
            group, trials = study.assign(participant.slot)
            db.store_trials(connection, participant.number, group, trials)
            stops = i >= number - unfinished
            answers = list(person(people, participant.number, seed).answers(trials, study.images))
            kept = answers[: len(answers) // 2] if stops else answers
            changed = [change(i, trials[a.position], a) if change else a for a in kept]
            db.store_answers(connection, [given(participant.number, trials[a.position], a) for a in changed])
            if not stops:
                db.finish(connection, participant.number)
    database.close()


def given(participant: int, trial: Trial, answer: Answer) -> db.Given:
    """Return an answer as the server stores it."""
    return db.Given(participant, answer, trial.kind, is_correct(trial, answer.response))


def export(study: Study, out: Path) -> Path:
    """Write the export of a study."""
    database = db.Database(study.database_url)
    database.prepare(study.facts)
    write_export(study, database, out)
    database.close()
    return out


def small_design(name: str, folder: Path, **changes: str) -> str:
    """Copy a built-in design with some lines of its ``design.toml`` changed: ``count="8"``, ``practice="0"``."""
    shutil.copytree(BUILT_IN / name, folder)
    text = (folder / "design.toml").read_text("utf-8")
    for key, value in changes.items():
        text, found = re.subn(rf"(?m)^{key} = [^#\n]*", f"{key} = {value}", text)
        assert found, f"{name} has no {key}"
    (folder / "design.toml").write_text(text, "utf-8")
    return str(folder)
