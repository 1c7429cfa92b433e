"""The verb ``run``."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cuebench.cli._complete import names_of, sources
from cuebench.cli._flags import Flag, flags_of
from cuebench.cli._idle import checks_itself, idle_with, is_written, needs, refuse_idle
from cuebench.cli._json import print_json
from cuebench.errors import UserError
from cuebench.options import split

if TYPE_CHECKING:
    from cuebench.cli._run_file import Repeated
    from cuebench.runs.scores import Scores

PASSED_ON = (
    *("data_root", "out", "device", "precision", "batch_size", "shard_size", "workers", "cache", "cache_size", "limit"),
    *("background", "seed", "resamples", "offline", "allow_unreadable", "common", "fresh"),
)
"""Flags that are arguments of ``evaluate`` as they are."""
PLACES = ("out", "data_root", "cache", "save_config", "report_to", "responses")
"""Flags that are files, folders or addresses: named from the folder of the command, also while a run is repeated."""
PROTOCOLS = names_of("protocols")
REPORT = "report.html"
"""Where ``--report`` without a name writes, in the run folder."""
KEPT_IMAGES = "100"
"""Images whose masks are kept where nobody says how many."""
Settings = Annotated[
    Path | None,
    typer.Argument(metavar="FILE.toml", help="File with these flags as keys; flags that are written replace them."),
]
Compile = Annotated[bool, typer.Option("--compile", help="Compile networks that take minutes."), idle_with("plan")]
Price = Annotated[float | None, typer.Option(help="With --plan: price of a machine for an hour."), needs("plan")]
Engine = Annotated[str, typer.Option(help="local, ray (starts a cluster here), or ray://HOST:PORT."), idle_with("plan")]
Place = Annotated[
    str, typer.Option(help="Folder or address (s3://…) of the answers; default: in --out."), idle_with("plan")
]
Part = Annotated[str, typer.Option(help="i/n: answer the i-th of n parts; the last process scores."), idle_with("plan")]
Keep = Annotated[
    list[str] | None, typer.Option(help="masks: keep the predicted masks of 100 images; masks:500, masks:all.")
]

ReportTo = Annotated[
    str | None, typer.Option("--report", metavar="[FILE]", help="Make a report too; default OUT/report.html.")
]
"""The flag of every verb that measures."""


@checks_itself
def command(
    context: typer.Context,
    file: Settings = None,
    observer: Annotated[
        list[str] | None, typer.Option("--observer", "-o", help="SOURCE:NAME; repeat for more.", autocompletion=sources)
    ] = None,
    protocol: Annotated[
        list[str] | None,
        typer.Option("--protocol", "-p", help="Name or python:FILE.py:NAME; repeat.", autocompletion=PROTOCOLS),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Run folder; the same command goes on where it stopped.")] = None,
    data_root: Annotated[Path | None, typer.Option(help="Folder with the datasets.", envvar="CUEBENCH_DATA")] = None,
    device: Annotated[
        str, typer.Option(help="auto, cpu, cuda, cuda:1, mps; several: cuda:0,cuda:1, cuda:all.")
    ] = "auto",
    precision: Annotated[str, typer.Option(help="float32, bfloat16 or float16.")] = "float32",
    batch_size: Annotated[int, typer.Option(help="Stimuli shown at once; 0: as suits the device.")] = 0,
    shard_size: Annotated[int, typer.Option(help="Stimuli in a stored file; 0: 256, or as in the folder.")] = 0,
    workers: Annotated[int | None, typer.Option(help="Decoding processes; default one for each core.")] = None,
    cache: Annotated[Path | None, typer.Option(help="Folder that keeps decoded pixels for other models.")] = None,
    cache_size: Annotated[float, typer.Option(help="GiB that --cache may take."), needs("cache")] = 50.0,
    compile_networks: Compile = False,
    cues: Annotated[str, typer.Option(help="Where cues in the stream are made: cpu, or device (a GPU).")] = "cpu",
    background: Annotated[str, typer.Option(help="Of transparent pictures: white, black, grey, or refuse.")] = "white",
    limit: Annotated[
        int, typer.Option(help="Approximate number of stimuli; versions of one image stay together. 0: all.")
    ] = 0,
    seed: Annotated[int, typer.Option(help="Seed of all random numbers.")] = 0,
    resamples: Annotated[
        int, typer.Option(help="Of intervals that are bootstraps: texture_association (1,000 at most), and plug-ins.")
    ] = 10_000,
    allow_unreadable: Annotated[float, typer.Option(help="Share of unreadable images that is tolerated.")] = 0.01,
    common: Annotated[bool, typer.Option("--common", help="Score only the stimuli that all observers saw.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Delete what this run folder holds, then begin.")] = False,
    offline: Annotated[bool, typer.Option("--offline", help="Never use the network.")] = False,
    settings: Annotated[list[str] | None, typer.Option("--set", help="PROTOCOL.OPTION=VALUE; repeat for more.")] = None,
    keep: Keep = None,
    plan: Annotated[bool, typer.Option("--plan", help="Only say what it would take: time, memory, disk.")] = False,
    nodes: Annotated[str, typer.Option(help="With --plan: numbers of machines, such as 1,4,16."), needs("plan")] = "1",
    price: Price = None,
    engine: Engine = "local",
    responses: Place = "",
    shard: Part = "",
    report_to: Annotated[ReportTo, idle_with("plan")] = None,
    again: Annotated[
        Path | None, typer.Option(metavar="RUN", help="Repeat a run folder; default of --out: RUN-again.")
    ] = None,
    save_config: Annotated[
        Path | None, typer.Option(metavar="FILE.toml", help="Write what is asked for to a file, too.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No bar, no table.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Events on stderr, result on stdout, as JSON.")] = False,
) -> int:
    """Show stimuli to observers, store their answers, score them."""
    given = {name: value for name, value in locals().items() if name != "context"}  # every flag by its name
    flags = flags_of(command)
    with folder_of_run(again, given):
        return measure(*with_defaults(context, flags, given, split(settings or [])), flags)


def measure(given: dict[str, Any], settings: dict[str, Any], flags: Sequence[Flag]) -> int:
    """Run what was asked for and show it; return the exit status.

    Parameters
    ----------
    given : dict
        Parameter of the verb → value.
    settings : dict
        ``PROTOCOL.OPTION`` → value.
    flags : sequence of Flag
        Of the verb.
    """
    from cuebench.cli import _run_file
    from cuebench.cli._display import Display
    from cuebench.cli._plan import show_plan
    from cuebench.responses.events import Event
    from cuebench.runs.evaluate import evaluate
    from cuebench.runs.experiments import refuse_metric
    from cuebench.runs.scores import load
    from cuebench.runs.share import parse_shard

    observer, protocol, again = given["observer"] or [], given["protocol"] or [], given["again"]
    show = {"quiet": given["quiet"], "as_json": given["as_json"]}
    refuse_missing(given)
    if given["save_config"]:
        _run_file.save(given["save_config"], given, settings, flags)
    arguments = {name: given[name] for name in PASSED_ON}
    arguments |= {"compile": given["compile_networks"], "cues_on": given["cues"]}
    for name in protocol:
        refuse_metric(name)
    arguments["settings"] = settings | kept(given["keep"] or [], protocol)
    if given["plan"]:
        return show_plan(observer, protocol, nodes=given["nodes"], price=given["price"], **show, **arguments)
    if given["report_to"]:
        from cuebench.reports.html.report import page_file

        page_file(given["report_to"])
    if again:
        load(again)  # is there anything to compare with? Before hours are spent on the repetition
    with Display(**show) as display:
        places: dict[str, Any] = {name: given[name] for name in ("engine", "responses")}
        scores = evaluate(
            observer, protocol, **arguments, **places, shard=parse_shard(given["shard"]), on_event=display
        )
        waiting = given["shard"] and not scores.rows
        if waiting and given["report_to"] is not None:
            later = shlex.join(["cuebench", "report", str(scores.out), "--out", "report.html"])
            hint = f"the part that scores makes it, if it is given --report; or then: {later}"
            display(Event("notice", "no report: there are no scores yet", fields={"hint": hint}))
        elif not waiting and given["report_to"] is None and (old := scores.out / REPORT).is_file():
            anew = shlex.join(["cuebench", "report", str(scores.out), "--out", str(old)])
            display(Event("notice", f"{old} was made before this run", fields={"hint": f"make it anew: {anew}"}))
    if waiting:  # for the other parts; what is missing has been said
        if given["as_json"]:
            print_json(as_document(scores))
        return 1 if scores.failures else 0
    repeated = _run_file.compare_scores(again, scores.out) if again else None
    status = show_result(scores, **show, report_to=given["report_to"], repeated=repeated)
    return status if repeated is None or repeated.same else 1


def with_defaults(
    context: typer.Context, flags: Sequence[Flag], given: Mapping[str, Any], settings: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the flags and settings of the command line, above those of its file or of the run that it repeats.

    Parameters
    ----------
    context : typer.Context
        Knows which flags were written.
    flags : sequence of Flag
        Of the verb.
    given : mapping of str to value
        Parameter → value, defaults included.
    settings : mapping of str to str
        What ``--set`` said.
    """
    from cuebench.cli import _run_file

    if given["file"] and given["again"]:
        raise UserError("--again and a file both say what to run", "leave one of them out")
    if given["again"]:
        wanted = _run_file.of_record(given["again"], flags)
    elif given["file"]:
        wanted = _run_file.read_file(given["file"], flags)
    else:
        refuse_idle(context, command, given)
        return dict(given), dict(settings)
    written = {flag.parameter for flag in flags if is_written(context, flag.parameter)}
    below = {name: value for name, value in wanted.values.items() if name not in written}
    in_file = {flag.parameter: f"{key} in {given['file']}" for key, flag in _run_file.keys_of(flags).items()
               if given["file"] and below.get(flag.parameter, False) is not False}  # fmt: skip
    by_default = {flag.parameter: flag.default for flag in flags}
    refuse_idle(context, command, {**given, **below}, in_file, {**given, **by_default, **wanted.values})
    return {**given, **below}, {**wanted.settings, **settings}


