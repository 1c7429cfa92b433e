"""Cue conflict (Geirhos et al. 2019): images with the shape of one class and the texture of another.

1,280 images of 224 × 224; 80 of them have shape and texture of the same class and are dropped, 1,200 are in conflict.
They share 160 shape sources and 48 texture sources, so every score has four intervals, one of pooled people six.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cuebench.arrays import Array, Bools
from cuebench.errors import all_problems
from cuebench.labels import LabelMap, LabelSpace, coverage_problems, label_map
from cuebench.metrics.base import Metric
from cuebench.metrics.cue_conflict import decided_fraction, shape_accuracy, shape_bias, texture_accuracy
from cuebench.metrics.error_consistency import mean_over_pairs
from cuebench.observers.preprocess import Preprocess
from cuebench.observers.recorded_names import stimulus_key
from cuebench.observers.recorded_rows import names_of
from cuebench.options import Option
from cuebench.protocols._confusions import CONFUSION, confusion_table
from cuebench.protocols.base import Protocol, ScoreOptions, View, by_engine, joined
from cuebench.protocols.classes import CLASSES, with_classes
from cuebench.protocols.refined_bias import faithful, faithful_of_fixed_size
from cuebench.responses.table import Responses
from cuebench.statistics.intervals import KINDS
from cuebench.statistics.ratios import Terms
from cuebench.stimuli.readers import cue_conflict as folder_reader
from cuebench.tables.decide import way
from cuebench.tables.engine import Choice, Quantity, Result, by_subject, everything
from cuebench.tables.trials import NO_ANSWER, OTHER, Trials
from cuebench.types import Axis, Citation, Headline, IntervalKind, Reference, StimulusSet

NAME, VERSION = "cue_conflict", 3
TABLE = f"{NAME}/stimuli.csv"
EXPECTED = 1280
TARGETS = "in16"
NATIVE, RESIZED = "native", "resized"
RESIZED_NOTE = "images resized to 256 and cut to 224 pixels, as in REFINED-BIAS"
"""What the rows of the resized view say; ``published place`` compares those with the paper's tables."""
OPTIONS: Mapping[str, Option] = {
    "view": Option(
        NATIVE,
        "the images as they are, 224 × 224; or resized to 256 and cut to 224, as in Tables B and C of REFINED-BIAS",
        choices=(NATIVE, RESIZED),
    ),
    **CLASSES,
}
WITH_ALIGNED = "with_aligned"
"""Condition of the error consistency on all images, also those with shape and texture of one class."""

# ---------------------------------------------------------------------------------------------------- stimuli


def read(data_root: Path) -> StimulusSet:
    """Read ``data_root/cue_conflict``: ``stimuli.csv``, else ``stimuli/``; own classes come with a ``labels.json``."""
    table = Path(data_root) / TABLE
    listed = os.path.lexists(table)  # a broken link is a table, too
    return _with_targets(folder_reader.read_table(table) if listed else folder_reader.read(table.parent / "stimuli"))


def configure(protocol: Protocol, values: Mapping[str, Any]) -> Protocol:
    """Return the protocol in the chosen view, with the chosen classes."""
    protocol = with_classes(protocol, values)
    if values["view"] == NATIVE:
        return protocol
    return replace(
        protocol, read=partial(_read_resized, protocol.read), views=(View(RESIZED, faithful, faithful_of_fixed_size),)
    )


def _read_resized(read: Callable[[Path], StimulusSet], data_root: Path) -> StimulusSet:
    stimuli = read(data_root)
    return replace(stimuli, notes=(*stimuli.notes, RESIZED_NOTE))


def stimuli_from_recordings(names: Sequence[str]) -> StimulusSet:
    """Build the set from recorded names: ``0001_s5n_dnn_0_airplane_00_airplane1-bicycle2.png``, or its last part."""
    stems = sorted({stimulus_key(n).rpartition("/")[2] for n in names_of("cue-conflict", names)})
    parsed = {stem: folder_reader.parse(stem) for stem in stems}
    problems = [f"{stem!r} is not <shape>i-<texture>j" for stem, stimulus in parsed.items() if stimulus is None]
    if problems or not stems:
        raise all_problems("recorded image names", problems or ["none"], f"expected names: {folder_reader.LAYOUT}")
    return _with_targets(StimulusSet(NAME, tuple(s for s in parsed.values() if s is not None)))


def _with_targets(stimuli: StimulusSet) -> StimulusSet:
    """Add the label map, and how many stimuli there should be where the classes are the published ones."""
    published = set(label_map(TARGETS).names)
    classes = {c for s in stimuli for c in (s.shape, s.texture)}
    known = published if not stimuli.targets else set(label_map(stimuli.targets).names)
    if classes - known:
        raise all_problems(
            f"stimuli of {NAME}",
            [f"class {c!r} is not a target of {stimuli.targets or TARGETS}" for c in sorted(classes - known)],
            f'own classes need a label map {NAME}/labels.json beside the stimuli: {{"class": ["member", ...], ...}}',
        )
    if stimuli.targets and classes != published:
        return stimuli
    missing = () if len(stimuli) == EXPECTED else (f"{len(stimuli):,} of {EXPECTED:,} stimuli",)
    return replace(stimuli, expected=EXPECTED, partial=missing, targets=stimuli.targets or TARGETS)


