"""Recorded responses of people or models, read from a CSV or Parquet file or a folder of them.

Two formats. The public raw data of people and models, ``subj,session,trial,rt,object_response,category,condition,
imagename``; and predictions: a column ``stimulus`` (or ``image``, ``imagename``, ``id``) with ``logit_0…``,
``prob_0…``, a list column ``logits``, one column for each class, or ``decision``; optional ``observer`` (or
``subject``) and ``rt``. Each subject is an observer. A subject with a finite response time is a person, and so is one
in a column ``subject`` or ``subj`` of a file without the column ``rt``; several people are also pooled as the observer
``people``, which has several rows for a stimulus.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NoReturn

import numpy as np

from cuebench.errors import UserError, all_problems
from cuebench.labels import LabelMap, LabelSpace, label_space
from cuebench.observers.base import Adapter, Answers, Batch, LoadOptions, Observer, Spec
from cuebench.observers.recorded_files import (
    NO_ANSWER,
    Recording,
    check_all_classes,
    files_of,
    read_recording,
    stimulus_key,
)
from cuebench.types import Capability, ObserverKind, Stimulus

POOLED = "people"
Naming = Literal["user", "columns", "order"]
"""What says which classes logits stand for: the user, the columns of the file, or their number and order."""


@dataclass(frozen=True)
class RecordedObserver:
    """Answers from the rows of a file; a stimulus that was not recorded has no answer."""

    name: str
    kind: ObserverKind
    fingerprint: str
    labels: LabelSpace | None
    names: tuple[str, ...]
    columns: Mapping[str, np.ndarray[Any, Any]]
    preprocess: None = None
    file: Path | None = None
    naming: Naming = "user"
    notes: tuple[str, ...] = ()

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What the file holds."""
        known: tuple[Capability, ...] = ("logits", "decisions")
        return frozenset(c for c in known if c in self.columns)

    @cached_property
    def _rows(self) -> dict[str, list[int]]:
        """Key of a stimulus → rows. Recorded folders may be left out where that is not ambiguous."""
        rows: dict[str, list[int]] = {}
        for row, name in enumerate(self.names):
            rows.setdefault(stimulus_key(name), []).append(row)
        short: dict[str, list[str]] = {}
        for key in rows:
            short.setdefault(key.rpartition("/")[2], []).append(key)
        return {s: rows[keys[0]] for s, keys in short.items() if len(keys) == 1} | rows

    def among(self, targets: Sequence[str], members: LabelMap | None = None, space: str = "") -> RecordedObserver:
        """Return the same observer; logits that nobody named stand for the classes of one protocol's stimuli.

        Parameters
        ----------
        targets : sequence of str
            The classes.
        members : LabelMap, optional
            What each of them is made of in a larger label space: the recorded one may be that.
        space : str
            Not used: what was recorded is in one label space.

        Raises
        ------
        UserError
            The logits are not those of these classes.
        """
        if self.naming == "user" or self.labels is None or self.file is None:
            return self
        if self.naming == "order":
            size = len(self.labels)
            return replace(self, labels=_guess(size, tuple(targets)) or _raise_unnamed(self.file, size))
        if members is None or members.resolve(self.labels).uncovered:
            known = [n for n in targets if self.labels.find(n) is not None]
            check_all_classes(self.file, LabelSpace("targets", tuple(targets)), known)
        return self

    def check_shown(self, stimuli: Sequence[Stimulus]) -> None:
        """Raise where nothing of what was recorded is among the stimuli."""
        if stimuli and not any(self._find(s) for s in stimuli):
            raise UserError(
                f"{self.name} has answered none of the {len(stimuli):,} stimuli: it was shown "
                f"{', '.join(map(repr, self.stimulus_names()[:3]))} …, and these are {stimuli[0].id!r} …",
                "names must agree but for folders and endings; is it the recording of another experiment?",
            )

    def stimulus_names(self) -> Sequence[str]:
        """Return the names of the images as recorded, each once, in the order of the file."""
        return list(dict.fromkeys(self.names))

    def respond(self, batch: Batch, needs: Sequence[Capability]) -> Answers:
        """Return the recorded rows of the batch; ``stimulus`` is the position of each in the batch."""
        lacking = [n for n in needs if n not in self.capabilities]
        if lacking:
            has = ", ".join(sorted(self.capabilities))
            raise UserError(f"observer {self.name!r} has no {lacking[0]}; the recorded file has {has}")
        found = [self._find(s) for s in batch.stimuli]
        rows = np.array([r for rs in found for r in rs], dtype=np.intp)
        position = np.array([i for i, rs in enumerate(found) for _ in rs], dtype=np.intp)
        return {"stimulus": position, **{name: values[rows] for name, values in self.columns.items()}}

    def _find(self, stimulus: Stimulus) -> list[int]:
        for name in (stimulus.id, stimulus.path):
            rows = self._rows.get(stimulus_key(name)) if name else None
            if rows:
                return rows
        return []


