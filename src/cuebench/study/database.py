"""Where a study keeps what people answered: SQLite in the study folder, or PostgreSQL by its address.

Answers are written by one thread for each server process, many of them in one transaction, and acknowledged when that
transaction is durable: SQLite with a write-ahead log and ``synchronous=FULL``, PostgreSQL with ``synchronous_commit``.
The primary key (participant, position) makes an answer that is sent twice count once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

from cuebench.errors import MissingExtra, UserError
from cuebench.study.tables import ANSWERS, EXCLUSIONS, METADATA, PARTICIPANTS, STARTS, STUDY, VERSION
from cuebench.study.types import Answer, Trial, trial_from

try:
    import sqlalchemy as sa
except ModuleNotFoundError as error:
    raise MissingExtra("a study", "study", error.name or "") from None


class Stored(Enum):
    """What became of an answer."""

    NEW = "stored"
    AGAIN = "already stored"
    NOT_NEXT = "not the next position"


class Participant(NamedTuple):
    """A row of ``participants`` without its trials; ``length`` is their number."""

    number: int
    slot: int
    source: str
    group: str
    language: str
    started_at: str
    last_at: str
    finished_at: str | None
    excluded: str
    length: int | None
    entry_hash: str | None

    @property
    def is_replaced(self) -> bool:
        """Whether their identifier was given free, to begin anew: this session is over."""
        return (self.entry_hash or "").startswith(_REPLACED)

    @property
    def name(self) -> str:
        """The name in exports: ``p0001``."""
        return participant_name(self.number)


class Given(NamedTuple):
    """An answer on its way to the database: whose, to which kind of trial, and whether it is correct."""

    participant: int
    answer: Answer
    kind: str = "trial"
    correct: bool | None = None

    @property
    def place(self) -> tuple[int, int]:
        """What is unique: participant and position."""
        return self.participant, self.answer.position


class Facts(NamedTuple):
    """What identifies the study that a database belongs to."""

    identity: str
    design_sha256: str
    rules_sha256: str


class NotStarted(Exception):
    """Nobody was taken in, and nothing was written."""


class StudyIsFull(NotStarted):
    """All assignments that were asked for are taken."""


class AlreadyStarted(NotStarted):
    """Somebody with this identifier has begun in another browser."""


def participant_name(number: int) -> str:
    """Return the name of a participant in exports.

    >>> participant_name(7)
    'p0007'
    """
    return f"p{number:04d}"


def now() -> str:
    """Return the time in UTC as a text that sorts."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


