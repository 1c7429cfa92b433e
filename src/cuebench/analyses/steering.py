"""Steering: how far a prompt moves the shape bias of a model that answers in words, and what the order of options does.

The shape bias under the neutral prompt, under one that asks for the shape and one that asks for the texture; the span
between the last two is how far words can steer what the model sees with (Gavrikov et al. 2025). All of it from stored
answers to the same images, so every difference is paired: an image that is easy under all prompts cancels.

References
----------
Gavrikov et al. 2025, Can We Talk Models Into Seeing the World Differently?, ICLR; arXiv:2403.09193
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cuebench.arrays import Array, Bools
from cuebench.errors import UserError
from cuebench.metrics.cue_conflict import Outcomes, shape_bias
from cuebench.observers.adapters.chat import SPENDING
from cuebench.observers.base import Spec
from cuebench.observers.chat.prompts import NEUTRAL, SHAPE, STEERING, TEXTURE
from cuebench.responses.job import JobRecord
from cuebench.responses.table import Responses
from cuebench.runs.answers import StoredAnswers
from cuebench.statistics.clustered import Sums
from cuebench.statistics.estimates import ratio_estimates
from cuebench.statistics.intervals import KINDS, Clusters, undefined
from cuebench.statistics.paired import paired
from cuebench.statistics.ratios import Terms
from cuebench.tables.decide import condense, decide
from cuebench.tables.engine import first_space
from cuebench.tables.trials import Trials
from cuebench.types import Estimate, IntervalKind

_NOT_IDENTITY = frozenset({"prompt", "shuffle", "name", "url", *SPENDING})
"""Options of a spec that may differ between the answers of one model."""


@dataclass(frozen=True)
class Order:
    """Another order of the options: what it does to the shape bias, and how many answers stay the same."""

    observer: str
    effect: Estimate
    same_answer: Estimate


@dataclass(frozen=True)
class Steered:
    """What prompts do to one model.

    Parameters
    ----------
    model, protocol : str
        Which.
    images : int
        Conflict images that it answered under all prompts.
    bias : mapping of str to Estimate
        Prompt → shape bias.
    towards_shape, towards_texture, span : Estimate or None
        Shape bias under the shape prompt minus the neutral one; neutral minus texture prompt; shape minus texture.
    orders : tuple of Order
        Of other orders of the options, against the order of the paper.
    """

    model: str
    protocol: str
    images: int
    bias: Mapping[str, Estimate]
    towards_shape: Estimate | None = None
    towards_texture: Estimate | None = None
    span: Estimate | None = None
    orders: tuple[Order, ...] = field(default_factory=tuple)

    def rows(self) -> list[dict[str, Any]]:
        """Return everything as flat records: quantity, value, its widest interval, n."""
        quantities = [(f"shape bias, {prompt}", estimate) for prompt, estimate in self.bias.items()]
        quantities += [
            (name, estimate)
            for name, estimate in (
                (f"{SHAPE} − {NEUTRAL}", self.towards_shape),
                (f"{NEUTRAL} − {TEXTURE}", self.towards_texture),
                (f"span, {SHAPE} − {TEXTURE}", self.span),
            )
            if estimate is not None
        ]
        for order in self.orders:
            quantities += [(f"order of options: {order.observer}", order.effect)]
            quantities += [(f"same answer: {order.observer}", order.same_answer)]
        return [
            {"model": self.model, "protocol": self.protocol, "quantity": name, **_record(estimate)}
            for name, estimate in quantities
        ]


def _record(estimate: Estimate) -> dict[str, Any]:
    widest = estimate.widest
    low, high, kind = (widest.low, widest.high, widest.kind) if widest else (None, None, "")
    intervals = [asdict(interval) for interval in estimate.intervals]
    return {"value": estimate.value, "low": low, "high": high, "kind": kind, "n": estimate.n, "intervals": intervals}


class _Prompted(NamedTuple):
    """Answers of a model under one prompt."""

    prompt: str
    shuffle: int
    observer: str
    responses: Responses


def steering(
    runs: str | Path | Sequence[str | Path],
    *,
    protocol: str = "",
    prompts: Mapping[str, str] | None = None,
) -> list[Steered]:
    """Compare the answers of models under several prompts.

    Parameters
    ----------
    runs : path or several
        Run folders with answers under at least two of the prompts ``vqa``, ``vqa_shape``, ``vqa_texture``, or under one
        of them in several orders of the options (``?shuffle=SEED``).
    protocol : str
        Whose answers; default: every protocol with answers under several prompts.
    prompts : mapping of str to str, optional
        Prompt → observer, for recordings, whose names do not say what was asked.
    """
    folders = [runs] if isinstance(runs, (str, Path)) else list(runs)
    by_model = _answers_by_model([Path(folder).expanduser() for folder in folders], protocol, prompts or {})
    results = [_steered(model, name, prompted) for (model, name), prompted in by_model.items() if len(prompted) > 1]
    if not results:
        raise UserError(
            "no model has answered under several prompts",
            "run the same model with ?prompt=vqa, ?prompt=vqa_shape and ?prompt=vqa_texture into one folder; for "
            "recordings name them: --neutral NAME --shape NAME --texture NAME",
        )
    return results


def _answers_by_model(
    folders: Sequence[Path], protocol: str, prompts: Mapping[str, str]
) -> dict[tuple[str, str], list[_Prompted]]:
    """Return (model, protocol) → its answers under each prompt."""
    by_observer = {observer: prompt for prompt, observer in prompts.items()}
    by_model: dict[tuple[str, str], list[_Prompted]] = {}
    known: set[str] = set()
    for folder in folders:
        stored = StoredAnswers(folder)
        for job in stored.jobs():
            known.add(job.observer)
            if job.baseline_of or (protocol and job.protocol != protocol):
                continue
            if prompts:
                model, prompt, shuffle = "recorded", by_observer.get(job.observer, ""), 0
            else:
                model, prompt, shuffle = _asked(job)
            if prompt:
                answers = stored.whole(job, condensed=False)
                by_model.setdefault((model, job.protocol), []).append(_Prompted(prompt, shuffle, job.observer, answers))
    missing = [name for name in by_observer if name not in known]
    if missing:
        raise UserError(f"the runs have no observer {missing[0]!r}", f"there are: {', '.join(sorted(known))}")
    return by_model


def _asked(job: JobRecord) -> tuple[str, str, int]:
    """Return model, prompt and seed of the order of options of an observer; an empty prompt: it was not prompted."""
    try:
        spec = Spec.parse(job.spec)
    except UserError:  # an observer that was passed as an object
        return "", "", 0
    asked = spec.scheme == "chat" or (spec.scheme == "transformers" and "prompt" in spec.options)
    prompt = spec.options.get("prompt", NEUTRAL) if asked else ""
    kept = "&".join(f"{k}={v}" for k, v in spec.options.items() if k not in _NOT_IDENTITY)
    return f"{spec.scheme}:{spec.body}{'?' * bool(kept)}{kept}", prompt, int(spec.options.get("shuffle", 0))


# ------------------------------------------------------------------------------------------------ one model


class _Paired(NamedTuple):
    """The same images under every prompt: how each was answered, and what they share."""

    outcomes: list[Outcomes]
    answers: list[Array]
    clusters: Clusters


def _steered(model: str, protocol: str, prompted: Sequence[_Prompted]) -> Steered:
    answers = _pair(model, protocol, prompted)
    bias = ratio_estimates(_bias_terms(answers), answers.clusters, KINDS)
    first: dict[str, int] = {}
    for position, asked in enumerate(prompted):
        if asked.prompt not in first or (prompted[first[asked.prompt]].shuffle and not asked.shuffle):
            first[asked.prompt] = position
    by_prompt = {prompt: bias[first[prompt]] for prompt in sorted(first, key=_place)}
    orders = [
        Order(
            prompted[i].observer,
            _minus(answers, i, first[prompted[i].prompt]),
            _same(answers, i, first[prompted[i].prompt]),
        )
        for i in range(len(prompted))
        if i != first[prompted[i].prompt]
    ]
    neutral, shape, texture = (first.get(prompt) for prompt in STEERING)
    return Steered(
        model,
        protocol,
        len(answers.clusters.images),
        by_prompt,
        _minus(answers, shape, neutral) if shape is not None and neutral is not None else None,
        _minus(answers, neutral, texture) if neutral is not None and texture is not None else None,
        _minus(answers, shape, texture) if shape is not None and texture is not None else None,
        tuple(orders),
    )


def _place(prompt: str) -> tuple[int, str]:
    return (STEERING.index(prompt) if prompt in STEERING else len(STEERING)), prompt


def _pair(model: str, protocol: str, prompted: Sequence[_Prompted]) -> _Paired:
    """Return the answers to the conflict images that were answered under all prompts, in one order."""
    rows = []
    for answers in prompted:
        responses = answers.responses
        ids = responses.truth("id")
        if len(np.unique(ids)) < len(ids):
            raise UserError(f"{answers.observer} has several answers to an image", "steering compares single models")
        rows.append({str(name): row for row, name in enumerate(ids)})
    shared = [name for name in rows[0] if all(name in other for other in rows[1:])]
    places = [np.array([of[name] for name in shared], np.intp) for of in rows]
    trials = [_decided(answers.responses).only(place) for answers, place in zip(prompted, places)]
    all_outcomes = [t.cues for t in trials]
    conflict = all_outcomes[0].conflict if shared else np.zeros(0, bool)
    if not conflict.any():
        raise UserError(
            f"{model}: no image of {protocol} with the shape of one class and the texture of another was answered "
            "under all prompts",
            "steering needs such images, for example: -p cue_conflict",
        )
    truth = prompted[0].responses.truth
    sources = (truth(name)[places[0]][conflict] for name in ("id", "shape_source", "texture_source"))
    kept = [Outcomes(*(part[conflict] for part in outcome)) for outcome in all_outcomes]
    return _Paired(kept, [t.answer.texts()[conflict] for t in trials], Clusters(*sources))


def _decided(responses: Responses) -> Trials:
    """Return the trials of a model among the classes of the stimuli, or in the only space that its answers have."""
    trials = decide(responses.condensed(condense(responses.stimuli, responses.labels)))
    if not trials.space.words:
        raise UserError(f"{responses.observer} has no decisions", "steering needs a protocol with decisions")
    return trials.only(first_space(trials))


def _bias_terms(answers: _Paired) -> list[Terms]:
    assert shape_bias.terms is not None
    return [shape_bias.terms(outcome) for outcome in answers.outcomes]


def _same(answers: _Paired, first: int, second: int) -> Estimate:
    same: Bools = answers.answers[first] == answers.answers[second]
    (estimate,) = ratio_estimates([Terms(same, np.ones(len(same)))], answers.clusters, KINDS)
    return estimate


def _minus(answers: _Paired, first: int, second: int) -> Estimate:
    """Return the shape bias under one prompt minus that under another; what makes an image easy for both cancels."""
    shared: dict[IntervalKind, Array] = {kind: answers.clusters.of(kind) for kind in KINDS[1:3]}
    terms = _bias_terms(answers)
    images = np.arange(len(answers.clusters.images))
    difference = paired(*(Sums.of_ratio(terms[i], images, shared) for i in (first, second)))
    n = int(min(terms[i].denominator.sum() for i in (first, second)))
    intervals = difference.intervals or tuple(undefined(kind, difference.note) for kind in KINDS)
    return Estimate(difference.value, n, intervals)
