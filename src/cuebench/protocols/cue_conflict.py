"""Cue conflict (Geirhos et al. 2019): images with the shape of one class and the texture of another.

1,280 images of 224 × 224; 80 of them have shape and texture of the same class and are dropped, 1,200 are in conflict.
They share 160 shape sources and 48 texture sources, so every score has four intervals; see ``metrics.intervals``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cuebench.errors import UserError, all_problems
from cuebench.labels import LabelMap, LabelSpace, coverage_problems, label_map
from cuebench.metrics import confusion as confusions
from cuebench.metrics import decided_fraction, error_consistency, shape_accuracy, shape_bias, texture_accuracy
from cuebench.metrics.decisions import NONE, Codes, full_space, named, named_full, partial_space
from cuebench.metrics.estimates import Estimate, mean_of_subjects, ratio_estimates
from cuebench.metrics.intervals import KINDS, Clusters
from cuebench.metrics.ratios import Outcomes, outcomes
from cuebench.observers._recorded_files import stimulus_key
from cuebench.observers.preprocess import Preprocess
from cuebench.protocols.base import Protocol, Result, ScoreOptions, View, partial_notes
from cuebench.responses.table import Responses
from cuebench.stimuli.readers import cue_conflict as folder_reader
from cuebench.types import Citation, IntervalKind, Reference, Score, StimulusSet

if TYPE_CHECKING:
    import pyarrow as pa

NAME, VERSION = "cue_conflict", 1
EXPECTED = 1280
TARGETS = "in16"
RATIOS = {
    "shape_bias": shape_bias.terms,
    "shape_accuracy": shape_accuracy.terms,
    "texture_accuracy": texture_accuracy.terms,
    "decided_fraction": decided_fraction.terms,
}
BY_CLASS = {"shape_bias": "shape", "shape_accuracy": "shape", "texture_accuracy": "texture"}
CONDITIONS = ("partial", "full")
Bools = np.ndarray[Any, np.dtype[np.bool_]]


# ---------------------------------------------------------------------------------------------------- stimuli


def read(data_root: Path) -> StimulusSet:
    """Read ``data_root/cue_conflict/stimuli``; a user's own classes come with a label map ``labels.json`` beside it."""
    return _with_targets(folder_reader.read(Path(data_root) / NAME / "stimuli"))


