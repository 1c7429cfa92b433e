"""Write files whole or not at all, even through a crash or with two processes at once; hash files.

A Parquet file of cuebench carries its own checksum: ``cuebench`` and the SHA-256 of all other bytes of the file lie
between its last page and its footer, where readers of Parquet do not look. Every reading compares them before anything
is decoded, so that a single flipped bit is found. The footer says that the checksum must be there.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import stat
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from cuebench.errors import UserError, printable
from cuebench.places import RemotePath

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa
    import pyarrow.parquet as pq

SEAL = b"cuebench"
"""What stands before the checksum of a Parquet file."""
_ROW_GROUP = 1 << 20
_SEALED = b"cuebench.checksum"
"""Key of the footer's metadata that says that the file has a checksum."""
_DIGEST_SIZE = hashlib.sha256().digest_size
_END_SIZE = 8  # of a Parquet file: the length of the footer, and PAR1
_FREE_SPACE = "free some space and run the same command again: finished work is kept"
_ELSEWHERE = "choose another folder"
_REASONS = {
    errno.ENOSPC: ("the disk is full", _FREE_SPACE),
    errno.EDQUOT: ("your disk quota is used up", _FREE_SPACE),
    errno.EROFS: ("the file system is read-only", _ELSEWHERE),
    errno.EACCES: ("permission denied", _ELSEWHERE),
    errno.EPERM: ("permission denied", _ELSEWHERE),
    errno.ENOTDIR: ("a part of the path is a file, not a folder", _ELSEWHERE),
    errno.EEXIST: ("a file of that name is in the way", _ELSEWHERE),
    errno.ELOOP: ("its links lead in a circle", "name another file"),
    errno.EPIPE: ("its reader left before the end", "start both again"),
}
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
"""Of these, what says that nothing more can be written, wherever it is met."""
_UNREACHABLE = {
    errno.ENAMETOOLONG: "the name is too long",
    errno.EISDIR: "it is a folder",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.ELOOP: "its links lead in a circle",
}
_SHOWN = 100
"""Characters of a path in a message."""


def mistake_of(error: OSError) -> UserError | None:
    """Return the user error for a full disk or a path that the system does not look at; None for any other error."""
    named = isinstance(error.filename, str | os.PathLike)
    if isinstance(error, FileNotFoundError) and not named and current_folder() is None:
        return UserError("the current folder does not exist any more", "cd to another one, and run the command again")
    path = os.fsdecode(error.filename) if named else "a file"
    path = printable(path if len(path) <= _SHOWN else f"{path[: _SHOWN - 1]}…")
    if error.errno in _DISK:
        return write_error(Path(path), error)
    if error.errno not in _UNREACHABLE or not named:
        return None
    return UserError(f"{path} cannot be opened: {_UNREACHABLE[error.errno]}", "name another file or folder")


def current_folder() -> Path | None:
    """Return the current folder; None where it was deleted."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return None


def write_error(path: Path, error: OSError) -> UserError:
    """Return the user error for an ``OSError`` of writing ``path``, with what to do."""
    why, hint = _REASONS.get(error.errno or 0, (error.strerror or str(error), _ELSEWHERE))
    return UserError(f"cannot write {path}: {why}", hint)


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn a full disk or a read-only folder into a user error with what to do; nothing written before is lost."""
    try:
        yield
    except OSError as error:
        if error.errno not in _REASONS:
            raise
        raise write_error(path, error) from error


PRINTED = "-"
"""What is written in place of a path for standard output."""
_kept_for_files: list[TextIO] = []


def is_printed(path: Path | RemotePath) -> bool:
    """Tell whether writing to a path means to print: ``-``, ``/dev/stdout``."""
    return isinstance(path, Path) and (str(path) == PRINTED or _is_stream(path, 1))


def ending_of(path: Path, printed: str) -> str:
    """Return the ending of a file's name, which says its format; ``printed`` for what is printed."""
    return printed if is_printed(path) else path.suffix.lower()


