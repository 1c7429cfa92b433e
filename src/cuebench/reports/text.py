"""Texts in figures: names that are short and still different, and how much room they take."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cuebench.errors import printable

_NARROW, _WIDE = frozenset("iljtfrI.,:;|!()[]'/- "), frozenset("mwMW%@—…→")
_FILES = frozenset({"onnx", "safetensors", "pt", "pth", "csv", "parquet"})


def width_of(text: str, size: float = 7.0) -> float:
    """Estimate the width of a text in points, in the sans-serif font of the figures.

    >>> width_of("iii") < width_of("mmm")
    True
    """
    return size * sum(_em(sign) for sign in text)


def _em(sign: str) -> float:
    if sign in _NARROW:
        return 0.3
    if sign in _WIDE:
        return 0.88
    if ord(sign) > 0x2E80:
        return 1.0
    return 0.68 if sign.isupper() else 0.51


def wrapped(text: str, room: float, size: float) -> list[str]:
    """Break a text into lines that fit into the room, between words."""
    lines: list[str] = []
    for word in printable(text).split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and width_of(longer, size) <= room:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def shorten(text: str, most: int = 28) -> str:
    """Cut the middle out of a long name, and anything that cannot be printed.

    >>> shorten("a very long name of a class", 11)
    'a ver…class'
    """
    clean = " ".join(printable(text).split())
    if len(clean) <= most:
        return clean
    end = (most - 1) // 2
    return f"{clean[: most - 1 - end]}…{clean[-end:]}"


def words(name: str) -> str:
    """Return an identifier as words: ``polka_dotted`` → ``polka dotted``."""
    return shorten(name.replace("_", " "), 40)


def short_name(observer: str, among: Sequence[str] = ()) -> str:
    """Return the telling part of an observer's spec: ``onnx:/a/b/net.onnx`` → ``net``."""
    bare = observer.partition("?")[0].partition(":")[2] or observer
    name = Path(bare).name or bare
    stem = name.rsplit(".", 1)[0] if name.rsplit(".", 1)[-1] in _FILES else name
    same = [o for o in among if o != observer and short_name(o) == stem]
    return observer if same else stem


def distinct(texts: Sequence[str], most: int = 28) -> list[str]:
    """Shorten texts so that they stay different; those that would be alike get a number.

    >>> distinct(["network of a", "network of a", "b"], 10)
    ['netwo…of a', 'netwo…of a (2)', 'b']
    """
    seen: dict[str, int] = {}
    result = []
    for text in texts:
        short = shorten(text, most)
        seen[short] = seen.get(short, 0) + 1
        result.append(short if seen[short] == 1 else f"{short} ({seen[short]})")
    return result


def percent(value: float) -> str:
    """Return a share as a text: ``0.256`` → ``26 %``."""
    return f"{100 * value:.0f} %"
