"""
Same shape or same texture: triplets and novel objects
======================================================

A child is shown a new thing, "this is a dax", and asked which of two others is a dax too: the one of the same shape or
the one of the same texture. This example asks embeddings the same question. It needs no data and no GPU, runs in about
two minutes, and leaves its pictures in ``runs/gallery``.
"""

import json
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn

import cuebench
from cuebench.callbacks import BiasOverTraining
from cuebench.metrics.triplet_shape_bias import triplet_shape_bias
from cuebench.observers.preprocess import Preprocess
from cuebench.reports.figures.bias_over_training import bias_over_training
from cuebench.stimuli.sources.novel_object import SHAPES, TEXTURES, draw

OUT = Path("runs/gallery")
OUT.mkdir(parents=True, exist_ok=True)

# %%
# One trial: anchor, shape match, texture match. Each stimulus has its own patch of the texture, so that two of the same
# texture share no pixel.

trial = [("dax", "bricks"), ("dax", "leaves"), ("ruk", "bricks")]
pictures = [draw(seed=k, shape=s, texture=t) for k, (s, t) in enumerate(trial)]
Image.fromarray(np.concatenate(pictures, axis=1)).save(OUT / "triplet.png")

# %%
# An embedding of your own needs one line: features, and which instance each image's shape and texture came from.

names = [(s, t) for s in SHAPES for t in TEXTURES]
images = np.stack([draw(seed=k, shape=s, texture=t, pixels=64) for k, (s, t) in enumerate(names)])
shapes, textures = zip(*names)
colour = images.reshape(len(images), -1, 3).mean(axis=1)
outline = (images < 250).any(axis=3).reshape(len(images), -1)
print(f"mean colour: {triplet_shape_bias(colour, shapes, textures):.2f}")
print(f"outline:     {triplet_shape_bias(outline, shapes, textures):.2f}")

# %%
# Is the measure right? Observers with a planted bias go through the whole pipeline and must come back with it.

rows = cuebench.evaluate(
    ["ideal:shape", "ideal:texture", "ideal:mixture?shape=0.7"],
    "triplets",
    out=OUT / "triplets",
    settings={"triplets.experiments": "3"},
    resamples=500,
)
for observer in ("ideal:shape", "ideal:texture", "ideal:mixture?shape=0.7"):
    print(observer, round(rows.value(observer, "triplet_shape_bias", "experiment3/size=1.0/aligned"), 2))

# %%
# What is learned depends on what is asked. The same small network learns to name shapes, or to name textures, from the
# same pictures, and a callback watches its bias.


def pictures_and_names(count=768, side=64):
    rng = np.random.default_rng(0)
    s, t = rng.integers(16, size=count), rng.integers(16, size=count)
    drawn = [
        draw(seed=10_000 + k, shape=SHAPES[a], texture=TEXTURES[b], size=0.8, position="random", pixels=side)
        for k, (a, b) in enumerate(zip(s, t))
    ]
    pixels = torch.from_numpy(np.stack(drawn)).permute(0, 3, 1, 2).float() / 127.5 - 1
    return pixels, {"shapes": torch.from_numpy(s), "textures": torch.from_numpy(t)}


def network():
    torch.manual_seed(0)
    layers = []
    for wide, out in ((3, 24), (24, 48), (48, 96)):
        layers += [nn.Conv2d(wide, out, 3, stride=2, padding=1), nn.BatchNorm2d(out), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(96, 16))


def train(task, epochs=8):
    net, order = network(), torch.Generator().manual_seed(0)
    learn = torch.optim.AdamW(net.parameters(), 3e-3)
    watch = BiasOverTraining(
        preprocess=Preprocess(size=64, mean=(0.5,) * 3, std=(0.5,) * 3), labels=16, prefix=f"{task}/"
    )
    for epoch in range(epochs + 1):
        watch(epoch, net)
        for batch in torch.randperm(len(PIXELS), generator=order).split(64) if epoch < epochs else ():
            loss = nn.functional.cross_entropy(net(PIXELS[batch]), NAMES[task][batch])
            learn.zero_grad()
            loss.backward()
            learn.step()
    return watch.history


PIXELS, NAMES = pictures_and_names()
histories = {task: train(task) for task in ("shapes", "textures")}
merged = [
    {"epoch": a["epoch"], **{k: a[k] | b[k] for k in ("values", "low", "high")}} for a, b in zip(*histories.values())
]
bias_over_training(merged).save(OUT / "bias_over_training.svg")
(OUT / "bias_over_training.json").write_text(json.dumps(merged))
last = merged[-1]["values"]
named = {task: np.mean([v for k, v in last.items() if k.startswith(task)]) for task in histories}
print(f"after training to name shapes: {named['shapes']:.2f}; to name textures: {named['textures']:.2f}")
assert named["shapes"] > named["textures"]
