"""What observers answered to single stimuli, read from the stored answers of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from cuebench.arrays import Array
from cuebench.errors import UserError
from cuebench.labels import LabelMap, LabelSpace, ResolvedMap, label_map, softmax
from cuebench.labels.decisions import NONE, full_space, partial_space
from cuebench.labels.ranks import best_ranks
from cuebench.protocols.correctness import ANSWER
from cuebench.reports.html.material import Run, declared
from cuebench.responses.job import JobRecord
from cuebench.responses.store import Shards, batches
from cuebench.tables.trials import NO_ANSWER
from cuebench.types import Stimulus, StimulusSet

TOP = 5
"""Classes of an observer's own label space that are shown for an answer."""
UNDECIDED = frozenset({"", "na", "nan", "none"})
"""Recorded words that stand for no answer."""


class Answer(NamedTuple):
    """The answer of one observer to one stimulus.

    Parameters
    ----------
    decision : str
        The class that was decided for; empty: none.
    outcome : str
        ``shape``, ``texture`` or ``other`` where the two cues are in conflict; else ``correct`` or ``wrong``; ``none``
        where there is no answer.
    top : sequence of (str, float)
        The best classes of the observer's own label space with their probabilities; of people, how many gave each
        answer as a share.
    rank : int
        Rank of the right class in the observer's whole label space; 0: not known.
    people : int
        How many people answered; 0: it is the answer of one observer.
    """

    decision: str
    outcome: str
    top: Sequence[tuple[str, float]] = ()
    rank: int = 0
    people: int = 0


class Space(NamedTuple):
    """The classes that answers are given in: the observer's own, and those of the stimuli where they differ.

    ``whole``: the protocol looks at the first answer among all classes, not at the best one among the stimuli's own.
    """

    labels: LabelSpace | None
    targets: LabelMap | None
    resolved: ResolvedMap | None
    whole: bool

    @classmethod
    def of(cls, job: JobRecord, stimuli: StimulusSet) -> Space:
        """Return the spaces of a job."""
        recorded = job.labels
        labels = LabelSpace(recorded["name"], tuple(recorded["names"]), tuple(recorded["ids"])) if recorded else None
        part = declared(job.protocol)
        source = stimuli.targets or (part.targets and {name: [name] for name in part.targets})
        targets = label_map(source) if source else None
        resolved = targets.resolve(labels) if targets and labels else None
        return cls(labels, targets, resolved, bool(part and part.answers_in))


def answers_of(
    run: Run, job: JobRecord, stimuli: StimulusSet, wanted: Collection[str], *, brief: bool = False
) -> dict[str, Answer]:
    """Return stimulus → answer of one observer, for the wanted stimuli; only the files that hold them are read.

    Answers that are no classes (features, summaries of masks) give nothing, and so do stimuli without an answer.

    Parameters
    ----------
    run, job, stimuli
        Whose answers, to what.
    wanted : collection of str
        Ids of stimuli.
    brief : bool
        Decisions and outcomes only, without the best classes and ranks.
    """
    record = run.scores.record
    place = record.options.responses_in(run.folder) / job.folder
    stored = Shards.of_key(place, job.key)
    space = Space.of(job, stimuli)
    answers: dict[str, Answer] = {}
    for _, batch in batches(stimuli.stimuli, record.options.shard_size):
        if not any(s.id in wanted for s in batch):
            continue
        try:
            columns, _ = stored.read_logits(batch)
        except UserError:  # a missing or damaged file: the scores were made before that, and are not concerned
            continue
        positions = columns.pop("stimulus")
        rows = np.array([i for i, p in enumerate(positions) if batch[int(p)].id in wanted], np.intp)
        if len(rows):
            shown = [batch[int(positions[i])] for i in rows]
            # An observer may have given more than it was asked for, which nobody scored.
            asked = {name: values[rows] for name, values in columns.items() if name in (*job.needs, ANSWER)}
            answers |= _answers(asked, shown, space, brief)
    return answers


def _answers(columns: Mapping[str, Array], shown: Sequence[Stimulus], space: Space, brief: bool) -> dict[str, Answer]:
    if "logits" in columns and space.labels is not None:
        return dict(zip((s.id for s in shown), _from_logits(columns["logits"], shown, space, brief)))
    if ANSWER in columns:
        names = _names(columns[ANSWER], space)
    elif "decisions" in columns:
        names = ["" if str(d).lower() in UNDECIDED else str(d) for d in columns["decisions"]]
    else:
        return {}
    by_stimulus: dict[str, list[str]] = {}
    for stimulus, name in zip(shown, names):
        by_stimulus.setdefault(stimulus.id, []).append(name)
    known = {s.id: s for s in shown}
    return {key: _from_names(words, known[key], space) for key, words in by_stimulus.items()}


