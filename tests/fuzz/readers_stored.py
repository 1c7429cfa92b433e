"""Readers of what cuebench itself has written, or a user for it: boards, files of settings, caches, makers' folders."""

from __future__ import annotations

import io
import json
import tempfile
import zipfile
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import checksums  # type: ignore[import-not-found]
import numpy as np
from base import Reader, file, picture  # type: ignore[import-not-found]

from cuebench.calibration import tables
from cuebench.cli import run as run_verb
from cuebench.cli._flags import flags_of
from cuebench.cli._run_file import read_file
from cuebench.errors import UserError
from cuebench.protocols.triplets.stimuli import mask_problem
from cuebench.reports.board.check import check_entry
from cuebench.reports.board.entries import read_about
from cuebench.reports.board.folder import OWN, SiteFolder
from cuebench.responses.part import Part
from cuebench.responses.pixel_cache import DamagedPixels, Keeping, PixelCache, Reading, keep, read_kept
from cuebench.runs.kept import picture_of
from cuebench.runs.record import PARTS, RunRecord
from cuebench.runs.share import PartRecord, with_parts
from cuebench.stimuli import structure
from cuebench.stimuli.background import is_transparent
from cuebench.stimuli.cue_files import read_image, read_labels, read_mask
from cuebench.stimuli.curation.cues import find_cues
from cuebench.stimuli.image_files import header, size_in_header
from cuebench.stimuli.makers._novel_inputs import masks_of, photographs_of
from cuebench.stimuli.makers.refined_bias import _only
from cuebench.stimuli.readers import texture_folder
from cuebench.stimuli.readers.scan import image_facts
from cuebench.stimuli.refined_bias.folder import Folder
from cuebench.stimuli.refined_bias.masks import load
from cuebench.stimuli.refined_bias.sources import Source, has_alpha

FLAGS = flags_of(run_verb.command)
PNG = picture("PNG")


# ------------------------------------------------------------------------------------------------- the board


@lru_cache
def entry() -> dict[str, bytes]:
    """Return the files of a small run with an ``entry.json``."""
    from readers import run_files  # type: ignore[import-not-found]

    return {**run_files(), "entry.json": _ENTRY}


def packed() -> tuple[bytes, ...]:
    """Return entries as archives: their files at the top, and in a folder."""
    found = []
    for place in ("", "run/"):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for name, data in entry().items():
                archive.writestr(zipfile.ZipInfo(place + name), data)
        found.append(buffer.getvalue())
    return tuple(found)


def check_archive(path: Path) -> None:
    """Check an entry; a problem that nobody has thought of is a failure, and nothing may lie beside the archive."""
    before = set(path.parent.iterdir())
    checked = check_entry(path)
    assert set(path.parent.iterdir()) == before
    assert not any("cannot be checked" in problem for problem in checked.problems), checked.problems


def about(path: Path) -> None:
    """Read what an entry says of its models; all of it can be shown in a line."""
    found = read_about(path.parent, ["red", "blue"])
    for observer in ("red", "blue"):
        shown = found.of(observer)
        assert all("\n" not in v and "\x1b" not in v for v in vars(shown).values() if isinstance(v, str))
        assert shown.link.startswith(("", "https://", "http://"))


def site(name: str) -> Any:
    """Return a reader of a file in which a board remembers its last build; pages of others are never deleted."""

    def of_bytes(data: bytes, folder: Path) -> None:
        outside = folder / "mine.txt"
        outside.write_text("mine")
        out = folder / "site"
        (out / OWN / "check").mkdir(parents=True, exist_ok=True)
        board = SiteFolder(out)
        if name == "written":
            (out / OWN / "written.json").write_bytes(data)
            board.finish()
        else:
            board._place("check", ["0"]).write_bytes(data.replace(b'"MADE"', json.dumps(board._made_with).encode()))
            found = board.checked("0")
            assert found is None or isinstance(found.entry, str)
        assert outside.read_text() == "mine", "a file outside of the site was touched"

    return of_bytes


# ------------------------------------------------------------------------------------------------- runs and caches


def settings(path: Path) -> None:
    """Read a file of settings of ``cuebench run``."""
    wanted = read_file(path, FLAGS)
    assert all(isinstance(o, str) for o in wanted.values.get("observer", ()))