def check(labels: LabelSpace, stimuli: StimulusSet) -> list[str]:
    """Say which classes of the stimuli an observer with these labels cannot answer."""
    cues = [c for s in stimuli for c in {s.shape, s.texture}]
    return coverage_problems(_targets(stimuli).resolve(labels), cues)


def _targets(stimuli: StimulusSet) -> LabelMap:
    return label_map(stimuli.targets or TARGETS)


# ---------------------------------------------------------------------------------------------------- trials


def conflict(trials: Trials) -> Bools:
    """Tell which stimuli have the shape of one class and the texture of another."""
    return trials.cues.conflict


def aligned(trials: Trials) -> Bools:
    """Tell which stimuli have shape and texture of one class."""
    return ~conflict(trials)


def among_targets(trials: Trials) -> Bools:
    """Tell which decisions are among the classes of the stimuli."""
    return trials.among_targets


def pooled(trials: Trials) -> Bools:
    """Tell which of these decisions are of people who are pooled."""
    return trials.among_targets if trials.subject is not None else np.zeros(len(trials), bool)


def cue_terms(metric: Metric) -> Callable[[Trials], Terms]:
    """Return what each trial adds to one of the four ratios."""
    assert metric.terms is not None
    of = metric.terms
    return lambda trials: of(trials.cues)


WITH_PEOPLE: tuple[IntervalKind, ...] = (*KINDS, "subjects", "three_way")
OUTSIDE: Mapping[str, Choice] = {"aligned": aligned}
UNDECIDED: Mapping[str, Choice] = {
    OTHER: lambda t: t.outcome == OTHER,
    NO_ANSWER: lambda t: t.outcome == NO_ANSWER,
}
RATIOS = [
    Quantity(
        metric,
        cue_terms(metric),
        counted=conflict,
        outside={**OUTSIDE, **(UNDECIDED if metric is shape_bias else {})},
        kinds=WITH_PEOPLE,
    )
    for metric in (shape_bias, shape_accuracy, texture_accuracy, decided_fraction)
]
QUANTITIES = [
    *(q._replace(absent=True) for q in RATIOS),
    *(
        q._replace(condition=f"{{space}}/class={{{cue}}}", about=among_targets, kinds=("images",))
        for q, cue in zip(RATIOS, ("shape", "shape", "texture"))
    ),
    *(
        q._replace(condition="{space}/mean_of_subjects", about=pooled, counted=everything, estimate=by_subject)
        for q in RATIOS
    ),
]


# ---------------------------------------------------------------------------------------------------- scores


class Measured(NamedTuple):
    """What is kept of one observer.

    ``result`` holds its numbers, except the agreement with people, and its rows of the table of confusions. ``trials``
    are its decisions among the set's classes: stimulus, whether the shape was answered, whether cues are in conflict.
    """

    responses: Responses
    restricted: str
    result: Result
    stimulus: Array
    correct: Bools
    conflict: Bools


def score_one(trials: Trials, result: Result) -> Measured:
    """Add the table of confusions, and keep what the agreement with people needs."""
    result.tables["confusion"] = confusion_table(trials)
    own = trials.only(trials.among_targets)
    restricted = way(len(trials.answer.words) - 1)
    return Measured(trials.asked, restricted, result, own.stimulus.astype(np.int32), own.correct, conflict(own))


def together(everyone: Sequence[Measured], options: ScoreOptions) -> Result:
    """Join the observers' own numbers, each followed by the agreement with people."""
    deciding = [m for m in everyone if len(m.stimulus)]
    people = [m for m in deciding if m.responses.kind == "person"]
    answers = _Answers(deciding) if people else None
    results = []
    for measured in everyone:
        with_people = Result()
        if answers is not None and len(measured.stimulus):
            _add_consistency(with_people, measured, people, answers, options)
        results += [measured.result, with_people]
    return joined(results, options)


score = by_engine(QUANTITIES, score_one, together)


class _Answers:
    """The answers of observers, by the id of the stimulus: observers may have seen other sets."""

    def __init__(self, observers: Sequence[Measured]) -> None:
        self._ids = {id(m.responses.stimuli): _ids(m.responses.stimuli) for m in observers}
        self._known = np.unique(np.concatenate(list(self._ids.values())))
        self._place = {key: np.searchsorted(self._known, ids) for key, ids in self._ids.items()}

    def of(self, group: Sequence[Measured], *, aligned: bool) -> tuple[Bools, Bools]:
        """Return observers × stimuli that any of them answered: was the shape class answered, and was anything.

        ``aligned``: with the images whose shape and texture are of one class.
        """
        seen = np.zeros((len(group), len(self._known)), bool)
        correct = np.zeros_like(seen)
        for row, measured in enumerate(group):
            rows = np.ones(len(measured.correct), bool) if aligned else measured.conflict
            place = self._place[id(measured.responses.stimuli)][measured.stimulus[rows]]
            seen[row, place] = True
            correct[row, place] = measured.correct[rows]
        anyone = seen.any(axis=0)
        return correct[:, anyone], seen[:, anyone]


