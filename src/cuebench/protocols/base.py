"""What a protocol declares, and the one place that turns what it measured into rows of the result."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from cuebench.errors import UserError, all_problems
from cuebench.labels import LabelSpace
from cuebench.observers.function_preprocess import FunctionPreprocess
from cuebench.observers.preprocess import Preprocess
from cuebench.options import Option
from cuebench.protocols.trials import Asked, Contributions, TrialRows, TrialTable, plain_rows
from cuebench.responses.table import Reduce, Responses
from cuebench.statistics.clustered import Sums
from cuebench.tables.decide import condense, decide
from cuebench.tables.engine import Measurement as Measurement
from cuebench.tables.engine import Quantity, measure, sums
from cuebench.tables.engine import Result as Result
from cuebench.tables.trials import Trials
from cuebench.types import Capability, Citation, Estimate, Failure, Headline, Interval, Reference, Score, StimulusSet

if TYPE_CHECKING:
    import pyarrow as pa

PARTIAL = "partial set: "
"""How the note of a score begins that was made from a part of a published set; printed and looked for by others."""
NOT_MEASURED = frozenset({"failed", "not_applicable"})
"""Metrics of rows that hold a reason instead of a number."""


@dataclass(frozen=True)
class View:
    """One way of showing the stimuli: a named change of the observer's own preprocessing.

    ``fixed`` takes the place of ``change`` for an observer that accepts images of its own size only, where ``change``
    asks for another; the note of its rows says so.
    """

    name: str
    change: Callable[[Preprocess], Preprocess]
    fixed: Callable[[Preprocess], Preprocess] | None = None

    def prepared(self, preprocess: Preprocess) -> Preprocess:
        """Return how images are prepared in this view; a function of the user's does it in its own way in every one."""
        return preprocess if isinstance(preprocess, FunctionPreprocess) else self.change(preprocess)


@dataclass(frozen=True)
class ScoreOptions:
    """What the scoring function of a protocol is told.

    Parameters
    ----------
    seed, resamples : int
        Of what a protocol draws, and of its intervals that are bootstraps.
    values : mapping
        The protocol's own options, parsed: name → value, defaults included.
    """

    seed: int = 0
    resamples: int = 10_000
    values: Mapping[str, Any] = field(default_factory=dict)


Part = TypeVar("Part")


@dataclass(frozen=True)
class ByObserver(Generic[Part]):
    """A ``score`` in two steps, for any number of observers in bounded memory and in several processes.

    What ``measure`` returns of an observer is all that is kept of it: small, and without its answers. Results do not
    depend on the number of processes. Called like any other ``score``, it does both steps here and now.

    Parameters
    ----------
    measure : callable
        ``measure(responses of one observer, options) -> Part``: what that observer's answers alone can tell. A function
        of a module; what it returns can be pickled. The responses themselves may be part of it: they come back without
        their rows (``columns`` and ``stimulus`` are empty), with everything else.
    together : callable
        ``together(parts of all observers, options) -> Result``: what needs all of them. `joined` where nothing does and
        ``measure`` returns results.
    condense : callable, optional
        ``condense(stimuli, label space) -> Reduce``: turns the stored columns of one file of answers into those that
        ``measure`` sees, with as many rows: a decision instead of a thousand logits. It sees whole stimuli, with their
        truth.
    """

    measure: Callable[[Responses, ScoreOptions], Part]
    together: Callable[[Sequence[Part], ScoreOptions], Result]
    condense: Callable[[StimulusSet, LabelSpace | None], Reduce] | None = None

    def __call__(self, responses: Sequence[Responses], options: ScoreOptions) -> Result:
        return self.together([self.measure(self.condensed(r), options) for r in responses], options)

    def condensed(self, responses: Responses) -> Responses:
        """Return the answers as ``measure`` sees them."""
        if self.condense is None:
            return responses
        return responses.condensed(self.condense(responses.stimuli, responses.labels))


def joined(results: Sequence[Result], options: ScoreOptions) -> Result:
    """Return the numbers of all observers in order; tables of the same name become one."""
    import pyarrow as pa

    whole = Result()
    tables: dict[str, list[pa.Table]] = {}
    for result in results:
        whole.measurements += result.measurements
        for name, table in result.tables.items():
            tables.setdefault(name, []).append(table)
    whole.tables = {name: pa.concat_tables(parts) for name, parts in tables.items()}
    return whole


