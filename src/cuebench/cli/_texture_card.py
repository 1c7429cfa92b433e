"""The texture of an image, for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cuebench.analyses.texture_of import TextureOf, Tie


def print_card(result: TextureOf, drawn: Path | None) -> None:
    """Print the texture, the classes associated with it, the prediction and the verdict."""
    from rich.table import Table
    from rich.text import Text

    from cuebench.cli._console import plain_console

    console = plain_console()
    texture, similarity = result.texture or "none resembles this", f"  (texturedness {result.texturedness:.3f})"
    console.print(Text.assemble("texture     ", (texture, "bold"), similarity))
    label = f"  · label {result.label}" if result.label else ""
    console.print(Text.assemble("prediction  ", (result.prediction, "bold"), f"  ({result.confidence:.1%}){label}"))
    console.print(f"verdict     {result.verdict}")
    console.print(f"measured on {result.textures_from}\n" if result.textures_from else "")
    table = Table(box=None, pad_edge=False)
    for heading in ("textures by cosine", f"classes associated with {result.texture or 'it'}", "predictions"):
        table.add_column(heading)
    columns = (result.likeness, result.classes, result.predictions)
    for k in range(max(len(column) for column in columns)):
        table.add_row(*(_cell(column, k) for column in columns))
    console.print(table)
    if drawn is not None:
        console.print(f"\ndrawn: {drawn}")


def _cell(ties: Sequence[Tie], k: int) -> str:
    return f"{ties[k].value:.3f}  {ties[k].name}" if k < len(ties) else ""