def stimuli_from_recordings(names: Sequence[str]) -> StimulusSet:
    """Build the set from recorded names: ``0001_s5n_dnn_0_airplane_00_airplane1-bicycle2.png``, or its last part."""
    stems = sorted({stimulus_key(n).rpartition("/")[2] for n in names})
    parsed = {stem: folder_reader.parse(stem) for stem in stems}
    bad = [f"{stem!r} is not <shape>i-<texture>j" for stem, stimulus in parsed.items() if stimulus is None]
    if bad or not stems:
        raise all_problems("recorded image names", bad or ["none"], f"expected names: {folder_reader.LAYOUT}")
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
    """

    responses: Responses
    names: tuple[str, ...]
    shape: Codes
    texture: Codes
    codes: Mapping[str, Codes]
    reasons: Mapping[str, str]

    @cached_property
    def subjects(self) -> np.ndarray[Any, Any] | None:
        """Who answered each row, for pooled people."""
        found = self.responses.columns.get("subject") if self.responses.kind == "people" else None
        return None if found is None else np.asarray(found, dtype=np.str_)

    @cached_property
    def clusters(self) -> Clusters:
        """What each row shares with others."""
        truth = self.responses.truth
        return Clusters(truth("id"), truth("shape_source"), truth("texture_source"), self.subjects)

    def outcomes(self, condition: str) -> Outcomes:
        """Compare the answers of a condition with the truth."""
        return outcomes(self.codes[condition], self.shape, self.texture)


def _trials(responses: Responses) -> Trials:
    targets = _targets(responses.stimuli)
    shape, texture = (named(responses.truth(cue), targets.names) for cue in ("shape", "texture"))
    if len(shape) and min(shape.min(), texture.min()) == NONE:
        raise UserError(f"{responses.observer}: stimuli have classes that are no target of {targets.name!r}")
    codes, reasons = _decided(responses, targets)
    return Trials(responses, targets.names, shape, texture, codes, reasons)


def _decided(responses: Responses, targets: LabelMap) -> tuple[dict[str, Codes], dict[str, str]]:
    """Return the decisions in the label spaces that the answers allow, and why the others are missing."""
    space, columns = responses.labels, responses.columns
    if "logits" in columns and space is not None:
        logits, resolved = columns["logits"], targets.resolve(space)
        return {"partial": partial_space(logits, resolved), "full": full_space(logits, resolved)}, {}
    given = columns.get("decisions", np.zeros(len(responses), np.str_))
    if space is None:
        why = f"decisions among the {len(targets.names)} classes were given: the full label space needs logits"
        return {"partial": named(given, targets.names)}, {"full": why}
    full = named_full(given, space, targets.resolve(space))
    if len(space) == len(targets.names):
        return {"partial": full, "full": full}, {}
    return {"full": full}, {"partial": f"top-1 decisions in {space.name} were given: the partial space needs logits"}


@dataclass(frozen=True)
class Tally:
    """Where all the trials of a row went."""

    total: int
    aligned: int
    undecided: int
    unreadable: int
    unanswered: int

    def note(self, metric: str) -> str:
        """Say what is outside the denominator of a metric, and of how many."""
        parts = [f"{self.aligned:,} aligned"]
        parts += [f"{self.undecided:,} undecided"] if metric == "shape_bias" else []
        parts += [f"{self.unreadable:,} unreadable"]
        parts += [f"{self.unanswered:,} unanswered"] if self.unanswered else []
        return f"{', '.join(parts)} of {self.total:,}"


def _tally(trials: Trials, found: Outcomes, rows: Bools, shown: Bools) -> Tally:
    """Count the rows, and the stimuli that have none, among those that a score is about."""
    subjects = trials.subjects
    each = 1 if subjects is None else len(np.unique(subjects))
    total = int(shown.sum()) * each
    excluded = trials.responses.excluded
    unreadable = sum(s.id in excluded for s, here in zip(trials.responses.stimuli, shown) if here and excluded) * each
    return Tally(
        total=total,
        aligned=int((rows & ~found.conflict).sum()),
        undecided=int((rows & found.conflict & ~found.decided).sum()),
        unreadable=unreadable,
        unanswered=total - int(rows.sum()) - unreadable,
    )


# ---------------------------------------------------------------------------------------------------- scores


def score(responses: Sequence[Responses], options: ScoreOptions) -> Result:
    """Score all observers; rows come in the order of the observers, then metric, condition and kind of interval."""
    everyone = [_trials(r) for r in responses]
    people = [t for t in everyone if t.responses.kind == "person" and "partial" in t.codes]
    rows: list[Score] = []
    for trials in everyone:
        rows += _ratio_rows(trials, options)
        rows += _class_rows(trials, options)
        rows += _subject_rows(trials, options)
        rows += _consistency_rows(trials, people, options)
    return Result(rows, {"confusion": _confusion_table(everyone)})


def _row(trials: Trials, condition: str, metric: str, estimate: Estimate, total: int, note: str) -> Score:
    interval = estimate.bootstrap.interval
    stimuli = trials.responses.stimuli
    partial = partial_notes(stimuli.partial)
    notes = [note, estimate.bootstrap.note, *partial, *trials.responses.notes]
    return Score(
        protocol=NAME,
        protocol_version=VERSION,
        observer=trials.responses.observer,
        condition=condition,
        metric=metric,
        value=estimate.value,
        ci_low=interval.low,
        ci_high=interval.high,
        ci_kind=interval.kind,
        n=estimate.n,
        n_excluded=total - estimate.n,
        note="; ".join(n for n in notes if n),
    )


def _estimates(
    trials: Trials, found: Outcomes, rows: Bools, kinds: Sequence[IntervalKind], options: ScoreOptions
) -> dict[str, list[Estimate]]:
    """Return metric → one estimate for each kind, from the conflict trials among ``rows``."""
    keep = rows & found.conflict
    conflict = Outcomes(*(part[keep] for part in found))
    terms = [metric(conflict) for metric in RATIOS.values()]
    clusters = trials.clusters.only(keep)
    made = ratio_estimates(terms, clusters, kinds, seed=options.seed, resamples=options.resamples)
    return dict(zip(RATIOS, made))


def _ratio_rows(trials: Trials, options: ScoreOptions) -> list[Score]:
    """Return the four ratios in both label spaces with all kinds of interval."""
    kinds: tuple[IntervalKind, ...] = (*KINDS, "subjects") if trials.subjects is not None else KINDS
    all_rows, shown = np.ones(len(trials.shape), bool), np.ones(len(trials.responses.stimuli), bool)
    by_condition: dict[str, dict[str, list[Score]]] = {}
    for condition in trials.codes:
        found = trials.outcomes(condition)
        tally = _tally(trials, found, all_rows, shown)
        by_condition[condition] = {
            metric: [_row(trials, condition, metric, e, tally.total, tally.note(metric)) for e in estimates]
            for metric, estimates in _estimates(trials, found, all_rows, kinds, options).items()
        }
    for condition, reason in trials.reasons.items():
        by_condition[condition] = {metric: [_missing(trials, condition, metric, reason)] for metric in RATIOS}
    return [row for metric in RATIOS for condition in CONDITIONS for row in by_condition[condition][metric]]


def _missing(trials: Trials, condition: str, metric: str, reason: str) -> Score:
    each = 1 if trials.subjects is None else len(np.unique(trials.subjects))
    row = Score(NAME, VERSION, trials.responses.observer, condition, metric, float("nan"))
    return replace(row, n_excluded=len(trials.responses.stimuli) * each, note=reason)


def _class_rows(trials: Trials, options: ScoreOptions) -> list[Score]:
    """Return scores by class in the partial space, by shape class or by texture class, with the images interval."""
    if "partial" not in trials.codes:
        return []
    found = trials.outcomes("partial")
    scored = {cue: dict(_by_class(trials, found, cue, options)) for cue in ("shape", "texture")}
    return [row[metric] for metric, cue in BY_CLASS.items() for row in scored[cue].values()]


def _by_class(
    trials: Trials, found: Outcomes, cue: str, options: ScoreOptions
) -> Iterator[tuple[str, dict[str, Score]]]:
    own = trials.shape if cue == "shape" else trials.texture
    shown = np.array([getattr(s, cue) for s in trials.responses.stimuli], dtype=np.str_)
    for code, name in enumerate(trials.names):
        rows, here = own == code, shown == name
        if here.any():
            tally = _tally(trials, found, rows, here)
            made = _estimates(trials, found, rows, ("images",), options)
            condition = f"partial/class={name}"
            yield name, {m: _row(trials, condition, m, e[0], tally.total, tally.note(m)) for m, e in made.items()}


def _subject_rows(trials: Trials, options: ScoreOptions) -> list[Score]:
    """Return the means over people of each one's own ratio, in which every person weighs the same."""
    if trials.subjects is None or "partial" not in trials.codes:
        return []
    found = trials.outcomes("partial")
    rows = []
    for metric, terms in RATIOS.items():
        made, lost = mean_of_subjects(terms(found), trials.subjects, seed=options.seed, resamples=options.resamples)
        note = f"mean over {made.n} subjects"
        rows.append(_row(trials, "partial/mean_of_subjects", metric, made, made.n + lost, note))
    return rows


