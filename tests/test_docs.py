"""The documentation against the code: commands and examples that pages show."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import re
import shlex
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer

from cuebench import catalogue, cli, options, registry
from cuebench.catalogue.explain import explain
from cuebench.cues.by_name import parse_options
from cuebench.observers.base import Spec
from cuebench.published.tables import entries
from cuebench.stimuli.makers.base import FLAGS
from docs_pages import DOCS, PAGES, ROOT, WRITTEN, blocks, spans, text_of

PLACEHOLDER = re.compile(r"[A-Z][A-Z0-9_]*…?")
"""A word that the reader replaces: ``RUN``, ``DIR``, ``FILE``."""
NOT_SHELL = {"python", "json", "csv", "toml", "text", "yaml"}
"""Languages of code blocks without commands."""


@pytest.fixture(params=PAGES, ids=lambda page: page.name)
def page(request) -> str:
    return text_of(request.param)


@pytest.fixture(params=WRITTEN, ids=lambda path: path.relative_to(ROOT).as_posix())
def written(request) -> str:
    return text_of(request.param)


# ------------------------------------------------------------------------------------------- the text of a page


class Command(NamedTuple):
    """A command line of a page; in running text required arguments may be left out."""

    words: list[str]
    complete: bool


def commands(page: str) -> Iterator[Command]:
    """Yield the command lines of blocks (``cuebench …`` or ``$ cuebench …``) and of the text."""
    for language, text in blocks(page):
        lines = re.sub(r"\\\n\s*", " ", text).splitlines() if language not in NOT_SHELL else []
        prompts = any(line.startswith("$ ") for line in lines)  # then all other lines are output
        for line in lines:
            if line.startswith("$ cuebench " if prompts else "cuebench "):
                yield Command(_words(line.removeprefix("$ ")), complete=True)
    yield from (Command(_words(span), complete=False) for span in spans(page) if span.startswith("cuebench "))


def _words(line: str) -> list[str]:
    """Return the arguments of a command line without comments, brackets of optional arguments and ``…``."""
    line = re.sub(r"\s#\s.*", "", line)
    line = re.sub(r"(?<=\s)\[|\](?=\s|$)", "", line)
    words = shlex.split(line)[1:]
    end = next((i for i, word in enumerate(words) if word in {"|", "&&", ">"}), len(words))
    return [word.removesuffix("…") for word in words[:end] if word != "…"]


# ------------------------------------------------------------------------------------------- commands


def parser_of(verb: str, sub: str = "", *, complete: bool = True) -> Any:
    """Return the parser of a verb, or of the sub-command of one; without ``complete``, nothing is required."""
    module = importlib.import_module(f"cuebench.cli.{verb.replace('-', '_')}")
    app = typer.Typer()
    app.command()(module.COMMANDS[sub] if sub else module.command)
    parser = typer.main.get_command(app)
    for parameter in parser.params:
        parameter.required = parameter.required and complete
    return parser


def _sub_commands(verb: str) -> list[str]:
    return list(getattr(importlib.import_module(f"cuebench.cli.{verb.replace('-', '_')}"), "COMMANDS", ()))


def check_command(words: list[str], complete: bool) -> None:
    """Parse a command line and look up every part that it names.

    Raises
    ------
    Exception
        For an unknown verb, option, part or option of a part, and a wrong value.
    """
    if words in ([], *([flag] for flag in OF_ALL)):
        return
    verb, *arguments = cli.with_explained(words)
    assert verb in cli.verbs(), f"no verb {verb!r}"
    subs = _sub_commands(verb)
    if subs and not arguments and not complete:
        return
    default = getattr(importlib.import_module(f"cuebench.cli.{verb.replace('-', '_')}"), "DEFAULT", "")
    if default and arguments[0] not in subs:
        arguments = [default, *arguments]
    assert not subs or arguments[0] in subs, f"cuebench {verb} has {', '.join(subs)}"
    sub = arguments.pop(0) if subs else ""
    parser = parser_of(verb, sub, complete=complete)
    context = parser.make_context(verb, arguments)
    values = {name: value for name, value in context.params.items() if value not in (None, "", [], ())}
    PART_CHECKS.get(f"{verb} {sub}".strip(), lambda **_: None)(**values)


def known(part: str) -> bool:
    """Tell whether a name can be looked up: not left out, not a placeholder, not in a file of the reader's."""
    return bool(part) and not PLACEHOLDER.fullmatch(part) and not part.startswith(registry.SCHEME)


