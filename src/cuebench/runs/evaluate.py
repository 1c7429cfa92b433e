"""``evaluate``: observers × protocols → a run folder. What ``cuebench run`` calls."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast

from cuebench import registry
from cuebench.errors import UserError, did_you_mean
from cuebench.files import make_folder
from cuebench.observers.base import Observer
from cuebench.responses.collect import Progress, collect
from cuebench.responses.events import Event, OnEvent, ignore
from cuebench.responses.workers import DecodePool, check_workers
from cuebench.runs.forget import check_forgettable, forget
from cuebench.runs.loading import load_observers
from cuebench.runs.options import RunOptions
from cuebench.runs.plan import Plan, plan_run
from cuebench.runs.record import DamagedRecord, RunRecord, locked, now
from cuebench.runs.score import Choice, score_run
from cuebench.runs.scores import Scores
from cuebench.runs.sources import read_stimuli
from cuebench.types import Score

__all__ = ["RunOptions", "Scores", "evaluate"]


def evaluate(
    observers: str | Observer | Iterable[str | Observer],
    protocols: str | Iterable[str],
    *,
    data_root: str | Path | None = None,
    out: str | Path,
    on_event: OnEvent | None = None,
    **options: Any,
) -> Scores:
    """Show the stimuli of the protocols to the observers, store what they answer, score it.

    Running the same call again goes on where it stopped, and costs nothing where it had finished.

    Parameters
    ----------
    observers : str, Observer, or several
        Specs such as ``"timm:resnet50.a1_in1k"`` or ``"recorded:humans/"``, and objects from ``cuebench.wrap``.
    protocols : str or several
        Names, see ``cuebench list protocols``.
    data_root : path, optional
        Folder with one sub-folder for each dataset. Default: the environment variable ``CUEBENCH_DATA``.
    out : path
        The run folder.
    on_event : callable, optional
        Told of progress (``responses.events.Event``).
    **options
        Fields of ``RunOptions``.

    Returns
    -------
    Scores
        Also written to ``out/scores.parquet`` and ``out/scores.json``. A failed observer is a row with the reason.
    """
    settings = _options(options)
    names = [protocols] if isinstance(protocols, str) else list(protocols)
    wanted = _several(observers)
    unknown = [name for name in names if name not in registry.protocols]
    if unknown:
        raise did_you_mean("protocol", unknown[0], registry.protocols)
    folder = make_folder(Path(out).expanduser())
    tell = on_event or ignore
    with locked(folder):
        if settings.fresh:
            check_forgettable(folder)
        plan = _planned(wanted, names, data_root, folder, settings, tell)
        record = _record(plan, wanted, names, data_root, settings)
        if settings.fresh:  # only now: a mistyped observer must not cost what was measured
            forget(folder)
        _notice_other_run(folder, record, tell)
        plan.write_manifests(folder / "stimuli")
        record.write(folder)
        _collect(plan, record, folder, settings, tell)
        rows = _score(record, folder, settings)
    tell(Event("finished", f"{len(rows)} scores in {folder}", fields={"out": str(folder)}))
    found = Scores(tuple(rows), folder, record)
    if found.failures and on_event is None:  # nobody listened: a silent gap in a table is worse than a warning
        warnings.warn("not measured: " + "; ".join(found.failures), RuntimeWarning, stacklevel=2)
    return found


def _several(observers: str | Observer | Iterable[str | Observer]) -> list[str | Observer]:
    # Not isinstance: until Python 3.12 that reads every attribute of the contract, and one of them hashes the weights.
    if isinstance(observers, str) or callable(getattr(observers, "respond", None)):
        return [cast("str | Observer", observers)]
    found: list[Any] = list(observers) if isinstance(observers, Iterable) else [observers]
    strange = [o for o in found if not isinstance(o, str) and not callable(getattr(o, "respond", None))]
    if strange:
        raise UserError(
            f"a {type(strange[0]).__name__} is no observer",
            "wrap a model: cuebench.wrap(model, preprocess=…, labels=…); or name one: 'timm:resnet50'",
        )
    return found


def _options(options: dict[str, Any]) -> RunOptions:
    unknown = set(options) - set(RunOptions.__dataclass_fields__)
    if unknown:
        known = ", ".join(RunOptions.__dataclass_fields__)
        raise UserError(f"evaluate has no option {sorted(unknown)[0]!r}", f"options: {known}")
    return RunOptions(**options)


def _planned(
    wanted: Sequence[str | Observer],
    names: Sequence[str],
    data_root: str | Path | None,
    folder: Path,
    settings: RunOptions,
    tell: OnEvent,
) -> Plan:
    sources = read_stimuli(names, data_root, limit=settings.limit, seed=settings.seed, settings=settings.settings)
    loaded = load_observers(wanted, sources, settings, tell)
    return plan_run(sources, loaded, folder, settings, tell)


def _collect(plan: Plan, record: RunRecord, folder: Path, settings: RunOptions, tell: OnEvent) -> None:
    """Collect the answers; whatever happens, the record on disk says how far it came."""
    workers = check_workers(settings.workers) if any(job.geometry for job in plan.jobs) else 0
    progress = Progress(tell)
    with DecodePool(workers, tell=lambda text: tell(Event("notice", text))) as pool:
        try:
            collect(
                plan.jobs,
                pool,
                batch_size=settings.batch_size,
                allow_unreadable=settings.allow_unreadable,
                on_event=tell,
                progress=progress,
                device=plan.device,
            )
            record.status = "collected"
        except BaseException:
            record.status = "stopped"
            raise
        finally:
            _note(record, plan, progress, pool.decoded)
            record.write(folder)


def _note(record: RunRecord, plan: Plan, progress: Progress, decoded: int) -> None:
    failed = {(f.observer, f.protocol) for f in progress.failures}
    record.failures = [*plan.failures, *progress.failures]
    record.jobs = [job for job in record.jobs if (job.observer, job.protocol) not in failed]
    record.unreadable = dict(sorted(progress.unreadable.items()))
    record.images_decoded = decoded


def _score(record: RunRecord, folder: Path, settings: RunOptions) -> list[Score]:
    choice = Choice(settings.seed, settings.resamples, settings.settings, settings.common)
    rows, record.failures = score_run(folder, record, choice)
    record.scored = dict(vars(choice))
    record.status, record.finished = "complete", now()
    record.write(folder)
    return rows


def _record(
    plan: Plan,
    wanted: Sequence[str | Observer],
    names: Sequence[str],
    data_root: str | Path | None,
    settings: RunOptions,
) -> RunRecord:
    arguments = {
        "observers": [o if isinstance(o, str) else f"object:{o.name}" for o in wanted],
        "protocols": list(names),
        "data_root": str(data_root) if data_root else None,
        **{k: v for k, v in vars(settings).items() if k != "fresh"},
    }
    return RunRecord(
        arguments=arguments,
        batch_size=settings.batch_size,
        seed=settings.seed,
        jobs=plan.records,
        stimuli=plan.describe_stimuli(),
        failures=list(plan.failures),
        skipped=list(plan.skipped),
        notices=list(plan.notices),
        started=now(),
    )


def _notice_other_run(folder: Path, record: RunRecord, tell: OnEvent) -> None:
    if not (folder / "run.json").is_file():
        return
    try:
        before = RunRecord.read(folder).arguments
    except DamagedRecord as error:
        _notice(record, f"{error.message}; it is written anew", tell)
        return
    changed = [k for k, v in record.arguments.items() if before.get(k) != v and k != "workers"]
    if changed:
        text = f"{folder} held a run with other {', '.join(changed)}: its answers are kept, its scores are replaced"
        _notice(record, text, tell)


def _notice(record: RunRecord, text: str, tell: OnEvent) -> None:
    record.notices.append(text)
    tell(Event("notice", text))
