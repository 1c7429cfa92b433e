"""A gallery of stimuli with what every observer answered."""

from __future__ import annotations

import base64
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from PIL import Image, features

from cuebench.errors import UserError
from cuebench.observers.baselines import RANDOM
from cuebench.reports.html.answers import Answer, Space, answers_of, class_name, first_jobs
from cuebench.reports.html.material import Material, Run
from cuebench.reports.html.text import counted
from cuebench.responses.job import JobRecord
from cuebench.responses.store import batches
from cuebench.runs.results import read_stimuli
from cuebench.stimuli.render import decode, render
from cuebench.types import REMOVED, Stimulus, StimulusSet

SIZE = 192
"""Longer side of a picture in the gallery, in pixels."""
QUALITY = 78
MOST_FILES = 8
"""Stored files of answers that pictures are chosen from: reading a million answers for a hundred would take minutes."""
OUTCOMES = {
    "shape": "by shape",
    "texture": "by texture",
    "other": "by neither cue",
    "correct": "correct",
    "wrong": "wrong",
    "no answer": "no answer",
}
"""Outcome → how the page calls it."""


@dataclass(frozen=True)
class Picture:
    """One stimulus: its picture as a data address (empty: the file is not here), what is known of it, all answers."""

    protocol: str
    id: str
    facts: list[tuple[str, str]]
    answers: Mapping[str, Answer]
    source: str = ""
    problem: str = ""

    @property
    def alt(self) -> str:
        """What the picture shows, for those who cannot see it."""
        classes = ", ".join(f"{name} {value}" for name, value in self.facts if name in ("class", "shape", "texture"))
        return f"Stimulus {self.id}" + (f": {classes}" if classes else "")

    @property
    def caption(self) -> str:
        """The classes, in few words."""
        facts = dict(self.facts)
        if "shape" in facts and "texture" in facts:
            return f"{facts['shape']} in {facts['texture']}"
        return facts.get("class") or facts.get("shape") or facts.get("texture") or self.id

    @property
    def tally(self) -> list[tuple[str, str, int]]:
        """Outcome, its words, and how many observers had it."""
        counts = Counter(answer.outcome for answer in self.answers.values())
        return [(outcome, words, counts[outcome]) for outcome, words in OUTCOMES.items() if counts[outcome]]


@dataclass
class Gallery:
    """The pictures of a report, and what could not be shown."""

    pictures: list[Picture] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @property
    def drawn(self) -> bool:
        """Whether there is any picture: a hundred empty frames would only push the answers apart."""
        return any(picture.source for picture in self.pictures)

    def data(self, observers: Sequence[str]) -> list[dict[str, Any]]:
        """Return what the page needs to show the answers to each picture."""
        number = {name: i for i, name in enumerate(observers)}
        return [
            {
                "p": picture.protocol,
                "id": picture.id,
                "f": picture.facts,
                "a": [
                    [number[o], a.decision, a.outcome, [[n, round(p, 4)] for n, p in a.top], a.rank, a.people]
                    for o, a in picture.answers.items()
                ],
            }
            for picture in self.pictures
        ]


def make_gallery(material: Material, images: int) -> Gallery:
    """Choose stimuli of every protocol whose answers are classes, and draw them small.

    Parameters
    ----------
    material : Material
        The runs.
    images : int
        How many pictures, at most; they are shared out evenly among the protocols.
    """
    gallery = Gallery()
    if images <= 0:
        return gallery
    rank = {name: i for i, name in enumerate(material.observers)}
    shown = [(run, name) for name in material.protocols for run in material.runs if first_jobs(run, name)]
    chosen = []
    for run, name in shown:
        try:
            candidates = _candidates(run, name, rank)
        except UserError as error:  # a damaged manifest: the scores were made before that, and are not concerned
            gallery.remarks.append(f"{name}: {error.message}.")
            continue
        if candidates.jobs:
            chosen.append((run, name, candidates))
        elif name not in {n for _, n, _ in chosen}:
            gallery.remarks.append(f"{name}: its answers are not classes of single images; they are not shown here.")
    quotas = share_out(images, [len(candidates.among) for _, _, candidates in chosen])
    for (run, name, candidates), wanted in zip(chosen, quotas):
        pictures = _pictures(run, name, candidates, wanted, seed=run.scores.record.options.seed)
        gallery.pictures += pictures
        gallery.remarks += _missing(name, pictures)
    return gallery


