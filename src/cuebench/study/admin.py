"""What experimenters see while a study runs: progress, agreement so far, exclusions, the export.

Everything is behind the admin token; the page itself, ``/admin``, holds no data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import sqlalchemy as sa
from fastapi import Depends, FastAPI, Request
from fastapi.responses import FileResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from cuebench.errors import UserError, printable
from cuebench.files import parquet_bytes
from cuebench.statistics.agreement import fleiss_kappa
from cuebench.study import database as db
from cuebench.study.access import Access, Token
from cuebench.study.exclusions import counted
from cuebench.study.export import csv_bytes, export_rows, export_table
from cuebench.study.folder import Study
from cuebench.study.sessions import SOURCES, Refused, Sessions
from cuebench.study.tables import ANSWERS

WEB = Path(__file__).parent / "web"
ACTIVE = timedelta(minutes=10)
"""Somebody whose last answer is not older is taking part now."""
RESAMPLES = 1_000
"""Of the interval of κ: enough for a look while the study runs."""


BEGAN_ANEW = "began anew"
"""The reason beside the answers of somebody whose identifier the experimenter let begin anew."""
Name = Annotated[str, Field(pattern=r"^p[0-9]{4,9}$")]


class Exclusion(BaseModel):
    """A decision of the experimenter: an empty reason includes a participant again."""

    model_config = ConfigDict(extra="forbid")
    participant: Name
    reason: Annotated[str, Field(max_length=200)] = ""


class Somebody(BaseModel):
    """A participant, by the name in exports."""

    model_config = ConfigDict(extra="forbid")
    participant: Name


class Searched(BaseModel):
    """An identifier of Prolific, MTurk or the laboratory, as somebody says it who cannot go on."""

    model_config = ConfigDict(extra="forbid")
    identifier: Annotated[str, Field(min_length=1, max_length=200)]


def add_admin_routes(app: FastAPI, sessions: Sessions, access: Access) -> None:
    """Add the routes of the admin page.

    Parameters
    ----------
    app : FastAPI
        The application.
    sessions : Sessions
        The study and its database.
    access : Access
        Knows the admin token.
    """

    def allowed(request: Request, token: Token) -> None:
        access.admin(request, token)

    guard: Any = {"dependencies": [Depends(allowed)], "responses": _REFUSED}
    study, database = sessions.study, sessions.database

    @app.get("/admin", include_in_schema=False)
    def page() -> Response:
        return FileResponse(WEB / "admin.html", headers={"Cache-Control": "no-cache"})

    @app.get("/api/admin/progress", **guard)
    def show_progress() -> dict[str, Any]:
        """Return how far the study and every participant are."""
        return progress(study, database)

    @app.get("/api/admin/agreement", **guard)
    def show_agreement() -> dict[str, Any]:
        """Return accuracy and Fleiss' κ by task, and what the exclusion rules exclude so far."""
        return agreement(export_rows(study, database))

    @app.get("/api/admin/export.csv", response_class=Response, **guard)
    def export_csv() -> Response:
        """Return all answers as CSV."""
        return _download(csv_bytes(export_rows(study, database)), f"{study.settings.name}.csv", "text/csv")

    @app.get("/api/admin/export.parquet", response_class=Response, **guard)
    def export_parquet() -> Response:
        """Return all answers as Parquet."""
        data = parquet_bytes(export_table(study, database))
        return _download(data, f"{study.settings.name}.parquet", "application/vnd.apache.parquet")

    @app.post("/api/admin/exclude", dependencies=[Depends(allowed)], responses={**_REFUSED, 404: _UNKNOWN})
    def exclude(decision: Exclusion) -> dict[str, str]:
        """Exclude a participant, or include them again; their answers stay."""
        person, reason = _participant(database, decision.participant), printable(decision.reason.strip())
        sessions.writer.call(lambda connection: db.exclude(connection, person.number, reason)).result()
        return {"participant": person.name, "excluded": reason}

    _add_return_routes(app, sessions, {"dependencies": [Depends(allowed)], "responses": {**_REFUSED, 404: _UNKNOWN}})


