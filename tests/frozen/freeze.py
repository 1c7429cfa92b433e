"""Freeze anew: only for a deliberate change of numbers, or for more that is to be covered.

    python tests/frozen/freeze.py score NAME …      the packed answers scored by today's code: new truth, same answers
    python tests/frozen/freeze.py make NAME …       a golden run or a published recording made anew
    python tests/frozen/freeze.py demo FOLDER       a finished demo and its segmentation
    python tests/frozen/freeze.py check FOLDER      compares a finished demo with the frozen one; freezes nothing

Each prints what has changed against the truth before: this list belongs to the change that moves the numbers.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import pyarrow.parquet as pq

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import cuebench as cb  # noqa: E402
from conftest import SHARED  # noqa: E402
from frozen.comparing import SCORES, differences, report, rows_differ  # noqa: E402
from frozen.golden import GOLDEN  # noqa: E402
from frozen.packing import archive, copy_run, pack, round_answers, squeeze, unpack  # noqa: E402
from frozen.real import REAL, measure_real  # noqa: E402
from frozen.truth import HOME, read_truth, truth_of, write_truth  # noqa: E402

ROUNDED = {
    "demo": {"lite_efficientnet_lite0": 1 / 8},
    "baselines": {"net*": 1 / 32},
}
"""Frozen folder → real networks whose logits and features are rounded, and to a multiple of what: to be small."""

EXACT = "exact_scores.parquet"
"""The scores of a run as it was made, before answers were rounded."""


def freeze(name: str, run: Path, home: Path, work: Path) -> None:
    """Score a run folder, take its truth, and pack both."""
    target = work / name
    copy_run(run, target / "run", {str(home): HOME})
    for observer, step in ROUNDED.get(name, {}).items():
        round_answers(target / "run", observer, step)
    squeeze(target / "run")
    if name.startswith("demo"):
        shutil.copy(run / "scores.parquet", target / EXACT)
    score(name, target)


def score(name: str, target: Path) -> None:
    """Score the run in a folder, take its truth, pack both, and print what has changed."""
    cb.score(target / "run", workers=0)
    (target / "run" / "scores.json").unlink()
    write_truth(truth_of(target / "run"), target / "truth")
    finish(name, target)


def finish(name: str, target: Path) -> None:
    """Pack a folder with its truth, and print what has changed."""
    if archive(name).exists():
        with tempfile.TemporaryDirectory() as before:
            frozen = read_truth(unpack(name, Path(before)) / "truth")
        found = differences(frozen, read_truth(target / "truth"))
        print(f"{name}: {len(found)} differences from what was frozen", *found, sep="\n  ")
    print(f"{pack(name, target).name}: {archive(name).stat().st_size / 1000:,.0f} kB")


def check(demo: Path) -> None:
    """Compare the scores of a demo with those of the frozen one."""
    for name, run in (("demo", demo), ("demo_segmentation", demo / "segmentation")):
        with tempfile.TemporaryDirectory() as work:
            frozen = pq.read_table(unpack(name, Path(work)) / EXACT).to_pylist()
        print(report(rows_differ(frozen, pq.read_table(run / "scores.parquet").to_pylist(), SCORES)))


def make(name: str, work: Path) -> None:
    """Make a golden run, or score a published recording."""
    home = work / "home"
    if name in GOLDEN:
        freeze(name, GOLDEN[name](home), home, work)
        return
    run = measure_real(name.removeprefix("real_"), SHARED, work / "real")
    write_truth(truth_of(run, SHARED, single_answers=False), work / name / "truth")
    finish(name, work / name)


def main(command: str, *names: str) -> None:
    """Do what the command line says; without names: everything."""
    if command not in ("score", "make", "demo", "check"):
        raise SystemExit(__doc__)
    if command == "check":
        check(Path(names[0]))
        return
    if command == "demo":
        demo = Path(names[0]).resolve()
        for name, run in (("demo", demo), ("demo_segmentation", demo / "segmentation")):
            with tempfile.TemporaryDirectory() as work:
                freeze(name, run, demo.parents[1], Path(work))
        return
    known = {"score": [*GOLDEN, "demo", "demo_segmentation"], "make": [*GOLDEN, *(f"real_{name}" for name in REAL)]}
    for name in names or known[command]:
        with tempfile.TemporaryDirectory() as work:
            if command == "make":
                make(name, Path(work))
            else:
                score(name, unpack(name, Path(work) / name))


if __name__ == "__main__":
    main(*(sys.argv[1:] or [""]))
