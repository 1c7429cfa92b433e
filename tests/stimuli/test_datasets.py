from collections import Counter
from pathlib import Path

import pytest

from cuebench.registry import datasets
from cuebench.stimuli.fetch import fetch
from cuebench.stimuli.readers.cue_conflict import parse

DATA = next((p / "shared" / "data" for p in Path(__file__).resolve().parents if (p / "shared" / "data").is_dir()), None)
EXPECTED = {"cue_conflict": (1280, 256), "cue_conflict_silhouettes": (160, 160), "cue_conflict_responses": (23, 14)}


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
    found = [parse(Path(f.path).stem) for f in datasets.get("cue_conflict").load()]
    assert Counter(Counter((s.shape, s.texture) for s in found).values()) == {5: 256}
    assert len({s.shape_source for s in found}) == 160
    assert len({s.texture_source for s in found}) == 48
    assert sum(s.shape == s.texture for s in found) == 80


@pytest.mark.skipif(DATA is None, reason="../shared/data is not here")
def test_real_silhouettes_verify_offline():
    found = fetch("cue_conflict_silhouettes", DATA, offline=True)
    assert (found.files, found.by_hash) == (160, 160)