def part(data: bytes, folder: Path) -> None:
    """Read what a process of a shared run says, and join it to the record."""
    (folder / PARTS).mkdir(exist_ok=True)
    (folder / PARTS / "1-of-1.json").write_bytes(data)
    if PartRecord.read(folder, Part(1, 1)) is None:
        return
    joined = with_parts(folder, RunRecord({"observers": [], "protocols": []}))
    joined.write(folder / "joined" if (folder / "joined").mkdir(exist_ok=True) is None else folder)
    RunRecord.read(folder / "joined")


_SHAPE = (2, 4, 4, 3)


@lru_cache
def kept_pixels() -> bytes:
    """Return a file of the cache of pixels."""
    images = np.arange(np.prod(_SHAPE), dtype=np.uint8)
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "a"
        keep(Keeping(str(path), _SHAPE[0], images.size // _SHAPE[0], images, {1: "cut"}))
        return path.read_bytes()


def pixels(path: Path) -> None:
    """Read a file of the cache: what is returned is what was written, or it is found to be damaged."""
    size = int(np.prod(_SHAPE)) // _SHAPE[0]
    out = np.zeros(size * _SHAPE[0], np.uint8)
    try:
        found = PixelCache(path.parent / "cache", 1 << 20).find(path, _SHAPE[0], size)
        assert found is not None
        read_kept(Reading(str(path), 0, found.hashes, size, out))
    except DamagedPixels:
        return
    for number, reason in found.unreadable.items():
        assert isinstance(number, int)
        assert isinstance(reason, str)


def mask(data: bytes, folder: Path) -> None:
    """Decode a mask that a run has kept."""
    assert picture_of(data, "mask").ndim == 2


# ------------------------------------------------------------------------------------------------- calibration


def calibration(name: str) -> Any:
    """Return a reader of a folder of calibrations in which one file has other bytes; the others are small."""

    def of_bytes(data: bytes, folder: Path) -> None:
        place = folder / "calibration"
        place.mkdir(exist_ok=True)
        for other, content in _CALIBRATION.items():
            (place / other).write_bytes(data if other == name else content)
        tables._cached.cache_clear()
        rows = (*tables.read_recovered(place), *tables.read_coverage(place))
        assert all(isinstance(row.protocol, str) for row in rows)
        tables.read_settings(place)
        tables.write_tables([], {}, place)

    return of_bytes


# ------------------------------------------------------------------------------------------------- makers' folders


def inspection(path: Path) -> None:
    """Find the cues of an inspection; none lies outside of the folder."""
    place = path.parent / "made" / "shape" / "cat"
    place.mkdir(parents=True, exist_ok=True)
    (place / "cat_1.png").write_bytes(PNG)
    for cue in find_cues(path.parent).files:
        assert cue.path.resolve().is_relative_to(path.parent.resolve())


def note(data: bytes, folder: Path) -> None:
    """Read what a maker has noted of a source."""
    path = folder / "made" / "inspection" / "cat" / "1.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    for made in Folder(folder).read([Source("1", "cat", folder / "1.png", None)]):
        assert Folder(folder).picture(made) is None


def textures(path: Path) -> None:
    """Read a folder of textures with a list of those that belong to it."""
    place = path.parent / "images" / "dotted"
    place.mkdir(parents=True, exist_ok=True)
    (place / "dotted_1.png").write_bytes(PNG)
    texture_folder.read(path.parent)


def picture_facts(path: Path) -> None:
    """Read size and alpha of a picture from its header, in every way that there is."""
    has_alpha(path)
    is_transparent(path)
    facts = image_facts(path)
    try:
        mode, width, height = header(path)
        assert size_in_header(path.read_bytes()[:4096], path)[0] > 0
    except UserError:
        return
    assert mode
    assert facts.width in (0, width)
    assert facts.height in (0, height)


def masks(path: Path) -> None:
    """Read a picture as everything that makers and cues take from a file: image, labels, mask, silhouette, texture."""
    for read in (
        read_image,
        read_labels,
        lambda place: read_mask(place, invert=False),
        mask_problem,
        lambda place: masks_of(place.parent),
        lambda place: photographs_of(place.parent),
        lambda place: load(Source("a", "cat", place, place)),
    ):
        with suppress(UserError):
            read(path)


def checked(path: Path) -> None:
    """Check the structure of a downloaded file in every way."""
    for check in (structure.png(5, 6), structure.table(("a", "b"), 2), structure.archive(1, 1)):
        assert isinstance(check(path), str)


_ENTRY = json.dumps({
    "format": 1, "family": "CNN", "training_data": "ImageNet-1k", "parameters": 3, "link": "https://example.org",
    "authors": "A", "date": "2026-05-31", "observers": {"red": {"name": "Red", "family": "ViT"}},
}).encode()  # fmt: skip
_CHECK = json.dumps({"key": ["MADE", "0"], "value": {
    "entry": "a", "sha256": "0", "problems": ["p"], "remarks": [], "models": []}}).encode()  # fmt: skip
_RUN = b"""observers = ["ideal:shape", "recorded:x.csv?kind=person"]
protocols = ["cue_conflict"]
data_root = "data"
out = "runs/a"
seed = 3
limit = 10
resamples = 200
device = "cpu"
[set.cue_conflict]
"""
_PART = json.dumps({
    "failures": [{"observer": "a", "reason": "r", "protocol": "p", "details": {}}], "unreadable": {"x": "cut"},
    "notices": ["n"], "jobs": [{"protocol": "p", "view": "v", "observer": "o", "notes": [], "asked_again": {},
    "batch_size": 8}], "images_decoded": 3}).encode()  # fmt: skip
_CALIBRATION = {
    tables.RECOVERED: b"protocol,metric,condition,setting,weight,competence,spread,images,studies,undefined,truth,mean,"
    b"sd,n,excluded\ncue_conflict,shape_bias,16-way,grid,0.5,0.8,0,1,200,0,0.5,0.5,0.01,100,2.5\n",
    tables.COVERAGE: (tables.SHIPPED / tables.COVERAGE).read_bytes()[:1500].rpartition(b"\n")[0] + b"\n",
    tables.SETTINGS: b'{"cue_conflict": {"studies": 200, "seed": 0, "date": "2026-01-01", "version": 1}}',
}
_NOTE = json.dumps([{"name": "cat_1", "cue": "shape", "label": "cat", "source": "1", "grid": 0,
                     "measures": {"contour_length": 0.5}, "reason": ""}]).encode()  # fmt: skip
_IMAGES = (PNG, picture("JPEG"), picture("PNG", "RGBA"), picture("GIF"), picture("WEBP"), picture("TIFF"))

READERS: dict[str, Reader] = {
    "entry_json": Reader(file("entry.json", about), (_ENTRY,), "json"),
    "board_archive": Reader(file("entry.zip", check_archive), packed, "zip", checksums.archive),
    "board_written": Reader(site("written"), (b'["index.html", "models/a.html"]',), "json"),
    "board_check": Reader(site("check"), (_CHECK,), "json"),
    "run_toml": Reader(file("run.toml", settings), (_RUN,), "toml"),
    "part_record": Reader(part, (_PART,), "json"),
    "pixel_cache": Reader(file("a", pixels), lambda: (kept_pixels(),)),
    "kept_mask": Reader(mask, (picture("PNG", "L"), picture("PNG", "P")), seal=checksums.picture),
    "calibration_recovered": Reader(calibration(tables.RECOVERED), (_CALIBRATION[tables.RECOVERED],), "csv"),
    "calibration_coverage": Reader(calibration(tables.COVERAGE), (_CALIBRATION[tables.COVERAGE],), "csv"),
    "calibration_settings": Reader(calibration(tables.SETTINGS), (_CALIBRATION[tables.SETTINGS],), "json"),
    "inspection": Reader(
        file("inspection.csv", inspection),
        (b"name,cue,label,verdict,reason,by\ncat_1,shape,cat,accept,,inspection\n../x,shape,cat,reject,noise,anna\n",),
        "csv",
    ),
    "maker_note": Reader(note, (_NOTE,), "json"),
    "maker_classes": Reader(
        file("c.json", lambda path: _only(str(path))), (b'{"shape": ["cat"], "texture": ["dog"]}',), "json"
    ),
    "texture_list": Reader(file(texture_folder.LIST, textures), (b"dotted/dotted_1.png\n",), "text"),
    "picture_facts": Reader(file("a.png", picture_facts), _IMAGES, seal=checksums.picture),
    "masks": Reader(
        file("a.png", masks),
        (picture("PNG", "L"), picture("PNG", "1"), *_IMAGES, picture("PNG", "P"), picture("TIFF", "I")),
        seal=checksums.picture,
    ),
    "structure": Reader(file("a", checked), (PNG, b"a,b\n1,2\n3,4\n"), "csv"),
}
