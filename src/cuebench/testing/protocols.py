"""The check of a protocol: ideal observers are scored on its own stimuli, and what was planted must come back.

Everything happens in memory; only stimuli that a maker has to write lie in a temporary folder meanwhile.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

import numpy as np

from cuebench.errors import UserError
from cuebench.metrics.base import Metric
from cuebench.options import Option, parse
from cuebench.protocols.base import Protocol, Result, ScoreOptions, score_rows
from cuebench.protocols.headline import chosen_condition, widest
from cuebench.registry import cues, makers, metrics, protocols
from cuebench.responses.table import Responses
from cuebench.stimuli.makers.base import make
from cuebench.testing.base import CheckFailed, require, run_checks
from cuebench.testing.planted import IDEAL, planted_responses, without_answers
from cuebench.testing.recorder import Recorder
from cuebench.testing.single_answers import check_contributions, check_rows
from cuebench.testing.stimuli import check_stimuli
from cuebench.types import Axis, Capability, Direction, Score, StimulusSet
from cuebench.words import Word, read_condition

RESAMPLES = 200
"""Bootstrap resamples: enough for an interval, few enough to be quick."""
MADE = 100
"""Stimuli to make where a maker has to make them."""
SHAPE, TEXTURE, MIXTURE, RANDOM = IDEAL


def check_protocol(
    protocol: str | Protocol,
    *,
    data_root: str | Path | None = None,
    only: Iterable[str] = (),
    absent: Iterable[str] = (),
    seed: int = 0,
) -> None:
    """Check one protocol by what ideal observers score in it.

    Parameters
    ----------
    protocol : str or Protocol
        A name, ``python:FILE.py:NAME``, or the object.
    data_root : path, optional
        Where its stimuli lie. Default: what the protocol can show without files, else what its maker makes.
    only : iterable of str, optional
        Names from `PROTOCOL_CHECKS`; default: all.
    absent : iterable of str
        Declared metrics that these stimuli cannot give, such as those of masks where there are none.
    seed : int
        Of the ideal observers and of the intervals.

    Raises
    ------
    CheckFailed
        With what was expected and what came.
    UserError
        Where there are no stimuli to check it with.
    """
    part = protocols.get(protocol) if isinstance(protocol, str) else protocol
    require(isinstance(part, Protocol), f"expected a Protocol, got a {type(part).__name__}")
    with ExitStack() as stack:
        root = Path(data_root).expanduser() if data_root is not None else None
        run_checks(PROTOCOL_CHECKS, _Case(part, stack, root, frozenset(absent), seed), only)


@dataclass
class _Case:
    """A protocol, its stimuli, and what ideal observers score on them."""

    protocol: Protocol
    stack: ExitStack
    data_root: Path | None
    absent: frozenset[str]
    seed: int
    recorder: Recorder = field(default_factory=Recorder)

    @property
    def name(self) -> str:
        """How messages name the protocol."""
        return f"protocol {self.protocol.name!r}"

    @cached_property
    def stimuli(self) -> StimulusSet:
        """Its stimuli: from the data root, drawn, or made."""
        protocol = self.protocol
        if self.data_root is not None:
            return protocol.read(self.data_root)
        if protocol.standalone is not None:
            return protocol.standalone()
        suited = [name for name, maker in makers.usable() if protocol.name in (name, maker.protocol)]
        hint = "give data_root=, the folder that holds its stimuli"
        if not suited:
            raise UserError(f"{self.name} shows nothing without data, and no maker makes its stimuli", hint)
        folder = Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        try:
            make(suited[0], folder, count=MADE)
        except UserError as error:
            message = f"the maker {suited[0]!r} cannot make stimuli for {self.name}: {error.message}"
            raise UserError(message, hint) from None
        return protocol.read(folder)

    @property
    def options(self) -> ScoreOptions:
        """What ``score`` is called with."""
        values = parse(self.protocol.options, {}, self.name)
        return ScoreOptions(self.seed, RESAMPLES, values)

    @cached_property
    def responses(self) -> list[Responses]:
        """Answers of the ideal observers; of people and of a baseline where the protocol measures those too."""
        protocol, stimuli, seed = self.protocol, self.stimuli, self.seed
        answers = [planted_responses(protocol, stimuli, spec, seed=seed) for spec in IDEAL]
        if ("decisions",) in protocol.needs and not any(s.mask for s in stimuli):
            answers += [
                planted_responses(
                    protocol, stimuli, MIXTURE, needs=("decisions",), seed=seed + k, name=f"person-{k}", kind="person"
                )
                for k in (1, 2)
            ]
        if protocol.baselines:
            answers += [
                replace(
                    planted_responses(protocol, stimuli, RANDOM, seed=seed + k, name=f"baseline-{k}"),
                    baseline_of=MIXTURE,
                )
                for k in (1, 2)
            ]
        return answers

    @cached_property
    def result(self) -> Result:
        """What the protocol measured; the recorder notes what the functions of the metrics returned meanwhile."""
        known = [metrics.get(name) for name in self.protocol.metrics if name in metrics]
        responses = self.responses
        with self.recorder.recording(known):
            return self.scored(responses)

    def scored(self, responses: Sequence[Responses]) -> Result:
        """Let the protocol score some responses."""
        try:
            result = self.protocol.score(responses, self.options)
        except Exception as error:
            columns = ", ".join(responses[0].columns)
            message = f"{self.name}: score raised {type(error).__name__}: {error}; it was given the columns {columns}"
            raise CheckFailed(message) from error
        kind = type(result).__name__  # not its repr, which would list every answer
        require(isinstance(result, Result), f"{self.name}: expected score to return a Result, got a {kind}")
        return result

    @cached_property
    def rows(self) -> list[Score]:
        """All rows of the result."""
        result = self.result
        try:
            return score_rows(self.protocol, result)
        except UserError as error:
            raise CheckFailed(error.message) from error

    @cached_property
    def condition(self) -> str:
        """The condition of the headline, the same for all observers."""
        return self.chosen(self.protocol.headline, "headline")

    def chosen(self, axis: Axis, what: str) -> str:
        """Return the condition in which an axis is read."""
        emitted = list(dict.fromkeys(r.condition for r in self.rows if r.metric == axis.metric))
        condition = chosen_condition(axis, emitted)
        if condition is None:
            shown = ", ".join(emitted[:8]) + (" …" if len(emitted) > 8 else "")
            raise CheckFailed(
                f"{self.name}: expected its {what} {axis.metric!r} in a condition like {' or '.join(axis.conditions)}; "
                f"it emits {shown or f'no {axis.metric}'}"
            )
        return condition

    def headline(self, observer: str, rows: Sequence[Score] | None = None) -> Score:
        """Return the headline of an observer, with its widest interval."""
        place = (observer, self.protocol.headline.metric, self.condition)
        matches = [r for r in (self.rows if rows is None else rows) if (r.observer, r.metric, r.condition) == place]
        require(matches, f"{self.name}: expected {place[1]} ({place[2]}) for {observer}; it has none")
        return widest(matches)

    def guessing(self) -> float:
        """Return the headline of an observer that guesses in every condition but that of the first stimulus."""
        knows, guesses = (self.responses[IDEAL.index(spec)] for spec in (SHAPE, RANDOM))
        first = self.stimuli.stimuli[0].condition
        plain = np.array([s.condition == first for s in self.stimuli])[knows.stimulus]
        columns = {}
        for name, values in guesses.columns.items():
            columns[name] = values.copy()
            columns[name][plain] = knows.columns[name][plain]
        rows = score_rows(self.protocol, self.scored([replace(guesses, columns=columns)]))
        return self.headline(RANDOM, rows).value

    def twin_of_a_person(self) -> float:
        """Return the headline of an observer that gives the answers of one of the people."""
        people = [r for r in self.responses if r.kind == "person"]
        require(people, f"{self.name}: a headline of direction 'human' needs people, and so decisions, to compare with")
        rows = self.scored([replace(people[0], observer=MIXTURE, kind="ideal"), *people])
        return self.headline(MIXTURE, score_rows(self.protocol, rows)).value


# ------------------------------------------------------------------------------------------------ what it declares


def _check_description(case: _Case) -> None:
    """It is named, versioned, cited and licensed, and everything that it refers to exists."""
    protocol, name = case.protocol, case.name
    require(protocol.name.isidentifier(), f"{name}: expected a name of letters, digits and underscores")
    require(protocol.version >= 1, f"{name}: expected version 1 or more, got {protocol.version}")
    require(protocol.title, f"{name} has no title")
    missing = [f for f in ("text", "bibtex", "url", "licence") if not getattr(protocol.citation, f)]
    require(not missing, f"{name}: its citation has no {', '.join(missing)}")
    require(protocol.views, f"{name} has no view")
    views = [view.name for view in protocol.views]
    require(len(set(views)) == len(views), f"{name}: expected views of different names, got {', '.join(views)}")
    require(protocol.needs, f"{name} does not say what kinds of answers it needs")
    unknown = {kind for a in protocol.needs for kind in a} - set(get_args(Capability))
    require(not unknown, f"{name} needs {', '.join(sorted(unknown))}, which no observer gives")
    _check_metrics_declared(protocol, name)


def _check_metrics_declared(protocol: Protocol, name: str) -> None:
    declared = protocol.metrics
    require(declared, f"{name} names no metric")
    require(len(set(declared)) == len(declared), f"{name} names a metric twice: {', '.join(declared)}")
    unknown = [m for m in declared if m not in metrics]
    require(not unknown, f"{name} names metrics that cannot be explained: {', '.join(unknown)}")
    headline = protocol.headline
    for axis, what in ((headline, "headline"), *((a, "plane") for a in headline.plane or ())):
        require(axis.metric in declared, f"{name}: its {what} {axis.metric!r} is not among its metrics {declared}")
        require(axis.conditions, f"{name}: its {what} {axis.metric!r} has no condition")
    known = headline.direction in get_args(Direction)
    require(known, f"{name}: expected a direction of {', '.join(get_args(Direction))}, got {headline.direction!r}")
    low, high = metrics.get(headline.metric).bounds
    for value, what in ((headline.human, "the value of people"), (headline.neutral, "the neutral value")):
        require(value is None or low <= value <= high, f"{name}: expected {what} in [{low:g}, {high:g}], got {value}")
    require(headline.human is None or headline.human_source, f"{name}: the value of people has no human_source")
    for reference in protocol.reference:
        emitted = reference.metric in declared
        require(emitted, f"{name}: the published value of {reference.observer} is a {reference.metric}, which it lacks")


def _check_missing_data(case: _Case) -> None:
    """Without its data it says where they should lie."""
    with tempfile.TemporaryDirectory() as folder:
        absent = Path(folder) / "absent"
        try:
            case.protocol.read(absent)
        except UserError as error:
            says_where = bool(error.hint) or str(absent) in error.message
            require(says_where, f"{case.name}: expected a hint where its data should lie, got: {error.message}")


def _check_options(case: _Case) -> None:
    """Every option accepts its own default and refuses nonsense; ``configure`` returns the same protocol."""
    protocol = case.protocol
    for key, option in protocol.options.items():
        label = f"{case.name}: option {key!r}"
        require(isinstance(option, Option), f"{label}: expected an Option, got {option!r}")
        require(option.about, f"{label} does not say what it changes")
        default = ",".join(map(str, option.default)) if isinstance(option.default, tuple) else str(option.default)
        for value in (option.default, default):
            accepted = _parsed(protocol, key, value, case.name)
            require(accepted == option.default, f"{label}: expected its default {value!r} to be accepted; {accepted}")
        for value in _nonsense(option):
            try:
                accepted = parse(protocol.options, {key: value}, case.name)[key]
            except UserError:
                continue
            raise CheckFailed(f"{label}: expected {value!r} to be refused, it is read as {accepted!r}")
    if protocol.configure is None:
        return
    settings = [{}, *({k: c} for k, o in protocol.options.items() for c in o.choices if c)]
    for setting in settings:
        configured = protocol.configured(parse(protocol.options, setting, case.name))
        identity = getattr(configured, "name", None), getattr(configured, "version", None)
        require(
            isinstance(configured, Protocol) and identity == (protocol.name, protocol.version),
            f"{case.name}: expected configure({setting}) to return {(protocol.name, protocol.version)}, got {identity}",
        )


def _parsed(protocol: Protocol, key: str, value: Any, name: str) -> Any:
    try:
        return parse(protocol.options, {key: value}, name)[key]
    except UserError as error:
        return error.message


def _nonsense(option: Option) -> list[Any]:
    """Return values that an option of this declaration must refuse."""
    if isinstance(option.default, bool):
        return ["ture", "2"]
    values: list[Any] = ["no such value"] if option.choices or isinstance(option.default, (int, float)) else []
    values += [option.low - 1] if math.isfinite(option.low) else []
    values += [option.high + 1] if math.isfinite(option.high) else []
    return values


def _check_stimuli(case: _Case) -> None:
    """Its stimuli are the same each time, can be shown, and do not keep the class of a cue that was taken away."""
    check_stimuli(case.stimuli, case.name)
    if case.data_root is not None or case.protocol.standalone is not None:
        again = case.protocol.read(case.data_root) if case.data_root else case.protocol.standalone()  # type: ignore[misc]
        same = again.fingerprint == case.stimuli.fingerprint
        require(same, f"{case.name}: expected the same stimuli when they are read again, got others")


# ------------------------------------------------------------------------------------------------ what it emits


def _check_metrics(case: _Case) -> None:
    """It emits exactly the metrics that it declares, each number once for each kind of interval."""
    emitted, declared = {r.metric for r in case.rows}, set(case.protocol.metrics)
    undeclared = ", ".join(sorted(emitted - declared))
    require(not undeclared, f"{case.name} emits {undeclared}, which it does not declare")
    missing = ", ".join(sorted(declared - emitted - case.absent))
    require(not missing, f"{case.name} declares {missing}, which it does not emit")
    keys = [(r.observer, r.condition, r.metric, r.ci_kind) for r in case.rows]
    twice = next((key for key in keys if keys.count(key) > 1), None) if len(set(keys)) < len(keys) else None
    require(twice is None, f"{case.name} emits twice: {twice}")


def _check_headline(case: _Case) -> None:
    """Every ideal observer has the headline, with an interval or why there is none; so do the axes of the plane."""
    for spec in IDEAL:
        row = case.headline(spec)
        where = f"{case.name}: {row.metric} ({row.condition}) of {spec}"
        require(not math.isnan(row.value), f"{where}: expected a number, got NaN; note: {row.note or 'none'}")
        has_interval = math.isfinite(row.ci_low) and math.isfinite(row.ci_high)
        ends = f"[{row.ci_low}, {row.ci_high}]"
        require(has_interval or row.note, f"{where}: expected an interval, or a note that says why not; got {ends}")
        require(row.ci_kind, f"{where}: expected the interval to say what would be drawn anew (its kind)")
    for axis in case.protocol.headline.plane or ():
        case.chosen(axis, "axis")


def _check_conditions(case: _Case) -> None:
    """Every condition is explained."""
    name = case.protocol.name
    declared = [Word(pattern, "condition", meaning, (name,)) for pattern, meaning in case.protocol.conditions.items()]
    for condition in dict.fromkeys(r.condition for r in case.rows):
        for part, words in read_condition(condition, name, declared):
            require(
                words or part in cues,
                f"{case.name}: expected an explanation of {part!r} in the condition {condition!r}; declare "
                f"conditions={{{part!r}: '…'}}, where * stands for any text",
            )


def _check_bias(case: _Case) -> None:
    """The planted bias comes back in the declared direction."""
    headline = case.protocol.headline
    values = {spec: case.headline(spec).value for spec in IDEAL}
    shape, texture, mixture, random = (values[spec] for spec in IDEAL)
    shown = ", ".join(f"{spec} {value:.3f}" for spec, value in values.items())
    where = f"{case.name}: {headline.metric} ({case.condition})"
    if headline.direction == "correct":
        # A ratio to plain images is 1 for a random observer too: one that knows plain images only is lower.
        guessing = case.guessing()
        require(
            max(shape, texture) > min(random, guessing),
            f"{where}: expected an observer that knows the classes above one that guesses; got {shown}, "
            f"an observer that guesses in all conditions but the first {guessing:.3f}",
        )
        return
    if headline.direction == "human":
        twin = case.twin_of_a_person()
        require(twin > random, f"{where}: expected the twin of a person above {RANDOM}; got {twin:.3f}, {shown}")
        return
    above, below = (SHAPE, TEXTURE) if headline.direction == "shape" else (TEXTURE, SHAPE)
    require(
        values[above] > values[below],
        f"{where}: a larger value means more {headline.direction}, so {above} was expected above {below}; got {shown}. "
        "A cue that a suppression takes away must be marked with cuebench.types.REMOVED in Stimulus.shape or texture",
    )
    between = min(shape, texture) <= mixture <= max(shape, texture)
    require(between, f"{where}: expected {MIXTURE} between {SHAPE} and {TEXTURE}; got {shown}")


def _check_bounds(case: _Case) -> None:
    """Every number lies within its metric's bounds; no interval is upside down or of width 0; each has a method."""
    for row in case.rows:
        where = f"{case.name}: {row.metric} ({row.condition}) of {row.observer}"
        low, high = metrics.get(row.metric).bounds
        inside = math.isnan(row.value) or low - 1e-9 <= row.value <= high + 1e-9
        require(inside, f"{where}: expected a value in [{low:g}, {high:g}], got {row.value}")
        require(not row.ci_low >= row.ci_high, f"{where}: expected low < high, got [{row.ci_low}, {row.ci_high}]")
        named = row.ci_method or not math.isfinite(row.ci_low)
        require(named, f"{where}: expected the interval to say how it is made (Interval.method)")
        require(row.note or not math.isnan(row.value), f"{where}: the value is NaN, and no note says why")


