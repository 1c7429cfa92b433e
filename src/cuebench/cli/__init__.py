"""The command line: one file for each verb, each a thin call of one public function.

A verb is a file ``cli/<verb>.py`` with a function ``command``; its docstring is the help. A verb with sub-commands has
``COMMANDS`` (name → function) instead, and the docstring of the file is the help; ``DEFAULT`` is the one that is meant
where none is named. Only the verb that is called is
imported, so that ``cuebench --version`` and ``cuebench list`` answer at once.
"""

from __future__ import annotations

import functools
import importlib
import io
import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

FOLDER = Path(__file__).parent
GROUPS = {
    "Measure": ("demo", "run", "score", "merge", "texture-of", "controls", "study"),
    "Results": (
        "report",
        "trials",
        "compare",
        "power",
        "correlate",
        "steer",
        "figure",
        "published",
        "board",
    ),
    "Instrument": ("calibrate", "validity"),
    "Stimuli": ("make", "curate", "fetch", "cue", "data", "import"),
    "Reference": ("list", "explain", "doctor", "new"),
}
"""Heading of ``cuebench --help`` → its verbs."""
ALIASES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("evaluate", "eval", "benchmark", "bench", "measure", "test"), ("run",)),
    **dict.fromkeys(("plot", "draw", "figures", "chart"), ("figure",)),
    **dict.fromkeys(("show", "results", "summary", "table"), ("report",)),
    **dict.fromkeys(("generate", "create", "stimuli"), ("make",)),
    **dict.fromkeys(("transform", "apply"), ("cue",)),
    **dict.fromkeys(("describe", "define", "what-is", "info"), ("explain",)),
    **dict.fromkeys(("comparison", "diff"), ("compare",)),
    **{"correlation": ("correlate",), "download": ("fetch",), "ls": ("list",)},
    **{"leaderboard": ("board",), "rescore": ("score",), "answers": ("trials",), "scaffold": ("new",)},
    **{"check": ("doctor",), "texture": ("texture-of",)},
}
"""Words that people try for a verb: they work and are not listed."""
GO_ON = ("resume", "continue", "restart")
"""What people try to go on with a run: no verb and no flag, because the same command does."""
ALLOW_CODE = "--allow-code"
"""The flag that every verb has: ``--allow-code FILE.py``, again for more."""

READER_LEFT = 141
"""Exit status where nobody reads the output any more, as of a program that SIGPIPE has ended."""
COMPLETION = "_CUEBENCH_COMPLETE"
"""Environment variable with which a shell asks for completions."""
VALUE_OPTIONAL = frozenset({"--report"})
"""Flags that can stand alone or have a value: ``--report``, ``--report FILE``. Alone, their value is empty."""


def verbs() -> list[str]:
    """Return the verbs, from the folder; in the order of the groups, others last."""
    files = sorted(path.stem.replace("_", "-") for path in FOLDER.glob("[!_]*.py"))
    grouped = [verb for members in GROUPS.values() for verb in members]
    return sorted(files, key=lambda verb: grouped.index(verb) if verb in grouped else len(grouped))


def module_of(verb: str) -> ModuleType:
    """Return the file of a verb, imported."""
    return importlib.import_module(f"cuebench.cli.{verb.replace('-', '_')}")


def main(arguments: list[str] | None = None) -> None:
    """Run the command line. Exit status: 0 done, 1 done with failures, 2 a mistake of the user's, 130 Ctrl-C.

    141: the reader of standard output left before its end.
    """
    _open_streams()
    _print_anything()
    if not (os.environ.get("COLUMNS", "1").isdecimal() and int(os.environ.get("COLUMNS", "1"))):
        del os.environ["COLUMNS"]  # a width in which nothing can be printed
    take_less_memory()
    words = sys.argv[1:] if arguments is None else arguments
    try:
        status = invoke(words)
    except KeyboardInterrupt:  # before the command began
        status = _stopped(as_json="--json" in words)
    sys.exit(status)


def take_less_memory() -> None:
    """Let Arrow use the allocator of the system: its own keeps tens of MiB. For a process of ours, before it loads."""
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")


def _open_streams() -> None:
    """Let standard streams that are closed, as some daemons have them, lead nowhere: files would get their numbers."""
    for number, (name, mode) in enumerate({"stdin": "r", "stdout": "w", "stderr": "w"}.items()):
        if getattr(sys, name) is not None:
            continue
        try:
            os.fstat(number)
        except OSError:
            nowhere = os.open(os.devnull, os.O_RDWR)
            os.dup2(nowhere, number)
            if nowhere != number:
                os.close(nowhere)
        setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - for as long as the program runs


