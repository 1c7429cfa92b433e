"""Cue conflict (Geirhos et al. 2019): images with the shape of one class and the texture of another.

1,280 images of 224 × 224; 80 of them have shape and texture of the same class and are dropped, 1,200 are in conflict.
They share 160 shape sources and 48 texture sources, so every score has four intervals, one of pooled people six.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cuebench.arrays import Array, Bools
from cuebench.errors import UserError, all_problems
from cuebench.labels import LabelMap, LabelSpace, coverage_problems, label_map
from cuebench.labels.decisions import NONE, UNDECIDED, Codes, full_space, named, named_full, partial_space
from cuebench.metrics.cue_conflict import (
    Outcomes,
    decided_fraction,
    outcomes,
    shape_accuracy,
    shape_bias,
    texture_accuracy,
)
from cuebench.metrics.error_consistency import mean_over_pairs
from cuebench.observers.preprocess import Preprocess
from cuebench.observers.recorded_names import stimulus_key
from cuebench.observers.recorded_rows import names_of
from cuebench.options import Option
from cuebench.protocols._confusions import CONFUSION, confusion_table
from cuebench.protocols.base import ByObserver, Protocol, Result, ScoreOptions, View, joined
from cuebench.protocols.classes import CLASSES, with_classes
from cuebench.protocols.refined_bias import faithful, faithful_of_fixed_size
from cuebench.protocols.trials import Asked, TrialRows, TrialTable, class_names, cue_outcomes
from cuebench.responses.table import Reduce, Responses
from cuebench.statistics.clustered import Sums
from cuebench.statistics.estimates import mean_of_subjects, missing, ratio_estimates
from cuebench.statistics.intervals import KINDS, Clusters
from cuebench.stimuli.readers import cue_conflict as folder_reader
from cuebench.types import Axis, Citation, Estimate, Headline, IntervalKind, Reference, Stimulus, StimulusSet

NAME, VERSION = "cue_conflict", 3
TABLE = f"{NAME}/stimuli.csv"
EXPECTED = 1280
TARGETS = "in16"
FULL = 1000
"""Classes of the label space that the published networks answer in."""
AMONG_ALL, AMONG_TARGETS = "decision_among_all", "decision_among_targets"
"""What is kept of logits: the position of the class that was decided for, in either label space."""
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
RATIOS = (shape_bias, shape_accuracy, texture_accuracy, decided_fraction)
WITH_ALIGNED = "with_aligned"
"""Condition of the error consistency on all images, also those with shape and texture of one class."""
UNREAD = "undecided without a readable answer"
"""Why trials of an observer that answers in words are outside the shape bias, besides answers with a third class."""
BY_CLASS = {"shape_bias": "shape", "shape_accuracy": "shape", "texture_accuracy": "texture"}


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


@dataclass(frozen=True)
class Trials:
    """The answers of one observer as positions of classes.

    ``codes`` has the decisions of each condition (label space) that can be had, ``reasons`` why one cannot.
    ``restricted`` names the condition in which the observer decides among the classes of the stimuli only.
    """

    responses: Responses
    names: tuple[str, ...]
    shape: Codes
    texture: Codes
    codes: Mapping[str, Codes]
    reasons: Mapping[str, str]
    restricted: str

    @cached_property
    def subjects(self) -> np.ndarray[Any, Any] | None:
        """Who answered each row, for pooled people."""
        return self.responses.subjects

    @cached_property
    def unread(self) -> Bools:
        """Rows of an observer that answers in words in which no class could be read."""
        decisions = self.responses.columns.get("decisions")
        return np.zeros(len(self.shape), bool) if decisions is None else np.asarray(decisions == UNDECIDED)

    @property
    def per_stimulus(self) -> int:
        """How many answers each stimulus should have."""
        return 1 if self.subjects is None else len(np.unique(self.subjects))

    @cached_property
    def clusters(self) -> Clusters:
        """What each row shares with others."""
        shared = self.responses.clusters
        return Clusters(shared("id"), shared("shape_source"), shared("texture_source"), self.subjects)

    def outcomes(self, condition: str) -> Outcomes:
        """Compare the answers of a condition with the truth."""
        return outcomes(self.codes[condition], self.shape, self.texture)


def way(classes: int) -> str:
    """Name a condition by the number of classes that the observer decided among: ``16-way``."""
    return f"{classes}-way"


def condense(stimuli: StimulusSet, labels: LabelSpace | None) -> Reduce:
    """Keep of the logits the decisions in both label spaces."""
    resolved = None if labels is None else _targets(stimuli).resolve(labels)

    def decided(columns: Mapping[str, Array], shown: Sequence[Stimulus]) -> dict[str, Array]:
        kept = {name: values for name, values in columns.items() if name not in ("logits", "text")}
        if "logits" in columns and resolved is not None:
            logits = columns["logits"]
            kept[AMONG_ALL] = full_space(logits, resolved).astype(np.int32)
            kept[AMONG_TARGETS] = partial_space(logits, resolved).astype(np.int32)
        return kept

    return decided


def _trials(responses: Responses) -> Trials:
    targets = _targets(responses.stimuli)
    shape, texture = (named(responses.truth(cue), targets.names) for cue in ("shape", "texture"))
    if len(shape) and min(shape.min(), texture.min()) == NONE:
        raise UserError(f"{responses.observer}: stimuli have classes that are no target of {targets.name!r}")
    codes, reasons = _decided(responses, targets)
    return Trials(responses, targets.names, shape, texture, codes, reasons, way(len(targets.names)))


def _decided(responses: Responses, targets: LabelMap) -> tuple[dict[str, Codes], dict[str, str]]:
    """Return the decisions in the label spaces that the answers allow, and why the others are missing."""
    space, columns = responses.labels, responses.columns
    restricted, full = way(len(targets.names)), way(len(space) if space else FULL)
    if AMONG_TARGETS in columns:
        codes = {full: columns[AMONG_ALL].astype(np.intp), restricted: columns[AMONG_TARGETS].astype(np.intp)}
        return {name: codes[name] for name in dict.fromkeys((restricted, full))}, {}
    recorded = columns.get("decisions", np.zeros(len(responses), np.str_))
    if space is None:
        why = f"decisions among the {len(targets.names)} classes were given: the whole label space needs logits"
        return {restricted: named(recorded, targets.names)}, {full: why}
    decisions = named_full(recorded, space, targets.resolve(space))
    if full == restricted:
        return {restricted: decisions}, {}
    return {full: decisions}, {restricted: f"top-1 decisions in {space.name} were given: {restricted} needs logits"}


def _excluded(trials: Trials, outcome: Outcomes, rows: Bools, shown: Bools, metric: str) -> dict[str, int]:
    """Count what is outside the denominator of a metric, among the rows and stimuli that a score is about."""
    total, excluded = int(shown.sum()) * trials.per_stimulus, trials.responses.excluded
    unreadable = sum(s.id in excluded for s, here in zip(trials.responses.stimuli, shown) if here) if excluded else 0
    undecided = rows & outcome.conflict & ~outcome.decided if metric == "shape_bias" else np.zeros(len(rows), bool)
    unread = int((undecided & trials.unread).sum())
    return {
        "aligned": int((rows & ~outcome.conflict).sum()),
        "undecided": int(undecided.sum()) - unread,
        **({UNREAD: unread} if unread else {}),
        "unreadable": unreadable * trials.per_stimulus,
        "unanswered": total - int(rows.sum()) - unreadable * trials.per_stimulus,
    }


def trial_rows(responses: Responses, options: ScoreOptions) -> list[TrialRows]:
    """Return the decision of each answer in every label space that it allows; correct: the shape was answered."""
    trials = _trials(responses.condensed(condense(responses.stimuli, responses.labels)))
    rows = []
    for condition, codes in trials.codes.items():
        columns = {
            "decision": class_names(codes, trials.names),
            "outcome": cue_outcomes(codes, trials.shape, trials.texture),
            "correct": codes == trials.shape,
        }
        rows.append(TrialRows(condition, np.arange(len(codes)), columns))
    return rows


def contributions(responses: Responses, asked: Asked) -> Sums | None:
    """Return the shape bias as a ratio of sums over conflict images."""
    trials = _trials(responses)
    if asked.condition not in trials.codes:
        return None
    outcome = trials.outcomes(asked.condition)
    conflict = Outcomes(*(part[outcome.conflict] for part in outcome))
    assert shape_bias.terms is not None
    sources: dict[IntervalKind, Array] = {
        "shape_sources": responses.truth("shape_source")[outcome.conflict],
        "texture_sources": responses.truth("texture_source")[outcome.conflict],
        **({} if trials.subjects is None else {"subjects": trials.subjects[outcome.conflict]}),
    }
    return Sums.of_ratio(shape_bias.terms(conflict), responses.truth("id")[outcome.conflict], sources)


# ---------------------------------------------------------------------------------------------------- scores


class Measured(NamedTuple):
    """What is kept of one observer.

    ``result`` holds its numbers, except the agreement with people, and its rows of the table of confusions.
    ``stimulus`` and ``correct`` are its answers among the set's classes: position, and whether the shape was answered;
    ``conflict`` tells which of them are answers to conflict stimuli. None where it did not decide among these classes.
    """

    responses: Responses
    restricted: str
    result: Result
    stimulus: Array | None = None
    correct: Bools | None = None
    conflict: Bools | None = None


def measure(responses: Responses, options: ScoreOptions) -> Measured:
    """Score one observer; rows come in the order metric, condition and kind of interval."""
    trials = _trials(responses)
    table = confusion_table(responses.observer, trials.names, trials.codes, trials.shape, trials.texture)
    result = Result(tables={"confusion": table})
    _add_ratios(result, trials, options)
    if trials.restricted not in trials.codes:
        return Measured(responses, trials.restricted, result)
    _add_classes(result, trials, options)
    _add_subjects(result, trials, options)
    outcome = trials.outcomes(trials.restricted)
    stimulus, correct = responses.stimulus.astype(np.int32), trials.codes[trials.restricted] == trials.shape
    return Measured(responses, trials.restricted, result, stimulus, correct, outcome.conflict)


def together(everyone: Sequence[Measured], options: ScoreOptions) -> Result:
    """Join the observers' own numbers, each followed by the agreement with people."""
    deciding = [m for m in everyone if m.stimulus is not None]
    people = [m for m in deciding if m.responses.kind == "person"]
    answers = _Answers(deciding) if people else None
    results = []
    for measured in everyone:
        with_people = Result()
        if answers is not None and measured.stimulus is not None:
            _add_consistency(with_people, measured, people, answers, options)
        results += [measured.result, with_people]
    return joined(results, options)


