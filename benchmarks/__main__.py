"""Run every benchmark of this folder, or those named: ``python -m benchmarks [NAME …]``."""

from __future__ import annotations

import importlib
import sys
import time
from pathlib import Path


def run_all(names: list[str]) -> None:
    for path in sorted(Path(__file__).parent.glob("[!_]*.py")):
        if names and path.stem not in names:
            continue
        main = getattr(importlib.import_module(f"benchmarks.{path.stem}"), "main", None)
        if main is None:
            continue
        print(f"== {path.stem}", flush=True)
        start = time.perf_counter()
        main()
        print(f"   ({time.perf_counter() - start:.0f} s)\n", flush=True)


if __name__ == "__main__":
    run_all(sys.argv[1:])
