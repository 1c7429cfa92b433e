"""Developmental triplets (Tartaglini et al. 2022): is the same shape or the same texture more like the anchor?

The one protocol for any network with features, trained or not, with labels or without. Experiment 1 fades the
background of the cue-conflict images, experiment 2 varies the size and place of the objects, experiment 3 shows novel
objects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from cuebench.errors import UserError, did_you_mean
from cuebench.metrics.triplets import SIMILARITIES, Similarity
from cuebench.observers.preprocess import Preprocess
from cuebench.protocols.base import Protocol, Result, ScoreOptions, View
from cuebench.protocols.triplets.scores import ALL_SIMILARITIES, NAME, VERSION, Scorer, class_table
from cuebench.protocols.triplets.stimuli import EXPERIMENTS
from cuebench.protocols.triplets.stimuli import read as read_experiments
from cuebench.protocols.triplets.trials import Choice, Trials
from cuebench.responses.table import Responses
from cuebench.stimuli.sources.novel_object import BACKGROUNDS
from cuebench.types import Citation, Reference, StimulusSet

SETTINGS = {"experiments": "", "background": "white", "draw": "28", "replications": "3", "similarity": ALL_SIMILARITIES}
"""What ``--set triplets.NAME=VALUE`` can change, and the defaults (experiments: all that there is data for)."""


def configure(settings: Mapping[str, str]) -> Protocol:
    """Return the protocol that shows what the settings ask for; wrong ones fail here, before anything is spent."""
    given = ScoreOptions(settings=settings).of(NAME, **SETTINGS)
    _choice(given, 0), _similarities(given)
    chosen = [e.strip() for e in given["experiments"].split(",") if e.strip()]
    for one in chosen:
        if one not in EXPERIMENTS:
            raise did_you_mean("experiment", one, EXPERIMENTS)
    if given["background"] not in BACKGROUNDS:
        raise did_you_mean("background", given["background"], BACKGROUNDS)
    ask = partial(read_experiments, experiments=chosen or list(EXPERIMENTS), background=given["background"])
    alone = partial(ask, None, explicit=bool(chosen))
    return replace(PROTOCOL, read=partial(ask, explicit=bool(chosen)), standalone=alone)


def read(data_root: Path) -> StimulusSet:
    """Read what the data root allows: experiments 1 and 2 need ``cue_conflict``, experiment 3 nothing."""
    return read_experiments(data_root, list(EXPERIMENTS), explicit=False)


def score(responses: Sequence[Responses], options: ScoreOptions) -> Result:
    """Score all observers: every condition, every layer, and what training added where there are baselines."""
    given = options.of(NAME, **SETTINGS)
    choice, similarities = _choice(given, options.seed), _similarities(given)
    everyone = [Trials(r, choice) for r in responses]
    rows = []
    for trials in everyone:
        scorer = Scorer(trials, options, similarities)
        rows += list(scorer.rows())
        baselines = [t for t in everyone if t.responses.baseline_of == trials.responses.observer]
        rows += list(scorer.against(baselines)) if baselines else []
    return Result(rows, {"by_class": class_table(everyone)})


def _choice(given: Mapping[str, str], seed: int) -> Choice:
    numbers = {}
    for key, text in (("draw", given["draw"]), ("replications", given["replications"])):
        if key == "draw" and text == "all":
            numbers[key] = 0
        elif text.isdigit() and int(text) > 0:
            numbers[key] = int(text)
        else:
            raise UserError(
                f"triplets.{key}={text!r}", "a whole number above 0" + (", or all" if key == "draw" else "")
            )
    return Choice(numbers["draw"], numbers["replications"], seed)


def _similarities(given: Mapping[str, str]) -> tuple[Similarity, ...]:
    chosen = [s.strip() for s in given["similarity"].split(",") if s.strip()]
    for one in chosen:
        if one not in SIMILARITIES:
            raise did_you_mean("similarity", one, SIMILARITIES)
    return tuple(s for s in SIMILARITIES if s in chosen)


_PAPER = "Tartaglini et al. 2022, text of experiment 1"

PROTOCOL = Protocol(
    name=NAME,
    version=VERSION,
    title="Developmental triplets: which match is more like the anchor",
    needs=(("features",),),
    read=read,
    views=(View("native", Preprocess.whole_image),),
    score=score,
    metrics=("triplet_shape_bias", "triplet_bias_gain"),
    reference=(Reference("ResNet-50, ImageNet", "triplet_shape_bias", "experiment1/alpha=0.0", 0.02, _PAPER),),
    options=SETTINGS,
    configure=configure,
    standalone=partial(read_experiments, None, list(EXPERIMENTS), explicit=False),
    baselines=True,
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