def check_run(observer=(), protocol=(), settings=(), **_: Any) -> None:
    for spec in observer:
        check_observer(spec)
    names = [name for name in protocol if known(name)]
    for name in names:
        registry.protocols.get(name)
    for key, value in options.split(settings).items():
        name, _, option = key.partition(".")
        assert not protocol or name in protocol, f"--set {key}: the command does not run {name}"
        check_options(registry.protocols.get(name), {option: value})


def check_observer(spec: str) -> None:
    parsed = Spec.parse(spec)
    check_options(registry.adapters.get(parsed.scheme), parsed.options)


def check_options(part: Any, texts: dict[str, str]) -> None:
    """Parse options of a part; a placeholder stands for any value."""
    concrete = {key: text for key, text in texts.items() if known(text)}
    options.parse(part.options, concrete, part.__class__.__name__)
    assert set(texts) <= set(part.options), f"{set(texts) - set(part.options)} is not an option"


def check_named(kind: str) -> Callable[..., None]:
    """Return the check of a command whose argument is a part with options."""

    def check(name="", settings=(), **_: Any) -> None:
        if name and known(name):
            check_options(registry.KINDS[kind].get(name), options.split(settings, FLAGS if kind == "makers" else {}))

    return check


def check_cue(name="", settings=(), sheet=None, **_: Any) -> None:
    if sheet is None and name and known(name):
        parse_options(registry.cues.get(name), options.split(settings), f"cue {name!r}")


def check_columns(x="", y="", **_: Any) -> None:
    for column in (x, y):
        metric = column.partition("@")[0].rpartition(":")[2]
        assert not column or metric in registry.metrics or column in registry.protocols, f"no column {column!r}"


def check_published(paper="", table="", model="", metric="", **_: Any) -> None:
    wanted = {"paper": paper, "table": table, "model": model, "metric": metric}
    entries(**{name: value for name, value in wanted.items() if known(value)})


PART_CHECKS: dict[str, Callable[..., None]] = {
    "run": check_run,
    "score": check_run,
    "compare": check_run,
    "texture-of": lambda observer="", **_: check_run(observer=[observer] if observer else []),
    "make": check_named("makers"),
    "figure": check_named("figures"),
    "fetch": lambda name="", **_: known(name) and registry.datasets.get(name),
    "cue": check_cue,
    "list": lambda kind="", **_: known(kind) and catalogue.rows(kind),
    "explain": lambda name="", **_: known(name) and explain(name),
    "data check": lambda protocol="", **_: check_run(protocol=[protocol]),
    "correlate": check_columns,
    "published list": check_published,
}
"""Command → what looks up the parts that it names."""


def command_problems(page: str) -> list[str]:
    """Return what is wrong with the commands of a page, and with options that are named in its text."""
    problems = []
    for words, complete in commands(page):
        try:
            check_command(words, complete)
        except Exception as error:  # one page at a time: all problems of it
            problems.append(f"cuebench {shlex.join(words)}: {type(error).__name__}: {error}")
    there = every_option() | OF_ALL | (OF_BENCHMARKS if "python -m benchmarks" in page else set())
    return problems + [f"{span}: {problem}" for span in spans(page) if (problem := _option_problem(span, there))]


OF_ALL = {"--help", "--version", "--install-completion", "--show-completion"}
OF_BENCHMARKS = {
    option
    for path in (ROOT / "benchmarks").glob("*.py")
    for option in re.findall(r'"(--[a-z][\w-]*)"', path.read_text())
}


def _option_problem(span: str, there: set[str]) -> str:
    """Return what is wrong with options in running text, ``--set triplets.draw=all``; empty where nothing is."""
    if not re.match(r"--?[a-z]", span):
        return ""
    words = span.split()
    unknown = [word for word in words if word.startswith("--") and word.partition("=")[0] not in there]
    settings = [after.partition("=")[0] for before, after in pairwise(words) if before == "--set"]
    unknown += [key for key in settings if known(key.rpartition(".")[2]) and key not in every_setting()]
    return f"no option {', '.join(unknown)}" if unknown else ""