def _check_counts(case: _Case) -> None:
    """n and n_excluded are counts; those of the headline agree between observers and show a missing answer."""
    totals: dict[tuple[str, str], Score] = {}
    for row in case.rows:
        where = f"{case.name}: {row.metric} ({row.condition}) of {row.observer}"
        counts = row.n >= 0 and row.n_excluded >= 0 and int(row.n) == row.n and int(row.n_excluded) == row.n_excluded
        require(counts, f"{where}: expected counts of 0 or more, got n={row.n}, n_excluded={row.n_excluded}")
        require(row.n or math.isnan(row.value), f"{where}: expected n > 0 for the value {row.value}, got n={row.n}")
        if row.metric != case.protocol.headline.metric or row.observer not in IDEAL:
            continue
        first = totals.setdefault((row.metric, row.condition), row)
        require(
            row.n + row.n_excluded == first.n + first.n_excluded,
            f"{where}: expected n + n_excluded = {first.n + first.n_excluded} as for {first.observer}, which saw the "
            f"same stimuli; got {row.n} + {row.n_excluded}",
        )
    lost = without_answers(case.responses[IDEAL.index(SHAPE)], _some_of_every_condition(case.stimuli))
    kept = [lost if r.observer == SHAPE else r for r in case.responses]
    rows = score_rows(case.protocol, case.scored(kept))
    before, after = case.headline(SHAPE), case.headline(SHAPE, rows)
    require(
        after.n < before.n or after.n_excluded > before.n_excluded,
        f"{case.name}: {len(lost.excluded)} stimuli were unreadable; expected a smaller n or a larger n_excluded than "
        f"{before.n} and {before.n_excluded}, got {after.n} and {after.n_excluded}",
    )