@contextmanager
def folder_of_run(again: Path | None, given: dict[str, Any]) -> Iterator[None]:
    """Be in the folder that a run was made in while it is repeated: its observers may be files named from there."""
    from cuebench.cli import _run_file

    if again is None:
        yield
        return
    given["again"] = again.expanduser().absolute()
    for name in PLACES:
        given[name] = _run_file.from_here(given[name])
    if given["out"] and is_same_folder(given["out"], given["again"]):
        raise UserError(
            f"--out {given['out']} is the run that --again repeats: its answers would be compared with themselves",
            f"leave --out out; the repetition is then written to {_run_file.repetition_of(given['again'])}",
        )
    given["out"] = given["out"] or _run_file.repetition_of(given["again"])
    with chdir(_run_file.folder_of(given["again"], given["observer"])):
        yield


def is_same_folder(one: Path, other: Path) -> bool:
    """Tell whether two paths lead to one folder, through links and other spellings, too."""
    with suppress(OSError):  # one of them is not there
        return one.samefile(other)
    return os.path.realpath(one) == os.path.realpath(other)


def refuse_missing(given: Mapping[str, Any]) -> None:
    """Raise for what every run needs, all at once."""
    needed = {"observer": "--observer SOURCE:NAME", "protocol": "--protocol NAME", "out": "--out FOLDER"}
    missing = [flag for name, flag in needed.items() if not given[name]]
    if missing:
        hint = "for example: cuebench run -o ideal:shape -p cue_conflict --data-root DATA --out runs/first"
        raise UserError(f"missing: {', '.join(missing)}", hint)