def _print_anything() -> None:
    """Let every character be printed: a pipe of Windows knows few of them, and a τ would end the program."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower().replace("-", "") != "utf8":
            stream.reconfigure(errors="backslashreplace")


def invoke(arguments: list[str]) -> int:
    """Run the command line and return the exit status."""
    from cuebench.cli._console import clean_output, to_nowhere
    from cuebench.files import write_error

    with clean_output() as output:
        status = _status_of(arguments)
        try:
            output.flush()
        except OSError as error:  # a full disk
            _print_error(write_error(Path("standard output"), error), as_json="--json" in arguments)
            to_nowhere(sys.stdout)
            return 2
        return READER_LEFT if output.left and status in (0, 1) else status


def _status_of(arguments: list[str]) -> int:
    from cuebench._version import __version__
    from cuebench.errors import UserError, is_utf8
    from cuebench.files import mistake_of

    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:], "--help"]
    try:
        if arguments[:1] in (["--version"], ["version"]):
            print(f"cuebench {__version__}")
            return 0
        for word in arguments:
            if not is_utf8(word):
                raise UserError(f"the argument {word!r} is not UTF-8", "rename the file or folder")
        return _call(_with_values(with_explained(_with_verb(_without_allowed(arguments)))))
    except (UserError, OSError) as error:
        mistake = mistake_of(error) if isinstance(error, OSError) else error
        if mistake is None:
            raise
        _print_error(mistake, as_json="--json" in arguments)
        return 2
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1


def _without_allowed(arguments: Sequence[str]) -> list[str]:
    """Take ``--allow-code FILE`` out of the arguments of any verb, and allow these files."""
    from cuebench.errors import UserError
    from cuebench.registry import allow_code

    rest, words = [], iter(arguments)
    for word in words:
        flag, equals, file = word.partition("=")
        if flag != ALLOW_CODE:
            rest.append(word)
            continue
        file = file if equals else next(words, "")
        if not file or not Path(file).expanduser().is_file():
            raise UserError(f"{ALLOW_CODE}: there is no file {file!r}", "name a Python file that you trust")
        allow_code(file)
    return rest


def _with_verb(arguments: Sequence[str]) -> list[str]:
    """Replace a word that people try by the verb that it means."""
    position = next((i for i, word in enumerate(arguments) if not word.startswith("-")), None)
    if position is None or arguments[position] not in ALIASES:
        return [*arguments]  # not list(): in this package `list` is the verb
    return [*arguments[:position], *ALIASES[arguments[position]], *arguments[position + 1 :]]


def _with_values(arguments: Sequence[str]) -> list[str]:
    """Give flags whose value can be left out an empty one, which the parser of the command line does not know.

    Behind ``--`` there are no flags, only names of them: ``cuebench explain --report``.
    """
    flags = arguments.index("--") if "--" in arguments else len(arguments)
    following = [*arguments[1:], "-"]
    alone = (word in VALUE_OPTIONAL and after.startswith("-") for word, after in zip(arguments[:flags], following))
    return [*(f"{word}=" if is_alone else word for word, is_alone in zip(arguments, alone)), *arguments[flags:]]


def with_explained(arguments: list[str]) -> list[str]:
    """Let ``explain`` be asked for a flag: ``cuebench explain --limit``."""
    if arguments[:1] != ["explain"] or "--" in arguments:
        return arguments
    explain_options = [word for word in arguments[1:] if word in ("--json", "--help")]
    return (
        ["explain", *explain_options, "--", *(word for word in arguments[1:] if word not in explain_options)]
        if arguments[1:] != explain_options
        else arguments
    )


def _call(arguments: list[str]) -> int:
    """Build the commands that the arguments can mean, call the one they name, and return the exit status."""
    import typer

    from cuebench.errors import UserError, did_you_mean

    words = [word for word in arguments if not word.startswith("-")]
    if words and (words[0] in GO_ON or {f"--{word}" for word in GO_ON} & set(arguments)):
        raise UserError(
            "a run that was stopped needs no special command",
            "give the same `cuebench run …` again, with the same --out: it goes on where it stopped. Another run "
            "of the same kind: cuebench run --again RUN",
        )
    if words and words[0] not in verbs():
        raise did_you_mean("command", words[0], verbs())
    as_json = "--json" in arguments
    app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)
    # Here, because typer is not imported above: `cuebench --version` answers at once.
    _root.__annotations__["version"] = Annotated[bool, typer.Option("--version", help="Print the version and exit.")]
    app.callback(invoke_without_command=True)(_root)
    guard = functools.partial(_guarded, words=arguments, as_json=as_json)
    for verb in words[:1] or _completed_verb() or verbs():
        module = module_of(verb)
        heading = next((heading for heading, members in GROUPS.items() if verb in members), "Other")
        if hasattr(module, "COMMANDS"):
            if words[1:] and words[1] not in module.COMMANDS and hasattr(module, "DEFAULT"):
                arguments = [verb, module.DEFAULT, *arguments[arguments.index(verb) + 1 :]]
                words = [verb, module.DEFAULT, *words[1:]]
            app.add_typer(_sub_commands(verb, module, words[1:], guard), name=verb, rich_help_panel=heading)
        else:
            app.command(verb, rich_help_panel=heading)(guard(module.command))
    if not as_json:
        app(arguments, prog_name="cuebench")  # leaves by SystemExit
    try:
        return app(arguments, prog_name="cuebench", standalone_mode=False) or 0
    except Exception as error:
        if not hasattr(error, "format_message"):  # whatever the library of the command line raises has one
            raise
        subs = getattr(module_of(words[0]), "COMMANDS", ()) if words else ()
        named = words[: 2 if words[1:] and words[1] in subs else 1]
        raise UserError(error.format_message(), f"see: {' '.join(['cuebench', *named, '--help'])}") from None


def _completed_verb() -> list[str]:
    """Return the verb of a line that the shell asks to complete; empty where there is none yet."""
    line = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS", "")
    words = line.split()[1:2] if COMPLETION in os.environ else []
    return [verb for word in words for verb in verbs() if verb == word]


def _sub_commands(verb: str, module: ModuleType, words: Sequence[str], guard: Callable[..., Any]) -> Any:
    """Return the sub-commands of a verb; ``words`` is what follows the verb on the command line."""
    import typer

    from cuebench.errors import did_you_mean

    if words and words[0] not in module.COMMANDS:
        raise did_you_mean(f"command of 'cuebench {verb}':", words[0], module.COMMANDS)
    group = typer.Typer(no_args_is_help=True, help=(module.__doc__ or "").partition("\n")[0])
    group.callback()(lambda: None)
    for name, function in module.COMMANDS.items():
        group.command(name)(guard(function))
    return group


def _guarded(command: Callable[..., int | None], *, words: Sequence[str], as_json: bool) -> Callable[..., None]:
    """Let a command's return value be the exit status; refuse idle options, report errors and Ctrl-C shortly."""
    import typer

    from cuebench.cli._flags import refuse_empty_paths
    from cuebench.cli._idle import checked
    from cuebench.cli._json import only_json
    from cuebench.errors import UserError
    from cuebench.files import is_printed, only_files
    from cuebench.processes import WorkerDied

    plain, command = command, checked(command)

    @functools.wraps(command)
    def call(*arguments: Any, **options: Any) -> None:
        prints_file = any(isinstance(value, str | Path) and is_printed(Path(value)) for value in options.values())
        try:
            with only_files() if prints_file else nullcontext(), only_json() if as_json else nullcontext():
                refuse_empty_paths(plain, words)
                status = command(*arguments, **options) or 0
        except (UserError, WorkerDied) as error:
            _print_error(error, as_json=as_json)
            status = 2
        except KeyboardInterrupt:
            status = _stopped(as_json=as_json)
        raise typer.Exit(status)

    return call