@cache
def every_option() -> set[str]:
    """Return the options of all verbs."""
    parsers = [parser_of(verb, sub) for verb in cli.verbs() for sub in (_sub_commands(verb) or [""])]
    names = (name for parser in parsers for p in parser.params for name in (*p.opts, *p.secondary_opts))
    return {cli.ALLOW_CODE, *names}


@cache
def every_setting() -> set[str]:
    """Return what can be set with ``--set`` in any verb."""
    protocols = {f"{n}.{option}" for n in registry.protocols for option in registry.protocols.get(n).options}
    makers = {option for n in registry.makers for option in registry.makers.get(n).options}
    figures = {option for n in registry.figures for option in registry.figures.get(n).options}
    cues = {option for n in registry.cues for option in inspect.signature(registry.cues.get(n)).parameters}
    return protocols | makers | figures | cues


def test_commands_can_be_parsed_and_name_parts_that_exist(written):
    assert not command_problems(written)


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("cuebench comparison RUN", "no verb"),
        ("cuebench make cue_conflict", "out"),
        ("cuebench run -o ideal:shape -p cue_conflict --out RUN --limt 3", "limt"),
        ("cuebench run -o ideal:shape -p cue_conflict --out RUN --limit few", "few"),
        ("cuebench run -o ideal:shape -p cue_conflit --out RUN", "cue_conflit"),
        ("cuebench run -o ideal:shap?lapsus=1 -p cue_conflict --out RUN", "lapsus"),
        ("cuebench run -o timmm:resnet50 -p cue_conflict --out RUN", "timmm"),
        ("cuebench run -o ideal:shape -p triplets --out RUN --baselines 10", "--baselines"),
        ("cuebench run -o ideal:shape -p triplets --out RUN --set triplets.baselines=many", "many"),
        ("cuebench run -o ideal:shape -p triplets --out RUN --set triplets.layer=all", "layer"),
        ("cuebench run -o ideal:shape -p cue_conflict --out RUN --set triplets.draw=all", "does not run"),
        ("cuebench make cue_conflict --out DIR --set siz=9", "siz"),
        ("cuebench cue voronoi_shuffle A B --set site=9", "site"),
        ("cuebench figure tav_heatmap RUN --set rows=9", "rows"),
        ("cuebench data chek refined_bias", "check"),
        ("cuebench explain shape_biass", "shape_biass"),
        ("cuebench correlate RUN --x robustness@mean", "robustness"),
    ],
)
def test_a_wrong_command_in_a_page_is_a_problem(command, problem):
    (message,) = command_problems(f"# Title\n\n```\n{command}\n```\n")
    assert problem in message


@pytest.mark.parametrize("text", ["`--baselines 10`", "`--set triplets.featurs=all`", "`cuebench balance RUN`"])
def test_a_wrong_option_in_the_text_is_a_problem(text):
    assert command_problems(f"Use {text}.")


def test_optional_arguments_comments_continued_lines_and_output_are_understood():
    output = "```\n$ cuebench list \\\n    metrics  # all\ncuebench is not a command here\n```\n"
    text = f"{output}\n```\ncuebench doctor [--json]\n```\n"
    assert [c.words for c in commands(text)] == [["list", "metrics"], ["doctor", "--json"]]


def test_observers_in_the_text_have_options_that_exist(written):
    for span in spans(written):
        spec = span.removeprefix("-o ")
        if re.fullmatch(rf"({'|'.join(registry.adapters)}):\S+", spec) and "…" not in spec and "[" not in spec:
            check_observer(spec)


# ------------------------------------------------------------------------------------------- examples in Python


def python_blocks(page: str) -> list[str]:
    return [text for language, text in blocks(page) if language == "python"]


