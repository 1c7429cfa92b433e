"""
What a model ties textures to
=============================

Show a model pictures of textures and count what it takes them for. The texture association value (TAV) weighs how
exclusive each tie is; the answer to *any* image can then be compared with the answers to textures. This example needs
no network, no weights and no GPU: the textures are drawn, and the "model" is a few lines of numpy that looks at how
light, how coloured and how rough a picture is. It leaves its pictures in ``runs/gallery``.
"""

from pathlib import Path

import numpy as np

import cuebench as cb
from cuebench.metrics.texture_association import texture_association, texture_identity, top_pairs
from cuebench.reports.figures.tav_bars import tav_bars
from cuebench.reports.figures.tav_heatmap import tav_heatmap
from cuebench.reports.figures.texture_sheet import texture_sheet
from cuebench.stimuli.drawing.textures import names, texture
from cuebench.stimuli.sources.texture import draw

OUT = Path("runs/gallery")
OUT.mkdir(parents=True, exist_ok=True)

# %%
# Sixty-seven textures are drawn from seeds: the same seed gives the same bytes, another one another variant.

print(len(names()), "textures:", ", ".join(names()[:8]), "…")
assert np.array_equal(texture("honeycombed", rng=3), texture("honeycombed", rng=3))
texture_sheet(textures=names()[::6], columns=6).save(OUT / "textures.png")

# %%
# The association by hand: four textures, ten pictures of each, and what they were taken for.

classes = ["zebra", "tiger", "window screen", "crossword", "maze", "bib", "ladybug", "envelope"]
counts = np.array(
    [[8, 2, 0, 0, 0, 0, 0, 0], [1, 0, 5, 3, 1, 0, 0, 0], [0, 0, 2, 0, 0, 4, 4, 0], [0, 0, 0, 0, 0, 0, 0, 10]]
)
tav = texture_association(counts)
for pair in top_pairs(tav, 3):
    print(["striped", "grid", "dotted", "flat"][pair.texture], "→", classes[pair.label], round(pair.value, 3))
answer = np.array([0.7, 0, 0, 0, 0.3, 0, 0, 0])
print("an image answered with zebra 70 %, maze 30 % looks striped:", texture_identity(answer, tav))

# %%
# A model of four classes that sees lightness, colour and roughness only, and a run of the whole protocol with it.


class Feelings:
    """Calm is light and smooth, storm dark and rough, fire warm, ice cold."""

    def __call__(self, images):
        grey = images.mean(axis=1)
        rough = np.abs(np.diff(grey, axis=2)).mean(axis=(1, 2))
        light, warm = grey.mean(axis=(1, 2)), (images[:, 0] - images[:, 2]).mean(axis=(1, 2))
        return 6 * np.stack([light - 4 * rough, 4 * rough - light, 2 * warm, -2 * warm], axis=1)


model = cb.wrap(
    Feelings(),
    preprocess=cb.Preprocess(size=64, resize=64, mean=(0, 0, 0), std=(1, 1, 1)),
    labels=["calm", "storm", "fire", "ice"],
    name="feelings",
    fingerprint="feelings-1",
)
run = OUT / "texture_association"
scores = cb.evaluate(model, "texture_association", data_root=OUT, out=run, limit=268, resamples=200, workers=1)
tav_heatmap(run).save(OUT / "tav_heatmap.png")
tav_bars(run, number=20).save(OUT / "tav_bars.png")

# %%
# And one picture, explained.

found = cb.texture_of(draw(seed=99, name="fur", size=128), model, run)
print(found.texture, round(found.texturedness, 2), found.prediction, "—", found.verdict)
