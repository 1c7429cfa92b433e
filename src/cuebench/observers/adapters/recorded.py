"""Recorded responses of people or models, read from a CSV or Parquet file or a folder of them.

Four formats. The public raw data of people and models, ``subj,session,trial,rt,object_response,category,condition,
imagename``; predictions: a column ``stimulus`` (or ``image``, ``imagename``, ``id``) with ``logit_0…``, ``prob_0…``, a
list column ``logits``, one column for each class, or ``decision``; and choices between the matches of triplets:
``anchor``, ``shape_match``, ``texture_match`` (or ``size_match``, ``colour_match``), ``choice``, optional
``condition``. The last two may have ``observer`` (or ``subject``), ``rt`` and ``session``. Each subject is an observer.
A subject in a column such as ``participant`` is a person, and so is one with a finite response time: in raw data, where
``subj`` names people and models, nothing else tells them apart. Several people are also pooled as the observer
``people``, which has several rows for a stimulus.

The folder ``raw-data`` of model-vs-human holds one folder of such files for each of its data sets; every person and
every model in it is an observer, with its trials of all data sets (``observers.model_vs_human``). ``subject-01`` of one
data set is somebody else than ``subject-01`` of another: nothing compares a person across data sets.

The export of a study (``cuebench study export``): every participant is a person; trials and people that the study's
rules exclude are left out, and notes count them. Where people answered two questions about an image, ``?task=`` chooses
one.

A column ``response`` may hold what a model wrote: letters of the options, in the order of the classes or of
``?options=``, or captions (``?prompt=caption``). It is then read as the answers of ``chat:`` models are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NoReturn

import numpy as np

from cuebench.arrays import Array
from cuebench.errors import UserError, all_problems
from cuebench.labels import LabelMap, LabelSpace, label_space
from cuebench.observers.adapters._options import LABELS, option_values, with_option
from cuebench.observers.base import Adapter, Answers, Batch, LoadOptions, Observer, ObserverBase, Spec
from cuebench.observers.chat.recorded import Wording, holds_words
from cuebench.observers.model_vs_human import PERSON, uncovered
from cuebench.observers.recorded_checks import (
    anonymous_note,
    check_known_responses,
    check_one_format,
    check_repeats,
    check_subjects,
    in_named_space,
)
from cuebench.observers.recorded_columns import same_words
from cuebench.observers.recorded_files import NO_ANSWER, Recording, files_of, read_recording
from cuebench.observers.recorded_names import StimulusIndex
from cuebench.observers.recorded_scores import check_all_classes
from cuebench.options import Option
from cuebench.reading import user_path
from cuebench.types import REMOVED, Capability, ObserverKind, Stimulus

POOLED = "people"
UNNAMED = "unnamed classes"
"""Of logits whose number says nothing yet: one protocol of the run will."""
UNTIMED = "no response times: taken for a model (?kind=person says otherwise)"
"""Note of a subject of raw data, in which people and models share a column."""
OPTIONS = {
    **LABELS,
    "kind": Option("", "who answered; default: by the columns, and by response times", choices=("person", "model")),
    "values": Option(
        "",
        "what the numbers are; default: by names and numbers",
        choices=("logits", "probabilities"),
    ),
    "name": Option("", "name of the observer, for a file of one subject"),
    "only": Option("", "leave the others out; pooled: all people as one", choices=("people", "models", "pooled")),
}
WORDED = {
    "prompt": Option("", "what the model was asked, where responses are words; default: lettered options",
                     choices=("vqa", "caption")),
    "options": Option((), "the lettered options in the order in which they were shown; default: that of the classes"),
}  # fmt: skip
STUDY = {"task": Option("", "export of a study: only this task, where people answered several about one image")}
_LATER = {**WORDED, **STUDY}
"""Options that are part of an observer's identity only where they are used: they came later than the others."""
Naming = Literal["user", "columns", "order"]
"""What says which classes logits stand for: the user, the columns of the file, or their number and order."""


