"""Entries of a board: where they lie, what identifies them, and what ``entry.json`` says of their models."""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from cuebench.errors import UserError, all_problems, is_printable, printable
from cuebench.files import hash_file
from cuebench.options import check_types
from cuebench.reading import read_json, user_paths
from cuebench.stimuli.archive import unpack

ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
FILE = "entry.json"
FORMAT = 1
PARTS = ("responses", "stimuli", "tables")
"""Folders of a run that belong to an entry, beside its files."""
FILES = ("run.json", "scores.parquet", "scores.json", FILE)
LONGEST = 300
"""Characters of a text in ``entry.json``."""


@dataclass(frozen=True)
class About:
    """What a submitter says of a model; nothing of it is checked but its form.

    Parameters
    ----------
    name : str
        As the board shows it; default: the name of the observer in the run.
    family, training_data : str
        To filter by: ``CNN``, ``ImageNet-1k``.
    parameters : int
        Number of parameters; 0: unknown.
    link : str
        A page about the model: ``https://…``.
    authors : str
        Who submits it.
    date : str
        Of the submission: ``2026-05-31``.
    """

    name: str = ""
    family: str = ""
    training_data: str = ""
    parameters: int = 0
    link: str = ""
    authors: str = ""
    date: str = ""


@dataclass(frozen=True)
class EntryFile:
    """The content of ``entry.json``: what holds for all observers of a run, and for single ones."""

    common: About = field(default_factory=About)
    observers: Mapping[str, About] = field(default_factory=dict)

    def of(self, observer: str) -> About:
        """Return what is said of an observer; what is said of it alone goes first."""
        about = self.observers.get(observer, About())
        return replace(self.common, **{name: value for name, value in asdict(about).items() if value})


def find_entries(paths: Sequence[str | Path]) -> list[Path]:
    """Return the entries: run folders and archives as they are named, or all inside of a folder that is no run.

    Raises
    ------
    UserError
        For everything that is no entry and holds none, at once.
    """
    entries: dict[Path, None] = {}
    problems = []
    for path in user_paths(paths):
        if is_archive(path) or (path / "run.json").is_file():
            entries[path] = None
        elif path.is_dir() and (inside := [p for p in sorted(path.iterdir()) if _may_be_entry(p)]):
            entries |= dict.fromkeys(inside)
        else:
            missing = "no run folder, no archive of one, and no folder of them" if path.exists() else "does not exist"
            problems.append(f"{path}: {missing}")
    if problems or not entries:
        hint = f"an entry is a run folder (cuebench run … --out RUN) or one packed as {', '.join(ARCHIVES[:3])}"
        raise all_problems("entries of the board", problems or ["none was named"], hint)
    return list(entries)


def is_archive(path: Path) -> bool:
    """Tell whether a path is a file whose name ends as an archive's."""
    return path.name.lower().endswith(ARCHIVES) and path.is_file()


def _may_be_entry(path: Path) -> bool:
    return not path.name.startswith(".") and (is_archive(path) or path.is_dir())


class Fingerprint(NamedTuple):
    """The SHA-256 of all that counts in an entry, and what is wrong with its files."""

    sha256: str
    problems: tuple[str, ...] = ()


def fingerprint(entry: Path) -> Fingerprint:
    """Hash an entry: an archive as a file, a folder by the names and contents of its files."""
    if entry.is_file():
        return Fingerprint(hash_file(entry).sha256)
    digest = hashlib.sha256()
    problems = []
    paths = [entry / name for name in FILES] + [p for part in PARTS for p in sorted((entry / part).rglob("*"))]
    for path in paths:
        name = path.relative_to(entry).as_posix()
        if path.is_symlink():
            problems.append(f"{printable(name)} is a link: an entry holds its files itself")
        elif path.is_file():
            digest.update(f"{name}\0{hash_file(path).sha256}\n".encode("utf-8", "surrogateescape"))
    problems += [f"{part} is a link: an entry holds its files itself" for part in PARTS if (entry / part).is_symlink()]
    return Fingerprint(digest.hexdigest(), tuple(dict.fromkeys(problems)))


