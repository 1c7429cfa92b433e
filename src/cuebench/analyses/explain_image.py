"""Explain one image by its texture, after measuring the model on textures where that has not been done."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from cuebench.analyses.texture_of import PROTOCOL, TextureOf, answers_of, open_image, single_model, texture_of
from cuebench.errors import UserError
from cuebench.files import make_folder
from cuebench.observers.base import Observer
from cuebench.protocols.texture_association import FOLDERS, PHOTOGRAPHS
from cuebench.responses.events import OnEvent

DRAWN = 1500
"""Pictures of textures that are drawn where there are none: about twenty of each, enough to explain an image."""


def explain_image(
    image: str | Path,
    observer: str,
    *,
    run: str | Path,
    data_root: str | Path | None = None,
    label: str = "",
    top: int = 5,
    on_event: OnEvent | None = None,
) -> TextureOf:
    """Explain an image; the answers to textures are stored in ``run`` and collected once for the same weights.

    Parameters
    ----------
    image : path
        An image file.
    observer : str
        A model, ``SOURCE:NAME``.
    run : path
        Run folder of ``texture_association``, or a folder of such runs, one for each model and each set of textures.
        In the latter, answers that are missing, or that were given with other weights or to other pictures, are
        collected first.
    data_root : path, optional
        Folder of textures and photographs; default: none, so that textures are drawn. A run folder that was made with
        other data is refused.
    label : str
        The true class, where it is known.
    top : int
        Number of textures, classes and predictions to list.
    on_event : callable, optional
        Receives the events of the run, for a progress display.
    """
    picture = open_image(image)
    if data_root is not None and not Path(data_root).expanduser().is_dir():
        raise UserError(
            f"there is no folder {data_root}",
            "leave the data root out to draw textures, or name a folder that has them",
        )
    model = single_model(observer)
    folder = Path(run).expanduser()
    if (folder / "run.json").is_file():
        if not _is_measured(folder, model):
            raise UserError(
                f"{folder} is a run without finished answers of {observer} with these weights and this preprocessing",
                f"finish it: cuebench run -p {PROTOCOL} -o {observer} --out {folder}; or choose another --run",
            )
        _check_data(folder, data_root)
    else:
        name = re.sub(r"[^A-Za-z0-9._-]+", "_", observer).strip("_")[-80:]
        folder /= f"{name}--{_data_key(data_root)}"
        if not _is_measured(folder, model):
            _measure(folder, model, data_root, on_event)
    return texture_of(picture, model, folder, label=label, top=top)


def _data_key(data_root: str | Path | None) -> str:
    """Return a name for the data of a run: ``drawn``, or a hash of the place, names, sizes and times of its files."""
    if data_root is None:
        return "drawn"
    root = Path(data_root).expanduser().resolve()
    digest = hashlib.sha256(str(root).encode())
    for folder in (*FOLDERS, *(name for name, _ in PHOTOGRAPHS.values())):
        for path in sorted(p for p in (root / folder).rglob("*") if p.is_file()):
            facts = path.stat()
            digest.update(f"|{path.relative_to(root).as_posix()}|{facts.st_size}|{facts.st_mtime_ns}".encode())
    return digest.hexdigest()[:12]


def _check_data(folder: Path, data_root: str | Path | None) -> None:
    """Refuse a run that was made with other data than those that are named; without a name it says which it has."""
    from cuebench.runs.record import RunRecord

    if data_root is None:
        return
    recorded = RunRecord.read(folder).arguments.get("data_root")
    wanted = Path(data_root).expanduser().resolve()
    if not recorded or Path(recorded).expanduser().resolve() != wanted:
        made = f"with the data of {recorded}" if recorded else "with drawn textures"
        raise UserError(
            f"{folder} was made {made}, not with those of {data_root}",
            "leave --data-root out, or name a folder of runs or another run with --run",
        )


def _is_measured(folder: Path, model: Observer) -> bool:
    from cuebench.runs.record import RunRecord

    if not (folder / "run.json").is_file() or RunRecord.read(folder).status != "complete":
        return False
    return answers_of(model, folder) is not None


def _measure(folder: Path, model: Observer, data_root: str | Path | None, on_event: OnEvent | None) -> None:
    """Show textures to the model; answers of other weights stay in the folder, under their own key."""
    from cuebench.runs.evaluate import evaluate

    make_folder(folder)
    scores = evaluate(
        model,
        PROTOCOL,
        data_root=data_root or folder,
        out=folder,
        resamples=200,
        limit=0 if data_root else DRAWN,
        on_event=on_event,
    )
    if scores.failures:
        raise UserError(f"{model.name} could not be measured on textures: {scores.failures[0]}")
