"""The stimuli of the three experiments.

Experiments 1 and 2 are pictures made from the cue-conflict images and their silhouettes, experiment 3 is novel objects.
Conditions that show the same pictures share them: an object at 100 % has only one place.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode

import numpy as np

from cuebench.errors import UserError, all_problems
from cuebench.files import hash_file
from cuebench.labels import label_map
from cuebench.stimuli.hashing import for_each_file
from cuebench.stimuli.image_files import read_rgb
from cuebench.stimuli.manifest import read_manifest
from cuebench.stimuli.readers import cue_conflict as folder_reader
from cuebench.stimuli.sources import novel_object
from cuebench.types import Stimulus, StimulusSet

NAME = "triplets"
ALPHAS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
SIZES = (0.2, 0.4, 0.6, 0.8, 1.0)
PLACES = {"aligned": "centre", "unaligned": "random"}
PUBLISHED = 1200
MOST_GREY = 0.25
"""Part of a silhouette that may be neither black nor white: the published ones have soft edges, up to .19."""

ALONE = "experiment1/alpha=1.0"
EXPERIMENTS: Mapping[str, tuple[str, ...]] = {
    "1": tuple(f"experiment1/alpha={a:.1f}" for a in ALPHAS),
    "2": tuple(f"experiment2/size={s:.1f}/{p}" for p in PLACES for s in SIZES),
    "3": tuple(f"experiment3/size={s:.1f}/{p}" for p in PLACES for s in SIZES),
}
MATCHES: Mapping[str, tuple[str, ...]] = {
    match: tuple(f"novel/match={match}/{place}" for place in PLACES) for match in ("size", "colour")
}
"""Experiments beyond the paper: shape against size (Landau et al. 1988) and against colour (Ritter et al. 2017)."""
MATCH_SIZES = (0.3, 0.45, 0.6, 0.75, 0.9)
COLOURED_SIZE = 0.6
SAME: Mapping[str, str] = {
    "experiment2/size=1.0/aligned": ALONE,
    "experiment2/size=1.0/unaligned": ALONE,
    "experiment3/size=1.0/unaligned": "experiment3/size=1.0/aligned",
}
"""Condition → the one whose pictures it shows."""


def shown(condition: str) -> str:
    """Return the condition under which the pictures of a condition stand in the manifest."""
    return SAME.get(condition, condition)


def read(
    data_root: Path | None, experiments: Collection[str], *, explicit: bool, background: str = "white"
) -> StimulusSet:
    """Plan the pictures of some experiments.

    Parameters
    ----------
    data_root : Path or None
        Holds ``cue_conflict/stimuli`` and ``cue_conflict/silhouettes``, and perhaps ``novel_objects`` (made by
        ``cuebench make novel_objects``), which then takes the place of the built-in ones.
    experiments : collection of "1", "2", "3", "size", "colour"
        Which.
    explicit : bool
        They were asked for by name: missing data is then an error, else a reason why the set is partial.
    background : str
        Of the novel objects.
    """
    wanted = [c for e in sorted(experiments) for c in EXPERIMENTS.get(e, ())]
    pictures = [c for c in dict.fromkeys(shown(c) for c in wanted) if not c.startswith("experiment3")]
    parts: list[StimulusSet] = []
    reasons: list[str] = []
    if pictures:
        missing = _missing(data_root)
        if missing and explicit:
            raise missing
        reasons += [f"experiments 1 and 2 left out: {missing.message}"] if missing else []
        parts += [textured_silhouettes(Path(data_root), pictures)] if data_root and not missing else []
    if "3" in experiments:
        parts.append(_novel(data_root, background))
    parts += [matching_objects(match, background) for match in MATCHES if match in experiments]
    stimuli = tuple(s for part in parts for s in part)
    reasons += [why for part in parts for why in part.partial]
    expected = sum(part.expected for part in parts)
    if reasons:
        objects = len(novel_object.SHAPES) * len(novel_object.TEXTURES)
        conditions = {shown(c) for c in wanted}
        expected = sum(objects if c.startswith("experiment3") else PUBLISHED for c in conditions)
        expected += sum(part.expected for part in parts if part.name in MATCHES)
    return StimulusSet(NAME, stimuli, str(data_root or ""), expected, tuple(reasons))


# ------------------------------------------------------------------------------------------- experiments 1 and 2


def _missing(data_root: Path | None) -> UserError | None:
    for folder in ("stimuli", "silhouettes"):
        if data_root is None or not (Path(data_root) / "cue_conflict" / folder).is_dir():
            where = f"{data_root}/cue_conflict/{folder}" if data_root else f"cue_conflict/{folder} of a data root"
            fetch = {"stimuli": "cue_conflict", "silhouettes": "cue_conflict_silhouettes"}[folder]
            hint = f"get them with: cuebench fetch {fetch} --data-root DIR; or choose --set triplets.experiments=3"
            return UserError(f"there is no folder {where}", hint)
    return None


def textured_silhouettes(data_root: Path, conditions: Sequence[str]) -> StimulusSet:
    """Return every condition's picture of every image in conflict; neighbours are made from the same file."""
    images = folder_reader.read(data_root / "cue_conflict" / "stimuli")
    conflict = [s for s in images if s.shape != s.texture]
    masks = silhouettes(data_root, {s.shape_source: s for s in conflict})
    stimuli = [_picture(s, c, masks[s.shape_source]) for s in conflict for c in conditions]
    classes, known = {c for s in images for c in (s.shape, s.texture)}, label_map("in16").names
    # A set of other classes, or with a label map of its own, is not a part of the published one.
    published = classes <= set(known) and not images.targets
    partial: tuple[str, ...] = ()
    if published and len(conflict) != PUBLISHED:
        absent = [name for name in known if name not in {s.shape for s in conflict}]
        without = f", no shape of {', '.join(absent)}" if absent else ""
        partial = (f"{len(conflict):,} of {PUBLISHED:,} cue-conflict images{without}",)
    expected = (PUBLISHED if published else len(conflict)) * len(conditions)
    return StimulusSet(NAME, tuple(stimuli), str(data_root), expected, partial)


