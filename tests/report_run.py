"""A small run for tests of the report: ideal observers, two people and a model, and names that are hostile."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

import cuebench
from cuebench.files import hash_file
from cuebench.observers.preprocess import Preprocess
from cuebench.protocols.base import Protocol, Result, ScoreOptions, View
from cuebench.responses.table import Responses
from cuebench.types import Citation, Estimate, Headline, Interval, Stimulus, StimulusSet

HOSTILE = '"><script>window.hacked=1</script><img src=x onerror=window.hacked=2>'
"""A name that would run in a page that does not escape it."""
CLASSES = ("cat", "dog", "car", "clock")


def write_image(path: Path, seed: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.random.default_rng(seed).integers(0, 256, (24, 24, 3)).astype(np.uint8)).save(path)


def write_stimuli(root: Path) -> Path:
    """Write 32 noisy images of four classes, 8 of them aligned."""
    pairs = [(shape, texture, i) for shape in CLASSES for texture in CLASSES for i in (1, 2)]
    for seed, (shape, texture, i) in enumerate(pairs):
        write_image(root / "cue_conflict" / "stimuli" / shape / f"{shape}{i}-{texture}{i}.png", seed)
    labels = {"targets": {name: [name] for name in CLASSES}}
    (root / "cue_conflict" / "labels.json").write_text(json.dumps(labels))
    return root


def write_answers(path: Path) -> Path:
    """Write recorded answers: two people who go by shape, and a model with a hostile name that goes by texture."""
    rng = np.random.default_rng(1)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["observer", "stimulus", "decision", "rt"])
        for subject, by_shape, rt in (("anna", 0.9, 0.8), ("bert", 0.8, 0.9), (HOSTILE, 0.2, "")):
            for shape, texture, i in [(s, t, i) for s in CLASSES for t in CLASSES for i in (1, 2)]:
                answer = shape if rng.random() < by_shape else texture
                writer.writerow([subject, f"{shape}{i}-{texture}{i}", "na" if rng.random() < 0.1 else answer, rt])
    return path


def _read(root: Path) -> StimulusSet:
    path = "<i>o'clock\".png"
    write_image(root / "hostile" / path, 99)
    sha256 = hash_file(root / "hostile" / path).sha256
    stimuli = [Stimulus(f"{HOSTILE}{i}", path, sha256, 24, 24, label=(HOSTILE, "plain")[i]) for i in (0, 1)]
    return StimulusSet("hostile", tuple(stimuli), str(root / "hostile"))


def _score(responses: Sequence[Responses], options: ScoreOptions) -> Result:
    result = Result()
    for each in responses:
        estimate = Estimate(0.5, len(each), (Interval(0.1, 0.9, "images"),), notes=(f"note {HOSTILE}",))
        result.add(each, f"class={HOSTILE}", "accuracy", estimate)
    return result


PROTOCOL = Protocol(
    name="hostile",
    version=1,
    title=f"Hostile {HOSTILE}",
    needs=(("logits",),),
    read=_read,
    views=(View("native", Preprocess.whole_image),),
    score=_score,
    headline=Headline("accuracy", ("*",), direction="correct"),
    citation=Citation(f"Nobody {HOSTILE}", f"@misc{{{HOSTILE}}}", f"https://example.org/{HOSTILE}", HOSTILE),
    metrics=("accuracy",),
)
"""Two pictures whose ids, file, class, condition and notes are hostile."""


def make_run(folder: Path) -> cuebench.Scores:
    """Measure everybody."""
    data = write_stimuli(folder / "data")
    observers = ["ideal:shape", "ideal:texture", "ideal:mixture?shape=0.7"]
    return cuebench.evaluate(
        [*observers, f"recorded:{write_answers(folder / 'answers.csv')}"],
        ["cue_conflict", PROTOCOL],
        data_root=data,
        out=folder / "run",
        resamples=200,
        workers=0,
    )
