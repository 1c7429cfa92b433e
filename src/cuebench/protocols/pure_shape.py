"""Pure shape: are the objects of cue conflict recognised by their silhouette (global shape) or edges (local shape)?

160 silhouettes, black on white, and 160 edge images, ten of each of the 16 classes, without any texture (Geirhos et al.
2019). Kim et al. 2026 hold the class-wise results of cue conflict against these: ``cuebench validity agreement``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from cuebench.arrays import Array, Bools
from cuebench.errors import NoStimuli, all_problems
from cuebench.labels import LabelMap, LabelSpace, coverage_problems, label_map, shown_only
from cuebench.labels.decisions import Codes, full_space, named, named_full, partial_space
from cuebench.metrics.recognition import METRIC, Answers
from cuebench.observers.preprocess import Preprocess
from cuebench.protocols.base import ByObserver, Protocol, Result, ScoreOptions, View, joined
from cuebench.protocols.classes import CLASSES, with_classes
from cuebench.protocols.cue_conflict import AMONG_ALL, AMONG_TARGETS, FULL, TARGETS, way
from cuebench.protocols.cue_conflict import PROTOCOL as CUE_CONFLICT
from cuebench.protocols.trials import Asked, TrialRows, TrialTable, class_names
from cuebench.responses.table import Reduce, Responses
from cuebench.statistics.clustered import Sums
from cuebench.statistics.estimates import missing
from cuebench.statistics.means import mean_estimates
from cuebench.stimuli.made import read_made
from cuebench.stimuli.readers import image_folder
from cuebench.types import REMOVED, Estimate, Headline, IntervalKind, Stimulus, StimulusSet

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


# ---------------------------------------------------------------------------------------------------- scores


def condense(stimuli: StimulusSet, labels: LabelSpace | None) -> Reduce:
    """Keep of the logits the decisions among the classes of the stimuli and among all."""
    resolved = None if labels is None else _targets(stimuli).resolve(labels)

    def decided(columns: Mapping[str, Array], shown: Sequence[Stimulus]) -> dict[str, Array]:
        kept = {name: values for name, values in columns.items() if name != "logits"}
        if "logits" in columns and resolved is not None:
            kept[AMONG_ALL] = full_space(columns["logits"], resolved).astype(np.int32)
            kept[AMONG_TARGETS] = partial_space(columns["logits"], resolved).astype(np.int32)
        return kept

    return decided


def measure(responses: Responses, options: ScoreOptions) -> Result:
    """Score one observer: each set in each label space, overall and by class."""
    result = Result()
    targets = _targets(responses.stimuli)
    truth = named(responses.truth("label"), targets.names)
    shown = np.array([s.condition for s in responses.stimuli], np.str_)
    classes = np.array([s.label for s in responses.stimuli], np.str_)
    decisions, reasons = _decisions(responses)
    for name in (name for name in SETS if (shown == name).any()):
        for space, reason in reasons.items():
            absent = missing(reason, excluded={"without logits": int((shown == name).sum())})
            result.add(responses, f"{name}/{space}", METRIC.name, absent)
        for space, codes in decisions.items():
            correct = codes == truth
            parts = {f"{name}/{space}": shown == name}
            parts |= {f"{name}/{space}/class={c}": (shown == name) & (classes == c) for c in targets.names}
            for condition, part in parts.items():
                if part.any():
                    kinds: tuple[IntervalKind, ...] = ("images",) if "class=" in condition else ("images", "classes")
                    estimate = _estimate(responses, correct, part, classes, kinds, options)
                    result.add(responses, condition, METRIC.name, estimate)
    return result


def _decisions(responses: Responses) -> tuple[dict[str, Codes], dict[str, str]]:
    """Return label space → decisions, and why a label space is missing."""
    targets, space, columns = _targets(responses.stimuli), responses.labels, responses.columns
    few, many = way(len(targets.names)), way(len(space) if space else FULL)
    if AMONG_TARGETS in columns:
        both = {few: columns[AMONG_TARGETS].astype(np.intp), many: columns[AMONG_ALL].astype(np.intp)}
        return both, {}
    recorded = columns.get("decisions", np.zeros(len(responses), np.str_))
    if space is None:
        return {few: named(recorded, targets.names)}, {
            many: f"decisions among {len(targets.names)} classes were given: needs logits"
        }
    return {many: named_full(recorded, space, targets.resolve(space))}, {few: "top-1 decisions were given"}


def _estimate(
    responses: Responses,
    correct: Bools,
    part: Bools,
    classes: Array,
    kinds: Sequence[IntervalKind],
    options: ScoreOptions,
) -> Estimate:
    """Return the share of correct answers to some of the stimuli, with what is outside its denominator."""
    assert METRIC.terms is not None
    rows = part[responses.stimulus]
    people = responses.subjects
    clusters: dict[IntervalKind, Array] = {"images": responses.clusters("id"), "classes": classes[responses.stimulus]}
    each = 1
    if people is not None:
        clusters["subjects"], each = people, len(np.unique(people))
    estimate = mean_estimates(
        {METRIC.name: METRIC.terms(Answers(correct[rows])).numerator},
        {kind: of[rows] for kind, of in clusters.items() if kind in kinds or kind == "subjects"},
        NAME,
    )[METRIC.name]
    ids = [s.id for s, here in zip(responses.stimuli, part) if here]
    unreadable = sum(i in responses.excluded for i in ids) * each
    return estimate.excluding({"unreadable": unreadable, "unanswered": len(ids) * each - unreadable - estimate.n})


def trial_rows(responses: Responses, options: ScoreOptions) -> list[TrialRows]:
    """Return the decision of each answer in every label space that it allows."""
    decisions, _ = _decisions(responses.condensed(condense(responses.stimuli, responses.labels)))
    names = _targets(responses.stimuli).names
    truth, shown = named(responses.truth("label"), names), responses.truth("condition")
    return [
        TrialRows(
            np.array([f"{name}/{space}" for name in shown], object),
            np.arange(len(codes)),
            {"decision": class_names(codes, names), "correct": codes == truth},
        )
        for space, codes in decisions.items()
    ]


def contributions(responses: Responses, asked: Asked) -> Sums | None:
    """Return the recognition as a ratio of sums over images, which share classes."""
    assert METRIC.terms is not None
    name, _, space = asked.condition.partition("/")
    decisions, _ = _decisions(responses)
    rows = responses.truth("condition") == name
    if space not in decisions or not rows.any():
        return None
    truth = named(responses.truth("label"), _targets(responses.stimuli).names)
    terms = METRIC.terms(Answers((decisions[space] == truth)[rows]))
    sources: dict[IntervalKind, Array] = {"classes": responses.truth("label")[rows]}
    if responses.subjects is not None:
        sources["subjects"] = responses.subjects[rows]
    return Sums.of_ratio(terms, responses.truth("id")[rows], sources)


score = ByObserver(measure, joined, condense)
_WAYS = ("16-way", "*-way")

PROTOCOL = Protocol(
    name=NAME,
    version=VERSION,
    title="Pure shape: silhouettes and edges of the cue-conflict objects",
    needs=(("logits",), ("decisions",)),
    read=read,
    views=(View("native", Preprocess.whole_image),),
    score=score,
    trials=TrialTable(trial_rows),
    contributions=contributions,
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
