"""Memory that the decoding processes and the engine share: pixels are written once and travel through no pipe.

The blocks lie in one anonymous file that every worker inherits. It has no name, so nothing of it is left when a process
is killed, and no limit of ``/dev/shm`` applies. Where there are no such files (macOS, Windows), it is a temporary one.
A block is mapped once in each process; blocks that are given back are used again.
"""

from __future__ import annotations

import errno
import itertools
import mmap
import os
import sys
import tempfile
from collections import defaultdict
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from cuebench.arrays import Pixels
from cuebench.errors import UserError

_MOST_MAPPED = 64
"""Blocks that a worker keeps mapped; more are mapped again when they are needed."""
_numbers = itertools.count()


class Block(NamedTuple):
    """Where pixels lie: which memory, its file (a descriptor or a path), and the place in it."""

    memory: tuple[int, int]
    file: int | str
    offset: int
    size: int


_mapped: dict[Block, Pixels] = {}
"""The blocks that this process has mapped."""


def bytes_of(block: Block) -> Pixels:
    """Return the bytes of a block, writable, in whichever process this is."""
    if block not in _mapped:
        if len(_mapped) >= _MOST_MAPPED:
            _mapped.clear()
        _mapped[block] = _map(block)
    return _mapped[block]


def _map(block: Block) -> Pixels:
    if isinstance(block.file, int):
        return np.frombuffer(mmap.mmap(block.file, block.size, offset=block.offset), np.uint8)
    with open(block.file, "r+b") as file:
        return np.frombuffer(mmap.mmap(file.fileno(), block.size, offset=block.offset), np.uint8)


class SharedMemory:
    """Blocks for the pixels of some batches.

    ``inherited`` are the descriptors that a worker process must be started with.
    """

    def __init__(self) -> None:
        self._id = (os.getpid(), next(_numbers))
        self._temporary = ""
        if hasattr(os, "memfd_create"):
            self._descriptor = os.memfd_create("cuebench-pixels")
            self._file: int | str = self._descriptor
            self.inherited: tuple[int, ...] = (self._descriptor,)
        else:
            # Not NamedTemporaryFile: on Windows nobody else could open it.
            self._descriptor, self._temporary = tempfile.mkstemp(prefix="cuebench-pixels-")
            self._file, self.inherited = self._temporary, ()
        self._end = 0
        self._free: dict[int, list[Block]] = defaultdict(list)
        self._pinned: dict[Block, int] = {}

    def take(self, size: int) -> Block:
        """Return a block of at least so many bytes: one that was given back, else a new one.

        Raises
        ------
        UserError
            Where there is no memory left: taking it now is better than being killed when the first pixel is written.
        """
        size = -(-max(size, 1) // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY
        if self._free[size]:
            return self._free[size].pop()
        block = Block(self._id, self._file, self._end, size)
        try:
            _reserve(self._descriptor, self._end, size)
        except OSError as error:
            raise UserError(
                f"no memory for {size / 2**20:,.0f} MiB of pixels: {error.strerror}",
                "use a smaller --shard-size in a new folder, or fewer observers with other input sizes at once",
            ) from None
        self._end += size
        _mapped[block] = _map(block)
        return block

    def give_back(self, block: Block) -> None:
        """Let a block be used for something else."""
        self._free[block.size].append(block)

    def pin(self, block: Block) -> None:
        """Let the GPU read a block directly: copies then go on while Python does something else."""
        torch = sys.modules.get("torch")
        if torch is None or block in self._pinned or not torch.cuda.is_available():
            return
        address = bytes_of(block).ctypes.data
        registered = int(torch.cuda.cudart().cudaHostRegister(address, block.size, 0)) == 0
        self._pinned[block] = address if registered else 0  # else: copies wait, and are right all the same

    def empty(self) -> None:
        """Give all memory back to the system; no block may be in use."""
        for address in self._pinned.values():
            if address:
                sys.modules["torch"].cuda.cudart().cudaHostUnregister(address)
        self._pinned.clear()
        self._free.clear()
        for block in [block for block in _mapped if block.memory == self._id]:
            del _mapped[block]
        with suppress(OSError):  # Windows shortens no file that a worker has mapped: its places are used again
            os.ftruncate(self._descriptor, 0)
        self._end = 0
        # Other blocks than before may lie at the same places now.
        self._id = (os.getpid(), next(_numbers))

    def close(self) -> None:
        """Free everything."""
        self.empty()
        os.close(self._descriptor)
        if self._temporary:
            with suppress(OSError):  # Windows: a worker that ends late has it open
                os.unlink(self._temporary)


def _reserve(descriptor: int, offset: int, size: int) -> None:
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(descriptor, offset, size)
            return
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
                raise
    os.ftruncate(descriptor, offset + size)