def kept(words: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Return the settings that ``--keep`` stands for: ``keep_masks`` of every protocol of the run that has masks."""
    from cuebench.registry import protocols

    settings: dict[str, str] = {}
    for word in words:
        what, _, number = word.partition(":")
        if what != "masks":
            raise UserError(f"--keep {word}: unknown", "known: masks, masks:NUMBER, masks:all")
        with_masks = [name for name in names if "keep_masks" in protocols.get(name).options]
        if not with_masks:
            raise UserError(f"--keep {word}: no protocol of this run has masks", "e.g. cue_decomposition_segmentation")
        settings |= {f"{name}.keep_masks": number or KEPT_IMAGES for name in with_masks}
    return settings


def show_result(
    scores: Scores,
    *,
    quiet: bool,
    as_json: bool,
    report_to: str | None = None,
    repeated: Repeated | None = None,
) -> int:
    """Print the result of a run as people or machines want it, and make its report; return the exit status.

    Parameters
    ----------
    scores : Scores
        Of the run.
    quiet, as_json : bool
        As of the verbs.
    report_to : str or None
        File of the report; empty: ``report.html`` in the run folder; None: no report, only the command is named.
    repeated : Repeated or None
        How the scores compare with those of the run that this one repeats.
    """
    from cuebench.cli._tables import print_scores

    out, page = scores.out, None
    if report_to is not None:
        from cuebench.reports.html.report import report

        page = report(scores, report_to or out / REPORT).path
    if as_json:
        made: dict[str, Any] = {} if page is None else {"report": str(page)}
        print_json(as_document(scores, made | ({} if repeated is None else {"repeated": repeated._asdict()})))
    elif not quiet:
        print_scores(scores.rows)
        print(f"\nscores: {out / 'scores.json'} (also .parquet) · record: {out / 'run.json'}")
        print(f"report: {page or shlex.join(['cuebench', 'report', str(out), '--out', 'report.html'])}")
    if repeated is not None and not as_json and not (quiet and repeated.same):
        print(f"repeated: {repeated.text}", file=sys.stderr if quiet else sys.stdout)
    return 1 if scores.failures else 0


def as_document(scores: Scores, made: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the result of a run as it is printed for machines; ``made``: what was made of it, by its name."""
    rows = [asdict(row) for row in scores.rows]
    return {"out": str(scores.out), **(made or {}), "failures": scores.failures, "scores": rows}
