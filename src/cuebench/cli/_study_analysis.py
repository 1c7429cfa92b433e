"""The verbs ``study analyse`` and ``study power``, and how they print."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cuebench.cli._idle import idle_with, needs
from cuebench.cli._json import print_json

if TYPE_CHECKING:
    from rich.console import Console

    from cuebench.study.analysis import Analysis, Interval, Row
    from cuebench.study.power import Plan

Source = Annotated[Path, typer.Argument(help="The file of an export (.parquet, .csv), or a study folder.")]
TITLES = {
    "accuracy": "Accuracy",
    "shape_bias": "Shape bias: answers by shape among those by shape or texture",
    "decided_fraction": "Decided: answers by shape or texture among all to images in conflict",
    "shape_matches": "Shape matches: choices of the match with the same shape",
    "tid_agreement": "Agreement with TID: answers that name the identified texture",
    "gap": "Accuracy on shape minus accuracy on texture",
    "kappa": "Fleiss' κ: agreement between people",
    "order_effect": "Order effect: difference between the groups",
    "reaction_time": "Reaction time in ms",
    "shown_off": "Measured minus planned duration of images in ms",
    "attention": "Attention checks that were right",
}
"""Measure → title of its table."""


def analyse(
    source: Source,
    rules: Annotated[
        Path | None, typer.Option(help="Other exclusion rules than those of the study; the result says so.")
    ] = None,
    run: Annotated[
        Path | None, typer.Option(help="texture_words: a run of texture_association whose textures count instead.")
    ] = None,
    observer: Annotated[
        str, typer.Option("--observer", "-o", help="Whose textures of that run; default: the first."), needs("run")
    ] = "",
    people: Annotated[
        bool,
        typer.Option("--people", help="Also list every person."),
        idle_with("as_json", hint="leave it out: the JSON lists every person"),
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Write the whole result to this JSON file, for figures.")] = None,
    database: Annotated[str, typer.Option("--database", help="Address of the database, if not in the folder.")] = "",
    seed: Annotated[int, typer.Option(help="Of the permutation tests.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Analyse what people answered: accuracy, agreement, order, reaction times, shape bias, with intervals.

    Figures of the result: cuebench figure study_accuracy FILE, with the FILE of --out.
    """
    from cuebench.files import write_json
    from cuebench.reading import user_path
    from cuebench.study.analysis import analyse as analyse_answers
    from cuebench.study.exclusions import read_rules

    textures = None
    if run is not None:
        from cuebench.analyses.texture_judgements import identified

        textures = {row.image: row.texture for row in identified(run, observer)[1]}
    result = analyse_answers(
        user_path(source),
        rules=read_rules(user_path(rules)) if rules else None,
        textures=textures,
        url=database,
        seed=seed,
    )
    if out is not None:
        write_json(user_path(out), result.record())
    if as_json:
        print_json(result.record())
    else:
        from cuebench.cli._console import plain_console

        print_analysis(plain_console(), result, people=people)


def print_analysis(console: Console, result: Analysis, *, people: bool = False) -> None:
    """Print who took part, who was left out and why, then a table for each measure."""
    from rich.text import Text

    console.print(f"{result.participants:,} people took part, {result.analysed:,} are analysed", style="bold")
    for reasons, what in ((result.excluded_participants, "people"), (result.excluded_trials, "trials")):
        for why, count in reasons.items():
            console.print(Text(f"excluded: {count:,} {what if count != 1 else _one(what)}, {why}"))
    for note in result.notes:
        console.print(Text.assemble(("! ", "bold yellow"), note))
    if result.rules_sha256:
        console.print(f"exclusion rules: SHA-256 {result.rules_sha256[:16]}…", style="dim")
    for measure in dict.fromkeys(row.measure for row in result.rows):
        rows = [r for r in result.rows if r.measure == measure and (people or not r.part.startswith("person="))]
        if rows:
            console.print()
            _print_measure(console, TITLES.get(measure, measure), rows)
    console.print()
    console.print("intervals are 95 %; over people: for other people and the same images", style="dim")


def _one(what: str) -> str:
    return {"people": "person", "trials": "trial"}[what]


