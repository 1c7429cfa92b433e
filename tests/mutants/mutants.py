"""Do the tests notice a damaged formula? ``python tests/mutants/mutants.py [--sample 3] [--seed 0] [TEXT]``.

Each damage of ``damages.py`` is done to a copy of the source; the tests that should notice it are run against the copy.
A damage is caught where they fail. The same tests pass on the undamaged copy, which is tried first: a test that fails
anyway notices nothing. TEXT restricts the damages to those whose file or description contains it.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import hypothesis.strategies
import numpy as np
import pyarrow as pa
import pytest
import scipy.special
import scipy.stats

sys.path.insert(0, str(Path(__file__).parent))
from damages import DAMAGES, EXPLAINED, Damage

IN_MEMORY = (hypothesis, np, pa, scipy.special, scipy.stats)
"""What every fork would import again."""
_TIMES = count(1_000_000_000)
OPTIONS = ["-n", "0", "-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", "--tb=no"]
REPOSITORY = Path(__file__).resolve().parents[2]
CALIBRATION = "tests/calibration/test_designs.py"
STUDIES = "calibration "
"""How a damage names the simulated studies of a protocol."""


def selection(tests: Sequence[str]) -> list[list[str]]:
    """Return the arguments of pytest: one call for all files, then one for the simulated studies of some protocols."""
    files = [test for test in tests if not test.startswith(STUDIES)]
    names = [test.removeprefix(STUDIES) for test in tests if test.startswith(STUDIES)]
    # A bracket or a dash ends the name of a protocol in the id of a test; a name alone may be part of others.
    chosen = " or ".join(f"{name}{end}" for name in names for end in ("]", "-"))
    return [*([files] if files else []), *([[CALIBRATION, "-k", chosen]] if names else [])]


def passes(source: Path, tests: Sequence[str]) -> bool:
    """Tell whether the tests pass with the source in another place."""
    return all(_status(source, call) == 0 for call in selection(tests))


def _status(source: Path, call: Sequence[str]) -> int:
    """Return how pytest ends, in a fork of this process, which has the libraries in memory but nothing of cuebench."""
    assert "cuebench" not in sys.modules
    child = os.fork()
    if not child:
        os.chdir(REPOSITORY)
        sys.path[:] = [str(source), *(p for p in sys.path if Path(p) != REPOSITORY / "src")]
        os.environ |= {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        os._exit(int(pytest.main([*OPTIONS, *call])))
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status not in (0, 1):
        raise RuntimeError(f"{' '.join(call)}: pytest ended with {status}")
    return status


def damaged(source: Path, damage: Damage) -> bool:
    """Tell whether the tests notice a damage, and repair it again."""
    path = source / "cuebench" / damage.file
    text = path.read_text("utf-8")
    if text.count(damage.old) != 1:
        raise RuntimeError(f"{damage.file}: {damage.old!r} occurs {text.count(damage.old)} times; expected once")
    _write(path, text.replace(damage.old, damage.new))
    try:
        return not passes(source, damage.tests)
    finally:
        _write(path, text)


def _write(path: Path, text: str) -> None:
    """Write a file with a time of its own: compiled files are told apart by whole seconds and the size."""
    path.write_text(text, "utf-8")
    when = next(_TIMES)
    os.utime(path, (when, when))


def try_damages(damages: Sequence[Damage], *, sound: bool = True) -> dict[Damage, bool]:
    """Return damage → whether it was caught.

    Parameters
    ----------
    damages : sequence of Damage
        What is tried.
    sound : bool
        Try the tests on the undamaged copy first.
    """
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(REPOSITORY / "src" / "cuebench", source / "cuebench", ignore=ignored)
        if sound and not passes(source, sorted({test for d in damages for test in d.tests})):
            raise RuntimeError("the tests fail without any damage")
        caught = {}
        for number, damage in enumerate(damages, 1):
            start = time.perf_counter()
            caught[damage] = damaged(source, damage)
            word = "caught  " if caught[damage] else "SURVIVED"
            seconds = time.perf_counter() - start
            print(f"{number:3}/{len(damages)} {word} {damage.file}: {damage.what} ({seconds:.0f} s)", flush=True)
        return caught


def main() -> int:
    """Try the damages that were asked for; 1 where one survives that nobody has explained."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("text", nargs="?", default="", help="part of a file or of a description")
    parser.add_argument("--sample", type=int, default=0, help="so many damages, drawn by the seed; 0: all")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    chosen = [d for d in DAMAGES if arguments.text in f"{d.file}: {d.what}"]
    if arguments.sample:
        chosen = random.Random(arguments.seed).sample(chosen, min(arguments.sample, len(chosen)))
    caught = try_damages(chosen)
    survived = [d for d, found in caught.items() if not found]
    print(f"{len(caught) - len(survived)} of {len(caught)} damages caught")
    for damage in survived:
        print(f"survived: {damage.file}: {damage.what}: {EXPLAINED.get(damage.what, 'NOT EXPLAINED')}")
    return int(any(d.what not in EXPLAINED for d in survived))


if __name__ == "__main__":
    sys.exit(main())