score = ByObserver(measure, together, condense)


def _estimates(
    trials: Trials, outcome: Outcomes, rows: Bools, shown: Bools, kinds: Sequence[IntervalKind], options: ScoreOptions
) -> dict[str, Estimate]:
    """Return metric → estimate, from the conflict trials among ``rows``, with what is outside its denominator."""
    keep = rows & outcome.conflict
    conflict = Outcomes(*(part[keep] for part in outcome))
    terms = [metric.terms(conflict) for metric in RATIOS if metric.terms]
    clusters = trials.clusters.only(keep)
    estimates = ratio_estimates(terms, clusters, kinds)
    return {
        metric.name: estimate.excluding(_excluded(trials, outcome, rows, shown, metric.name))
        for metric, estimate in zip(RATIOS, estimates)
    }


def _add_ratios(result: Result, trials: Trials, options: ScoreOptions) -> None:
    """Add the four ratios in both label spaces with all kinds of interval."""
    kinds: tuple[IntervalKind, ...] = (*KINDS, "subjects", "three_way") if trials.subjects is not None else KINDS
    rows, shown = np.ones(len(trials.shape), bool), np.ones(len(trials.responses.stimuli), bool)
    everything = len(trials.responses.stimuli) * trials.per_stimulus
    by_condition: dict[str, dict[str, Estimate]] = {
        condition: {m.name: missing(reason, excluded={"without logits": everything}) for m in RATIOS}
        for condition, reason in trials.reasons.items()
    }
    for condition in trials.codes:
        by_condition[condition] = _estimates(trials, trials.outcomes(condition), rows, shown, kinds, options)
    order = sorted(by_condition, key=lambda condition: condition != trials.restricted)
    for metric in RATIOS:
        for condition in order:
            result.add(trials.responses, condition, metric.name, by_condition[condition][metric.name])