def _add_return_routes(app: FastAPI, sessions: Sessions, guard: Any) -> None:
    """Add what helps somebody who has begun and cannot go on: their personal link, or to begin anew."""
    study, database = sessions.study, sessions.database

    @app.post("/api/admin/find", **guard)
    def find(searched: Searched) -> dict[str, list[str]]:
        """Return who came with an identifier: only its keyed hash is stored."""
        hashes = [study.secrets.entry_hash(source, searched.identifier.strip()) for source in SOURCES]
        with database.reading() as connection:
            return {"participants": [person.name for person in db.with_entries(connection, hashes)]}

    @app.post("/api/admin/link", **guard)
    def link(somebody: Somebody) -> dict[str, str]:
        """Return the token that a personal link ends with."""
        person = _participant(database, somebody.participant)
        if person.is_replaced:
            raise Refused(404, "replaced", "this session is over: its identifier was let begin anew")
        return {"participant": person.name, "token": study.secrets.token(person.number)}

    @app.post("/api/admin/replace", **guard)
    def replace(somebody: Somebody) -> dict[str, str]:
        """End a session, whose answers stay and are excluded, and let its identifier begin anew."""
        person = _participant(database, somebody.participant)
        sessions.replace(person.number, BEGAN_ANEW)
        return {"participant": person.name, "excluded": BEGAN_ANEW}


def _participant(database: db.Database, name: str) -> db.Participant:
    with database.reading() as connection:
        person = db.find_participant(connection, int(name[1:]))
    if person is None or person.name != name:
        raise Refused(404, "participant", "there is no such participant")
    return person


_REFUSED: dict[int | str, dict[str, Any]] = {
    401: {"description": "the admin token is missing or wrong"},
    429: {"description": "too many wrong tokens"},
}
_UNKNOWN = {"description": "there is no such participant"}


def _download(data: bytes, name: str, kind: str) -> Response:
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "_" for c in name)
    return Response(data, media_type=kind, headers={"Content-Disposition": f'attachment; filename="{plain}"'})


# -------------------------------------------------------------------------------------------------- progress


def _own_code(study: Study, person: db.Participant) -> str:
    """Return the completion code by which somebody can be paid or found again; empty where all have the same."""
    has_code = person.finished_at is not None and not study.settings.completion_code
    return study.secrets.completion_code(person.number) if has_code else ""


def progress(study: Study, database: db.Database) -> dict[str, Any]:
    """Return how far the study is: counts of people and answers, by group, and a row for each participant."""
    with database.reading() as connection:
        people = db.participants(connection)
        counts = _counts(connection)
    since = {"active": _ago(ACTIVE), "drop-out": _ago(timedelta(minutes=study.settings.drop_out_minutes))}
    rows: list[dict[str, Any]] = []
    for person in people:
        answered, checks, passed = counts.get(person.number, (0, 0, 0))
        rows.append(
            {
                "participant": person.name,
                "group": person.group,
                "language": person.language,
                "source": person.source,
                "state": _state(person, since),
                "answered": answered,
                "trials": person.length or 0,
                "attention": [passed, checks],
                "started_at": person.started_at,
                "last_at": person.last_at,
                "minutes": _minutes(person.started_at, person.finished_at),
                "code": _own_code(study, person),
                "excluded": person.excluded,
                "replaced": person.is_replaced,
            }
        )
    states = Counter(row["state"] for row in rows)
    groups = {name: Counter(r["state"] for r in rows if r["group"] == name) for name in study.design.groups}
    finished = [row["minutes"] for row in rows if row["state"] == "finished" and row["minutes"] is not None]
    return {
        "study": study.settings.name,
        "title": study.settings.title or study.design.title(study.languages[0]),
        "design": study.settings.design,
        "wanted": study.settings.participants,
        "participants": len(rows),
        "states": dict(states),
        "groups": {name: dict(of) for name, of in groups.items()},
        "excluded": sum(bool(row["excluded"]) for row in rows),
        "answers": sum(row["answered"] for row in rows),
        "median_minutes": median(finished) if finished else None,
        "last_at": max((row["last_at"] for row in rows), default=None),
        "now": db.now(),
        "notes": [note for note in (study.rules_note, *study.settings.notes) if note],
        "rows": rows,
    }


