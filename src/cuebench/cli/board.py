"""Build a leaderboard site from runs, or check an entry for one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cuebench.cli._json import print_json

if TYPE_CHECKING:
    from cuebench.reports.board.check import Checked


def build(
    entries: Annotated[
        list[Path],
        typer.Argument(metavar="ENTRIES…", help="Run folders, zip or tar files of them, or folders of these."),
    ],
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder of the site; built before: only new entries are scored.")
    ],
    title: Annotated[str, typer.Option(help="Heading of the site.")] = "",
    workers: Annotated[
        int | None, typer.Option(help="Processes; default one for each core where it pays, 0: none.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No bar.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Result on stdout as JSON.")] = False,
) -> int:
    """Write a leaderboard as a static site: pages, a page for each model, and JSON files.

    Every entry is scored again; one that is partial or damaged, or whose scores do not follow from its answers, is
    refused with the reason. Exit status 1 where any was refused. "build" need not be written.
    """
    from cuebench.cli._progress import progress_bar
    from cuebench.reports.board.site import board
    from cuebench.reports.html.text import counted

    with progress_bar("checking entries", quiet=quiet or as_json) as progress:
        made = board(entries, out, title=title, workers=workers, progress=progress)
    if as_json:
        rankings = [{"id": t.id, "protocol": t.shown.protocol, "models": len(t.models)} for t in made.tracks]
        facts = {"models": made.models, "known": made.known, "rankings": rankings}
        refused = [{"entry": e.entry, "problems": e.problems} for e in made.refused]
        remarks = [{"entry": e.entry, "remarks": e.remarks} for e in made.entries if e.accepted and e.remarks]
        texts = {"refused": refused, "remarks": remarks}
        print_json({"file": str(made.path), "entries": len(made.entries), **facts, **texts})
    else:
        accepted = len(made.entries) - len(made.refused)
        counts = (
            counted(made.models, "observer"),
            counted(accepted, "entry", "entries"),
            counted(len(made.tracks), "ranking"),
        )
        print("{}: {} of {} in {}".format(made.path, *counts))
        if made.known:
            print(f"  {made.known:,} entries were checked by an earlier build")
        for entry in made.entries:
            for remark in entry.remarks if entry.accepted else ():
                print(f"  {entry.entry}: {remark}")
        for entry in made.refused:
            print(f"  refused: {entry.entry}")
            for problem in entry.problems:
                print(f"    - {problem}")
    return int(bool(made.refused))


def check(
    entry: Annotated[Path, typer.Argument(metavar="ENTRY", help="A run folder, or a zip or tar file of one.")],
    as_json: Annotated[bool, typer.Option("--json", help="Result on stdout as JSON.")] = False,
) -> int:
    """Check an entry before submitting it: all problems at once. Exit status 0 where a board takes it, else 1."""
    from cuebench.reports.board.check import check_entry

    checked = check_entry(entry)
    if as_json:
        models = [{"slug": m.slug, "name": m.name, "observer": m.observer, "layer": m.layer} for m in checked.models]
        facts = {"entry": checked.entry, "sha256": checked.sha256, "accepted": checked.accepted}
        print_json({**facts, "problems": checked.problems, "remarks": checked.remarks, "models": models})
    else:
        _print_check(checked)
    return int(not checked.accepted)


def _print_check(checked: Checked) -> None:
    for problem in checked.problems:
        print(f"problem: {problem}")
    for remark in checked.remarks:
        print(f"remark: {remark}")
    if checked.accepted:
        names = ", ".join(model.name for model in checked.models)
        print(f"{checked.entry}: a board takes it; its scores follow from its answers ({names})")
    else:
        number = len(checked.problems)
        print(f"{checked.entry}: refused, {number} problem{'s' * (number != 1)}")


COMMANDS = {"build": build, "check": check}
DEFAULT = "build"