class Database:
    """The tables of one study.

    Parameters
    ----------
    url : str
        ``sqlite:///FILE`` or ``postgresql://USER:PASSWORD@HOST/NAME``.
    """

    def __init__(self, url: str) -> None:
        self.url = _checked(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        # One connection writes; those that read never wait for it.
        self._writer = _engine(self.url, writes=True)
        self._reader = _engine(self.url, writes=False)

    def close(self) -> None:
        """Close all connections."""
        self._writer.dispose()
        self._reader.dispose()

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """Open a transaction that writes; it is durable when the block ends without an error."""
        with self._writer.begin() as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Open a transaction that sees one state of the database and does not write."""
        with self._reader.begin() as connection:
            yield connection

    def prepare(self, facts: Facts) -> None:
        """Make the tables where there are none; refuse a database of another study or of a changed design."""
        try:
            with self.writing() as connection:
                if not self.is_sqlite:  # two servers that start at once
                    connection.execute(sa.text("SELECT pg_advisory_xact_lock(7317)"))
                METADATA.create_all(connection)
                row = connection.execute(sa.select(STUDY)).one_or_none()
                if row is None:
                    values = {"id": 1, "version": VERSION, "made_at": now(), **facts._asdict()}
                    connection.execute(STUDY.insert().values(**values))
                    return
                started = connection.execute(sa.select(sa.func.count()).select_from(PARTICIPANTS)).scalar_one()
                _check_facts(row, facts, started, self.shown_url)
                if facts.design_sha256 != row.design_sha256:  # nobody has started yet
                    connection.execute(STUDY.update().values(design_sha256=facts.design_sha256))
        except sa.exc.OperationalError as error:
            hint = _HELP
            if self.is_sqlite and self.url.database and not os.access(Path(self.url.database).parent, os.W_OK):
                hint = "its folder cannot be written: run as its owner, or sudo chown -R USER FOLDER"
            raise UserError(f"cannot open the database {self.shown_url}: {error.orig}", hint) from None

    @property
    def shown_url(self) -> str:
        """The address without its password."""
        return self.url.render_as_string(hide_password=True)


_HELP = "give --database sqlite:///FILE or --database postgresql://USER:PASSWORD@HOST/NAME"


def sqlite_url(path: Path) -> str:
    """Return the address of a SQLite file."""
    return f"sqlite:///{path.resolve()}"


def _checked(url: str) -> sa.URL:
    try:
        parsed = sa.make_url(url)
    except sa.exc.ArgumentError:
        raise UserError(f"{url!r} is no address of a database", _HELP) from None
    backend = parsed.drivername.partition("+")[0]
    if backend not in ("sqlite", "postgresql", "postgres"):
        raise UserError(f"databases of the kind {parsed.drivername!r} are not supported", _HELP)
    return parsed.set(drivername="sqlite" if backend == "sqlite" else "postgresql+psycopg")


def _engine(url: sa.URL, *, writes: bool) -> sa.Engine:
    if url.get_backend_name() != "sqlite":
        # A writer that lost its connection notices by itself and tries again; asking first would cost a round trip.
        size = {"pool_size": 1, "max_overflow": 0} if writes else {"pool_size": 4, "max_overflow": 4}
        engine = sa.create_engine(url, pool_pre_ping=not writes, **size)

        @sa.event.listens_for(engine, "connect")
        def durable(connection: Any, _: Any) -> None:
            connection.execute("SET synchronous_commit TO on")
            connection.commit()

        return engine
    engine = sa.create_engine(url, connect_args={"timeout": 30, "check_same_thread": False})

    @sa.event.listens_for(engine, "connect")
    def configure(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # Python would begin transactions late, and then without the lock
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "busy_timeout=30000"):
            connection.execute(f"PRAGMA {pragma}").close()

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        # The lock is taken at once: a transaction that reads first and writes later could not get it any more.
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _check_facts(row: Any, facts: Facts, started: int, url: str) -> None:
    if row.version != VERSION:
        raise UserError(f"{url} has tables of version {row.version}; this cuebench uses {VERSION}", "use that cuebench")
    if row.identity != facts.identity:
        kind = "a draft" if row.identity.startswith(DRAFT) else "answers that count"
        same = row.identity.removeprefix(DRAFT) == facts.identity.removeprefix(DRAFT)
        whose = f"holds {kind} of this study" if same else "belongs to another study"
        raise UserError(f"{url} {whose}", "give each study, and each draft of one, a database of its own")
    if started and row.design_sha256 != facts.design_sha256:
        raise UserError(
            f"the design was changed after {started} people had started",
            "put the files of design/ and stimuli.parquet back, or make a new study with `cuebench study new`",
        )


# ---------------------------------------------------------------------------------------------- participants


DRAFT = "draft "
"""How the identity of a draft's database begins."""
_REPLACED = "replaced "
"""How the ``entry_hash`` begins of somebody whose identifier was given free."""


class Start(NamedTuple):
    """What is known of somebody who starts: among it their number by the token, and the key, of their browser."""

    language: str
    source: str = ""
    entry_hash: str | None = None
    number: int | None = None
    key_hash: str | None = None


def start_participant(
    connection: sa.Connection, start: Start, *, most: int = 0, drop_out: timedelta = timedelta(hours=2)
) -> tuple[Participant, bool]:
    """Return the participant of this entry, a new one where there is none, and whether it is new.

    An entry that has a participant is theirs only whose browser has the token or the key of that participant. The
    lowest assignment that nobody holds is taken: one of somebody who was excluded, or who has neither finished nor
    answered for ``drop_out``, else the next one. To be called in a writing transaction.

    Raises
    ------
    AlreadyStarted
        Where the entry has a participant, and the browser shows neither their token nor their key.
    StudyIsFull
        Where ``most`` assignments are held.
    """
    connection.execute(sa.select(STUDY.c.id).with_for_update())  # one at a time, also in several processes
    known = _began_before(connection, start)
    if known is not None:
        return known, False
    since = (datetime.now(UTC) - drop_out).isoformat(timespec="microseconds")
    holds = (PARTICIPANTS.c.excluded == "") & (
        PARTICIPANTS.c.finished_at.is_not(None) | (PARTICIPANTS.c.last_at > since)
    )
    held = sa.func.sum(sa.case((holds, 1), else_=0))
    given_back = sa.select(PARTICIPANTS.c.slot).group_by(PARTICIPANTS.c.slot).having(held == 0).subquery()
    free = sa.select(sa.func.min(given_back.c.slot)).scalar_subquery()
    facts = sa.select(free, sa.func.max(PARTICIPANTS.c.number), sa.func.max(PARTICIPANTS.c.slot))
    slot, last, last_slot = connection.execute(facts).one()
    if slot is None:
        slot = 0 if last_slot is None else last_slot + 1
    if most and slot >= most:
        raise StudyIsFull
    at = now()
    of_start = {"language": start.language, "source": start.source, "entry_hash": start.entry_hash}
    values = {"number": (last or 0) + 1, "slot": slot, "group": "", "started_at": at, "last_at": at, **of_start}
    row = connection.execute(PARTICIPANTS.insert().values(**values).returning(*_ROW)).one()
    if start.key_hash is not None:
        connection.execute(STARTS.insert().values(participant=row.number, key_hash=start.key_hash))
    return Participant(*row), True


def _began_before(connection: sa.Connection, start: Start) -> Participant | None:
    """Return who began with this identifier, or without one by this very request, which is sent again."""
    of_key = sa.select(STARTS.c.participant).where(STARTS.c.key_hash == start.key_hash)
    if start.entry_hash is None:
        nameless = PARTICIPANTS.c.entry_hash.is_(None) & PARTICIPANTS.c.number.in_(of_key)
        return next(iter(_participants(connection, nameless) if start.key_hash else []), None)
    known = next(iter(with_entries(connection, [start.entry_hash])), None)
    if known is not None and known.number not in (start.number, *connection.execute(of_key).scalars()):
        raise AlreadyStarted
    return known


_ROW = [PARTICIPANTS.c[name] for name in Participant._fields]


def _participants(connection: sa.Connection, where: sa.ColumnElement[bool] | None = None) -> list[Participant]:
    query = sa.select(*_ROW).order_by(PARTICIPANTS.c.number)
    return [Participant(*row) for row in connection.execute(query if where is None else query.where(where))]


def participants(connection: sa.Connection) -> list[Participant]:
    """Return all participants in the order in which they started."""
    return _participants(connection)


def find_participant(connection: sa.Connection, number: int) -> Participant | None:
    """Return one participant."""
    return next(iter(_participants(connection, PARTICIPANTS.c.number == number)), None)


def with_entries(connection: sa.Connection, hashes: Sequence[str]) -> list[Participant]:
    """Return the participants who came with identifiers of these hashes."""
    return _participants(connection, PARTICIPANTS.c.entry_hash.in_(hashes))


def replace_participant(connection: sa.Connection, number: int, reason: str) -> None:
    """End a session and give its identifier free: who comes with it next begins anew. Its answers stay, excluded."""
    exclude(connection, number, reason)
    mine = PARTICIPANTS.c.number == number
    connection.execute(PARTICIPANTS.update().where(mine).values(entry_hash=f"{_REPLACED}{number}"))
    connection.execute(STARTS.delete().where(STARTS.c.participant == number))


def store_trials(connection: sa.Connection, number: int, group: str, trials: Sequence[Trial]) -> None:
    """Keep the trials of a participant, once: what was planned does not depend on a later version of the design."""
    text = json.dumps([vars(t) for t in trials], ensure_ascii=False, separators=(",", ":"))
    first = (PARTICIPANTS.c.number == number) & PARTICIPANTS.c.trials.is_(None)
    connection.execute(PARTICIPANTS.update().where(first).values(group=group, length=len(trials), trials=text))


def read_trials(connection: sa.Connection, number: int) -> list[Trial] | None:
    """Return the trials of a participant; None where they were not stored yet."""
    query = sa.select(PARTICIPANTS.c.trials).where(PARTICIPANTS.c.number == number)
    text = connection.execute(query).scalar_one_or_none()
    return None if text is None else [trial_from(values) for values in json.loads(text)]


def finish(connection: sa.Connection, number: int) -> None:
    """Note that a participant has finished; a second time changes nothing."""
    first = (PARTICIPANTS.c.number == number) & PARTICIPANTS.c.finished_at.is_(None)
    connection.execute(PARTICIPANTS.update().where(first).values(finished_at=now()))


def exclude(connection: sa.Connection, number: int, reason: str) -> None:
    """Exclude a participant for a reason, or include them again (an empty one); every decision is kept."""
    connection.execute(EXCLUSIONS.insert().values(participant=number, reason=reason, decided_at=now()))
    connection.execute(PARTICIPANTS.update().where(PARTICIPANTS.c.number == number).values(excluded=reason))


# --------------------------------------------------------------------------------------------------- answers


def next_position(connection: sa.Connection, number: int) -> int:
    """Return the first position that a participant has not answered."""
    query = sa.select(sa.func.max(ANSWERS.c.position)).where(ANSWERS.c.participant == number)
    last = connection.execute(query).scalar_one()
    return 0 if last is None else int(last) + 1


def store_answers(connection: sa.Connection, items: Sequence[Given]) -> list[Stored]:
    """Store answers and return what became of each.

    The first answer to a position counts; a later one changes nothing. Positions come in order, without gaps.
    """
    wanted = {(item.participant, item.answer.position - back) for item in items for back in (0, 1)}
    key = sa.tuple_(ANSWERS.c.participant, ANSWERS.c.position)
    query = sa.select(ANSWERS.c.participant, ANSWERS.c.position).where(key.in_(sorted(wanted)))
    there = {(row[0], row[1]) for row in connection.execute(query)}
    results, rows = [], []
    for item in items:
        if item.place in there:
            results.append(Stored.AGAIN)
        elif item.answer.position == 0 or (item.participant, item.answer.position - 1) in there:
            there.add(item.place)
            rows.append(_values(item))
            results.append(Stored.NEW)
        else:
            results.append(Stored.NOT_NEXT)
    if rows:
        inserted = _insert(connection, rows)
        # Another process may have stored the same answer since we looked.
        results = [
            Stored.AGAIN if result is Stored.NEW and item.place not in inserted else result
            for result, item in zip(results, items)
        ]
        numbers = sorted({row["participant"] for row in rows})
        touched = PARTICIPANTS.update().where(PARTICIPANTS.c.number.in_(numbers))
        connection.execute(touched.values(last_at=rows[0]["answered_at"]))
    return results


def _insert(connection: sa.Connection, rows: Sequence[Mapping[str, Any]]) -> set[tuple[int, int]]:
    from sqlalchemy.dialects import postgresql, sqlite

    dialect: Any = sqlite if connection.dialect.name == "sqlite" else postgresql
    insert = dialect.insert(ANSWERS).on_conflict_do_nothing()
    returned = connection.execute(insert.returning(ANSWERS.c.participant, ANSWERS.c.position), rows)
    return {(row[0], row[1]) for row in returned}


def _values(item: Given) -> dict[str, Any]:
    answer = item.answer
    return {
        "participant": item.participant,
        "position": answer.position,
        "kind": item.kind,
        "correct": item.correct,
        "response": json.dumps(answer.response),
        "rt_ms": answer.rt_ms,
        "planned_ms": answer.planned_ms,
        "shown_ms": answer.shown_ms,
        "text": answer.text,
        "client": json.dumps(dict(answer.client)),
        "answered_at": now(),
    }


class StoredAnswer(NamedTuple):
    """An answer as it was stored."""

    participant: int
    answer: Answer
    correct: bool | None
    answered_at: str
    client_text: str


def read_answers(connection: sa.Connection) -> Iterator[StoredAnswer]:
    """Yield all answers, by participant and position."""
    for row in connection.execute(sa.select(ANSWERS).order_by(ANSWERS.c.participant, ANSWERS.c.position)):
        answer = Answer(
            position=row.position,
            response=tuple(json.loads(row.response)),
            rt_ms=row.rt_ms,
            planned_ms=row.planned_ms,
            shown_ms=row.shown_ms,
            text=row.text,
            client=json.loads(row.client),
        )
        yield StoredAnswer(row.participant, answer, row.correct, row.answered_at, row.client)