def _from_logits(logits: Array, shown: Sequence[Stimulus], space: Space, brief: bool) -> list[Answer]:
    """Return the answer to each stimulus: decision, best classes of the whole space, rank of the right one."""
    assert space.labels is not None
    names = space.labels.names
    first = [names[int(best)] for best in logits.argmax(axis=1)]
    decided = first
    if space.resolved is not None:
        codes = full_space(logits, space.resolved) if space.whole else partial_space(logits, space.resolved)
        decided = [space.resolved.names[c] if c != NONE else name for c, name in zip(codes, first)]
    outcomes = [_outcome(decision, s, space) for decision, s in zip(decided, shown)]
    if brief:
        return [Answer(decision, outcome) for decision, outcome in zip(decided, outcomes)]
    probabilities = softmax(logits)
    best = np.argsort(-probabilities, axis=1, kind="stable")[:, :TOP]
    top = [[(names[j], float(p[j])) for j in row] for row, p in zip(best, probabilities)]
    ranks = _ranks(logits, shown, space.resolved) if space.resolved is not None else [0] * len(shown)
    return [Answer(*parts) for parts in zip(decided, outcomes, top, ranks)]


def _ranks(logits: Array, shown: Sequence[Stimulus], resolved: ResolvedMap) -> list[int]:
    """Return the rank of the class of the stimulus where it has one only, which the observer can answer; else 0."""
    position = {name: i for i, name in enumerate(resolved.names)}
    truth = np.array([position.get(t, NONE) if len(c := _classes(s)) == 1 and (t := c[0]) else NONE for s in shown])
    answered = np.array([len(members) > 0 for members in resolved.members])
    known = (truth != NONE) & answered[truth]
    ranks = np.zeros(len(shown), int)
    if known.any():
        ranks[known] = best_ranks(logits[known], truth[known], resolved.members)
    return [int(rank) for rank in ranks]


def _names(codes: Array, space: Space) -> list[str]:
    """Return the classes that stored positions stand for."""
    if codes.dtype.kind in "OU":
        return ["" if str(c).lower() in UNDECIDED else str(c) for c in codes]
    names = space.targets.names if space.targets else space.labels.names if space.labels else ()
    return [names[int(c)] if 0 <= c < len(names) else "" for c in codes]


def _from_names(words: Sequence[str], stimulus: Stimulus, space: Space) -> Answer:
    """Return one answer from those of one observer or of several people."""
    counts = Counter(words).most_common()
    decision = counts[0][0]
    if len(words) == 1:
        return Answer(decision, _outcome(decision, stimulus, space))
    top = [(word or "no answer", count / len(words)) for word, count in counts[:TOP]]
    return Answer(decision, _outcome(decision, stimulus, space), top, people=len(words))


def _classes(stimulus: Stimulus) -> list[str]:
    return list(dict.fromkeys(c for c in (stimulus.label, stimulus.shape, stimulus.texture) if c not in ("", "-")))


def _outcome(decision: str, stimulus: Stimulus, space: Space) -> str:
    if not decision:
        return NO_ANSWER
    shape, texture = stimulus.shape, stimulus.texture
    if not stimulus.label and shape and texture and shape != texture:
        return "shape" if decision == shape else "texture" if decision == texture else "other"
    right = {name for c in _classes(stimulus) for name in (c, class_name(c, space.labels))}
    return "correct" if decision in right else "wrong"


def class_name(label: str, labels: LabelSpace | None) -> str:
    """Return the name of a class that a manifest may give by its id or number."""
    position = labels.find(label) if labels else None
    return labels.names[position] if labels and position is not None else label


def first_jobs(run: Run, protocol: str) -> list[JobRecord]:
    """Return one job for each observer of a protocol: the first way in which the stimuli were shown."""
    jobs: dict[str, JobRecord] = {}
    for job in run.scores.record.jobs:
        if job.protocol == protocol and not job.baseline_of:
            jobs.setdefault(job.observer, job)
    return list(jobs.values())
