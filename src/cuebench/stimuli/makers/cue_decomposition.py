"""Cue decomposition of your own images: EED as shape cue, shuffles and residuals as texture cues, masks moved along.

From a folder of labelled images, or from images with masks (a plain pair of folders, Cityscapes, ADE20K). No network
is needed to make the stimuli. Every file is written whole or not at all; the same command goes on where it stopped.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from cuebench._version import __version__
from cuebench.cues.eed import STEPS_CLASSIFICATION, STEPS_SEGMENTATION
from cuebench.errors import UserError, all_problems
from cuebench.files import write_json
from cuebench.stimuli._cue_files import plan
from cuebench.stimuli.apply_cue import apply_cue, claim_folder
from cuebench.stimuli.decomposition import conflicts as mixing
from cuebench.stimuli.decomposition import folder, shape_files
from cuebench.stimuli.decomposition.cue_list import RESIDUAL, SHAPE, Part, parse
from cuebench.stimuli.decomposition.originals import MASKS, write_originals, write_residuals
from cuebench.stimuli.decomposition.sources import Source, read_source
from cuebench.stimuli.made import MADE, claim
from cuebench.stimuli.makers.base import Maker, Progress
from cuebench.stimuli.manifest import write_manifest
from cuebench.types import StimulusSet

GPU_BATCH = 128
OPTIONS: dict[str, Any] = {
    "source": "",
    "layout": "auto",
    "cues": "eed,voronoi",
    "conflicts": "",
    "classes": "",
    "labels": "",
    "size": -1,
    "resize": -1,
    "steps": 0,
    "accuracy": 0.0,
    "workers": 0,
    "device": "auto",
    "hours": 24.0,
}


class _Work(NamedTuple):
    """What the steps of the making share."""

    home: Path
    source: Source
    seed: int
    workers: int
    device: str
    longest: float
    progress: Progress | None

    @property
    def ids(self) -> list[str]:
        return [s.id for s in self.source.images]


def make(
    out: Path,
    *,
    seed: int = 0,
    count: int = 0,
    progress: Progress | None = None,
    source: str = "",
    layout: str = "auto",
    cues: str = "eed,voronoi",
    conflicts: str = "",
    classes: str = "",
    labels: str = "",
    size: int = -1,
    resize: int = -1,
    steps: int = 0,
    accuracy: float = 0.0,
    workers: int = 0,
    device: str = "auto",
    hours: float = 24.0,
) -> StimulusSet:
    """Write ``out/cue_decomposition`` (or ``…_segmentation``): one folder for each cue, masks, a manifest.

    Parameters
    ----------
    out : Path
        Data root: ``--data-root OUT -p cue_decomposition`` then uses the set.
    seed : int
        Of the shuffles and pairs; the same seed gives the same bytes for any number of workers.
    count : int
        Only so many images, drawn by the seed; the set then says that it is partial. 0: all.
    progress : callable, optional
        ``progress(done, total)`` in pictures.
    source : str
        Folder of the data set.
    layout : str
        ``image_folder``, ``segmentation_pairs``, ``cityscapes``, ``ade20k``; ``auto``: by what lies in the folder.
    cues : str
        List of eed, voronoi, voronoi8 … voronoi128, patch, diamond, tex_eed, tex_eed_pat; ``all``: the six published.
    conflicts : str
        Cue-conflict candidates such as ``blend/voronoi/0.5/0.5``; ``published``: the ten of Table II.
    classes : str
        Segmentation pairs: file that says what the numbers in the masks mean.
    labels : str
        Classification: a label map such as ``in16``; images of other classes are left out.
    size, resize : int
        Shorter side to ``resize``, centre ``size`` × ``size``; 0: as they are. −1: 224 and 256 for classification, 512
        and 512 for ADE20K, as they are for other segmentation sets.
    steps : int
        Of EED; 0: 16,384 for classification, 5,792 for segmentation.
    accuracy : float
        dB against the explicit scheme: reaches the same diffusion time with fewer steps (45 or 50); 0: explicit.
    workers : int
        Processes; 0: one for each core.
    device : str
        For EED: ``auto`` (a GPU where there is one), ``cpu``, ``cuda``.
    hours : float
        Longest estimated time of EED that is started without asking back; 0: any.
    """
    found = read_source(source, layout, classes=classes, labels=labels, count=count, seed=seed)
    home = out / (folder.SEGMENTATION if found.classes else folder.CLASSIFICATION)
    candidates = mixing.parse(conflicts)
    if candidates and found.classes:
        raise UserError("cue-conflict candidates need one class for each image", "leave out conflicts= for masks")
    parts = parse(",".join([cues, *([SHAPE] * bool(candidates)), *(c.texture for c in candidates)]),
                  _eed_options(steps, accuracy, bool(found.classes)))  # fmt: skip
    size = found.size if size < 0 else size
    resize = (found.resize if resize < 0 else resize) if size else 0
    record = {"maker": "cue_decomposition", "version": folder.VERSION, "source": found.described, "seed": seed,
              "count": count, "size": size, "resize": resize}  # fmt: skip
    before = claim(home, record, list(home.iterdir()) if home.is_dir() else [])  # cues may be added later
    made = {**before, **record, "cuebench": __version__, "cues": {**before.get("cues", {}), **_described(parts)}}
    write_json(home / MADE, made)
    told = _Told(progress, len(found.images) * len(parts))
    work = _Work(home, found, seed, workers, device, hours * 3600 or math.inf, told)
    write_originals(found.images, home, size, resize, found.classes, told)
    for part in sorted(parts[1:], key=lambda p: p.name not in {SHAPE}):  # EED first: it may be refused as too long
        _make_part(part, work)
    return _finish(work, parts, candidates)


class _Told:
    """Progress over all parts of the set: each part reports its own."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self.progress, self.total, self.before, self.last = progress, total, 0, 0

    def __call__(self, done: int, total: int) -> None:
        if done < self.last:  # the next part has begun
            self.before += self.last
        self.last = done
        if self.progress:
            self.progress(min(self.before + done, self.total), self.total)


