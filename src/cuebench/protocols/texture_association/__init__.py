"""Texture association (Hoak et al.): the textures that a model associates with classes, and how they affect answers.

Pictures of textures give the association matrix (TAV). With it every labelled photograph gets the texture that the
model's answer resembles most (TID). Then: is the model better on photographs that show the usual texture of their
class, and do natural adversarial images show the texture of the class that they are mistaken for?
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from cuebench.labels import LabelSpace
from cuebench.options import Option
from cuebench.protocols.base import ByObserver, Protocol, ScoreOptions, View, joined
from cuebench.protocols.classes import with_classes
from cuebench.protocols.texture_association.layers import LAYERS, add_layers
from cuebench.protocols.texture_association.measure import (
    ADVERSARIAL,
    CLEAN,
    TEXTURE,
    contributions,
    measure,
    trial_rows,
)
from cuebench.protocols.texture_association.scores import Scorer
from cuebench.protocols.texture_association.tables import TABLES, tables
from cuebench.protocols.trials import TrialTable
from cuebench.responses.table import Responses
from cuebench.stimuli.drawing.textures import names
from cuebench.stimuli.readers import image_folder, texture_folder
from cuebench.stimuli.sources import colour
from cuebench.stimuli.sources.texture import recipe
from cuebench.tables.engine import Result
from cuebench.types import Citation, Headline, Reference, Stimulus, StimulusSet

NAME, VERSION = "texture_association", 2
OPTIONS: Mapping[str, Option] = {
    "of": Option(
        "textures",
        "what is associated with classes: textures, or colours (the authors' proposal: colours in place of textures)",
        choices=("textures", "colours"),
    ),
    "layers": Option((), "layers in which classes are read as well, or all; needs clean photographs"),
    "classes": Option(
        (), "only photographs of these classes, for a model that knows no others; textures are all shown"
    ),
}
COLOUR_NOTE = "colours in place of textures"
FOLDERS = {"textures": 0, "ptd": 0, "dtd": 5640}
"""Folders that may hold textures, best first → size of the complete set (0: unknown)."""
PHOTOGRAPHS = {CLEAN: ("imagenet_val", 50_000), ADVERSARIAL: ("imagenet_a", 7_500)}
VARIANTS = 100
"""Procedural pictures of each texture, where there is no folder of textures."""


def configure(protocol: Protocol, values: Mapping[str, Any]) -> Protocol:
    """Return the protocol with colours in place of textures, with classes read in layers, with some classes only."""
    if values["of"] == "colours":
        protocol = replace(protocol, read=partial(read, of="colours"), standalone=partial(drawn, of="colours"))
    if values["layers"]:
        protocol = replace(protocol, needs=(("logits", "features"),))
    return with_classes(protocol, values, fields=("label",))


def read(data_root: Path, of: str = "textures") -> StimulusSet:
    """Read textures, clean photographs and natural adversarial images, as far as they exist.

    Textures: ``textures``, ``ptd`` or ``dtd`` below the data root, the first that exists; else procedural ones, which
    need no file. Colours: ``colours``, else drawn ones. Photographs: ``imagenet_val`` and ``imagenet_a``, each
    optional.
    """
    root = Path(data_root)
    parts = [_textures(root, of)]
    for part, (folder, expected) in PHOTOGRAPHS.items():
        home = root / folder / "images" if (root / folder / "images").is_dir() else root / folder
        if home.is_dir():
            parts.append(_placed(image_folder.read(home, expected=expected), root, part, folder))
    stimuli = tuple(s for p in parts for s in p)
    partial = tuple(f"{p.name}: {why}" for p in parts for why in p.partial)
    notes = (COLOUR_NOTE,) if of == "colours" else ()
    return StimulusSet(f"{NAME} ({' + '.join(p.name for p in parts)})", stimuli, str(root), 0, partial, notes=notes)


def _textures(root: Path, of: str) -> StimulusSet:
    for folder, expected in (FOLDERS if of == "textures" else {"colours": 0}).items():
        if (root / folder).is_dir():
            return _placed(texture_folder.read(root / folder, expected=expected), root, TEXTURE, folder)
    return procedural() if of == "textures" else colours()


def drawn(of: str = "textures") -> StimulusSet:
    """Return the stimuli that need no file: procedural textures, or colours."""
    textures = procedural() if of == "textures" else colours()
    return replace(textures, name=f"{NAME} ({textures.name})")


def colours(variants: int = VARIANTS) -> StimulusSet:
    """Return patches of the basic colours, each variant another shade, without any texture."""
    stimuli = [
        Stimulus(
            f"colour/{name}_{i:04d}",
            texture=name,
            texture_source=f"{name}_{i:04d}",
            condition=TEXTURE,
            recipe=colour.recipe(name),
            seed=i,
        )
        for name in colour.COLOURS
        for i in range(variants)
    ]
    return StimulusSet("drawn colours", tuple(stimuli), notes=(COLOUR_NOTE,))


def procedural(variants: int = VARIANTS) -> StimulusSet:
    """Return the textures that cuebench draws; fewer variants are a part of more."""
    stimuli = [
        Stimulus(f"texture/{name}_{i:04d}", texture=name, texture_source=f"{name}_{i:04d}", recipe=recipe(name), seed=i)
        for name in names()
        for i in range(variants)
    ]
    return StimulusSet("procedural textures", tuple(replace(s, condition=TEXTURE) for s in stimuli))


def _placed(stimuli: StimulusSet, root: Path, part: str, name: str) -> StimulusSet:
    """Make paths relative to the data root and ids unique over the parts; the condition of a stimulus is its part."""
    place = Path(stimuli.root).relative_to(root)
    moved = [replace(s, id=f"{part}/{s.id}", path=(place / s.path).as_posix(), condition=part) for s in stimuli]
    return replace(stimuli, name=name, stimuli=tuple(moved), root=str(root))


def check(labels: LabelSpace, stimuli: StimulusSet) -> list[str]:
    """Report the labels of photographs that the observer has no class for."""
    missing = [s.label for s in stimuli if s.label and labels.find(s.label) is None]
    unknown = sorted(set(missing))
    if not unknown:
        return []
    return [f"{len(unknown):,} labels are not in it ({', '.join(unknown[:3])} …; {len(missing):,} photographs)"]


def score_one(responses: Responses, options: ScoreOptions) -> Result:
    """Score one observer: first textures, then photographs, then natural adversarial images."""
    measured = measure(responses, options.seed)
    result = Result(tables=tables(measured))
    Scorer(measured, options, result).add_all()
    if LAYERS in responses.columns:
        add_layers(result, measured, options)
    return result


score = ByObserver(score_one, joined)


_PAPER = "Err on the Side of Texture: PTD textures, ImageNet validation"
# Model: correlation and mean number of textures by label (Table I), by prediction (Table II), accuracy on ImageNet-A.
_PUBLISHED = {
    "convnext-base": (0.68, 2.59, 0.64, 1.98, 0.1704),
    "densenet121": (0.63, 3.60, 0.64, 2.62, 0.0052),
    "densenet169": (0.66, 3.39, 0.65, 2.42, 0.0096),
    "efficientnet-b0": (0.57, 3.42, 0.56, 2.68, 0.0271),
    "inception-v3": (0.68, 3.24, 0.67, 2.35, 0.0372),
    "resnet152": (0.64, 2.84, 0.59, 2.10, 0.0968),
    "resnet18": (0.61, 4.13, 0.63, 3.08, 0.0029),
    "resnet50": (0.63, 3.42, 0.60, 2.53, 0.0),
}
_WHERE = (
    ("texture_dominance", "label/correlation", "Table I"),
    ("texture_dominance", "label/textures", "Table I"),
    ("texture_dominance", "prediction/correlation", "Table II"),
    ("texture_dominance", "prediction/textures", "Table II"),
    ("accuracy", "adversarial", "Table III"),
)

PROTOCOL = Protocol(
    name=NAME,
    version=VERSION,
    title="Texture association: TAV, TID and dominant textures on real images",
    needs=(("logits",),),
    read=read,
    standalone=drawn,
    views=(View("weights", lambda preprocess: preprocess),),
    options=OPTIONS,
    configure=configure,
    layers=True,
    score=score,
    trials=TrialTable(trial_rows, value="confidence: probability of the first answer"),
    contributions=contributions,
    tables={name: {"observer": "string", **columns} for name, columns in TABLES.items()},
    check=check,
    metrics=(
        "texture_association",
        "texture_confidence",
        "texturedness",
        "texture_dominance",
        "texture_agreement",
        "accuracy",
    ),
    # The confidence needs textures only, which can always be drawn. The dominance gap needs photographs and would also
    # be misleading: a wrong answer changes the texture that is read from it, so a gap arises with permuted TAVs too.
    headline=Headline("texture_confidence", ("textures",), direction="texture"),
    reference=tuple(
        Reference(model, metric, condition, value, f"{_PAPER}, {table}")
        for model, values in _PUBLISHED.items()
        for (metric, condition, table), value in zip(_WHERE, values)
    ),
    citation=Citation(
        text="Hoak, Sheatsley & McDaniel. Err on the Side of Texture: Texture Bias on Real Data. SaTML 2025.",
        bibtex="""@inproceedings{hoak2025err,
  title     = {Err on the Side of Texture: Texture Bias on Real Data},
  author    = {Blaine Hoak and Ryan Sheatsley and Patrick McDaniel},
  booktitle = {IEEE Conference on Secure and Trustworthy Machine Learning},
  year      = {2025}
}""",
        url="https://github.com/blainehoak/err-on-textures",
        licence="textures drawn by cuebench: as cuebench; DTD, PTD, ImageNet and ImageNet-A: see their own terms",
    ),
)
