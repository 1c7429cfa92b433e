"""JPEG files that cost what photographs cost, and how fast processes decode them. Nothing here imports torch."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from cuebench.labels import label_space

CLASSES = 16
"""The pictures are divided among so many classes of ImageNet; their labels mean nothing."""
SIZE = (341, 256)
"""Width and height of a photograph of 500 × 375 whose shorter side was resized to 256."""


def paint(seed: int, size: tuple[int, int] = SIZE) -> Image.Image:
    """Return a picture with the spectrum of photographs (amplitude 1/f) and a few edges; one for each seed."""
    rng = np.random.default_rng(seed)
    width, height = size
    # Sizes that the transform is fast for; the rest is cut off.
    rows, columns = -(-height // 64) * 64, -(-width // 64) * 64
    frequency = np.hypot(np.fft.fftfreq(rows)[:, None], np.fft.rfftfreq(columns)[None, :])
    frequency[0, 0] = 1
    noise = rng.standard_normal((3, rows, columns // 2 + 1)) + 1j * rng.standard_normal((3, rows, columns // 2 + 1))
    fields = np.fft.irfft2(noise / frequency**1.2, (rows, columns))[:, :height, :width]
    fields /= fields.std(axis=(1, 2), keepdims=True)
    grey, warm, cold = fields
    y, x = np.mgrid[:height, :width]
    for _ in range(6):  # discs of another brightness: without edges a picture compresses too well
        inside = (x - rng.uniform(0, width)) ** 2 + (y - rng.uniform(0, height)) ** 2 < rng.uniform(
            0.05, 0.3
        ) * height**2
        grey = np.where(inside, 0.6 * grey + rng.normal(0, 1.2), grey)
    # The colours of photographs vary less than their brightness.
    rgb = np.stack([grey + 0.3 * warm, grey + 0.1 * cold, grey - 0.3 * warm], axis=-1)
    return Image.fromarray(np.clip(128 + 48 * rgb, 0, 255).astype(np.uint8))


def _write(task: tuple[str, int, int, tuple[int, int], int]) -> int:
    folder, first, last, size, quality = task
    written = 0
    for seed in range(first, last):
        path = Path(folder, f"{seed:06d}.jpg")
        paint(seed, size).save(path, quality=quality)
        written += path.stat().st_size
    return written


def make(folder: Path, count: int, processes: int, size: tuple[int, int] = SIZE, quality: int = 90) -> float:
    """Write so many pictures to a folder; return the mean size of a file in bytes."""
    folder.mkdir(parents=True)
    step = max(1, min(64, count // processes))
    tasks = [(str(folder), i, min(i + step, count), size, quality) for i in range(0, count, step)]
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        return sum(pool.map(_write, tasks)) / count


def link(pictures: Path, root: Path, count: int, seed: int = 0) -> Path:
    """Make a data root of so many stimuli, each a hard link to a picture; return it.

    Up to the number of pictures all are different; beyond that each further one is drawn at random, so that no two
    stored files ask for the same stimuli in the same order.
    """
    files = sorted(pictures.glob("*.jpg"))
    drawn = np.random.default_rng(seed).integers(len(files), size=max(0, count - len(files)))
    wanted = [*range(min(count, len(files))), *drawn.tolist()]
    names = label_space("imagenet1k").ids[:CLASSES]
    folders = [root / "imagenet_val" / name for name in names]
    for folder in folders:
        folder.mkdir(parents=True)
    for number, index in enumerate(wanted):
        os.link(files[index], folders[number % CLASSES] / f"{number:06d}.jpg")
    return root


# --------------------------------------------------------------------------------------------------- decoding


def _decode(kind: str, root: str, stimuli: Sequence[Any], geometry: Any, barrier: Any, results: Any) -> None:
    if kind == "cuebench":
        from cuebench.responses.pictures import Task, pictures

        def decoded(stimulus: Any) -> object:
            return pictures(Task(root, (stimulus,), (geometry,)))[0].by_geometry[0]
    else:

        def decoded(stimulus: Any) -> object:
            with Image.open(Path(root, stimulus.path)) as image:
                return geometry.apply(image.convert("RGB"))

    decoded(stimuli[0])
    barrier.wait()
    start, before = time.monotonic(), time.process_time()  # the clock is the same in all processes
    for stimulus in stimuli:
        decoded(stimulus)
    results.put((start, time.monotonic(), time.process_time() - before))


def decode_rate(kind: str, root: str, stimuli: Sequence[Any], geometry: Any, processes: int) -> tuple[float, float]:
    """Return stimuli/s that processes decode that do nothing else, not even hand the pixels on; and CPU s for each.

    Parameters
    ----------
    kind : str
        ``cuebench``: what the engine's workers do (bounded reading, the file's hash compared, colours, geometry);
        ``pillow``: open, convert to RGB, and the same geometry.
    root : str
        Of the stimulus set.
    stimuli, geometry
        What to decode, and to which size.
    processes : int
        How many.
    """
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(processes), context.Queue()
    parts = [stimuli[i::processes] for i in range(processes)]
    children = [context.Process(target=_decode, args=(kind, root, p, geometry, barrier, results)) for p in parts]
    for child in children:
        child.start()
    times = [results.get(timeout=300) for _ in children]
    for child in children:
        child.join()
    seconds = max(end for _, end, _ in times) - min(start for start, _, _ in times)
    return len(stimuli) / seconds, sum(spent for _, _, spent in times) / len(stimuli)
