"""The texture of one image, as a model sees it: what it resembles, what that is tied to, whether it misleads.

>>> import cuebench as cb
>>> found = cb.texture_of("photo.jpg", "lite:efficientnet_lite0", "runs/textures")  # doctest: +SKIP
>>> found.texture, found.texturedness, found.prediction  # doctest: +SKIP
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cuebench.arrays import Array
from cuebench.errors import UserError
from cuebench.labels import LabelSpace, label_space, softmax
from cuebench.metrics.texture_association import TAV
from cuebench.observers.base import Batch, LoadOptions, Observer
from cuebench.types import Stimulus

if TYPE_CHECKING:
    from PIL.Image import Image

_SURE = 0.5
"""A cosine below this is a poor likeness: the texture is named, but said to be weak."""


class Tie(NamedTuple):
    """A name and a number: a texture and its similarity, or a class and its association or probability."""

    name: str
    value: float


@dataclass(frozen=True)
class Association:
    """The association matrix of one model, with the names of its rows and columns.

    Parameters
    ----------
    tav : array k × m
        From ``metrics.texture_association.texture_association``.
    textures : tuple of str
        Names of the rows.
    labels : LabelSpace
        The classes, in the order of the columns.
    dominant : mapping of str to str
        Class → the usual texture of clean images that are answered with it; classes without one use the texture that is
        most associated with them.
    """

    tav: TAV
    textures: tuple[str, ...]
    labels: LabelSpace
    dominant: dict[str, str]

    def __post_init__(self) -> None:
        if self.tav.shape != (len(self.textures), len(self.labels)):
            raise UserError(
                f"a TAV of shape {self.tav.shape} does not fit {len(self.textures)} textures and "
                f"{len(self.labels)} classes"
            )

    def usual(self, label: str) -> str:
        """Return the usual texture of a class, empty where it has none."""
        if label in self.dominant:
            return self.dominant[label]
        column = self.tav[:, self.labels.names.index(label)]
        return self.textures[int(column.argmax())] if column.max(initial=0) > 0 else ""


@dataclass(frozen=True)
class TextureOf:
    """What a model makes of one image.

    ``verdict`` says in words whether texture explains the answer; ``explains_error`` is None where no label is known or
    the answer is right.
    """

    observer: str
    texture: str
    texturedness: float
    likeness: tuple[Tie, ...]
    classes: tuple[Tie, ...]
    predictions: tuple[Tie, ...]
    label: str
    explains_error: bool | None
    verdict: str

    @property
    def prediction(self) -> str:
        """The top-1 class."""
        return self.predictions[0].name

    @property
    def confidence(self) -> float:
        """The softmax of the top-1 class."""
        return self.predictions[0].value


def texture_of(
    image: str | Path | Array | Image,
    observer: str | Observer,
    tav: Association | str | Path,
    *,
    label: str = "",
    top: int = 5,
) -> TextureOf:
    """Find the texture that a model's answer to an image resembles most, and what it is tied to.

    Parameters
    ----------
    image : path, uint8 array H×W×3, or PIL image
        The image, before any preprocessing.
    observer : str or Observer
        A spec such as ``"lite:efficientnet_lite0"``, or an object from ``cuebench.wrap``.
    tav : Association or path
        The matrix of this model, or a run folder of ``texture_association`` that holds it.
    label : str
        The true class (name or id), where it is known: then an error is explained, or not.
    top : int
        How many textures, ties and predictions are listed.

    Returns
    -------
    TextureOf
    """
    if top < 1:
        raise UserError(f"top is {top}", "how many textures, ties and predictions to list: 1 or more")
    model = one_model(observer)
    association = tav if isinstance(tav, Association) else _association_in(tav, model)
    space = model.labels
    if space is None or len(space) != len(association.labels) or space.names != association.labels.names:
        raise UserError(
            f"the TAV is of classes {association.labels.name!r} ({len(association.labels)}), {model.name} answers in "
            f"{space.name + f' ({len(space)})' if space else 'no label space'}",
            "a TAV belongs to one model: make it with cuebench run -p texture_association -o …",
        )
    probabilities = softmax(_logits(model, _opened(image)))
    return _explained(model.name, probabilities, association, _known(space, label), top)


def _explained(name: str, p: Array, association: Association, label: str, top: int) -> TextureOf:
    similar = _cosines(p, association.tav)
    ranked = [Tie(association.textures[i], float(similar[i])) for i in _largest(similar, top)]
    best = ranked[0] if ranked and ranked[0].value > 0 else Tie("", 0.0)
    row = association.tav[association.textures.index(best.name)] if best.name else np.zeros(len(p))
    names = association.labels.names
    classes = tuple(Tie(names[i], float(row[i])) for i in _largest(row, top) if row[i] > 0)
    predictions = tuple(Tie(names[i], float(p[i])) for i in _largest(p, top))
    explains, verdict = _verdict(best, predictions[0].name, label, association)
    return TextureOf(name, best.name, best.value, tuple(ranked), classes, predictions, label, explains, verdict)


def _cosines(p: Array, tav: TAV) -> Array:
    """Return cos(p, TAV_i) for every texture, 0 for a texture without associations."""
    norms = np.linalg.norm(tav, axis=1) * np.linalg.norm(p)
    return np.divide(tav @ p, norms, out=np.zeros(len(tav)), where=norms > 0)


def _verdict(best: Tie, prediction: str, label: str, association: Association) -> tuple[bool | None, str]:
    """Say whether the texture found is that of the prediction, of the label, of both or of neither."""
    if not best.name:
        return None, "the answer resembles that to no texture"
    weak = "" if best.value >= _SURE else f"; the likeness is weak (cosine {best.value:.2f})"
    of_prediction, of_label = association.usual(prediction), association.usual(label) if label else ""
    if not label:
        is_usual = best.name == of_prediction
        return None, f"{best.name!r} is {'' if is_usual else 'not '}the usual texture of {prediction!r}{weak}"
    if prediction == label:
        return None, f"the answer is right; usual texture of {label!r}: {of_label or 'none'}{weak}"
    if best.name == of_prediction != of_label:
        why = f"texture explains the error: {best.name!r} is the usual texture of {prediction!r}, not of {label!r}"
        return True, f"{why} ({of_label or 'which has none'}){weak}"
    if best.name == of_prediction:
        return (
            False,
            f"{best.name!r} is the usual texture of both {prediction!r} and {label!r}: it cannot tell them apart",
        )
    return (
        False,
        f"texture does not explain the error: the usual texture of {prediction!r} is {of_prediction or 'none'}",
    )


def association_of(run: str | Path, observer: str) -> Association:
    """Read the association matrix of an observer from a run folder of ``texture_association``."""
    from cuebench.reports.run_data import of_observer, rows
    from cuebench.runs.record import RunRecord

    name, pairs = of_observer(rows(run, "tav"), observer)
    _, facts = of_observer(rows(run, "textures"), name)
    record = RunRecord.read(Path(run).expanduser())
    names = next(job.labels["names"] for job in record.jobs if job.observer == name and job.labels)
    textures = tuple(r["texture"] for r in facts)
    position = {t: i for i, t in enumerate(textures)}
    tav = np.zeros((len(textures), len(names)))
    for r in pairs:
        tav[position[r["texture"]], r["position"]] = r["tav"]
    return Association(tav, textures, label_space(names), _dominant(run, name))


def _association_in(run: str | Path, model: Observer) -> Association:
    """Read the matrix of this very model: another one of the same name has other ties."""
    known = answers_of(model, run)
    if known is None:
        raise UserError(
            f"{run} holds no answers of {model.name} with these weights and this preprocessing",
            "a TAV belongs to one model: make it with cuebench run -p texture_association -o …; a function without "
            "weights to hash needs wrap(…, fingerprint=…)",
        )
    return association_of(run, known)


def answers_of(model: Observer, run: str | Path) -> str | None:
    """Return under which name a run holds the answers of this very model to textures; None where it does not.

    Names prove nothing: weights and preprocessing are compared.
    """
    from cuebench.runs.record import RunRecord

    look = model.preprocess
    wanted = (model.fingerprint, None if look is None else json.loads(json.dumps(look.describe())))
    for job in RunRecord.read(Path(run).expanduser()).jobs:
        found = (job.key.get("weights"), job.key.get("preprocess"))
        if job.protocol == "texture_association" and not job.baseline_of and found == wanted:
            return job.observer
    return None


def _dominant(run: str | Path, observer: str) -> dict[str, str]:
    from cuebench.reports.run_data import rows

    if not (Path(run).expanduser() / "tables" / "texture_association.groups.parquet").is_file():
        return {}
    usual = (r for r in rows(run, "groups") if r["by"] == "prediction" and r["dominant"])
    return {r["label"]: r["texture"] for r in usual if r["observer"] == observer}


def one_model(observer: str | Observer) -> Observer:
    """Load a model, or take it as it is; it must be one, and have logits."""
    from cuebench.observers.load import load

    found = load(observer, LoadOptions()) if isinstance(observer, str) else [observer]
    if len(found) != 1 or "logits" not in found[0].capabilities:
        raise UserError(f"{observer} does not stand for one model with logits", "for example: lite:efficientnet_lite0")
    return found[0]


def _opened(image: str | Path | Array | Image) -> Image:
    from PIL import Image as pillow

    if isinstance(image, (str, Path)):
        from cuebench.stimuli.render import decode

        path = Path(image).expanduser().absolute()
        return decode(path.parent, Stimulus(path.name, path.name))
    if isinstance(image, pillow.Image):
        return image.convert("RGB")
    pixels = np.asarray(image)
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3:
        raise UserError(f"an image of {pixels.dtype} and shape {pixels.shape}", "give uint8, height × width × 3")
    return pillow.fromarray(pixels)


def _logits(model: Observer, image: Image) -> Array:
    batch = Batch([Stimulus("image")])
    if model.preprocess is not None:
        batch = Batch([Stimulus("image")], model.preprocess.geometry.apply(image)[None])
    return np.asarray(model.respond(batch, ["logits"])["logits"][0], np.float64)


def _known(space: LabelSpace, label: str) -> str:
    if not label:
        return ""
    position = space.find(label)
    if position is None:
        raise UserError(f"the model has no class {label!r}", "give a class name, an id or leave it out")
    return space.names[position]


def _largest(values: Array, number: int) -> list[int]:
    return [int(i) for i in np.argsort(-values, kind="stable")[:number]]
