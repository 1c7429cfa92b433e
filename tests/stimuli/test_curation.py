"""The curation page: verdicts that survive, judges that agree or not, a server that gives nothing away."""

from __future__ import annotations

import csv
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path
from shutil import copytree, which

import numpy as np
import pytest
from PIL import Image
from statsmodels.stats.inter_rater import cohens_kappa, fleiss_kappa

from cuebench.cli import invoke
from cuebench.errors import UserError
from cuebench.stimuli.curation.agreement import agreement
from cuebench.stimuli.curation.cues import find_cues
from cuebench.stimuli.curation.server import Curation, address_of, serve
from cuebench.stimuli.curation.verdict_log import KEEP, REJECT, Verdict, VerdictLog, read_logs
from cuebench.stimuli.makers.base import make
from cuebench.stimuli.refined_bias.verdicts import read_verdicts

CHROMIUM = which("chromium") or which("chromium-browser")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Three cut-out objects on a transparent ground, with texture."""
    folder = tmp_path_factory.mktemp("source")
    y, x = np.mgrid[:160, :160]
    noise = np.random.default_rng(0)
    for name in ("tiger", "zebra"):
        for i in range(2):
            disc = (y - 80) ** 2 + (x - 80) ** 2 < (60 + 5 * i) ** 2
            colour = noise.integers(40, 220, (160, 160, 3)) * ((x // 4 + y // 7) % 2)[..., None]
            pixels = np.dstack([colour, 255 * disc]).astype(np.uint8)
            (folder / name).mkdir(exist_ok=True)
            Image.fromarray(pixels, "RGBA").save(folder / name / f"{i}.png")
    return folder


@pytest.fixture(scope="module")
def original(source, tmp_path_factory):
    """The cues of these objects; some are rejected by the inspection."""
    out = tmp_path_factory.mktemp("made")
    make("refined_bias", out, source=str(source), grids="4")
    return out


@pytest.fixture
def made(original, tmp_path):
    """A copy of them that a test may change."""
    return copytree(original, tmp_path / "set")


# ------------------------------------------------------------------------------------------------------- the log


def test_the_last_verdict_counts_and_undo_takes_back_the_most_recent(tmp_path):
    log = VerdictLog(tmp_path, "ann")
    assert log.undo() == ""
    log.add("a", KEEP)
    log.add("b", REJECT, "wrong\n  mask")
    log.add("a", REJECT)
    assert log.read() == {"b": Verdict("reject", "wrong mask"), "a": Verdict("reject", "")}
    assert log.undo() == "a"
    assert log.read() == {"b": ("reject", "wrong mask")}
    assert (log.undo(), log.undo(), log.read()) == ("b", "", {})


@pytest.mark.parametrize("cut", ["2026,ann,c,kee", '2026,ann,c,reject,"open', "2026,ann,c", "\xff\xfe"])
def test_a_line_that_was_cut_short_harms_no_other(tmp_path, cut):
    log = VerdictLog(tmp_path, "ann")
    log.add("a", KEEP)
    with log.path.open("ab") as file:
        file.write(cut.encode("latin-1"))
    assert list(log.read()) == ["a"]
    log.add("b", REJECT, 'a "quoted", reason')
    log.add("d", KEEP)
    assert log.read() == {"a": ("keep", ""), "b": ("reject", 'a "quoted", reason'), "d": ("keep", "")}


@pytest.mark.parametrize("name", ["", "../x", "a/b", "a.b", ".", "x" * 41, "a\x00", "_"])
def test_names_of_judges_are_no_paths(tmp_path, name):
    with pytest.raises(UserError, match="use up to 40 letters"):
        VerdictLog(tmp_path, name)


def test_confirmed_verdicts_survive_a_kill(tmp_path):
    """A process is killed while it writes; everything that it has confirmed is there."""
    code = """
