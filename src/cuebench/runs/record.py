"""``run.json``: what was asked for, with what it was run, on what, and what was partial. Scores and reports start here.

run.json             this record
parts/*.json         what each process of a run that is shared by several has to say (``runs/share.py``)
stimuli/*.parquet    the manifest of every stimulus set that was shown
responses/           the shards (``responses/store.py``)
scores.parquet       one row for each interval of each score
scores.json          the same rows
tables/*.parquet     what does not fit the tidy form, e.g. confusion matrices
"""

from __future__ import annotations

import hashlib
import math
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from cuebench._version import __version__
from cuebench.arrays import instruction_sets
from cuebench.errors import UserError, all_problems
from cuebench.files import NO_LOCKS, disk_errors, json_bytes, take_lock, write_json
from cuebench.observers.torch.placement import unknown_device
from cuebench.options import check_types, parse
from cuebench.places import RemotePath, place
from cuebench.processes import warn
from cuebench.protocols.headline import remember_headline
from cuebench.reading import parse_json
from cuebench.registry import BUILT_IN, protocols
from cuebench.responses.engines import address_of
from cuebench.responses.job import JobRecord
from cuebench.runs.record_form import check_record
from cuebench.stimuli.background import BACKGROUNDS
from cuebench.types import Failure, Headline

__all__ = ["DamagedRecord", "JobRecord", "RunOptions", "RunRecord", "locked", "note_scored", "now", "parse_settings"]

FORMAT = 4
READABLE = (1, 2, 3, 4)
"""Format 3: a stored file held one batch. Format 2: without checksums. Format 1: conditions of cue conflict were called
``partial`` and ``full``, layers and baselines were run options."""
_PACKAGES = ("numpy", "scipy", "pillow", "pyarrow", "torch", "torchvision", "timm", "transformers", "onnxruntime")
PARTS = "parts"
"""Folder of the records of the processes that share a run."""
MOST_PARTS = 100_000
"""Processes that can share a run."""
_RUN_AGAIN = "run the same command again: the answers are kept"


@dataclass(frozen=True)
class RunOptions:
    """What a user can choose for a run; stored in ``run.json``.

    Parameters
    ----------
    device : str
        ``auto``, ``cpu``, ``cuda``, ``cuda:1``, ``mps``; several GPUs: ``cuda:0,cuda:1`` or ``cuda:all``.
    precision : str
        ``float32``, or ``bfloat16`` / ``float16`` autocast; part of the cache key.
    batch_size : int
        Stimuli that an observer is shown at once; 0: as suits its device. The last bits of an answer depend on it.
    shard_size : int
        Stimuli in a stored file; 0: those of the run folder, or ``responses.store.SHARD``.
    workers : int or None
        Decoding processes; None: one for each core.
    cache : str or None
        Folder in which decoded pixels are kept for other models and runs; None: nowhere.
    cache_size : float
        GiB that it may take.
    compile : bool
        Compile networks where that pays.
    cues_on : {"cpu", "device"}
        Where cues of recipes are made: with the decoding, or on the GPU of each torch network. Part of the cache key.
    background : str
        What partly transparent pictures are put on: ``white``, ``black``, ``grey``; ``refuse``: do not show them.
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
    engine : str
        ``local``, ``ray``, or ``ray:ADDRESS`` (``responses/engines.py``).
    responses : str
        Folder or address of the answers; empty: ``responses`` in the run folder.
    shard : pair of int or None
        (i, n): this process answers the i-th of n parts.
    common : bool
        Score every observer on the stimuli that all of them saw.
    fresh : bool
        Delete what an earlier run wrote to this folder, once it is clear that this one can begin.
    settings : mapping
        Options of single protocols: ``{"triplets.draw": "all"}``.
    """

    device: str = "auto"
    precision: str = "float32"
    batch_size: int = 0
    shard_size: int = 0
    workers: int | None = None
    cache: str | None = None
    cache_size: float = 50.0
    compile: bool = False
    cues_on: str = "cpu"
    background: str = "white"
    limit: int = 0
    seed: int = 0
    resamples: int = 10_000
    offline: bool = False
    allow_unreadable: float = 0.01
    common: bool = False
    fresh: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    engine: str = "local"
    responses: str = ""
    shard: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        for name, value in check_types(vars(self), RunOptions).items():
            object.__setattr__(self, name, value)
        address_of(self.engine)
        problems = list(self._problems())
        if len(problems) == 1:
            raise problems[0]
        if problems:
            raise all_problems("options of the run", [" → ".join(filter(None, (e.message, e.hint))) for e in problems])

    def _problems(self) -> Iterator[UserError]:
        """Yield every option whose value is out of range, and options that do not go together."""
        if self.shard is not None and not 1 <= self.shard[0] <= self.shard[1]:
            i, n = self.shard
            yield UserError(
                f"shard {i}/{n}: the first number counts the parts from 1 to the second", "e.g. --shard 1/4"
            )
        if self.shard is not None and self.shard[1] > MOST_PARTS:
            yield UserError(f"shard of {self.shard[1]:,} parts", f"a run has {MOST_PARTS:,} parts at most")
        if self.shard is not None and self.fresh:
            yield UserError(
                "--fresh and --shard do not go together: one process would delete what the others have answered",
                "choose another --out, or empty this one first",
            )
        for name in ("batch_size", "shard_size"):
            if getattr(self, name) < 0:
                yield UserError(f"{name.replace('_', ' ')} must be 1 or more, or 0 (chosen); got {getattr(self, name)}")
        if not 0 < self.cache_size < math.inf:
            yield UserError(f"the size of the cache must be more than 0 GiB; got {self.cache_size}")
        if error := unknown_device(self.device):
            yield error
        if self.cues_on not in {"cpu", "device"}:
            yield UserError(f"cues on {self.cues_on!r}; one of cpu, device")
        if self.background not in BACKGROUNDS:
            yield UserError(f"background {self.background!r}; one of {', '.join(BACKGROUNDS)}")
        if self.limit < 0:
            yield UserError(f"limit must be 0 (all) or more; got {self.limit}")
        if self.precision not in {"float32", "bfloat16", "float16"}:
            yield UserError(f"precision {self.precision!r}; one of float32, bfloat16, float16")
        if not 0 <= self.allow_unreadable <= 1:
            yield UserError(f"allow_unreadable is a share between 0 and 1; got {self.allow_unreadable}")
        if self.seed < 0:
            yield UserError(f"seed must be 0 or more; got {self.seed}")
        if self.resamples < 100:
            yield UserError(f"resamples must be 100 or more for a 95 % interval; got {self.resamples}")

    def responses_in(self, folder: Path) -> Path | RemotePath:
        """Return where the answers of a run folder lie."""
        return place(self.responses) if self.responses else folder / "responses"

    def scoring(self) -> dict[str, Any]:
        """Return what changes the scores of the same answers."""
        return {
            "seed": self.seed,
            "resamples": self.resamples,
            "settings": dict(self.settings),
            "common": self.common,
        }


