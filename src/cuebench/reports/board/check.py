"""Check an entry: complete, undamaged, and its scores follow from its answers. The entry is never changed."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from pathlib import Path
from typing import Any

from cuebench._version import __version__
from cuebench.errors import UserError, printable
from cuebench.files import hash_file
from cuebench.observers.baselines import RANDOM
from cuebench.options import check_types
from cuebench.protocols.base import PARTIAL
from cuebench.protocols.headline import headline_column, measured, one_row_each
from cuebench.registry import SCHEME, protocols
from cuebench.reports.board.entries import About, fingerprint, opened, read_about, slug
from cuebench.reports.paired import answers_of, sums_of
from cuebench.responses.job import JobRecord
from cuebench.runs.record import RunOptions, RunRecord, parse_settings, written_with
from cuebench.runs.results import read_scores, read_stimuli, unfinished
from cuebench.runs.score import find_protocols, scores_of
from cuebench.types import Score, StimulusSet

TOLERANCE = 1e-6
"""How far a number of an entry may be from the one that its answers give. Another CPU moves intervals of
``texturedness``, which are resampled in single precision, by 1e-9 and more."""
MOST_RESAMPLES = 100_000
MOST_LISTED = 5
"""Differing scores that are named one by one."""
_LAYERS = {"people": "people", "person": "people", "ideal": "ideal"}
"""Kind of observer → its layer on the board; all others are models."""


@dataclass(frozen=True)
class Shown:
    """What one observer was shown in one protocol: only what agrees in all of this is compared.

    Parameters
    ----------
    protocol, version : str, int
        Of the scores.
    truth : str
        Hash of the stimuli: their names, classes, conditions and recipes.
    pixels : str
        Hash of their contents; empty for recorded answers, which name stimuli and bring no pictures.
    images : int
        Number of stimuli.
    settings : str
        Options of the protocol that are not the default.
    """

    protocol: str
    version: int
    truth: str
    pixels: str
    images: int
    settings: str


@dataclass(frozen=True)
class Model:
    """One observer of an entry, with its numbers as they follow from its answers."""

    slug: str
    observer: str
    layer: str
    about: About
    shown: tuple[Shown, ...]
    rows: tuple[Score, ...]
    facts: dict[str, str]
    answers: dict[str, str] = field(default_factory=dict)
    """Protocol → hash of what each answer adds to the headline: observers of other names may have the same."""

    @property
    def name(self) -> str:
        """The name that the board shows."""
        return printable(self.about.name or self.observer)

    @classmethod
    def parse(cls, data: dict[str, Any]) -> Model:
        """Rebuild a model from JSON, where what is undefined is None."""
        numbers = ("value", "ci_low", "ci_high")
        rows = [{**row, **{n: math.nan for n in numbers if row[n] is None}} for row in data["rows"]]
        return cls(
            **{
                **check_types({**data, "rows": rows}, cls),
                "about": About(**data["about"]),
                "shown": tuple(Shown(**s) for s in data["shown"]),
                "rows": tuple(Score(**row) for row in rows),
            }
        )


@dataclass(frozen=True)
class Checked:
    """The result of a check: problems, for which an entry is refused, and remarks, for which it is not."""

    entry: str
    sha256: str
    problems: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    models: tuple[Model, ...] = ()

    @property
    def accepted(self) -> bool:
        """Whether the board takes it."""
        return not self.problems

    @classmethod
    def parse(cls, data: dict[str, Any]) -> Checked:
        """Rebuild it from JSON."""
        texts = {name: tuple(data[name]) for name in ("problems", "remarks")}
        check_types({**data, "models": []}, cls)
        return cls(data["entry"], data["sha256"], **texts, models=tuple(Model.parse(m) for m in data["models"]))


def check_entry(entry: str | Path) -> Checked:
    """Check an entry as the board does.

    Parameters
    ----------
    entry : path
        A run folder, or a zip or tar archive of one.

    Returns
    -------
    Checked
        All problems at once, and the models with the numbers that their answers give.

    Examples
    --------
    >>> check_entry("runs/first").problems  # doctest: +SKIP
    ()
    """
    path = Path(entry).expanduser().absolute()  # "scores" would be found in every message that names scores.json
    name = printable(path.resolve().name if path.name == ".." else path.name)
    if not path.exists():
        raise UserError(f"{entry} does not exist", "name a run folder, or a zip or tar archive of one")
    try:
        entry_hash = fingerprint(path)
    except OSError as error:
        return Checked(name, "", (f"cannot be read: {error.strerror}",))
    if entry_hash.problems:
        return Checked(name, entry_hash.sha256, entry_hash.problems)
    try:
        with opened(path) as run:
            result = _check_run(run)
    except UserError as error:
        result = Checked("", "", (printable(error.message),))
    except (MemoryError, KeyboardInterrupt):
        raise
    except Exception as error:  # noqa: BLE001 - somebody else's files can be wrong in ways that nobody has thought of
        result = Checked("", "", (printable(f"cannot be checked: {type(error).__name__}: {error}"),))
    problems = tuple(text.replace(str(path), name) for text in result.problems)
    return replace(result, entry=name, sha256=entry_hash.sha256, problems=problems)


def _check_run(run: Path) -> Checked:
    record = RunRecord.read(run)
    problems = [*_of_record(run, record), *_of_files(run, record)]
    observers = list(dict.fromkeys(job.observer for job in record.jobs))
    about = None
    try:
        about = read_about(run, observers)
    except UserError as error:
        problems.append(error.message)
    try:
        find_protocols(record)
    except UserError as error:
        problems.append(error.message)
    problems += [text for text in _versions(record) if text not in problems]
    sets: dict[str, StimulusSet] = {}
    for name in dict.fromkeys(job.stimuli for job in record.jobs):
        try:
            sets[name] = read_stimuli(run, name, record)
            problems += [f"partial: {why} ({sets[name].name})" for why in sets[name].partial]
        except UserError as error:
            problems.append(error.message)
    if problems:  # what is incomplete, damaged or of another version is not worth scoring
        return Checked("", "", _shown(text.replace(str(run), "the run") for text in problems))
    options = _scoring_options(record)
    scored = scores_of(run, record, options, workers=0)
    problems = [f"{f.observer}, {f.protocol}: {f.reason}" for f in scored.failures if f.details.get("scoring")]
    recorded = read_scores(run)
    if not problems:  # without some answers all that they give is missing
        problems += differences(recorded, scored.rows)
    problems += _partial_rows(scored.rows)
    remarks = [f"{f.observer} was not measured: {f.reason}" for f in record.failures if not f.details.get("scoring")]
    if scored.unchecked:
        remarks.append(f"{scored.unchecked} files of answers, written by an earlier cuebench, have no checksum")
    assert about is not None
    models = [
        model
        for observer in observers
        if (model := _model(run, record, options, observer, about.of(observer), sets, scored.rows)) is not None
    ]
    if not models and not problems:
        problems.append("no observer of the run was measured")
    return Checked("", "", _shown(problems), _shown(remarks), tuple(models))


def _shown(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(printable(text) for text in dict.fromkeys(texts))


# --------------------------------------------------------------------------------------------------- undamaged, whole


def _of_record(run: Path, record: RunRecord) -> Iterable[str]:
    """Say what the record itself tells of a run that is not complete."""
    options = record.options
    if why := unfinished(run, record):
        yield why
    elif not record.scored:
        yield "the run has no scores"
    if options.limit:
        yield f"partial: made with --limit {options.limit}"
    if record.unreadable:
        yield f"partial: {len(record.unreadable):,} stimuli could not be read"
    if record.scored.get("common", options.common):
        yield "partial: scored with --common, on what all of its observers saw; score it again with --all"
    if options.responses:
        # Never followed: an address in somebody else's file.
        yield "its answers lie elsewhere (--responses): an entry holds them itself"
    if not record.jobs:
        yield "no observer of the run was measured"
    if record.scored.get("resamples", options.resamples) > MOST_RESAMPLES:
        yield f"more than {MOST_RESAMPLES:,} resamples"


def _of_files(run: Path, record: RunRecord) -> Iterable[str]:
    """Say which files are not what the run wrote."""
    if not record.files:
        yield "the record holds no checksums: an earlier cuebench wrote it; score it again: cuebench score RUN"
    for name, sha256 in record.files.items():
        path = run / name
        if ".." in Path(name).parts or Path(name).is_absolute():
            yield f"the record names a file outside of the run: {name}"
        elif not path.is_file():
            yield f"{name} is missing"
        elif hash_file(path).sha256 != sha256:
            yield f"{name} is damaged or was changed: its checksum is not the one in run.json"


def _versions(record: RunRecord) -> Iterable[str]:
    """Say which protocols are of another version than here: their numbers cannot be followed."""
    for name in record.protocol_names():
        known = record.protocols.get(name, {})
        if str(known.get("origin", "")).startswith(SCHEME):
            yield f"protocol {name} is a file of the submitter's: a board takes built-in and installed protocols only"
        elif name in protocols and known.get("version", 0) not in (0, protocols.get(name).version):
            here = protocols.get(name).version
            yield f"{name}: version {known['version']}; this cuebench has version {here}: score it again with it"


def _scoring_options(record: RunRecord) -> RunOptions:
    """Return the options that the scores in the entry were made with."""
    scored = {k: v for k, v in record.scored.items() if k in ("seed", "resamples", "settings", "common")}
    return replace(record.options, **scored)


def _partial_rows(rows: Iterable[Score]) -> list[str]:
    notes = (note for row in rows for note in row.note.split("; ") if note.startswith(PARTIAL))
    return [f"partial: {text}" for text in dict.fromkeys(note.removeprefix(PARTIAL) for note in notes)]


# --------------------------------------------------------------------------------------------------- scores and answers


def differences(recorded: Sequence[Score], computed: Sequence[Score]) -> list[str]:
    """Compare the scores of an entry with those that its answers give: all rows, values, intervals and counts.

    Returns
    -------
    list of str
        What differs by more than ``TOLERANCE``; after a few, how many more.
    """
    first, second = _by_key(recorded), _by_key(computed)
    messages = [f"the score {_named(key)} does not follow from the answers" for key in first if key not in second]
    messages += [f"the score {_named(key)} is missing" for key in second if key not in first]
    for key in (key for key in first if key in second):
        if wrong := [n for n in _COMPARED if not _equal(getattr(first[key], n), getattr(second[key], n))]:
            values = ", ".join(
                f"{n} is {getattr(first[key], n):.10g}, not {getattr(second[key], n):.10g}" for n in wrong
            )
            messages.append(f"the score {_named(key)} does not follow from the answers: {values}")
    more = len(messages) - MOST_LISTED
    return [*messages[:MOST_LISTED], *([f"{more:,} more scores do not follow from the answers"] if more > 0 else [])]


_COMPARED = ("value", "ci_low", "ci_high", "n", "n_excluded", "protocol_version")
_KEY = [f.name for f in fields(Score) if f.name in ("protocol", "observer", "condition", "metric", "ci_kind")]


def _by_key(rows: Iterable[Score]) -> dict[tuple[str, ...], Score]:
    """Return the rows by what they are of; of several with the same name each is kept."""
    by_key: dict[tuple[str, ...], Score] = {}
    for row in rows:
        key = tuple(str(getattr(row, n)) for n in _KEY)
        while key in by_key:
            key = (*key, "again")
        by_key[key] = row
    return by_key


def _named(key: tuple[str, ...]) -> str:
    return " ".join(filter(None, key))


def _equal(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b)) or abs(a - b) <= TOLERANCE


# --------------------------------------------------------------------------------------------------- models


def _model(
    run: Path,
    record: RunRecord,
    options: RunOptions,
    observer: str,
    about: About,
    sets: dict[str, StimulusSet],
    rows: Sequence[Score],
) -> Model | None:
    """Return an observer with its numbers; None for an untrained network and for one without any."""
    jobs = [job for job in record.jobs if job.observer == observer]
    observer_rows = [row for row in one_row_each(measured(rows)) if row.observer == observer]
    if not observer_rows or RANDOM in observer or any(job.baseline_of for job in jobs):
        return None
    values = parse_settings(record.protocol_names(), options.settings)
    shown = []
    for name in dict.fromkeys(job.protocol for job in jobs):
        protocol = protocols.get(name)
        changed = {k: v for k, v in values[name].items() if v != protocol.options[k].default}
        stimuli = [sets[s] for s in sorted({job.stimuli for job in jobs if job.protocol == name})]
        settings = ", ".join(f"{k}={v}" for k, v in sorted(changed.items()))
        truth, pixels = _hash(map(_truth, stimuli)), _hash(map(_pixels, stimuli))
        shown.append(Shown(name, protocol.version, truth, pixels, sum(map(len, stimuli)), settings))
    # Weights and label space are the model; other protocols or views of it are found under the same link.
    identity = sorted({f"{job.key.get('weights')} {job.key.get('labels')}" for job in jobs})
    return Model(
        slug(observer, identity),
        observer,
        _LAYERS.get(jobs[0].kind, "model"),
        about,
        tuple(shown),
        tuple(observer_rows),
        _facts(run, record, options, jobs),
        {s.protocol: _answers_hash(run, observer, observer_rows, s.protocol) for s in shown},
    )


def _answers_hash(run: Path, observer: str, rows: Sequence[Score], name: str) -> str:
    """Return the hash of what the answers of an observer add to its headline; empty: it has none."""
    column, protocol = headline_column([row for row in rows if row.protocol == name], name), protocols.get(name)
    if column is None or protocol.contributions is None:
        return ""
    sums, _ = sums_of(answers_of([str(run)]), str(run), observer, column, protocol)
    if sums is None:
        return ""
    lines = sorted(zip(sums.images.tolist(), sums.values.tolist()))
    return hashlib.sha256(repr((column.metric, column.condition, lines)).encode()).hexdigest()


def _facts(run: Path, record: RunRecord, options: RunOptions, jobs: Sequence[JobRecord]) -> dict[str, str]:
    """Return what is known of how an observer was measured, in words."""
    facts = {
        "preprocessing": "; ".join(dict.fromkeys(job.preprocess for job in jobs if job.preprocess)),
        "hash of the weights": "; ".join(dict.fromkeys(str(job.key.get("weights", ""))[:16] for job in jobs)),
        "notes": "; ".join(dict.fromkeys(note for job in jobs for note in job.notes)),
        "measured": record.finished[:10],
        "measured with": f"cuebench {written_with(run).cuebench}; scored again with cuebench {__version__}",
        "seed, resamples": f"{options.seed}, {options.resamples:,}",
    }
    return {name: printable(text) for name, text in facts.items() if text}


_TRUTH = attrgetter(
    *("id", "label", "shape", "texture", "shape_source", "texture_source", "condition", "recipe", "seed")
)


def _truth(stimuli: StimulusSet) -> str:
    rows = sorted(repr(_TRUTH(s)) for s in stimuli)
    return hashlib.sha256("\n".join(rows).encode("utf-8", "backslashreplace")).hexdigest()


def _pixels(stimuli: StimulusSet) -> str:
    contents = sorted((s.id, s.sha256, s.mask_sha256) for s in stimuli if s.sha256)
    return hashlib.sha256(repr(contents).encode("utf-8", "backslashreplace")).hexdigest() if contents else ""


def _hash(parts: Iterable[str]) -> str:
    present = [part for part in parts if part]
    return hashlib.sha256("".join(present).encode()).hexdigest()[:16] if present else ""
