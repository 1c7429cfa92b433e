"""Bring data of other tools into one tidy file.

``cuebench import model-vs-human`` and ``cuebench import answers``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def model_vs_human(
    folder: Annotated[Path, typer.Argument(help="Folder raw-data, or the folder that holds it.")],
    out: Annotated[Path, typer.Option(help="The Parquet file to write.")],
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Write all raw responses of model-vs-human to one Parquet file, a row for each trial."""
    from cuebench.cli._console import plain_console
    from cuebench.cli._json import print_json
    from cuebench.errors import UserError
    from cuebench.files import ending_of, parquet_bytes, write_atomic
    from cuebench.observers.raw_data import read_raw_data

    if ending_of(out, ".parquet") != ".parquet":
        raise UserError(
            f"--out {out}: not a .parquet file", "cuebench import model-vs-human DIR --out responses.parquet"
        )
    data = read_raw_data(folder)
    write_atomic(out.expanduser(), parquet_bytes(data.table))
    rows = data.summary()
    if as_json:
        facts = {"out": str(out), "rows": data.table.num_rows, "data_sets": rows}
        print_json({**facts, "unknown_files": list(data.unknown), "incomplete_files": list(data.gaps)})
        return
    from rich.table import Table

    console = plain_console()
    table = Table(*rows[0])
    for row in rows:
        table.add_row(*(f"{v:,}" if isinstance(v, int) else v for v in row.values()))
    console.print(table)
    for title, files in (("of no data set, left out", data.unknown), ("incomplete", data.gaps)):
        for file in files:
            console.print(f"{title}: {file}", soft_wrap=True)
    console.print(f"{data.table.num_rows:,} trials: {out}; read them with -o recorded:{out}", soft_wrap=True)


def answers(
    file: Annotated[Path, typer.Argument(help="CSV or Parquet: stimulus, shape, texture, decision, subject.")],
    out: Annotated[Path, typer.Option(help="The data root to write the table of stimuli to.")],
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Make a data root without pictures from a table of answers to your own stimuli."""
    from cuebench.cli._console import plain_console
    from cuebench.cli._json import print_json
    from cuebench.stimuli.answered import write_stimuli

    written = write_stimuli(file, out)
    if as_json:
        print_json({"stimuli": str(written.stimuli), "labels": str(written.labels), "count": written.number,
                    "classes": list(written.classes)})  # fmt: skip
        return
    console = plain_console()
    console.print(f"{written.number:,} stimuli of {len(written.classes)} classes: {written.stimuli}", soft_wrap=True)
    console.print(f"score the answers: cuebench run -p cue_conflict -o recorded:{file} --data-root {out} --out RUN",
                  soft_wrap=True)  # fmt: skip


COMMANDS = {"model-vs-human": model_vs_human, "answers": answers}
