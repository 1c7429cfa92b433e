"""Human alignment (Geirhos et al. 2021): how like people an observer errs on 17 out-of-distribution data sets.

In every condition of every data set an observer is compared with every person, trial by trial; the means go over
conditions, then people, then data sets. Control conditions and those in which people are right in less than 20 % of
the trials are reported but are outside all means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from cuebench.errors import all_problems
from cuebench.labels import LabelSpace, coverage_problems, label_map, shown_only
from cuebench.observers.model_vs_human import DATA_SETS, parse_name
from cuebench.observers.preprocess import Preprocess
from cuebench.options import Option
from cuebench.protocols.base import ByObserver, Protocol, View
from cuebench.protocols.classes import CLASSES, with_classes
from cuebench.protocols.human_alignment.numbers import METRICS
from cuebench.protocols.human_alignment.scores import BY_SPELLING, BY_VALUE, PAIRS, together
from cuebench.protocols.human_alignment.trials import condense, measure, trial_rows
from cuebench.protocols.trials import TrialTable
from cuebench.stimuli.readers import model_vs_human as reader
from cuebench.types import Citation, Headline, Reference, StimulusSet

NAME, VERSION = "human_alignment", 2
FOLDER = "model_vs_human"
ELSEWHERE = {"silhouette": "cue_conflict/silhouettes", "cue-conflict": "cue_conflict/stimuli"}
"""Data set → where the protocol cue_conflict has the same images."""
FEWER = "models decide among the chosen classes, people decided among 16"
"""What the rows say where classes were chosen: guessing is easier for models."""


def read(data_root: Path) -> StimulusSet:
    """Read the data sets in ``data_root/model_vs_human/stimuli``, and those that ``data_root/cue_conflict`` has."""
    root = Path(data_root)
    return reader.read(root / FOLDER / "stimuli", elsewhere={name: root / place for name, place in ELSEWHERE.items()})


def configure(protocol: Protocol, values: Mapping[str, Any]) -> Protocol:
    """Return the protocol with the chosen classes: those of the category, which is what is answered."""
    chosen = with_classes(protocol, values, fields=("label",))
    if chosen is protocol:
        return protocol
    recorded = partial(_noted, chosen.stimuli_from_recordings)
    return replace(chosen, read=partial(_noted, chosen.read), stimuli_from_recordings=recorded)


def _noted(read: Any, source: Any) -> StimulusSet:
    stimuli: StimulusSet = read(source)
    return replace(stimuli, notes=(*stimuli.notes, FEWER))


def people(data_root: Path) -> str:
    """Return the spec of the people whose answers lie beside the stimuli; empty where there are none."""
    folder = Path(data_root) / FOLDER / "raw-data"
    recorded = any(folder.glob("*/*_subject-*.csv")) if folder.is_dir() else False
    return f"recorded:{folder}?only=pooled" if recorded else ""


def stimuli_from_recordings(names: Sequence[str]) -> StimulusSet:
    """Build the set from the names of recorded trials, ``<data set>/<condition>/<category>/<image>``."""
    return _from_names(tuple(sorted(set(names))))


@lru_cache(maxsize=32)  # most observers of a recording saw the same images
def _from_names(names: tuple[str, ...]) -> StimulusSet:
    trials = [(name, parse_name(name)) for name in names]
    known = [trial for _, trial in trials if trial is not None]
    if not known:
        raise all_problems(
            "recorded image names",
            [f"{name!r} belongs to no data set of model-vs-human" for name, _ in trials],
            "put the files into a folder named like their data set, or name them <data set>_<subject>_session-1.csv; "
            f"data sets: {', '.join(DATA_SETS)}",
        )
    stimuli = sorted((reader.stimulus_of(trial) for trial in known), key=lambda s: s.id)
    return reader.as_set(tuple(stimuli))


def check(labels: LabelSpace, stimuli: StimulusSet) -> list[str]:
    """Say which categories of the stimuli an observer with these labels cannot answer."""
    return shown_only(coverage_problems(label_map(stimuli.targets).resolve(labels), [s.label for s in stimuli]))


_TABLE = "Geirhos et al. 2021, benchmark table of the authors' repository (printed to three digits)"
_RAW = "recomputed from the raw responses of model-vs-human"
_PUBLISHED = {
    "ResNet-50": (0.559, 0.087, 0.665, 0.208),
    "CLIP ViT-B/32": (0.708, 0.023, 0.758, 0.281),
}

PROTOCOL = Protocol(
    name=NAME,
    version=VERSION,
    title="Human alignment: like people on 17 out-of-distribution data sets",
    needs=(("logits",), ("decisions",)),
    read=read,
    people=people,
    stimuli_from_recordings=stimuli_from_recordings,
    views=(View("native", Preprocess.whole_image),),
    score=ByObserver(measure, together, condense),
    trials=TrialTable(trial_rows),
    tables={"error_consistency": PAIRS},
    check=check,
    targets=label_map(reader.TARGETS).names,
    metrics=(*METRICS, "mean_rank"),
    conditions={
        "mean": "mean over conditions, then people, then data sets; without control conditions and those in which "
        "people are right in less than 20 % of the trials",
        **{name: f"data set of model-vs-human: {d.about}" for name, d in DATA_SETS.items()},
        **{f"{name}/*": f"one condition of {name}: {d.about}" for name, d in DATA_SETS.items() if d.conditions},
    },
    options={
        "left_out": Option(
            BY_VALUE,
            "conditions outside the means: those of the paper; or without false-colour/true and uniform-noise/0.0, 0.6 "
            "and 0.9, which raw files spell otherwise than the paper and a comparison of texts keeps",
            choices=(BY_VALUE, BY_SPELLING),
            scoring=True,
        ),
        **CLASSES,
    },
    configure=configure,
    headline=Headline(
        metric="error_consistency",
        conditions=("mean",),
        direction="human",
        human=0.4312,
        human_source=f"people with each other, {_RAW}",
    ),
    reference=(
        *(
            Reference(observer, metric, "mean", value, _TABLE)
            for observer, values in _PUBLISHED.items()
            for metric, value in zip(METRICS, values)
        ),
        Reference("people", "error_consistency", "mean", 0.4312, _RAW),
    ),
    citation=Citation(
        text="Geirhos, Narayanappa, Mitzkus, Thieringer, Bethge, Wichmann & Brendel (2021). Partial success in closing "
        "the gap between human and machine vision. NeurIPS.",
        bibtex="""@inproceedings{geirhos2021partial,
  title     = {Partial success in closing the gap between human and machine vision},
  author    = {Robert Geirhos and Kantharaju Narayanappa and Benjamin Mitzkus and Tizian Thieringer and Matthias Bethge and Felix A. Wichmann and Wieland Brendel},
  booktitle = {Advances in Neural Information Processing Systems},
  volume    = {34},
  year      = {2021},
  url       = {https://arxiv.org/abs/2106.07411}
}""",  # noqa: E501
        url="https://github.com/bethgelab/model-vs-human",
        licence="stimuli and raw responses: see the repository; edge and silhouette images CC-BY-4.0",
    ),
)
