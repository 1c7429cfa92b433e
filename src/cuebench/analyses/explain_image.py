"""What ``cuebench texture-of`` does: measure the model on textures if that is still to do, then explain an image."""

from __future__ import annotations

import re
from pathlib import Path

from cuebench.analyses.texture_of import TextureOf, answers_of, one_model, texture_of
from cuebench.errors import UserError
from cuebench.files import make_folder
from cuebench.observers.base import Observer
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
    """Explain an image; the answers to textures are kept in ``run`` and asked for once for the same weights.

    Parameters
    ----------
    image : path
        An image file.
    observer : str
        A model, ``SOURCE:NAME``.
    run : path
        Run folder of ``texture_association``, or a folder for such runs, one for each model. In the latter, answers
        that are missing, or that were given with other weights, are collected first.
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
    model = one_model(observer)
    given = Path(run).expanduser()
    folder = _place(given, observer)
    if not _measured(folder, model):
        if folder == given:
            raise _not_of_this_model(given, observer)
        _measure(folder, model, data_root, on_event)
    found = texture_of(picture, model, folder, label=label, top=top)
    if draw is not None:
        from cuebench.reports.figures.texture_of import texture_of as card

        card(found, picture).save(draw)
    return found


def _place(folder: Path, observer: str) -> Path:
    """Return the run itself, or the model's own run in a folder of runs."""
    if (folder / "run.json").is_file():
        return folder
    return folder / re.sub(r"[^A-Za-z0-9._-]+", "_", observer).strip("_")[-80:]


def _not_of_this_model(folder: Path, observer: str) -> UserError:
    return UserError(
        f"{folder} is a run without finished answers of {observer} with these weights and this preprocessing",
        f"finish it: cuebench run -p {PROTOCOL} -o {observer} --out {folder}; or choose another --run",
    )


def _measured(folder: Path, model: Observer) -> bool:
    from cuebench.runs.record import RunRecord

    if not (folder / "run.json").is_file() or RunRecord.read(folder).status != "complete":
        return False
    return answers_of(model, folder) is not None


def _measure(folder: Path, model: Observer, data_root: str | Path | None, on_event: OnEvent | None) -> None:
    """Show textures to the model; answers of earlier weights stay in the folder, under their own key."""
    from cuebench.runs.evaluate import evaluate

    make_folder(folder)
    limit = 0 if data_root else DRAWN
    done = evaluate(
        model, PROTOCOL, data_root=data_root or folder, out=folder, resamples=200, limit=limit, on_event=on_event
    )
    if done.failures:
        raise UserError(f"{model.name} could not be measured on textures: {done.failures[0]}")
