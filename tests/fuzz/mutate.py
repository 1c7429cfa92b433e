"""Change bytes at random, by a seed: bits, cuts, repeats, insertions, words that readers know."""

from __future__ import annotations

import random

WORDS = {
    "csv": (b",", b'"', b"\n", b"\r", b";", b"\t", b"\0", b"\xff", b"\xef\xbb\xbf", b"\xc3\xa9", b"nan", b"inf",
            b"1e999", b"id,", b"logit_0", b"logit_00", b"prob_1", b"cat", b"Cat", b"1_0", b"-1", b"../", b"/etc/passwd",
            b"\x1b[2J", b" ", b"''", b'""', b"\xe2\x80\xae", b"file:", b"x" * 70_000, b"9" * 5_000),
    "json": (b"{", b"}", b"[", b"]", b'"', b",", b":", b"null", b"true", b"NaN", b"-Infinity", b"1e999", b"9" * 5_000,
             b"[" * 3_000, b'{"a":' * 2_000, b'"targets"', b'"cat"', b'"ids"', b"-1", b"0.5", b"\\ud800", b"\xff",
             b"\0", b"{}", b"[]", b'""', b"\x1b[2J", b'"format": 1', b'"format": 99'),
    "text": (b"?", b"&", b"=", b";", b":", b"/", b"..", b"%00", b"%ff", b"\xff", b"\0", b"nan", b"inf", b"1e999",
             b"~no",
             b"python:", b"file:", b"black:", b"@", b"{class}", b"[" * 3_000, b"x" * 9_000, b"\xe2\x80\xae", b"-",
             b" "),
    "bytes": (b"\0" * 4, b"\xff" * 4, b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"IHDR", b"IDAT", b"PK\x03\x04", b"PAR1",
              b"%!PS", b"\x01", b"\0\0\0\x01", b"GIF89a", b"../", b"\xff\xd8\xff\xe0"),
}  # fmt: skip
"""Kind of reader → words that are inserted."""


def mutated(data: bytes, kind: str, generator: random.Random) -> bytes:
    """Return changed bytes; one to eight changes, each small."""
    changed = bytearray(data)
    for _ in range(generator.choice((1, 1, 1, 2, 3, 8))):
        at = generator.randrange(len(changed) + 1)
        choice = generator.randrange(8)
        if choice == 0 and changed:
            changed[at % len(changed)] ^= 1 << generator.randrange(8)
        elif choice == 1 and changed:
            changed[at % len(changed)] = generator.randrange(256)
        elif choice == 2:
            del changed[at:]
        elif choice == 3:
            del changed[at : at + generator.randrange(1, 20)]
        elif choice == 4:
            start = generator.randrange(len(changed) + 1)
            changed[at:at] = changed[start : start + generator.randrange(1, 60)]
        elif choice == 5 and len(changed) >= 4:
            at = generator.randrange(len(changed) - 3)
            order = generator.choice(("big", "little"))
            changed[at : at + 4] = generator.choice((0, 1, 0x7FFFFFFF, 0xFFFFFFFF, 65536, 20_000)).to_bytes(4, order)
        else:
            word = generator.choice(WORDS[kind])
            end = at + (len(word) if generator.random() < 0.5 else 0)
            changed[at:end] = word
    return bytes(changed)
