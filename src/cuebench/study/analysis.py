"""Analyse what the participants of a study answered: accuracy, agreement, order, reaction times, shape bias.

Every number has an interval over other people, and where images are a sample too, one over other people and other
images (``statistics.crossed``). People and trials that the rules exclude are counted with their reasons.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cuebench.arrays import Array, Floats
from cuebench.errors import UserError
from cuebench.observers.recorded_files import read_table
from cuebench.observers.study_export import BETWEEN, TRIAL, TRIPLET, WORDS, StudyAnswer, answers_of, as_recorded
from cuebench.options import SEED, parse
from cuebench.statistics.crossed import Crossed, Range, kappa, share
from cuebench.statistics.estimates import difference_of_means, mean
from cuebench.statistics.ratios import Terms
from cuebench.statistics.significance import one_sample_t, two_sample_permutation
from cuebench.study.exclusions import BY_HAND, Rules, apply_rules, changed, counted
from cuebench.study.types import TASKS

PEOPLE, BOTH, IMAGES = "people", "people and images", "images"
"""What an interval generalises to: other people; other people and other images; other images of the same person."""
CUES = ("shape", "texture")
FEWEST = 2
"""People that a comparison of groups needs on each side."""


class Interval(NamedTuple):
    """A 95 % interval: over what, its ends, and why it is missing or limited."""

    over: str
    low: float
    high: float
    note: str = ""


@dataclass(frozen=True)
class Row:
    """One number of the analysis.

    Parameters
    ----------
    measure, task, part : str
        What was computed, for which question, and for which part of the answers: empty for all, ``class=tiger``,
        ``person=p0001``, ``correct``, ``A − B``.
    value : float
        The number; reaction times are in ms.
    intervals : tuple of Interval
        The widest claim first.
    n, people, images : int
        Answers, people and images that it rests on.
    p : float
        Of a test, NaN where there is none.
    note : str
        What a reader must know.
    """

    measure: str
    task: str
    part: str
    value: float
    intervals: tuple[Interval, ...] = ()
    n: int = 0
    people: int = 0
    images: int = 0
    p: float = math.nan
    note: str = ""

    def record(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {**asdict(self), "intervals": [i._asdict() for i in self.intervals]}


@dataclass(frozen=True)
class Analysis:
    """The analysis of one study.

    ``participants`` counts everybody, ``analysed`` those whom no rule leaves out. The two mappings have reason → how
    many people, and how many trials of the others, are excluded.
    """

    source: str
    participants: int
    analysed: int
    excluded_participants: Mapping[str, int]
    excluded_trials: Mapping[str, int]
    rules_sha256: str
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()

    def only(self, measure: str, task: str = "", part: str = "") -> Row:
        """Return one row.

        Raises
        ------
        UserError
            Where there is none.
        """
        for row in self.rows:
            if (row.measure, row.part) == (measure, part) and task in ("", row.task):
                return row
        known = sorted({f"{r.measure} {r.task}".strip() for r in self.rows})
        raise UserError(f"no {measure} {task} {part}".rstrip(), f"there are: {', '.join(known)}")

    def record(self) -> dict[str, Any]:
        """Return it as plain values, for JSON."""
        return {**asdict(self), "rows": [row.record() for row in self.rows]}


def read_answers(source: str | Path, url: str = "") -> list[StudyAnswer]:
    """Return the rows of an export, from its file or from the database of a study folder.

    Parameters
    ----------
    source : path
        The file of an export, or a study folder.
    url : str
        Of the database, where it is not the one in the folder.
    """
    path = Path(source).expanduser()
    if path.is_dir():
        from cuebench.study.database import Database
        from cuebench.study.export import export_table
        from cuebench.study.folder import open_study

        study = open_study(path)
        database = Database(url or study.database_url)
        try:
            database.prepare(study.facts)
            return answers_of(path, export_table(study, database))
        finally:
            database.close()
    return answers_of(path, read_table(path)[0])


def analyse(
    source: str | Path | Sequence[StudyAnswer],
    *,
    rules: Rules | None = None,
    textures: Mapping[str, str] | None = None,
    url: str = "",
    seed: int = 0,
) -> Analysis:
    """Analyse an export.

    Parameters
    ----------
    source : path or sequence of StudyAnswer
        The file of an export, a study folder, or rows.
    rules : Rules, optional
        Other rules than those of the study; the result says so. Decisions of the experimenter stay.
    textures : mapping of str to str, optional
        Image → the texture that TID identified, where the study does not know it.
    url : str
        Of the database of a study folder, where it is not in the folder.
    seed : int
        Of the permutation tests.
    """
    seed = parse({"seed": SEED}, {"seed": seed}, "an analysis")["seed"]
    if isinstance(source, str | Path):
        answers, name = read_answers(source, url), str(source)
    else:
        answers, name = list(source), ""
    if not answers:
        raise UserError(f"{name or 'the study'} holds no answer", "wait for participants, or rehearse the study")
    stored = sorted({a.rules for a in answers if a.rules})
    notes = []
    if len(stored) > 1:
        notes.append(changed(stored[0], stored[1], when="a part of these answers was exported"))
    if rules is not None:
        answers = with_rules(answers, rules)
        notes += [changed(h, rules.sha256, when="the data were exported") for h in stored[:1]]
    first = {a.participant: a.excluded for a in reversed(answers)}
    trials = [a for a in answers if a.kind == TRIAL]
    left = {a.participant for a in answers if not a.excluded}
    kept = [a for a in trials if not a.excluded]
    gone = [reason for person, reason in first.items() if person not in left]
    if not kept:
        why = ", ".join(counted([*gone, *(a.excluded for a in trials if a.participant in left)])) or "no trials"
        raise UserError(
            f"{name or 'the study'}: no answer is left ({why})",
            "ask more people, or try other exclusion rules: --rules FILE.toml",
        )
    return Analysis(
        source=name,
        participants=len(first),
        analysed=len({a.participant for a in kept}),
        excluded_participants=counted(gone),
        excluded_trials=counted([a.excluded for a in trials if a.participant in left]),
        rules_sha256=rules.sha256 if rules else stored[0] if len(stored) == 1 else "",
        rows=tuple(_rows(kept, answers, textures or {}, seed)),
        notes=tuple(note for note in (*notes, *_remarks(kept)) if note),
    )


def with_rules(answers: Sequence[StudyAnswer], rules: Rules) -> list[StudyAnswer]:
    """Return the answers with the reasons of other rules; decisions of the experimenter stay."""
    rows = [
        {
            "participant": a.participant,
            "kind": a.kind,
            "finished": a.finished,
            "correct": None if math.isnan(a.right) else bool(a.right),
            "response": a.response,
            "rt_ms": a.rt_ms,
            "planned_ms": a.planned_ms,
            "shown_ms": a.shown_ms,
            "focus_losses": a.focus_losses,
            "excluded": a.excluded if a.excluded.startswith(BY_HAND) else "",
        }
        for a in answers
    ]
    return [replace(a, excluded=why, rules=rules.sha256) for a, why in zip(answers, apply_rules(rules, rows).rows)]


def _remarks(kept: Sequence[StudyAnswer]) -> Iterator[str]:
    missing = sum(not a.response for a in kept)
    if missing:
        yield f"{missing:,} of {len(kept):,} trials have no answer: wrong in accuracies, undecided in a shape bias"
    planned = [a for a in kept if not math.isnan(a.planned_ms)]
    unknown = sum(math.isnan(a.shown_ms) for a in planned)
    if unknown:
        yield f"how long the image was shown is not known in {unknown:,} of {len(planned):,} trials"


# ------------------------------------------------------------------------------------------------------ the numbers


def _rows(
    kept: Sequence[StudyAnswer], every: Sequence[StudyAnswer], textures: Mapping[str, str], seed: int
) -> list[Row]:
    judged = judged_answers(kept, textures)
    rows = [row for of_task in judged.values() for row in _shares(of_task)]
    rows += _gap(judged)
    for of_task in judged.values():
        rows += _agreement(of_task)
    for of_task in judged.values():
        rows += _order(of_task, seed)
    for of_task in judged.values():
        rows += _reaction_times(of_task)
    rows += [*_durations(kept), *_attention(every)]
    for of_task in judged.values():
        rows += _people(of_task)
    return rows


def judged_answers(answers: Sequence[StudyAnswer], textures: Mapping[str, str] | None = None) -> dict[str, Judged]:
    """Return task → its answers that count, and the share that is computed from them.

    Parameters
    ----------
    answers : sequence of StudyAnswer
        All rows of an export.
    textures : mapping of str to str, optional
        As in `analyse`.
    """
    by_task: dict[str, list[StudyAnswer]] = {}
    for answer in answers:
        if answer.counts:
            by_task.setdefault(answer.task, []).append(answer)
    tasks = sorted(by_task, key=lambda task: TASKS.index(task) if task in TASKS else len(TASKS))
    return {task: _judge(task, by_task[task], textures or {}) for task in tasks}


class Judged(NamedTuple):
    """The answers to one task and the share that is computed from them.

    ``measure`` is the name of the share, ``hits`` and ``counts`` what each answer adds to it, ``classes`` what it is
    split by, under the word ``by``.
    """

    task: str
    measure: str
    answers: Sequence[StudyAnswer]
    hits: Floats
    counts: Floats
    classes: Array
    by: str = "class"
    note: str = ""

    def share(self, rows: Array | None = None) -> Crossed:
        """Return the share of some of the answers, or of all."""
        chosen = np.ones(len(self.answers), bool) if rows is None else rows
        return share(Terms(self.hits[chosen], self.counts[chosen]), self.people[chosen], self.images[chosen])

    @property
    def people(self) -> Array:
        """Who gave each answer."""
        return np.array([a.participant for a in self.answers])

    @property
    def images(self) -> Array:
        """What each answer is to."""
        return np.array([_image(a) for a in self.answers])

    def by_person(self) -> dict[str, float]:
        """Return person → share; people without a counted answer are left out."""
        names, code = np.unique(self.people, return_inverse=True)
        top, bottom = (np.bincount(code.ravel(), t, len(names)) for t in (self.hits * (self.counts > 0), self.counts))
        return {str(n): float(t / b) for n, t, b in zip(names, top, bottom) if b}


def _judge(task: str, answers: Sequence[StudyAnswer], textures: Mapping[str, str]) -> Judged:
    given = np.array([bool(a.response) for a in answers], np.float64)
    if task == TRIPLET:
        choices = as_recorded(Path("answers"), answers).choices
        by_shape = np.array([c == "shape" for c in choices], np.float64)
        decided = np.array([bool(c) for c in choices], np.float64)
        return Judged(task, "shape_matches", answers, by_shape, decided, _texts(answers, lambda a: a.shape))
    if task == WORDS:
        words = [textures.get(a.stimulus, a.texture) for a in answers]
        names = np.array([w in a.response for w, a in zip(words, answers)], np.float64)
        known = np.array([bool(w and a.response) for w, a in zip(words, answers)], np.float64)
        chance = np.array([len(a.response) / max(len(a.options), 1) for a in answers])[known > 0]
        note = f"words drawn at random would agree in {chance.mean():.1%}" if len(chance) else ""
        return Judged(task, "tid_agreement", answers, names, known, np.array(words, np.str_), "texture", note)
    if task not in CUES and all(a.shape and a.texture for a in answers):
        by_shape = np.array([a.response[:1] == (a.shape,) for a in answers], np.float64)
        by_texture = np.array([a.response[:1] == (a.texture,) for a in answers], np.float64)
        conflict = np.array([a.shape != a.texture for a in answers], np.float64)
        decided = (by_shape + by_texture) * conflict
        return Judged(task, "shape_bias", answers, by_shape * decided, decided, _texts(answers, lambda a: a.shape))
    truth = [getattr(a, task if task in CUES else "label") or a.label for a in answers]
    right = [a.right if not math.isnan(a.right) else float(a.response[:1] == (t,)) for a, t in zip(answers, truth)]
    asked = np.array([bool(t) or not math.isnan(a.right) for a, t in zip(answers, truth)], np.float64)
    return Judged(task, "accuracy", answers, np.array(right) * given * asked, asked, np.array(truth, np.str_))


def _texts(answers: Sequence[StudyAnswer], of: Callable[[StudyAnswer], str]) -> Array:
    return np.array([of(a) for a in answers], np.str_)


def _shares(judged: Judged) -> Iterator[Row]:
    whole = judged.share()
    if not whole.n:
        return
    yield _crossed(judged.measure, judged.task, "", whole, judged.note)
    if judged.measure == "shape_bias":
        conflict = np.array([a.shape != a.texture for a in judged.answers])
        decided = judged._replace(hits=(judged.counts > 0).astype(np.float64), counts=conflict.astype(np.float64))
        yield _crossed("decided_fraction", judged.task, "", decided.share(), "answered shape or texture")
    for name in sorted(set(judged.classes[judged.counts > 0].tolist()) - {""}):
        yield _crossed(judged.measure, judged.task, f"{judged.by}={name}", judged.share(judged.classes == name))


def _crossed(measure: str, task: str, part: str, estimate: Crossed, note: str = "") -> Row:
    intervals = (_interval(BOTH, estimate.both), _interval(PEOPLE, estimate.people))
    notes = "; ".join(text for text in (note, estimate.note) if text)
    return Row(
        measure, task, part, estimate.value, intervals, estimate.n, estimate.n_people, estimate.n_images, note=notes
    )


def _interval(over: str, ends: Range) -> Interval:
    return Interval(over, ends.low, ends.high, ends.note)


def _gap(judged: Mapping[str, Judged]) -> Iterator[Row]:
    """Yield accuracy on shape minus accuracy on texture, person by person."""
    if not all(judged.get(cue) is not None and judged[cue].measure == "accuracy" for cue in CUES):
        return
    shape, texture = (judged[cue].by_person() for cue in CUES)
    both = [person for person in shape if person in texture]
    if len(both) < FEWEST:
        return
    test = one_sample_t([shape[p] - texture[p] for p in both])
    interval = Interval(PEOPLE, test.low, test.high, test.note)
    yield Row("gap", "", "shape − texture", test.estimate, (interval,), len(both), len(both), p=test.p)


def _agreement(judged: Judged) -> Iterator[Row]:
    """Yield Fleiss' κ; several words to one image are no categories, and of triplets the cue is."""
    given = [(a, hit) for a, hit in zip(judged.answers, judged.hits) if a.response]
    if judged.task == WORDS or len({a.participant for a, _ in given}) < FEWEST:
        return
    answers = [str(bool(hit)) if judged.task == TRIPLET else a.response[0] for a, hit in given]
    people, images = [a.participant for a, _ in given], [_image(a) for a, _ in given]
    yield _crossed("kappa", judged.task, "", kappa(np.array(answers), np.array(people), np.array(images)))


