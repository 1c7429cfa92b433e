"""The texture of one image for one model: what its answer resembles, and whether texture explains an error.

>>> import cuebench as cb
>>> result = cb.texture_of("photo.jpg", "lite:efficientnet_lite0", "runs/textures")  # doctest: +SKIP
>>> result.texture, result.texturedness, result.prediction  # doctest: +SKIP
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cuebench.arrays import Array
from cuebench.errors import UserError, did_you_mean, printable
from cuebench.labels import LabelSpace, are_probabilities, label_space, logits_of, softmax
from cuebench.labels.decisions import first_highest
from cuebench.metrics.texture_association import TAV
from cuebench.observers.base import Batch, LoadOptions, Observer
from cuebench.types import Stimulus

if TYPE_CHECKING:
    from PIL.Image import Image

    from cuebench.runs.record import RunRecord
    from cuebench.runs.results import Row

PROTOCOL = "texture_association"
WEAK = 0.5
"""Below this cosine the verdict says that the resemblance is weak."""
NOTHING = 0.1
"""Below this cosine no texture is named: the answer has next to nothing in common with the answers to any texture."""


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
        Class → the usual texture of clean images that are answered with it. Classes without one use the texture that
        is most associated with them.
    source : str
        Which set of textures it was measured on.
    """

    tav: TAV
    textures: tuple[str, ...]
    labels: LabelSpace
    dominant: dict[str, str]
    source: str = ""

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
        return self.textures[int(first_highest(column))] if column.max(initial=0) > 0 else ""