def _some_of_every_condition(stimuli: StimulusSet) -> list[int]:
    """Return the positions of the second and third stimulus of every condition."""
    seen: dict[str, list[int]] = {}
    for position, stimulus in enumerate(stimuli):
        seen.setdefault(stimulus.condition, []).append(position)
    return [position for positions in seen.values() for position in positions[1:3]]


def _check_repeats(case: _Case) -> None:
    """The same answers and the same seed give the same rows and tables."""
    again = case.scored(case.responses)
    for first, second in zip(case.rows, score_rows(case.protocol, again)):
        same = repr(first) == repr(second)
        require(same, f"{case.name}: expected the same row for the same seed; got {first}, then {second}")
    sizes = len(case.result.measurements), len(again.measurements)
    require(sizes[0] == sizes[1], f"{case.name}: expected as many numbers each time, got {sizes[0]}, then {sizes[1]}")
    for key, table in case.result.tables.items():
        same = key in again.tables and again.tables[key].equals(table)
        require(same, f"{case.name}: expected the same table {key!r} for the same seed, got another one")


def _check_explained(case: _Case) -> None:
    """The numbers are those of the functions of the metrics: what is explained is what runs.

    An observer may also have means of such numbers, over levels or over people; one number at least of each metric
    must have been returned by its function, or the value of each answer that the metric averages.
    """
    answers = {r.observer: len(r) for r in case.responses}
    numbers: dict[tuple[str, str], list[Score]] = {}
    for row in case.rows:
        if not math.isnan(row.value):
            numbers.setdefault((row.metric, row.observer), []).append(row)
    for (name, observer), rows in numbers.items():
        metric: Metric = metrics.get(name)
        require(
            any(case.recorder.returned(metric, row.value, answers[observer]) for row in rows),
            f"{case.name}: expected {name} to come from the function of the metric {name!r} in "
            f"{Path(Recorder.file_of(metric)).name}; {rows[0].value} ({rows[0].condition}) of {observer} was computed "
            "elsewhere",
        )


def _check_single_answers(case: _Case) -> None:
    """Rows of trials are well formed, and sums over images give the headline back."""
    headline = case.protocol.headline.metric
    values = {r.observer: r.value for r in case.rows if (r.metric, r.condition) == (headline, case.condition)}
    check_rows(case.protocol, case.responses[0], case.options)
    check_contributions(case.protocol, case.responses, case.options, case.result, case.condition, values)


PROTOCOL_CHECKS: Mapping[str, Callable[[_Case], None]] = {
    "description": _check_description,
    "missing_data": _check_missing_data,
    "options": _check_options,
    "stimuli": _check_stimuli,
    "metrics": _check_metrics,
    "headline": _check_headline,
    "conditions": _check_conditions,
    "bias": _check_bias,
    "bounds": _check_bounds,
    "counts": _check_counts,
    "repeats": _check_repeats,
    "explained": _check_explained,
    "single_answers": _check_single_answers,
}
"""Name → check, as run by `check_protocol`."""
