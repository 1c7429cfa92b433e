"""The end of a recipe on the observer's device: cues of a whole batch, after files were decoded and cut on the CPU.

A recipe ``square?size=224&resize=256;contrast?level=0.3`` is split: the worker that decodes does what stands up to
``square`` and up to the last cue that takes arrays only, the device the rest. This needs pictures of one size, so a
recipe without ``square`` stays whole on the CPU; so does every recipe for an observer that resizes or crops such a
picture once more. Seeds are those of the stimuli. Pixels agree with the CPU's within ``CueInfo.device`` of each cue,
not bit by bit: the key of answers to such pictures says so (`marked`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

from cuebench.cues.by_name import call
from cuebench.errors import UserError
from cuebench.observers.preprocess import Geometry
from cuebench.stimuli.render import BLACK, FILE, SQUARE, STRETCH, Step, steps
from cuebench.types import Stimulus

MOST_VALUES = 1 << 24
"""Values (pixels × channels) that are worked on at a time: filters and spectra need up to 64 bytes for each."""
_HOST_OPTIONS = frozenset({"backend", "workers", "mask", "other"})
"""Options that concern the CPU, or other images."""


class Split(NamedTuple):
    """The two parts of a recipe, and the side of the square pictures between them; 0: the device has nothing to do."""

    cpu: str
    device: str = ""
    size: int = 0


@lru_cache(maxsize=4096)
def split(recipe: str, source: bool = False) -> Split:
    """Return what of a recipe the CPU does and what the device can do.

    Parameters
    ----------
    recipe : str
        See `cuebench.stimuli.render`.
    source : bool
        The first step is a source: the stimulus has no file.

    Examples
    --------
    >>> split("square?size=224&resize=256;contrast?level=0.3")
    Split(cpu='square?size=224&resize=256', device='contrast?level=0.3', size=224)
    >>> split("stretch?size=224;greyscale?alpha=1.0&weights=rec601").device
    'greyscale?alpha=1.0&weights=rec601'
    >>> split("contrast?level=0.3").device
    ''
    """
    texts, parsed = recipe.split(";"), list(steps(recipe, source=source)) if recipe else []
    first = len(parsed)
    while first and _runs_on_device(parsed[first - 1]):
        first -= 1
    squares = [step for step in parsed[:first] if step.name in (SQUARE, STRETCH)]
    if first == len(parsed) or not squares:
        return Split(recipe)
    return Split(";".join(texts[:first]), ";".join(texts[first:]), squares[-1].options("")["size"])


def _runs_on_device(step: Step) -> bool:
    if step.kind != "cue" or step.function.info.device is None:  # type: ignore[attr-defined]
        return False
    return not any(key in _HOST_OPTIONS or text.startswith((FILE, BLACK)) for key, text in step.texts.items())


@dataclass(frozen=True)
class BeforeDevice(Geometry):
    """A geometry whose pictures are those of `before_device`: the device makes the rest.

    It is not equal to the plain geometry of the same numbers, so that its pictures are decoded and kept apart.
    """

    @classmethod
    def of(cls, geometry: Geometry) -> BeforeDevice:
        """Return it for a geometry."""
        return cls(**{field: getattr(geometry, field) for field in geometry.__dataclass_fields__})


def device_part(stimulus: Stimulus, geometry: Geometry) -> Split:
    """Return the split of a stimulus for an observer; its second part is empty where the CPU must do everything."""
    parts = split(stimulus.recipe, not stimulus.path)
    return parts if parts.size and geometry.keeps((parts.size, parts.size)) else Split(stimulus.recipe)


def before_device(stimulus: Stimulus, geometry: Geometry) -> Stimulus:
    """Return the stimulus with the CPU's part of its recipe: what a worker must decode."""
    return replace(stimulus, recipe=device_part(stimulus, geometry).cpu)


def render_on_device(images: Any, stimuli: Iterable[Stimulus], geometry: Geometry) -> Any:
    """Do the device's part of the recipes.

    Parameters
    ----------
    images : torch.Tensor
        uint8 N×H×W×3 on any device: the pictures of `before_device`, one for each stimulus.
    stimuli : iterable of Stimulus
        With their whole recipes.
    geometry : Geometry
        Of the observer.

    Returns
    -------
    torch.Tensor
        uint8 N×H×W×3 on the same device; `images` is not changed.

    Raises
    ------
    UserError
        For a cue that cannot be applied; the message names the cue.
    """
    import torch

    groups: dict[str, list[tuple[int, Stimulus]]] = {}
    for place, stimulus in enumerate(stimuli):
        groups.setdefault(device_part(stimulus, geometry).device, []).append((place, stimulus))
    groups.pop("", None)
    result = images
    most = max(1, MOST_VALUES // max(1, images[0].numel())) if len(images) else 1
    for recipe, members in groups.items():
        for start in range(0, len(members), most):
            some = members[start : start + most]
            if len(some) == len(images):
                return _followed(recipe, images, [stimulus for _, stimulus in some])
            places = torch.tensor([place for place, _ in some], device=images.device)
            result = images.clone() if result is images else result
            result[places] = _followed(recipe, images[places], [stimulus for _, stimulus in some])
    return result


def _followed(recipe: str, images: Any, stimuli: list[Stimulus]) -> Any:
    for step in steps(recipe):
        options = step.options("")
        if step.function.info.random:  # type: ignore[attr-defined]
            options = {"rng": [stimulus.seed for stimulus in stimuli], **options}
        try:
            images = call(step.name, images, **options)
        except UserError as error:
            cue = f"cue {step.name!r}"
            message = error.message if error.message.startswith(cue) else f"{cue}: {error.message}"
            raise UserError(f"stimulus {stimuli[0].id!r}: {message}", error.hint) from error
    return images


def marked(versions: Mapping[str, str], stimuli: Iterable[Stimulus], geometry: Geometry, device: str) -> dict[str, str]:
    """Return the versions of cues for the key of stored answers, with the kind of device behind those made there.

    Parameters
    ----------
    versions : mapping of str to str
        From `cuebench.cues.versions.recipe_versions`.
    stimuli : iterable of Stimulus
        All that the observer is shown.
    geometry : Geometry
        Of the observer.
    device : str
        Kind of device, ``cuda``.
    """
    recipes = {(stimulus.recipe, not stimulus.path) for stimulus in stimuli if stimulus.recipe}
    parts = [split(*recipe) for recipe in recipes]
    fitting = [part for part in parts if part.size and geometry.keeps((part.size, part.size))]
    made = {step.name.rpartition(":")[2] for part in fitting for step in steps(part.device)}
    return {name: f"{version} on {device}" if name in made else version for name, version in versions.items()}
