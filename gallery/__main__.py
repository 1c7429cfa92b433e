"""Run the scripts of the gallery: ``python -m gallery [NAME …]``, by default all; pictures go to ``runs/gallery``."""

from __future__ import annotations

import runpy
import sys
import time
import traceback
from pathlib import Path

HERE = Path(__file__).parent
KINDS = ("cues", "protocols", "figures")


def scripts():
    """Return all scripts: kind, name and file."""
    return [(kind, path.stem, path) for kind in KINDS for path in sorted((HERE / kind).glob("*.py"))]


def main(names):
    """Run scripts by name; return how many failed."""
    failed = 0
    for kind, name, path in scripts():
        if names and name not in names and kind not in names:
            continue
        start = time.perf_counter()
        try:
            runpy.run_path(str(path), run_name="__main__")
        except Exception:  # noqa: BLE001  the others are run all the same
            failed += 1
            print(f"{kind}/{name} failed\n{traceback.format_exc()}", file=sys.stderr)
        print(f"{kind}/{name}: {time.perf_counter() - start:.1f} s", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1:]) else 0)
