"""A small study that several tests serve: 4 classes, two blocks in two orders, 10 trials for each participant."""

from __future__ import annotations

import json
from pathlib import Path

from cuebench.study.folder import NewStudy, Study, new_study
from small_data import write_cue_conflict

DESIGN = """
name = "small"
protocol = "cue_conflict"
minutes = 1

[stimuli]
relation = "conflict"

[masks]
count = 1
pixels = 16

[attention]
kind = "aligned"

[[blocks]]
name = "shape"
task = "shape"
count = 4
balance = "shape"
attention = 1
free = true

[[blocks]]
name = "texture"
task = "texture"
count = 4
balance = "shape"
attention = 1

[groups]
A = ["shape", "texture"]
B = ["texture", "shape"]
"""
TIMELINE = {"timeline": [{"for": "trials", "timeline": [{"type": "answer", "options": "$options", "answer": True}]}]}
TRIALS = 10


def write_design(folder: Path) -> Path:
    for language, title in (("en", "A small study"), ("de", "Eine kleine Studie")):
        texts = folder / "texts" / language
        texts.mkdir(parents=True)
        for name in ("consent", "instructions", "debriefing"):
            (texts / f"{name}.md").write_text(f"# {name}\n\n<script>alert(1)</script> *{title}*\n")
        (texts / "words.toml").write_text(f'title = "{title}"\n')
    (folder / "design.toml").write_text(DESIGN)
    (folder / "timeline.json").write_text(json.dumps(TIMELINE))
    return folder


def make_study(place: Path, **settings) -> Study:
    """Make a study in ``place/study``."""
    design, data = write_design(place / "small"), write_cue_conflict(place / "data")
    return new_study(place / "study", NewStudy(design=str(design), data_root=data, **settings))


def answer_to(trial: dict, **values) -> dict:
    """Return an answer of the first option to a trial as the page is told it."""
    return {"position": trial["position"], "response": trial["options"][:1], "rt_ms": 700.5, **values}