@dataclass(frozen=True)
class TextureOf:
    """The texture of one image for one model.

    Parameters
    ----------
    observer : str
        Name of the model.
    texture, texturedness : str, float
        The texture whose associations the answer resembles most, and the cosine. Empty where the cosine is below .1:
        no texture resembles this; the nearest stands first in ``likeness``.
    likeness, classes, predictions : tuples of Tie
        Textures by cosine, classes by their association with the texture, classes by probability; largest first.
    label : str
        The true class; empty: unknown.
    explains_error : bool or None
        Whether texture explains the error; None where no label is known or the answer is right.
    verdict : str
        The same in words.
    textures_from : str
        The set of textures that the model was measured on.
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
    textures_from: str = ""

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
    """Find the texture that a model's answer to an image resembles most, and the classes associated with it.

    Parameters
    ----------
    image : path, uint8 array H×W×3, or PIL image
        The image, before any preprocessing.
    observer : str or Observer
        A spec such as ``"lite:efficientnet_lite0"``, or an object from ``cuebench.wrap``.
    tav : Association or path
        The matrix of this model, or a run folder of ``texture_association`` that holds it.
    label : str
        The true class (name or id), where it is known: the verdict then says whether texture explains an error.
    top : int
        Number of textures, classes and predictions to list.

    Returns
    -------
    TextureOf
    """
    if top < 1:
        raise UserError(f"top is {top}", "give the number of textures, classes and predictions to list: 1 or more")
    model = single_model(observer)
    association = tav if isinstance(tav, Association) else _association_in(tav, model)
    space = model.labels
    if space is None or space.names != association.labels.names:
        answers_in = f"{space.name} ({len(space)})" if space else "no label space"
        raise UserError(
            f"the TAV has the classes {association.labels.name!r} ({len(association.labels)}), {model.name} answers in "
            f"{answers_in}",
            "a TAV belongs to one model: make it with cuebench run -p texture_association -o …",
        )
    true_class = ""
    if label:
        position = space.find(label)
        if position is None:
            raise UserError(f"the model has no class {label!r}", "give a class name, an id or leave it out")
        true_class = space.names[position]
    probabilities = softmax(_logits(model, open_image(image)))
    return _result(model.name, probabilities, association, true_class, top)


def _result(observer: str, probabilities: Array, association: Association, label: str, top: int) -> TextureOf:
    cosines = _cosines(probabilities, association.tav)
    likeness = tuple(Tie(association.textures[i], float(cosines[i])) for i in _largest(cosines.round(12), top))
    nearest = likeness[0] if likeness else Tie("", 0.0)
    best = nearest if nearest.value >= NOTHING else Tie("", nearest.value)
    row = association.tav[association.textures.index(best.name)] if best.name else np.zeros(len(probabilities))
    names = association.labels.names
    predictions = tuple(Tie(names[i], float(probabilities[i])) for i in _largest(probabilities, top))
    explains, verdict = _verdict(best, nearest, predictions[0].name, label, association)
    return TextureOf(
        observer=observer,
        texture=best.name,
        texturedness=best.value,
        likeness=likeness,
        classes=tuple(Tie(names[i], float(row[i])) for i in _largest(row, top) if row[i] > 0),
        predictions=predictions,
        label=label,
        explains_error=explains,
        verdict=verdict,
        textures_from=association.source,
    )


def _cosines(p: Array, tav: TAV) -> Array:
    """Return cos(p, TAV_i) for every texture, 0 for a texture without associations."""
    norms = np.linalg.norm(tav, axis=1) * np.linalg.norm(p)
    return np.divide(tav @ p, norms, out=np.zeros(len(tav)), where=norms > 0)


def _verdict(best: Tie, nearest: Tie, prediction: str, label: str, association: Association) -> tuple[bool | None, str]:
    """Compare the texture with the usual textures of the prediction and of the label."""
    if not best.name:
        near = f" (the nearest, {nearest.name!r}, has a cosine of {nearest.value:.2f})" if nearest.value > 0 else ""
        wrong = label and prediction != label
        return (False if wrong else None), "no texture resembles this" + near
    weak = "" if best.value >= WEAK else f"; the resemblance is weak (cosine {best.value:.2f})"
    of_prediction, of_label = association.usual(prediction), association.usual(label) if label else ""
    if not label:
        is_usual = best.name == of_prediction
        return None, f"{best.name!r} is {'' if is_usual else 'not '}the usual texture of {prediction!r}{weak}"
    if prediction == label:
        return None, f"the answer is right; usual texture of {label!r}: {of_label or 'none'}{weak}"
    if best.name != of_prediction:
        usual = of_prediction or "none"
        return False, f"texture does not explain the error: the usual texture of {prediction!r} is {usual}"
    if of_prediction == of_label:
        return (
            False,
            f"{best.name!r} is the usual texture of both {prediction!r} and {label!r}: it cannot tell them apart",
        )
    reason = f"texture explains the error: {best.name!r} is the usual texture of {prediction!r}, not of {label!r}"
    return True, f"{reason} ({of_label or 'which has none'}){weak}"


# ------------------------------------------------------------------------------------------------------ run folders


def association_of(run: str | Path, observer: str) -> Association:
    """Read the association matrix of an observer from a run folder of ``texture_association``."""
    from cuebench.runs.record import RunRecord

    record = RunRecord.read(Path(run).expanduser())
    names = {j.observer: j.labels["names"] for j in record.jobs if j.protocol == PROTOCOL and j.labels}
    if observer not in names:
        raise did_you_mean("observer of this run", observer, names)
    score_again = f"score it again: cuebench score {run}"
    textures = tuple(r["texture"] for r in _table(run, "textures", observer))
    if not textures:
        raise UserError(f"{run} has no table of the textures of {observer}", score_again)
    row = {texture: i for i, texture in enumerate(textures)}
    tav = np.zeros((len(textures), len(names[observer])))
    for pair in _table(run, "tav", observer):
        texture, position, value = pair["texture"], pair["position"], pair["tav"]
        if texture not in row or position >= tav.shape[1] or not 0 <= value <= 1:
            what = f"the association of {printable(texture)[:80]!r}"
            raise UserError(f"{run}: {what} is not between 0 and 1, or fits no texture or class", score_again)
        tav[row[texture], position] = value
    if len(row) < len(textures):
        raise UserError(f"{run}: a texture occurs twice in the table of the textures of {observer}", score_again)
    groups = _table(run, "groups", observer)
    dominant = {g["label"]: g["texture"] for g in groups if g["by"] == "prediction" and g["dominant"]}
    return Association(tav, textures, label_space(names[observer]), dominant, _source(record, observer, len(textures)))


def _source(record: RunRecord, observer: str, textures: int) -> str:
    """Say which set of textures a run has shown to an observer."""
    from cuebench.protocols.texture_association import drawn

    manifest = next(j.stimuli for j in record.jobs if j.protocol == PROTOCOL and j.observer == observer)
    shown = record.stimuli[manifest]
    name = str(shown["set"]).removeprefix(f"{PROTOCOL} (").removesuffix(")")
    is_drawn = f"{PROTOCOL} ({name})" in {drawn().name, drawn("colours").name}
    root = "" if is_drawn or not record.arguments.get("data_root") else f" below {record.arguments['data_root']}"
    return f"{textures} textures, {shown['count']:,} pictures: {name}{root}"


def answers_of(model: Observer, run: str | Path) -> str | None:
    """Return the name under which a run holds the answers of this model to textures; None where it does not.

    Weights and preprocessing are compared, not names.
    """
    from cuebench.runs.record import RunRecord

    preprocess = model.preprocess
    wanted = (model.fingerprint, None if preprocess is None else json.loads(json.dumps(preprocess.describe())))
    for job in RunRecord.read(Path(run).expanduser()).jobs:
        shown = job.key.get("preprocess")
        if (
            shown is not None
        ):  # the versions of the drawings stand there too: they are of the pictures, not of the model
            shown = {name: value for name, value in shown.items() if name != "recipes"}
        recorded = (job.key.get("weights"), shown)
        if job.protocol == PROTOCOL and not job.baseline_of and recorded == wanted:
            return job.observer
    return None


def _association_in(run: str | Path, model: Observer) -> Association:
    """Read the matrix of this model; another model of the same name has other associations."""
    observer = answers_of(model, run)
    if observer is None:
        raise UserError(
            f"{run} holds no answers of {model.name} with these weights and this preprocessing",
            "a TAV belongs to one model: make it with cuebench run -p texture_association -o …; a function without "
            "weights to hash needs wrap(…, fingerprint=…)",
        )
    return association_of(run, observer)


def _table(run: str | Path, name: str, observer: str) -> list[Row]:
    """Return the rows of an observer in a table of the run; a table that was not written has none."""
    from cuebench.runs.results import read_table_rows

    path = Path(run).expanduser() / "tables" / f"{PROTOCOL}.{name}.parquet"
    rows = read_table_rows(run, PROTOCOL, name) if path.is_file() else []
    return [row for row in rows if row["observer"] == observer]


# -------------------------------------------------------------------------------------------------- model and image


def single_model(observer: str | Observer) -> Observer:
    """Load a model, or take it as it is; it must be a single one with logits."""
    from cuebench.observers.load import load

    observers = load(observer, LoadOptions()) if isinstance(observer, str) else [observer]
    if len(observers) != 1 or "logits" not in getattr(observers[0], "capabilities", ()):
        raise UserError(f"expected a single model with logits; got {observer}", "for example: lite:efficientnet_lite0")
    return observers[0]


def open_image(image: str | Path | Array | Image) -> Image:
    """Return an RGB image from a file, a uint8 array or a PIL image."""
    from PIL import Image as pillow

    if isinstance(image, (str, Path)):
        from cuebench.stimuli.render import decode

        path = Path(image).expanduser().absolute()
        if not path.is_file():
            raise UserError(f"there is no image {path}", "give the path of an image file")
        return decode(path.parent, Stimulus(path.name, path.name))
    if isinstance(image, pillow.Image):
        from cuebench.stimuli.image_files import as_rgb

        return as_rgb(image, "the image")
    pixels = np.asarray(image)
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3:
        raise UserError(
            f"expected an image of uint8, height × width × 3; got {pixels.dtype} of shape {pixels.shape}",
            "convert it first, for example np.asarray(PIL.Image.open(path).convert('RGB'))",
        )
    return pillow.fromarray(pixels)


def _logits(model: Observer, image: Image) -> Array:
    pixels = None if model.preprocess is None else model.preprocess.geometry.apply(image)[None]
    batch = Batch([Stimulus("image")], pixels)
    logits = np.asarray(model.respond(batch, ["logits"])["logits"][0], np.float64)
    return logits_of(logits) if are_probabilities(logits) else logits


def _largest(values: Array, number: int) -> list[int]:
    return [int(i) for i in np.argsort(-values, kind="stable")[:number]]