@dataclass(frozen=True)
class RecordedObserver(ObserverBase):
    """Answers from the rows of a file; a stimulus that was not recorded has no answer."""

    name: str
    kind: ObserverKind
    fingerprint: str
    labels: LabelSpace | None
    names: tuple[str, ...]
    columns: Mapping[str, Array]
    preprocess: None = None
    file: Path | None = None
    naming: Naming = "user"
    notes: tuple[str, ...] = ()
    wording: Wording | None = None
    truths: Mapping[str, Array] = field(default_factory=dict)

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What the file holds."""
        possible: tuple[Capability, ...] = ("logits", "decisions", "choices")
        return frozenset(c for c in possible if c in self.columns)

    @cached_property
    def _by_person(self) -> list[StimulusIndex]:
        """Where the answers to a stimulus are, for each person of a pool."""
        persons = self.columns.get("subject", np.zeros(len(self.names), np.intp))
        places = [np.flatnonzero(persons == person) for person in dict.fromkeys(persons.tolist())]
        return [StimulusIndex([self.names[row] for row in rows], rows.tolist()) for rows in places]

    def among(self, targets: Sequence[str], members: LabelMap | None = None, space: str = "") -> RecordedObserver:
        """Return the same observer; logits without class names stand for the classes of one protocol's stimuli.

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
        if self.wording is not None:
            return self._reading(targets)
        if self.naming == "user" or self.labels is None or self.file is None:
            return self
        if self.naming == "order":
            size = len(self.labels)
            labels = _guess(size, tuple(targets)) or _raise_unnamed(self.file, size)
            return replace(self, labels=labels).check_answers()
        if members is None or members.resolve(self.labels).uncovered:
            covered = [n for n in targets if self.labels.find(n) is not None]
            check_all_classes(self.file, LabelSpace("targets", tuple(targets)), covered)
        return self

    def _reading(self, classes: Sequence[str]) -> RecordedObserver:
        """Return the same observer, its words read as answers with these classes."""
        assert self.wording is not None
        read = self.wording.read(classes)
        return replace(self, columns={**self.columns, **read.columns}, notes=read.notes)

    def check_shown(self, stimuli: Sequence[Stimulus]) -> None:
        """Raise where nothing of what was recorded is among the stimuli."""
        if stimuli and not any(index.all_of(s) for s in stimuli for index in self._by_person):
            raise UserError(
                f"{self.name} has answered none of the {len(stimuli):,} stimuli: it was shown "
                f"{', '.join(map(repr, self.stimulus_names()[:3]))} …, and these are {stimuli[0].id!r} …",
                "names must agree but for folders and endings; is it the recording of another experiment?",
            )

    def check_known(self, stimuli: Sequence[Stimulus]) -> None:
        """Raise where a person answered a stimulus under two names, or the file says another shape or texture of it."""
        problems = []
        for index in self._by_person:
            for stimulus, rows in index.repeated(stimuli):
                names = " and as ".join(repr(self.names[row]) for row in rows)
                problems.append(f"{self._who(rows[0])} answered {stimulus.id!r} as {names}")
        if problems:
            raise all_problems(
                f"repeated trials of {self.file}",
                problems,
                "keep one row for each subject and stimulus; two pictures of one name need their folders in the names "
                "of the stimuli, too",
            )
        for name, truths in self.truths.items():
            for stimulus in stimuli:
                known = getattr(stimulus, name)
                for row in self._find(stimulus) if known not in ("", REMOVED) else ():
                    if truths[row] and not same_words(str(truths[row]), known):
                        problems.append(f"{self.names[row]!r} has the {name} {str(truths[row])!r}, shown is {known!r}")
        if problems:
            raise all_problems(
                f"columns {' and '.join(self.truths)} of {self.file}",
                list(dict.fromkeys(problems)),
                "they say the classes of the stimuli that were shown: correct, rename or remove them",
            )

    def _who(self, row: int) -> str:
        return str(self.columns["subject"][row]) if "subject" in self.columns else self.name

    def check_answers(self) -> RecordedObserver:
        """Return the observer itself; raise where its decision and the largest of its logits are not one class."""
        logits, decisions = self.columns.get("logits"), self.columns.get("decisions")
        if logits is None or decisions is None or self.labels is None or self.labels.name.endswith(UNNAMED):
            return self
        words, place = np.unique(decisions.astype(np.str_), return_inverse=True)
        found = [self.labels.place(word) for word in words.tolist()]
        positions = np.array([-1 if i is None else i for i in found], np.intp)[place]
        inside = (positions >= 0) & (positions < logits.shape[1])
        chosen = np.take_along_axis(logits, np.where(inside, positions, 0)[:, None], axis=1)[:, 0]
        other = np.flatnonzero(~inside | (chosen < logits.max(axis=1)))
        if len(other):
            row = int(other[0])
            best = self.labels.names[int(logits[row].argmax())]
            raise UserError(
                f"{self.file}: the decision for {self.names[row]!r} is {str(decisions[row])!r}, and the largest of its "
                f"scores is that of {best!r} ({len(other):,} of {len(self.names):,} rows differ)",
                "keep the decisions or the scores, and rename or remove the other columns",
            )
        return self

    def stimulus_names(self) -> Sequence[str]:
        """Return the names of the images as recorded, each once, in the order of the file."""
        return list(dict.fromkeys(self.names))

    def respond(self, batch: Batch, needs: Sequence[Capability]) -> Answers:
        """Return the recorded rows of the batch; ``stimulus`` is the position of each in the batch."""
        missing = [n for n in needs if n not in self.capabilities]
        if missing:
            present = ", ".join(sorted(self.capabilities))
            raise UserError(f"observer {self.name!r} has no {missing[0]}; the recorded file has {present}")
        rows_of = [self._find(s) for s in batch.stimuli]
        rows = np.array([r for rs in rows_of for r in rs], dtype=np.intp)
        position = np.array([i for i, rs in enumerate(rows_of) for _ in rs], dtype=np.intp)
        return {"stimulus": position, **{name: values[rows] for name, values in self.columns.items()}}

    def _find(self, stimulus: Stimulus) -> list[int]:
        return [row for index in self._by_person for row in index.find(stimulus)]


