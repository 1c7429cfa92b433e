"""What the scripts of the gallery share: drawn pictures, drawn stimuli, and runs with observers of known bias.

Everything is written below ``runs/gallery`` (another folder: the environment variable ``CUEBENCH_GALLERY``), and what
lies there is used again.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
from PIL import Image

from cuebench import LabelSpace, Preprocess, evaluate
from cuebench.stimuli import toy_world

OUT = Path(os.environ.get("CUEBENCH_GALLERY", "runs/gallery"))
OBSERVERS = ("ideal:shape", "ideal:mixture?shape=0.7&lapse=0.1&name=mostly shape", "ideal:texture",
             "ideal:mixture?shape=0.3&lapse=0.3&name=mostly texture", "ideal:random")  # fmt: skip
"""Whom the protocols are shown to: their bias is known."""
SEGMENTATION = "cue_decomposition_segmentation"
SETTINGS = {"triplets": {"triplets.experiments": "3"}, SEGMENTATION: {f"{SEGMENTATION}.keep_masks": "2"}}


def thing(name="clock", side=128, instance=0):
    """Return the drawing of a thing in its own material, at half its contrast as things have it, and its mask."""
    cover = toy_world.shape(name, instance, size=side)
    y, x = np.mgrid[:side, :side] / side
    ground = np.stack([0.75 + 0.2 * y, 0.8 - 0.15 * y, 0.85 - 0.2 * x], axis=-1)
    material = toy_world.material(name, instance, size=side)
    filling = 0.5 * material + 0.5 * material.mean(axis=(0, 1))
    return toy_world.picture(cover, filling, ground), cover > 0.5


def save(script, *pictures):
    """Save pictures side by side under the name of the script."""
    pictures = [p[0] if isinstance(p, tuple) else p for p in pictures]  # a moved mask is left out
    pictures = [np.repeat(p[..., None], 3, axis=2) if p.ndim == 2 else p for p in pictures]
    gap = np.full((pictures[0].shape[0], 6, 3), 255, np.uint8)
    row = [part for p in pictures for part in (p.astype(np.uint8), gap)][:-1]
    path = picture_of(script, ".png")
    Image.fromarray(np.concatenate(row, axis=1)).save(path)


def picture_of(script, ending=".svg"):
    """Return where the picture of a script is written: its kind, its name."""
    path = OUT / Path(script).parent.name / (Path(script).stem + ending)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def stimuli():
    """Return a data root with drawn stimuli for all protocols, made when it is first asked for."""
    from cuebench.analyses.demo.stimuli import make_stimuli

    data, done = OUT / "data", OUT / "data" / "complete"
    if not done.is_file():
        make_stimuli(data)
        done.touch()
    return data


def planted(*protocols):
    """Return the run folders of protocols, one each, with observers of known bias; measured when first asked for."""
    runs = [OUT / "planted" / name for name in protocols]
    for name, out in zip(protocols, runs):
        data = stimuli() / "segmentation" if name == SEGMENTATION else stimuli()
        people = [f"recorded:{data / 'model_vs_human' / 'raw-data'}"] if name == "human_alignment" else []
        if not (out / "scores.json").is_file():
            evaluate([*OBSERVERS, *people], name, data_root=data, out=out, limit=200, resamples=200, workers=0,
                     settings=SETTINGS.get(name, {}), offline=True)  # fmt: skip
    return runs if len(runs) > 1 else runs[0]


def analysed_study():
    """Return the file of an analysed study: thirty simulated people name the shape and the texture of cues."""
    rng, rows = np.random.default_rng(0), []
    skill = {"shape": rng.beta(30, 3, 30), "texture": rng.beta(14, 4, 30)}
    classes = {"shape": ("airplane", "bottle", "car", "clock"), "texture": ("corn", "honeycomb", "strawberry", "zebra")}
    for task, people in skill.items():
        right = rng.random((30, 4, 10)) < np.clip(people[:, None, None] + rng.normal(0, 0.05, (1, 4, 1)), 0, 1)
        for k, name in enumerate(("", *classes[task])):
            means = (right if not name else right[:, k - 1 : k]).mean(axis=(1, 2))
            half = 2 * means.std(ddof=1) / np.sqrt(30)
            rows.append(_study_row(task, f"class={name}" if name else "", means.mean(), half, "people", 30))
        for person, mean in enumerate(right.mean(axis=(1, 2))):
            row = _study_row(task, f"person=p{person:02d}", mean, 2 * np.sqrt(mean * (1 - mean) / 40), "images", 1)
            rows.append({**row, "note": f"group {'AB'[person % 2]}"})
    file = OUT / "analysis.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"rows": rows}))
    return file


def _study_row(task, part, value, half, over, people):
    interval = {"over": over, "low": max(0.0, value - half), "high": min(1.0, value + half), "note": ""}
    return {"measure": "accuracy", "task": task, "part": part, "value": float(value), "intervals": [interval],
            "n": 40 * people, "people": people}  # fmt: skip


def examples(script, run, number=6):
    """Save some of the stimuli of a run side by side, as ``NAME_stimuli.png``."""
    from cuebench.stimuli.manifest import read_manifest
    from cuebench.stimuli.render import decode, render

    tables = [read_manifest(file) for file in sorted((run / "stimuli").glob("*.parquet"))]
    shown = next(t for t in tables if t.stimuli[0].path or t.stimuli[0].recipe)  # not names of people's trials
    numbers = np.random.default_rng(1).choice(len(shown), number, replace=False)
    chosen = [shown.stimuli[i] for i in np.sort(numbers)]
    pictures = [render(shown.root, decode(shown.root, s), s).convert("RGB").resize((112, 112)) for s in chosen]
    row = Image.new("RGB", (118 * number - 6, 112), "white")
    for k, picture in enumerate(pictures):
        row.paste(picture, (118 * k, 0))
    row.save(picture_of(script, "_stimuli.png"))


def layers():
    """Return the run of triplets with numbers of three layers beside those of the features: made up from these."""
    from dataclasses import replace

    from cuebench.runs.results import read_scores, write_scores

    rows, out = read_scores(planted("triplets")), OUT / "layers"
    made = [replace(r, condition=f"{r.condition}/layer={name}", value=0.5 + (r.value - 0.5) * share)
            for r in rows for name, share in (("early", 0.2), ("middle", 0.5), ("late", 0.9))]  # fmt: skip
    write_scores(out, [*rows, *made], {})
    return out


class Greys:
    """A model of grey levels: the class of a picture is its mean level. It has an early and a late layer."""

    name, kind, fingerprint = "grey levels", "model", "1"
    labels = LabelSpace("greys", tuple(f"shade {i}" for i in range(8)))
    preprocess = Preprocess(size=16, resize=16)
    capabilities = frozenset({"logits", "features"})

    def respond(self, batch, needs):
        level = batch.images.mean((1, 2, 3)) / 255 * 8
        logits = -4 * np.abs(level[:, None] - 0.5 - np.arange(8)[None])
        features = {"features": np.exp(logits), "features:early": np.stack([level, 9 - level], 1)}
        return {"logits": logits} | (features if "features" in needs else {})

    def reading(self, names):
        return self


def greys():
    """Return a run of texture association in which everything is a level of grey, with adversarial images."""
    root, run = OUT / "greys", OUT / "greys" / "run"
    if (run / "scores.json").is_file():
        return run
    for name, low in (("night", 5), ("dusk", 70), ("dawn", 135), ("fog", 195)):
        for i in range(24):
            _flat(root / "textures" / name / f"{i}.png", low + 2 * i)
    for folder in ("imagenet_val", "imagenet_a"):
        for i, level in enumerate(range(4, 252, 8)):
            wrong = folder == "imagenet_a" or i % 5 == 0
            _flat(root / folder / Greys.labels.names[(level // 32 + wrong * 4) % 8] / f"{i}.png", level)
    evaluate(Greys(), "texture_association", data_root=root, out=run, resamples=100, workers=0,
             settings={"texture_association.layers": "early"})  # fmt: skip
    return run


def _flat(path, level):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((16, 16, 3), level, np.uint8)).save(path)


def judged():
    """Return that run and what two people say of its textures: one agrees with all, one with half of them."""
    from cuebench.analyses.texture_judgements import identified, judgement_trials

    run, file = greys(), OUT / "greys" / "answers.csv"
    textures = {row.image: row.texture for row in identified(run)[1]}
    lines = ["subject,image,options,answer"]
    for k, trial in enumerate(judgement_trials(run, number=12, seed=1)):
        found = textures[trial["image"]]
        other = next(word for word in trial["options"].split(";") if word != found)
        lines += [f"anna,{trial['image']},{trial['options']},{found}"]
        lines += [f"bert,{trial['image']},{trial['options']},{found if k % 2 else other}"]
    file.write_text("\n".join(lines))
    return run, file


def models():
    """Return a folder of scores of eight networks that do not exist: those that see shape better are more accurate."""
    from cuebench.runs.results import write_scores
    from cuebench.types import Score

    rng, rows = np.random.default_rng(1), []
    for k in range(8):
        skill = 0.3 + 0.5 * k / 7
        shape, texture = skill + rng.normal() / 30, 0.6 + rng.normal() / 20
        values = {
            ("refined_bias", "faithful", "shape_sensitivity"): shape,
            ("refined_bias", "faithful", "texture_sensitivity"): texture,
            ("refined_bias", "faithful", "shape_preference"): shape / (shape + texture),
            ("imagenet_accuracy", "top1", "accuracy"): skill,
            ("cue_conflict", "16-way", "shape_bias"): 0.1 + skill / 2 + rng.normal() / 30,
            ("corruption_robustness", "mean", "relative_robustness"): skill / 2 + rng.normal() / 50,
        }
        for (protocol, condition, metric), v in values.items():
            rows.append(Score(protocol, 1, f"net{k}", condition, metric, v, v - 0.03, v + 0.03, "images", 100))
    write_scores(OUT / "models", rows, {})
    return OUT / "models"


def answered():
    """Return two runs, cue conflict and pure shapes, with the answers of three models and two people, all simulated.

    Model k recognises some classes by shape more often than others; people nearly always go by shape.
    """
    rng, home = np.random.default_rng(0), stimuli() / "cue_conflict"
    conflicts = [path.stem for path in sorted((home / "stimuli").glob("*/*.png"))]
    pure = [
        f"{kind}/{path.stem}" for kind in ("silhouettes", "edges") for path in sorted((home / kind).glob("*/*.png"))
    ]
    runs = []
    for protocol, names in (("cue_conflict", conflicts), ("pure_shape", pure)):
        files = []
        for who in ("net0", "net1", "net2", *(("subject-01", "subject-02") if protocol == "cue_conflict" else ())):
            lines = [f"stimulus,{'subject' if who.startswith('subject') else 'observer'},decision"]
            for name in names:
                shape, _, texture = (part.rstrip("0123456789") for part in name.rpartition("/")[2].partition("-"))
                share = 0.9 if who.startswith("subject") else (toy_world.CLASSES.index(shape) + int(who[-1])) / 10
                lines.append(f"{name},{who},{shape if rng.random() < share else texture or 'knife'}")
            files.append(OUT / "answered" / f"{protocol}-{who}.csv")
            files[-1].parent.mkdir(parents=True, exist_ok=True)
            files[-1].write_text("\n".join(lines))
        runs.append(OUT / "answered" / protocol)
        if not (runs[-1] / "scores.json").is_file():
            specs = [f"recorded:{file}" for file in files]
            evaluate(specs, protocol, data_root=stimuli(), out=runs[-1], resamples=100, workers=0)
    return runs
