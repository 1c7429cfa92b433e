"""The engine against its ceilings and against the loop that a user writes instead: one command, a table of ratios.

    python -m benchmarks engine                                   two cores, under three minutes
    python -m benchmarks.engine --device cuda --json engine.json  a GPU, under eight minutes
    python -m benchmarks.engine --parts forward,engine --count 4096

JPEG files that compress as photographs do are made in a temporary folder. Each part runs in a process of its own, in
turns, in one run: only the ratios mean something.

=========  ============================================================================================
forward    the network alone; normalised pixels lie on the device (CUDA events, median)
decode     what processes decode that do nothing else, with the engine's own decode function
loader     a DataLoader loop with torchvision's transforms; the answers are kept in memory
engine     ``cuebench.evaluate``, every answer stored: from files; with pixels cached by a run before
many       several networks of one geometry: together; one after the other
plan       what ``cuebench run --plan`` says of a run, and the run
first      seconds from the command ``cuebench run`` to its first answer
scale      peak memory and seconds for three numbers of stimuli, a process for each
=========  ============================================================================================

A *rate* counts from the first work on an image (starting decoder processes is included, loading networks is not) until
the last answer is stored. A *steady* rate leaves the first fifth of the answers out; ratios use it where there is one.
On a CPU that others use too, compare the CPU time: of all processes, while answers are collected.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks import _jpegs

PARTS = ("forward", "decode", "loader", "engine", "many", "plan", "first", "scale")
PATIENCE = 240 if Path("/dev/nvidia0").exists() else 900
"""Seconds after which a part is stopped; a CPU may be shared with others."""
_CODE = "import sys; from benchmarks._engine_parts import main; sys.exit(main(*sys.argv[1:]))"
"""Not ``-m``: processes that a part starts would import its module, and torch, again."""
SMALL = (86, 64)
"""Size of the pictures of ``scale`` on a CPU, where decoding large ones would take most of the time."""


# ------------------------------------------------------------------------------------------ memory of processes


def _descendants(root: int) -> list[int]:
    """Return a process and all that it started."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError, ValueError):
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found = [root]
    for process in found:
        found += children.get(process, [])
    return found


_KINDS = {"Pss": "all", "Pss_Anon": "own", "Pss_File": "files", "Pss_Shmem": "pixels"}
"""Line of Linux' smaps_rollup → our word."""


