"""Making REFINED-BIAS cues: cues in a second of one core, from invented objects with an alpha channel.

    python benchmarks/refined_bias.py --sources 40

Prints the rate of the whole command (check, make, inspect, write, sheets), and the ratio of the time for texture cues
to that of image quilting (the cue ``quilting``) on the same object.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.ndimage import gaussian_filter


def write_sources(root: Path, count: int, size: int = 400) -> None:
    """Discs of coloured noise in two classes."""
    y, x = np.mgrid[:size, :size]
    mask = (y - size / 2) ** 2 + (x - size / 2) ** 2 < (0.42 * size) ** 2
    for i in range(count):
        noise = gaussian_filter(np.random.default_rng(i).normal(size=(size, size, 3)), (3, 3, 0))
        picture = np.clip(128 + 45 * noise / noise.std(), 0, 255).astype(np.uint8)
        folder = root / ("zebra" if i % 2 else "hourglass")
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.dstack([picture, mask * np.uint8(255)])).save(folder / f"{i}.png")


def main() -> None:
    import cv2

    from cuebench.stimuli.makers.base import make
    from cuebench.stimuli.refined_bias.build import quilted_map
    from cuebench.stimuli.refined_bias.objects import close_up
    from cuebench.stimuli.refined_bias.texture_cue import source_map

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sources", type=int, default=20)
    count = parser.parse_known_args()[0].sources
    cv2.setNumThreads(1)
    with tempfile.TemporaryDirectory() as folder:
        write_sources(Path(folder, "source"), count)
        start = time.process_time()
        make("refined_bias", Path(folder, "out"), source=str(Path(folder, "source")))
        seconds = time.process_time() - start
        cues = len(list(Path(folder, "out", "refined_bias", "made").rglob("*.png")))
        print(f"{cues} cues of {count} sources in {seconds:.1f} s of one core: {cues / seconds:.1f} cues a second")
        image = np.asarray(Image.open(Path(folder, "source/zebra/1.png")))
    found = close_up(image[..., :3], image[..., 3] > 127, 224, 74)
    times = {}
    for method in (source_map, quilted_map):
        start = time.process_time()
        for grid in (4, 8):
            method(found.image, found.mask, grid, np.random.default_rng(0))
        times[method.__name__] = time.process_time() - start
    print(f"quilting / re-ordered patches (4 and 8 a side): {times['quilted_map'] / times['source_map']:.0f}")


if __name__ == "__main__":
    main()
