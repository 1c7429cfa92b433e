"""Chat models behind a loopback endpoint: planted answers, faults, budgets, and every kind of bad input."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chat_server import CLASSES, ChatServer, Reply, completion, picture, problem

import cuebench
from cuebench.errors import UserError
from cuebench.observers.base import Batch, LoadOptions
from cuebench.observers.chat.endpoint import Prices
from cuebench.observers.chat.journal import HIGHEST_PRICE, MOST_TOKENS, Answer, Journal, _line, open_journal
from cuebench.observers.chat.observer import image_key
from cuebench.observers.load import load
from cuebench.runs.estimate import estimate_cost
from cuebench.types import Stimulus

QUICK = "retries=3"


def observer(server: ChatServer, options: str = "", journal: str = "", model: str = "eye") -> Any:
    (loaded,) = load(f"chat:{model}?url={server.url}{options}", LoadOptions(targets=CLASSES, journal=journal))
    loaded.endpoint.first_wait = 0.01
    return loaded


def images(count: int, size: int = 8) -> Batch:
    """Pictures in which red is the shape and green the texture."""
    pixels = np.zeros((count, size, size, 3), np.uint8)
    pixels[..., 0] = 40 * (np.arange(count) % 4)[:, None, None]
    pixels[..., 1] = 40 * (np.arange(count) // 4 % 4)[:, None, None]
    pixels[..., 2] = (np.arange(count) // 16)[:, None, None]
    return Batch([Stimulus(f"s{i}") for i in range(count)], pixels)


def ask(asked: Any, count: int = 8) -> dict[str, Any]:
    return dict(asked.respond(images(count), ("decisions",)))


# ------------------------------------------------------------------------------------------------ what is asked


def test_the_planted_answers_come_back_with_their_words() -> None:
    with ChatServer() as server:
        answers = ask(observer(server), 16)
        assert answers["decisions"].tolist() == [CLASSES[i % 4] for i in range(16)]
        assert answers["text"].tolist() == [f"{'ABCD'[i % 4]}." for i in range(16)]
        assert set(answers["read_by"]) == {"letter"}
        texture = ask(observer(server, "&prompt=vqa_texture"), 16)
        assert texture["decisions"].tolist() == [CLASSES[i // 4] for i in range(16)]


def test_a_shuffled_order_changes_letters_and_not_answers() -> None:
    with ChatServer() as server:
        plain, shuffled = ask(observer(server)), ask(observer(server, "&shuffle=2"))
    assert plain["decisions"].tolist() == shuffled["decisions"].tolist()
    assert plain["text"].tolist() != shuffled["text"].tolist()


def test_captions_by_names_and_by_a_judge() -> None:
    with ChatServer() as server:
        named = ask(observer(server, "&prompt=caption"))
        judged = ask(observer(server, "&prompt=caption&judge=chat:ear"))
        assert {body["model"] for body in server.bodies} == {"eye", "ear"}
    assert named["decisions"].tolist() == judged["decisions"].tolist() == [CLASSES[i % 4] for i in range(8)]
    assert set(named["read_by"]) == {"name"}
    assert set(judged["read_by"]) == {"judge"}


def test_the_same_pixels_are_seen() -> None:
    seen = []

    def look(number: int, body: dict[str, Any]) -> None:
        seen.append(picture(body))

    with ChatServer(look) as server:
        ask(observer(server), 3)
    shown = {image.tobytes() for image in images(3).images}
    assert {image.tobytes() for image in seen} == shown


def test_the_identity_of_answers() -> None:
    with ChatServer() as server:
        prints = {
            options: observer(server, options).fingerprint
            for options in ("", "&prompt=vqa_shape", "&shuffle=1", "&max_tokens=9", "&temperature=1", "&repeat=2")
        }
        assert len(set(prints.values())) == len(prints)
        same = observer(server, "&concurrency=3&max_requests=5&timeout=9&retries=1&price_in=1")
        assert same.fingerprint == prints[""]
        assert same.name == "chat:eye"
        assert observer(server, "&prompt=vqa_shape&concurrency=2").name == "chat:eye?prompt=vqa_shape"
        assert same.among(("cat", "dog")).fingerprint != prints[""]


# ------------------------------------------------------------------------------------------------ faults


def test_faults_are_survived_and_every_picture_is_answered_once() -> None:
    def misbehave(number: int, body: dict[str, Any]) -> Any:
        if number % 7 == 3:
            return problem(429, "slow down", Retry_After="0.05")
        if number % 11 == 5:
            return problem(500, "oops")
        if number % 13 == 6:
            return 200, {}, b'{"choices": [{"mess'
        if number % 17 == 8:
            raise ConnectionAbortedError
        return None

    with ChatServer(misbehave, delay=0.002) as server:
        asked = observer(server, "&concurrency=16")
        answers = ask(asked, 64)
        assert answers["decisions"].tolist() == [CLASSES[i % 4] for i in range(64)]
        assert set(server.answered.values()) == {1}
        assert len(server.answered) == 64
        assert server.most_together <= 16
        assert asked.journal.spent.requests == server.requests > 64


def test_everyone_waits_where_the_endpoint_says_so() -> None:
    times: list[float] = []

    def limit(number: int, body: dict[str, Any]) -> Any:
        times.append(time.monotonic())
        return problem(429, "rate limit", Retry_After="0.4") if number == 1 else None

    with ChatServer(limit) as server:
        ask(observer(server, "&concurrency=1"), 3)
    assert times[1] - times[0] >= 0.4


def test_refusals_filters_and_cut_answers_are_undecided() -> None:
    def refuse(number: int, body: dict[str, Any]) -> Any:
        return {
            2: (200, {}, completion("I'm sorry, I can't help with that.")),
            3: problem(400, "blocked by the content filter"),
            4: (200, {}, completion("Well, the picture", "length")),
            5: (200, {}, completion("", usage=False)),
        }.get(number)

    with ChatServer(refuse) as server:
        answers = ask(observer(server, "&concurrency=1"), 6)
    assert answers["read_by"].tolist() == ["letter", "refusal", "refusal", "cut", "nothing", "letter"]
    assert answers["decisions"].tolist()[1:5] == ["undecided"] * 4
    assert answers["text"][3] == "Well, the picture"


def test_a_dead_endpoint_is_an_error_that_can_be_gone_on_from(tmp_path: Path) -> None:
    def die(number: int, body: dict[str, Any]) -> None:
        if number > 4:
            raise ConnectionAbortedError

    with ChatServer(die) as server:
        asked = observer(server, "&retries=1&concurrency=1", str(tmp_path))
        with pytest.raises(UserError, match="gave no answer to 2 attempts"):
            ask(asked, 8)
        server.fault = None
        again = observer(server, "", str(tmp_path))
        assert len(ask(again, 8)["text"]) == 8
        assert set(server.answered.values()) == {1}


# ------------------------------------------------------------------------------------------------ the budget


def test_the_number_of_requests_is_never_exceeded(tmp_path: Path) -> None:
    def failing(number: int, body: dict[str, Any]) -> Any:
        return problem(500, "oops") if number % 3 == 0 else None

    with ChatServer(failing, delay=0.002) as server:
        asked = observer(server, "&concurrency=8&max_requests=20", str(tmp_path))
        with pytest.raises(UserError, match="the budget of 20 requests is used up") as caught:
            ask(asked, 64)
        assert server.requests == 20
        assert len(asked.journal.answers) == sum(server.answered.values())
        assert "nothing is paid twice" in caught.value.hint
        more = observer(server, "&concurrency=8&max_requests=200", str(tmp_path))
        assert len(ask(more, 64)["text"]) == 64
        assert set(server.answered.values()) == {1}


def test_the_cost_is_never_exceeded(tmp_path: Path) -> None:
    with ChatServer(delay=0.002) as server:
        # 104 tokens of 1 each: at most 164 before it is counted.
        prices = "&price_in=1e6&price_out=1e6&max_tokens=64&max_cost=6000"
        asked = observer(server, f"&concurrency=8{prices}", str(tmp_path))
        with pytest.raises(UserError, match="the budget of 6000 is used up"):
            ask(asked, 64)
        spent = 104 * server.requests
        assert 6000 - 400 < spent <= 6000
        assert asked.journal.spent.cost == spent


@pytest.mark.parametrize("counted", [-100, 10**30, "-5"])
def test_counts_that_cannot_be_do_not_make_it_cheaper(tmp_path: Path, counted: Any) -> None:
    def boasts(number: int, body: dict[str, Any]) -> Reply:
        reply = json.loads(completion("A."))
        reply["usage"]["prompt_tokens"] = counted
        return 200, {}, json.dumps(reply).encode()

    with ChatServer(boasts) as server:
        asked = observer(server, "&price_in=1e6&price_out=1e6&max_tokens=64&max_cost=6000", str(tmp_path))
        with pytest.raises(UserError, match="the budget of 6000 is used up"):
            ask(asked, 64)
        assert server.requests < 5
        assert asked.journal.spent.cost > 1000 * server.requests  # as much as each can cost


def test_a_request_whose_answer_was_lost_counts_as_paid(tmp_path: Path) -> None:
    with ChatServer() as server:
        asked = observer(server, "", str(tmp_path))
        asked.journal.asked("picture", 5.0)
        ask(asked, 2)
        file = asked.journal.file
    assert file is not None
    lines = file.read_bytes()
    file.write_bytes(lines[:-9])  # killed in the middle of a line
    del asked
    again = open_journal(str(tmp_path / "copy"), "eye", {})
    again.file = file
    again.read()
    assert again.spent.requests == 3
    assert again.spent.cost == 5.0
    assert len(again.answers) == 1
    assert again.damaged == 1


def test_a_plan_asks_nothing(data_root: Path, tmp_path: Path) -> None:
    with ChatServer() as server:
        spec = f"chat:eye?url={server.url}&price_in=2.5&price_out=10"
        told: list[str] = []
        cost = estimate_cost(spec, "cue_conflict", data_root=data_root, on_event=lambda e: told.append(e.message))
        assert server.requests == 0
    (row,) = cost.observers
    assert (row.requests, row.answers) == (32, 32)
    assert 0 < row.cost < 1
    assert any("up to 32 requests" in text and "at the given prices" in text for text in told)


# ------------------------------------------------------------------------------------------------ whole runs


def test_a_run_pays_once(data_root: Path, tmp_path: Path) -> None:
    """Asked once, kept in the store with the words; the same command again asks nothing, nor does another run of it."""
    with ChatServer() as server:
        spec, told = f"chat:eye?url={server.url}&max_requests=20&{QUICK}", []

        def run(spec: str) -> cuebench.Scores:
            return cuebench.evaluate(
                spec, "cue_conflict", data_root=data_root, out=tmp_path / "run", resamples=100, workers=0,
                on_event=lambda e: told.append(f"{e.kind}: {e.message}"),
            )  # fmt: skip

        stopped = run(spec)
        assert "budget of 20 requests" in stopped.failures[0]
        assert server.requests == 20
        scores = run(spec.replace("=20", "=0"))
        assert server.requests == 32
        run(spec.replace("=20", "=0"))
        assert server.requests == 32
    assert scores.value("chat:eye", "shape_bias", "4-way") == 1
    assert any("notice: chat:eye · cue_conflict: up to 32 requests" in line for line in told)
    import pyarrow.parquet as pq

    (folder,) = (tmp_path / "run" / "responses").glob("chat_eye--*")
    (shard,) = folder.glob("*.parquet")
    assert set(pq.read_table(shard)["text"].to_pylist()) == {"A.", "B.", "C.", "D."}


def test_the_key_is_sent_and_found_nowhere(
    data_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CUEBENCH_CHAT_KEY", "sk-very-secret")

    def echo(number: int, body: dict[str, Any]) -> Any:
        return (200, {}, completion("A. sk-very-secret")) if number < 30 else problem(401, "no key sk-very-secret")

    with ChatServer(echo) as server:
        scores = cuebench.evaluate(
            f"chat:eye?url={server.url}", "cue_conflict", data_root=data_root, out=tmp_path / "run", resamples=100,
            workers=0, on_event=lambda e: print(e.message, e.fields),
        )  # fmt: skip
        assert server.keys == {"Bearer sk-very-secret"}
    assert "refused the key in CUEBENCH_CHAT_KEY (401)" in scores.failures[0]
    files = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert len(files) > 4
    assert not [path for path in files if b"very-secret" in path.read_bytes()]
    assert "very-secret" not in "".join(capfd.readouterr())


# ------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("reply", "message", "hint"),
    [
        (problem(401, "missing"), "wants a key", "export CUEBENCH_CHAT_KEY="),
        (problem(404, "model 'eyes' not found"), "Did you mean 'eye'", "known: ear, eye"),
        (problem(400, "eyes does not support image input"), "takes no pictures", "vision-language"),
        (problem(500, "image input is not supported - hint: mmproj"), "takes no pictures", "--mmproj"),
        (problem(400, "content must be a string"), "takes no pictures", "vision-language"),
        (problem(400, "temperature 0 is not supported"), "refused the request", "temperature=default"),
        (problem(429, "You exceeded your current quota"), "quota", "add credit"),
        (problem(429, "later", Retry_After="9999"), "asks to wait for 9,999 s", "later"),
        ((200, {}, completion("The picture shows " * 9, "length")), "longer than max_tokens=64", "max_tokens=512"),
        ((200, {}, b"x" * (5 << 20)), "more than 4 MiB", "max_tokens"),
    ],
)
def test_bad_endpoints_say_what_to_do(reply: Any, message: str, hint: str) -> None:
    with ChatServer(lambda *_: reply) as server, pytest.raises(UserError) as caught:
        ask(observer(server, model="eyes"), 1)
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_there_is_no_endpoint() -> None:
    with ChatServer() as server:
        asked = observer(server, "&retries=0")
    with pytest.raises(UserError, match="gave no answer to 1 attempt"):
        ask(asked, 1)


@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [
        ("", "has no url=", "url=http"),
        ("?url=localhost:8000", "is no http address", "url=http"),
        ("?url=http://me:secret@localhost/v1", "carries a name, a password", "export CUEBENCH_CHAT_KEY"),
        ("?url=http://localhost/v1%3Fkey%3Dsecret", "or a query", "environment"),
        ("?url=http://localhost/v1&key=x", "unknown option", "key_env"),
        ("?url=http://localhost/v1&key_env=NOT_SET", "NOT_SET is not set", "export NOT_SET"),
        ("?url=http://localhost/v1&max_cost=3", "has max_cost= but no prices", "price_in="),
        ("?url=http://localhost/v1&judge=chat:b", "lettered options", "prompt=caption"),
        ("?url=http://localhost/v1&prompt=caption&match=timm:x", "match=timm:x", "open_clip"),
        ("?url=http://localhost/v1&prompt=caption&judge=timm:x", "judge=timm:x", "judge=chat:"),
        ("?url=http://localhost/v1&options=cat,horse", "'horse' is no class", "options=cat,dog,car,clock"),
        ("?url=http://localhost/v1&concurrency=0", "concurrency", "≥ 1"),
    ],
)
def test_bad_specs_say_what_to_do(options: str, message: str, hint: str) -> None:
    with pytest.raises(UserError) as caught:
        load(f"chat:eye{options}", LoadOptions(targets=CLASSES))[0].among(CLASSES)
    assert message in caught.value.message
    assert hint in str(caught.value)
    assert "secret" not in str(caught.value)


def test_offline_is_kept() -> None:
    with pytest.raises(UserError, match="offline was asked for"):
        load("chat:eye?url=https://example.org/v1", LoadOptions(targets=CLASSES, offline=True))
    assert load("chat:eye?url=http://127.0.0.1:1/v1", LoadOptions(targets=CLASSES, offline=True))


def test_newer_endpoints_want_another_name_of_the_limit() -> None:
    def modern(number: int, body: dict[str, Any]) -> Any:
        return problem(400, "Use 'max_completion_tokens' instead.") if "max_tokens" in body else None

    with ChatServer(modern) as server:
        assert ask(observer(server), 2)["decisions"].tolist() == ["cat", "dog"]


def test_what_another_process_asked_meanwhile_is_read(tmp_path: Path) -> None:
    with ChatServer() as server:
        early = observer(server, "", str(tmp_path))
        assert early.expense(4).requests == 4  # reads the journal, which is empty
        mine = early.journal
        other = Journal(mine.file, mine.question)  # as another process would
        for key, text in [(image_key(image), "A.") for image in images(3).images]:
            other.asked(key, 0.0)
            other.answered(key, Answer(text), 0.0)
        os.close(other._descriptor)
        other._descriptor = None
        assert ask(early, 4)["text"].tolist() == ["A.", "A.", "A.", "D."]
        assert server.requests == 1


def journal_of(folder: Path, *records: dict[str, Any]) -> Journal:
    file = folder / "journal.jsonl"
    file.write_bytes(b"".join(map(_line, records)))
    journal = Journal(file, {})
    journal.read()
    return journal


def test_lines_with_costs_and_counts_that_cannot_be_are_damaged(tmp_path: Path) -> None:
    most = {"text": "A.", "tokens_in": MOST_TOKENS, "tokens_out": MOST_TOKENS}
    dearest = Prices(HIGHEST_PRICE, HIGHEST_PRICE).of(MOST_TOKENS, MOST_TOKENS)
    believed = journal_of(tmp_path, {"asked": "x", "cost": dearest}, {"answer": "x", **most, "cost": dearest})
    assert (believed.damaged, believed.spent.cost, len(believed.answers)) == (0, dearest, 1)
    forged = [
        {"asked": "x", "cost": 1e308},
        {"answer": "y", **most, "cost": 1e308},
        {"answer": "z", **most, "tokens_in": 10**400, "cost": 0},
        {"answer": "z", **most, "tokens_out": -1, "cost": 0},
    ]
    refused = journal_of(tmp_path, *forged)
    assert (refused.damaged, refused.spent.cost, refused.answers) == (4, 0, {})


def test_two_processes_do_not_pay_twice(tmp_path: Path) -> None:
    import subprocess
    import sys

    with ChatServer() as server:
        asked = observer(server, "", str(tmp_path))
        ask(asked, 1)
        assert asked.journal.file is not None
        code = (
            "import sys, pathlib; from cuebench.observers.chat.journal import Journal;"
            "Journal(pathlib.Path(sys.argv[1]), {}).asked('x', 0)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, str(asked.journal.file)], capture_output=True, text=True, check=False
        )
    assert "another process is asking" in done.stderr
    assert json.loads(asked.journal.file.read_text().splitlines()[-1][9:])["text"] == "A."