@dataclass(frozen=True)
class Protocol:
    """A published experiment.

    Parameters
    ----------
    name, version, title : str, int, str
        Identity. A change of scores is a new version, never an edit.
    needs : tuple of tuples of Capability
        Alternatives, best first: ``(("logits",), ("decisions",))`` means logits, or else decisions.
    read : callable
        ``read(data_root) -> StimulusSet``; raises a UserError that says where the data should lie.
    views : tuple of View
        How the stimuli are shown.
    score : callable
        ``score(responses of all observers, options) -> Result``; sees all observers because some metrics compare them.
        A `ByObserver` does the same in two steps, for runs with many observers or stimuli.
    headline : Headline
        The one number of the protocol, and what a larger value means.
    citation : Citation
        Whom to cite, and the licence of the data.
    metrics : tuple of str
        Names of every metric that ``score`` emits.
    conditions : mapping of str to str
        Meaning of the conditions that only this protocol has, or of their parts between ``/``; ``*`` stands for any
        text: ``{"contrast=*": "contrast of the stripes"}``.
    targets : tuple of str
        Classes of the stimuli, where they are known without reading them.
    stimuli_from_recordings : callable, optional
        ``f(names of images) -> StimulusSet`` for recorded responses whose file names carry the truth: such observers
        can be scored where the images are absent.
    table : str
        Path below the data root of a CSV that says what the stimuli are, where there is one: it counts more than the
        names of a recording.
    people : callable, optional
        ``people(data_root) -> spec``: recorded people that everyone is compared with, empty where there are none. They
        join a run in which nobody is a person, for this protocol only and with the stimuli that the others saw.
    check : callable, optional
        ``check(label space, stimuli) -> problems``: why this observer cannot be scored, before anything is spent.
    reference : tuple of Reference
        Published values.
    answers_in : str
        Label space that ideal observers answer in, where the protocol ranks in a larger one than its own classes.
    reduce : callable, optional
        ``reduce(stimuli, label space) -> Reduce``: what is stored instead of the answers themselves, where those are
        too large to keep (a mask of every image) and the scores need only a summary (its confusion matrix). It sees
        stimuli without their truth, which a stored summary must not depend on.
    stored : str
        What else decides the stored summary, in words: the answers that are kept with it. Part of the cache's key.
    options : mapping of str to Option
        What ``--set NAME.OPTION=VALUE`` can change.
    without : mapping of str to str
        Options that other protocols have and this one has not → why, and what to do: what an error says.
    configure : callable, optional
        ``configure(protocol, parsed options) -> Protocol``: the same protocol, as the options ask for it.
    standalone : callable, optional
        ``standalone() -> StimulusSet``: what can be shown without any data root.
    baselines : bool
        Randomly initialised networks of the same architecture are measured beside each model (option ``baselines``).
    layers : bool
        Further layers of a network can be measured (option ``layers``).
    trials : TrialTable
        How single answers become rows of ``cuebench trials``; default: the first answer, and whether it is the label.
    contributions : callable, optional
        ``contributions(responses of one observer, Asked) -> Sums``: the headline as a function of sums over images, for
        paired comparisons; None where these answers are not those of the condition asked for. The responses are those
        that ``ByObserver.measure`` sees.
    tables : mapping of str to mapping of str to str
        Table → column → its type in Arrow: ``{"confusion": {"response": "string", "count": "int64"}}``. For tables
        that figures read: a file with other types, gaps or negative whole numbers (they count) is refused. Tables
        and columns that are not named here are read as they are.
    quantities : sequence of Quantity
        What the engine computes: from these follow ``contributions`` and the rows of ``cuebench trials``.
    """

    name: str
    version: int
    title: str
    needs: tuple[tuple[Capability, ...], ...]
    read: Callable[[Path], StimulusSet]
    views: tuple[View, ...]
    score: Callable[[Sequence[Responses], ScoreOptions], Result]
    headline: Headline
    citation: Citation
    metrics: tuple[str, ...]
    conditions: Mapping[str, str] = field(default_factory=dict)
    targets: tuple[str, ...] = ()
    stimuli_from_recordings: Callable[[Sequence[str]], StimulusSet] | None = None
    table: str = ""
    people: Callable[[Path], str] | None = None
    check: Callable[[LabelSpace, StimulusSet], list[str]] | None = None
    reference: tuple[Reference, ...] = ()
    answers_in: str = ""
    reduce: Callable[[StimulusSet, LabelSpace | None], Reduce] | None = None
    stored: str = ""
    options: Mapping[str, Option] = field(default_factory=dict)
    without: Mapping[str, str] = field(default_factory=dict)
    configure: Callable[[Protocol, Mapping[str, Any]], Protocol] | None = None
    standalone: Callable[[], StimulusSet] | None = None
    baselines: bool = False
    layers: bool = False
    trials: TrialTable = field(default_factory=lambda: TrialTable(plain_rows))
    contributions: Contributions | None = None
    tables: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    quantities: Sequence[Quantity] = ()
    needed_columns: tuple[str, ...] = ()

    def configured(self, values: Mapping[str, Any]) -> Protocol:
        """Return the protocol as its options, parsed, ask for it."""
        return self if self.configure is None else self.configure(self, values)

    def __post_init__(self) -> None:
        problems = []
        if not re.fullmatch(r"[A-Za-z0-9_]+", self.name):
            problems.append(f"its name is {self.name!r}; use letters, digits and underscores")
        if not self.views:
            problems.append("it has no view: its stimuli would be shown to nobody")
        if self.headline.metric not in self.metrics:
            problems.append(f"its headline {self.headline.metric!r} is not one of its metrics")
        wrong = [name for name, option in self.options.items() if not isinstance(option, Option)]
        problems += [f"its option {name!r} is not a cuebench.options.Option" for name in wrong]
        if problems:
            raise all_problems(f"protocol {self.name!r}", problems, "correct its declaration")
        if self.quantities:
            object.__setattr__(self, "trials", TrialTable(partial(declared_rows, self)))
            object.__setattr__(self, "contributions", partial(declared_sums, self))

    @property
    def headline_quantity(self) -> Quantity:
        """The declaration of the headline."""
        return next(q for q in self.quantities if q.metric.name == self.headline.metric)