def _consistency_rows(trials: Trials, people: Sequence[Trials], options: ScoreOptions) -> list[Score]:
    """Return the mean κ against people: of a person against the others, of the pool over all pairs."""
    if "partial" not in trials.codes or not people:
        return []
    pooled = trials.responses.kind == "people"
    others = [p for p in people if p is not trials]
    group = others if pooled else [trials, *others]
    pairs = list(combinations(range(len(group)), 2)) if pooled else [(0, i) for i in range(1, len(group))]
    if not pairs:
        return []
    correct, seen = _correctness(group)
    mean = error_consistency.mean_over_pairs(correct, seen, pairs)
    boot = error_consistency.mean_interval(correct, seen, pairs, seed=options.seed, resamples=options.resamples)
    n = int(np.logical_or.reduce([seen[i] & seen[j] for i, j in pairs]).sum())
    total = len(trials.responses.stimuli)
    aligned = sum(s.shape == s.texture for s in trials.responses.stimuli)
    note = f"mean of κ over {mean.defined} {'pairs of people' if pooled else 'people'}"
    why = "expected agreement is 1" if n else "no image was seen by both"
    note += f" (undefined for {mean.undefined}: {why})" if mean.undefined else ""
    note += f"; {aligned:,} aligned, {total - aligned - n:,} not seen by both of {total:,}"
    return [_row(trials, "partial", "error_consistency", Estimate(mean.value, n, boot), total, note)]


