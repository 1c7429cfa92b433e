"""The documentation as a site: it is built without a link to nowhere, and loads nothing from other hosts."""

from __future__ import annotations

import fcntl
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from cuebench import registry

pytestmark = pytest.mark.xdist_group("site")  # what the tests share is made once
ROOT = Path(__file__).parents[1]
PARTS = {kind: tuple(parts) for kind, parts in registry.KINDS.items()}  # before other tests add some of their own


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if find_spec("zensical") is None:
        pytest.skip("needs the extra docs: pip install 'cuebench[docs]'")
    out = tmp_path_factory.mktemp("site")
    (ROOT / "build").mkdir(exist_ok=True)
    command = [sys.executable, str(ROOT / "tools" / "site.py"), str(out)]
    with (ROOT / "build" / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # all processes of the tests share this folder
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return out


@pytest.mark.slow
def test_every_protocol_and_verb_has_its_reference(site: Path) -> None:
    for name in PARTS["protocols"]:
        assert (site / "reference" / f"protocol_{name}.html").is_file()
    verbs = (site / "reference" / "verbs.html").read_text()
    assert all(f'id="{verb}"' in verbs for verb in ("run", "report", "compare", "study-serve"))
    python = (site / "reference" / "python_measure.html").read_text()
    assert "allow_unreadable" in python
    assert (site / "index.html").read_text().count("make demo")


@pytest.mark.slow
def test_pages_load_nothing_from_other_hosts(site: Path) -> None:
    loads = re.compile(
        r"""<(?:script|img|iframe)[^>]+src=["']?(https?:)?//|<link[^>]+rel=["']?stylesheet[^>]+href=["']?(https?:)?//"""
    )
    for page in site.rglob("*.html"):
        assert not loads.search(page.read_text()), page


@pytest.mark.slow
def test_the_gallery_shows_every_part_with_its_picture(site: Path) -> None:
    for kind in ("cues", "protocols", "figures"):
        page = (site / "gallery" / f"{kind}.html").read_text()
        for name in PARTS[kind]:
            assert f'id="{name}"' in page
            assert re.search(rf'src="?{kind}_{name}\.(png|svg)', page), name
    assert (site / "tutorials" / "model.html").is_file()