def load(spec: Spec, options: LoadOptions) -> list[Observer]:
    """Read a file or folder: one observer for each subject, and the pooled people last."""
    values = option_values(spec, {**OPTIONS, **_LATER})
    named = label_space(values["labels"]) if values["labels"] else None
    classes = named or (LabelSpace("targets", options.targets) if options.targets else None)
    # The targets are those of all protocols of the run; the file may be about one of them.
    (files, notes), whole = files_of(user_path(spec.body)), named is not None
    recordings = _read_all(files, classes, values["values"], whole, values["task"])
    check_one_format(spec.body, recordings)
    check_subjects(recordings)
    check_repeats(recordings)
    in_words = named is None and holds_words(
        recordings, options.targets, values["prompt"], values["options"], kind=values["kind"]
    )
    if in_words:
        recordings = [replace(recording, unused=()) for recording in recordings]  # of a model
    elif named is not None:
        named, recordings = in_named_space(recordings, named)
        whose = f"the label space {named.name!r}"
        check_known_responses(recordings, named, whose, "write their names or ids, or their positions from 0")
    elif options.targets:
        hint = f"for names, or positions from 0, in another label space write {with_option(spec, 'labels=NAME')}"
        if any(recording.in_words for recording in recordings):
            hint += f"; for what a model wrote, {with_option(spec, 'prompt=vqa')} (or prompt=caption)"
        check_known_responses(recordings, LabelSpace("targets", options.targets), "the stimuli", hint)
    classes = named or classes
    labels = _labels_of(recordings, named, options.targets)
    subjects = sorted({str(s) for r in recordings for s in r.subjects})
    if values["name"] and len(subjects) > 1:
        raise UserError(f"observer {spec.text!r}: ?name= but {len(subjects)} subjects", "leave ?name= out")
    observers = [_observer(s, recordings, labels, values, classes).check_answers() for s in subjects]
    observers = _with_coverage(observers, recordings)
    if in_words:
        observers = [_in_words(observer, values, options.targets) for observer in observers]
    people = [o.name for o in observers if o.kind == "person"]
    left_out = tuple(note for r in recordings for note in r.notes.get("", ()))
    pool = [_pooled(people, observers, left_out)] if len(people) > 1 else []
    chosen = _chosen(values["only"], observers, pool)
    if not chosen:
        what = "models" if values["only"] == "models" else "people"
        raise UserError(f"{spec.body} holds no {what}", "leave ?only= out")
    return [replace(observer, notes=(*observer.notes, *notes)) for observer in chosen]