# ------------------------------------------------------------------------------------------- declared quantities


def by_engine(
    quantities: Sequence[Quantity],
    keep: Callable[[Trials, Result], Any] | None = None,
    together: Callable[[Sequence[Any], ScoreOptions], Result] | None = None,
    needs: Collection[str] = (),
) -> ByObserver[Any]:
    """Return the ``score`` of declared quantities.

    Parameters
    ----------
    quantities : sequence of Quantity
        What is computed of each observer.
    keep : callable, optional
        ``keep(trials, result)``: adds tables to the result of one observer, and returns what ``together`` needs of it.
    together : callable, optional
        As in `ByObserver`; default: the results are joined.
    needs : collection of str
        What the trials need besides decisions (`cuebench.tables.decide`).
    """

    def one(responses: Responses, options: ScoreOptions) -> Any:
        trials, result = decide(responses, needs), Result()
        measure(trials, quantities, result)
        return keep(trials, result) if keep else result

    return ByObserver(one, together or joined, partial(condense, needs=needs))


def declared_rows(protocol: Protocol, responses: Responses, options: ScoreOptions) -> list[TrialRows]:
    """Return the trials of a protocol as rows of ``cuebench trials``, in the conditions of its headline."""
    assert isinstance(protocol.score, ByObserver)
    trials = decide(protocol.score.condensed(responses), protocol.needed_columns)
    trials = trials.only(protocol.headline_quantity.about(trials))
    return [_rows_of(trials.only(trials.space.codes == code), protocol) for code in range(len(trials.space.words))]


def _rows_of(trials: Trials, protocol: Protocol) -> TrialRows:
    """Return the trials in one set of classes."""
    quantity = protocol.headline_quantity
    words = {name: trials.words(name).texts() for name in quantity.fields}
    names = [quantity.condition.format(**{name: texts[i] for name, texts in words.items()}) for i in range(len(trials))]
    condition = names[0] if len(set(names)) == 1 else np.array(names, object)
    columns = {"decision": trials.answer.texts(), "outcome": trials.outcome.texts(), "correct": trials.correct}
    return TrialRows(condition, trials.row, {**columns, **trials.extra})


