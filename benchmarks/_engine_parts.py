"""The parts of ``benchmarks/engine.py``: each runs in a process of its own and writes what it measured as JSON.

python -m benchmarks._engine_parts PART SETTINGS.json RESULT.json
"""

from __future__ import annotations

import importlib.util
import inspect
import itertools
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch

import cuebench
from benchmarks._jpegs import decode_rate
from cuebench.cli import take_less_memory
from cuebench.observers.base import LoadOptions
from cuebench.observers.load import load
from cuebench.observers.torch.torchvision_import import import_torchvision
from cuebench.registry import protocols

PROTOCOL = "imagenet_accuracy"
SETTLED = 0.2
"""Share of the answers after which the steady rate is measured: processes have started, the device is warm."""
ENOUGH = 8
"""Events after that without which there is no steady rate."""
FORWARD_SECONDS = 1.5
DECODED = 2048
"""Stimuli that each process decodes for the ceiling: seconds, as the engine's own runs take."""


@dataclass(frozen=True)
class Settings:
    """What every part is told."""

    device: str
    precision: str
    batch: int
    """Images in a batch of the bare forward pass and of the DataLoader."""
    workers: tuple[int, ...]
    model: str
    several: tuple[str, ...]
    models: int
    scale_model: str
    data: str
    """Data root of the parts that run once."""
    many_data: str
    scratch: str
    patience: int


def _spent(who: int = resource.RUSAGE_SELF) -> float:
    """Return the CPU seconds of this process, or of its children that have ended."""
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


# -------------------------------------------------------------------------------------------------- forward


