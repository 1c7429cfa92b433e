"""Compute the checksums of a changed file anew, so that a reader looks at what is behind them.

Each function takes any bytes and returns bytes; what is too damaged to have a checksum is returned as it is.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import json
import lzma
import re
import struct
import zlib

from cuebench.files import SEAL, json_bytes

_SEAL = re.compile(re.escape(SEAL) + rb"[^.]")  # with a dot it is a key of the metadata
_CHECKSUM = re.compile(rb'"checksum":\s*"[^"]*"')


def record(data: bytes) -> bytes:
    """``run.json``: the SHA-256 of its own content; the text stays as it is otherwise, repeated keys too."""
    try:
        body = json.loads(data.decode("utf-8"))
        body.pop("checksum", None)
        digest = b'"checksum": "' + hashlib.sha256(json_bytes(body)).hexdigest().encode() + b'"'
    except (ValueError, RecursionError, AttributeError, TypeError):
        return data
    if _CHECKSUM.search(data):
        return _CHECKSUM.sub(lambda _: digest, data)
    return data.rstrip().removesuffix(b"}") + (b", " if body else b"") + digest + b"}"


def parquet(data: bytes) -> bytes:
    """Parquet files of cuebench: the SHA-256 of all other bytes, before the footer, whose length is made to fit."""
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    start = footer - 32 - len(SEAL)
    if start < 0 or data[start : start + len(SEAL)] != SEAL:  # bytes of the footer were added or removed
        found = _SEAL.search(data)
        start = found.start() if found else len(data)
        footer = start + len(SEAL) + 32
    if len(data) < footer + 8:
        return data
    end = data[footer:-8] + (len(data) - footer - 8).to_bytes(4, "little") + b"PAR1"
    return data[:start] + SEAL + hashlib.sha256(data[:start] + end).digest() + end


def picture(data: bytes) -> bytes:
    """PNG: the CRC of every chunk. Other formats have none that a decoder compares."""
    signature = b"\x89PNG\r\n\x1a\n"
    if not data.startswith(signature):
        return data
    parts, at = [signature], len(signature)
    while at + 12 <= len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        body = data[at + 4 : at + 8 + length]
        parts.append(data[at : at + 4] + body + zlib.crc32(body).to_bytes(4, "big"))
        at += 12 + length
    return b"".join(parts) + data[at:]


def archive(data: bytes) -> bytes:
    """Zip: the CRC of every member. Tar: the sum of every header; then it is packed, by the choice of its bytes."""
    if data[257:262] == b"ustar":
        pack = (bytes, gzip.compress, bz2.compress, lzma.compress)[hashlib.sha256(data).digest()[0] % 4]
        return pack(_tar(data))
    return _zip(data) if b"PK\x03\x04" in data else data


def _tar(data: bytes) -> bytes:
    changed, at = bytearray(data), 0
    while at + 512 <= len(changed) and any(changed[at : at + 512]):
        changed[at + 148 : at + 156] = b" " * 8
        changed[at + 148 : at + 156] = b"%06o\0 " % sum(changed[at : at + 512])
        try:
            size = int(bytes(changed[at + 124 : at + 136]).strip(b" \0") or b"0", 8)
        except ValueError:
            break
        at += 512 + (max(size, 0) + 511) // 512 * 512
    return bytes(changed)


def _zip(data: bytes) -> bytes:
    """Walk over the list of members at the end; each names the place of its own header."""
    changed, at = bytearray(data), data.find(b"PK\x01\x02")
    while at >= 0 and at + 46 <= len(data):
        packing, size = struct.unpack_from("<H", data, at + 10)[0], struct.unpack_from("<I", data, at + 20)[0]
        local = struct.unpack_from("<I", data, at + 42)[0]
        if local + 30 <= len(data):
            name, extra = struct.unpack_from("<HH", data, local + 26)
            content = data[local + 30 + name + extra :][:size]
            if packing == 8:
                try:
                    content = zlib.decompressobj(-15).decompress(content, 1 << 20)
                except zlib.error:
                    content = b""
            struct.pack_into("<I", changed, at + 16, zlib.crc32(content))
            struct.pack_into("<I", changed, local + 14, zlib.crc32(content))
        at = data.find(b"PK\x01\x02", at + 4)
    return bytes(changed)