@contextmanager
def opened(entry: Path) -> Iterator[Path]:
    """Give the run folder of an entry; that of an archive is unpacked for the time of the ``with`` block.

    Raises
    ------
    UserError
        For an archive that is damaged, leads out of its folder, or holds no run.
    """
    if not entry.is_file():
        yield entry
        return
    with tempfile.TemporaryDirectory(prefix="cuebench-entry-") as folder:
        target = Path(folder) / "entry"
        unpack(entry, target)
        candidates = [target, *(p for p in sorted(target.iterdir()) if p.is_dir())]
        runs = [p for p in candidates if (p / "run.json").is_file()]
        if len(runs) != 1:
            what = "no run.json" if not runs else f"{len(runs)} runs"
            raise UserError(f"{entry.name} holds {what}", "pack one run folder: its files, or the folder itself")
        yield runs[0]


def read_about(run: Path, observers: Sequence[str]) -> EntryFile:
    """Read ``entry.json`` of a run folder; a run without one is an entry of which nothing more is known.

    Raises
    ------
    UserError
        With everything that is wrong with it.
    """
    path = run / FILE
    if not path.exists():
        return EntryFile()
    data = read_json(path, hint="docs/board.md has an example")
    if not isinstance(data, dict):
        raise UserError(f"{FILE} is no JSON object", "docs/board.md has an example")
    written = data.pop("format", None)
    problems = [] if written == FORMAT else [f"format is {written!r}; this cuebench reads {FORMAT}"]
    by_observer = data.pop("observers", {})
    if not isinstance(by_observer, dict):
        problems.append("observers is no object of observer → what is known of it")
        by_observer = {}
    problems += [f"observers names {name!r}, which the run does not have" for name in by_observer.keys() - observers]
    if data.get("name") and len(observers) > 1:
        problems.append(f"name stands for all {len(observers)} observers of the run; give each its own in observers")
    common, wrong = _about(data, "")
    problems += wrong
    known = {}
    for name, values in by_observer.items():
        known[name], wrong = _about(values, f"{name}: ")
        problems += wrong
    if problems:
        raise all_problems(FILE, [printable(p) for p in problems], "docs/board.md says what it may hold")
    return EntryFile(common, known)


def _about(values: Any, where: str) -> tuple[About, list[str]]:
    """Return what is said of one model, and what is wrong with it."""
    if not isinstance(values, dict):
        return About(), [f"{where}no JSON object"]
    allowed = {f.name for f in fields(About)}
    problems = [f"{where}unknown field {name!r}" for name in values if name not in allowed]
    known = {name: value for name, value in values.items() if name in allowed}
    try:
        about = About(**check_types(known, About))
    except UserError as error:
        return About(), [*problems, f"{where}{error.message}"]
    for name, value in asdict(about).items():
        if isinstance(value, str) and (len(value) > LONGEST or not is_printable(value) or "\n" in value):
            problems.append(f"{where}{name} is longer than {LONGEST} characters or cannot be shown in one line")
    if about.parameters < 0:
        problems.append(f"{where}parameters is {about.parameters}; a number of parameters, or 0: unknown")
    if about.link and not re.fullmatch(r"https?://[^\s\"'<>]+", about.link):
        problems.append(f"{where}link must begin with https:// or http://; got {about.link!r}")
    try:
        if about.date:
            date.fromisoformat(about.date)
    except ValueError:
        problems.append(f"{where}date must be YYYY-MM-DD; got {about.date!r}")
    return about, problems


def slug(name: str, identity: Any) -> str:
    """Return the permanent name of a page: readable, and different for other answers.

    Parameters
    ----------
    name : str
        Of the observer.
    identity : anything that JSON can hold
        What makes it the same observer: weights, protocols, stimuli.

    Examples
    --------
    >>> slug("timm:resnet50.a1_in1k", ["weights"])
    'timm-resnet50-a1-in1k-609c4787'
    """
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    words = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:60].strip("-")
    digest = hashlib.sha256(json.dumps([name, identity], sort_keys=True).encode()).hexdigest()
    return f"{words or 'model'}-{digest[:8]}"