def parse_settings(names: Sequence[str], settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return protocol → its options, parsed, defaults included.

    Raises
    ------
    UserError
        For an option that no protocol of the run has, which would be silently without effect, and for a wrong value.
    """
    by_protocol: dict[str, dict[str, Any]] = {name: {} for name in names}
    for key, value in settings.items():
        name, dot, option = str(key).partition(".")
        if name in by_protocol and not dot:
            raise UserError(f"setting {key!r} names no option", f"write {name}.OPTION")
        if name not in by_protocol:
            known = ", ".join(f"{n}.{o}" for n in names for o in protocols.get(n).options) or "none"
            raise UserError(
                f"setting {key!r}: no protocol of this run is called {name!r}", f"PROTOCOL.OPTION=VALUE; here: {known}"
            )
        if why := protocols.get(name).without.get(option):
            raise UserError(f"protocol {name!r} has no option {option!r}", why)
        by_protocol[name][option] = value
    return {n: parse(protocols.get(n).options, texts, f"protocol {n!r}") for n, texts in by_protocol.items()}


@dataclass
class RunRecord:
    """The whole record."""

    arguments: dict[str, Any]
    """Observers, protocols, data root, and the fields of ``RunOptions``."""
    status: str = "running"
    protocols: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Protocol → its version, where it came from (``origin``), and its headline."""
    jobs: list[JobRecord] = field(default_factory=list)
    stimuli: dict[str, dict[str, Any]] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    skipped: list[Failure] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)
    """``FINGERPRINT/ID`` (twelve digits of the set's; earlier: the id alone) → why the stimulus could not be shown."""
    notices: list[str] = field(default_factory=list)
    scored: dict[str, Any] = field(default_factory=dict)
    """What the scores in this folder were made with: seed, resamples, settings, common. Empty while there are none
    that belong to this record: from the beginning of a run to its end."""
    files: dict[str, str] = field(default_factory=dict)
    """Manifest, file of scores, or table → its SHA-256."""
    images_decoded: int = 0
    started: str = ""
    finished: str = ""

    @property
    def options(self) -> RunOptions:
        """The options that the run was made with."""
        return RunOptions(**{k: v for k, v in self.arguments.items() if k in RunOptions.__dataclass_fields__})

    def protocol_names(self) -> list[str]:
        """Return the protocols of the run, in the order in which they were named."""
        return list(dict.fromkeys([*self.protocols, *(job.protocol for job in self.jobs)]))

    def headline(self, protocol: str) -> Headline | None:
        """Return the recorded headline of a protocol; None where the record is of an earlier format."""
        recorded = self.protocols.get(protocol, {}).get("headline")
        return Headline(**{**recorded, "conditions": tuple(recorded["conditions"])}) if recorded else None

    def write(self, out: Path) -> None:
        """Write ``run.json`` atomically."""
        _write_body(out, {"format": FORMAT, "cuebench": __version__, **asdict(self), "environment": environment()})

    @classmethod
    def read(cls, out: Path) -> RunRecord:
        """Read ``run.json``; a folder without one, a damaged one or one of a later cuebench is an error that says so.

        Raises
        ------
        DamagedRecord
            Where the file is cut short, or lacks what this version writes.
        """
        body = _body(out)
        try:
            if body["format"] == 1:
                body = _from_format_1(body)
            if body["format"] < 4:
                body["arguments"] = {**body["arguments"], "shard_size": body["arguments"]["batch_size"]}
            known = {name: body[name] for name in cls.__dataclass_fields__ if name in body}
            check_record(known, cls, RunOptions)
            known["jobs"] = [JobRecord.parse(job) for job in known["jobs"]]
            for name in ("failures", "skipped"):
                known[name] = [Failure(**f) for f in known[name]]
            record = cls(**known)
            for name in record.protocols:
                if headline := record.headline(name):
                    remember_headline(name, headline)
            return record
        except (KeyError, TypeError, AttributeError, ValueError, UserError) as error:
            why = error.message if isinstance(error, UserError) else repr(error)
            raise DamagedRecord(f"{out / 'run.json'} is damaged or incomplete: {why}", _RUN_AGAIN) from None


