"""The texture of an image, for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cuebench.analyses.texture_of import TextureOf, Tie


def print_card(found: TextureOf, drawn: Path | None) -> None:
    """Print what was found: the texture, the classes tied to it, the prediction, the verdict."""
    from rich.table import Table
    from rich.text import Text

    from cuebench.cli._console import plain_console

    console = plain_console()
    texture, likeness = found.texture or "none", f"  (texturedness {found.texturedness:.3f})"
    console.print(Text.assemble("texture     ", (texture, "bold"), likeness))
    label = f"  · label {found.label}" if found.label else ""
    console.print(Text.assemble("prediction  ", (found.prediction, "bold"), f"  ({found.confidence:.1%}){label}"))
    console.print(f"verdict     {found.verdict}\n")
    table = Table(box=None, pad_edge=False)
    for heading in ("textures by cosine", f"classes tied to {found.texture or 'it'}", "predictions"):
        table.add_column(heading)
    lists = (found.likeness, found.classes, found.predictions)
    for k in range(max(len(one) for one in lists)):
        table.add_row(*(_cell(one, k) for one in lists))
    console.print(table)
    if drawn is not None:
        console.print(f"\ndrawn: {drawn}")


def _cell(ties: Sequence[Tie], k: int) -> str:
    return f"{ties[k].value:.3f}  {ties[k].name}" if k < len(ties) else ""
