"""
Shape and texture of one photograph
===================================

A *cue* is what is left of an image when one kind of information is kept. Cues are plain functions: array in, array of
the same shape and dtype out. This example takes one photograph of scikit-image apart. It needs no network and no GPU,
runs in a few seconds, and leaves its pictures in ``runs/gallery``.
"""

from pathlib import Path

import numpy as np
from PIL import Image
from skimage import data

from cuebench.cues import (
    channel_shuffle,
    contours,
    eed,
    gaussian_blur,
    interior_patches,
    non_local_means,
    patch_shuffle,
    phase_noise,
    voronoi_shuffle,
)
from cuebench.metrics.suppression_quality import suppression_quality
from cuebench.stimuli.masks import guess_mask
from cuebench.stimuli.sheet import squared

OUT = Path("runs/gallery")
OUT.mkdir(parents=True, exist_ok=True)


def strip(name, *pictures):
    """Save pictures side by side."""
    wide = [np.repeat(p[..., None], 3, axis=2) if p.ndim == 2 else p for p in pictures]
    Image.fromarray(np.concatenate(wide, axis=1)).save(OUT / f"{name}.png")


image = squared(data.astronaut(), 224)

# %%
# Shape without texture: edge-enhancing diffusion flattens surfaces and keeps their borders; contours keep only lines.
# ``accuracy=40`` asks for the fast scheme, within 40 dB of the 16,384 explicit steps of the paper.

mask = guess_mask(image)
strip("shape", image, eed(image, accuracy=40), contours(image, mask=mask))

# %%
# Texture without shape. More sites leave smaller pieces. The same seed always gives the same picture.

strip("texture", image, *(voronoi_shuffle(image, sites=n, rng=0) for n in (8, 32, 128)))
assert np.array_equal(voronoi_shuffle(image, rng=0), voronoi_shuffle(image, rng=0))

# %%
# For segmentation a label mask moves along: pixel and label always correspond.

shuffled, labels = voronoi_shuffle(image, mask=mask, rng=0)
strip("with_labels", image, mask.astype(np.uint8) * 255, shuffled, labels.astype(np.uint8) * 255)

# %%
# Texture of the object alone, at three of the published patch sizes. What does not fit inside the object is refused,
# with the grid that would fit.

strip("interior", *(interior_patches(image, mask=mask, grid=g) for g in (8, 16, 32)))

# %%
# Two modes where paper and practice differ: the published phase noise loses power because its shifts are not opposite
# at opposite frequencies.

for mode in ("faithful", "corrected"):
    noisy = phase_noise(image / 255.0, width=90, mode=mode)
    print(f"phase noise of 90°, {mode:9s}: standard deviation {noisy.std():.3f}")

# %%
# How much does a suppression take away? Texture suppressions lower the first two numbers and keep the third; shape
# suppressions do the reverse; a colour suppression should leave all three near one.

print(f"{'':18s} local variance  high frequencies  gradient correlation")
for cue in (gaussian_blur, non_local_means, patch_shuffle, channel_shuffle):
    quality = suppression_quality(image, cue(image))
    print(f"{cue.__name__:18s}" + "".join(f"{value:16.2f}" for value in quality))