import sys
from pathlib import Path
from cuebench.stimuli.curation.verdict_log import VerdictLog
log = VerdictLog(Path(sys.argv[1]), "ann")
for i in range(100000):
    log.add(f"cue{i}", "keep", "a reason")
    print(i, flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        confirmed = [int(process.stdout.readline()) for _ in range(40)]
        os.kill(process.pid, signal.SIGKILL)
        confirmed += [int(line) for line in process.stdout.read().split("\n")[:-1]]
    verdicts = VerdictLog(tmp_path, "ann").read()
    assert all(f"cue{i}" in verdicts for i in confirmed)
    assert len(verdicts) <= len(confirmed) + 1


# ------------------------------------------------------------------------------------------------------ agreement


def test_kappa_is_that_of_another_library():
    rng = np.random.default_rng(0)
    first = rng.random(60) < 0.6
    second = np.where(rng.random(60) < 0.8, first, ~first)
    words = [[KEEP if v else REJECT for v in answers] for answers in (first, second)]
    own = {name: {f"c{i}": Verdict(w) for i, w in enumerate(given)} for name, given in zip(("ann", "bob"), words)}
    own["ann"]["only ann"] = Verdict(KEEP)
    found = agreement(own)
    table = [[((first == a) & (second == b)).sum() for b in (True, False)] for a in (True, False)]
    assert found["pairs"][0]["value"] == pytest.approx(cohens_kappa(np.array(table)).kappa)
    assert found["pairs"][0]["low"] < found["pairs"][0]["value"] < found["pairs"][0]["high"]
    assert (found["both"], found["same"]) == (60, pytest.approx((first == second).mean()))
    assert len(found["differ"]) == (first != second).sum()
    assert found["judges"]["ann"] == {"judged": 61, "kept": int(first.sum()) + 1}
    counts = np.column_stack([first.astype(int) + second, 2 - first.astype(int) - second])
    assert found["fleiss"]["value"] == pytest.approx(fleiss_kappa(counts))


def test_one_judge_agrees_with_nobody(tmp_path, made, capsys):
    VerdictLog(made / "refined_bias" / "verdicts", "ann").add("tiger_0", KEEP)
    assert invoke(["curate", str(made), "--agreement"]) == 0
    assert "no cue was judged by two people" in capsys.readouterr().out
    VerdictLog(made / "refined_bias" / "verdicts", "bob").add("tiger_0", REJECT)
    assert invoke(["curate", str(made), "--agreement", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["both"], summary["differ"]) == (1, ["tiger_0"])
    assert "at least 2 are needed" in summary["fleiss"]["note"]


# --------------------------------------------------------------------------------------------------- what is judged


def test_every_made_cue_is_judged_also_the_rejected_ones(made):
    cues = find_cues(made)
    rows = list(csv.DictReader((made / "refined_bias" / "inspection.csv").open(encoding="utf-8")))
    assert [f.name for f in cues.files] == [r["name"] for r in rows]
    assert find_cues(made / "refined_bias") == cues
    assert {f.cue for f in cues.files} == {"shape", "texture"}


def test_other_folders(tmp_path):
    with pytest.raises(UserError, match="is no folder"):
        find_cues(tmp_path / "nowhere")
    with pytest.raises(UserError, match="no image to judge"):
        find_cues(tmp_path)
    for place in ("cat/1.png", "dog/1.png"):
        (tmp_path / place).parent.mkdir()
        Image.new("RGB", (8, 8)).save(tmp_path / place)
    assert [f.name for f in find_cues(tmp_path).files] == ["cat_1", "dog_1"]


def test_a_table_cannot_lead_out_of_the_set(made, tmp_path):
    table = made / "refined_bias" / "inspection.csv"
    (made / "secret.png").write_bytes(b"secret")
    lines = table.read_text().splitlines()
    lines[1] = lines[1].replace("tiger_0,", "../../../../secret,", 1)
    table.write_text("\n".join(lines) + "\n")
    assert all("secret" not in f.name for f in find_cues(made).files)
    assert find_cues(made).without_picture == 1


def test_the_maker_uses_the_verdicts_of_several_judges(source, made):
    folder = made / "refined_bias" / "verdicts"
    names = [f.name for f in find_cues(made).files]
    first, second = names[0], names[1]
    for judge, about_second in (("ann", KEEP), ("bob", KEEP), ("eve", REJECT)):
        log = VerdictLog(folder, judge)
        log.add(first, REJECT, "wrong mask")
        log.add(second, about_second)
        log.add("a cue of another set", KEEP)
    assert read_verdicts(folder, names) == {first: (False, "wrong mask"), second: (True, "")}
    stimuli = make("refined_bias", made, source=str(source), grids="4", verdicts=str(folder))
    assert second in {s.id for s in stimuli}
    assert first not in {s.id for s in stimuli}
    rows = {r["name"]: r for r in csv.DictReader((made / "refined_bias" / "inspection.csv").open(encoding="utf-8"))}
    assert (rows[first]["by"], rows[first]["reason"]) == ("person", "rejected by a person: wrong mask")
    (folder / "x.csv").write_text("a,b\n")
    with pytest.raises(UserError, match="no log of verdicts"):
        read_verdicts(folder, names)


# ------------------------------------------------------------------------------------------------------- the server


@pytest.fixture
def running(made):
    """A server with the cues, and a function that asks it."""
    curation = Curation(find_cues(made))
    with serve(curation) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()

        def ask(method, path, body=None, host="", token=curation.token, kind="application/json"):
            connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
            headers = {"Content-Type": kind} if body is not None else {}
            headers["Host"] = host or f"127.0.0.1:{server.server_port}"
            connection.request(method, f"/{token}/{path}", body, headers)
            answer = connection.getresponse()
            data = answer.read()
            connection.close()
            return answer, data

        ask.address, ask.curation = address_of(server, curation), curation
        yield ask
        server.shutdown()
        thread.join()


def test_judging_over_http(running):
    answer, data = running("GET", "cues")
    listing = json.loads(data)
    assert answer.status == 200
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert str(running.curation.cues.home) not in data.decode()
    answer, data = running("GET", "image/0")
    assert (answer.status, answer.headers["Content-Type"], data[:4]) == (200, "image/png", b"\x89PNG")
    body = {"judge": "ann", "cue": 1, "verdict": "reject", "reason": "noise"}
    assert json.loads(running("POST", "verdict", json.dumps(body))[1]) == {"saved": True}
    name = listing["cues"][1]["name"]
    assert read_logs(running.curation.folder) == {"ann": {name: ("reject", "noise")}}
    assert json.loads(running("GET", "verdicts?judge=ann")[1]) == {"verdicts": [[1, "reject", "noise"]]}
    assert json.loads(running("GET", "verdicts?judge=bob")[1]) == {"verdicts": []}
    assert json.loads(running("GET", "agreement")[1])["judges"] == {"ann": {"judged": 1, "kept": 0}}
    assert json.loads(running("POST", "undo", json.dumps({"judge": "ann"}))[1]) == {"undone": 1}
    assert json.loads(running("POST", "undo", json.dumps({"judge": "ann"}))[1]) == {"undone": None}


@pytest.mark.parametrize(
    ("method", "path", "body", "options", "status"),
    [
        ("GET", "cues", None, {"token": "guess"}, 403),
        ("GET", "", None, {"token": ""}, 403),
        ("GET", "cues", None, {"host": "evil.example"}, 403),
        ("GET", "image/../../made.json", None, {}, 404),
        ("GET", "image/%2e%2e/inspection.csv", None, {}, 404),
        ("GET", "image/999", None, {}, 404),
        ("GET", "image/-1", None, {}, 404),
        ("GET", "server.py", None, {}, 404),
        ("GET", "verdicts?judge=../x", None, {}, 400),
        ("POST", "verdict", "[]", {}, 400),
        ("POST", "verdict", "{", {}, 400),
        ("POST", "verdict", json.dumps({"judge": "ann", "cue": 0, "verdict": "keep"}), {"kind": "text/plain"}, 400),
        ("POST", "verdict", json.dumps({"judge": "../x", "cue": 0, "verdict": "keep"}), {}, 400),
        ("POST", "verdict", json.dumps({"judge": "ann", "cue": 99, "verdict": "keep"}), {}, 400),
        ("POST", "verdict", json.dumps({"judge": "ann", "cue": "0", "verdict": "keep"}), {}, 400),
        ("POST", "verdict", json.dumps({"judge": "ann", "cue": 0, "verdict": "maybe"}), {}, 400),
        ("POST", "verdict", "x" * 5000, {}, 400),
        ("POST", "verdict", json.dumps({"judge": "ann", "cue": 0, "verdict": "keep"}), {"token": "guess"}, 403),
        ("PUT", "verdict", "{}", {}, 501),
    ],
)
def test_what_is_refused(running, method, path, body, options, status):
    answer, _ = running(method, path, body, **options)
    assert answer.status == status
    assert not running.curation.folder.exists()


def test_a_port_in_use(running):
    port = int(running.address.split(":")[2].split("/")[0])
    with pytest.raises(UserError, match=f"port {port} cannot be used"):
        serve(running.curation, port)


@pytest.mark.slow
@pytest.mark.skipif(
    not CHROMIUM or find_spec("playwright") is None,
    reason="needs a browser: apt-get install chromium; pip install playwright",
)
def test_judging_in_a_browser(running, tmp_path):
    """Keys, buttons, undo, a second visit, and a server that has gone."""
    from playwright.sync_api import expect, sync_playwright

    problems = []
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 900, "height": 900})
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(running.address)
        page.fill("#name", "../ann")
        page.press("#name", "Enter")
        expect(page.locator("#error")).to_contain_text("use up to 40 letters")
        problems.clear()  # the browser reports the refused request
        page.fill("#name", "ann")
        page.press("#name", "Enter")
        expect(page.locator("#question")).to_contain_text("recognisable as tiger by its shape")
        expect(page.locator("#picture")).to_have_js_property("naturalWidth", 224)
        names = [f.name for f in running.curation.cues.files]

        def expect_cue(number):
            expect(page.locator("#caption")).to_have_text(f"{names[number]} · {number + 1} of {len(names)}")

        page.keyboard.press("k")
        expect_cue(1)
        page.keyboard.press("2")
        expect_cue(2)
        page.click("#reject")
        expect_cue(3)
        page.keyboard.press("u")
        expect_cue(2)
        log = VerdictLog(running.curation.folder, "ann")
        assert log.read() == {names[0]: ("keep", ""), names[1]: ("reject", "wrong mask")}
        page.keyboard.press("ArrowLeft")
        expect(page.locator("#state")).to_contain_text("You reject it: wrong mask")
        if os.environ.get("CUEBENCH_SCREENSHOTS"):
            page.screenshot(path=str(Path(os.environ["CUEBENCH_SCREENSHOTS"]) / "curate.png"))
        page.reload()
        page.fill("#name", "ann")
        page.click("#begin")
        expect_cue(2)
        for number in range(2, len(names)):
            expect_cue(number)
            page.keyboard.press("k")
        expect(page.locator("#summary")).to_contain_text(f"{len(names)} of {len(names)} cues judged by ann")
        assert len(log.read()) == len(names)
        assert problems == []
        browser.close()