@contextmanager
def only_files() -> Iterator[None]:
    """Keep standard output for files that are printed: whatever else is printed meanwhile goes to standard error."""
    _kept_for_files.append(sys.stdout)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _kept_for_files.pop()


def write_atomic(path: Path | RemotePath, data: bytes) -> None:
    """Write a file whole or not at all, as ``replacing`` does; the folder is made if needed.

    On an object store, where a file appears whole, it is put there at once.

    Raises
    ------
    UserError
        On a full disk or a read-only folder; the temporary file is removed and the old file is untouched.
    """
    if isinstance(path, RemotePath):
        path.write_bytes(data)
        return
    try:
        with replacing(path) as temporary:
            temporary.write_bytes(data)
    except OSError as error:
        raise write_error(path, error) from error


@contextmanager
def replacing(path: Path, *, sync: bool = True) -> Iterator[Path]:
    """Yield a temporary file that is to be written and then takes the place of ``path``. Every output is written so.

    A reader sees the old file or the new file, never half of it, even if the machine loses power (with ``sync``). The
    folder is made if needed. A link stays, and the file that it leads to is replaced. A pipe or a device stays, and is
    written into; ``-`` is printed. After an error nothing has changed.

    Raises
    ------
    UserError
        On a full disk, a read-only folder, and for a path that is a folder or a disk.
    """
    with disk_errors(path):
        target, mode = _behind(path)
        stream = _stream_of(path)
        if stream is not None or not stat.S_ISREG(mode):
            with tempfile.TemporaryDirectory() as folder:
                yield (temporary := Path(folder) / "file")
                data = temporary.read_bytes()
                _print(data, stream) if stream is not None else _write_into(path, data)
            return
        # Process and thread in the name: two writers of the same file cannot tear each other's temporary file.
        temporary = target.with_name(f".{target.name}.{os.getpid()}.{threading.get_ident()}.tmp")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            yield temporary
            if permissions := stat.S_IMODE(mode):
                temporary.chmod(permissions)
            if sync:
                with temporary.open("rb+") as file:
                    os.fsync(file.fileno())
            os.replace(temporary, target)
        finally:
            with suppress(OSError):  # a folder that cannot be written to never got the temporary file
                temporary.unlink(missing_ok=True)


def file_behind(path: Path) -> Path:
    """Return the file that writing to a path replaces: ``path`` itself, or what its links lead to."""
    return _behind(path)[0]


def _behind(path: Path) -> tuple[Path, int]:
    """Return what the links of a path lead to, and its mode, that of a regular file where nothing is there."""
    refuse_printed(path.parent)
    target = Path(os.path.realpath(path)) if path.is_symlink() else path
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):  # the latter is reported when the folder is made
        return target, stat.S_IFREG
    if stat.S_ISDIR(mode):
        raise UserError(f"cannot write {path}: it is a folder", f"name a file in it: {path / 'NAME'}")
    if stat.S_ISBLK(mode):
        raise UserError(f"cannot write {path}: it is a disk", "name a file")
    return target, mode


def refuse_printed(folder: Path) -> None:
    """Raise where somebody wants to print a folder."""
    if folder.name == PRINTED:
        raise UserError(f"{folder}: a folder cannot be printed", "name a folder")