def silhouettes(data_root: Path, images: Mapping[str, Stimulus]) -> dict[str, str]:
    """Return shape source → ``PATH@HASH`` of its silhouette; all problems are reported at once.

    Parameters
    ----------
    data_root : Path
        Holds ``cue_conflict/silhouettes/<class>/<source>.png``.
    images : mapping of shape source to Stimulus
        An image with that shape: its silhouette must be as large.
    """
    paths = {source: f"cue_conflict/silhouettes/{image.shape}/{source}.png" for source, image in images.items()}
    files = {source: data_root / path for source, path in paths.items() if (data_root / path).is_file()}
    problems = [f"{path}: the file is missing" for source, path in paths.items() if source not in files]
    checks = dict(zip(files, for_each_file(mask_problem, files.values())))
    problems += [f"{paths[source]}: {problem}" for source, (problem, _, _) in checks.items() if problem]
    for source, (_, width, height) in checks.items():
        size = images[source].width, images[source].height
        if (width, height) != size:
            problems.append(f"{paths[source]}: {width}×{height} pixels, its images have {size[0]}×{size[1]}")
    if problems:
        raise all_problems("silhouettes of the cue-conflict images", problems, "a silhouette is black on white")
    return {source: f"{paths[source]}@{hash_file(file).sha256[:12]}" for source, file in files.items()}


def mask_problem(path: Path) -> tuple[str, int, int]:
    """Say why a file is not a black-on-white mask (empty: it is one), with its width and height."""
    grey = np.asarray(read_rgb(path).convert("L"))
    soft = float(((grey > 0) & (grey < 255)).mean())
    black = float((grey == 0).mean())
    problem = ""
    if soft > MOST_GREY:
        problem = f"not binary: {soft:.0%} of its pixels are neither black nor white"
    elif black in (0.0, 1.0):
        problem = "shows no object: " + ("no pixel is black" if black == 0 else "all pixels are black")
    return problem, grey.shape[1], grey.shape[0]


