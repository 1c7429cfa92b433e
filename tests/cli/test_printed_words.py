"""Whatever heads a column, names a verb or a flag, or is a column of an export can be asked of ``explain``."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.table import Table

from cuebench import catalogue, cli
from cuebench.cli.explain import facts_of
from cuebench.errors import UserError
from small_data import write_cue_conflict

SOURCES = sorted(Path(cli.__file__).parent.glob("*.py"))


def literal_headings(file: Path) -> Iterator[str]:
    """Yield the texts that a module writes above columns: arguments of ``Column`` and ``add_column``, and of loops."""
    tree = ast.parse(file.read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args and ast.unparse(node.func).split(".")[-1] in HEADED:
            first = node.args[0]
            yield from _texts(first.elts if isinstance(first, ast.Tuple) else [first])
        if isinstance(node, ast.For) and isinstance(node.iter, ast.Tuple) and ".add_column(" in ast.unparse(node):
            for item in node.iter.elts:
                yield from _texts(item.elts[:1] if isinstance(item, ast.Tuple) else [item])


HEADED = {"Column", "add_column", "_print"}


def _texts(nodes: list[ast.expr]) -> Iterator[str]:
    yield from (n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str) and n.value)


def unexplained(words: set[str]) -> list[str]:
    missing = []
    for word in sorted(words):
        try:
            facts_of(word)
        except UserError:
            missing.append(word)
    return missing


def test_the_headings_of_all_verbs_are_explained() -> None:
    headings = {heading for file in SOURCES for heading in literal_headings(file)}
    assert len(headings) > 40, "the search for headings finds too little"
    assert unexplained(headings) == []


def test_the_columns_of_lists_are_explained() -> None:
    columns = {column for kind in catalogue.kinds() for row in catalogue.rows(kind)[:1] for column in row}
    assert unexplained(columns) == []


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("words")
    observers = ["-o", "ideal:shape", "-o", "ideal:mixture?shape=0.6", "-o", "ideal:texture"]
    data = ["--data-root", str(write_cue_conflict(folder / "data"))]
    words = ["run", *observers, "-p", "cue_conflict", *data, "--resamples", "100", "-q", "--out", str(folder / "run")]
    assert cli.invoke(words) == 0
    return folder / "run"


@pytest.mark.parametrize("verb", [["report"], ["compare", "--all"], ["trials"]], ids=lambda words: words[0])
def test_what_verbs_print_is_explained(
    run: Path, verb: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    headings: set[str] = set()
    add = Table.add_column

    def noting(table: Table, header: object = "", *arguments: object, **options: object) -> None:
        headings.add(str(header))
        add(table, header, *arguments, **options)

    monkeypatch.setattr(Table, "add_column", noting)
    assert cli.invoke([verb[0], str(run), *verb[1:]]) == 0
    assert headings
    assert unexplained(headings - {""}) == []


def test_the_columns_of_exports_are_explained(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke(["compare", str(run), "--json"]) == 0
    compared = json.loads(capsys.readouterr().out)
    assert cli.invoke(["published", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    columns = {column for row in (*compared["pairs"], *compared["models"], *listed) for column in row}
    assert len(columns) > 20
    assert unexplained(columns) == []


@pytest.mark.parametrize("verb", cli.verbs())
def test_every_verb_and_its_flags_are_explained(verb: str) -> None:
    facts = facts_of(verb)
    assert any(f"cuebench {verb}" in str(fact) for fact in [*facts, *facts.values()])
    flags = [line.split(":")[0].split(",")[0] for line in facts.get("flags", facts.get("verb: flags", []))]
    assert unexplained({flag for flag in flags if flag.startswith("--")}) == []


@pytest.mark.parametrize("word", sorted(cli.ALIASES))
def test_words_that_people_try_lead_to_a_verb(word: str) -> None:
    assert cli.ALIASES[word][0] in cli.verbs()
    assert word not in cli.verbs()
    facts_of(word)