def _counts(connection: sa.Connection) -> dict[int, tuple[int, int, int]]:
    """Return participant → answers, attention checks, and how many of these are right."""
    table = ANSWERS
    is_check = table.c.kind == "attention"
    checks = sa.func.sum(sa.case((is_check, 1), else_=0))
    passed = sa.func.sum(sa.case((is_check & table.c.correct.is_(True), 1), else_=0))
    query = sa.select(table.c.participant, sa.func.count(), checks, passed).group_by(table.c.participant)
    return {row[0]: (int(row[1]), int(row[2]), int(row[3])) for row in connection.execute(query)}


def _ago(span: timedelta) -> str:
    return (datetime.now(UTC) - span).isoformat(timespec="microseconds")


def _state(person: db.Participant, since: Mapping[str, str]) -> str:
    if person.finished_at is not None:
        return "finished"
    if person.last_at > since["active"]:
        return "active"
    return "pausing" if person.last_at > since["drop-out"] else "dropped out"


def _minutes(start: str, end: str | None) -> float | None:
    if end is None:
        return None
    return round((datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds() / 60, 2)


# ------------------------------------------------------------------------------------------------- agreement


def agreement(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return accuracy and Fleiss' κ with its interval by task, from the answers that no rule excludes.

    Unfinished sessions count here as far as they are: the rule that leaves them out is for the end of a study.
    """
    trials = [row for row in rows if row["kind"] == "trial"]
    running = [
        row for row in trials if not row["excluded"] or (row["excluded"] == "not finished" and not row["finished"])
    ]
    tasks = dict.fromkeys(row["task"] for row in trials)
    return {
        "tasks": [_of_task(task, [row for row in running if row["task"] == task]) for task in tasks],
        "excluded": counted([row["excluded"] for row in trials]),
        "trials": len(trials),
    }


def _of_task(task: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    right = [row["correct"] for row in rows if row["correct"] is not None]
    times = [row["rt_ms"] for row in rows if row["rt_ms"] is not None]
    cues = Counter(row["chosen"] for row in rows if row["chosen"])
    decided = cues["shape"] + cues["texture"]
    ratings: dict[str, Counter[str]] = {}
    for row in rows:
        # Of triplets, the answers are other images each time: what people agree about is the cue.
        rating = row["chosen"] if task == "same_kind" else row["response"]
        if rating:
            ratings.setdefault(row["stimulus"], Counter())[rating] += 1
    return {
        "task": task,
        "people": len({row["participant"] for row in rows}),
        "answers": len(rows),
        "missing": sum(not row["response"] for row in rows),
        "accuracy": sum(right) / len(right) if right else None,
        "shape_share": cues["shape"] / decided if decided else None,
        "median_rt_ms": median(times) if times else None,
        **_kappa([] if task == "words" else list(ratings.values())),
    }


def _kappa(ratings: Sequence[Counter[str]]) -> dict[str, Any]:
    """Return Fleiss' κ over the images that two or more people answered; why there is none where there is none."""
    names = sorted({name for counts in ratings for name in counts})
    try:
        kappa = fleiss_kappa([[counts[name] for name in names] for counts in ratings] or [[0.0]], resamples=RESAMPLES)
    except UserError as error:
        return {"kappa": None, "kappa_low": None, "kappa_high": None, "images": 0, "note": error.message}
    value, low, high = (None if x != x else float(x) for x in kappa[:3])
    return {"kappa": value, "kappa_low": low, "kappa_high": high, "images": kappa.n, "note": kappa.note}
