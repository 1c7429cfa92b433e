"""The tables of a study on both databases: who gets which assignment, and that an answer counts once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import sqlalchemy as sa

from cuebench.errors import UserError
from cuebench.study import database as db
from cuebench.study.tables import EXCLUSIONS, STARTS, STUDY
from cuebench.study.types import Answer, Trial
from cuebench.study.writer import Stopping, Writer

FACTS = db.Facts("this study", "this design", "these rules")
pytestmark = pytest.mark.xdist_group("postgresql")


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def url(request, tmp_path):
    return db.sqlite_url(tmp_path / "a.sqlite") if request.param == "sqlite" else request.getfixturevalue("postgresql")


@pytest.fixture
def database(url):
    database = db.Database(url)
    database.prepare(FACTS)
    yield database
    database.close()


def start(
    database: db.Database, entry: str | None = None, number: int | None = None, key: str | None = None, **options
) -> db.Participant:
    with database.writing() as connection:
        start = db.Start("en", entry_hash=entry, number=number, key_hash=key)
        return db.start_participant(connection, start, **options)[0]


def store(database: db.Database, *items: tuple[int, int, str]) -> list[db.Stored]:
    with database.writing() as connection:
        return db.store_answers(connection, [db.Given(n, Answer(position, (word,))) for n, position, word in items])


def stored(database: db.Database) -> list[tuple[int, int, tuple[str, ...]]]:
    with database.reading() as connection:
        return [(a.participant, a.answer.position, a.answer.response) for a in db.read_answers(connection)]


def test_participants_are_numbered_and_get_the_assignments_in_turn(database):
    people = [start(database) for _ in range(5)]
    assert [p.number for p in people] == [1, 2, 3, 4, 5]
    assert [p.slot for p in people] == [0, 1, 2, 3, 4]
    assert people[0].name == "p0001"


def test_two_servers_that_start_people_at_once_share_the_assignments(url, database):
    databases = [database, db.Database(url)]
    writers = [Writer(d) for d in databases]
    futures = [w.call(lambda c: db.start_participant(c, db.Start("en"))) for _ in range(30) for w in writers]
    people = [f.result(30)[0] for f in futures]
    for writer in writers:
        writer.close()
    databases[1].close()
    assert sorted(p.number for p in people) == list(range(1, 61))
    assert sorted(p.slot for p in people) == list(range(60))


def test_an_entry_belongs_to_the_browser_that_began_with_it(database):
    first, other = start(database, "hash of anna", key="a"), start(database, "hash of bert", key="b")
    assert other.number != first.number
    assert start(database, "hash of anna", number=first.number) == first
    assert start(database, "hash of anna", number=other.number, key="a") == first
    for stranger in ({}, {"number": other.number}, {"key": "b"}, {"key": "c"}):
        with pytest.raises(db.AlreadyStarted):
            start(database, "hash of anna", **stranger)
    with database.reading() as connection:
        assert len(db.participants(connection)) == 2


def test_a_start_that_is_sent_again_makes_nobody_new(database):
    nameless = start(database, key="a")
    assert start(database, key="a") == nameless
    assert start(database, key="b").number == 2
    assert start(database, "hash of anna", key="a").number == 3  # the key of a browser is no identifier
    assert start(database).number == 4


def test_many_who_start_with_one_entry_at_once_are_one_participant(url, database):
    databases = [database, db.Database(url)]
    writers = [Writer(d) for d in databases]
    starts = [db.Start("en", entry_hash="hash of anna", key_hash=str(i % 4)) for i in range(20)]
    futures = [w.call(lambda c, s=s: db.start_participant(c, s)) for s in starts for w in writers]
    results = [f.result(30) for f in futures]
    for writer in writers:
        writer.close()
    databases[1].close()
    refused = [r for r in results if isinstance(r, db.AlreadyStarted)]
    assert {r[0].number for r in results if r not in refused} == {1}
    assert sum(r[1] for r in results if r not in refused) == 1
    assert len(refused) == 30  # those with another key


def test_an_identifier_that_is_given_free_begins_anew(database):
    first = start(database, "hash of anna", key="a")
    store(database, (first.number, 0, "cat"))
    with database.writing() as connection:
        db.replace_participant(connection, first.number, "began anew")
    again = start(database, "hash of anna", key="a")
    assert (again.number, again.slot) == (2, first.slot)
    with database.reading() as connection:
        old = db.find_participant(connection, 1)
        assert [p.number for p in db.with_entries(connection, ["hash of anna", "another"])] == [2]
    assert (old.is_replaced, old.excluded, again.is_replaced) == (True, "began anew", False)
    assert stored(database) == [(1, 0, ("cat",))]


def test_a_database_that_was_made_before_keys_were_kept(database):
    first = start(database, "hash of anna")
    with database.writing() as connection:
        STARTS.drop(connection)
    database.prepare(FACTS)
    assert start(database, "hash of anna", number=first.number) == first


def test_a_draft_and_what_counts_are_kept_apart(url, database):
    draft = db.Facts(f"{db.DRAFT}{FACTS.identity}", "", "rules")
    with pytest.raises(UserError, match="holds answers that count of this study"):
        database.prepare(draft)
    with database.writing() as connection:
        connection.execute(STUDY.update().values(identity=draft.identity))
    with pytest.raises(UserError, match="holds a draft of this study"):
        database.prepare(FACTS)


def test_assignments_of_drop_outs_and_of_the_excluded_are_given_out_again(database):
    people = [start(database) for _ in range(4)]
    with database.writing() as connection:
        db.finish(connection, people[0].number)
        db.exclude(connection, people[2].number, "asked to withdraw")
    assert start(database).slot == people[2].slot  # everybody else has just begun
    gone = timedelta(seconds=-1)  # of those who have not finished, nobody is there any more
    assert [start(database, drop_out=gone).slot for _ in range(3)] == [1, 1, 1]
    assert start(database).slot == 2 or start(database).slot > 3


def test_a_study_that_is_full_takes_nobody_until_somebody_drops_out(database):
    for _ in range(2):
        start(database, most=2)
    with pytest.raises(db.StudyIsFull):
        start(database, most=2)
    assert start(database, most=2, drop_out=timedelta(seconds=-1)).slot == 0


def test_the_first_answer_to_a_position_counts(database):
    n = start(database).number
    assert store(database, (n, 0, "cat")) == [db.Stored.NEW]
    assert store(database, (n, 0, "dog"), (n, 1, "dog"), (n, 1, "cat")) == [
        db.Stored.AGAIN,
        db.Stored.NEW,
        db.Stored.AGAIN,
    ]
    assert stored(database) == [(n, 0, ("cat",)), (n, 1, ("dog",))]


def test_positions_are_answered_in_order(database):
    n, other = start(database).number, start(database).number
    assert store(database, (n, 1, "cat"), (other, 0, "cat"), (other, 2, "cat")) == [
        db.Stored.NOT_NEXT,
        db.Stored.NEW,
        db.Stored.NOT_NEXT,
    ]
    with database.reading() as connection:
        assert [db.next_position(connection, number) for number in (n, other)] == [0, 1]


def test_two_servers_that_get_the_same_answers_store_them_once(url, database):
    other = db.Database(url)
    people = [start(database).number for _ in range(20)]
    writers = [Writer(database), Writer(other)]
    for position in range(5):
        pairs = [[w.answer(db.Given(n, Answer(position, (str(i),)))) for i, w in enumerate(writers)] for n in people]
        results = [sorted(f.result(30).name for f in pair) for pair in pairs]
        assert results == [["AGAIN", "NEW"]] * len(people)
    for writer in writers:
        writer.close()
    other.close()
    assert [(n, p) for n, p, _ in stored(database)] == [(n, p) for n in people for p in range(5)]


def test_everything_of_an_answer_comes_back(database):
    n = start(database).number
    answer = Answer(
        0, ("dog", "cät"), 712.25, 200, 199.5, "naïve <b>", {"focus_losses": 2, "zoom": 1.5, "\u0000": None}
    )
    with database.writing() as connection:
        db.store_answers(connection, [db.Given(n, answer, "attention", correct=False)])
    with database.reading() as connection:
        (found,) = db.read_answers(connection)
    assert (found.answer, found.correct) == (answer, False)


def test_trials_are_kept_once(database):
    n = start(database).number
    trials = [Trial(0, "a", "shape", stimuli=("x",), options=("cat", "dog"), correct=("cat",), planned_ms=200)]
    with database.writing() as connection:
        db.store_trials(connection, n, "A", trials)
        db.store_trials(connection, n, "B", [])
        assert db.read_trials(connection, n) == trials
        assert db.find_participant(connection, n).group == "A"
        assert db.read_trials(connection, n + 1) is None


def test_every_decision_to_exclude_is_kept(database):
    n = start(database).number
    with database.writing() as connection:
        for reason in ("technical problem", ""):
            db.exclude(connection, n, reason)
    with database.reading() as connection:
        reasons = connection.execute(sa.select(EXCLUSIONS.c.reason).order_by(EXCLUSIONS.c.id)).scalars().all()
        assert reasons == ["technical problem", ""]
        assert db.find_participant(connection, n).excluded == ""


def test_a_database_of_another_study_or_of_a_changed_design_is_refused(database):
    database.prepare(FACTS)
    with pytest.raises(UserError, match="belongs to another study"):
        database.prepare(FACTS._replace(identity="that study"))
    database.prepare(FACTS._replace(design_sha256="corrected before anybody came"))
    start(database)
    with pytest.raises(UserError, match="changed after 1 people had started"):
        database.prepare(FACTS)


def test_a_request_that_fails_takes_no_other_with_it(database):
    n = start(database).number
    writer, gate = Writer(database), threading.Event()
    writer.call(lambda connection: gate.wait(10))  # what follows is one transaction

    def fail(connection):
        raise sa.exc.OperationalError("", {}, Exception("no"))

    before = writer.answer(db.Given(n, Answer(0, ("cat",))))
    failing, unknown = writer.call(fail), writer.answer(db.Given(999, Answer(0, ("cat",))))
    after = writer.answer(db.Given(n, Answer(1, ("cat",))))
    gate.set()
    assert [before.result(30), after.result(30)] == [db.Stored.NEW, db.Stored.NEW]
    for future in (failing, unknown):  # the second has no participant
        with pytest.raises(sa.exc.SQLAlchemyError):
            future.result(30)
    writer.close()
    assert [position for _, position, _ in stored(database)] == [0, 1]


def test_a_writer_that_closes_stores_what_it_was_given_and_takes_no_more(database):
    n = start(database).number
    writer = Writer(database)
    futures = [writer.answer(db.Given(n, Answer(i, ("cat",)))) for i in range(100)]
    writer.close()
    assert {f.result(0) for f in futures} == {db.Stored.NEW}
    with pytest.raises(Stopping):
        writer.answer(db.Given(n, Answer(100, ("cat",)))).result(0)
    assert len(stored(database)) == 100


def test_commits_are_durable(database):
    with database.writing() as connection:
        if database.is_sqlite:
            assert connection.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal"
            assert connection.exec_driver_sql("PRAGMA synchronous").scalar_one() == 2
        else:
            assert connection.exec_driver_sql("SHOW synchronous_commit").scalar_one() == "on"


def test_reading_does_not_wait_for_writing(database):
    n = start(database).number
    with database.writing() as connection:
        db.store_answers(connection, [db.Given(n, Answer(0, ("cat",)))])
        with ThreadPoolExecutor(1) as other:
            assert other.submit(stored, database).result(10) == []
    assert len(stored(database)) == 1


@pytest.mark.parametrize("url", ["mysql://a/b", "nonsense", ""])
def test_other_addresses_are_refused_with_those_that_work(url):
    with pytest.raises(UserError, match="database") as refused:
        db.Database(url)
    assert "postgresql://" in refused.value.hint


def test_a_password_is_never_shown(tmp_path):
    database = db.Database("postgresql://anna:geheim@127.0.0.1:1/x")
    with pytest.raises(UserError) as refused:
        database.prepare(FACTS)
    assert "geheim" not in str(refused.value)
    assert "127.0.0.1" in str(refused.value)
