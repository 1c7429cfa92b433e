"""The sessions of participants: who starts, what they are shown, where they go on, what they may answer.

Everything here is between the routes of ``server.py`` and the tables of ``database.py``. What is kept in memory is a
copy: a server that is killed loses nothing but time.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from cuebench.errors import printable
from cuebench.study import database as db
from cuebench.study.types import Answer, Trial, is_correct
from cuebench.study.writer import Writer

if TYPE_CHECKING:
    from cuebench.study.folder import Study

KEPT = 5_000
"""Sessions whose trials are kept in memory."""
PREVIEW = "ASSIGNMENT_ID_NOT_AVAILABLE"
"""What MTurk sends instead of an assignment while somebody only looks at the task."""


SOURCES = {"prolific": "PROLIFIC_PID", "mturk": "workerId", "laboratory": "id"}
"""Where somebody comes from → the parameter of the address that identifies them."""


class Entry(NamedTuple):
    """Where somebody comes from: the platform, and their identifier there (both empty: nowhere)."""

    source: str = ""
    identifier: str = ""


class Refused(Exception):
    """A request that cannot be fulfilled: HTTP status, a code for the page, and a sentence for people."""

    def __init__(self, status: int, code: str, detail: str) -> None:
        self.status, self.code, self.detail = status, code, detail
        super().__init__(detail)


class Session(NamedTuple):
    """One participant and what they are asked."""

    number: int
    group: str
    language: str
    trials: Sequence[Trial]


def entry_from(parameters: Mapping[str, str]) -> Entry:
    """Read the parameters of the address that somebody came by: those of Prolific, MTurk, or ``id`` of a laboratory.

    >>> entry_from({"PROLIFIC_PID": "5f1", "STUDY_ID": "6a2"})
    Entry(source='prolific', identifier='5f1')
    """
    if parameters.get("assignmentId") == PREVIEW:
        raise Refused(403, "preview", "accept the task on MTurk first: this is only its preview")
    for source, name in SOURCES.items():
        if parameters.get(name):
            return Entry(source, parameters[name])
    return Entry()


def checked_answer(trial: Trial, answer: Answer) -> Answer:
    """Return an answer that fits its trial.

    Raises
    ------
    Refused
        For an option that was not offered, one that is named twice, several where one is allowed, and a text where none
        was asked for.
    """
    response = answer.response
    if not set(response) <= set(trial.options):
        raise Refused(422, "response", "the response is none of the options of this trial")
    if len(set(response)) < len(response) or (len(response) > 1 and not trial.several):
        raise Refused(422, "response", "this trial has one answer")
    if answer.text and not trial.free:
        raise Refused(422, "text", "this trial takes no text")
    return replace(answer, text=printable(answer.text)) if answer.text else answer


class Sessions:
    """Starts, continues and ends sessions.

    Parameters
    ----------
    study : Study
        What is shown.
    database : Database
        Prepared for this study.
    """

    def __init__(self, study: Study, database: db.Database) -> None:
        self.study, self.database = study, database
        self.writer = Writer(database)
        # Few: threads that compute would take the interpreter from the one that answers everybody.
        self.threads = ThreadPoolExecutor(2, "cuebench-study")
        self._kept: OrderedDict[int, Session] = OrderedDict()
        self._lock = threading.Lock()

    def close(self) -> None:
        """Store what is on its way and close the database."""
        self.threads.shutdown()
        self.writer.close()
        self.database.close()

    def start(self, language: str, entry: Entry, token: str = "", key: str = "") -> Future[Any]:
        """Take somebody in who gave their consent; the result, for ``opened``, is there when it is durable.

        ``token`` and ``key`` are what their browser holds: the token of its last session, and what it drew to begin.
        """
        secrets, settings = self.study.secrets, self.study.settings
        start = db.Start(
            language,
            entry.source,
            secrets.entry_hash(*entry) if entry.identifier else None,
            secrets.number_of(token),
            secrets.key_hash(key) if key else None,
        )
        drop_out = timedelta(minutes=settings.drop_out_minutes)
        return self.writer.call(
            lambda connection: db.start_participant(connection, start, most=settings.participants, drop_out=drop_out)
        )

    def opened(self, started: tuple[db.Participant, bool] | db.NotStarted) -> Session:
        """Return the session that ``start`` began: a new one, or theirs where this browser began it before."""
        if isinstance(started, db.AlreadyStarted):
            raise Refused(409, "begun", "this identifier has begun in another browser: go on with the personal link")
        if isinstance(started, db.NotStarted):
            raise Refused(403, "full", "this study has all the participants that it needs")
        participant, is_new = started
        return self._drawn(participant) if is_new else self.find(participant.number)

    def kept(self, number: int) -> Session | None:
        """Return a session that is in memory."""
        return self._kept.get(number)

    def find(self, number: int) -> Session:
        """Return a session; its trials are drawn where that has not been done yet."""
        session = self._kept.get(number)
        with self.database.reading() as connection:
            participant = db.find_participant(connection, number)
            trials = None if session else db.read_trials(connection, number)
        if participant is None or participant.is_replaced:
            raise Refused(401, "unknown", "there is no such session any more: begin again")
        if session is not None:
            return session
        if trials is None:
            return self._drawn(participant)
        return self._keep(Session(number, participant.group, participant.language, trials))

    def replace(self, number: int, reason: str) -> None:
        """End a session, and let its identifier begin anew."""
        self.writer.call(lambda connection: db.replace_participant(connection, number, reason)).result()
        with self._lock:
            self._kept.pop(number, None)

    def _drawn(self, participant: db.Participant) -> Session:
        """Draw the trials of a participant. Nobody waits until they are stored: a server that dies draws them again."""
        number = participant.number
        group, trials = self.study.assign(participant.slot)
        self.writer.call(lambda connection: db.store_trials(connection, number, group, trials))
        return self._keep(Session(number, group, participant.language, trials))

    def _keep(self, session: Session) -> Session:
        with self._lock:
            self._kept[session.number] = session
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return session

    def next_position(self, number: int) -> int:
        """Return where a participant goes on."""
        with self.database.reading() as connection:
            return db.next_position(connection, number)

    def store(self, session: Session, answer: Answer) -> Future[Any]:
        """Check an answer and hand it to the writer; the result is a ``Stored``."""
        if answer.position >= len(session.trials):
            raise Refused(422, "position", f"there are {len(session.trials)} trials")
        trial = session.trials[answer.position]
        checked = checked_answer(trial, answer)
        return self.writer.answer(db.Given(session.number, checked, trial.kind, is_correct(trial, checked.response)))

    def finish(self, session: Session) -> tuple[str, str]:
        """Note that somebody has finished; return their completion code and the address to return to."""
        left = len(session.trials) - self.next_position(session.number)
        if left:
            raise Refused(409, "unfinished", f"{left} trials have no answer yet")
        self.writer.call(lambda connection: db.finish(connection, session.number)).result()
        settings = self.study.settings
        code = settings.completion_code or self.study.secrets.completion_code(session.number)
        return code, settings.return_url.replace("{code}", code)
