"""Developmental triplets (Tartaglini et al. 2022): is the same shape or the same texture more like the anchor?

The one protocol for any network with features, trained or not, with labels or without. Experiment 1 fades the
background of the cue-conflict images, experiment 2 varies the size and place of the objects, experiment 3 shows novel
objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from cuebench.arrays import Array
from cuebench.metrics.triplet_shape_bias import shared_terms, terms
from cuebench.metrics.triplets import SIMILARITIES
from cuebench.observers.preprocess import Preprocess
from cuebench.options import Option, parse
from cuebench.protocols.base import ByObserver, Protocol, ScoreOptions, View, joined
from cuebench.protocols.trials import Asked, TrialRows, TrialTable
from cuebench.protocols.triplets import choices
from cuebench.protocols.triplets.scores import Decided, add_biases, add_gains, class_table, decided
from cuebench.protocols.triplets.stimuli import EXPERIMENTS, MATCHES, NAME
from cuebench.protocols.triplets.stimuli import read as read_experiments
from cuebench.protocols.triplets.trials import Draw, Trials
from cuebench.responses.table import Responses
from cuebench.statistics.clustered import Sums
from cuebench.stimuli.sources.novel_object import BACKGROUNDS
from cuebench.tables.engine import Result
from cuebench.types import Citation, Headline, IntervalKind, Reference, StimulusSet

VERSION = 4
OPTIONS: Mapping[str, Option] = {
    "experiments": Option(
        (),
        "which experiments; default: those of the paper that there is data for. size, colour: novel objects whose "
        "matches share the size or the colour",
        choices=(*EXPERIMENTS, *MATCHES),
    ),
    "background": Option("white", "background of the novel objects", choices=tuple(BACKGROUNDS)),
    "draw": Option(28, "triplets of each anchor in experiments 1 and 2", low=1, words=("all",), scoring=True),
    "replications": Option(3, "how often they are drawn; the shares are averaged", low=1, scoring=True),
    "similarity": Option(
        SIMILARITIES, "similarities of embeddings; cosine is always measured", choices=SIMILARITIES, scoring=True
    ),
    "layers": Option((), "further layers to measure, each averaged over positions, or all"),
    "baselines": Option(0, "random initialisations of every network", low=0),
}


def configure(protocol: Protocol, values: Mapping[str, Any]) -> Protocol:
    """Return the protocol that shows the chosen experiments on the chosen background."""
    chosen = values["experiments"]
    ask = partial(read_experiments, experiments=chosen or EXPERIMENTS, background=values["background"])
    return replace(
        protocol,
        read=partial(ask, explicit=bool(chosen)),
        standalone=partial(ask, None, explicit=bool(chosen)),
    )


def read(data_root: Path) -> StimulusSet:
    """Read what the data root allows: experiments 1 and 2 need ``cue_conflict``, experiment 3 nothing."""
    return read_experiments(data_root, EXPERIMENTS, explicit=False)


class Measured(NamedTuple):
    """What is kept of one observer: its numbers, and its decisions by anchor, for the gain over random networks."""

    responses: Responses
    result: Result
    decisions: Mapping[str, Decided]


def _trials(responses: Responses, options: ScoreOptions) -> Trials:
    values = parse(OPTIONS, options.values, f"protocol {NAME!r}")
    return Trials(
        responses, Draw(0 if values["draw"] == "all" else values["draw"], values["replications"], options.seed)
    )


def trial_rows(responses: Responses, options: ScoreOptions) -> Iterator[TrialRows]:
    """Return a row for each anchor in each condition: the share of its triplets that was decided by shape."""
    if choices.COLUMN in responses.columns:
        yield from choices.trial_rows(responses)
        return
    for condition, measured in _trials(responses, options).default.items():
        decided = measured.tally.trials > 0
        shape, trials = measured.tally.shape[decided], measured.tally.trials[decided]
        yield TrialRows(condition, measured.images.rows[decided], {"value": shape / trials, "n": trials})


def contributions(responses: Responses, asked: Asked) -> Sums | None:
    """Return the bias as a ratio of sums over anchors; random initialisations are not compared."""
    if choices.COLUMN in responses.columns:
        return choices.contributions(responses, asked.condition)
    measured = None if responses.baseline_of else _trials(responses, asked.options).default.get(asked.condition)
    if measured is None:
        return None
    images = measured.images
    sources: dict[IntervalKind, Array] = {
        "shape_sources": images.clusters.shape_sources,
        "texture_sources": images.clusters.texture_sources,
    }
    return Sums.of_ratio(terms(measured.tally), images.clusters.images, sources, shared_terms(measured.tally))


def measure(responses: Responses, options: ScoreOptions) -> Measured:
    """Score one observer: every condition, every layer."""
    if choices.COLUMN in responses.columns:
        return Measured(responses, choices.measure(responses, options), {})
    values = parse(OPTIONS, options.values, f"protocol {NAME!r}")
    trials = _trials(responses, options)
    result = Result(tables={"by_class": class_table(trials)})
    similarities = [similarity for similarity in SIMILARITIES if similarity in values["similarity"]]
    add_biases(result, trials, similarities, options)
    return Measured(responses, result, decided(trials))


def together(everyone: Sequence[Measured], options: ScoreOptions) -> Result:
    """Join the observers' own numbers, each followed by what training added where there are baselines."""
    results = []
    for measured in everyone:
        gains = Result()
        name = measured.responses.observer
        baselines = [(m.responses, m.decisions) for m in everyone if m.responses.baseline_of == name]
        if baselines:
            add_gains(gains, measured.responses, measured.decisions, baselines, options)
        results += [measured.result, gains]
    return joined(results, options)


