"""The key of stored summaries: another one for all that decides what a protocol's `reduce` makes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cuebench.python_files import import_file
from cuebench.runs.summary_code import summary_code
from cuebench.source_code import notices_of_code

FILE = "import functools\nfrom cuebench.protocols import correctness\n{text}"
TEXTS = {
    "closure": "def made(k):\n    def reduce(s, l):\n        return k\n    return reduce\nreduce = made({k})",
    "default": "def reduce(s, l, k={k}): return k",
    "keyword default": "def reduce(s, l, *, k={k}): return k",
    "bound object": "class C:\n    def reduce(self, s, l): return self.k\nc = C()\nc.k = {k}\nreduce = c.reduce",
    "slot": "class C:\n    __slots__ = 'k'\n    def __call__(self, s, l): return self.k\nreduce = C()\nreduce.k = {k}",
    "attribute": "def reduce(s, l): return reduce.k\nreduce.k = {k}",
    "partial": "def f(s, l, k): return k\nreduce = functools.partial(f, k={k})",
    "partial of a partial": "def f(s, l, k): return k\nreduce = functools.partial(functools.partial(f), k={k})",
    "function in a partial": "def f(s, l, g): return g()\nreduce = functools.partial(f, g=(lambda k: lambda: k)({k}))",
    "wrapped function": (
        "def deco(f):\n    @functools.wraps(f)\n    def g(*a): return f(*a)\n    return g\n"
        "def made(k):\n    @deco\n    def f(s, l): return k\n    return f\nreduce = made({k})"
    ),
    "decorator": (
        "def deco(k):\n    def d(f):\n        @functools.wraps(f)\n        def g(*a): return f(*a), k\n"
        "        return g\n    return d\nreduce = deco({k})(correctness.reduce)"
    ),
    "global": "K = made = {k}\ndef reduce(s, l): return made",
}


def of_file(path: Path, text: str, **values: object) -> str:
    """Return the code of `reduce` of a file that says how it is made with a value which its text does not show."""
    path.write_text(FILE.format(text=text.format(**values)))
    return summary_code(import_file(path).reduce)


@pytest.mark.parametrize("name", TEXTS)
def test_what_decides_a_summary(name: str, tmp_path: Path) -> None:
    def code(k: float) -> str:
        (tmp_path / "value.txt").write_text(str(k))
        read = "float(__import__('pathlib').Path(__file__).with_name('value.txt').read_text())"
        return of_file(tmp_path / "mine.py", TEXTS[name], k=read)

    one, same, other = map(code, (0.30, 0.30, 0.31))
    assert one == same != other


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    text = "numbers = (n for n in range(3))\ndef reduce(s, l): return next(numbers)"
    notices_of_code()
    assert of_file(tmp_path / "mine.py", text) != of_file(tmp_path / "mine.py", text)
    (notice,) = notices_of_code()
    assert "mine.reduce: answers are not found again later" in notice
    assert "numbers" in notice


def test_a_summary_counts_the_same_anywhere(tmp_path: Path) -> None:
    text = (
        "import logging, threading\nfrom pathlib import Path\nHERE = Path(__file__).parent\nlock = threading.Lock()\n"
        "log = logging.getLogger(__name__)\ndef reduce(s, l):\n    log.info(HERE)\n    return lock, {k}"
    )
    found = []
    for place, k in (("one", 1), ("two", 1), ("three", 2)):
        (tmp_path / place).mkdir()
        found.append(of_file(tmp_path / place / "mine.py", text, k=k))
    assert found[0] == found[1] != found[2]


def test_what_wraps_a_built_in_summary(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from cuebench import source_code

    before = of_file(tmp_path / "mine.py", TEXTS["decorator"], k=1)
    read = source_code._read

    def edited(name: str, path: str) -> bytes:
        return read(name, path) + b"K = 1\n" * path.endswith("protocols/correctness.py")

    monkeypatch.setattr(source_code, "_read", edited)
    assert of_file(tmp_path / "mine.py", TEXTS["decorator"], k=1) != before


@pytest.mark.parametrize("reload", [False, True])
def test_a_helper_that_is_edited_after_it_was_imported(
    reload: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.delitem(sys.modules, "edited_helper", raising=False)
    text = "import edited_helper\ndef reduce(s, l): return edited_helper.table"

    def edit(k: int) -> None:
        (tmp_path / "edited_helper.py").write_text(f"table = [{k}]\n")

    edit(1)
    code: Callable[[], str] = lambda: of_file(tmp_path / "mine.py", text)  # noqa: E731
    first = code()
    notices_of_code()
    edit(2)
    if reload:
        monkeypatch.delitem(sys.modules, "edited_helper")
        second = code()
        assert code() == second != first
        assert not notices_of_code()
    else:
        assert len({first, code(), code()}) == 3, "old code is running: never found again"
        assert "edited_helper.py" in notices_of_code()[0]
        assert not notices_of_code()
    edit(1)
    monkeypatch.delitem(sys.modules, "edited_helper", raising=False)
    assert code() == first
    monkeypatch.delitem(sys.modules, "edited_helper")
