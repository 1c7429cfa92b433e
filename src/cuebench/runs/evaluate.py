"""``evaluate``: observers × protocols → a run folder. What ``cuebench run`` calls."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from cuebench.errors import UserError, is_utf8
from cuebench.files import current_folder, hash_file, json_text, make_folder
from cuebench.observers.base import Observer
from cuebench.places import place
from cuebench.protocols.base import Protocol
from cuebench.reading import user_path
from cuebench.registry import SCHEME, protocols
from cuebench.responses.collect import check_unreadable, collect, unreadable_of
from cuebench.responses.device import give_memory_back
from cuebench.responses.engines import address_of
from cuebench.responses.events import Event, OnEvent, ignore
from cuebench.responses.job import Pieces, Progress
from cuebench.responses.part import Part
from cuebench.responses.pictures import DecodePool
from cuebench.responses.pixel_cache import PixelCache
from cuebench.responses.ray_engine import RayEngine
from cuebench.responses.store import SHARD
from cuebench.runs.forget import check_forgettable, forget
from cuebench.runs.joining import (
    OTHER_FOLDER,
    check_conditions,
    join,
    on_each,
    scored_otherwise,
    set_aside_besides,
    staying,
    with_unreadable,
)
from cuebench.runs.loading import OBJECT, listed_observers
from cuebench.runs.notebook import listening
from cuebench.runs.plan import Plan, plan_run
from cuebench.runs.record import DamagedRecord, RunOptions, RunRecord, locked, now
from cuebench.runs.score import find_protocols, score_run
from cuebench.runs.scores import Scores
from cuebench.runs.share import PATIENCE, SHARED, PartRecord, begin, forget_parts, unfinished, with_parts
from cuebench.runs.starting import start_decoders
from cuebench.runs.waves import add_wave, answers_each, cut, loading_ahead
from cuebench.stimuli.hashing import hashing_in
from cuebench.types import Score


def evaluate(
    observers: str | Observer | Iterable[str | Observer],
    protocols: str | Protocol | Iterable[str | Protocol],
    *,
    data_root: str | Path | None = None,
    out: str | Path,
    device: str = "auto",
    precision: str = "float32",
    batch_size: int = 0,
    shard_size: int = 0,
    workers: int | None = None,
    cache: str | Path | None = None,
    cache_size: float = 50.0,
    compile: bool = False,
    cues_on: str = "cpu",
    background: str = "white",
    limit: int = 0,
    seed: int = 0,
    resamples: int = 10_000,
    offline: bool = False,
    allow_unreadable: float = 0.01,
    common: bool = False,
    fresh: bool = False,
    settings: Mapping[str, Any] | None = None,
    engine: str = "local",
    responses: str | Path = "",
    shard: tuple[int, int] | None = None,
    on_event: OnEvent | None = None,
) -> Scores:
    """Show the stimuli of the protocols to the observers, store what they answer, score it.

    Running the same call again goes on where it stopped, and costs nothing where it had finished. A call with other
    observers or protocols adds them to the run, whose scores then cover all; one with another seed or limit, other
    options of the same protocol or other stimuli is refused.

    Parameters
    ----------
    observers : str, Observer, or several
        Specs such as ``"timm:resnet50.a1_in1k"`` or ``"recorded:humans/"``, and objects from ``cuebench.wrap``.
    protocols : str, Protocol, or several
        Names (see ``cuebench list protocols``), ``"python:FILE.py:NAME"``, or protocol objects of your own.
    data_root : path, optional
        Folder with one sub-folder for each dataset. Default: the environment variable ``CUEBENCH_DATA``.
    out : path
        The run folder.
    device : str
        ``auto``, ``cpu``, ``cuda``, ``cuda:1``, ``mps``; several GPUs: ``cuda:0,cuda:1`` or ``cuda:all``.
    precision : str
        ``float32``, or ``bfloat16`` / ``float16`` autocast.
    batch_size : int
        Stimuli that an observer is shown at once; 0: as suits its device.
    shard_size : int
        Stimuli in a stored file; 0: 256, or those of the run folder.
    workers : int, optional
        Decoding processes; default: one for each core. Also the most processes that score.
    cache : path, optional
        Folder in which decoded pixels are kept: other models and later runs on the same stimuli decode nothing.
    cache_size : float
        GiB that this folder may take.
    compile : bool
        Let torch compile networks whose answers will take some minutes.
    cues_on : {"cpu", "device"}
        Where cues that stimuli are made with in the stream are computed: by the decoding processes, or on the GPU of
        each torch network, within a stated tolerance of the same pixels (docs/cues.md).
    background : {"white", "black", "grey", "refuse"}
        What partly transparent pictures are put on; ``refuse``: they end the run.
    limit : int
        Approximate number of stimuli of each set, drawn by the seed; versions of one image stay together. 0: all.
    seed : int
        All randomness.
    resamples : int
        Of the intervals that are bootstraps: those of ``texture_association``, 1,000 at most, and of plug-ins.
    offline : bool
        Guarantee that nothing is downloaded.
    allow_unreadable : float
        Share of unreadable stimuli that does not stop the run.
    common : bool
        Score every observer on the stimuli that all of them saw.
    fresh : bool
        Delete what an earlier run wrote to this folder, once it is clear that this one can begin.
    settings : mapping, optional
        Options of single protocols: ``{"triplets.draw": "all"}``; ``cuebench explain PROTOCOL`` lists them.
    engine : str
        ``local``: this machine. ``ray``: a Ray cluster that is started here and ended with the run; ``ray://HOST:PORT``
        or ``ray:auto``: one that there is. The answers are the same.
    responses : path or str
        Folder or address (``s3://BUCKET/FOLDER``) of the answers. Default: ``responses`` in the run folder.
    shard : pair of int, optional
        ``(i, n)``: answer the i-th of n parts, i from 1; n processes share the run folder, and the last one scores.
        The scores of the others are empty.
    on_event : callable, optional
        Told of progress (``responses.events.Event``). Default: a bar in a notebook, nobody elsewhere.

    Returns
    -------
    Scores
        Also written to ``out/scores.parquet`` and ``out/scores.json``. A failed observer is a row with the reason.
    """
    options = RunOptions(
        device=device,
        precision=precision,
        batch_size=batch_size,
        shard_size=shard_size,
        workers=workers,
        cache=str(user_path(cache).absolute()) if cache else None,
        cache_size=cache_size,
        compile=compile,
        cues_on=cues_on,
        background=background,
        limit=limit,
        seed=seed,
        resamples=resamples,
        offline=offline,
        allow_unreadable=allow_unreadable,
        common=common,
        fresh=fresh,
        settings=settings or {},
        engine=engine,
        responses=str(place(responses)) if responses else "",
        shard=shard,
    )
    with listening(on_event) as tell:
        wanted = listed_observers(observers, None if fresh else user_path(out))
        scores = _run(wanted, protocol_names(protocols), data_root, user_path(out), options, tell)
    if scores.failures and tell is ignore:  # without a listener a gap in a table would be silent
        warnings.warn("not measured: " + "; ".join(scores.failures), RuntimeWarning, stacklevel=2)
    return scores


def _run(
    wanted: Sequence[str | Observer],
    names: Sequence[str],
    data_root: str | Path | None,
    out: Path,
    options: RunOptions,
    tell: OnEvent,
) -> Scores:
    # A user's code may change the current folder: places are settled before it is loaded.
    here, folder = current_folder(), make_folder(out.absolute())
    given_root = data_root or os.environ.get("CUEBENCH_DATA")
    root = user_path(given_root).absolute() if given_root else None
    for path in filter(None, (here, folder, root)):
        if not is_utf8(str(path)):  # a record that names it could not be read again
            raise UserError(f"the folder {str(path)!r} has a name that is not UTF-8", "rename it, or work elsewhere")
    notices: list[str] = []

    def notice(text: str) -> None:
        notices.append(text)
        tell(Event("notice", text))

    if options.shard is not None:
        return _run_part(wanted, names, root, here, folder, options, tell, notice, notices)
    with locked(folder, notice):
        record = _answered(wanted, names, root, here, folder, options, tell, notice)
        give_memory_back()  # decoding processes, pixels and networks are gone before scoring needs memory
        rows = _score(folder, record, notices, tell)
    tell(Event("finished", f"{len(rows)} scores in {folder}", fields={"out": str(folder)}))
    return Scores(tuple(rows), folder, record)


def _answered(
    wanted: Sequence[str | Observer],
    names: Sequence[str],
    root: Path | None,
    here: Path | None,
    folder: Path,
    options: RunOptions,
    tell: OnEvent,
    notice: Callable[[str], None],
) -> RunRecord:
    """Plan the run and collect its answers; return the record."""
    with start_decoders(wanted, options, notice) as pool:
        if options.fresh:
            check_forgettable(folder)
        before, options = _conditions(folder, options, names, notice)
        first, *later = cut(wanted, options)
        with hashing_in(pool if pool.workers else None):
            plan = plan_run(first, names, root, folder, options, tell, before)
        record = _record(plan, wanted, names, root, here, options)
        _join(before, record, folder, notice)
        if options.fresh:  # only now: a mistyped observer must not cost what was measured
            forget(folder)
        _write_plan(plan, record, folder)
        forget_parts(folder)
        pieces, progress, waiting = _pieces(before, options), Progress(tell), sum(map(len, later))
        taken = {job.observer: job.spec for job in record.jobs}
        with loading_ahead(later, plan.load_options, plan.baselines, taken) as next_wave:
            while True:
                progress = Progress(tell, done=progress.done, to_come=answers_each(plan) * waiting)
                _collect(plan, record, folder, options, pieces, pool, progress, last=not waiting)
                _notice_damage(plan, notice)
                for text in set_aside_besides(record, [job.record for job in plan.jobs]):
                    notice(text)
                wave = next_wave()
                if wave is None:
                    break
                waiting -= wave.size
                plan = add_wave(plan, wave, record, before.jobs if before else (), folder, tell)
                _write_plan(plan, record, folder)
    return record


def _run_part(
    wanted: Sequence[str | Observer],
    names: Sequence[str],
    root: Path | None,
    here: Path | None,
    folder: Path,
    options: RunOptions,
    tell: OnEvent,
    notice: Callable[[str], None],
    notices: list[str],
) -> Scores:
    """Answer a part of the run; score it where all other parts are there (``runs/share.py``)."""
    part = Part(*cast("tuple[int, int]", options.shard))
    before, options = _conditions(folder, options, names, notice)
    progress, pieces = Progress(tell), _pieces(before, options)
    with start_decoders(wanted, options, notice) as pool:
        with hashing_in(pool if pool.workers else None):
            plan = plan_run(wanted, names, root, folder, options, tell, before)
        record = _record(plan, wanted, names, root, here, options)
        record.status = SHARED
        with locked(folder, notice, PATIENCE):
            _join(_earlier_run(folder, notice), record, folder, lambda text: None)
            _write_plan(plan, record, folder)
            begin(folder, part)
        _ask(plan, options, pieces, pool, progress, part)
    _notice_damage(plan, notice)
    with locked(folder, notice, PATIENCE):
        PartRecord.of(plan.jobs, progress, notices).write(folder, part)
        missing = unfinished(folder, plan.jobs, part.n, options.shard_size)
        if missing:
            count = f"{len(missing):,} of {part.n:,} parts {'is' if len(missing) == 1 else 'are'} missing"
            which = ", ".join(f"{i}/{part.n}" for i in missing[:8]) + (" …" if len(missing) > 8 else "")
            tell(Event("notice", f"{count} ({which}); the last one scores, or: cuebench score {folder}"))
            return Scores((), folder, with_parts(folder, record))
        _join(_earlier_run(folder, notice), record, folder, notice)
        _write_plan(plan, record, folder)  # again: those of another process name its data root
        record = with_parts(folder, record)
        for stimuli in plan.manifests.values():  # each process has seen its part only
            own = unreadable_of(stimuli.fingerprint)
            reasons = [reason for stimulus, reason in record.unreadable.items() if stimulus.startswith(own)]
            check_unreadable(stimuli, reasons, options.allow_unreadable)
        rows = _score(folder, record, [], tell)
    tell(Event("finished", f"{len(rows)} scores in {folder}", fields={"out": str(folder)}))
    return Scores(tuple(rows), folder, record)


def _conditions(
    folder: Path, options: RunOptions, names: Sequence[str], notice: Callable[[str], None]
) -> tuple[RunRecord | None, RunOptions]:
    """Return what the folder holds, and the options with what they inherit from it; refuse other conditions."""
    before = None if options.fresh else _earlier_run(folder, notice)
    if before is None:
        return None, replace(options, shard_size=options.shard_size or SHARD)
    options = replace(options, shard_size=options.shard_size or before.options.shard_size)
    check_conditions(before, options, names, str(folder), OTHER_FOLDER)
    if before.options.responses != options.responses:
        then, here = (o.responses or "the folder itself" for o in (before.options, options))
        raise UserError(f"the answers of {folder} lie in {then}, not in {here}", OTHER_FOLDER)
    return before, options


def _join(before: RunRecord | None, record: RunRecord, folder: Path, notice: Callable[[str], None]) -> None:
    """Add what the folder holds besides."""
    if before is not None:
        specs = record.arguments["observers"]  # of this command
        kept = join(before, record, str(folder), OTHER_FOLDER)
        find_protocols(record)
        if text := scored_otherwise(before, record, str(folder)):
            record.notices.append(text)
            notice(text)
        if kept:
            notice(staying(kept, specs, str(folder)))


def _write_plan(plan: Plan, record: RunRecord, folder: Path) -> None:
    plan.write_manifests(folder / "stimuli")
    record.files |= {f"stimuli/{name}": hash_file(folder / "stimuli" / name).sha256 for name in plan.manifests}
    record.write(folder)
    give_memory_back()  # of reading the stimuli, and of the networks before


def _pieces(before: RunRecord | None, options: RunOptions) -> Pieces:
    """Return how much each observer is shown at once: as before, so that the last bits of the answers are the same."""
    pieces = Pieces(options.batch_size)
    if before is not None and not options.batch_size:
        pieces.update({job.observer: job.batch_size for job in before.jobs if job.batch_size})
    return pieces


def _score(folder: Path, record: RunRecord, notices: Sequence[str], tell: OnEvent) -> list[Score]:
    rows = score_run(folder, record, record.options, most_workers=record.options.workers, on_event=tell)
    record.notices = list(dict.fromkeys([*record.notices, *notices]))
    record.status, record.finished = "complete", now()
    record.write(folder)
    return rows


def protocol_names(wanted: str | Protocol | Iterable[str | Protocol]) -> list[str]:
    """Return the names of protocols; files and objects are added to the registry of this process."""
    several = list(wanted) if isinstance(wanted, Iterable) and not isinstance(wanted, str) else [wanted]
    by_name: dict[str, Any] = {}
    for part in several:
        name = protocols.resolve(part)
        if name in by_name and protocols.get(name) is not by_name[name]:
            raise UserError(f"two different protocols are called {name!r}", "give one of them another name")
        by_name[name] = protocols.get(name)
    return list(by_name)


def _collect(
    plan: Plan,
    record: RunRecord,
    folder: Path,
    options: RunOptions,
    pieces: Pieces,
    pool: DecodePool,
    progress: Progress,
    *,
    last: bool,
) -> None:
    """Collect the answers; whatever happens, the record on disk says how far it came.

    With ``last`` it is collected then: no other wave of networks comes.
    """
    try:
        _ask(plan, options, pieces, pool, progress)
        record.status = "collected" if last else record.status
    except BaseException:
        record.status = "stopped"
        raise
    finally:
        failed = {(f.observer, f.protocol) for f in progress.failures}
        record.failures = [*record.failures, *progress.failures]
        record.jobs = [job for job in record.jobs if (job.observer, job.protocol) not in failed]
        record.unreadable = with_unreadable(record.unreadable, progress.unreadable)
        record.notices = [*record.notices, *progress.notices]
        record.images_decoded = progress.decoded
        record.write(folder)


def _ask(
    plan: Plan,
    options: RunOptions,
    pieces: Pieces,
    pool: DecodePool,
    progress: Progress,
    part: Part | None = None,
) -> None:
    """Collect the answers with the engine of the run."""
    address = address_of(options.engine)
    on_a_cluster = None if address is None else RayEngine(address, plan.origins, options.device).serve
    if on_a_cluster and (options.compile or options.cache):
        progress.notice("--compile and --cache are of the local engine: they have no effect on a cluster")
    cache = PixelCache(Path(options.cache), int(options.cache_size * 2**30)) if options.cache else None
    try:
        collect(
            plan.jobs,
            pool,
            shard_size=options.shard_size,
            pieces=pieces,
            allow_unreadable=options.allow_unreadable,
            on_event=progress.on_event,
            progress=progress,
            device=plan.device,
            cache=cache,
            compiling=options.compile and on_a_cluster is None,
            seed=options.seed,
            part=part,
            serve=on_a_cluster,
        )
    finally:
        progress.decoded += pool.decoded
        for job in plan.jobs:
            job.record.batch_size = pieces.of(job.observer) if job.geometry else 0


def _record(
    plan: Plan,
    wanted: Sequence[str | Observer],
    names: Sequence[str],
    data_root: Path | None,
    here: Path | None,
    options: RunOptions,
) -> RunRecord:
    arguments = {
        "observers": [o if isinstance(o, str) else f"{OBJECT}{o.name}" for o in wanted],
        "protocols": list(names),
        "data_root": str(data_root) if data_root else None,
        "folder": str(here) if here else "",
        **{k: v for k, v in vars(options).items() if k not in ("fresh", "shard")},
    }
    return RunRecord(
        arguments=json.loads(json_text(arguments)),  # as it will be read again
        protocols={name: _described(name) for name in names},
        jobs=[job.record for job in plan.jobs],
        stimuli=plan.describe_stimuli(),
        failures=on_each(plan.failures, names),
        skipped=list(plan.skipped),
        notices=list(plan.notices),
        started=now(),
    )


def _described(name: str) -> dict[str, Any]:
    """Return what the record says of a protocol: enough to find it again, and to show its headline without it."""
    protocol: Protocol = protocols.get(name)
    origin = protocols.origin(name)
    if origin.startswith(SCHEME):  # `cuebench score` may be called in another folder
        file, _, part = origin.removeprefix(SCHEME).rpartition(":")
        origin = f"{SCHEME}{Path(file).expanduser().absolute()}:{part}"
    declared = protocol.headline
    headline = {
        "metric": declared.metric,
        "conditions": list(declared.conditions),
        "direction": declared.direction,
        "human": declared.human,
        "human_source": declared.human_source,
    }
    return {"version": protocol.version, "origin": origin, "headline": headline}


def _earlier_run(folder: Path, notice: Callable[[str], None]) -> RunRecord | None:
    """Return the record of what the folder holds; None where there is none, or none that can be read.

    What the processes of a shared run have said is part of it: the next command may forget their records.
    """
    if not (folder / "run.json").is_file():
        return None
    try:
        record = RunRecord.read(folder)
        return with_parts(folder, record) if record.status == SHARED else record
    except DamagedRecord as error:
        notice(f"{error.message}; it is written anew, for what this command names")
        return None


def _notice_damage(plan: Plan, notice: Callable[[str], None]) -> None:
    """Say which stored answers were damaged and have been asked for again."""
    for path, reason in {path: reason for job in plan.jobs for path, reason in job.shards.damaged.items()}.items():
        notice(f"{path.parent.name}/{path.name} was damaged ({reason}); its answers were asked for again")