def _print_measure(console: Console, title: str, rows: Sequence[Row]) -> None:
    from cuebench.cli._fit import Column, print_columns

    digits = 0 if any(abs(row.value) > 20 for row in rows if math.isfinite(row.value)) else 3
    overs = list(dict.fromkeys(i.over for row in rows for i in row.intervals))
    first = overs[0] if overs else ""
    columns = [
        Column("task", [row.task for row in rows], needed=any(row.task for row in rows), number=False),
        Column("part", [row.part or "all" for row in rows], needed=True, number=False),
        Column("value", [_number(row.value, digits) for row in rows], needed=True),
        *(Column(f"over {over}", [_ends(row, over, digits) for row in rows], needed=over == first) for over in overs),
        Column("n", [f"{row.n:,}" for row in rows], needed=True),
        Column("people", [f"{row.people:,}" if row.people else "" for row in rows]),
        Column("images", [f"{row.images:,}" if row.images else "" for row in rows]),
        Column("p", [_p(row.p) for row in rows], needed=True),
    ]
    print_columns(console, [c for c in columns if any(c.cells)], title=title)
    for note in dict.fromkeys(row.note for row in rows if row.note and not row.part.startswith("person=")):
        console.print(note, style="dim", markup=False)
    missing = dict.fromkeys(i.note for row in rows for i in row.intervals if i.note and not math.isfinite(i.low))
    for note in list(missing)[:3]:
        console.print(f"– no interval: {note}", style="dim", markup=False)


def _p(p: float) -> str:
    return "" if math.isnan(p) else "< 0.001" if p < 0.001 else f"{p:.3f}"


def _number(value: float, digits: int) -> str:
    return f"{value + 0.0:z.{digits}f}" if math.isfinite(value) else "–"


def _ends(row: Row, over: str, digits: int) -> str:
    interval: Interval | None = next((i for i in row.intervals if i.over == over), None)
    if interval is None or not math.isfinite(interval.low):
        return "–"
    return f"[{_number(interval.low, min(digits, 2))}, {_number(interval.high, min(digits, 2))}]"


# ------------------------------------------------------------------------------------------------------------ power


def power(
    width: Annotated[float, typer.Option(help="Wanted width of the 95 % interval: 0.1 is ± 5 percentage points.")],
    share: Annotated[float, typer.Option(help="Assumed accuracy or shape bias."), idle_with("pilot")] = 0.9,
    person_sd: Annotated[float, typer.Option(help="Assumed spread of people (logit scale)."), idle_with("pilot")] = 0.6,
    image_sd: Annotated[float, typer.Option(help="Assumed spread of images (logit scale)."), idle_with("pilot")] = 0.8,
    trials: Annotated[int, typer.Option(help="Trials of each person.")] = 50,
    images: Annotated[int, typer.Option(help="Images in the study; 0: everybody sees the same ones.")] = 0,
    pilot: Annotated[
        Path | None, typer.Option(help="Export or folder of a pilot study: share and spreads are estimated from it.")
    ] = None,
    task: Annotated[str, typer.Option(help="Task of the pilot; default: its first."), needs("pilot")] = "",
    over: Annotated[
        str, typer.Option(help="What the interval is over: people (the same images), or both (people and images).")
    ] = "both",
    studies: Annotated[int, typer.Option(help="Simulated studies for each number of people.")] = 200,
    seed: Annotated[int, typer.Option(help="Of the simulation.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Say how many people a study needs for an interval of a wanted width, by simulation.

    From assumptions, or from a pilot study (--pilot).
    """
    from cuebench.reading import user_path
    from cuebench.study.power import Assumptions, from_pilot, plan

    assumed = Assumptions(share, person_sd, image_sd, trials, images)
    if pilot is not None:
        assumed = from_pilot(user_path(pilot), task=task, trials=trials, images=images)
    study_plan = plan(assumed, width, over=over, studies=studies, seed=seed)
    if as_json:
        print_json(study_plan.record())
    else:
        from cuebench.cli._console import plain_console

        print_plan(plain_console(), study_plan)


def print_plan(console: Console, study_plan: Plan) -> None:
    """Print the number of people, the widths that lead to it, and what else would help."""
    from cuebench.cli._fit import Column, print_columns

    console.print(study_plan.answer, style="bold", markup=False)
    console.print()
    rows = study_plan.steps
    columns = [
        Column("people", [f"{row.people:,}" for row in rows], needed=True),
        Column("width", [f"{row.width:.3f}" for row in rows], needed=True),
        Column("80 % are\nnarrower than", [f"{row.width_80:.3f}" for row in rows], needed=True),
        Column("holds the\ntruth", [f"{row.coverage:.1%}" for row in rows]),
    ]
    print_columns(console, columns, title=f"Mean width of the interval over {study_plan.over}")
    for note in study_plan.notes:
        console.print(note, style="dim", markup=False)