def _spent_by_threads() -> dict[str, float]:
    """Return the CPU seconds of this process so far, by what its threads do; empty where Linux' /proc is missing."""
    spent: dict[str, float] = {}
    threads = {thread.native_id: thread.name for thread in threading.enumerate()}
    for task in Path("/proc/self/task").glob("*"):
        try:
            fields = (task / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        name = re.sub(r"[-_]?[0-9]+", "", threads.get(int(task.name), "of libraries"))
        ticks = int(fields[11]) + int(fields[12])
        spent[name] = spent.get(name, 0.0) + ticks / os.sysconf("SC_CLK_TCK")
    return spent


def _network(name: str, channels_last: bool, device: str) -> Any:
    import_torchvision()
    from torchvision import models

    torch.manual_seed(0)
    network = models.get_model(name, weights=None).eval().to(device)
    return network.to(memory_format=torch.channels_last) if channels_last else network


def _numbers(precision: str, device: str) -> ExitStack:
    """Return the context of a precision; ``tf32``: what torch does with float32 networks on CUDA by default."""
    stack = ExitStack()
    stack.enter_context(torch.inference_mode())
    if precision in ("bfloat16", "float16"):
        stack.enter_context(torch.autocast(device, dtype=getattr(torch, precision)))
    elif precision == "float32" and device == "cuda":
        stack.enter_context(torch.backends.cudnn.flags(enabled=True, allow_tf32=False))
    return stack


def forward_rate(name: str, precision: str, channels_last: bool, batch: int, device: str) -> tuple[float, float]:
    """Return images/s of the network alone, and CPU ms for each: normalised pixels lie on the device, answers stay."""
    network = _network(name, channels_last, device)
    kind = torch.channels_last if channels_last else torch.contiguous_format
    inputs = [torch.randn(batch, 3, 224, 224, device=device).contiguous(memory_format=kind) for _ in range(3)]
    with _numbers(precision, device):
        for _ in range(10 if device == "cuda" else 1):
            network(inputs[0])
        before, passes = _spent(), 0
        if device != "cuda":
            seconds: list[float] = []
            while sum(seconds) < FORWARD_SECONDS or len(seconds) < 3:
                start = time.perf_counter()
                network(inputs[len(seconds) % 3])
                seconds.append(time.perf_counter() - start)
            rate, passes = batch / median(seconds), len(seconds)
        else:
            milliseconds: list[float] = []
            while sum(milliseconds) < 1000 * FORWARD_SECONDS or len(milliseconds) < 3:
                begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                begin.record()
                for i in range(10):
                    network(inputs[i % 3])
                end.record()
                end.synchronize()
                milliseconds.append(begin.elapsed_time(end))
            rate, passes = 10 * batch / (median(milliseconds) / 1000), 10 * len(milliseconds)
        return rate, 1000 * (_spent() - before) / (passes * batch)


def best_forward(s: Settings, name: str) -> float:
    """Return images/s of the faster memory format in the precision of the benchmark."""
    return max(forward_rate(name, s.precision, last, s.batch, s.device)[0] for last in (False, True))


def forward(s: Settings) -> dict[str, Any]:
    """The network alone."""
    precisions = ("bfloat16", "tf32", "float32") if s.device == "cuda" else (s.precision,)
    found = {
        f"{precision}, {'channels last' if last else 'contiguous'}": forward_rate(
            s.model, precision, last, s.batch, s.device
        )
        for precision in precisions
        for last in (False, True)
    }
    ours = [measured for name, measured in found.items() if name.startswith(s.precision)]
    rates = {name: rate for name, (rate, _) in found.items()}
    return {"rates": rates, "best": max(rate for rate, _ in ours), "CPU ms": min(spent for _, spent in ours)}


# --------------------------------------------------------------------------------------------------- decode


def _set_and_geometry(root: str, name: str) -> tuple[Any, Any, float]:
    """Return the stimulus set, the geometry of the network, and the seconds that reading and hashing took."""
    start = time.perf_counter()
    stimuli = protocols.get(PROTOCOL).read(Path(root))
    seconds = time.perf_counter() - start
    (observer,) = load(f"torchvision:{name}?weights=random", LoadOptions(device="cpu"))
    assert observer.preprocess is not None
    return stimuli, observer.preprocess.geometry, seconds


def decode(s: Settings) -> dict[str, Any]:
    """What processes decode that do nothing else."""
    stimuli, geometry, seconds = _set_and_geometry(s.data, s.model)

    def rate(kind: str, processes: int) -> tuple[float, float]:
        some = list(itertools.islice(itertools.cycle(stimuli.stimuli), DECODED * processes))
        return decode_rate(kind, stimuli.root, some, geometry, processes)

    found = {str(k): rate("cuebench", k) for k in s.workers}
    pillow, _ = rate("pillow", max(s.workers))
    rates = {k: per_second for k, (per_second, _) in found.items()}
    spent = min(spent for _, spent in found.values())
    return {"rates": rates, "pillow": pillow, "CPU ms": 1000 * spent, "reading and hashing": len(stimuli) / seconds}


# --------------------------------------------------------------------------------------------------- loader


class _Files(torch.utils.data.Dataset[Any]):
    def __init__(self, root: str) -> None:
        import_torchvision()
        from torchvision import transforms

        self.files = sorted(Path(root, "imagenet_val").rglob("*.jpg"))
        self.transform = transforms.Compose(
            [
                transforms.Resize(256),
                transforms.CenterCrop(224),
                transforms.ToTensor(),
                transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
            ]
        )

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> Any:
        from PIL import Image

        with Image.open(self.files[index]) as image:
            return self.transform(image.convert("RGB"))


def _loop(s: Settings, workers: int, channels_last: bool) -> dict[str, Any]:
    """A user's own loop; the answers are kept in memory, not stored."""
    network = _network(s.model, channels_last, s.device)
    with _numbers(s.precision, s.device):  # not counted, as little as loading the weights is
        network(torch.zeros(s.batch, 3, 224, 224, device=s.device))
    files = _Files(s.data)
    start, before = time.perf_counter(), _spent() + _spent(resource.RUSAGE_CHILDREN)
    cuda = s.device == "cuda"
    loader = torch.utils.data.DataLoader(files, batch_size=s.batch, num_workers=workers, pin_memory=cuda)
    answers, marks = [], []
    with _numbers(s.precision, s.device):
        for images in loader:
            x = images.to(s.device, non_blocking=True)
            x = x.contiguous(memory_format=torch.channels_last) if channels_last else x
            answers.append(network(x).float().cpu())
            marks.append((time.perf_counter(), sum(map(len, answers))))
    assert len(torch.cat(answers)) == len(files)
    del loader
    spent = _spent() + _spent(resource.RUSAGE_CHILDREN) - before
    return _rates(start, marks, marks[-1][0], spent)


def loader(s: Settings) -> dict[str, Any]:
    """The incumbent's way: a DataLoader loop."""
    found = {}
    for workers in s.workers:
        for last in (False, True):
            found[f"{workers} workers, {'channels last' if last else 'contiguous'}"] = _loop(s, workers, last)
    return found


def _rates(start: float, marks: list[tuple[float, int]], end: float, spent: float) -> dict[str, Any]:
    """Return answers/s from the start, and after the first fifth; ``marks``: (time, answers so far)."""
    total = marks[-1][1]
    settled = [(at, done) for at, done in marks if done >= SETTLED * total]
    at, done = settled[0]
    steady = (total - done) / (end - at) if len(settled) > ENOUGH else None
    seconds = end - start
    rates = {"seconds": seconds, "rate": total / seconds, "steady": steady}
    return {"answers": total, **rates, "CPU ms": 1000 * spent / total}


# --------------------------------------------------------------------------------------------------- engine


def run_engine(s: Settings, observers: list[Any], root: str, workers: int, **more: Any) -> dict[str, Any]:
    """Run ``cuebench.evaluate`` into a folder of its own; return its rates and the seconds of each stage."""
    marks: list[tuple[float, int]] = []
    at: dict[str, float] = {}
    spent: dict[str, float] = {}
    threads: list[dict[str, float]] = []
    children = _spent(resource.RUSAGE_CHILDREN)

    def listen(event: Any) -> None:
        now = time.perf_counter()
        at.setdefault(event.kind, now)
        if event.kind == "start":
            spent["start"] = _spent()
            threads.append(_spent_by_threads())
        if event.kind == "batch":
            spent["last"] = _spent()
            if len(marks) % 16 == 0 or event.done == event.total:  # it takes milliseconds
                threads[1:] = [_spent_by_threads()]
            marks.append((now, event.done))

    with tempfile.TemporaryDirectory(dir=s.scratch) as out:
        start = time.perf_counter()
        scores = cuebench.evaluate(
            observers,
            PROTOCOL,
            data_root=root,
            out=out,
            device=s.device,
            precision=s.precision,
            workers=workers,
            offline=True,
            on_event=listen,
            **more,
        )
        end = time.perf_counter()
        if scores.failures:
            raise RuntimeError("; ".join(scores.failures))
        shards = [path.stat() for path in Path(out, "responses").rglob("*.parquet")]
        # A file may be renamed after its event; its time of change is on another clock.
        stored = max(entry.st_ctime for entry in shards) - time.time() + time.perf_counter()
        last = max(marks[-1][0], min(stored, end))
        stages = {
            "planning": at["start"] - start,
            "to the first answer": marks[0][0] - at["start"],
            "answers": last - marks[0][0],
            "scoring": end - last,
            "all": end - start,
        }
        # Decoders are counted when they have ended, which they have before anything is scored.
        used = spent["last"] - spent["start"] + _spent(resource.RUSAGE_CHILDREN) - children
        rates = _rates(at["start"], marks, last, used)
        size = sum(entry.st_size for entry in shards)
    gpu = torch.cuda.max_memory_allocated() / 2**20 if s.device == "cuda" else 0
    by_thread = {
        name: 1000 * (seconds - threads[0].get(name, 0.0)) / rates["answers"] for name, seconds in threads[-1].items()
    }
    return {**rates, "stages": stages, "shards": len(shards), "bytes": size, "GPU MiB": gpu, "main process": by_thread}


def _specs(name: str, count: int) -> list[str]:
    return [f"torchvision:{name}?weights=random&seed={i}&name={name}-{i}" for i in range(count)]


def engine(s: Settings) -> dict[str, Any]:
    """The engine: from files, then with pixels that an earlier run has kept."""
    found = {}
    for workers in s.workers:
        found[f"files, {workers} workers"] = run_engine(s, _specs(s.model, 1), s.data, workers)
    if "cache" in inspect.signature(cuebench.evaluate).parameters:
        with tempfile.TemporaryDirectory(dir=s.scratch) as cache:
            workers = max(s.workers)
            found["filling the cache"] = run_engine(s, _specs(s.model, 1), s.data, workers, cache=Path(cache))
            found["cached"] = run_engine(s, _specs(s.model, 1), s.data, workers, cache=Path(cache))
    return found


def many(s: Settings) -> dict[str, Any]:
    """Several networks of one geometry: together, and one after the other."""
    found = {}
    workers = max(s.workers)
    for name in s.several:
        stimuli, geometry, _ = _set_and_geometry(s.many_data, name)
        decoded, _ = decode_rate("cuebench", stimuli.root, stimuli.stimuli, geometry, workers)
        alone = best_forward(s, name)
        specs = _specs(name, s.models)
        run_engine(s, specs[:1], s.many_data, workers)  # warms up
        single = [run_engine(s, [spec], s.many_data, workers) for spec in specs[1:3]]
        together = run_engine(s, specs, s.many_data, workers)
        count = len(stimuli)
        found[name] = {
            "decode": decoded,
            "forward": alone,
            "together": together,
            "one pass": sum(r["seconds"] for r in single) / len(single),
            "one pass, CPU ms": sum(r["CPU ms"] for r in single) / len(single),
            "decode once + forwards": count / decoded + s.models * count / alone,
        }
    return found


def plan(s: Settings) -> dict[str, Any]:
    """What ``--plan`` says of a run, and the run."""
    workers = max(s.workers)
    options = {"device": s.device, "precision": s.precision, "workers": workers, "offline": True}
    _set_and_geometry(s.data, s.model)  # what is imported for the one is not imported again for the other
    start = time.perf_counter()
    cost = cuebench.estimate_cost(_specs(s.model, 1), PROTOCOL, data_root=s.data, **options)
    seconds = time.perf_counter() - start
    return {"cost": cost.as_json(), "probe seconds": seconds, "run": run_engine(s, _specs(s.model, 1), s.data, workers)}


# ---------------------------------------------------------------------------------------------------- scale


def _tiny() -> Any:
    """A network that costs next to nothing, so that the engine itself is seen."""
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, stride=4), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
        torch.nn.Linear(8, 1000),
    )  # fmt: skip
    preprocess = cuebench.Preprocess(size=48, resize=56)
    return cuebench.wrap(module, name="tiny", preprocess=preprocess, labels="imagenet1k", device="cpu")