def load(spec: Spec, options: LoadOptions) -> list[Observer]:
    """Read a file or folder: one observer for each subject, and the pooled people last."""
    chosen = spec.take(labels="", kind="", values="", name="")
    _check_choice(spec, "kind", chosen["kind"], ("person", "model"))
    _check_choice(spec, "values", chosen["values"], ("logits", "probabilities"))
    named = label_space(chosen["labels"]) if chosen["labels"] else None
    classes = named or (LabelSpace("targets", options.targets) if options.targets else None)
    # The targets are those of all protocols of the run; the file may be about one of them.
    files, whole = files_of(Path(spec.body).expanduser()), named is not None
    recordings = [read_recording(f, classes, chosen["values"], whole=whole) for f in files]
    _check_one_format(spec, recordings)
    _check_repeats(recordings)
    if named is None:
        _check_known_responses(spec, recordings, options.targets)
    labels = _labels_of(recordings, named, options.targets)
    subjects = sorted({str(s) for r in recordings for s in r.subjects})
    if chosen["name"] and len(subjects) > 1:
        raise UserError(f"observer {spec.text!r}: ?name= but {len(subjects)} subjects", "leave ?name= out")
    observers = [_observer(s, recordings, labels, chosen, classes) for s in subjects]
    people = [o.name for o in observers if o.kind == "person"]
    pool = [_pooled(people, observers)] if len(people) > 1 else []
    return [*observers, *pool]


def _observer(
    subject: str,
    recordings: Sequence[Recording],
    labels: LabelSpace | None,
    chosen: Mapping[str, str],
    classes: LabelSpace | None,
) -> RecordedObserver:
    own = [(r, np.flatnonzero(r.subjects == subject)) for r in recordings if subject in r.subjects]
    names = tuple(str(n) for r, rows in own for n in r.names[rows])
    rt = np.concatenate([r.rt[rows] for r, rows in own])
    seems_one = bool(np.isfinite(rt).any()) or all(r.people for r, _ in own)
    is_person = chosen["kind"] == "person" or (not chosen["kind"] and seems_one)
    columns: dict[str, np.ndarray[Any, Any]] = {"rt": rt} if is_person else {}
    for name in ("logits", "decisions"):
        parts = [getattr(r, name) for r, _ in own]
        if all(p is not None for p in parts):
            columns[name] = np.concatenate([p[rows] for p, (_, rows) in zip(parts, own)])
    # The raw bytes decide, and what the options make of them: the same folder read otherwise is another observer.
    space = (labels.name, labels.names, labels.ids) if labels else ()
    options = {k: v for k, v in chosen.items() if k != "name"}
    identity = repr(([r.digest for r, _ in own], subject, space, sorted(options.items())))
    return RecordedObserver(
        name=chosen["name"] or subject,
        kind="person" if is_person else "model",
        fingerprint=hashlib.sha256(identity.encode()).hexdigest(),
        labels=labels,
        names=names,
        columns=columns,
        file=own[0][0].file,
        naming="user" if chosen["labels"] else "columns" if own[0][0].classes else "order",
        notes=_unknown_words(columns, classes),
    )


def _unknown_words(columns: Mapping[str, np.ndarray[Any, Any]], classes: LabelSpace | None) -> tuple[str, ...]:
    """Say which answers are no class: they count as undecided, but may be slips of the pen."""
    if classes is None or "decisions" not in columns or "logits" in columns:
        return ()
    words, counts = np.unique(columns["decisions"].astype(np.str_), return_counts=True)
    found = {str(w): int(n) for w, n in zip(words, counts) if w != NO_ANSWER and classes.find(str(w)) is None}
    if not found:
        return ()
    shown = ", ".join(map(repr, list(found)[:3])) + (" …" if len(found) > 3 else "")
    return (f"{sum(found.values()):,} answers are no class of the stimuli ({shown}): undecided",)


