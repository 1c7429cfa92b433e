"""Texts in figures: names that are short and still different, and how much room they take."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cuebench.errors import printable

_EM = {
    0.2: "'",
    0.222: "ijl",
    0.278: " !,./:;I[]\\ft",
    0.333: "()-`r{}|",
    0.39: '*"',
    0.5: "Jckvsxyz^",
    0.556: "#$0123456789?L_abdeghnopqu",
    0.6: "+<=>~FTZ",
    0.667: "&ABEKPSVXY",
    0.722: "CDHNRUw",
    0.78: "GOQ",
    0.86: "%Mm",
    0.98: "W@…—→←",
}
_WIDTHS = {sign: width for width, signs in _EM.items() for sign in signs}
"""Widths of the letters of Helvetica and Arial, in parts of the size."""
_BOLD = 1.07
_FILES = frozenset({"onnx", "safetensors", "pt", "pth", "csv", "parquet"})


def harmless(text: str) -> str:
    """Return a text without anything that cannot be printed; ``?`` stands in for it, as fonts have that sign."""
    return printable(text).replace("\ufffd", "?")


def width_of(text: str, size: float = 7.0, *, bold: bool = False) -> float:
    """Return about how wide a text is, in points, in the sans-serif font of the figures.

    >>> width_of("iii") < width_of("mmm")
    True
    """
    plain = size * sum(_WIDTHS.get(sign, 1.0 if ord(sign) > 0x2E80 else 0.6) for sign in text)
    return plain * _BOLD if bold else plain


def wrapped(text: str, room: float, size: float, *, bold: bool = False) -> list[str]:
    """Break a text into lines that fit into the room, between words; a word that is too long is cut."""
    lines: list[str] = []
    for word in harmless(text).split():
        most = len(word)
        while most > 3 and width_of(shorten(word, most), size, bold=bold) > room:
            most -= 1
        word = shorten(word, most)
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and width_of(longer, size, bold=bold) <= room:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def shorten(text: str, most: int = 28) -> str:
    """Cut the middle out of a long name, and anything that cannot be printed.

    >>> shorten("a very long name of a class", 11)
    'a ver…class'
    """
    clean = " ".join(harmless(text).split())
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
