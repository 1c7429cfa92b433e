"""Cue decomposition of your own images: EED as shape cue, shuffles and residuals as texture cues, masks moved along.

From a folder of labelled images, or from images with masks (a plain pair of folders, Cityscapes, ADE20K). No network
is needed to make the stimuli. Every file is written whole or not at all; the same command goes on where it stopped.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, get_args

from cuebench._version import __version__
from cuebench.cues.base import Rounding
from cuebench.cues.eed import STEPS_CLASSIFICATION, STEPS_SEGMENTATION
from cuebench.errors import UserError, all_problems
from cuebench.files import write_json
from cuebench.observers.preprocess import LARGEST_SIDE
from cuebench.options import WORKERS, Option
from cuebench.registry import cues as cue_parts
from cuebench.stimuli.apply_cue import apply_cue, claim_folder, recipe_of
from cuebench.stimuli.background import BACKGROUNDS, on_background
from cuebench.stimuli.cue_files import plan
from cuebench.stimuli.decomposition import conflicts as mixing
from cuebench.stimuli.decomposition import folder, shape_files
from cuebench.stimuli.decomposition.cue_list import MORE, NAMES, RESIDUAL, SHAPE, Part
from cuebench.stimuli.decomposition.originals import MASKS, cut, write_originals, write_residuals
from cuebench.stimuli.decomposition.sources import LAYOUTS, Source, read_source
from cuebench.stimuli.decomposition.wanted import Wanted, wanted
from cuebench.stimuli.input_log import InputLog, digests
from cuebench.stimuli.made import MADE, claim
from cuebench.stimuli.makers.base import Maker, Progress
from cuebench.stimuli.manifest import write_manifest
from cuebench.types import StimulusSet

GPU_BATCH = 128
OPTIONS = {
    "source": Option("", "folder of the data set; also --source"),
    "layout": Option("auto", "layout of the data set; auto: by what lies in the folder", choices=("auto", *LAYOUTS)),
    "cues": Option(
        ("eed", "voronoi"),
        f"cues: {', '.join((*NAMES, *MORE))}, voronoi8 … voronoi128, or all (the six published); also --cues",
    ),
    "conflicts": Option((), "cue-conflict candidates such as blend/voronoi/0.5/0.5, or published (Table II)"),
    "classes": Option("", "segmentation pairs: JSON file with the meaning of the numbers in the masks"),
    "labels": Option("", "classification: label map, built-in (in16) or a file; images of other classes are left out"),
    "size": Option(-1, "side of the centre crop in pixels; 0: no crop, -1: as published", low=-1, high=LARGEST_SIDE),
    "resize": Option(-1, "shorter side before the crop; 0: as they are, -1: as published", low=-1, high=LARGEST_SIDE),
    "steps": Option(0, "steps of EED; 0: 16,384 for classification, 5,792 for segmentation", low=0, high=10_000_000),
    "accuracy": Option(0.0, "dB of the fast scheme of EED, e.g. 45 or 50; 0: the explicit scheme", low=0, high=200),
    "rounding": Option(
        "round", "grey levels of EED: rounded, or truncated as in the authors' files", choices=get_args(Rounding)
    ),
    "background": Option("white", "of transparent pictures; refuse: do not take them", choices=BACKGROUNDS),
    "workers": replace(WORKERS, about="processes; 0: one for each core"),
    "device": Option("auto", "for EED; auto: a GPU where there is one", choices=("auto", "cpu", "cuda")),
    "hours": Option(24.0, "longest estimated time of EED that is started; 0: any", low=0),
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
    cues: tuple[str, ...] = ("eed", "voronoi"),
    conflicts: tuple[str, ...] = (),
    classes: str = "",
    labels: str = "",
    size: int = -1,
    resize: int = -1,
    steps: int = 0,
    accuracy: float = 0.0,
    rounding: str = "round",
    background: str = "white",
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
    cues : tuple of str
        Of eed, voronoi, voronoi8 … voronoi128, patch, diamond, tex_eed, tex_eed_pat, edge_blur; ``all``: the six
        published.
    conflicts : tuple of str
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
    rounding : str
        Grey levels of EED: ``round``, or ``truncate`` as in the authors' files.
    background : str
        What partly transparent pictures are put on: ``white``, ``black``, ``grey``; ``refuse``: none is taken.
    workers : int
        Processes; 0: one for each core.
    device : str
        For EED: ``auto`` (a GPU where there is one), ``cpu``, ``cuda``.
    hours : float
        Longest estimated time of EED that is started; 0: any.
    """
    dataset = read_source(source, layout, classes=classes, labels=labels, count=count, seed=seed)
    dataset = replace(dataset, images=on_background(dataset.images, background))
    home = out / (folder.SEGMENTATION if dataset.classes else folder.CLASSIFICATION)
    if conflicts and dataset.classes:
        raise UserError("cue-conflict candidates need one class for each image", "leave out conflicts= for masks")
    size = dataset.size if size < 0 else size
    resize = (dataset.resize if resize < 0 else resize) if size else 0
    record = {"maker": "cue_decomposition", "version": folder.VERSION, "source": dataset.described, "seed": seed,
              "count": count, "size": size, "resize": resize, **dataset.coding}  # fmt: skip
    before = claim(home, record, list(home.iterdir()) if home.is_dir() else [])  # cues may be added later
    eed_options: dict[str, Any] = {"steps": steps or _published_steps(dataset)}
    eed_options |= {"accuracy": accuracy} if accuracy else {}
    eed_options |= {"rounding": rounding} if rounding != "round" else {}
    selection = wanted(",".join(cues), ",".join(conflicts), eed_options, before)
    report = _TotalProgress(progress, len(dataset.images) * len(selection.parts))
    work = _Work(home, dataset, seed, workers, device, hours * 3600 or math.inf, report)
    _check_duration(work, selection.parts, size, resize)
    write_json(home / MADE, {**record, "cuebench": __version__, **selection.described()})
    try:
        write_originals(dataset.images, home, size, resize, dataset.classes, report)
    except UserError:
        if not before:  # a new set with bad files leaves nothing behind, so that repaired files can be used
            _remove(home)
        raise
    for part in sorted(selection.parts[1:], key=lambda p: p.name != SHAPE):
        _make_part(part, work)
    return _finish(work, selection)