def _pooled(people: Sequence[str], observers: Sequence[RecordedObserver]) -> RecordedObserver:
    """Put the trials of all people below each other; ``subject`` says whose each row is."""
    own = [o for o in observers if o.name in set(people)]
    shared = [c for c in own[0].columns if all(c in o.columns for o in own)]
    columns = {c: np.concatenate([o.columns[c] for o in own]) for c in shared}
    columns["subject"] = np.concatenate([np.full(len(o.names), o.name) for o in own])
    taken = {o.name for o in observers}
    return RecordedObserver(
        name=POOLED if POOLED not in taken else f"{POOLED} (pooled)",
        kind="people",
        fingerprint=hashlib.sha256("|".join(o.fingerprint for o in own).encode()).hexdigest(),
        labels=own[0].labels,
        names=tuple(n for o in own for n in o.names),
        columns=columns,
        file=own[0].file,
        naming=own[0].naming,
    )


def _labels_of(
    recordings: Sequence[Recording], named: LabelSpace | None, targets: tuple[str, ...]
) -> LabelSpace | None:
    """Return what the logits stand for: what the user says, the column names, or the one space of that size."""
    kinds = {(r.logits.shape[1], r.classes): r for r in recordings if r.logits is not None}
    if not kinds:
        return named
    if len(kinds) > 1:
        ((a, _), first), ((b, _), second) = list(kinds.items())[:2]
        other = f"{b}" if a != b else f"{b} of other classes"
        raise UserError(f"{first.file} has {a} logits, {second.file} has {other}", "give each model its own spec")
    (size, columns), recording = next(iter(kinds.items()))
    space = named or (LabelSpace("targets", columns) if columns else _guess(size, targets))
    if space is None and size < len(targets):
        space = LabelSpace(f"{size} unnamed classes", tuple(f"logit_{i}" for i in range(size)))  # of one protocol
    if space is None:
        _raise_unnamed(recording.file, size)
    if len(space) != size:
        raise UserError(
            f"{recording.file}: {size} logits in each row, but the label space {space.name!r} has {len(space)} classes",
            "write all logits, or name the right label space with ?labels=",
        )
    return space


def _guess(size: int, targets: tuple[str, ...]) -> LabelSpace | None:
    """1,000 logits are ImageNet's, and as many as there are targets are theirs; anything else is not guessed."""
    if size == len(targets):
        return LabelSpace("targets", targets)
    return label_space("imagenet1k") if size == 1000 else None


def _raise_unnamed(file: Path, size: int) -> NoReturn:
    raise UserError(
        f"{file}: {size} logits, but nothing says which classes they are",
        f"name the label space: recorded:{file}?labels=FILE.json (or imagenet1k)",
    )


def _check_choice(spec: Spec, option: str, value: str, accepted: Sequence[str]) -> None:
    if value and value not in accepted:
        raise UserError(f"observer {spec.text!r}: {option}={value!r}", f"accepted: {', '.join(accepted)}")


def _check_one_format(spec: Spec, recordings: Sequence[Recording]) -> None:
    forms = {(r.format, r.logits is not None): r.file for r in recordings}
    if len(forms) > 1:
        said = [f"{file.name}: {form}{' with logits' if logits else ''}" for (form, logits), file in forms.items()]
        raise all_problems(f"{spec.body} mixes formats", said, "put each format in its own folder and name both")


def _check_repeats(recordings: Sequence[Recording]) -> None:
    seen: dict[tuple[str, str], str] = {}
    twice = []
    for recording in recordings:
        for row, (subject, name) in enumerate(zip(recording.subjects, recording.names)):
            place, key = recording.where(row), (str(subject), stimulus_key(str(name)))
            if key in seen:
                twice.append(f"{key[0]} answered {key[1]!r} at {seen[key]} and again at {place}")
            seen.setdefault(key, place)
    if twice:
        raise all_problems("repeated trials", twice, "keep one row for each subject and stimulus")


def _check_known_responses(spec: Spec, recordings: Sequence[Recording], targets: tuple[str, ...]) -> None:
    """Stop where *no* response of a file is a class of the stimuli: it then belongs to another experiment.

    Single unknown responses stay: an answer outside the classes is an undecided trial, and is counted as one.
    """
    space = LabelSpace("targets", targets)
    for recording in recordings:
        if not targets or recording.decisions is None or recording.logits is not None:
            continue
        answers = sorted({str(d) for d in recording.decisions} - {NO_ANSWER})
        if answers and all(space.find(a) is None for a in answers):
            raise UserError(
                f"{recording.file}: no response is a class of the stimuli; found {', '.join(answers[:6])}",
                f"the classes are {', '.join(targets)}; for decisions in another label space write "
                f"{spec.text}?labels=NAME",
            )


ADAPTER = Adapter(
    load=load,
    form="recorded:PATH[?labels=SPACE][&kind=person|model][&values=logits|probabilities][&name=NAME]",
    examples=("recorded:humans/", "recorded:predictions.parquet?labels=imagenet1k"),
)