def scale(s: Settings) -> dict[str, Any]:
    """One run over the data root; the parent process watches the memory."""
    observers = [_tiny()] if s.scale_model == "tiny" else _specs(s.scale_model, 1)
    return run_engine(s, observers, s.data, max(s.workers))


# ------------------------------------------------------------------------------------- the first answer


def first(s: Settings) -> dict[str, Any]:
    """Seconds from the command to the first answer, with a network whose weights lie on the disk."""
    with tempfile.TemporaryDirectory(dir=s.scratch) as folder:
        weights = Path(folder, "weights.pt")
        torch.save(_network(s.model, False, "cpu").state_dict(), weights)
        environment = _with_bytecode(Path(folder))
        if environment != os.environ:
            _first(s, weights, Path(folder, "compiled"), environment)
        return {f"run {i}": _first(s, weights, Path(folder, f"run-{i}"), environment) for i in (1, 2, 3)}


def _with_bytecode(folder: Path) -> dict[str, str]:
    """Return the environment, in which Python keeps what it compiles: every installation has torch compiled.

    There are images of machines without it, on which each ``import torch`` compiles two thousand files.
    """
    environment = dict(os.environ)
    if not Path(importlib.util.cache_from_source(str(torch.__file__))).exists():
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        environment["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
    return environment


def _first(s: Settings, weights: Path, out: Path, environment: dict[str, str]) -> dict[str, float]:
    observer = f"torchvision:{s.model}?checkpoint={weights}"
    command = [sys.executable, "-m", "cuebench", "run", "-o", observer, "-p", PROTOCOL, "--data-root", s.data]
    command += ["--out", str(out), "--device", s.device, "--precision", s.precision, "--offline", "--json"]
    start = time.perf_counter()
    pipes: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes, env=environment) as process:
        seconds: dict[str, float] = {}
        last = ""
        assert process.stderr is not None
        for line in process.stderr:
            last = line.strip() or last
            kind = json.loads(line).get("event") if line.startswith("{") else None
            if kind in ("start", "probe", "batch"):
                seconds.setdefault(kind, time.perf_counter() - start)
            if any(out.glob("responses/*/*.parquet")):
                seconds["stored"] = time.perf_counter() - start
                break
        process.kill()  # what is stored stays; nothing else is wanted of it
    if "stored" not in seconds:
        raise RuntimeError(f"no answer: {last}")
    return seconds


PARTS = {
    "forward": forward,
    "decode": decode,
    "loader": loader,
    "engine": engine,
    "many": many,
    "plan": plan,
    "first": first,
    "scale": scale,
}


def main(part: str, settings: str, result: str) -> int:
    values = json.loads(Path(settings).read_text())
    fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
    take_less_memory()  # as the command does
    try:
        found = PARTS[part](Settings(**fields))
    except Exception as error:  # noqa: BLE001 - the other parts are measured
        traceback.print_exc()
        found = {"error": f"{type(error).__name__}: {error}"}
    Path(result).write_text(json.dumps(found))
    return int("error" in found)