def _add_classes(result: Result, trials: Trials, options: ScoreOptions) -> None:
    """Add scores by class among the set's classes, by shape class or by texture class, with the images interval."""
    outcome = trials.outcomes(trials.restricted)
    by_cue: dict[str, dict[str, dict[str, Estimate]]] = {"shape": {}, "texture": {}}
    for cue, by_class in by_cue.items():
        code_of_row = trials.shape if cue == "shape" else trials.texture
        class_of_stimulus = np.array([getattr(s, cue) for s in trials.responses.stimuli], dtype=np.str_)
        for code, name in enumerate(trials.names):
            shown = class_of_stimulus == name
            if shown.any():
                by_class[name] = _estimates(trials, outcome, code_of_row == code, shown, ("images",), options)
    for metric, cue in BY_CLASS.items():
        for name, estimates in by_cue[cue].items():
            result.add(trials.responses, f"{trials.restricted}/class={name}", metric, estimates[metric])


def _add_subjects(result: Result, trials: Trials, options: ScoreOptions) -> None:
    """Add the means over people of each one's own ratio, in which every person weighs the same."""
    if trials.subjects is None:
        return
    outcome = trials.outcomes(trials.restricted)
    for metric in RATIOS:
        assert metric.terms is not None
        terms = metric.terms(outcome)
        mean = mean_of_subjects(terms, trials.subjects)
        result.add(trials.responses, f"{trials.restricted}/mean_of_subjects", metric.name, mean)


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
            assert measured.stimulus is not None
            assert measured.correct is not None
            assert measured.conflict is not None
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
    trials=TrialTable(trial_rows),
    contributions=contributions,
    tables={"confusion": CONFUSION},
    check=check,
    targets=label_map(TARGETS).names,
    metrics=(*(m.name for m in RATIOS), "error_consistency"),
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