def _correctness(group: Sequence[Trials]) -> tuple[Bools, Bools]:
    """Return observers × conflict stimuli: was the shape class answered, and was there an answer at all."""
    answers = []
    for trials in group:
        found, ids = trials.outcomes("partial"), trials.responses.truth("id")
        answers.append(dict(zip(ids[found.conflict].tolist(), found.shape[found.conflict].tolist())))
    stimuli = sorted(set().union(*answers))
    seen = np.array([[s in a for s in stimuli] for a in answers], bool)
    correct = np.array([[a.get(s, False) for s in stimuli] for a in answers], bool)
    return correct, seen


def _confusion_table(everyone: Sequence[Trials]) -> pa.Table:
    """Return how often each response was given to each pair of classes; ``none`` is an answer outside all classes."""
    import pyarrow as pa

    names = ("observer", "condition", "shape", "texture", "response", "count")
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for trials in everyone:
        answers = np.array([*trials.names, "none"])
        for condition, codes in trials.codes.items():
            counts = confusions.count(codes, trials.shape, trials.texture, len(trials.names))
            where = np.nonzero(counts)
            columns["observer"] += [trials.responses.observer] * len(where[0])
            columns["condition"] += [condition] * len(where[0])
            for name, positions in zip(("shape", "texture", "response"), where):
                columns[name] += answers[positions].tolist()
            columns["count"] += counts[where].tolist()
    types = [pa.string()] * 5 + [pa.int64()]
    return pa.table({n: pa.array(columns[n], t) for n, t in zip(names, types)})


# ---------------------------------------------------------------------------------------------------- the protocol

_CSV = "recomputed from the raw responses in rgeirhos/texture-vs-shape (2019 aggregation)"
_2021 = "cuebench definitions.md §1, from public response CSVs; mean of member probabilities, images not resized"

PROTOCOL = Protocol(
    name=NAME,
    version=VERSION,
    title="Cue conflict: shape of one class, texture of another",
    needs=(("logits",), ("decisions",)),
    read=read,
    stimuli_from_recordings=stimuli_from_recordings,
    views=(View("native", Preprocess.whole_image),),
    score=score,
    check=check,
    targets=label_map(TARGETS).names,
    metrics=(*RATIOS, "error_consistency", "confusion"),
    reference=(
        Reference("people", "shape_bias", "partial", 0.95869, _CSV),
        Reference("people", "shape_bias", "partial/mean_of_subjects", 0.95759, _CSV),
        Reference("resnet50", "shape_bias", "partial", 0.2207, _CSV),
        Reference("squeezenet1-1", "shape_bias", "partial", 0.1822, _CSV),
        Reference("vgg16", "shape_bias", "partial", 0.0921, _CSV),
        Reference("resnet50-train-60-epochs", "shape_bias", "partial", 0.8061, _CSV),
        Reference("torchvision:resnet50 (ImageNet V1)", "shape_bias", "partial", 0.2139, _2021),
        Reference("ResNet-50 trained on stylised ImageNet", "shape_bias", "partial", 0.8137, _2021),
        Reference("ResNet-50 trained on both", "shape_bias", "partial", 0.3465, _2021),
        Reference("ResNet-50 trained on both, then fine-tuned", "shape_bias", "partial", 0.2054, _2021),
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
