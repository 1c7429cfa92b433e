"""Which images a study needs: drawn from the protocol's stimuli when the study is made; and images of pink noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from cuebench.errors import UserError, all_problems
from cuebench.options import parse
from cuebench.registry import protocols
from cuebench.runs.experiments import read_stimuli
from cuebench.stimuli.background import on_background
from cuebench.study.assign import balanced, generator, pool
from cuebench.study.design import Block, Design
from cuebench.study.types import StudyImage
from cuebench.types import Stimulus, StimulusSet


class Chosen(NamedTuple):
    """A stimulus of a study: how it is made, and its row without id, file and hash, which the file decides."""

    stimulus: Stimulus
    image: StudyImage


class Selection(NamedTuple):
    """The stimuli of a study, the folder that their files lie below, and how the set departs from the published one."""

    chosen: list[Chosen]
    root: str
    notes: tuple[str, ...]


def select(design: Design, data_root: str | Path | None, *, seed: int = 0, run: str | Path | None = None) -> Selection:
    """Choose the images of a study.

    Parameters
    ----------
    design : Design
        Says whose stimuli, which, and how many.
    data_root : path or None
        As for ``cuebench run``; None where the protocol draws its stimuli itself.
    seed : int
        Of the draw.
    run : path, optional
        Task ``words``: a run of ``texture_association`` on photographs. Its first observer's textures are the words
        that people are compared with (the published check of TID). Without it, pictures of textures are shown.

    Raises
    ------
    UserError
        There are too few images, for all blocks at once.
    """
    stimuli = _identified(design, data_root, run) if run else _read(design, data_root)
    rows = {s.id: Chosen(s, _row(s)) for s in stimuli if _wanted(design, s, by_run=bool(run))}
    images = [row.image for row in rows.values()]
    if not images:
        raise UserError(f"no stimulus of {design.protocol} fits the design {design.name}", "check [stimuli] where")
    roles: dict[str, StudyImage] = {}
    problems: list[str] = []
    for draw in (_draw_trials, _draw_examples):
        for block in design.blocks if not problems else ():  # examples are taken from the trials
            try:
                draw(design, block, images, seed, roles)
            except UserError as error:
                problems.append(f"block {block.name!r}: {error.message}")
    if design.check == "aligned":
        aligned = [i for i in images if i.shape == i.texture]
        roles |= {i.id: i for i in aligned}
        problems += [] if aligned else ["no image has shape and texture of one class: no attention check"]
    if problems:
        raise all_problems(f"study {design.name} on {len(images):,} images", problems, "fewer trials, or more data")
    chosen = [Chosen(rows[name].stimulus, image) for name, image in roles.items()]
    return Selection(chosen, stimuli.root, (*stimuli.partial, *stimuli.notes))


def pink_noise(design: Design, *, seed: int = 0) -> list[tuple[str, bytes]]:
    """Return the masks of a study: name and PNG of grey noise whose amplitudes fall as 1/f.

    The spectrum is made by the cue ``power_equalisation``, from white noise.
    """
    from cuebench.cues.power_equalisation import power_equalisation
    from cuebench.stimuli.png import QUICK, png_bytes

    masks = []
    for number in range(design.masks):
        side = design.mask_pixels
        white = generator(seed, "mask", number).integers(0, 256, (side, side), dtype="uint8")
        masks.append((f"mask_{number:03d}", png_bytes(power_equalisation(white), QUICK)))
    return masks


def _read(design: Design, data_root: str | Path | None) -> StimulusSet:
    protocol = protocols.get(design.protocol)
    values = parse(protocol.options, design.settings, f"protocol {protocol.name!r}")
    protocol = protocol.configured(values)
    return on_background(read_stimuli(protocol, data_root))


def _identified(design: Design, data_root: str | Path | None, run: str | Path) -> StimulusSet:
    """Return the photographs of a run with the textures that were identified in them as their words."""
    from cuebench.analyses.texture_judgements import identified

    stimuli = _read(design, data_root)
    words = {row.image: row.texture for row in identified(run)[1]}
    named = tuple(replace(s, texture=words[s.id]) for s in stimuli if s.id in words)
    if not named and data_root is None:
        raise UserError(
            f"the photographs of {run} are needed, and no folder was named",
            f"name the data root of that run: --data-root {_data_root_of(run)}",
        )
    if not named:
        raise UserError(f"the photographs of {run} are not below {data_root}", "name the data root of that run")
    return replace(stimuli, stimuli=named)


def _data_root_of(run: str | Path) -> str:
    """Return the data root that a run was made with, as its record has it."""
    from cuebench.runs.record import RunRecord

    return str(RunRecord.read(Path(run).expanduser()).arguments.get("data_root") or "DIR")


def _wanted(design: Design, stimulus: Stimulus, *, by_run: bool) -> bool:
    """Tell whether a stimulus belongs to the study; the photographs of a run are not subject to ``where``."""
    return by_run or all(str(getattr(stimulus, column, "")) in values for column, values in design.where.items())


def _row(s: Stimulus) -> StudyImage:
    cue = "" if bool(s.shape) == bool(s.texture) else "shape" if s.shape else "texture"
    return StudyImage(
        id=s.id,
        file="",
        sha256="",
        size=0,
        name=s.id,
        cue=cue,
        label=s.label,
        shape=s.shape,
        texture=s.texture,
        shape_source=s.shape_source,
        texture_source=s.texture_source,
        condition=s.condition,
    )


def draw(block: Block, images: Sequence[StudyImage], seed: int) -> list[StudyImage]:
    """Draw the trials of the first participant, and those of others, who get the surplus of other classes.

    Where images do not suffice it fails here, and not when a later participant comes.
    """
    classes = {getattr(image, block.balance) for image in images} if block.balance else set()
    people = max(len(classes), 1) if block.draw == "participant" else 1
    first, *_ = [
        balanced(images, block.count, block.balance, window=window, key=block.sample, seed=seed)
        for window in range(people)
    ]
    return first


def _draw_trials(
    design: Design, block: Block, images: Sequence[StudyImage], seed: int, roles: dict[str, StudyImage]
) -> None:
    """Give the images of a block their role; blocks that share images share them here as well."""
    available = pool(design, images, block)
    drawn = draw(block, available, seed)
    keep = drawn if block.draw == "study" and block.task != "same_kind" else available
    roles |= {image.id: image for image in keep}


def _draw_examples(
    design: Design, block: Block, images: Sequence[StudyImage], seed: int, roles: dict[str, StudyImage]
) -> None:
    """Set examples aside: images of each class that are no trials, or are taken out of the pool of trials."""
    column = block.truth or "shape"
    available = pool(design, images, block)
    classes = sorted({getattr(image, column) for image in available})
    wanted = max(block.familiarisation, -(-block.practice // max(len(classes), 1)))
    if not wanted:
        return
    fixed = block.draw == "study"
    free = [i for i in available if i.id not in roles or (not fixed and roles[i.id].role == "trial")]
    cue = block.task if block.task in ("shape", "texture") else ""
    for image in balanced(free, wanted * len(classes), column, key=f"{block.name} examples", seed=seed):
        roles[image.id] = replace(image, role="familiarisation", cue=cue)
    if not fixed:
        # What is left must still do for the trials.
        left = [i for i in available if roles[i.id].role == "trial"]
        draw(block, left, seed)
