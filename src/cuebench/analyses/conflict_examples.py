"""Cue-conflict images by what they are answered with: by their shape, by their texture, or by neither."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from PIL.Image import Image

from cuebench.errors import UserError
from cuebench.runs.answers import StoredAnswers
from cuebench.runs.record import RunRecord
from cuebench.runs.results import read_stimuli
from cuebench.runs.trials import Trials
from cuebench.stimuli.render import decode, render
from cuebench.types import Stimulus, StimulusSet

PROTOCOL = "cue_conflict"
GROUPS = ("models", "people", "all")
KINDS = ("shape", "texture", "neither")


class ImageOutcome(NamedTuple):
    """An image in conflict, and the shares of its answers by shape, by texture and by neither; n answers."""

    stimulus: Stimulus
    shape: float
    texture: float
    neither: float
    n: int


class ConflictImages(NamedTuple):
    """The conflict images of a run with their outcomes, who answered, and the folder that the files lie in."""

    images: tuple[ImageOutcome, ...]
    observers: tuple[str, ...]
    root: Path


def conflict_images(runs: Sequence[str | Path], by: str = "models") -> ConflictImages:
    """Count for every conflict image how often it was answered by shape, by texture and by neither.

    Parameters
    ----------
    runs : sequence of paths
        Run folders of ``cue_conflict``.
    by : str
        Whose answers count: ``models``, ``people`` or ``all``. Everybody's where the runs have none of those.
    """
    counts: dict[str, Counter[str]] = {}
    stimuli: dict[str, Stimulus] = {}
    who: dict[str, None] = {}
    root = ""
    for run in runs:
        answers = StoredAnswers(run)
        jobs = [job for job in answers.record.jobs if job.protocol == PROTOCOL and not job.baseline_of]
        wanted = {"models": ("model",), "people": ("person",)}.get(by, ("model", "person", "ideal"))
        chosen = [j for j in jobs if j.kind in wanted] or [j for j in jobs if j.kind != "people"]
        for job in chosen:
            shown: StimulusSet = read_stimuli(answers.folder, job.stimuli, answers.record)
            # Recorded observers bring stimuli without files: the images of the run's data root are the same.
            root = shown.root or root or _of_data_root(answers.record)
            stimuli |= {s.id: s for s in shown}
            who[job.observer] = None
            few = ""  # the first label space of an observer is that of the set's own classes
            for part in Trials(answers.folder, (PROTOCOL,), (job.observer,)).parts():
                condition = part.column("condition")[0].as_py()
                few = few or condition
                for row in part.select(["stimulus", "shape", "texture", "outcome"]).to_pylist():
                    if condition == few and row["shape"] != row["texture"]:
                        counts.setdefault(row["stimulus"], Counter())[row["outcome"]] += 1
    if not counts:
        raise UserError(
            f"no answers to conflict images in {', '.join(map(str, runs))}", "cuebench run -p cue_conflict …"
        )
    images = []
    for name, outcomes in counts.items():
        n = sum(outcomes.values())
        shape, texture = outcomes["shape"] / n, outcomes["texture"] / n
        images.append(ImageOutcome(stimuli[name], shape, texture, 1 - shape - texture, n))
    return ConflictImages(tuple(images), tuple(who), Path(root))


def _of_data_root(record: RunRecord) -> str:
    place = record.arguments.get("data_root")
    return str(Path(place).expanduser() / PROTOCOL / "stimuli") if place else ""


def examples(images: Sequence[ImageOutcome], kind: str, count: int) -> list[ImageOutcome]:
    """Return the images that are most clearly of a kind, of different shapes and textures as far as possible.

    Parameters
    ----------
    images : sequence of ImageOutcome
        From `conflict_images`.
    kind : str
        ``shape``, ``texture`` or ``neither``.
    count : int
        At most so many.
    """
    ordered = sorted(images, key=lambda i: (-getattr(i, kind), -i.n, i.stimulus.id))
    ordered = [i for i in ordered if getattr(i, kind) > 0]
    shapes: set[str] = set()
    textures: set[str] = set()
    first: list[ImageOutcome] = []
    others: list[ImageOutcome] = []
    for image in ordered:
        fresh = image.stimulus.shape not in shapes and image.stimulus.texture not in textures
        (first if fresh else others).append(image)
        if fresh:
            shapes.add(image.stimulus.shape)
            textures.add(image.stimulus.texture)
    return [*first, *others][:count]


def picture(conflicts: ConflictImages, stimulus: Stimulus) -> Image:
    """Return an image as it was shown; where its file is not there, say so."""
    stimulus = replace(stimulus, path=stimulus.path or f"{stimulus.shape}/{stimulus.id}.png")
    path = conflicts.root / stimulus.path
    if not path.is_file():
        raise UserError(
            f"the image {stimulus.id} is not at {path}",
            "a sheet of pictures needs the stimuli where the run found them",
        )
    return render(conflicts.root, decode(conflicts.root, stimulus), stimulus)
