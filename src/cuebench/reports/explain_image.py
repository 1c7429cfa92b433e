"""What ``cuebench texture-of`` does: measure the model on textures if that is still to do, then explain an image."""

from __future__ import annotations

import re
from pathlib import Path

from cuebench.errors import UserError
from cuebench.reports.texture_of import TextureOf, texture_of
from cuebench.responses.events import OnEvent
from cuebench.stimuli.render import decode
from cuebench.types import Stimulus

PROTOCOL = "texture_association"
DRAWN = 1500
"""Pictures of textures that are drawn where there are none: about twenty of each, enough to explain an image."""


def explain_image(
    image: str | Path,
    observer: str,
    *,
    run: str | Path,
    data_root: str | Path | None = None,
    label: str = "",
    draw: str | Path | None = None,
    top: int = 5,
    on_event: OnEvent | None = None,
) -> TextureOf:
    """Explain an image; the answers to textures are kept in ``run`` and asked for only once.

    Parameters
    ----------
    image : path
        An image file.
    observer : str
        A model, ``SOURCE:NAME``.
    run : path
        Run folder of ``texture_association``, or a folder for such runs, one for each model. Where there are no answers
        of this model, they are collected first.
    data_root : path, optional
        Where textures and photographs lie; default: the folder of the run, in which there are none, so that textures
        are drawn.
    label : str
        The true class, where it is known.
    draw : path, optional
        Write a card, ``.png`` or ``.svg``.
    top : int
        How many textures, ties and predictions are listed.
    on_event : callable, optional
        Told of progress.
    """
    path = Path(image).expanduser().absolute()
    if not path.is_file():
        raise UserError(f"no image {path}", "give the path of an image file")
    picture = decode(path.parent, Stimulus(path.name, path.name))
    folder = _place(Path(run).expanduser(), observer)
    if not _measured(folder, observer):
        _measure(folder, observer, data_root, on_event)
    found = texture_of(picture, observer, folder, label=label, top=top)
    if draw is not None:
        from cuebench.reports.figures.texture_of import texture_of as card

        card(found, picture).save(draw)
    return found


def _place(folder: Path, observer: str) -> Path:
    """Return the run itself, or the model's own run in a folder of runs."""
    if (folder / "run.json").is_file():
        return folder
    return folder / re.sub(r"[^A-Za-z0-9._-]+", "_", observer).strip("_")[-80:]


def _measured(folder: Path, observer: str) -> bool:
    from cuebench.runs.record import RunRecord

    if not (folder / "run.json").is_file():
        return False
    record = RunRecord.read(folder)
    there = any(job.protocol == PROTOCOL and observer in (job.spec, job.observer) for job in record.jobs)
    return record.status == "complete" and there


def _measure(folder: Path, observer: str, data_root: str | Path | None, on_event: OnEvent | None) -> None:
    from cuebench.runs.evaluate import evaluate

    if (folder / "run.json").is_file():
        raise UserError(
            f"{folder} is a run without finished answers of {observer}",
            f"finish it: cuebench run -p {PROTOCOL} -o {observer} --out {folder}; or choose another --run",
        )
    folder.mkdir(parents=True, exist_ok=True)
    limit = 0 if data_root else DRAWN
    done = evaluate(
        observer, PROTOCOL, data_root=data_root or folder, out=folder, resamples=200, limit=limit, on_event=on_event
    )
    if done.failures:
        raise UserError(f"{observer} could not be measured on textures: {done.failures[0]}")
