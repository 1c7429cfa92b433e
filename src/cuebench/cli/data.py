"""Check the stimuli of a protocol, or choose classes from a run.

``cuebench data check`` and ``cuebench data balance``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cuebench.cli._json import print_json


def check(
    protocol: Annotated[str, typer.Argument(help="A protocol, e.g. cue_conflict.")] = "",
    data_root: Annotated[Path | None, typer.Option(help="Folder with the datasets.", envvar="CUEBENCH_DATA")] = None,
    background: Annotated[str, typer.Option(help="Of transparent pictures: white, black, grey, or refuse.")] = "white",
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> int:
    """Check the stimuli of a protocol: what is there, what is missing or cannot be read.

    refined_bias: also defects of the published files; feature_suppression: also quality of the suppressions.
    """
    from cuebench.errors import UserError
    from cuebench.registry import protocols
    from cuebench.runs.experiments import read_stimuli
    from cuebench.stimuli.background import on_background
    from cuebench.stimuli.overview import odd_sizes, overview, problems_of

    if not protocol:
        raise UserError("data check needs a protocol", "cuebench data check cue_conflict --data-root DIR")
    name = protocols.resolve(protocol)
    if data_root is None:
        raise UserError("data check needs a data root", f"cuebench data check {name} --data-root DIR")
    module = protocols.module(name)
    stimuli = on_background(read_stimuli(protocols.get(name), data_root.expanduser()), background)
    summary, rows = overview(stimuli)
    status = 1 if problems_of(stimuli.stimuli) else 0
    if hasattr(module, "data_report"):
        more, rows = module.data_report(data_root.expanduser())
        summary, status = "\n".join([more, *(f"! {line}" for line in odd_sizes(stimuli.stimuli)), *stimuli.notes]), 0
    if as_json:
        print_json({"summary": summary, "rows": rows})
        return status
    from rich.table import Table

    from cuebench.cli._console import plain_console

    console = plain_console()
    if rows:
        table = Table(*dict.fromkeys(heading for row in rows for heading in row), box=None, pad_edge=False)
        for row in rows:
            table.add_row(*(_text(row.get(str(column.header), "")) for column in table.columns))
        console.print(table)
    console.print(summary)
    return status


def balance(
    run: Annotated[Path, typer.Argument(help="Run folder of refined_bias; its observers are the panel.")],
    classes: Annotated[int, typer.Option(help="Number of classes of each cue.")] = 10,
    by: Annotated[str, typer.Option(help="Whose recognition counts: models, people or both.")] = "models",
    measure: Annotated[
        str, typer.Option(help="sensitivity, top1 or top5. Default: sensitivity; for people top1.")
    ] = "",
    condition: Annotated[str, typer.Option(help="faithful or native.")] = "faithful",
    out: Annotated[Path | None, typer.Option(help="Write the choice, for `make --set classes=FILE`.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Choose classes whose shape and texture cues are equally recognisable for a panel of observers."""
    from cuebench.analyses.class_wise import kinds_of
    from cuebench.analyses.recognition import balanced
    from cuebench.files import write_json
    from cuebench.protocols.headline import measured
    from cuebench.runs.results import read_scores

    rows = [s for s in measured(read_scores(run.expanduser())) if s.protocol == "refined_bias"]
    kinds = kinds_of(run.expanduser())
    # Pooled people are the single ones once more.
    pooled = {o for o, kind in kinds.items() if kind == "people"} if "person" in kinds.values() else set()
    rows = [s for s in rows if s.observer not in pooled]
    people = {s.observer for s in rows if kinds.get(s.observer) in ("person", "people")}
    everyone = {s.observer for s in rows}
    panel = {"models": everyone - people, "people": people}.get(by, everyone)
    measure = measure or ("sensitivity" if by == "models" else "top1")
    choice = balanced(rows, classes, measure=measure, condition=condition, by=by, people=people)
    names = {"shape": sorted(choice.shape), "texture": sorted(choice.texture)}
    if out:
        write_json(out, names)
    if as_json:
        print_json({**names, "by": by, "measure": measure, "means": choice.means, "gap": choice.gap})
        return
    from rich.table import Table

    from cuebench.cli._console import plain_console

    title = f"mean of {len(panel)} observer{'s' * (len(panel) != 1)}" + (f" ({by})" if people else "")
    table = Table("shape class", measure, "texture class", measure, title=title)
    for (shape, of_shape), (texture, of_texture) in zip(choice.shape.items(), choice.texture.items()):
        table.add_row(shape, f"{of_shape:.3f}", texture, f"{of_texture:.3f}")
    table.add_section()
    table.add_row("mean", f"{choice.means[0]:.3f}", "mean", f"{choice.means[1]:.3f}")
    plain_console().print(table)


def _text(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)


COMMANDS = {"check": check, "balance": balance}