def _eed_options(steps: int, accuracy: float, segmentation: bool) -> dict[str, Any]:
    published = STEPS_SEGMENTATION if segmentation else STEPS_CLASSIFICATION
    options: dict[str, Any] = {"steps": steps or published}
    return {**options, "accuracy": accuracy} if accuracy else options


def _described(parts: list[Part]) -> dict[str, Any]:
    return {p.name: {"cue": p.cue or p.name, "of": p.source, **(p.options or {})} for p in parts[1:]}


def _make_part(part: Part, work: _Work) -> None:
    if part.name == RESIDUAL:
        write_residuals(work.ids, work.home, SHAPE, RESIDUAL)
        return
    options = dict(part.options or {})
    place, target = work.home / part.source, work.home / part.name
    if part.name == SHAPE and _shape_on_gpu(options, place, target, work):
        return
    mask = work.home / MASKS if work.source.classes and part.name != SHAPE else None
    told = work.progress
    done = apply_cue(part.cue, place, target, options=options, seed=work.seed, workers=work.workers, mask=mask,
                     progress=(lambda done, total, message: told(done, total)) if told else None)  # fmt: skip
    if done.failed:
        raise all_problems(f"{part.name}", [f"{name}: {why}" for name, why in done.failed.items()])


def _shape_on_gpu(options: Mapping[str, Any], place: Path, target: Path, work: _Work) -> bool:
    """Make the EED pictures on a GPU, True; or check that the CPU can do it within the time, False."""
    jobs = plan("eed", place, target, options, work.seed, None, False, None)
    todo = [job for job in jobs if not job.is_done()]
    gpu = shape_files.on_gpu(work.device)
    batch = min(GPU_BATCH, len(todo)) if gpu else 1
    shape_files.check_duration(
        todo, options, 1 if gpu else shape_files.cores(work.workers), work.longest, max(batch, 1)
    )
    if gpu:
        recipe = {"cue": "eed", "options": dict(options), "seed": work.seed, "mask": None, "other": None}
        claim_folder(target, {**recipe, "invert_mask": False}, jobs)
        shape_files.diffuse_batches(todo, options, GPU_BATCH, work.progress)
    return gpu


def _finish(work: _Work, parts: list[Part], candidates: tuple[mixing.Candidate, ...]) -> StimulusSet:
    """Write the manifest of everything that the folder now holds."""
    images = work.source.images.stimuli
    made = {part.name: folder.part_stimuli(part, images, work.home) for part in parts}
    stimuli = [s for pictures in made.values() for s in pictures]
    if candidates:
        stimuli += mixing.stimuli(candidates, made[SHAPE], made, work.seed)
    targets = work.source.targets
    if work.source.classes:
        write_json(work.home / folder.LABELS, work.source.classes.label_map())
        targets = folder.LABELS
    name = work.source.classes.dataset if work.source.classes else folder.CLASSIFICATION
    partial = work.source.images.partial
    # A manifest must not depend on where it lies, so that the same command gives the same bytes anywhere.
    written = StimulusSet(name, tuple(sorted(stimuli, key=lambda s: s.id)), "", 0, partial, targets)
    write_manifest(written, work.home / folder.MANIFEST)
    return folder.read_set(work.home, "")


MAKER = Maker(
    "cue_decomposition",
    "shape cues (EED) and texture cues (Voronoi, patch, diamond shuffles, residuals) of your own images, with masks",
    make,
    OPTIONS,
)
