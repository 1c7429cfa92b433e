"""Every cue, protocol and figure has a script in the gallery, and every script runs and leaves its picture."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cuebench import registry

ROOT = Path(__file__).parents[1]
PARTS = {kind: tuple(registry.KINDS[kind]) for kind in ("cues", "protocols", "figures")}
"""Before other tests add parts of their own."""

PLUGIN = {"stripes", "striped_objects", "shape_match_curve"}
"""Parts of examples/plugin, which may not be installed."""


@pytest.mark.parametrize("kind", PARTS)
def test_every_part_has_its_script(kind: str) -> None:
    scripts = {path.stem: path.read_text("utf-8") for path in (ROOT / "gallery" / kind).glob("*.py")}
    assert set(PARTS[kind]) <= set(scripts)
    assert set(scripts) - set(PARTS[kind]) <= PLUGIN, "a script without its part"
    for name, text in scripts.items():
        assert text.startswith(f'"""{name}: '), f"{name}: its first line says what one sees"
        assert len(text.splitlines()) < 40, f"{name}: an example is short"


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", PARTS)
@pytest.mark.xdist_group("gallery")
def test_scripts_leave_their_pictures(kind: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    pytest.importorskip("altair", reason="figures need the extra 'report': pip install 'cuebench[report]'")
    out = tmp_path_factory.getbasetemp() / "gallery"  # the planted runs are shared by the kinds
    done = subprocess.run(
        [sys.executable, "-m", "gallery", kind],
        cwd=ROOT,
        env={**os.environ, "CUEBENCH_GALLERY": str(out)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    pictures = {path.stem for path in (out / kind).iterdir() if path.suffix in (".png", ".svg")}
    stimuli = {f"{name}_stimuli" for name in PARTS["protocols"]} if kind == "protocols" else set()
    assert pictures == {*PARTS[kind], *stimuli}
