"""A folder of one's own photographs, with masks beside them and everyday names of classes, as a new user has it."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cuebench.errors import UserError
from cuebench.labels import label_map
from cuebench.stimuli.decomposition.sources import read_source
from cuebench.stimuli.makers.base import make
from cuebench.stimuli.readers import image_folder
from cuebench.stimuli.refined_bias.sources import find_sources, read_classes


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:96, :96] - 48
    inside = (y**2 / 1600 + x**2 / 1200) < 1
    for name in ("cat", "dog"):
        folder = tmp_path / "photos" / name
        folder.mkdir(parents=True)
        Image.fromarray(rng.integers(60, 255, (96, 96, 3), np.uint8)).save(folder / "one.jpg")
        Image.fromarray((inside * 255).astype(np.uint8)).save(folder / "one_mask.png")
    return tmp_path / "photos"


def classes_of(folder: Path):
    return read_classes(folder, [source.label for source in find_sources(folder)[0]])


def test_everyday_names_are_matched_with_a_models_classes(photos: Path) -> None:
    classes, missing = classes_of(photos)
    assert not missing
    assert classes.targets["cat"] == tuple(label_map("in16").targets["cat"])


def test_the_file_says_what_the_names_do_not(photos: Path) -> None:
    (photos / "cat").rename(photos / "blorp")
    with pytest.raises(UserError, match="class 'blorp' has no map") as error:
        make("refined_bias", photos.parent / "out", source=str(photos))
    assert "labels.json" in error.value.hint
    assert "allow_bad" not in error.value.hint  # it does not help here
    (photos / "labels.json").write_text('{"targets": {"blorp": ["tabby"]}}')
    classes, missing = classes_of(photos)
    assert not missing
    assert classes.targets["blorp"] == ("tabby",)
    assert len(classes.targets["dog"]) > 100  # still by its name


def test_classes_that_differ_only_by_case_are_refused(photos: Path) -> None:
    shutil.copytree(photos / "cat", photos / "Cat")
    with pytest.raises(UserError, match="'Cat' and 'cat' differ only by case"):
        make("refined_bias", photos.parent / "out", source=str(photos))


def test_a_trimap_is_no_mask(photos: Path) -> None:
    for path in photos.glob("*/*_mask.png"):
        Image.fromarray(np.where(np.asarray(Image.open(path)) > 0, 1, 2).astype(np.uint8)).save(path)
    with pytest.raises(UserError, match="at most 2: white \\(255\\) is the object"):
        make("refined_bias", photos.parent / "out", source=str(photos))


def test_masks_beside_photographs_are_not_shown(photos: Path) -> None:
    stimuli = image_folder.read(photos)
    assert [s.id for s in stimuli] == ["cat/one", "dog/one"]
    assert stimuli.notes == ("2 masks beside the photographs are not shown: cat/one_mask.png …",)


def test_a_decomposition_of_everyday_names_decides_among_them(photos: Path) -> None:
    def read():
        return read_source(str(photos), "auto", classes="", labels="", count=0, seed=0)

    assert read().targets == "in16?classes=cat,dog"
    assert "decisions among 2 classes of in16: cat,dog" in read().images.notes
    (photos / "labels.json").write_text('{"targets": {"cat": ["tabby"], "dog": ["beagle"]}}')
    assert Path(read().targets).name == "labels.json"
    (photos / "labels.json").unlink()
    (photos / "cat").rename(photos / "zebra")
    assert read().targets == ""  # an ImageNet class beside: labels are a model's own classes
