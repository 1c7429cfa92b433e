"""An option that would do nothing is refused, and the message says what to do."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import cuebench
from cuebench import cli
from cuebench.cli import invoke
from cuebench.cli._flags import flags_of
from cuebench.cli._idle import rules_of
from cuebench.responses.events import Event

NETWORKS = "run -o ideal:shape -p cue_conflict --out o"
REFUSED = [
    ("correlate run --out c.csv", "--out would do nothing without --corrected", "add --corrected"),
    ("correlate run -p cue_conflict --same a=b", "--protocol, --same would do nothing", "add --corrected"),
    ("correlate run --corrected --method pearson", "--method would do nothing with --corrected", "leave"),
    ("report run --title Mine --no-figures", "--title, --no-figures would do nothing in a table", "--out report.html"),
    ("report run --format csv --json", "--format would do nothing with --json and no --out", "--out FILE"),
    ("cue --sheet out.png in.png --set grid=4", "--set would do nothing with --sheet", "leave it out"),
    ("cue --sheet out.png in.png --invert-mask", "--invert-mask would do nothing without --mask", "add --mask"),
    ("cue gray in.png out.png --invert-mask", "--invert-mask would do nothing without --mask", "add --mask"),
    ("published export run --out out --paper x", "--paper would do nothing with a run", "leave it out"),
    ("published check --all -q", "--all would do nothing with -q or --json", "leave it out"),
    ("published check --all --json", "--all would do nothing with -q or --json", "leave it out"),
    ("validity difficulty --space x --view y", "--space, --view would do nothing without a run folder", "add a run"),
    ("validity agreement run --proxy run --space 16-way --seed 1", "--space, --seed would do nothing", "--proxy"),
    ("curate d --agreement --judge me --port 99 --no-browser", "--judge, --port, --no-browser would", "--agreement"),
    ("curate d --browser --json", "--browser would do nothing with --json", "open the address"),
    ("compare run --all --json", "--all would do nothing with --json", "has every pair"),
    ("fetch toy --data-root d --offline --mirror x", "--mirror would do nothing with --offline", "leave it out"),
    ("calibrate --quick --studies 20", "--studies would do nothing with --quick", "leave out --quick"),
    ("study power --width 0.1 --task x", "--task would do nothing without --pilot", "add --pilot"),
    ("study power --width 0.1 --pilot f --share 0.5 --person-sd 1 --image-sd 1", "--share, --person-sd, --image-sd",
     "leave out --pilot"),
    ("study analyse s -o a", "--observer would do nothing without --run", "add --run"),
    ("study analyse s --people --json", "--people would do nothing with --json", "lists every person"),
    ("study rehearse s --http --hurry --at-once 2 --device phone --screenshots d",
     "--hurry, --at-once, --device, --screenshots would do nothing with --http", "leave out --http"),
    (f"{NETWORKS} --price 2", "--price would do nothing without --plan", "--plan"),
    (f"{NETWORKS} --cache-size 3", "--cache-size would do nothing without --cache", "add --cache"),
    (f"{NETWORKS} --plan --report", "--report would do nothing with --plan", "leave out --plan"),
    (f"{NETWORKS} --plan --shard 1/3 --engine ray --responses f --compile",
     "--compile, --engine, --responses, --shard would do nothing with --plan", "leave out --plan"),
    (f"{NETWORKS} --plan --cache-size 3", "--cache-size would do nothing without --cache", "add --cache"),
]  # fmt: skip
"""Call → what is said, and what to do."""

ALWAYS = {
    "demo": "out seed report_to",
    "run": "observer protocol out data_root device precision batch_size shard_size workers cache cues background limit "
    "seed resamples allow_unreadable common fresh offline settings keep plan again save_config",
    "score": "seed resamples common settings workers",
    "merge": "out",
    "texture-of": "observer run data_root label draw top",
    "controls": "out seed",
    "study new": "design data_root run seed participants language title contact completion_code return_url",
    "study serve": "host port database workers root_path proxy draft",
    "study export": "out database draft",
    "study bundle": "out domain postgresql wheel",
    "study analyse": "rules run out database seed",
    "study power": "width trials images pilot over studies seed",
    "study rehearse": "participants observer browser out seed",
    "report": "out headlines",
    "trials": "protocol observer out",
    "compare": "observer protocol families out",
    "power": "protocol observer difference comparisons",
    "correlate": "kind corrected",
    "steer": "protocol neutral shape texture",
    "figure": "out width settings",
    "published list": "paper table model metric",
    "published check": "paper",
    "published agree": "out corrected",
    "published export": "out",
    "board build": "out title workers",
    "calibrate": "protocol quick seed workers out",
    "validity classes": "space view",
    "validity agreement": "proxy view",
    "make": "out seed count source shapes textures by network cues settings",
    "curate": "agreement",
    "fetch": "data_root offline",
    "cue": "seed mask other sheet",
    "data check": "data_root background",
    "data balance": "classes by measure condition out",
    "import model-vs-human": "out",
    "import answers": "out",
    "doctor": "data_root",
    "new": "to",
}
"""Verb → its options that count in every call, or are refused by what they are for. A new option stands here, or says
beside itself when it counts (``cuebench.cli._idle``). ``--quiet`` and ``--json`` are of all verbs."""


@pytest.mark.parametrize(("call", "message", "hint"), REFUSED, ids=[call for call, *_ in REFUSED])
def test_idle_options_are_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    call: str,
    message: str,
    hint: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert invoke(call.split()) == 2
    told = capsys.readouterr().err
    assert message in told
    assert hint in told
    assert not [*tmp_path.iterdir()]


def commands() -> Iterator[tuple[str, Callable[..., Any]]]:
    for verb in cli.verbs():
        module = cli.module_of(verb)
        for name, command in getattr(module, "COMMANDS", {"": getattr(module, "command", None)}).items():
            yield f"{verb} {name}".strip(), command


@pytest.mark.parametrize(("verb", "command"), [*commands()], ids=[verb for verb, _ in commands()])
def test_every_option_says_when_it_counts(verb: str, command: Callable[..., Any]) -> None:
    ruled = {name for name, _ in rules_of(command)}
    options = {flag.parameter for flag in flags_of(command) if flag.names} - {"quiet", "as_json"}
    always = set(ALWAYS.get(verb, "").split())
    assert options - ruled == always, "list it in ALWAYS, or declare beside it when it counts"


def test_a_file_of_settings_counts_as_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("run.toml").write_text("plan = true\nobservers = ['ideal:shape']\nprotocols = ['cue_conflict']\nout = 'o'\n")
    assert invoke(["run", "run.toml", "--report"]) == 2
    assert "--report would do nothing with --plan" in capsys.readouterr().err
    assert invoke(["run", "run.toml", "--price", "2", "--data-root", "nowhere"]) == 2
    assert "would do nothing" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "more", "message"),
    [
        ("cache_size = 3", "", "cache_size in run.toml would do nothing without --cache"),
        ("price = 2.0\nnodes = '1,4'", "", "nodes in run.toml, price in run.toml would do nothing without --plan"),
        ("plan = true\nreport = true\ncompile = true", "", "compile in run.toml, report in run.toml would do nothing"),
        ("plan = true\nengine = 'ray'", "", "engine in run.toml would do nothing with --plan"),
        ("cache_size = 3", "--plan --shard 1/2", "cache_size in run.toml would do nothing without --cache; --shard"),
    ],
)  # fmt: skip
def test_idle_keys_of_a_file_are_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str,
    more: str,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("run.toml").write_text(f"observers = ['ideal:shape']\nprotocols = ['cue_conflict']\nout = 'o'\n{text}\n")
    assert invoke(["run", "run.toml", *more.split()]) == 2
    assert message in capsys.readouterr().err
    assert not Path("o").exists()


def test_keys_that_other_flags_make_count_are_no_mistake(
    data_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("run.toml").write_text(
        "observers = ['ideal:shape']\nprotocols = ['cue_conflict']\nout = 'o'\ncache_size = 3\nfresh = false\n"
        f"price = 2.0\nresamples = 100\ndata_root = '{data_root}'\ncompile = false\n"
    )
    assert invoke(["run", "run.toml", "--plan", "--cache", "pixels", "-q"]) == 0


@pytest.mark.parametrize("device", ["nonsense", "cuda:0,gpu", "cuda:x"])
def test_a_device_that_does_not_exist_is_refused_whoever_looks(device: str, tmp_path: Path) -> None:
    with pytest.raises(cuebench.UserError, match="unknown device"):
        cuebench.evaluate("ideal:shape", "cue_conflict", data_root=tmp_path, out=tmp_path / "o", device=device)


def test_what_is_chosen_for_networks_has_a_notice_where_there_is_none(data_root: Path, tmp_path: Path) -> None:
    chosen = {"device": "cuda:1", "precision": "bfloat16", "compile": True, "cues_on": "device", "background": "grey"}
    pictures = {"cache": tmp_path / "cache", "batch_size": 7, "allow_unreadable": 0.5}

    def notices(out: str, **options: Any) -> list[str]:
        events: list[Event] = []
        shown = {"data_root": data_root, "out": tmp_path / out, "workers": 0, "resamples": 100}
        cuebench.evaluate("ideal:shape", "cue_conflict", on_event=events.append, **{**shown, **options})
        return [e.message for e in events if e.kind == "notice" and "looks at pixels" in e.message]

    assert notices("plain", device="cpu") == []
    assert notices("chosen", **chosen) == [
        "no observer looks at pixels: no effect of device cuda:1, precision bfloat16, compile, cues on device, "
        "background grey"
    ]
    assert notices("pictures", **pictures) == [
        f"no observer looks at pixels: no effect of cache {tmp_path / 'cache'}, batch size 7, allow unreadable 0.5"
    ]


def test_a_shard_that_makes_no_report_says_so(
    data_root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = [
        "run",
        "-o",
        "ideal:shape",
        "-p",
        "cue_conflict",
        "--data-root",
        str(data_root),
        "--out",
        str(tmp_path / "o"),
    ]
    base += ["--resamples", "100", "--workers", "0", "--shard-size", "1", "--json", "--report"]
    assert invoke([*base, "--shard", "1/2"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out) == {"out": str(tmp_path / "o"), "failures": [], "scores": []}
    told = [json.loads(line) for line in captured.err.splitlines()]
    (notice,) = [event for event in told if event["message"].startswith("no report")]
    assert "cuebench report" in notice["hint"]
    assert invoke([*base, "--shard", "2/2"]) == 0
    assert "no report" not in capsys.readouterr().err
    assert (tmp_path / "o" / "report.html").is_file()