def _chosen(
    only: str, observers: Sequence[RecordedObserver], pool: Sequence[RecordedObserver]
) -> list[RecordedObserver]:
    """Return the observers that ``?only=`` leaves; a single person stands for the pool."""
    people = [o for o in observers if o.kind == "person"]
    if only == "models":
        return [o for o in observers if o.kind != "person"]
    if only == "pooled":
        return [*(pool or people)]
    return [*people, *pool] if only == "people" else [*observers, *pool]


def _read_all(
    files: Sequence[Path], classes: LabelSpace | None, values: str, whole: bool, task: str
) -> list[Recording]:
    """Read every file; where some cannot be read, one error names them all."""
    recordings, errors = list[Recording](), list[UserError]()
    for file in files:
        try:
            recordings.append(read_recording(file, classes, values, whole=whole, task=task))
        except UserError as error:
            errors.append(error)
    if len(errors) == 1:
        raise errors[0]
    if errors:
        hint = f"{errors[0].hint}; or move these files out of the folder"
        raise all_problems(f"{len(errors)} of {len(files)} files", [e.message for e in errors], hint)
    return recordings


def _with_coverage(observers: Sequence[RecordedObserver], recordings: Sequence[Recording]) -> list[RecordedObserver]:
    """Add to each model which of its files do not cover the trials that people saw in the same data set."""
    seen: dict[str, set[str]] = {}
    for observer in observers:
        for name in observer.names if observer.kind == "person" else ():
            seen.setdefault(name.partition("/")[0], set()).add(name)
    of_subject: dict[str, list[tuple[Recording, str]]] = {}
    for recording in recordings:
        subjects = dict.fromkeys(recording.subjects.tolist()) if recording.data_sets else {}
        for subject in subjects:
            of_subject.setdefault(subject, []).extend((recording, name) for name in recording.data_sets)
    checked = []
    for observer in observers:
        answered, files = set(observer.names), of_subject.get(observer.name, ()) if observer.kind == "model" else ()
        gaps = uncovered(seen, {(data_set, recording.file.name): answered for recording, data_set in files})
        if gaps:
            more = f" … and {len(gaps) - 3} more" if len(gaps) > 3 else ""
            note = f"files that do not cover the trials that people saw: {', '.join(gaps[:3])}{more}"
            observer = replace(observer, notes=(*observer.notes, note))
        checked.append(observer)
    return checked


def _observer(
    subject: str,
    recordings: Sequence[Recording],
    labels: LabelSpace | None,
    values: Mapping[str, Any],
    classes: LabelSpace | None,
) -> RecordedObserver:
    parts = [(r, np.flatnonzero(r.subjects == subject)) for r in recordings if subject in r.subjects]
    names = tuple(str(n) for r, rows in parts for n in r.names[rows])
    rt = np.concatenate([r.rt[rows] for r, rows in parts])
    raw = all(r.format == "raw data" for r, _ in parts)
    seems_person = (raw and bool(PERSON.fullmatch(subject))) or bool(np.isfinite(rt).any())
    seems_person = seems_person or all(r.people for r, _ in parts)
    said = {r.kinds.get(subject, "") for r, _ in parts}
    if len(said) == 1 and "" not in said:
        seems_person = said == {"person"}
    notes = () if seems_person or values["kind"] or not raw or said == {"model"} else (UNTIMED,)
    is_person = values["kind"] == "person" or (not values["kind"] and seems_person)
    columns: dict[str, Array] = {"rt": rt} if is_person else {}
    if is_person and all(r.sessions is not None for r, _ in parts):
        columns["session"] = np.concatenate([r.sessions[rows] for r, rows in parts if r.sessions is not None])
    for name in ("logits", "decisions", "choices"):
        arrays = [getattr(r, name) for r, _ in parts]
        if all(a is not None for a in arrays):
            columns[name] = np.concatenate([a[rows] for a, (_, rows) in zip(arrays, parts)])
    # The raw bytes decide, and what the options make of them: the same folder read otherwise is another observer.
    space = (labels.name, labels.names, labels.ids) if labels else ()
    options = {k: v for k, v in values.items() if k != "name" and (v or k not in _LATER)}
    identity = repr(([r.digest for r, _ in parts], subject, space, sorted(options.items())))
    cues = dict.fromkeys(cue for r, _ in parts for cue in r.truths)
    empty = np.array([""])
    return RecordedObserver(
        name=values["name"] or subject,
        kind="person" if is_person else "model",
        fingerprint=hashlib.sha256(identity.encode()).hexdigest(),
        labels=labels,
        names=names,
        columns=columns,
        file=parts[0][0].file,
        naming="user" if values["labels"] else "columns" if parts[0][0].classes else "order",
        truths={c: np.concatenate([r.truths.get(c, empty.repeat(len(r)))[rows] for r, rows in parts]) for c in cues},
        notes=(
            *_unknown_answers(columns, classes),
            *notes,
            *anonymous_note([r for r, _ in parts]),
            *(note for r, _ in parts for note in r.notes.get(subject, ())),
        ),
    )