def _stopped(*, as_json: bool) -> int:
    """Say that Ctrl-C was pressed; return the exit status."""
    hint = "what was finished is kept: run the same command to go on"
    if as_json:
        print(json.dumps({"error": "stopped", "hint": hint}), file=sys.stderr)
    else:
        print(f"\nStopped. W{hint[1:]}.", file=sys.stderr)
    return 130


def _root(version: bool = False) -> None:
    """Measure what a vision model sees with: shape or texture.

    --allow-code FILE.py, with any command: run this file where a table of stimuli or a run folder names it.

    Exit status: 0 done, 1 something was not measured or found wrong, 2 a mistake of the command, 130 Ctrl-C,
    141 the reader of the output left.
    """
    if version:
        from cuebench._version import __version__

        print(f"cuebench {__version__}")


def _print_error(error: Exception, *, as_json: bool) -> None:
    message, hint = getattr(error, "message", str(error)), getattr(error, "hint", "")
    if as_json:
        from cuebench.cli._json import escaped

        print(escaped(json.dumps({"error": message, "hint": hint}, ensure_ascii=False)), file=sys.stderr)
        return
    from rich.text import Text

    from cuebench.cli._console import plain_console

    console = plain_console(stderr=True)
    console.print(Text.assemble(("error: ", "bold red"), message), soft_wrap=True)
    if hint:
        console.print(Text.assemble(("  → ", "bold cyan"), hint), soft_wrap=True)
