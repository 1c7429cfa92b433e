"""``evaluate``: observers × protocols → a run folder. What ``cuebench run`` calls."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cuebench import registry
from cuebench.errors import UserError, did_you_mean
from cuebench.files import make_folder
from cuebench.observers.base import Observer
from cuebench.responses.collect import collect
from cuebench.responses.events import Event, OnEvent, ignore
from cuebench.responses.workers import DecodePool, check_workers
from cuebench.runs.plan import Plan, load_observers, plan_run, read_stimuli
from cuebench.runs.record import RunRecord, locked, now
from cuebench.runs.score import score
from cuebench.types import Score


@dataclass(frozen=True)
class RunOptions:
    """What a user can choose for a run; stored in ``run.json``.

    Parameters
    ----------
    device : str
        ``auto``, ``cpu``, ``cuda``, ``cuda:1``, ``mps``.
    precision : str
        ``float32``, or ``bfloat16`` / ``float16`` autocast; part of the cache key.
    batch_size : int
        Stimuli in a batch and in a shard.
    workers : int or None
        Decoding processes; None: one for each core, eight at most.
    limit : int
        Show only so many stimuli of each set, drawn by the seed, all pictures of an image together; 0: all. The result
        says that it is partial.
    seed : int
        All randomness.
    resamples : int
        Bootstrap resamples of the intervals.
    offline : bool
        Guarantee that nothing is downloaded.
    allow_unreadable : float
        Share of unreadable stimuli that does not stop the run.
    common : bool
        Score every observer on the stimuli that all of them saw.
    fresh : bool
        Delete stored answers of this folder first.
    settings : mapping
        Options of single protocols: ``{"triplets.draw": "all"}``.
    features : str
        Layers whose outputs are stored beside the penultimate features: names with commas between them, or ``all``.
    baselines : int
        Random initialisations of every network, for the protocols that compare with them.
    """

    device: str = "auto"
    precision: str = "float32"
    batch_size: int = 32
    workers: int | None = None
    limit: int = 0
    seed: int = 0
    resamples: int = 10_000
    offline: bool = False
    allow_unreadable: float = 0.01
    common: bool = False
    fresh: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    features: str = ""
    baselines: int = 0

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise UserError(f"batch size must be 1 or more; got {self.batch_size}")
        if self.limit < 0:
            raise UserError(f"limit must be 0 (all) or more; got {self.limit}")
        if self.precision not in {"float32", "bfloat16", "float16"}:
            raise UserError(f"precision {self.precision!r}; one of float32, bfloat16, float16")
        if not 0 <= self.allow_unreadable <= 1:
            raise UserError(f"allow_unreadable is a share between 0 and 1; got {self.allow_unreadable}")
        if self.resamples < 100:
            raise UserError(f"resamples must be 100 or more for a 95 % interval; got {self.resamples}")
        if self.baselines < 0:
            raise UserError(f"baselines must be 0 (none) or more; got {self.baselines}")


@dataclass(frozen=True)
class Scores(Sequence[Score]):
    """The rows of a run, with what went wrong; behaves as a list of ``Score``."""

    rows: tuple[Score, ...]
    out: Path
    record: RunRecord = field(repr=False)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        return self.rows[index]

    @property
    def failures(self) -> list[str]:
        """Why observers could not be measured."""
        return [f"{f.observer}: {f.reason}" for f in self.record.failures]

    def value(self, observer: str, metric: str, condition: str = "partial") -> float:
        """Return one number; NaN where there is no such row."""
        for row in self.rows:
            if (row.observer, row.metric, row.condition) == (observer, metric, condition):
                return row.value
        return math.nan

    def to_table(self) -> Any:
        """Return the tidy table as a ``pyarrow.Table`` (``.to_pandas()`` where pandas is installed)."""
        from cuebench.runs.results import scores_table

        return scores_table(self.rows)


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
    wanted = [observers] if isinstance(observers, (str, Observer)) else list(observers)
    unknown = [name for name in names if name not in registry.protocols]
    if unknown:
        raise did_you_mean("protocol", unknown[0], registry.protocols)
    folder = make_folder(Path(out).expanduser())
    tell = on_event or ignore
    with locked(folder):
        if settings.fresh:
            _forget(folder)
        plan = _planned(wanted, names, data_root, folder, settings, tell)
        record = _record(plan, wanted, names, data_root, settings)
        _notice_other_run(folder, record, tell)
        record.write(folder)
        _collect(plan, record, folder, settings, tell)
        rows = score(folder, seed=settings.seed, resamples=settings.resamples, common=settings.common)
        record.status, record.finished = "complete", now()
        record.write(folder)
    tell(Event("finished", f"{len(rows)} scores in {folder}", fields={"out": str(folder)}))
    return Scores(tuple(rows), folder, record)


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
    with DecodePool(workers) as pool:
        try:
            progress = collect(
                plan.jobs,
                pool,
                batch_size=settings.batch_size,
                allow_unreadable=settings.allow_unreadable,
                on_event=tell,
            )
        except BaseException:
            record.status = "stopped"
            record.write(folder)
            raise
    failed = {(f.observer, f.protocol) for f in progress.failures}
    record.failures = [*plan.failures, *progress.failures]
    record.jobs = [job for job in record.jobs if (job.observer, job.protocol) not in failed]
    record.unreadable = dict(sorted(progress.unreadable.items()))
    record.images_decoded = pool.decoded
    record.write(folder)


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
        stimuli=plan.stimuli,
        failures=list(plan.failures),
        skipped=list(plan.skipped),
        notices=list(plan.notices),
        started=now(),
    )


def _notice_other_run(folder: Path, record: RunRecord, tell: OnEvent) -> None:
    if not (folder / "run.json").is_file():
        return
    before = RunRecord.read(folder).arguments
    changed = [k for k, v in record.arguments.items() if before.get(k) != v and k != "workers"]
    if changed:
        text = f"{folder} held a run with other {', '.join(changed)}: its answers are kept, its scores are replaced"
        record.notices.append(text)
        tell(Event("notice", text))


def _forget(folder: Path) -> None:
    import shutil

    for part in ("responses", "tables", "stimuli"):
        shutil.rmtree(folder / part, ignore_errors=True)
    for part in ("scores.parquet", "scores.json", "run.json"):
        (folder / part).unlink(missing_ok=True)
