"""Pure shape: are the objects of cue conflict recognised by their silhouette (global shape) or edges (local shape)?

160 silhouettes, black on white, and 160 edge images, ten of each of the 16 classes, without any texture (Geirhos et al.
2019). Kim et al. 2026 hold the class-wise results of cue conflict against these: ``cuebench validity agreement``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from cuebench.errors import NoStimuli, all_problems
from cuebench.labels import LabelMap, LabelSpace, coverage_problems, label_map, shown_only
from cuebench.metrics.recognition import METRIC, Answers
from cuebench.observers.preprocess import Preprocess
from cuebench.protocols.base import Protocol, View, by_engine
from cuebench.protocols.classes import CLASSES, with_classes
from cuebench.protocols.cue_conflict import PROTOCOL as CUE_CONFLICT
from cuebench.protocols.cue_conflict import TARGETS
from cuebench.statistics.ratios import Terms
from cuebench.stimuli.made import read_made
from cuebench.stimuli.readers import image_folder
from cuebench.tables.engine import Quantity, means
from cuebench.tables.trials import Trials
from cuebench.types import REMOVED, Headline, Stimulus, StimulusSet

NAME, VERSION = "pure_shape", 3
SETS: Mapping[str, tuple[str, ...]] = {
    "silhouettes": ("cue_conflict/silhouettes", "model_vs_human/stimuli/silhouette"),
    "edges": ("cue_conflict/edges", "model_vs_human/stimuli/edge"),
}
"""Set → the folders below the data root that it is looked for in; images lie in a folder for each class."""
EXPECTED = 160
"""Images of each set."""


# ---------------------------------------------------------------------------------------------------- stimuli


def read(data_root: Path) -> StimulusSet:
    """Read the silhouettes and the edge images below a data root; one of them is enough, and the set then says so."""
    folder_of_set = {name: _folder(data_root, folders) for name, folders in SETS.items()}
    if not any(folder_of_set.values()):
        places = "; ".join(f"{name}: {' or '.join(folders)}" for name, folders in SETS.items())
        raise NoStimuli(
            f"{data_root} has neither silhouettes nor edge images ({places})",
            f"cuebench fetch cue_conflict_silhouettes --data-root {data_root}",
            str(data_root / SETS["silhouettes"][0]),
        )
    stimuli: list[Stimulus] = []
    partial = [f"no {name}" for name, folder in folder_of_set.items() if folder is None]
    makers = [maker for folder in folder_of_set.values() if folder and (maker := _maker(data_root / folder))]
    for name, folder in folder_of_set.items():
        if folder is not None:
            pictures = image_folder.read(data_root / folder, expected=0 if makers else EXPECTED)
            partial += [f"{name}: {reason}" for reason in pictures.partial]
            stimuli += [_stimulus(s, name, folder) for s in pictures]
    notes = (f"made by `cuebench make {makers[0]}`, not the published images",) if makers else ()
    expected = 0 if makers else 2 * EXPECTED
    return _checked(StimulusSet(NAME, tuple(stimuli), str(data_root), expected, tuple(partial), TARGETS, notes))


def _maker(folder: Path) -> str:
    """Return who made a set, where cuebench did: how many pictures the published one has says nothing about it."""
    return str(read_made(folder.parent).get("maker", ""))


def _folder(data_root: Path, folders: Sequence[str]) -> str | None:
    return next((f for f in folders if (data_root / f).is_dir()), None)


def _stimulus(picture: Stimulus, name: str, folder: str) -> Stimulus:
    """Return a picture of a set; silhouette and edges of the same object share their source."""
    return replace(
        picture,
        id=f"{name}/{Path(picture.path).stem}",
        path=f"{folder}/{picture.path}",
        shape=picture.label,
        texture=REMOVED,
        shape_source=Path(picture.path).stem,
        condition=name,
    )


def _checked(stimuli: StimulusSet) -> StimulusSet:
    unknown = sorted({s.label for s in stimuli} - set(label_map(TARGETS).names))
    if unknown:
        raise all_problems(f"stimuli of {NAME}", [f"folder {c!r} is no class of {TARGETS}" for c in unknown])
    return stimuli


def check(labels: LabelSpace, stimuli: StimulusSet) -> list[str]:
    """Say which classes of the stimuli an observer with these labels cannot answer."""
    return shown_only(coverage_problems(_targets(stimuli).resolve(labels), [s.label for s in stimuli]))


def _targets(stimuli: StimulusSet) -> LabelMap:
    return label_map(stimuli.targets or TARGETS)


# ---------------------------------------------------------------------------------------------------- numbers


def correct(trials: Trials) -> Terms:
    """Return what each trial adds to the recognition."""
    assert METRIC.terms is not None
    return METRIC.terms(Answers(trials.correct))


RECOGNITION = Quantity(
    METRIC, correct, "{condition}/{space}", kinds=("images", "classes", "subjects"), estimate=means, absent=True
)
QUANTITIES = (
    RECOGNITION,
    RECOGNITION._replace(condition="{condition}/{space}/class={label}", kinds=("images", "subjects"), absent=False),
)
_WAYS = ("16-way", "*-way")

PROTOCOL = Protocol(
    name=NAME,
    version=VERSION,
    title="Pure shape: silhouettes and edges of the cue-conflict objects",
    needs=(("logits",), ("decisions",)),
    read=read,
    views=(View("native", Preprocess.whole_image),),
    score=by_engine(QUANTITIES),
    quantities=QUANTITIES,
    check=check,
    targets=label_map(TARGETS).names,
    metrics=(METRIC.name,),
    options=CLASSES,
    configure=with_classes,
    headline=Headline(
        METRIC.name,
        tuple(f"{name}/{space}" for name in SETS for space in _WAYS),
        direction="correct",
    ),
    citation=replace(CUE_CONFLICT.citation, licence="stimuli CC-BY-4.0"),
)