def _in_words(observer: RecordedObserver, values: Mapping[str, Any], targets: Sequence[str]) -> RecordedObserver:
    """Return an observer whose decisions are what a model wrote."""
    wording = Wording(observer.columns["decisions"], values["prompt"], values["options"])
    identity = hashlib.sha256(f"{observer.fingerprint}|read {wording.version}".encode()).hexdigest()
    return replace(observer, wording=wording, fingerprint=identity)._reading(targets)


def _unknown_answers(columns: Mapping[str, Array], classes: LabelSpace | None) -> tuple[str, ...]:
    """Return a note of the answers that are no class: they count as undecided, but may be spelling mistakes."""
    if classes is None or "decisions" not in columns or "logits" in columns:
        return ()
    words, counts = np.unique(columns["decisions"].astype(np.str_), return_counts=True)
    unknown = {str(w): int(n) for w, n in zip(words, counts) if w != NO_ANSWER and classes.find(str(w)) is None}
    if not unknown:
        return ()
    shown = ", ".join(map(repr, list(unknown)[:3])) + (" …" if len(unknown) > 3 else "")
    return (f"{sum(unknown.values()):,} answers are no class of the stimuli ({shown}): undecided",)


def _pooled(
    people: Sequence[str], observers: Sequence[RecordedObserver], notes: tuple[str, ...] = ()
) -> RecordedObserver:
    """Return the trials of all people as one observer; the column ``subject`` names the person."""
    persons = [o for o in observers if o.name in set(people)]
    shared = [c for c in persons[0].columns if all(c in o.columns for o in persons)]
    columns = {c: np.concatenate([o.columns[c] for o in persons]) for c in shared}
    columns["subject"] = np.concatenate([np.full(len(o.names), o.name) for o in persons])
    taken = {o.name for o in observers}
    return RecordedObserver(
        name=POOLED if POOLED not in taken else f"{POOLED} (pooled)",
        kind="people",
        fingerprint=hashlib.sha256("|".join(o.fingerprint for o in persons).encode()).hexdigest(),
        labels=persons[0].labels,
        names=tuple(n for o in persons for n in o.names),
        columns=columns,
        file=persons[0].file,
        naming=persons[0].naming,
        truths={
            c: np.concatenate([o.truths[c] for o in persons])
            for c in persons[0].truths
            if all(c in o.truths for o in persons)
        },
        notes=notes,
    )


def _labels_of(
    recordings: Sequence[Recording], named: LabelSpace | None, targets: tuple[str, ...]
) -> LabelSpace | None:
    """Return what the logits stand for: the user's label space, the column names, or the only space of that size."""
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
        space = LabelSpace(f"{size} {UNNAMED}", tuple(f"logit_{i}" for i in range(size)))  # of one protocol
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


ADAPTER = Adapter(
    load=load,
    form="recorded:PATH[?labels=SPACE][&kind=person|model][&only=people|models|pooled][&values=logits|probabilities]"
    "[&prompt=caption][&task=TASK][&name=NAME]",
    examples=(
        "recorded:humans/",
        "recorded:predictions.parquet?labels=imagenet1k",
        "recorded:raw-data?only=people",
        "recorded:captions.csv?prompt=caption",
        "recorded:answers.parquet?task=shape",
    ),
    options={**OPTIONS, **_LATER},
    # 2: sessions are kept; 3: decimal commas in lists, folders in pools, whole names;
    # 4: people without times, positions as decisions
    version=4,
)
