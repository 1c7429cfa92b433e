"""The verb ``controls``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cuebench.cli._json import print_json


def command(
    names: Annotated[list[str] | None, typer.Argument(help="Controls, e.g. shape texture; none: all of them.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Folder; default: that of `control:NAME`.")] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**62, help="Of images, first weights and order.")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, no table.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Result on stdout as JSON.")] = False,
) -> None:
    """Train small networks whose bias is known.

    Shape, material or both predict the class of their training images, which are drawn. A run trains a control that it
    needs by itself: -o control:shape. Those that are trained already are left as they are.
    """
    from cuebench.cli._progress import progress_bar
    from cuebench.controls.train import PLANS, train_controls
    from cuebench.observers.control_files import CONTROLS, weights_folder

    chosen = names or list(CONTROLS)
    known = [name for name in chosen if name in CONTROLS]
    total = sum(PLANS[CONTROLS[name].architecture].epochs for name in known)
    before = {name: sum(PLANS[CONTROLS[n].architecture].epochs for n in known[:i]) for i, name in enumerate(known)}
    folder = weights_folder(str(out) if out else "")
    with progress_bar("train controls", quiet=quiet or as_json) as progress:

        def report(name: str, done: int, of: int) -> None:
            if progress:
                progress(before[name] + done, total)

        trained = train_controls(chosen, folder, seed=seed, progress=report)
    rows = [{**t.record, "observer": f"control:{t.name}", "file": str(t.path)} for t in trained]
    if as_json:
        print_json({"folder": str(folder), "controls": rows})
    elif not quiet:
        for t in trained:
            accuracy, about = t.record["accuracy"], CONTROLS[t.name].about
            print(f"control:{t.name:<16} {accuracy:.3f} right on held-out images · {about}")
        print(f"{len(trained)} controls in {folder}")
        suffix = f"?seed={seed}" if seed else ""
        print(f"use them: cuebench make toy_world --out DIR; cuebench run -p cue_conflict --data-root DIR -o control:"
              f"{trained[0].name}{suffix} …")  # fmt: skip
