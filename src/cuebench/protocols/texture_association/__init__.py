"""Texture association (Hoak et al.): which textures a model ties to which classes, and what that does to real images.

Textures alone give the association matrix (TAV). With it every labelled photograph gets the texture that the model's
own answer resembles most (TID). Then: is the model better on the photographs that show their class's usual texture,
and do natural adversarial images show the texture of what they are mistaken for?
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cuebench.labels import LabelSpace
from cuebench.protocols.base import Protocol, Result, ScoreOptions, View, partial_notes
from cuebench.protocols.texture_association.measure import ADVERSARIAL, CLEAN, TEXTURE, Measured, measure
from cuebench.protocols.texture_association.scores import Row, rows
from cuebench.protocols.texture_association.tables import tables
from cuebench.responses.table import Responses
from cuebench.stimuli.readers import image_folder, texture_folder
from cuebench.stimuli.sources.texture import recipe
from cuebench.stimuli.textures import names
from cuebench.types import Citation, Reference, Score, Stimulus, StimulusSet

NAME, VERSION = "texture_association", 1
FOLDERS = {"textures": 0, "ptd": 0, "dtd": 5640}
"""Where textures are looked for, in this order, and how many the complete set has (0: it says so itself)."""
PHOTOGRAPHS = {CLEAN: ("imagenet_val", 50_000), ADVERSARIAL: ("imagenet_a", 7_500)}
VARIANTS = 100
"""Procedural pictures of each texture, where no folder of textures is found."""


def read(data_root: Path) -> StimulusSet:
    """Read textures, clean photographs and natural adversarial images, as far as they are there.

    Textures: ``textures``, ``ptd`` or ``dtd`` below the data root, the first that is there; else procedural ones, for
    which no file is needed. Photographs: ``imagenet_val`` and ``imagenet_a``, each optional.
    """
    root = Path(data_root)
    parts = [_textures(root)]
    for part, (folder, expected) in PHOTOGRAPHS.items():
        if (root / folder).is_dir():
            parts.append(_placed(image_folder.read(root / folder, expected=expected), root, part, folder))
    stimuli = tuple(s for p in parts for s in p)
    partial = tuple(f"{p.name}: {why}" for p in parts for why in p.partial)
    return StimulusSet(f"{NAME} ({' + '.join(p.name for p in parts)})", stimuli, str(root), 0, partial)


def _textures(root: Path) -> StimulusSet:
    for folder, expected in FOLDERS.items():
        if (root / folder).is_dir():
            return _placed(texture_folder.read(root / folder, expected=expected), root, TEXTURE, folder)
    return procedural()


def drawn() -> StimulusSet:
    """Return what can be shown without any file: procedural textures."""
    found = procedural()
    return replace(found, name=f"{NAME} ({found.name})")


def procedural(variants: int = VARIANTS) -> StimulusSet:
    """Return the textures that cuebench draws itself, without files; every prefix of a class is the same set."""
    stimuli = [
        Stimulus(f"texture/{name}_{i:04d}", texture=name, texture_source=f"{name}_{i:04d}", recipe=recipe(name), seed=i)
        for name in names()
        for i in range(variants)
    ]
    return StimulusSet("procedural textures", tuple(replace(s, condition=TEXTURE) for s in stimuli))


def _placed(found: StimulusSet, root: Path, part: str, name: str) -> StimulusSet:
    """Make paths relative to the data root, ids unique over the parts, and say what part a stimulus belongs to."""
    place = Path(found.root).relative_to(root)
    moved = [replace(s, id=f"{part}/{s.id}", path=(place / s.path).as_posix(), condition=part) for s in found]
    return replace(found, name=name, stimuli=tuple(moved), root=str(root))


def check(labels: LabelSpace, stimuli: StimulusSet) -> list[str]:
    """Say which labels of the photographs are no class of the observer."""
    missing = [s.label for s in stimuli if s.label and labels.find(s.label) is None]
    unknown = sorted(set(missing))
    if not unknown:
        return []
    return [f"{len(unknown):,} labels are not in it ({', '.join(unknown[:3])} …; {len(missing):,} photographs)"]


def score(responses: Sequence[Responses], options: ScoreOptions) -> Result:
    """Score every observer; rows come in the order of the observers, then textures, photographs, adversarial images."""
    everyone = [measure(r, options.seed) for r in responses]
    return Result([_score(m, row) for m in everyone for row in rows(m, options)], tables(everyone))


def _score(found: Measured, row: Row) -> Score:
    stimuli = found.responses.stimuli
    partial = partial_notes(stimuli.partial)
    kind = "shuffles" if row.condition.endswith("shuffled") else row.interval.kind
    return Score(
        protocol=NAME,
        protocol_version=VERSION,
        observer=found.responses.observer,
        condition=row.condition,
        metric=row.metric,
        value=row.value,
        ci_low=float(row.interval.low),
        ci_high=float(row.interval.high),
        ci_kind=kind,
        n=row.n,
        n_excluded=row.excluded,
        note="; ".join(filter(None, [row.note, *partial, *found.responses.notes])),
    )


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
    views=(View("weights", lambda own: own),),
    score=score,
    check=check,
    metrics=(
        "texture_association",
        "texture_confidence",
        "texturedness",
        "texture_dominance",
        "texture_agreement",
        "accuracy",
    ),
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
