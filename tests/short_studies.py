"""Studies that take seconds: the built-in designs with few trials, on a few drawn images."""

from __future__ import annotations

import re
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from PIL import Image

from cuebench.study.database import Database
from cuebench.study.design import BUILT_IN
from cuebench.study.folder import NewStudy, Study, new_study
from small_data import write_cue_conflict

FEW = {"count": 4, "familiarisation": 1, "practice": 1, "attention": 1}
DESIGNS = ("cue_conflict", "cue_conflict_both", "refined_bias", "texture_words", "triplets")


def write_data(root: Path) -> Path:
    """Write a data root with a few images for every design that needs files."""
    write_cue_conflict(root, instances=3)
    rng = np.random.default_rng(0)
    for cue, classes in (("shape", ("balloon", "clock")), ("texture", ("tiger", "zebra"))):
        for name in classes:
            folder = root / "refined_bias" / f"refined_bias_{cue}" / name
            folder.mkdir(parents=True)
            for i in range(4):
                stem = f"{name}_{i}" if cue == "shape" else f"4x4_{name}_{i}"
                Image.fromarray(rng.integers(0, 256, (32, 32, 3), np.uint8)).save(folder / f"{stem}.png")
    return root


def short_design(name: str, folder: Path, **numbers: int) -> Path:
    """Copy a built-in design and reduce its numbers of trials; times stay, except the response window."""
    shutil.copytree(BUILT_IN / name, folder)
    path = folder / "design.toml"
    text = path.read_text("utf-8")
    for key, value in {**FEW, "response_ms": 20_000, **numbers}.items():
        text = re.sub(rf"^{key} = \d+", f"{key} = {value}", text, flags=re.M)
    path.write_text(text, "utf-8")
    return folder


def short_study(name: str, place: Path, **numbers: int) -> Study:
    """Make a short study of a built-in design."""
    design = short_design(name, place / "design", **numbers)
    needs_files = name not in ("triplets", "texture_words")
    data = write_data(place / "data") if needs_files else None
    new = NewStudy(design=str(design), data_root=data, seed=3, return_url="https://platform.example/?cc={code}")
    return new_study(place / "study", new)


@contextmanager
def served(study: Study) -> Iterator[str]:
    """Serve a study from this process; yields its address."""
    import uvicorn

    from cuebench.study.server import create_app

    app = create_app(study, Database(study.database_url))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", access_log=False))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}/"
    finally:
        server.should_exit = True
        thread.join()
