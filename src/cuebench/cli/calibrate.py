"""The verb ``calibrate``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cuebench.cli._idle import idle_with
from cuebench.cli._json import print_json

if TYPE_CHECKING:
    from cuebench.calibration.trust import Trust


def command(
    protocol: Annotated[
        list[str] | None, typer.Option("--protocol", "-p", help="A protocol, repeat; default: all of cuebench's own.")
    ] = None,
    studies: Annotated[
        int, typer.Option(help="Simulated studies for each setting of the intervals."), idle_with("quick")
    ] = 1000,
    quick: Annotated[bool, typer.Option("--quick", help="48 studies each: under two minutes on two cores.")] = False,
    seed: Annotated[int, typer.Option(help="The same seed gives the same tables.")] = 0,
    workers: Annotated[int | None, typer.Option(help="Processes; default: one for each core.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for recovered.csv, coverage.csv, settings.json and calibration.svg.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Result on stdout as JSON.")] = False,
) -> None:
    """Measure what each metric recovers when the truth is known.

    Simulated observers of a planted shape weight and competence are scored by the protocols themselves, in memory.
    Shown are what comes back, its bias, what is mixed in, and how often each 95 % interval holds the truth.
    """
    import tempfile
    from dataclasses import asdict

    from cuebench.calibration.run import calibration
    from cuebench.cli._progress import progress_bar

    with tempfile.TemporaryDirectory() as aside, progress_bar("studies", quiet=as_json) as progress:
        folder = out.expanduser() if out else Path(aside)
        calibrated = calibration(
            folder, protocol or [], studies=studies, quick=quick, seed=seed, workers=workers, progress=progress
        )
        if out:
            from cuebench.reports.draw import draw

            draw("calibration", options={"folder": str(folder)}).save(folder / "calibration.svg", "page")
    if as_json:
        rows = [{**asdict(t), "verdict": t.verdict, "sentences": t.sentences()} for t in calibrated.trust]
        print_json({"folder": str(out) if out else None, "settings": calibrated.settings, "numbers": rows})
        return
    _print(calibrated.trust, calibrated.settings["studies"])
    if out:
        print(out)


def _print(known: Sequence[Trust], studies: int) -> None:
    from rich.table import Table

    from cuebench.calibration.tables import MISREAD
    from cuebench.calibration.trust import VARY
    from cuebench.cli._console import plain_console

    table = Table(
        "metric", "condition", ".2", ".5", ".8", "8%/2%", "bias", "interval holds", "", box=None, pad_edge=False
    )
    protocol = ""
    for t in known:
        if t.protocol != protocol:
            protocol = t.protocol
            table.add_section()
            table.add_row(protocol, style="bold")
        claimed = {kind: by for kind, by in t.coverage.items() if VARY in by and not kind.endswith(MISREAD)}
        held = ", ".join(f"{kind.replace('_', ' ')} {by[VARY]:.0%}" for kind, by in claimed.items())
        values = [_number(v) for v in (*(t.recovered.get(w, float("nan")) for w in (0.2, 0.5, 0.8)), t.weak)]
        bias = _number(t.bias, "+.3f") if t.bias else "none"
        table.add_row(t.metric, t.condition, *values, bias, held, t.verdict)
    console = plain_console()
    console.print(table)
    notes = (
        ".2, .5, .8: planted weight, at full competence → mean over studies; 8%/2%: weight .8, competence .1",
        "bias: the largest error of the mean, over all weights and competences, that is surely none of chance",
        f"interval holds: share of {studies:,} studies, with shapes and textures that differ, in which the 95 % "
        "interval holds the value for new ones",
    )
    for note in notes:
        console.print(note, style="dim")


def _number(value: float, form: str = ".3f") -> str:
    return format(value, form) if value == value else "–"
