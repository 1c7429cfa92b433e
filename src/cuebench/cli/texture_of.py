"""The verb ``texture-of``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cuebench.cli._json import print_json


def command(
    image: Annotated[Path, typer.Argument(help="An image file.")],
    observer: Annotated[str, typer.Option("--observer", "-o", help="A model, SOURCE:NAME.")],
    run: Annotated[
        Path, typer.Option(help="Run folder of texture_association, or a folder for such runs; made if missing.")
    ] = Path("runs/texture_of"),
    data_root: Annotated[
        Path | None, typer.Option(help="Where textures and photographs lie; default: drawn.", envvar="CUEBENCH_DATA")
    ] = None,
    label: Annotated[str, typer.Option(help="The true class, to see whether texture explains an error.")] = "",
    draw: Annotated[Path | None, typer.Option(help="Write a card of it: .png or .svg.")] = None,
    top: Annotated[int, typer.Option(help="How many textures, ties and predictions to list.")] = 5,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No bar, no text.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Result on stdout as JSON.")] = False,
) -> None:
    """Say which texture a model sees in an image, what it ties it to, and whether texture explains an error."""
    from dataclasses import asdict

    from cuebench.analyses.explain_image import explain_image
    from cuebench.cli._display import Display

    with Display(quiet=quiet, as_json=as_json) as display:
        found = explain_image(
            image, observer, run=run, data_root=data_root, label=label, draw=draw, top=top, on_event=display
        )
    if as_json:
        print_json(asdict(found))
    elif not quiet:
        from cuebench.cli._texture_card import print_card

        print_card(found, draw)