def _is_stream(path: Path, descriptor: int) -> bool:
    """Tell whether a path is a name of what an open descriptor writes to."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except (OSError, ValueError):
        return False


def _stream_of(path: Path) -> TextIO | None:
    """Return the standard stream that a path means; None for a file."""
    if is_printed(path):
        return _kept_for_files[-1] if _kept_for_files else sys.stdout
    return sys.stderr if _is_stream(path, 2) else None


def _write_into(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def _print(data: bytes, stream: TextIO) -> None:
    """Print the content of a file: the bytes as they are, but to a terminal only text."""
    raw = getattr(stream, "buffer", None)  # a notebook's stream has none
    if raw is None or stream.isatty():
        if b"\0" in data:
            raise UserError("this format is no text, and a terminal cannot show it", "name a file, or write > FILE")
        stream.write(data.decode("utf-8", "replace"))
    else:
        stream.flush()
        with suppress(BrokenPipeError):  # the stream finds out, too
            raw.write(data)
    stream.flush()


NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})
"""What systems answer that cannot lock a file, such as some network file systems."""
_FAR = 0x7FFFFFFE
"""Where Windows locks a byte: it keeps others from reading what is locked, so that it must be one that nobody reads."""


def take_lock(descriptor: int) -> None:
    """Take an exclusive lock of an open file that the system drops when the process dies, however it dies.

    Raises
    ------
    OSError
        At once, where another process holds it, or where the file system has no locks (`NO_LOCKS`).
    """
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        os.lseek(descriptor, _FAR, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        finally:
            os.lseek(descriptor, 0, os.SEEK_SET)
    else:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def is_temporary(path: Path | RemotePath) -> bool:
    """Tell whether a file is what a process that was killed in ``write_atomic`` left behind."""
    return path.name.startswith(".") and path.name.endswith(".tmp")


def json_text(data: Any) -> str:
    """Return strict JSON, indented, with a line feed at its end; NaN and infinity become null."""
    return json.dumps(_finite(data), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def json_bytes(data: Any) -> bytes:
    """Return strict JSON in UTF-8; what is not Unicode, as in some file names, is escaped."""
    return json_text(data).encode("utf-8", "backslashreplace")


def write_json(path: Path | RemotePath, data: Any) -> None:
    """Write strict JSON, whole or not at all."""
    write_atomic(path, json_bytes(data))


def _finite(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def make_folder(path: Path) -> Path:
    """Make a folder with its parents, and check now, not after hours of work, that it can be written to."""
    refuse_printed(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise write_error(path, error) from error
    write_atomic(path / ".writable", b"")
    with disk_errors(path):
        (path / ".writable").unlink(missing_ok=True)
    return path


class FileFacts(NamedTuple):
    """What identifies a file's content."""

    sha256: str
    size: int


def hash_file(path: str | Path) -> FileFacts:
    """Return the sha256 and the size in bytes of a file, read in pieces."""
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return FileFacts(digest, file.tell())


# ------------------------------------------------------------------------------------------ Parquet with a checksum


class DamagedFile(ValueError):
    """A file whose content is not what was written."""


class CheckedParquet(NamedTuple):
    """An open Parquet file, and whether it had a checksum: files of earlier versions have none."""

    file: pq.ParquetFile
    has_checksum: bool


def arrow_array(values: Sequence[str] | npt.NDArray[Any]) -> pa.Array:
    """Return texts or numbers as a column of Arrow, from their bytes: ``pa.array`` imports pandas where it is there.

    That import takes a second, and would be part of every run.
    """
    import numpy as np
    import pyarrow as pa

    if isinstance(values, np.ndarray):
        if values.dtype.kind not in "iuf":
            return pa.array(values)
        kind = pa.from_numpy_dtype(values.dtype)
        return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])
    text = "".join(values)
    lengths = map(len, values) if text.isascii() else (len(value.encode()) for value in values)
    ends = np.zeros(len(values) + 1, np.int64)
    np.cumsum(np.fromiter(lengths, np.int64, len(values)), out=ends[1:])
    if ends[-1] > np.iinfo(np.int32).max:  # must be cut into pieces
        return pa.array(values, pa.string())
    return pa.StringArray.from_buffers(len(values), pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(text.encode()))


def arrow_source(data: bytes | bytearray | memoryview) -> pa.BufferReader:
    """Return bytes as a file that Arrow reads, in memory of Arrow's own.

    A thread of Arrow's may be the last to release what was read. To release bytes of Python's it must wait for the lock
    of the interpreter, and a thread that waits for it while the program ends aborts the process (``std::terminate``).
    """
    import pyarrow as pa

    copy = pa.allocate_buffer(len(data))
    memoryview(copy).cast("B")[:] = memoryview(data).cast("B")
    return pa.BufferReader(copy)


