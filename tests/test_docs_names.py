"""The documentation against the code: names, paths, lists of parts and headlines that pages show."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

from cuebench import registry
from cuebench.reports.comparison import LARGER
from docs_pages import DOCS, PAGES, ROOT, SOURCE, WRITTEN, blocks, spans, text_of

PLACEHOLDER = re.compile(r"[A-Z][A-Z0-9_]*…?")
"""A word that the reader replaces: ``RUN``, ``DIR``, ``FILE``."""


@pytest.fixture(params=PAGES, ids=lambda page: page.name)
def page(request) -> str:
    return text_of(request.param)


@pytest.fixture(params=WRITTEN, ids=lambda path: path.relative_to(ROOT).as_posix())
def written(request) -> str:
    return text_of(request.param)


def test_names_of_modules_and_functions_exist(written):
    not_modules = {"cuebench.stimulus_set", *(parts.group for parts in registry.KINDS.values())}
    text = " ".join([*spans(written), *(b.text for b in blocks(written) if b.language == "python")])
    for name in dict.fromkeys(re.findall(r"\bcuebench(?:\.[A-Za-z_]\w*)+", text)):
        parts = name.split(".")
        end = next((i for i, part in enumerate(parts) if PLACEHOLDER.fullmatch(part)), len(parts))
        assert name in not_modules or _resolves(parts[:end]), f"{name} does not exist"


def _resolves(parts: list[str]) -> bool:
    value: Any = importlib.import_module(parts[0])
    for position, part in enumerate(parts[1:], start=2):
        try:
            value = getattr(value, part)
        except AttributeError:
            try:
                value = importlib.import_module(".".join(parts[:position]))
            except ImportError:
                return False
    return True


def path_problems(page: str) -> list[str]:
    """Return the paths of the repository that a page names and that do not exist."""
    rooms = [p.parent.name for p in (SOURCE / "cuebench").glob("*/__init__.py")]
    top = r"(?:tests|src|benchmarks|gallery|examples|docs|tools|\.ci)/[\w./-]*\w"
    inside = rf"(?:{'|'.join(rooms)})/[\w./-]*\w\.(?:py|md|csv|json|toml|js|html|css)"
    single = r"(?:Makefile|pyproject\.toml|constraints\.txt|[A-Z]{4,}\.(?:md|cff))"
    problems = []
    for span in [*spans(page), *re.findall(r"\b(?:python -m pytest|pytest) (.*)", page)]:
        for path in re.findall(rf"(?<![\w/$.\-])({top}|{inside}|{single})(?![\w/])", span):
            shown = f"# {Path(path).name}\n" in page or "my_" in path  # a file that the page tells the reader to write
            there = any((base / path).exists() for base in (ROOT, SOURCE / "cuebench", ROOT / "examples" / "plugin"))
            problems += [] if there or shown or path.startswith("runs/") else [f"{path} does not exist"]
    return problems


def test_paths_of_the_repository_exist(written):
    assert not path_problems(written)


@pytest.mark.parametrize(
    "text", ["`src/cuebench/study/wep/words`", "`reports/theme.js`", "`docs/none.md`", "`STYLE.md`", "`.ci/start`"]
)
def test_a_wrong_path_in_the_text_is_a_problem(text):
    assert path_problems(f"See {text}.")


def test_the_tree_of_the_design_is_the_one_of_the_source():
    (tree,) = [b.text for b in blocks((DOCS / "design.md").read_text("utf-8")) if b.text.startswith("src/cuebench/")]
    for line in tree.splitlines()[1:]:
        for name in re.findall(r"\w+(?:\.py|/)", line[: 60 if line.startswith("  ") else 0].split("    ")[0]):
            assert (SOURCE / "cuebench" / name).exists(), f"design.md: {name}"


def call_problems(page: str) -> list[str]:
    """Return what is wrong with targets of the Makefile, and with benchmarks and their options, that a page names."""
    targets = {*re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE), *registry.makers}
    problems = []
    for line in [*spans(page), *(line.removeprefix("$ ") for _, text in blocks(page) for line in text.splitlines())]:
        problems += [f"make {name}" for name in re.findall(r"^make ([a-z][\w-]*)", line) if name not in targets]
        for name, rest in re.findall(r"-m benchmarks[ .]([a-z]\w*)([^#]*)", line):
            script = ROOT / "benchmarks" / f"{name}.py"
            text = script.read_text("utf-8") if script.is_file() else ""
            options = re.findall(r"--[a-z][\w-]*", rest)
            problems += [f"benchmarks {name} {o}" for o in options if f'"{o}"' not in text] if text else [name]
    return problems


def test_targets_and_benchmarks_exist(written):
    assert not call_problems(written)


@pytest.mark.parametrize(
    "text",
    [
        "`make tests`",
        "`python -m benchmarks studies`",
        "```\n$ make al\n```\n",
        "`python -m benchmarks.study --people 3`",
    ],
)
def test_a_wrong_target_or_benchmark_is_a_problem(text):
    assert call_problems(text)


def test_links_between_pages_lead_somewhere():
    for page in WRITTEN:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_pages_cite_nothing_that_users_do_not_have(page):
    for private in ("definitions.md", "demands.md", "../shared", "/work/", "MANIFEST.md"):
        assert private not in page


def _built_in_protocols() -> list[str]:
    return [name for name in registry.protocols if registry.protocols.origin(name) == registry.BUILT_IN]


def test_the_table_of_headlines_is_the_declared_one():
    text = (DOCS / "metrics.md").read_text("utf-8")
    lines = re.findall(r"^\| `(\w+)` \| `(\w+)` \| (.+) \| (more [a-z ]+) \| (.*)\|$", text, re.MULTILINE)
    table = {protocol: cells for protocol, *cells in lines}
    assert sorted(table) == sorted(_built_in_protocols())
    for protocol, (metric, conditions, larger, plane) in table.items():
        headline = registry.protocols.get(protocol).headline
        shown = re.findall(r"`([^`]+)`", conditions)
        number = len(shown) if "then other" in conditions else len(headline.conditions)
        axes = [axis.metric for axis in headline.plane or ()]
        named = [name for name in re.findall(r"`([^`]+)`", plane) if name in registry.metrics]
        assert metric == headline.metric
        assert shown == [c for c in headline.conditions if "then" not in conditions or "*" not in c][:number]
        assert larger == LARGER[headline.direction]
        assert named == list(dict.fromkeys(axes))


LISTS = {
    "protocols": "metrics.md",
    "metrics": "metrics.md",
    "cues": "cues.md",
    "figures": "figures.md",
    "observers": "own_models.md",
    "readers": "stimuli.md",
    "makers": "stimuli.md",
    "datasets": "stimuli.md",
    "sources": "stimuli.md",
}
"""Kind of part → the page that lists all of them."""
HEADINGS = {"figure": "figures", "reader": "readers", "maker": "makers", "cue": "cues", "metric": "metrics",
            "source of observers": "observers"}  # fmt: skip
"""Heading of the first column of a table → the kind of part that it lists."""
PARTS = {kind: [n for n in parts if parts.origin(n) == registry.BUILT_IN] for kind, parts in registry.KINDS.items()}
"""Before other tests add parts of their own."""


@pytest.mark.parametrize("kind", registry.KINDS)
def test_the_page_that_lists_parts_lists_all(kind):
    text = (DOCS / LISTS[kind]).read_text("utf-8")
    listed = set(re.findall(r"\b\w+\b", " ".join([*spans(text), *(b.text for b in blocks(text))])))
    assert not set(PARTS[kind]) - listed, f"docs/{LISTS[kind]} lists not all {kind}"


def test_tables_of_parts_name_parts_that_exist(page):
    for heading, rows in re.findall(r"^\| ([^|]+?) \|.*\n\|[-| ]+\n((?:\|.*\n?)+)", page, re.MULTILINE):
        first = [row.split("|")[1] for row in rows.splitlines()] if heading in HEADINGS else []
        names = [name for cell in first for name in re.findall(r"`([a-z]\w*)`", cell)]
        unknown = [name for name in names if name not in registry.KINDS[HEADINGS[heading]]]
        assert not unknown, f"{heading}: {', '.join(unknown)}"


HEADLINES = {
    "refined_bias.md": ["refined_bias"],
    "triplets.md": ["triplets"],
    "texture_association.md": ["texture_association"],
    "cue_decomposition.md": ["cue_decomposition", "cue_decomposition_segmentation", "corruption_robustness"],
}


@pytest.mark.parametrize("name", HEADLINES)
def test_the_page_of_a_protocol_states_its_headline(name):
    text = " ".join((DOCS / name).read_text("utf-8").split("**Headline", 1)[1].split("\n\n")[0].split())
    for protocol in HEADLINES[name]:
        headline = registry.protocols.get(protocol).headline
        assert f"`{headline.metric}` in `{headline.conditions[0]}`" in text
        assert f"larger means {LARGER[headline.direction]}" in text
        assert all(f"`{axis.metric}`" in text for axis in headline.plane or ())
