from pathlib import Path

import pytest
from PIL import Image


@pytest.fixture
def picture():
    """Write a small image; the colour makes its bytes its own."""

    def make(path: Path, colour=(200, 10, 10), size=(8, 6)) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", size, colour).save(path)
        return path

    return make


@pytest.fixture
def conflict_folder(tmp_path, picture):
    """Four cue-conflict stimuli in the published layout."""
    root = tmp_path / "stimuli"
    for n, name in enumerate(["cat1-dog2", "cat10-cat1", "dog1-cat1", "dog2-dog1"]):
        picture(root / name[:3] / f"{name}.png", (n * 20, 5, 5))
    return root