def _image(answer: StudyAnswer) -> str:
    """Return what was shown; a triplet by its anchor and matches, whichever of them stood on the left."""
    anchor, *matches = answer.stimulus.split(BETWEEN)
    return BETWEEN.join((anchor, *sorted(matches)))


def _order(judged: Judged, seed: int) -> Iterator[Row]:
    """Yield the difference of the first group and each other one, over people."""
    group_of = {a.participant: a.group for a in judged.answers}
    values: dict[str, list[float]] = {}
    for person, value in judged.by_person().items():
        values.setdefault(group_of[person], []).append(value)
    first, *others = sorted(values) or [""]
    for other in others:
        a, b = (np.array(values[name]) for name in (first, other))
        part, people = f"{first or 'no group'} − {other}", len(a) + len(b)
        if min(len(a), len(b)) < FEWEST:
            note = f"{len(a)} and {len(b)} people: too few to compare"
            yield Row("order_effect", judged.task, part, math.nan, (), people, people, note=note)
            continue
        (interval,) = difference_of_means(a, b).intervals
        test = two_sample_permutation(a, b, seed=seed, resamples=10_000)
        note = f"{judged.measure.replace('_', ' ')} of {len(a)} and {len(b)} people; p by permutation"
        over_people = Interval(PEOPLE, interval.low, interval.high, interval.note)
        yield Row("order_effect", judged.task, part, test.estimate, (over_people,), people, people, p=test.p, note=note)


