"""The verb ``study rehearse``."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cuebench.cli._idle import Counts
from cuebench.cli._json import print_json

if TYPE_CHECKING:
    from cuebench.study.analysis import Analysis
    from cuebench.study.rehearse import Rehearsal

BROWSER = Counts(lambda given: given["browser"], "with --http", "leave it out, or leave out --http")


def rehearse(
    folder: Annotated[Path, typer.Argument(help="A study folder.")],
    participants: Annotated[int, typer.Option(help="Simulated participants.")] = 4,
    observer: Annotated[
        str, typer.Option("--observer", "-o", help="Whom they are drawn from: ideal:mixture?shape=0.7&lapse=0.05, …")
    ] = "ideal:mixture?shape=0.7",
    browser: Annotated[bool, typer.Option("--browser/--http", help="In Chromium, or over HTTP without a page.")] = True,
    hurry: Annotated[
        bool,
        typer.Option("--hurry", help="Browser: no noise, no pauses, nobody hesitates; no times are stored."),
        BROWSER,
    ] = False,
    at_once: Annotated[int, typer.Option(help="Browsers at the same time; 0: two for each core."), BROWSER] = 0,
    device: Annotated[
        list[str] | None, typer.Option(help="desktop or phone, again for both in turn; default: both."), BROWSER
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Export the answers to this file (.parquet, .csv).")] = None,
    screenshots: Annotated[
        Path | None, typer.Option(help="Folder for a picture of every kind of page."), BROWSER
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the simulated people.")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> int:
    """Let simulated participants go through the whole study, then analyse what they answered.

    Their answers go to a database of their own, never to that of the study. Ends with status 1 where the page had
    errors, asked another host for something, or lost an answer.
    """
    from dataclasses import asdict

    from cuebench.cli._progress import progress_bar
    from cuebench.errors import did_you_mean
    from cuebench.reading import user_path
    from cuebench.study.analysis import analyse
    from cuebench.study.rehearse import rehearse as run
    from cuebench.study.visitor import DEVICES

    devices = tuple(device or DEVICES)
    for name in devices:
        if name not in DEVICES:
            raise did_you_mean("device", name, DEVICES)
    with tempfile.TemporaryDirectory() as place, progress_bar("rehearsal", quiet=quiet or as_json) as progress:
        answers = user_path(out) if out else Path(place) / "answers.parquet"
        result = run(
            user_path(folder),
            participants=participants,
            observer=observer,
            browser=browser,
            devices=devices,
            hurry=hurry,
            at_once=at_once,
            seed=seed,
            out=answers,
            screenshots=user_path(screenshots) if screenshots else None,
            progress=progress,
        )
        analysis = analyse(answers, seed=seed)
    if as_json:
        print_json({**asdict(result), "observer": observer, "analysis": analysis.record()})
    else:
        _print(result, analysis, observer, out, browser=browser)
    return 1 if result.problems else 0


def _print(result: Rehearsal, analysis: Analysis, observer: str, out: Path | None, *, browser: bool) -> None:
    from cuebench.cli._console import plain_console
    from cuebench.cli._study_analysis import print_analysis

    print(f"{len(result.finished):,} simulated participants ({observer}), {result.answers:,} answers")
    print(f"{result.seconds:.0f} s{f'; answers: {out}' if out else ''}")
    if result.hurried:
        print("in a hurry: reaction times and durations of images were not stored")
    elif browser:
        print(f"noise, pauses and brief images: {result.own_seconds:.0f} s of each session by the design")
        print("simulated people answer as soon as the exclusion rules allow: their reaction times say nothing")
    for problem in dict.fromkeys(result.problems):
        print(f"problem: {problem}")
    print_analysis(plain_console(), analysis)
