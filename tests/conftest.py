"""What several test files need: the shared data, a tiny cue-conflict set, observers with a known answer."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from cuebench import registry

sys.path.insert(0, str(Path(__file__).parent))  # for what tests share: importlib mode adds no folder
from small_data import write_cue_conflict

REPOSITORY = Path(__file__).resolve().parents[1]
SHARED = REPOSITORY.parent / "shared" / "data"
# The same examples each time, so that a change is judged by what it changed; `make fuzz` looks for new ones.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("new", deadline=None, max_examples=1000)
settings.load_profile("same")


@pytest.fixture(scope="module", autouse=True)
def _parts_of_this_file_only() -> Iterator[None]:
    """Forget the parts that a test file added: another file's test may list what is installed."""
    before = {kind: dict(parts.added) for kind, parts in registry.KINDS.items()}
    yield
    for kind, parts in registry.KINDS.items():
        parts.added.clear()
        parts.added.update(before[kind])


@pytest.fixture(scope="session")
def shared() -> Path:
    """Real stimuli, responses and weights; never part of the repository."""
    if not SHARED.is_dir():
        pytest.skip("needs the real data in ../shared/data, which is not part of the repository")
    return SHARED


@pytest.fixture
def data_root(tmp_path: Path) -> Path:
    """A data root with 32 images, 8 of them aligned."""
    return write_cue_conflict(tmp_path / "data")