score = ByObserver(measure, together)


_PAPER = "Tartaglini et al. 2022, text of experiment 1"

PROTOCOL = Protocol(
    name=NAME,
    version=VERSION,
    title="Developmental triplets: which match is more like the anchor",
    needs=(("features",), ("choices",)),
    stimuli_from_recordings=choices.stimuli_from_recordings,
    read=read,
    views=(View("native", Preprocess.whole_image),),
    score=score,
    trials=TrialTable(trial_rows, value="share of the anchor's triplets decided by shape", whole=True),
    contributions=contributions,
    metrics=("triplet_shape_bias", "triplet_bias_gain"),
    headline=Headline(
        metric="triplet_shape_bias",
        conditions=(
            "experiment1/alpha=1.0",
            "experiment3/size=1.0/aligned",
            "experiment1/*",
            "experiment3/*",
            "experiment2/*",
            "novel/*",
            "choices",
        ),
        direction="shape",
        neutral=0.5,
    ),
    reference=(Reference("ResNet-50, ImageNet", "triplet_shape_bias", "experiment1/alpha=0.0", 0.02, _PAPER),),
    options=OPTIONS,
    without={
        "classes": "it compares features and asks for no class: a network with any classes is shown all triplets; "
        "leave the option out"
    },
    configure=configure,
    standalone=partial(read_experiments, None, EXPERIMENTS, explicit=False),
    baselines=True,
    layers=True,
    citation=Citation(
        text="Tartaglini, Vong & Lake (2022). A Developmentally-Inspired Examination of Shape versus Texture Bias in "
        "Machines. Proceedings of the Annual Meeting of the Cognitive Science Society, 44.",
        bibtex="""@inproceedings{tartaglini2022developmentally,
  title     = {A Developmentally-Inspired Examination of Shape versus Texture Bias in Machines},
  author    = {Alexa R. Tartaglini and Wai Keen Vong and Brenden M. Lake},
  booktitle = {Proceedings of the Annual Meeting of the Cognitive Science Society},
  volume    = {44},
  year      = {2022}
}""",
        url="https://escholarship.org/uc/item/6hj739kb",
        licence="cue-conflict images and silhouettes CC-BY-4.0; novel objects are drawn by cuebench",
    ),
)
