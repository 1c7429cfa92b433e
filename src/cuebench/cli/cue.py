"""The verb ``cue``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cuebench.cli._idle import idle_with, needs
from cuebench.cli._json import print_json

if TYPE_CHECKING:
    from cuebench.stimuli.apply_cue import Applied, Progress

NO_SHEET = idle_with("sheet", hint="leave it out: a sheet shows all cues as they are without settings")


def command(
    name: Annotated[
        str | None, typer.Argument(help="The cue, or python:FILE.py:NAME (with --sheet: the image).")
    ] = None,
    source: Annotated[Path | None, typer.Argument(help="Image file, or folder of images.")] = None,
    target: Annotated[Path | None, typer.Argument(help="File or folder to write to."), NO_SHEET] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="KEY=VALUE of the cue; repeat for more."), NO_SHEET
    ] = None,
    seed: Annotated[int, typer.Option(help="All randomness; each file gets its own seed from it.")] = 0,
    workers: Annotated[int, typer.Option(help="Processes; 0: one for each core."), NO_SHEET] = 0,
    mask: Annotated[Path | None, typer.Option(help="Object or label masks: a file, or a folder of same names.")] = None,
    invert_mask: Annotated[
        bool, typer.Option("--invert-mask", help="The object is black in the masks."), needs("mask")
    ] = False,
    other: Annotated[Path | None, typer.Option(help="Second images: a file, or a folder of same names.")] = None,
    sheet: Annotated[Path | None, typer.Option(help="Draw all cues of an image into this file.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Make all files again."), NO_SHEET] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No bar, no summary.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Events on stderr, result on stdout, as JSON.")] = False,
) -> int:
    """Apply a cue to images, or draw all cues of one image.

    All cues of one image: cuebench cue --sheet OUT.png IN.png
    """
    if sheet is not None:
        return _draw(
            sheet,
            name,
            source,
            mask=mask,
            invert_mask=invert_mask,
            other=other,
            seed=seed,
            quiet=quiet,
            as_json=as_json,
        )
    from cuebench.errors import UserError
    from cuebench.options import split
    from cuebench.stimuli.apply_cue import apply_cue

    if name is None or source is None or target is None:
        raise UserError("cue needs a name, a source and a target", "cuebench cue voronoi_shuffle photos/ shuffled/")
    with _display(quiet, as_json) as progress:
        done = apply_cue(
            name,
            source,
            target,
            options=split(settings or []),
            seed=seed,
            workers=workers,
            mask=mask,
            invert_mask=invert_mask,
            other=other,
            fresh=fresh,
            progress=progress,
        )
    return _report(done, quiet=quiet, as_json=as_json)


@contextmanager
def _display(quiet: bool, as_json: bool) -> Iterator[Progress]:
    """Show a progress bar with an ETA, JSON lines, or only the failures."""
    from cuebench.cli._display import Display
    from cuebench.responses.events import Event

    with Display(quiet=quiet, as_json=as_json) as show:

        def progress(done: int, total: int, message: str) -> None:
            if message:
                show(Event("failed", message, done, total))
            show(Event("batch", "images", done, total))

        yield progress


def _report(done: Applied, *, quiet: bool, as_json: bool) -> int:
    if as_json:
        print_json({"target": str(done.target), "made": done.made, "kept": done.kept, "failed": done.failed})
    elif not quiet:
        failed = f", {len(done.failed)} failed" if done.failed else ""
        print(f"{done.target}: {done.made} made, {done.kept} kept{failed}")
    return 1 if done.failed else 0


def _draw(sheet: Path, name: str | None, source: Path | None, *, quiet: bool, as_json: bool, **options: Any) -> int:
    from cuebench.errors import UserError
    from cuebench.stimuli.sheet import save_sheet

    if name is None or source is not None:
        raise UserError("--sheet takes exactly one image", "cuebench cue --sheet OUT.png IN.png")
    problems = save_sheet(Path(name), sheet, **options)
    if as_json:
        print_json({"sheet": str(sheet), "failed": problems})
    elif not quiet:
        print(f"{sheet}: {len(problems)} cues could not be drawn" if problems else str(sheet))
    return 1 if problems else 0