def share_out(total: int, available: Sequence[int]) -> list[int]:
    """Share a number out evenly; what one cannot take goes to the others.

    >>> share_out(10, [2, 100, 100])
    [2, 4, 4]
    """
    shares = [0] * len(available)
    order = sorted(range(len(available)), key=lambda i: available[i])
    for number, i in enumerate(order):
        shares[i] = min(available[i], total // (len(order) - number))
        total -= shares[i]
    return shares


@dataclass(frozen=True)
class _Candidates:
    """Stimuli of a protocol that can be chosen, and what came of them.

    ``outcomes`` has observer → stimulus → outcome, ``jobs`` the same observers with the stimuli that each was shown.
    """

    stimuli: StimulusSet
    among: list[Stimulus]
    jobs: Mapping[str, tuple[JobRecord, StimulusSet]]
    outcomes: Mapping[str, Mapping[str, str]]
    space: Space


def _candidates(run: Run, protocol: str, rank: Mapping[str, int]) -> _Candidates:
    """Read the answers to some stored files of the set that most observers saw, chosen by the seed."""
    jobs = sorted(first_jobs(run, protocol), key=lambda job: rank.get(run.named(job), len(rank)))
    record = run.scores.record
    sets = {name: read_stimuli(run.folder, name, record) for name in dict.fromkeys(job.stimuli for job in jobs)}
    votes = Counter(job.stimuli for job in jobs)
    # Sets without files (of recorded people) have nothing to show; of the others, the one that most observers saw.
    base = max(sets, key=lambda name: (any(s.path or s.recipe for s in sets[name]), votes[name]))
    files = [batch for _, batch in batches(sets[base].stimuli, record.options.shard_size)]
    order = np.random.default_rng(record.options.seed).permutation(len(files))[:MOST_FILES]
    among = [s for position in sorted(order) for s in files[position]]
    ids = {s.id for s in among}
    shown, outcomes = {}, {}
    for job in jobs:
        answers = answers_of(run, job, sets[job.stimuli], ids, brief=True) if RANDOM not in job.observer else {}
        if answers:
            shown[run.named(job)] = job, sets[job.stimuli]
            outcomes[run.named(job)] = {key: answer.outcome for key, answer in answers.items()}
    model = next((job for job in jobs if job.labels), jobs[0])
    return _Candidates(sets[base], among, shown, outcomes, Space.of(model, sets[base]))


def _pictures(run: Run, protocol: str, candidates: _Candidates, number: int, seed: int) -> list[Picture]:
    by_observer = candidates.outcomes.values()
    outcomes = {s.id: tuple(of.get(s.id, "") for of in by_observer) for s in candidates.among}
    stimuli = choose(candidates.among, outcomes, number, seed)
    ids = {s.id for s in stimuli}
    answers = {name: answers_of(run, job, shown, ids) for name, (job, shown) in candidates.jobs.items()}
    with ThreadPoolExecutor(4) as threads:  # Pillow leaves the interpreter to others while it decodes
        drawn = list(threads.map(lambda s: thumbnail(candidates.stimuli.root, s), stimuli))
    return [
        Picture(
            protocol=protocol,
            id=stimulus.id,
            facts=_facts(stimulus, candidates.space),
            answers={observer: given[stimulus.id] for observer, given in answers.items() if stimulus.id in given},
            source=source,
            problem=problem,
        )
        for stimulus, (source, problem) in zip(stimuli, drawn)
    ]


def choose(
    stimuli: Sequence[Stimulus], outcomes: Mapping[str, tuple[str, ...]], number: int, seed: int
) -> list[Stimulus]:
    """Choose stimuli so that outcomes differ: one of each pattern of outcomes, by the seed, then a second of each.

    Parameters
    ----------
    stimuli : sequence of Stimulus
        To choose from.
    outcomes : mapping
        Stimulus → the outcome of every observer.
    number : int
        How many, at most.
    seed : int
        Decides which stimulus stands for a pattern, and the order of patterns.
    """
    rng = np.random.default_rng(seed)
    groups: dict[tuple[str, ...], list[Stimulus]] = {}
    for position in rng.permutation(len(stimuli)):
        stimulus = stimuli[int(position)]
        groups.setdefault(outcomes[stimulus.id], []).append(stimulus)
    chosen: list[Stimulus] = []
    while len(chosen) < number and any(groups.values()):
        for members in groups.values():
            if members and len(chosen) < number:
                chosen.append(members.pop())
    return chosen


def thumbnail(root: str, stimulus: Stimulus, size: int = SIZE) -> tuple[str, str]:
    """Return a small picture of a stimulus as a data address, and why there is none where there is none."""
    if not stimulus.path and not stimulus.recipe:
        return "", "recorded answers only: this run was made without the pictures"
    try:
        image = render(root, decode(root, stimulus), stimulus)
    except UserError as error:
        return "", error.message
    except OSError as error:
        return "", str(error)
    image.thumbnail((size, size), Image.Resampling.LANCZOS)
    file = io.BytesIO()
    kind = "webp" if features.check("webp") else "jpeg"
    image.convert("RGB").save(file, kind, quality=QUALITY)
    return f"data:image/{kind};base64,{base64.b64encode(file.getvalue()).decode()}", ""


def _facts(stimulus: Stimulus, space: Space) -> list[tuple[str, str]]:
    """Return what is known of a stimulus, in the words of the page."""
    facts = {
        "class": class_name(stimulus.label, space.labels) if stimulus.label else "",
        "shape": stimulus.shape,
        "texture": stimulus.texture,
        "shape taken from": stimulus.shape_source,
        "texture taken from": stimulus.texture_source,
        "condition": stimulus.condition,
        "made by": stimulus.recipe,
        "file": stimulus.path,
        "SHA-256": stimulus.sha256[:16],
    }
    return [(name, value) for name, value in facts.items() if value and value != REMOVED]


def _missing(protocol: str, pictures: Iterable[Picture]) -> list[str]:
    """Say how many pictures could not be drawn, and why the first one could not."""
    missing = [p for p in pictures if p.problem]
    if not missing:
        return []
    number = counted(len(missing), "picture")
    return [f"{protocol}: {number} could not be drawn, only the answers are shown ({missing[0].problem})."]