def _ids(stimuli: StimulusSet) -> Array:
    return np.array([s.id for s in stimuli], dtype=np.str_)


def _add_consistency(
    result: Result, measured: Measured, people: Sequence[Measured], answers: _Answers, options: ScoreOptions
) -> None:
    """Add the mean κ against people: of a person against the others, of the pool over all pairs.

    Once on the conflict images, as every other number here, and once with the aligned ones, as the authors compute it.
    """
    pooled = measured.responses.kind == "people"
    others = [p for p in people if p is not measured]
    group = others if pooled else [measured, *others]
    pairs = list(combinations(range(len(group)), 2)) if pooled else [(0, i) for i in range(1, len(group))]
    if not pairs:
        return
    stimuli = measured.responses.stimuli
    number = sum(s.shape == s.texture for s in stimuli)
    for aligned in (False, True) if number else (False,):
        correct, seen = answers.of(group, aligned=aligned)
        estimate = mean_over_pairs(correct, seen, pairs)
        left_out = 0 if aligned else number
        excluded = {"aligned": left_out, "not seen by both": len(stimuli) - left_out - estimate.n}
        condition = f"{measured.restricted}/{WITH_ALIGNED}" if aligned else measured.restricted
        note = f"mean of κ over {len(pairs)} {'pairs of people' if pooled else 'people'}"
        result.add(measured.responses, condition, "error_consistency", estimate.excluding(excluded).noting(note))


# ---------------------------------------------------------------------------------------------------- the protocol

_CSV = "recomputed from the raw responses in rgeirhos/texture-vs-shape (2019 aggregation)"
_2021 = "from public response CSVs of model-vs-human; mean of member probabilities, images not resized"

PROTOCOL = Protocol(
    name=NAME,
    version=VERSION,
    title="Cue conflict: shape of one class, texture of another",
    needs=(("logits",), ("decisions",)),
    read=read,
    stimuli_from_recordings=stimuli_from_recordings,
    table=TABLE,
    views=(View(NATIVE, Preprocess.whole_image),),
    options=OPTIONS,
    configure=configure,
    score=score,
    quantities=QUANTITIES,
    tables={"confusion": CONFUSION},
    check=check,
    targets=label_map(TARGETS).names,
    metrics=(*(q.metric.name for q in RATIOS), "error_consistency"),
    headline=Headline(
        metric="shape_bias",
        conditions=("*-way",),
        direction="shape",
        beside=("decided_fraction",),
        neutral=0.5,
        human=0.95869,
        human_condition="16-way",
        human_source="ten people of Geirhos et al. 2019, pooled",
        plane=(Axis("shape_accuracy", ("*-way",)), Axis("texture_accuracy", ("*-way",))),
    ),
    reference=(
        Reference("people", "shape_bias", "16-way", 0.95869, _CSV),
        Reference("people", "shape_bias", "16-way/mean_of_subjects", 0.95759, _CSV),
        Reference("resnet50", "shape_bias", "16-way", 0.2207, _CSV),
        Reference("squeezenet1-1", "shape_bias", "16-way", 0.1822, _CSV),
        Reference("vgg16", "shape_bias", "16-way", 0.0921, _CSV),
        Reference("resnet50-train-60-epochs", "shape_bias", "16-way", 0.8061, _CSV),
        Reference("torchvision:resnet50 (ImageNet V1)", "shape_bias", "16-way", 0.2139, _2021),
        Reference("ResNet-50 trained on stylised ImageNet", "shape_bias", "16-way", 0.8137, _2021),
        Reference("ResNet-50 trained on both", "shape_bias", "16-way", 0.3465, _2021),
        Reference("ResNet-50 trained on both, then fine-tuned", "shape_bias", "16-way", 0.2054, _2021),
    ),
    citation=Citation(
        text="Geirhos, Rubisch, Michaelis, Bethge, Wichmann & Brendel (2019). ImageNet-trained CNNs are biased towards "
        "texture; increasing shape bias improves accuracy and robustness. ICLR.",
        bibtex="""@inproceedings{geirhos2019imagenettrained,
  title     = {ImageNet-trained {CNN}s are biased towards texture; increasing shape bias improves accuracy and robustness},
  author    = {Robert Geirhos and Patricia Rubisch and Claudio Michaelis and Matthias Bethge and Felix A. Wichmann and Wieland Brendel},
  booktitle = {International Conference on Learning Representations},
  year      = {2019},
  url       = {https://openreview.net/forum?id=Bygh9j09KX}
}""",  # noqa: E501
        url="https://github.com/rgeirhos/texture-vs-shape",
        licence="stimuli CC-BY-4.0; raw responses: see the repository",
    ),
)
