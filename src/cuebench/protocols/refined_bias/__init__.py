"""REFINED-BIAS (Kim et al. 2026): pure shape cues and pure texture cues, ranks in the whole label space.

3,000 shape cues (white contours) of ten classes, 3,000 texture cues (re-ordered patches in four sizes) of ten others.
No image is in conflict: each cue has its own sensitivity, and the preference is a function of both. Two views: the
authors' preprocessing (``faithful``: resize to 256, crop 224; a model that accepts one other size only keeps that and
the proportion) and ``native`` (nothing is cropped).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from cuebench.errors import UserError, all_problems
from cuebench.labels import LabelSpace, coverage_problems, label_map, shown_only
from cuebench.metrics.refined_bias import CUES, METRICS
from cuebench.observers.preprocess import Preprocess
from cuebench.observers.recorded_names import stimulus_key
from cuebench.protocols.base import ByObserver, Protocol, ScoreOptions, View, joined
from cuebench.protocols.classes import CLASSES, with_classes
from cuebench.protocols.refined_bias.scores import Ranks, Scorer, defect_table, rank_table, ranks_of
from cuebench.protocols.refined_bias.trials import TARGETS, condense, contributions, targets_of, trial_rows
from cuebench.protocols.trials import TrialTable
from cuebench.responses.table import Responses
from cuebench.stimuli.readers import refined_bias as folder_reader
from cuebench.stimuli.refined_bias.check import defects, summary
from cuebench.tables.engine import Result
from cuebench.types import Axis, Citation, Headline, Reference, StimulusSet

NAME, VERSION = "refined_bias", 3
EXPECTED = folder_reader.EXPECTED


def read(data_root: Path) -> StimulusSet:
    """Read ``data_root/refined_bias``; other classes than the published ones need a ``labels.json`` in that folder."""
    return _with_targets(folder_reader.read(Path(data_root) / NAME))


def stimuli_from_recordings(names: Sequence[str]) -> StimulusSet:
    """Build the set from recorded names such as ``refined_bias_shape/balloon/balloon_0.png`` or ``4x4_tiger_0``."""
    stems = sorted({stimulus_key(n).rpartition("/")[2] for n in names})
    parsed = {stem: folder_reader.parse(stem) for stem in stems}
    bad = [f"{stem!r} is neither <class>_<i> nor <G>x<G>_<class>_<i>" for stem, s in parsed.items() if s is None]
    if bad or not stems:
        raise all_problems("recorded image names", bad or ["none"], f"expected names: {folder_reader.LAYOUT}")
    return _with_targets(StimulusSet(NAME, tuple(s for s in parsed.values() if s is not None)))


def _with_targets(stimuli: StimulusSet) -> StimulusSet:
    """Add the label map; published classes that were not made with ``cuebench make`` are compared with all 6,000."""
    known = set(label_map(stimuli.targets or TARGETS).names)
    classes = {s.shape or s.texture for s in stimuli}
    if classes - known:
        raise all_problems(
            f"stimuli of {NAME}",
            [f"class {c!r} is not a target of {stimuli.targets or TARGETS}" for c in sorted(classes - known)],
            f'your own classes need a label map {NAME}/labels.json: {{"targets": {{"class": ["member", ...], ...}}}}',
        )
    if stimuli.targets or stimuli.expected or len(stimuli) == EXPECTED:
        return replace(stimuli, targets=stimuli.targets or TARGETS, expected=stimuli.expected or len(stimuli))
    short = f"{len(stimuli):,} of {EXPECTED:,} stimuli"
    return replace(stimuli, targets=TARGETS, expected=EXPECTED, partial=(short, *stimuli.partial))


def check(labels: LabelSpace, stimuli: StimulusSet) -> list[str]:
    """Say which classes of the stimuli an observer with these labels cannot answer."""
    shown = [s.shape or s.texture for s in stimuli]
    return shown_only(coverage_problems(targets_of(stimuli).resolve(labels), shown))


class Measured(NamedTuple):
    """What is kept of one observer in one view: its numbers, and the ranks of its answers."""

    responses: Responses
    result: Result
    ranks: Sequence[Ranks]


def measure(responses: Responses, options: ScoreOptions) -> Measured:
    """Score one observer in one view; ``clean`` conditions leave out the files that the data check rejects."""
    scorer = Scorer(responses, options, Result())
    scorer.add_all()
    return Measured(responses, scorer.result, ranks_of(scorer))


def together(everyone: Sequence[Measured], options: ScoreOptions) -> Result:
    """Join the observers, and add the tables of ranks and of defective files."""
    if not everyone:
        raise UserError(f"no answers to score for {NAME}")
    result = joined([m.result for m in everyone], options)
    sets = {id(m.responses.stimuli): m.responses.stimuli for m in everyone}
    result.tables = {
        "ranks": rank_table([(m.responses, m.ranks) for m in everyone]),
        "defects": defect_table(list(sets.values())),
    }
    return result


score = ByObserver(measure, together, condense)


def data_report(data_root: Path) -> tuple[str, list[dict[str, str]]]:
    """Return the data check of the files below a data root: a summary, and one row for each defect."""
    stimuli = read(data_root)
    problems = defects(stimuli)
    return "; ".join([summary(problems, len(stimuli)), *stimuli.partial]), [d._asdict() for d in problems]


def faithful(preprocess: Preprocess) -> Preprocess:
    """Return the authors' geometry with the model's own normalisation: resize 256 (bilinear), centre crop 224."""
    return replace(preprocess, size=224, resize=256, crop=True, interpolation="bilinear")


def faithful_of_fixed_size(preprocess: Preprocess) -> Preprocess:
    """Return the authors' geometry of a model that accepts images of one size only, as they ran CMT-B at 256 pixels.

    The shorter side is resized in the same proportion, 256 to 224 (292 for 256 pixels), with the bicubic filter; then
    the centre of the model's own size is cut.
    """
    resize = int(256 / 224 * min(preprocess.hw))
    return replace(preprocess, resize=resize, crop=True, interpolation="bicubic")


_VIEWS = ("faithful", "native")
_TABLE_B = "Kim et al. 2026, Table B"
_README = "example output in the README of PumjunKim/REFINED-BIAS"
_PUBLISHED = {
    "ViT-S": (0.7456, 0.6671),
    "ViT-B": (0.7194, 0.6418),
    "Swin-S": (0.7739, 0.7505),
    "Swin-B": (0.8047, 0.7506),
    "CMT-S": (0.8324, 0.6085),
    "CMT-B": (0.8868, 0.6228),
    "BagNet-9": (0.0517, 0.7194),
    "BagNet-17": (0.0995, 0.8017),
    "BagNet-33": (0.2386, 0.8008),
    "AlexNet": (0.3617, 0.5648),
    "VGG-11": (0.4523, 0.7358),
    "VGG-13": (0.4337, 0.7324),
    "VGG-16": (0.5534, 0.6672),
    "VGG-19": (0.6130, 0.6160),
    "ResNet-18": (0.5741, 0.5674),
    "ResNet-34": (0.5680, 0.5635),
    "ResNet-50": (0.5630, 0.5684),
    "ResNet-101": (0.6590, 0.5303),
    "ResNet-152": (0.6378, 0.5179),
    "InceptionV3": (0.6944, 0.5233),
}
_REFERENCES = (
    *(
        Reference(name, f"{cue}_sensitivity", "faithful", value, _TABLE_B)
        for name, pair in _PUBLISHED.items()
        for cue, value in zip(CUES, pair)
    ),
    # The README prints other digits than Table B for the same three models.
    Reference("BagNet-9", "shape_sensitivity", "faithful", 0.0518, _README),
    Reference("BagNet-17", "shape_sensitivity", "faithful", 0.0988, _README),
    Reference("BagNet-33", "shape_sensitivity", "faithful", 0.2438, _README),
)

PROTOCOL = Protocol(
    name=NAME,
    version=VERSION,
    title="REFINED-BIAS: pure shape and texture cues, ranked in the whole label space",
    needs=(("logits",), ("decisions",)),
    read=read,
    stimuli_from_recordings=stimuli_from_recordings,
    views=(View(_VIEWS[0], faithful, faithful_of_fixed_size), View(_VIEWS[1], Preprocess.whole_image)),
    score=score,
    trials=TrialTable(trial_rows, value="sensitivity: 1/rank of the right class"),
    contributions=contributions,
    check=check,
    targets=label_map(TARGETS).names,
    answers_in="imagenet1k",
    options=CLASSES,
    configure=with_classes,
    metrics=tuple(m.name for m in METRICS),
    # No human value: people give one answer for each image, and the rank of a class needs logits.
    headline=Headline(
        metric="shape_preference",
        conditions=_VIEWS,
        direction="shape",
        beside=("shape_sensitivity", "texture_sensitivity"),
        plane=(Axis("shape_sensitivity", _VIEWS), Axis("texture_sensitivity", _VIEWS)),
    ),
    reference=_REFERENCES,
    citation=Citation(
        text="Kim, Lee, Park, Han & Yoo (2026). On the Reliability of Cue Conflict and Beyond. arXiv:2603.10834.",
        bibtex="""@article{kim2026refinedbias,
  title   = {On the Reliability of Cue Conflict and Beyond},
  author  = {Pum Jun Kim and Seung-Ah Lee and Seongho Park and Dongyoon Han and Jaejun Yoo},
  journal = {arXiv preprint arXiv:2603.10834},
  year    = {2026}
}""",
        url="https://github.com/PumjunKim/REFINED-BIAS",
        licence="paper CC BY 4.0; images: see the repository (project page MIT)",
    ),
)