class DamagedRecord(UserError):
    """A ``run.json`` that cannot be read: it cannot be scored, and a new run may write over it."""


def _body(out: Path) -> dict[str, Any]:
    path = out / "run.json"
    if not path.is_file():
        raise UserError(f"{out} is not a run folder: it has no run.json", "make one with: cuebench run … --out DIR")
    try:
        body = parse_json(path.read_text("utf-8"), path.name)
    except (ValueError, UserError) as error:
        raise DamagedRecord(f"{path} is damaged: {error}", _RUN_AGAIN) from None
    written = body.get("format") if isinstance(body, dict) else None
    if isinstance(written, int) and written > FORMAT:
        raise UserError(f"{path} has format {written}; this cuebench reads {FORMAT}", "upgrade cuebench")
    if written not in READABLE:
        raise DamagedRecord(f"{path} has format {written}; this cuebench reads {FORMAT}", _RUN_AGAIN)
    checksum = body.pop("checksum", None)
    if checksum != _checksum(body) if checksum is not None else written == FORMAT:
        raise DamagedRecord(f"{path} was changed or damaged: its checksum is not that of its content", _RUN_AGAIN)
    return dict(body)


def _write_body(out: Path, body: Mapping[str, Any]) -> None:
    write_json(out / "run.json", {**body, "checksum": _checksum(body)})


def _checksum(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json_bytes(body)).hexdigest()


def _from_format_1(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record of format 1 in today's form."""
    arguments = {"seed": body["seed"], "batch_size": body["batch_size"], **body["arguments"]}
    layers, baselines = arguments.pop("features", ""), arguments.pop("baselines", 0)
    names = list(dict.fromkeys([*arguments.get("protocols", ()), *(job["protocol"] for job in body["jobs"])]))
    if "triplets" in names:  # the only protocol then that measured layers and compared with random networks
        settings = {"triplets.layers": layers, "triplets.baselines": baselines}
        arguments["settings"] = {**{k: v for k, v in settings.items() if v}, **arguments.get("settings", {})}
    return {**body, "arguments": arguments, "protocols": {name: {"origin": BUILT_IN} for name in names}}


def note_scored(out: Path, record: RunRecord) -> None:
    """Write into ``run.json`` how it was scored, and what failed; all else stays as the run left it."""
    fields = asdict(record)
    _write_body(out, {**_body(out), **{name: fields[name] for name in ("scored", "files", "failures", "notices")}})


class WrittenWith(NamedTuple):
    """Version of cuebench and the environment that a run was made in."""

    cuebench: str
    environment: Mapping[str, Any]


def written_with(out: Path) -> WrittenWith:
    """Return what a run was made with, for its provenance; empty where an earlier format does not say it."""
    body = _body(out)
    return WrittenWith(str(body.get("cuebench", "")), body.get("environment") or {})


def environment() -> dict[str, Any]:
    """Return host and versions: what a reader needs to repeat the run."""
    versions = {}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "host": platform.node(),
        "cpus": os.cpu_count(),
        "cpu_instructions": instruction_sets(),
        "packages": versions,
        "command": sys.argv,
    }


def now() -> str:
    """Return the time as an ISO string in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@contextmanager
def locked(out: Path, tell: Callable[[str], None] = warn, patience: float = 0) -> Iterator[None]:
    """Hold the run folder: two runs that write the same record would lose one of them.

    Parameters
    ----------
    out : Path
        The run folder.
    tell : callable
        Told where the file system has no locks. Default: a warning.
    patience : float
        Seconds to wait while another process holds it.
    """
    deadline = time.monotonic() + patience
    with disk_errors(out):
        file = (out / ".lock").open("w")
    with file:
        while True:
            try:
                take_lock(file.fileno())
                break
            except OSError as error:
                if error.errno in NO_LOCKS:
                    tell(f"the file system of {out} has no locks ({error.strerror}): let only one process write to it")
                    break
                if time.monotonic() >= deadline:
                    hint = "wait for it, or choose another --out"
                    raise UserError(f"another run is writing to {out}", hint) from None
            time.sleep(_LOOK_AGAIN)
        yield


_LOOK_AGAIN = 0.05
