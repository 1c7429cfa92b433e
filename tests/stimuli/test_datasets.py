from collections import Counter
from pathlib import Path

import pytest

from cuebench.errors import UserError
from cuebench.files import hash_file
from cuebench.registry import datasets
from cuebench.stimuli.fetch import fetch
from cuebench.stimuli.readers.cue_conflict import parse, read
from cuebench.stimuli.readers.refined_bias import parse as parse_cue

EXPECTED = {"cue_conflict": (1280, 256), "cue_conflict_silhouettes": (160, 160), "cue_conflict_responses": (23, 14),
            "refined_bias": (6000, 327), "dtd": (1, 0), "imagenet_a": (1, 0), "ptd": (1, 0)}  # fmt: skip


@pytest.mark.parametrize("name", datasets.names())
def test_every_dataset_is_complete_and_safe(name):
    data = datasets.get(name)
    files = data.load()
    assert (data.name, bool(data.citation), bool(data.licence), bool(data.mirrors)) == (name, True, True, True)
    assert len({f.path for f in files}) == len({f.source for f in files}) == len(files)
    assert all(f.path.startswith(f"{data.folder}/") and ".." not in f.path for f in files)
    assert all(f.check and len(f.sha256) in {0, 64} and bool(f.size) == bool(f.sha256) for f in files)
    assert (len(files), sum(bool(f.sha256) for f in files)) == EXPECTED[name]


@pytest.mark.parametrize("name", ["a" + "1" * 200_000 + "-", "a1" * 100_000 + "-b1-", "a" + "1" * 200_000 + "-b"])
def test_a_long_name_that_does_not_fit_is_read_at_once(name: str) -> None:
    """Patterns that try every way to split digits take hours for it: the test would end by its time limit."""
    assert parse(name) is None


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
    assert checked == 256 + 160 + 14 + 327


def test_real_cues_agree_with_the_committed_hashes(shared):
    """Also: every real file has a name of the rule, and the names are those of the published set."""
    listed = {f.path: f for f in datasets.get("refined_bias").load()}
    real = {p.relative_to(shared).as_posix(): p for p in (shared / "refined_bias").rglob("*.png")}
    assert set(real) <= set(listed)
    assert {path for path, f in listed.items() if f.sha256} == set(real)
    assert all(hash_file(p).sha256 == listed[path].sha256 for path, p in real.items())
    counts = Counter(s.condition for path in listed if (s := parse_cue(Path(path).stem)) is not None)
    assert counts == {"": 3000, "patch=4": 900, "patch=8": 900, "patch=16": 600, "patch=32": 600}


def test_refined_bias_says_what_to_put_where(shared):
    with pytest.raises(UserError) as raised:
        fetch("refined_bias", shared, offline=True)
    text = str(raised.value)
    assert "offline: 5673 of 6000 files are missing" in text
    assert "refined_bias/datasets/refined_bias_texture/zebra/4x4_zebra_1.png with no published hash" in text