def _reaction_times(judged: Judged) -> Iterator[Row]:
    """Yield the typical reaction time: the mean over people of their medians, on the scale of logarithms."""
    times = np.array([a.rt_ms for a in judged.answers])
    usable = np.isfinite(times) & (times > 0) & np.array([bool(a.response) for a in judged.answers])
    parts = {"": usable}
    if judged.measure == "accuracy":
        parts |= {"correct": usable & (judged.hits > 0), "wrong": usable & (judged.hits == 0) & (judged.counts > 0)}
    people = judged.people
    for part, rows in parts.items():
        medians = [float(np.median(times[rows & (people == p)])) for p in np.unique(people[rows])]
        if not medians:
            continue
        log_mean = mean(np.log(medians))
        with np.errstate(over="ignore"):  # of two people who differ without measure, the end has none
            low, high = np.exp([log_mean.intervals[0].low, log_mean.intervals[0].high]).tolist()
        interval = Interval(PEOPLE, low, high, log_mean.intervals[0].note)
        yield Row("reaction_time", judged.task, part, math.exp(log_mean.value), (interval,), int(rows.sum()),
                  len(medians), note="geometric mean of the people's medians, in ms")  # fmt: skip


def _durations(kept: Sequence[StudyAnswer]) -> Iterator[Row]:
    off = np.array([a.shown_ms - a.planned_ms for a in kept])
    off = off[np.isfinite(off)]
    if len(off):
        worst = float(np.quantile(np.abs(off), 0.99))
        note = f"median of measured minus planned duration in ms; 99 % are off by less than {worst:.1f} ms"
        yield Row("shown_off", "", "", float(np.median(off)), (), len(off), note=note)


