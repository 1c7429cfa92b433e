from collections import Counter
from pathlib import Path

import pytest

from cuebench.registry import datasets
from cuebench.stimuli.fetch import fetch
from cuebench.stimuli.readers.cue_conflict import parse, read

EXPECTED = {"cue_conflict": (1280, 256), "cue_conflict_silhouettes": (160, 160), "cue_conflict_responses": (23, 14),
            "dtd": (1, 0), "imagenet_a": (1, 0), "ptd": (1, 0)}  # fmt: skip


@pytest.mark.parametrize("name", datasets.names())
def test_every_dataset_is_complete_and_safe(name):
    data = datasets.get(name)
    files = data.load()
    assert (data.name, bool(data.citation), bool(data.licence), bool(data.mirrors)) == (name, True, True, True)
    assert len({f.path for f in files}) == len({f.source for f in files}) == len(files)
    assert all(f.path.startswith(f"{data.folder}/") and ".." not in f.path for f in files)
    assert all(f.check and len(f.sha256) in {0, 64} and bool(f.size) == bool(f.sha256) for f in files)
    assert (len(files), sum(bool(f.sha256) for f in files)) == EXPECTED[name]


def test_listing_has_the_published_structure():
    result = [parse(Path(f.path).stem) for f in datasets.get("cue_conflict").load()]
    assert Counter(Counter((s.shape, s.texture) for s in result).values()) == {5: 256}
    assert len({s.shape_source for s in result}) == 160
    assert len({s.texture_source for s in result}) == 48
    assert sum(s.shape == s.texture for s in result) == 80


def test_real_silhouettes_verify_offline(shared):
    result = fetch("cue_conflict_silhouettes", shared, offline=True)
    assert (result.files, result.by_hash, result.downloaded) == (160, 160, 0)


def test_real_stimuli_agree_with_the_committed_hashes(shared):
    listed = {Path(f.path).stem: f.sha256 for f in datasets.get("cue_conflict").load() if f.sha256}
    assert {s.id: s.sha256 for s in read(shared / "cue_conflict" / "stimuli", expected=1280)} == listed


def test_every_real_file_passes_the_check_of_its_structure(shared):
    """The check must not refuse a good file: it is all there is for the files without a published hash."""
    checked = 0
    for name in datasets:
        for file in datasets.get(name).load():
            if (shared / file.path).is_file():
                assert file.check(shared / file.path) == "", file.path
                checked += 1
    assert checked == 256 + 160 + 14