def parquet_bytes(table: pa.Table, **options: Any) -> bytes:
    """Return a table as a Parquet file with a checksum; the same table gives the same bytes.

    Columns of texts may be dictionaries, which take less memory: they are written as texts, a part at a time.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), _SEALED: b"sha256"})
    schema = pa.schema([_without_dictionary(column) for column in table.schema], table.schema.metadata)
    # The checksums of the pages are for other readers.
    with pq.ParquetWriter(sink, schema, compression="zstd", write_page_checksum=True, **options) as writer:
        for start in range(0, max(len(table), 1), _ROW_GROUP):
            writer.write_table(table.slice(start, _ROW_GROUP).cast(schema), row_group_size=_ROW_GROUP)
    data = memoryview(sink.getvalue())  # not copied before its parts are put together
    footer = _footer_start(data)
    return b"".join([data[:footer], SEAL, hashlib.sha256(data).digest(), data[footer:]])


def _without_dictionary(column: pa.Field) -> pa.Field:
    import pyarrow as pa

    return column.with_type(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def open_parquet(data: bytes) -> CheckedParquet:
    """Open the bytes of a Parquet file whose checksum, if it has one, is right.

    Raises
    ------
    DamagedFile
        Where it is not, or where the file cannot be read.
    """
    import pyarrow.parquet as pq

    has_checksum = _check(data)
    try:
        file = pq.ParquetFile(arrow_source(data), page_checksum_verification=has_checksum)
        says_so = _SEALED in (file.schema_arrow.metadata or {})
        agrees = rows_agree(file)
    except Exception as error:  # noqa: BLE001 - a damaged file can make Arrow raise anything
        raise DamagedFile(str(error)) from None
    if says_so != has_checksum:
        raise DamagedFile("its checksum is missing")
    if not agrees:
        raise DamagedFile(OTHER_ROWS)
    return CheckedParquet(file, has_checksum)


OTHER_ROWS = "it does not have as many rows as it says"


def rows_agree(file: pq.ParquetFile) -> bool:
    """Tell whether the numbers of rows in a file's footer fit each other: Arrow believes whichever it meets.

    What it says of single columns is not looked at: Arrow ends the whole process where that is damaged.
    """
    groups = [file.metadata.row_group(k).num_rows for k in range(file.metadata.num_row_groups)]
    return min(groups, default=0) >= 0 and sum(groups) == file.metadata.num_rows


def read_rows(file: pq.ParquetFile, columns: list[str] | None = None, *, threads: bool = False) -> pa.Table:
    """Return the rows of an open file; raise ``ValueError`` where they are others than its footer counts."""
    table = file.read(columns, use_threads=threads)
    if table.num_rows != file.metadata.num_rows:
        raise ValueError(OTHER_ROWS)
    return table


def read_parquet(data: bytes) -> pa.Table:
    """Return the table in the bytes of a Parquet file; raise ``DamagedFile`` where it is not what was written."""
    with open_parquet(data).file as file:
        try:
            table = read_rows(file)
            table.validate(full=True)  # texts that are not UTF-8, among others
            return table
        except Exception as error:  # noqa: BLE001 - as above
            raise DamagedFile(str(error)) from None


def _check(data: bytes) -> bool:
    """Return whether a file has a checksum; raise where it is not that of its bytes."""
    footer = _footer_start(data)
    start = footer - _DIGEST_SIZE - len(SEAL)
    if start < 0 or data[start : start + len(SEAL)] != SEAL:
        return False
    digest = hashlib.sha256(memoryview(data)[:start])
    digest.update(memoryview(data)[footer:])
    if digest.digest() != data[footer - _DIGEST_SIZE : footer]:
        raise DamagedFile("its checksum is not that of its content")
    return True


def _footer_start(data: bytes | memoryview) -> int:
    return len(data) - _END_SIZE - int.from_bytes(data[-_END_SIZE:-4], "little")