def imported(tree: ast.Module) -> dict[str, Any]:
    """Import what a block imports from cuebench; return name → object."""
    names: dict[str, Any] = {}
    for node in ast.walk(tree):
        ours = isinstance(node, ast.Import) and node.names[0].name.startswith("cuebench")
        if ours or (isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cuebench")):
            exec(compile(ast.Module([node], []), "<page>", "exec"), names)
    return names


def check_calls(text: str) -> None:
    """Check that every function of cuebench that a block calls exists and takes the arguments that it is given."""
    tree = ast.parse(text)
    names = imported(tree)
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        source = ast.unparse(call.func)
        if source.partition(".")[0] in names:
            function = eval(source, dict(names))
            keywords = {k.arg: None for k in call.keywords if k.arg}
            inspect.signature(function).bind_partial(*call.args, **keywords)


def plain(text: str) -> str:
    """Return the code of a block, of an interactive session without its prompts and output."""
    if not text.startswith(">>> "):
        return text
    return "".join(example.source for example in doctest.DocTestParser().get_examples(text))


def test_python_blocks_call_functions_that_exist(page):
    for text in python_blocks(page):
        check_calls(plain(text))


@pytest.mark.parametrize(
    "text",
    [
        "import cuebench as cb\ncb.evaluat('ideal:shape', 'cue_conflict')",
        "from cuebench import evaluate\nevaluate('ideal:shape', 'cue_conflict', root='x')",
        "from cuebench.metrics.intervals import difference_interval",
        "scores = (",
    ],
)
def test_a_wrong_call_in_a_block_is_an_error(text):
    with pytest.raises((AttributeError, TypeError, ImportError, SyntaxError)):
        check_calls(text)


def test_interactive_examples_give_what_they_show(page):
    for text in (text for text in python_blocks(page) if text.startswith(">>> ")):
        example = doctest.DocTestParser().get_doctest(text, {}, "page", None, 0)
        assert not doctest.DocTestRunner().run(example).failed


def _images() -> dict[str, Any]:
    import numpy as np

    from cuebench.testing import sample_image

    image = sample_image((48, 64, 3))
    labels = np.arange(48 * 64).reshape(48, 64) % 5
    return {"image": image, "labels": labels, "batch": np.stack([image] * 3)}


def _stimuli() -> dict[str, Any]:
    from cuebench.stimuli.makers.base import make

    make("cue_conflict", Path("DIR"), count=4)
    return {}


def _recorded_run() -> dict[str, Any]:
    from cuebench import evaluate

    rows = [f"{who},{shape}1-dog2,{shape},0.5" for who in ("anna", "bert") for shape in ("cat", "car", "boat")]
    Path("people.csv").write_text("\n".join(["subject,stimulus,decision,rt", *rows]), "utf-8")
    evaluate("recorded:people.csv", "cue_conflict", out="runs/first", resamples=100)
    return {}


def _compared_run() -> dict[str, Any]:
    import numpy as np

    from cuebench import evaluate

    rng = np.random.default_rng(0)
    rows = ["observer,stimulus,decision"]
    pairs = [(s, t) for s in ("cat", "car", "boat") for t in ("dog", "clock", "oven")]
    for name, share in (("one", 0.7), ("two", 0.3)):
        for shape, texture in pairs:
            for i in (1, 2, 3):
                decision = shape if rng.random() < share else texture
                rows.append(f"{name},{shape}{i}-{texture}{1 + i % 2},{decision}")
    Path("models.csv").write_text("\n".join(rows), "utf-8")
    evaluate("recorded:models.csv", "cue_conflict", out="runs/first", resamples=100)
    return {}


def _texture_run() -> dict[str, Any]:
    from cuebench import evaluate

    evaluate(
        "ideal:texture?name=lite0", "texture_association", data_root=".", out="runs/textures", limit=70, resamples=100
    )
    return {}


SET_UP: dict[str, Callable[[], dict[str, Any]]] = {
    "cues.md": _images,
    "stimuli.md": _stimuli,
    "metrics.md": _recorded_run,
    "texture_association.md": _texture_run,
    "comparing.md": _compared_run,
}
"""Page whose blocks are run → what makes the files that they read and returns the names that they use."""


@pytest.mark.parametrize("name", SET_UP)
def test_python_blocks_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page", **SET_UP[name]()}
    for text in python_blocks((DOCS / name).read_text("utf-8")):
        exec(compile(plain(text), name, "exec"), names)
