"""A board of many entries: time to build it, to build it again, and to search and sort it in a browser.

    python -m benchmarks board                       100 entries
    python -m benchmarks.board --entries 2000        as large as a board should be; entries in --folder are used again

The entries are run folders, made through ``cuebench.evaluate``: planted observers with recorded answers to 1,280
stimuli, as many as the published set of cue conflict has. Making them takes longer than the board.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import cuebench
from cuebench.labels import label_map
from cuebench.responses.job import JobRecord
from cuebench.runs.record import RunRecord
from cuebench.runs.results import read_scores, write_scores
from cuebench.types import Score

CLASSES = tuple(label_map("in16").names)
STIMULI = [
    (shape, texture, f"{shape}{i}-{texture}{i}") for shape in CLASSES for texture in CLASSES for i in range(1, 6)
]
"""Shape, texture and name of 1,280 stimuli."""
FAMILIES = ("CNN", "Transformer", "Hybrid", "MLP", "State space")
AT_ONCE = 50
"""Observers that are measured in one run before it is taken apart."""
TRAINING = ("ImageNet-1k", "ImageNet-21k", "LAION-2B", "JFT-300M")


def write_entry(
    folder: Path,
    name: str,
    by_shape: float,
    *,
    seed: int = 0,
    rt: str = "",
    about: Mapping[str, Any] | None = None,
    decided: int | None = None,
) -> Path:
    """Measure an observer that answers by shape with a known probability; return its run folder.

    Parameters
    ----------
    folder : Path
        The run folder.
    name : str
        Of the observer.
    by_shape : float
        Probability of an answer by shape; the others go by texture, 5 % by any class.
    seed : int
        Of the answers.
    rt : str
        Reaction time: who has one is a person.
    about : mapping, optional
        Content of ``entry.json``.
    decided : int, optional
        How many conflict stimuli it decides about; default: all of the stimuli.
    """
    given = answers(by_shape, seed)
    if decided is not None:
        conflicts = [k for k, (shape, texture, _) in enumerate(STIMULI) if shape != texture]
        given = [answer if k in conflicts[:decided] else "na" for k, answer in enumerate(given)]
    _evaluate(folder, {name: given}, rt)
    if about is not None:
        (folder / "entry.json").write_text(json.dumps({"format": 1, **about}))
    return folder


def answers(by_shape: float, seed: int) -> list[str]:
    """Return the decisions of a planted observer."""
    rng = np.random.default_rng(seed)
    chance, other = rng.random(len(STIMULI)), rng.integers(0, len(CLASSES), len(STIMULI))
    return [
        CLASSES[k] if p > 0.95 else shape if p < 0.95 * by_shape else texture
        for (shape, texture, _), p, k in zip(STIMULI, chance, other)
    ]


def _evaluate(folder: Path, decisions: Mapping[str, list[str]], rt: str = "") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder.with_suffix(".csv")
    with file.open("w", newline="") as lines:
        writer = csv.writer(lines)
        writer.writerow(["observer", "stimulus", "decision", "rt"])
        for name, given in decisions.items():
            writer.writerows([name, stimulus, decision, rt] for (_, _, stimulus), decision in zip(STIMULI, given))
    cuebench.evaluate([f"recorded:{file}"], ["cue_conflict"], out=folder, resamples=200, workers=0)
    file.unlink()


def write_many(folder: Path, start: int, stop: int) -> None:
    """Write numbered entries, ``AT_ONCE`` in one run that is then taken apart: much faster than one run each."""
    for first in range(start, stop, AT_ONCE):
        numbers = range(first, min(first + AT_ONCE, stop))
        if all((folder / f"entry{k:04d}" / "entry.json").is_file() for k in numbers):
            continue
        run = folder.parent / f"run{first:04d}"
        shutil.rmtree(run, ignore_errors=True)
        bias = {k: float(np.random.default_rng(k).beta(2, 4)) for k in numbers}
        _evaluate(run, {f"net-{k:04d}": answers(bias[k], k) for k in numbers})
        record, rows = RunRecord.read(run), read_scores(run)
        for job in record.jobs:
            _take_out(run, record, job, [r for r in rows if r.observer == job.observer], folder)
        shutil.rmtree(run)


def _take_out(run: Path, record: RunRecord, job: JobRecord, rows: list[Score], folder: Path) -> None:
    """Make an entry of one observer of a run."""
    k = int(job.observer.rpartition("-")[2])
    target = folder / f"entry{k:04d}"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(run / "stimuli", target / "stimuli")
    shutil.copytree(run / "responses" / job.folder, target / "responses" / job.folder)
    stimuli = {name: digest for name, digest in record.files.items() if name.startswith("stimuli/")}
    replace(record, jobs=[job], files={**stimuli, **write_scores(target, rows, {})}).write(target)
    about = {
        "family": FAMILIES[k % len(FAMILIES)],
        "training_data": TRAINING[k % len(TRAINING)],
        "parameters": int(10 ** np.random.default_rng(k).uniform(6, 9.5)),
        "authors": f"group {k % 40}",
        "date": f"2026-{1 + k % 12:02d}-{1 + k % 28:02d}",
    }
    (target / "entry.json").write_text(json.dumps({"format": 1, **about}))


# ------------------------------------------------------------------------------------------------- measuring


def in_browser(index: Path) -> dict[str, float]:
    """Return milliseconds: first paint, search, sort, filter (the slowest of several each), layout included."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        return {}
    from playwright.sync_api import sync_playwright

    timed = (
        """(act) => { const t = performance.now(); act(); document.body.offsetHeight; return performance.now() - t; }"""
    )
    script = f"""() => {{
      const timed = {timed};
      const box = document.querySelector(".table.ranking input[type=search]");
      const search = (text) => timed(() => {{ box.value = text; box.dispatchEvent(new Event("input")); }});
      const sort = (i) => timed(() => document.querySelectorAll(".table.ranking thead button")[i].click());
      const filter = (v) => timed(() => {{
        const s = document.querySelector("[name=family]");
        s.value = v;
        s.dispatchEvent(new Event("change", {{bubbles: true}}));
      }});
      return {{
        search: Math.max(...["n", "net-1", "net-19", "19", "transformer", "imagenet 2026", ""].map(search)),
        sort: Math.max(...[2, 2, 1, 1, 5, 6, 7, 8, 0].map(sort)),
        filter: Math.max(...["CNN", "Transformer", ""].map(filter)),
        paint: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? NaN,
      }};
    }}"""
    with sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path=chromium, args=flags)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(index.as_uri())
        page.wait_for_selector("html[data-ready=true]")
        numbers: dict[str, float] = page.evaluate(script)
        browser.close()
    return numbers


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=100)
    parser.add_argument("--folder", type=Path, help="where the entries and the site go, and stay")
    parser.add_argument("--make", type=int, nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments or [])
    if chosen.make:
        write_many(chosen.folder / "entries", *chosen.make)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        cores = os.cpu_count() or 1
        command = [sys.executable, "-m", "benchmarks.board", "--folder", str(folder), "--make"]
        start = time.perf_counter()
        share = -(-chosen.entries // cores)
        parts = [(i * share, min((i + 1) * share, chosen.entries)) for i in range(cores)]
        makers = [subprocess.Popen([*command, str(first), str(stop)]) for first, stop in parts]
        if any(maker.wait() for maker in makers):
            raise SystemExit("an entry could not be made")
        print(f"{chosen.entries:,} entries there after {time.perf_counter() - start:.0f} s")
        shutil.rmtree(folder / "site", ignore_errors=True)
        for what in ("built", "built again"):
            start = time.perf_counter()
            made = cuebench.board(folder / "entries", folder / "site")
            seconds, load = time.perf_counter() - start, os.getloadavg()[0]
            known, refused = f"{made.known:,} entries known", f"{len(made.refused)} refused"
            print(f"{what}: {seconds:.1f} s, {known}, {refused}; load {load:.1f} on {cores} cores")
        size = sum(p.stat().st_size for p in (folder / "site").rglob("*") if ".cuebench-board" not in p.parts)
        print(f"site: {size / 1e6:.1f} MB, first page {made.path.stat().st_size / 1e6:.2f} MB")
        for name, value in in_browser(made.path).items():
            print(f"{name}: {value:.0f} ms")


if __name__ == "__main__":
    main(sys.argv[1:])
