"""The commands that messages name: every one can be parsed, and those that are cheap are followed."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
import typer

from cuebench import cli
from small_data import write_cue_conflict
from test_docs import check_command, every_option

SOURCE = Path(__file__).parents[1] / "src" / "cuebench"
VALUE = "VALUE"
"""Stands for what a message fills in."""
END = re.compile(r"[;)`'\"\n]|, |\. |: | \((?!s\))| writes | shows | measures | has | then | or | and ")
"""Where a command ends in a sentence."""
PROSE = {"itself", "knows", "refuses", "reads", "uses", "draws", "makes", "has", "wrote", "used", "that", "must", "is"}
"""What follows the name of the program in sentences about it."""
OF_OTHERS = {
    *("--help", "--version"),
    *("--config", "--dest"),  # mim
    "--mmproj",  # llama.cpp
    *("--head", "--address"),  # ray
    *("--ignore-scripts", "--pack-destination", "--silent"),  # npm
    *("--disable-background-networking", "--disable-gpu", "--no-sandbox"),  # the browser
}
"""Options of other programs, and of the library of the command line."""


class Text(NamedTuple):
    """A text in the source, and where it is."""

    place: str
    text: str


def text_of(node: ast.AST) -> str | None:
    """Return a text, with `VALUE` for what is filled in; None for anything else."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(str(v.value) if isinstance(v, ast.Constant) else VALUE for v in node.values)
    return None


def texts() -> Iterator[Text]:
    """Yield all texts of the source but docstrings."""
    for path in sorted(SOURCE.rglob("*.py")):
        nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
        left_out = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        left_out |= {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
        for node in nodes:
            text = text_of(node) if id(node) not in left_out else None
            if text and "$" not in text:  # a template of a file
                yield Text(f"{path.relative_to(SOURCE)}:{getattr(node, 'lineno', 0)}", text)


class Hint(NamedTuple):
    """A command in a message; one in backquotes or with ``…`` need not have all arguments."""

    words: list[str]
    complete: bool


def hints(text: str) -> Iterator[Hint]:
    """Yield the commands in a text."""
    for match in re.finditer(r"(`|\bthis |\bthat |\bearlier |\bof )?\bcuebench (?=[a-z…])", text):
        before = match[1] or ""
        command = END.split(text[match.end() :], maxsplit=1)[0].strip().rstrip(".,")
        first = command.split()[0] if command.split() else ""
        if before not in ("", "`") or first in PROSE or first == "…":
            continue
        complete = before != "`" and "…" not in command and " " in command
        command = re.sub(r"(?<= )(--?[a-z-]+) …", rf"\1 {VALUE}", command)
        words = [word.removesuffix("…") for word in command.split() if word != "…"]
        if not complete and words[-1].startswith("-"):
            words.append(VALUE)
        spec = "ideal:shape"  # stands for any observer
        yield Hint(
            [spec if before == "-o" and word.isupper() else word for before, word in pairwise(["", *words])], complete
        )


def test_every_command_in_a_message_can_be_given() -> None:
    problems, seen = [], 0
    for place, text in texts():
        for words, complete in hints(text):
            seen += 1
            try:
                check_command(words, complete)
            except typer.Exit:  # --help
                pass
            except Exception as error:  # all at once
                problems.append(f"{place}: cuebench {shlex.join(words)}: {type(error).__name__}: {error}")
    assert seen > 80
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("write one with: cuebench study export STUDY", "out"),
        ("see: cuebench study analyse, or look elsewhere", "source"),
        ("score it again: cuebench scores RUN", "verb"),
        ("score it again (cuebench score RUN --again); then go on", "again"),
        ("run it: cuebench run -p cue_conflit -o MODEL …", "cue_conflit"),
    ],
)
def test_a_command_that_cannot_be_given_is_found(text: str, problem: str) -> None:
    (hint,) = hints(text)
    with pytest.raises(Exception, match=problem):
        check_command(hint.words, hint.complete)


def test_every_option_in_a_message_exists() -> None:
    named = {(flag, place) for place, text in texts() for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)}
    unknown = sorted(f"{place}: {flag}" for flag, place in named if flag not in every_option() | OF_OTHERS)
    assert unknown == []


# ------------------------------------------------------------------------------------------------------- followed


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a small data root, a run, half of a shared run, and a table that is no export."""
    monkeypatch.chdir(tmp_path)
    write_cue_conflict(tmp_path / "data")
    begin = ["run", "-o", "ideal:shape", "-p", "cue_conflict", "--data-root", "data", "--resamples", "100", "-q"]
    assert cli.invoke([*begin, "--out", "run"]) == 0
    assert cli.invoke([*begin, "--out", "half", "--shard-size", "4", "--shard", "1/2"]) == 0
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    return tmp_path


FOLLOWED = [
    (["figure", "shape_bias"], {"RUN": "run"}),
    (["published", "export"], {}),
    (["report", "half"], {}),
    (["compare", "half"], {}),
    (["data", "check"], {"DIR": "data"}),
    (["make", "cue_conflict", "--nope", "--json"], {}),
    (["study", "analyse", "table.csv", "--nope", "--json"], {}),
]
"""A command with a mistake, and what stands for the words in capitals of its hint."""


@pytest.mark.parametrize(("command", "values"), FOLLOWED, ids=[" ".join(c) for c, _ in FOLLOWED])
def test_hints_that_are_followed_work(
    command: list[str], values: dict[str, str], place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    cli.invoke(command)
    printed = capsys.readouterr()
    (hint,) = hints((printed.out + printed.err).rpartition("→")[2])
    words = [values.get(word, word) for word in hint.words]
    assert cli.invoke(words) == 0, (words, capsys.readouterr())
