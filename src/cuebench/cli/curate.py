"""The verb ``curate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cuebench.cli._idle import Counts, idle_with
from cuebench.cli._json import print_json

OPENED = Counts(
    lambda given: not (given["browser"] and given["as_json"]), "with --json", "leave it out, and open the address"
)


def command(
    folder: Annotated[
        Path, typer.Argument(help="What `cuebench make refined_bias --out` wrote, or a folder of images.")
    ],
    judge: Annotated[str, typer.Option(help="Name of the judge; default: the page asks."), idle_with("agreement")] = "",
    agreement: Annotated[bool, typer.Option("--agreement", help="Show how far the judges agree, and end.")] = False,
    port: Annotated[
        int, typer.Option(help="Port on this machine; 0: a free one.", min=0, max=65535), idle_with("agreement")
    ] = 0,
    browser: Annotated[
        bool,
        typer.Option("--browser/--no-browser", help="Open the page in a browser."),
        idle_with("agreement"),
        OPENED,
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Address or agreement as JSON.")] = False,
) -> None:
    """Keep or reject cues in the browser, on this machine.

    Keys: K keep, R reject, 1 to 6 reject with a reason, U undo. Every verdict is saved at once; the same name goes on.
    `cuebench make refined_bias … --set verdicts=DIR/refined_bias/verdicts` then uses them.
    """
    from cuebench.stimuli.curation.agreement import agreement as agreement_of
    from cuebench.stimuli.curation.cues import find_cues
    from cuebench.stimuli.curation.server import Curation, address_of, serve
    from cuebench.stimuli.curation.verdict_log import FOLDER, checked_judge, read_logs

    cues = find_cues(folder.expanduser())
    if agreement:
        summary = agreement_of(read_logs(cues.home / FOLDER))
        print_json(summary) if as_json else _print(summary)
        return
    curation = Curation(cues, checked_judge(judge) if judge else "")
    with serve(curation, port) as server:
        address = address_of(server, curation)
        if as_json:
            print_json({"address": address, "cues": len(cues.files), "verdicts": str(curation.folder)})
        else:
            print(
                f"{len(cues.files):,} cues of {cues.home}, {cues.without_picture:,} without a picture that can be shown"
            )
            print(f"open {address}\nverdicts go to {curation.folder}; Ctrl-C ends", flush=True)
        if browser and not as_json:
            import webbrowser

            webbrowser.open(address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            if not as_json:
                print(f"\nuse them: cuebench make refined_bias … --set verdicts={curation.folder}")


def _print(summary: dict[str, Any]) -> None:
    for judge, counts in summary["judges"].items():
        print(f"{judge}: {counts['judged']:,} judged, {counts['kept']:,} kept")
    if not summary["both"]:
        print("no cue was judged by two people: there is no agreement to measure")
        return
    print(f"{summary['both']:,} cues judged by two or more; all agree about {summary['same']:.1%}")
    print(f"Fleiss' κ {_kappa(summary['fleiss'])}")
    for pair in summary["pairs"]:
        print(f"Cohen's κ of {' and '.join(pair['judges'])}: {_kappa(pair)}, {pair['n']:,} cues")
    differ = summary["differ"]
    if differ:
        print(f"differ about {len(differ):,}: {', '.join(differ[:8])}{' …' if len(differ) > 8 else ''}")


def _kappa(cell: dict[str, Any]) -> str:
    if cell["value"] is None or cell["value"] != cell["value"]:
        return f"– ({cell['note']})"
    return f"{cell['value']:.3f} [{cell['low']:.3f}, {cell['high']:.3f}]"
