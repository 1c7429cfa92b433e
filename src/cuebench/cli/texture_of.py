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
        Path, typer.Option(help="Run folder of texture_association, or a folder for such runs; created if missing.")
    ] = Path("runs/texture_of"),
    data_root: Annotated[
        Path | None,
        typer.Option(help="Folder of textures and photographs; default: textures are drawn.", envvar="CUEBENCH_DATA"),
    ] = None,
    label: Annotated[str, typer.Option(help="The true class, to see whether texture explains an error.")] = "",
    draw: Annotated[Path | None, typer.Option(help="Draw the result as a card: .png, .pdf, .svg, .html.")] = None,
    top: Annotated[int, typer.Option(help="Number of textures, classes and predictions to list.")] = 5,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, no text.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Name the texture that a model sees in an image.

    Also the classes that the model ties to this texture, and whether texture explains an error.
    """
    from dataclasses import asdict

    from cuebench.analyses.explain_image import explain_image
    from cuebench.analyses.texture_of import open_image
    from cuebench.cli._display import Display
    from cuebench.reports.picture import picture_file

    if draw is not None:
        picture_file(draw)
    with Display(quiet=quiet, as_json=as_json) as display:
        result = explain_image(image, observer, run=run, data_root=data_root, label=label, top=top, on_event=display)
    if draw is not None:
        from cuebench.reports.figures.texture_of import texture_of as card

        card(result, open_image(image)).save(draw)
    if as_json:
        print_json(asdict(result))
    elif not quiet:
        from cuebench.cli._texture_card import print_card

        print_card(result, draw)