def _megabytes(process: int) -> dict[str, float]:
    """Return the memory of a process in MiB, by kind; what it shares with others is divided among them."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        split = [line.split() for line in lines if line.startswith("Pss")]
        return {_KINDS[s[0][:-1]]: int(s[1]) / 1024 for s in split if s[0][:-1] in _KINDS}
    except (OSError, ValueError, IndexError):
        pass
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
        return {"all": sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024}
    except (OSError, ValueError, IndexError):
        return {}


def _run_part(part: str, settings: Mapping[str, Any], folder: Path, *, memory: bool = False) -> dict[str, Any]:
    """Run a part in a process of its own; return what it measured, or ``error``."""
    given, result = folder / f"{part}-settings.json", folder / f"{part}-result.json"
    given.write_text(json.dumps(settings))
    result.unlink(missing_ok=True)
    command = [sys.executable, "-c", _CODE, part, str(given), str(result)]
    start, peak, alone = time.monotonic(), 0.0, 0.0
    parts: dict[str, float] = {}
    with (folder / f"{part}.log").open("w+") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        try:
            while process.poll() is None and time.monotonic() - start < settings["patience"]:
                if memory:
                    each = [_megabytes(p) for p in _descendants(process.pid)]
                    total = sum(memory_of.get("all", 0.0) for memory_of in each)
                    alone = max(alone, each[0].get("all", 0.0))
                    if total > peak:
                        main, workers = each[0], each[1:]
                        parts = {f"main, {kind}": main.get(kind, 0.0) for kind in _KINDS.values()}
                        parts |= {
                            f"workers, {kind}": sum(w.get(kind, 0.0) for w in workers) for kind in _KINDS.values()
                        }
                        peak = total
                time.sleep(0.2)
        finally:  # also where this process is interrupted
            stopped = process.poll() is None
            if stopped:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if stopped:
            return {"error": f"took longer than {settings['patience']} s"}
        log.seek(0)
        tail = log.read()[-2000:]
    if not result.exists():
        return {"error": f"ended with status {process.returncode}: {tail}"}
    found: dict[str, Any] = json.loads(result.read_text())
    if "error" in found:
        print(tail, file=sys.stderr)
    watched = {"MiB": peak, "main MiB": alone, "MiB at the peak": parts} if memory else {}
    return {**found, "part seconds": time.monotonic() - start, **watched}


# ------------------------------------------------------------------------------------------------------ tables


def _best(result: Mapping[str, Any]) -> float:
    return float(result["steady"] or result["rate"])


def _row(name: str, rate: float, note: str = "") -> None:
    print(f"  {name:44}{rate:12,.0f} /s  {note}".rstrip())


def _rows(results: Mapping[str, Mapping[str, Any]]) -> None:
    for name, r in results.items():
        if isinstance(r, Mapping) and "rate" in r:
            stages = ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in r.get("stages", {}).items())
            steady = f"{r['steady']:,.0f} /s steady; " if r["steady"] else ""
            spent = f"{r['seconds']:.1f} s, {r['CPU ms']:.2f} ms of CPU each"
            _row(name, r["rate"], f"{steady}{spent}{f'; seconds: {stages}' if stages else ''}")
            if r.get("main process"):
                threads = ", ".join(f"{thread} {ms:.3f}" for thread, ms in r["main process"].items() if ms >= 0.001)
                print(f"{'':46}ms of CPU in the main process: {threads}")


def show_forward(r: Mapping[str, Any]) -> None:
    for name, rate in r["rates"].items():
        _row(name, rate)
    print(f"  {r['CPU ms']:.2f} ms of CPU for an image")


def show_decode(r: Mapping[str, Any]) -> None:
    for workers, rate in r["rates"].items():
        _row(f"{workers} processes", rate)
    _row("the most processes, Pillow alone", r["pillow"], f"the engine's function: {r['CPU ms']:.2f} ms of CPU each")
    _row("reading and hashing the set", r["reading and hashing"])


def show_many(r: Mapping[str, Any]) -> None:
    for name, found in r.items():
        if isinstance(found, Mapping):
            together = found["together"]
            _rows({f"{name}, together": together})
            print(f"  {name + ', one pass alone':44}{found['one pass']:12.1f} s")
            allowed = found["decode once + forwards"]
            print(f"  {name + ', decode once + all forwards':44}{allowed:12.1f} s; decode {found['decode']:,.0f} /s, "
                  f"forward {found['forward']:,.0f} /s")  # fmt: skip


def show_plan(r: Mapping[str, Any]) -> None:
    cost, stages = r["cost"], r["run"]["stages"]
    parts = {name: cost[f"{name}_seconds"] or 0.0 for name in ("start", "decode", "forward", "write", "score")}
    listed = ", ".join(f"{name} {seconds:.1f}" for name, seconds in parts.items())
    memory = f"memory {cost['memory_bytes'] / 2**20:,.0f} MiB; the probe took {r['probe seconds']:.1f} s"
    print(f"  {'planned':44}{cost['seconds']:12.1f} s; {listed}; {memory}")
    print(f"  {'taken':44}{stages['all']:12.1f} s; " + ", ".join(f"{name} {s:.1f}" for name, s in stages.items()))


def show_first(r: Mapping[str, Any]) -> None:
    for name, found in r.items():
        if isinstance(found, Mapping):
            print(f"  {name:44}" + ", ".join(f"{kind} after {seconds:.2f} s" for kind, seconds in found.items()))


def show_scale(r: Mapping[str, Any]) -> None:
    for size, found in r["sizes"].items():
        stages = ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in found["stages"].items())
        memory = f"{found['MiB']:9,.0f} MiB ({found['main MiB']:,.0f} in the main process)"
        print(f"  {int(size):>9,} stimuli {memory}, {found['rate']:,.0f} /s; seconds: {stages}")
        print(f"{'':12}{', '.join(f'{what} {number:,.0f}' for what, number in found['MiB at the peak'].items())}")
    line = f"{r['offset']:.1f} s + {1000 * r['slope']:.3f} ms for each stimulus"
    print(f"  collecting takes {line}; farthest from that line: {r['off']:.1%}")


SHOW: dict[str, Callable[[Mapping[str, Any]], None]] = {
    "forward": show_forward,
    "decode": show_decode,
    "loader": _rows,
    "engine": _rows,
    "many": show_many,
    "plan": show_plan,
    "first": show_first,
    "scale": show_scale,
}


def ratios(found: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, float]:
    """Return the ratios that the parts allow, by what they compare."""
    good = {part: result for part, result in found.items() if "error" not in result}
    ratio: dict[str, float] = {}
    engine, workers = good.get("engine", {}), settings["workers"]
    forward = good["forward"]["best"] if "forward" in good else None
    for k in workers:
        ours = engine.get(f"files, {k} workers")
        if ours is None:
            continue
        theirs = [r for name, r in good.get("loader", {}).items() if name.startswith(f"{k} workers")]
        if theirs:
            ratio[f"engine / DataLoader, {k} workers, steady"] = _best(ours) / max(map(_best, theirs))
            ratio[f"engine / DataLoader, {k} workers, with start-up"] = ours["rate"] / max(r["rate"] for r in theirs)
        if forward and "decode" in good:
            decode = good["decode"]["rates"][str(k)]
            if settings["device"] == "cpu":  # both are done by the same cores
                ratio[f"engine / (forward and decode), {k} workers"] = _best(ours) * (1 / forward + 1 / decode)
                needed = good["forward"]["CPU ms"] + good["decode"]["CPU ms"]
                ratio["CPU time of forward and decode / of the engine"] = needed / ours["CPU ms"]
                if theirs:
                    ratio["CPU time of DataLoader / of the engine"] = min(r["CPU ms"] for r in theirs) / ours["CPU ms"]
            else:
                ratio[f"engine / min(forward, decode), {k} workers"] = _best(ours) / min(forward, decode)
    if forward and "cached" in engine:
        ratio["engine with pixels cached / forward"] = _best(engine["cached"]) / forward
    for name, r in good.get("many", {}).items():
        if isinstance(r, Mapping):
            n, seconds = settings["models"], r["together"]["seconds"]
            ratio[f"{n} × {name} / (decode once + {n} forwards)"] = seconds / r["decode once + forwards"]
            ratio[f"{n} single passes / {n} × {name} together"] = n * r["one pass"] / seconds
            if settings["device"] == "cpu":
                ratio["CPU time of single passes / together"] = r["one pass, CPU ms"] / r["together"]["CPU ms"]
    if "plan" in good:
        ratio["seconds planned / taken"] = good["plan"]["cost"]["seconds"] / good["plan"]["run"]["stages"]["all"]
    if "first" in good:
        runs = [r for r in good["first"].values() if isinstance(r, Mapping)]
        ratio["seconds to the first answer, median"] = median(r["batch"] for r in runs)
    if "scale" in good:
        sizes = list(good["scale"]["sizes"].values())
        memory, seconds = [r["MiB"] for r in sizes], [r["seconds"] for r in sizes]
        ratio["peak memory, largest / smallest"] = max(memory) / min(memory)
        if len(sizes) > 2:
            n = [r["answers"] for r in sizes]
            later = (seconds[-1] - seconds[-2]) / (n[-1] - n[-2])
            ratio["seconds for a further stimulus, late / early"] = later / ((seconds[1] - seconds[0]) / (n[1] - n[0]))
    return ratio


def _scale(settings: dict[str, Any], sizes: Sequence[int], pictures: Path, folder: Path) -> dict[str, Any]:
    """Run the engine once for each number of stimuli; fit a line through the seconds."""
    found = {}
    for size in sizes:
        root = _jpegs.link(pictures, folder / f"scale-{size}", size)
        found[str(size)] = r = _run_part("scale", {**settings, "data": str(root)}, folder, memory=True)
        shutil.rmtree(root)
        if "error" in r:
            return r
    n = np.array([r["answers"] for r in found.values()], dtype=float)
    seconds = np.array([r["seconds"] for r in found.values()])
    slope, offset = np.polyfit(n, seconds, 1) if len(n) > 1 else (seconds[0] / n[0], 0.0)
    off = float(np.max(np.abs(offset + slope * n - seconds) / seconds))
    return {"sizes": found, "offset": float(offset), "slope": float(slope), "off": off}


# -------------------------------------------------------------------------------------------------- the command


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine", description=__doc__.partition("\n")[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda" if Path("/dev/nvidia0").exists() else "cpu")
    parser.add_argument("--parts", default=",".join(PARTS), help="several with commas; default: all")
    parser.add_argument("--count", type=int, help="JPEG files")
    parser.add_argument("--many-count", type=int, help="of these, for several networks")
    parser.add_argument("--models", type=int, help="networks at once")
    parser.add_argument("--model", help="network of forward, loader, engine and first (torchvision)")
    parser.add_argument("--several", help="networks of many, with commas")
    parser.add_argument("--scale-model", help="network of scale, or tiny")
    parser.add_argument("--sizes", type=_numbers, help="numbers of stimuli of scale, with commas")
    parser.add_argument("--workers", type=_numbers, help="decoders, with commas; default: one for each core, and half")
    parser.add_argument("--batch", type=int, help="of forward and loader")
    parser.add_argument("--precision", help="float32, bfloat16 or float16")
    parser.add_argument("--patience", type=int, default=PATIENCE, help="seconds after which a part is stopped")
    parser.add_argument("--scratch", type=Path, help="folder for everything temporary; default: /dev/shm, or TMPDIR")
    parser.add_argument("--json", type=Path, help="write everything that was measured to this file")
    arguments = parser.parse_args(argv)
    cores = len(os.sched_getaffinity(0))
    on_gpu, on_cpu = (
        {"count": 16384, "many_count": 8192, "model": "resnet50", "several": "resnet18,resnet50",
         "models": 8, "batch": 256, "scale_model": "resnet18", "sizes": [1000, 10_000, 100_000],
         "precision": "bfloat16", "workers": sorted({cores, max(1, cores // 2)}, reverse=True)},
        {"count": 320, "many_count": 64, "model": "resnet18", "several": "resnet18", "models": 4, "batch": 32,
         "scale_model": "tiny", "sizes": [500, 2000, 8000], "precision": "float32", "workers": [cores]},
    )  # fmt: skip
    for name, value in (on_gpu if arguments.device == "cuda" else on_cpu).items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, value)
    unknown = [part for part in arguments.parts.split(",") if part not in PARTS]
    if unknown:
        parser.error(f"no part is called {', '.join(unknown)}; there are {', '.join(PARTS)}")
    return arguments


def main(argv: Sequence[str] = ()) -> dict[str, Any]:
    """Measure and print; a part that fails prints its error, and the others go on."""
    a = _arguments(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # a part that is running is stopped, too
    shared = Path("/dev/shm")
    scratch = a.scratch or (shared if shared.is_dir() and shutil.disk_usage(shared).free > 8 * 2**30 else None)
    wanted = [part for part in PARTS if part in a.parts.split(",")]
    cores = len(os.sched_getaffinity(0))
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(dir=scratch) as temporary:
        folder = Path(temporary)
        start = time.monotonic()
        size = _jpegs.make(folder / "pictures", a.count, cores)
        seconds = time.monotonic() - start
        print(f"{cores} cores, {a.device}; {a.model}, {a.precision}; {a.count:,} JPEG files of {size / 1000:.0f} kB, "
              f"made in {seconds:.0f} s", flush=True)  # fmt: skip
        settings = {
            "device": a.device,
            "precision": a.precision,
            "batch": a.batch,
            "workers": a.workers,
            "model": a.model,
            "several": a.several.split(","),
            "models": a.models,
            "scale_model": a.scale_model,
            "data": str(_jpegs.link(folder / "pictures", folder / "data", a.count)),
            "many_data": str(_jpegs.link(folder / "pictures", folder / "many", min(a.many_count, a.count))),
            "scratch": temporary,
            "patience": a.patience,
        }
        for part in wanted:
            if part == "scale":
                pictures = folder / "pictures"
                if a.scale_model == "tiny":
                    pictures = folder / "small"
                    _jpegs.make(pictures, 512, cores, SMALL)
                found[part] = _scale(settings, a.sizes, pictures, folder)
            else:
                found[part] = _run_part(part, settings, folder, memory=part in ("loader", "engine"))
            _show(part, found[part])
    found["ratios"] = ratio = ratios(found, settings)
    print("ratios")
    for name, value in ratio.items():
        print(f"  {name:60}{value:8.2f}")
    if a.json:
        used = {key: value for key, value in settings.items() if key not in ("data", "many_data", "scratch")}
        a.json.write_text(json.dumps({**found, "settings": {**used, "count": a.count, "cores": cores}}, indent=1))
    return found


def _show(part: str, result: Mapping[str, Any]) -> None:
    seconds = f" ({result['part seconds']:.0f} s" if "part seconds" in result else " ("
    memory = f"; peak {result['MiB']:,.0f} MiB in all its processes" if "MiB" in result else ""
    print(f"{part}{seconds}{memory})".replace(" ()", ""))
    if "error" in result:
        print(f"  failed: {result['error']}", flush=True)
        return
    SHOW[part](result)
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