def _remove(home: Path) -> None:
    """Delete a set, its record last: until then the same command can go on, however far the deletion came."""
    for path in [path for path in home.iterdir() if path.name != MADE]:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    shutil.rmtree(home)


def _check_duration(work: _Work, parts: list[Part], size: int, resize: int) -> None:
    """Refuse a diffusion that would take too long, before anything is written."""
    images = work.source.images.stimuli
    shape = next((p for p in parts if p.name == SHAPE), None)
    todo = [s for s in images if not (work.home / SHAPE / f"{s.id}.png").is_file()]
    if shape is None or not todo:
        return
    gpu = shape_files.on_gpu(work.device)
    sample = max(todo[:: max(1, len(todo) // 16)], key=lambda s: s.width * s.height)
    batch, at_once = (min(GPU_BATCH, len(todo)), 1) if gpu else (1, shape_files.cores(work.workers))
    options = {**(shape.options or {}), "backend": shape_files.BACKEND[gpu]}
    pixels = cut(work.source.images, sample, size, resize)
    shape_files.check_duration(pixels, len(todo), options, at_once, work.longest, batch)


class _TotalProgress:
    """Progress over all parts of the set: each part reports its own."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self.progress, self.total, self.before, self.last = progress, total, 0, 0

    def __call__(self, done: int, total: int) -> None:
        if done < self.last:  # the next part has begun
            self.before += self.last
        self.last = done
        if self.progress:
            self.progress(min(self.before + done, self.total), self.total)


def _published_steps(source: Source) -> int:
    return STEPS_SEGMENTATION if source.classes else STEPS_CLASSIFICATION


def _make_part(part: Part, work: _Work) -> None:
    if part.name == RESIDUAL:
        write_residuals(work.ids, work.home, SHAPE, RESIDUAL)
        return
    options = dict(part.options or {})
    place, target = work.home / part.source, work.home / part.name
    if part.name == SHAPE:
        gpu = shape_files.on_gpu(work.device)
        options["backend"] = shape_files.BACKEND[gpu]
        if gpu:
            _diffuse_on_gpu(options, place, target, work)
            return
    moves = cue_parts.get(part.cue).info.moves_mask  # a cue that leaves pixels where they are leaves the masks, too
    mask = work.home / MASKS if work.source.classes and moves else None
    report = work.progress
    result = apply_cue(part.cue, place, target, options=options, seed=work.seed, workers=work.workers, mask=mask,
                       progress=(lambda done, total, message: report(done, total)) if report else None)  # fmt: skip
    if result.failed:
        raise all_problems(f"{part.name}", [f"{name}: {why}" for name, why in result.failed.items()])


def _diffuse_on_gpu(options: Mapping[str, Any], place: Path, target: Path, work: _Work) -> None:
    jobs = plan("eed", place, target, options, work.seed, None, False, None)
    claim_folder(target, recipe_of("eed", options, work.seed, target), jobs)
    log, hashes = InputLog(target), digests({job.target: job.inputs for job in jobs})
    todo = [job for job in jobs if not log.is_current(job.results, job.inputs, hashes[job.target])]
    shape_files.diffuse_batches(todo, options, GPU_BATCH, work.progress)
    for job in jobs:
        log.add(job.target, hashes[job.target])
    log.finish()


def _finish(work: _Work, selection: Wanted) -> StimulusSet:
    """Write the manifest of everything that the folder now holds."""
    images = work.source.images.stimuli
    by_part = {part.name: folder.part_stimuli(part, images, work.home) for part in selection.parts}
    stimuli = [s for pictures in by_part.values() for s in pictures]
    if selection.candidates:
        stimuli += mixing.stimuli(selection.candidates, by_part[SHAPE], by_part, work.seed)
    name = work.source.classes.dataset if work.source.classes else folder.CLASSIFICATION
    # A manifest must not depend on where it lies, so that the same command gives the same bytes anywhere.
    targets, notes = folder.write_labels(work.home, work.source), _departures(selection, work.source)
    ordered = tuple(sorted(stimuli, key=lambda s: s.id))
    manifest = StimulusSet(name, ordered, "", 0, work.source.images.partial, targets, notes)
    write_manifest(manifest, work.home / folder.MANIFEST)
    return folder.read_set(work.home, "")


def _departures(selection: Wanted, source: Source) -> tuple[str, ...]:
    """Return the notes on a diffusion that differs from the published one, and on the source; every score has them."""
    options = next((p.options or {} for p in selection.parts if p.name == SHAPE), {})
    published = _published_steps(source)
    steps = options.get("steps", published)
    notes = [f"{SHAPE} with {steps:,} steps, published {published:,}"] if steps != published else []
    if "accuracy" in options:
        notes.append(f"{SHAPE} by the fast scheme, accuracy={options['accuracy']:g}")
    if "rounding" in options:
        notes.append(f"{SHAPE} truncated to grey levels, as in the authors' files")
    return (*notes, *source.images.notes)


MAKER = Maker(
    "cue_decomposition",
    "shape cues (EED) and texture cues (Voronoi, patch, diamond shuffles, residuals) of your own images, with masks",
    make,
    OPTIONS,
)