def _attention(every: Sequence[StudyAnswer]) -> Iterator[Row]:
    checks = [a for a in every if a.kind == "attention" and not math.isnan(a.right)]
    if checks:
        people, items = (np.array([getattr(a, f) for a in checks]) for f in ("participant", "stimulus"))
        estimate = share(Terms(np.array([a.right for a in checks]), np.ones(len(checks))), people, items)
        intervals = (_interval(PEOPLE, estimate.people),)
        note = "of everybody, also of those who are excluded"
        yield Row(
            "attention", "", "", estimate.value, intervals, estimate.n, estimate.n_people, estimate.n_images, note=note
        )


def _people(judged: Judged) -> Iterator[Row]:
    """Yield the share of each person, with Wilson's interval over the images that they saw."""
    from cuebench.statistics.estimates import share as wilson

    people, groups = judged.people, {a.participant: a.group for a in judged.answers}
    for person in np.unique(people):
        rows = (people == person) & (judged.counts > 0)
        if n := int(rows.sum()):
            estimate = wilson(round(float(judged.hits[rows].sum())), n)
            (interval,) = estimate.intervals
            intervals = (Interval(IMAGES, interval.low, interval.high, interval.note),)
            group = f"group {groups[person]}" if groups[person] else ""
            yield Row(judged.measure, judged.task, f"person={person}", estimate.value, intervals, n, 1, n, note=group)