def _picture(image: Stimulus, condition: str, mask: str) -> Stimulus:
    kind, _, rest = condition.partition("/")
    options: dict[str, str] = {"mask": f"black:{mask}"}
    if kind == "experiment1":
        options["alpha"] = rest.removeprefix("alpha=")
    else:
        size, place = rest.split("/")
        # As published: Pillow's bicubic filter on the object with its opacity.
        options |= {"size": size.removeprefix("size="), "position": PLACES[place], "resample": "bicubic"}
    ident = f"{image.id}/{condition}"
    untouched = options.get("alpha") == "0.0"
    return replace(
        image,
        id=ident,
        path=f"cue_conflict/stimuli/{image.path}",
        condition=condition,
        recipe="" if untouched else f"composite?{urlencode(options)}",
        seed=novel_object.seed_of(ident) if options.get("position") == "random" else 0,
    )


# ------------------------------------------------------------------------------------------- experiment 3


def _novel(data_root: Path | None, background: str) -> StimulusSet:
    manifest = Path(data_root) / "novel_objects" / "manifest.parquet" if data_root else None
    if manifest is not None and manifest.is_file():
        objects = read_manifest(manifest)
        stimuli = tuple(replace(s, path=f"novel_objects/{s.path}") for s in objects)
        return replace(objects, stimuli=stimuli, root=str(data_root))
    return novel_objects(novel_object.SHAPES, novel_object.TEXTURES, background=background)


def novel_objects(
    shapes: Sequence[str],
    textures: Sequence[str],
    *,
    conditions: Sequence[str] = EXPERIMENTS["3"],
    background: str = "white",
    series: int = 0,
) -> StimulusSet:
    """Return every shape in every texture, drawn when it is shown; no file is needed.

    Parameters
    ----------
    shapes, textures : sequence of str
        Names; the published number of each is 16.
    conditions : sequence of str
        Of experiment 3.
    background : str
        ``white``, ``grey`` or ``noise``.
    series : int
        Another number is another instance of every texture, and other patches.
    """
    stimuli = []
    for condition in dict.fromkeys(shown(c) for c in conditions):
        size, place = condition.removeprefix("experiment3/size=").split("/")
        for shape in shapes:
            for texture in textures:
                ident = f"{shape}-{texture}/{condition}"
                options = {"size": size, "position": PLACES[place], "background": background, "series": series}
                recipe, seed = novel_object.recipe(shape, texture, **options), novel_object.seed_of(ident, series)
                stimuli.append(_drawn(ident, shape, texture, f"{texture}.{series}", condition, recipe, seed))
    return StimulusSet(NAME, tuple(stimuli), "", len(stimuli))


def _drawn(ident: str, shape: str, other: str, source: str, condition: str, recipe: str, seed: int) -> Stimulus:
    """Return an object that is drawn when it is shown; ``other`` is what it has besides its shape."""
    return Stimulus(
        ident,
        width=novel_object.PIXELS,
        height=novel_object.PIXELS,
        shape=shape,
        texture=other,
        shape_source=shape,
        texture_source=source,
        condition=condition,
        recipe=recipe,
        seed=seed,
    )


# ------------------------------------------------------------------------------------------- size and colour matches


def matching_objects(match: str, background: str = "white") -> StimulusSet:
    """Return novel objects whose triplets oppose shape to size or to colour, drawn when they are shown.

    A match shares one thing with its anchor and no other. Colours: every shape in every plain colour, all of one size.
    Sizes: every shape in every size, each with a texture that neither the same shape in another size nor another shape
    of the same size has. The size or colour stands where the texture source of other experiments stands.

    Parameters
    ----------
    match : {"size", "colour"}
        What shape is opposed to.
    background : str
        ``white``, ``grey`` or ``noise``.
    """
    stimuli = []
    for condition in MATCHES[match]:
        place = PLACES[condition.rpartition("/")[2]]
        for number, shape in enumerate(novel_object.SHAPES):
            for step, other in enumerate(MATCH_SIZES if match == "size" else novel_object.COLOURS):
                texture = novel_object.TEXTURES[(number + 3 * step) % len(novel_object.TEXTURES)]
                name, size, fill = (
                    (f"{other:g}", other, texture)
                    if match == "size"
                    else (str(other), COLOURED_SIZE, novel_object.COLOURS[str(other)])
                )
                ident = f"{shape}-{name}/{condition}"
                recipe = novel_object.recipe(shape, fill, size=size, position=place, background=background)
                stimuli.append(_drawn(ident, shape, name, name, condition, recipe, novel_object.seed_of(ident)))
    return StimulusSet(match, tuple(stimuli), "", len(stimuli))
