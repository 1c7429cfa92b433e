"""REFINED-BIAS cues from anybody's images: contours of objects, and their texture in patches of four sizes.

Source: a folder of images with object masks (alpha channel, mask files, COCO annotations), or without, through a
segmenter. Everything that is wrong with it is named in one list before work starts; every cue is inspected.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from cuebench.csv_text import csv_text
from cuebench.errors import UserError
from cuebench.files import write_atomic
from cuebench.options import Option
from cuebench.reading import read_json, user_path
from cuebench.stimuli.hashing import hash_files
from cuebench.stimuli.makers.base import LARGEST_SIDE, Maker, Progress
from cuebench.stimuli.masks import segmenter
from cuebench.stimuli.masks.base import BadSource, Segmenter
from cuebench.stimuli.readers.refined_bias import read
from cuebench.stimuli.refined_bias.build import METHODS, Made, Settings, open_source, problems_of, shape_of, textures_of
from cuebench.stimuli.refined_bias.folder import Folder
from cuebench.stimuli.refined_bias.objects import framed
from cuebench.stimuli.refined_bias.shape_cue import class_sigma
from cuebench.stimuli.refined_bias.sources import (
    Classes,
    Source,
    find_sources,
    read_classes,
    refuse,
    where_masks_came_from,
)
from cuebench.stimuli.refined_bias.texture_cue import GRIDS
from cuebench.stimuli.refined_bias.verdicts import read_verdicts
from cuebench.types import StimulusSet

VERSION = 1
SAMPLE = 12
"""Objects of a class that its blur is chosen from."""


def make(
    out: Path,
    *,
    seed: int = 0,
    count: int = 0,
    progress: Progress | None = None,
    source: str = "",
    classes: str = "",
    grids: tuple[int, ...] = GRIDS,
    texture: str = "patches",
    segmenter: str = "grabcut",
    sigma: float = 0.0,
    size: int = 224,
    margin: float = 0.05,
    verdicts: str = "",
    allow_bad: bool = False,
) -> StimulusSet:
    """Write ``out/refined_bias`` from a folder of objects; see ``stimuli.refined_bias.sources`` for its forms.

    Parameters
    ----------
    out : Path
        Data root: ``--data-root OUT -p refined_bias`` then uses the set.
    seed : int
        The same seed gives the same bytes.
    count : int
        At most so many sources of each class; 0: all.
    progress : callable, optional
        ``progress(done, total)``, in sources.
    source : str
        The folder.
    classes : str
        Only these: names separated by commas, or a JSON file ``{"shape": [...], "texture": [...]}`` as
        ``cuebench data balance`` writes it.
    grids : tuple of int
        Patches along a side of the texture cues.
    texture : str
        ``patches``, or ``quilting`` (slow; the validity proxy).
    segmenter : str
        For images without a mask: ``grabcut``, ``hf:MODEL``, ``sam:MODEL``, ``grounded:DETECTOR+SAM``.
    sigma : float
        Blur of the shape cues in pixels; 0: chosen for each class, or that of ``labels.json``.
    size, margin : int, float
        Side of the cues in pixels; empty part around the object of a shape cue.
    verdicts : str
        CSV of people's verdicts, or the folder that ``cuebench curate`` wrote; they overrule the inspection.
    allow_bad : bool
        Leave out bad sources (listed as rejected) instead of stopping.
    """
    if not source:
        raise UserError("refined_bias needs a folder of images", "cuebench make refined_bias --source DIR --out DIR")
    settings = Settings(seed, size, margin, tuple(sorted(set(grids))), texture, segmenter, sigma)
    work = _Work(Path(source).expanduser(), Path(out) / "refined_bias", settings, classes, count, allow_bad)
    work.make(progress)
    accepted = work.publish(Path(verdicts).expanduser() if verdicts else None)
    if not accepted:
        raise UserError(f"no cue was accepted; the reasons are in {work.folder.home / 'inspection.csv'}")
    stimuli = read(work.folder.home)
    masks = where_masks_came_from(work.sources, segmenter)
    write_atomic(work.folder.home / "masks.csv", _mask_table(work.sources, masks))
    notes = [f"masks: {n:,} {where}" for where, n in Counter(masks.values()).items()]
    return replace(stimuli, notes=(*stimuli.notes, *notes, f"each of them: {work.folder.home / 'masks.csv'}"))


def _mask_table(sources: Sequence[Source], masks: dict[str, str]) -> bytes:
    """Return a table with the mask of every source: where it came from, and its file."""
    rows = ((source.id, masks[source.id], source.mask.name if source.mask else "") for source in sources)
    return csv_text(["source", "mask", "file"], rows).encode()


class _Work:
    """One call of the maker: everything is checked when it is built, nothing is written before."""

    def __init__(self, root: Path, home: Path, settings: Settings, only: str, count: int, allow_bad: bool) -> None:
        self.settings, self.folder = settings, Folder(home)
        self.segment: Segmenter = segmenter(settings.segmenter)
        self.sources, problems = find_sources(root)
        wanted = _only(only)
        self.sources = [s for s in self.sources if not wanted or s.label in wanted["all"]]
        numbers = _numbered(self.sources)
        self.sources = [s for s in self.sources if not count or numbers[s.id] < count]
        if not self.sources:
            raise UserError(f"no image of {root} is of the classes {only!r}")
        self.classes, unmapped = read_classes(root, (s.label for s in self.sources))
        if "shape" in wanted:
            kept = {cue: getattr(self.classes, cue) & wanted[cue] for cue in ("shape", "texture")}
            self.classes = Classes(self.classes.targets, kept["shape"], kept["texture"], self.classes.sigma)
        self.bad = self._check()
        unusable = [f"{s.id}: {why}" for s in self.sources for why in dict.fromkeys(self.bad.get(s.id, {}).values())]
        refuse(root, problems, unmapped, [] if allow_bad else unusable)
        self.record = self._record()
        self.folder.prepare(self.record)

    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(min(4, os.cpu_count() or 1))

    def _check(self) -> dict[str, dict[str, str]]:
        """Return source → cue → why it cannot be made."""
        with self._pool() as pool:
            problems = pool.map(lambda s: problems_of(s, self.classes.cues(s.label), self.settings), self.sources)
            return {s.id: reasons for s, reasons in zip(self.sources, problems) if reasons}

    def _record(self) -> dict[str, Any]:
        files = list(dict.fromkeys(p for s in self.sources for p in (s.path, s.mask) if p is not None))
        facts = dict(zip(files, hash_files(files)))
        digest = [[s.id, facts[s.path].sha256, facts[s.mask].sha256 if s.mask else ""] for s in self.sources]
        fingerprint = hashlib.sha256(json.dumps(digest).encode()).hexdigest()[:16]
        cues = {cue: sorted(getattr(self.classes, cue)) for cue in ("shape", "texture")}
        settings = {**asdict(self.settings), "grids": list(self.settings.grids)}
        return {"maker": "refined_bias", "version": VERSION, "sources": fingerprint, **settings, **cues}

    def make(self, progress: Progress | None) -> None:
        """Make what is missing."""
        missing = [s for s in self.sources if not self.folder.done(s)]
        sigmas = self._sigmas({s.label for s in missing})
        numbers = _numbered(self.sources)
        total = len(self.sources)
        with self._pool() as pool:
            jobs = pool.map(lambda s: self._make_source(s, numbers[s.id], sigmas), missing)
            for done, _ in enumerate(jobs, start=total - len(missing) + 1):
                if progress:
                    progress(done, total)

    def publish(self, verdicts: Path | None) -> list[Made]:
        """Apply the verdicts and write the published folders, the table and the sheets."""
        cues = self.folder.read(self.sources)
        overrules = read_verdicts(verdicts, (m.name for m in cues)) if verdicts else {}
        return self.folder.finish(cues, overrules, self.classes, self.record)

    def _make_source(self, source: Source, number: int, sigmas: dict[str, float]) -> None:
        bad, cues = self.bad.get(source.id, {}), self.classes.cues(source.label)
        results = [self._rejected(source, number, cue, reason) for cue, reason in bad.items()]
        todo = [cue for cue in cues if cue not in bad]
        if todo:
            results += self._cues(source, number, todo, sigmas)
        self.folder.write(source, results)

    def _cues(self, source: Source, number: int, todo: Sequence[str], sigmas: dict[str, float]) -> list[Made]:
        try:
            loaded = open_source(source, self.segment)
        except BadSource as error:
            return [self._rejected(source, number, cue, error.message) for cue in todo]
        results = [shape_of(loaded, number, sigmas[source.label], self.settings)] if "shape" in todo else []
        if "texture" in todo:
            try:
                results += textures_of(loaded, number, self.settings)
            except BadSource as error:
                results.append(self._rejected(source, number, "texture", error.message))
        return results

    def _rejected(self, source: Source, number: int, cue: str, reason: str) -> Made:
        return Made(f"{source.label}_{number}", cue, source.label, source.id, reason=reason)

    def _sigmas(self, labels: set[str]) -> dict[str, float]:
        """Return class → blur: as set, or chosen from some of its objects."""
        sigmas = {}
        for label in sorted(labels):
            sigma = self.settings.sigma or self.classes.sigma.get(label, 0.0)
            sigmas[label] = sigma or self._chosen_sigma(label) if label in self.classes.shape else sigma
        return sigmas

    def _chosen_sigma(self, label: str) -> float:
        objects = []
        for s in [s for s in self.sources if s.label == label and "shape" not in self.bad.get(s.id, {})][:SAMPLE]:
            try:
                loaded = open_source(s, self.segment)
            except BadSource:
                continue  # the segmenter found nothing; the cue itself will be listed as rejected
            objects.append(framed(loaded.image, loaded.mask, self.settings.size, self.settings.margin)[:2])
        return class_sigma(objects)


def _numbered(sources: Sequence[Source]) -> dict[str, int]:
    """Return source → its number within the class."""
    counts: dict[str, int] = {}
    numbers = {}
    for s in sources:
        numbers[s.id] = counts.get(s.label, 0)
        counts[s.label] = numbers[s.id] + 1
    return numbers


def _only(classes: str) -> dict[str, frozenset[str]]:
    """Return the classes to keep: ``all``, and for each cue where a file says so; empty: everything."""
    if not classes:
        return {}
    if not classes.endswith(".json"):
        return {"all": frozenset(c.strip() for c in classes.split(",") if c.strip())}
    form = 'expected {"shape": [...], "texture": [...]}'
    data = read_json(user_path(classes), "classes", hint=form)
    lists: list[Any] = [data.get(cue) if isinstance(data, dict) else None for cue in ("shape", "texture")]
    if not all(isinstance(names, list) and all(isinstance(n, str) for n in names) for names in lists):
        raise UserError(f"classes {classes}: no lists of names for shape and texture", form)
    cues = {cue: frozenset(names) for cue, names in zip(("shape", "texture"), lists)}
    return {**cues, "all": cues["shape"] | cues["texture"]}


MAKER = Maker(
    "refined_bias",
    "shape cues (contours) and texture cues (patches of four sizes) from a folder of images with object masks",
    make,
    {
        "source": Option("", "folder of images with object masks; also --source"),
        "classes": Option("", "only these: names separated by commas, or a JSON file with lists shape and texture"),
        "grids": Option(GRIDS, "patches along a side of the texture cues", item=int, low=2, high=256),
        "texture": Option("patches", "how texture cues are made", choices=METHODS),
        "segmenter": Option(
            "grabcut",
            "for images without a mask: grabcut, hf:MODEL, sam:MODEL, grounded:DETECTOR+SAM (by the name of the class) "
            "or python:MODULE:FUNCTION",
        ),
        "sigma": Option(0.0, "blur of the shape cues in pixels; 0: chosen for each class", low=0, high=LARGEST_SIDE),
        "size": Option(224, "side of the cues in pixels", low=32, high=LARGEST_SIDE),
        "margin": Option(0.05, "empty part around the object of a shape cue", low=0, high=0.39),
        "verdicts": Option(
            "", "people's verdicts, a CSV or the folder of `cuebench curate`; they overrule the inspection"
        ),
        "allow_bad": Option(False, "leave out bad sources instead of stopping; they are listed as rejected"),
    },
)
