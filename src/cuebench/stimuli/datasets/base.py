"""The declaration of a dataset that can be fetched."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cuebench.stimuli.structure import Check


@dataclass(frozen=True)
class RemoteFile:
    """A file to fetch.

    Parameters
    ----------
    path : str
        Where it belongs below the data root.
    source : str
        Where it lies below each mirror.
    sha256 : str
        Hash of the content; empty where it is not known to us. Then ``check`` decides, and the hash is recorded.
    md5 : str
        The same where only an MD5 is published: enough against a cut or mixed-up file, not against a forged one.
    size : int
        Bytes; 0 where not known.
    check : callable, optional
        Structure check: path → problem, or "".
    unpack : str
        For an archive: the folder below the data root that it is unpacked into; empty: it stays as it is.
    pictures : bool
        Unpack only pictures, as ``<class>/<file>``, whatever folders stand before them in the archive.
    """

    path: str
    source: str
    sha256: str = ""
    size: int = 0
    check: Check | None = None
    unpack: str = ""
    md5: str = ""
    pictures: bool = False

    @property
    def identity(self) -> str:
        """How to recognise the right file, in words."""
        if self.md5 and not self.sha256:
            return f"md5 {self.md5}"
        return f"sha256 {self.sha256}" if self.sha256 else "no published hash, checked by its structure"


@dataclass(frozen=True)
class Dataset:
    """A published set of files.

    Parameters
    ----------
    name : str
        Public name: the file name.
    about, citation, licence : str
        What it is, whom to cite, and what one may do with it.
    folder : str
        Sub-folder of the data root; the record of fetched hashes lies there.
    mirrors : tuple of str
        Addresses below which the files lie, tried in order.
    load : callable
        Returns the files; a function, so that long listings are read only when needed.
    """

    name: str
    about: str
    citation: str
    licence: str
    folder: str
    mirrors: tuple[str, ...]
    load: Callable[[], tuple[RemoteFile, ...]]


def listing(name: str, target: str, source: str, check: Check, *, flat: bool = False) -> tuple[RemoteFile, ...]:
    """Read the files of a dataset from ``datasets/<name>.csv`` (path, size, sha256; both empty where not known).

    Parameters
    ----------
    name : str
        Name of the CSV beside this file.
    target, source : str
        Folder below the data root, and below a mirror, that the paths are relative to.
    check : callable
        Structure check of each file.
    flat : bool
        Put all files directly into ``target``.
    """
    table = Path(__file__).with_name(f"{name}.csv")
    with table.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return tuple(
        RemoteFile(
            path=f"{target}/{Path(r['path']).name if flat else r['path']}",
            source=f"{source}/{r['path']}",
            sha256=r["sha256"],
            size=int(r["size"]),
            check=check,
        )
        for r in rows
    )