def declared_sums(protocol: Protocol, responses: Responses, asked: Asked) -> Sums | None:
    """Return what each answer adds to the headline in one condition."""
    trials = decide(responses, protocol.needed_columns)
    return sums(trials, protocol.headline_quantity, asked.condition)


# ------------------------------------------------------------------------------------------- rows of the result


def score_rows(protocol: Protocol, result: Result) -> list[Score]:
    """Return the rows of the result: one for each interval of each number, in the order in which they were added."""
    undeclared = sorted({m.metric for m in result.measurements} - set(protocol.metrics))
    if undeclared:
        raise UserError(
            f"protocol {protocol.name!r} computes {', '.join(undeclared)}, which it does not declare",
            "name every metric in Protocol(metrics=…)",
        )
    for name, table in result.tables.items():
        if problem := table_problem(protocol, name, table):
            raise UserError(f"protocol {protocol.name!r}: table {name}: {problem}", "correct Protocol(tables=…)")
    return [row for m in result.measurements for row in _rows(protocol, m)]


def table_problem(protocol: Protocol, name: str, table: pa.Table) -> str:
    """Return what in a table is not as the protocol declares it: a type, a gap, a count; empty where all is well."""
    import pyarrow as pa
    import pyarrow.compute as pc

    declared = protocol.tables.get(name, {})
    for column, values in zip(table.schema, table.columns):
        kind = str(column.type.value_type if pa.types.is_dictionary(column.type) else column.type)
        expected, gaps = declared.get(column.name, ""), " with gaps" * bool(values.null_count)
        if expected and (kind != expected or gaps):
            return f"column {column.name!r} holds {kind}{gaps}, not {expected}"
        if expected == "int64" and (least := pc.min(values).as_py() or 0) < 0:
            return f"column {column.name!r} holds {least}: counts and positions begin at 0"
    return ""


def unmeasured_row(failure: Failure, metric: str, version: int) -> Score:
    """Return the row of an observer without a number: ``failed`` or ``not_applicable``, the reason as its note."""
    return _score(failure.protocol, version, failure.observer, "", metric, Estimate(math.nan, 0), None, failure.reason)


def _rows(protocol: Protocol, m: Measurement) -> Iterator[Score]:
    notes = [*m.estimate.notes, *_shared_notes(m)]
    for interval in m.estimate.intervals or (None,):
        limited = [interval.note] if interval is not None and interval.note else []
        note = "; ".join(dict.fromkeys([*limited, *notes]))
        yield _score(protocol.name, protocol.version, m.responses.observer, m.condition, m.metric, m.estimate,
                     interval, note)  # fmt: skip


def _shared_notes(m: Measurement) -> list[str]:
    """Return what must stand beside every number: exclusions, unreadable files, partial data, the observer's notes."""
    excluded, stimuli = m.estimate.excluded, m.responses.stimuli
    notes = []
    if any(excluded.values()):
        parts = ", ".join(f"{number:,} {why}" for why, number in excluded.items() if number)
        notes.append(f"{parts} of {m.estimate.n + sum(excluded.values()):,}")
    if m.responses.excluded and not any("unreadable" in why for why in excluded):
        notes.append(f"{len(m.responses.excluded):,} unreadable")
    notes += [PARTIAL + ", ".join(m.partial)] if m.partial else []
    return [*notes, *stimuli.notes, *m.responses.notes]


def _score(
    protocol: str,
    version: int,
    observer: str,
    condition: str,
    metric: str,
    estimate: Estimate,
    interval: Interval | None,
    note: str,
) -> Score:
    return Score(
        protocol=protocol,
        protocol_version=version,
        observer=observer,
        condition=condition,
        metric=metric,
        value=float(estimate.value),
        ci_low=float(interval.low) if interval else math.nan,
        ci_high=float(interval.high) if interval else math.nan,
        ci_kind=interval.kind if interval else "",
        n=estimate.n,
        n_excluded=sum(estimate.excluded.values()),
        note=note,
        ci_method=interval.method if interval and math.isfinite(interval.low) else "",
    )
