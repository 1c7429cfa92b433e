"""The command line: one file for each verb, each a thin call of one public function.

A verb is a file ``cli/<verb>.py`` with a function ``command``; its docstring is the help. Only the verb that is called
is imported, so that ``cuebench --version`` and ``cuebench list`` answer at once.
"""

from __future__ import annotations

import functools
import importlib
import json
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


def verbs() -> list[str]:
    """Return the verbs, from the folder."""
    return sorted(path.stem.replace("_", "-") for path in FOLDER.glob("[!_]*.py"))


def main(arguments: list[str] | None = None) -> None:
    """Run the command line. Exit status: 0 done, 1 done with failures, 2 a mistake of the user's, 130 Ctrl-C."""
    arguments = sys.argv[1:] if arguments is None else arguments
    sys.exit(invoke(arguments))


def invoke(arguments: list[str]) -> int:
    """Run the command line and return the exit status."""
    from cuebench._version import __version__
    from cuebench.errors import UserError, did_you_mean

    if arguments[:1] == ["--version"]:
        print(f"cuebench {__version__}")
        return 0
    named = next((a for a in arguments if not a.startswith("-")), "")
    if named and named not in verbs():
        _print_error(did_you_mean("command", named, verbs()), as_json="--json" in arguments)
        return 2
    try:
        _call([named] if named else verbs(), arguments)
    except UserError as error:
        _print_error(error, as_json="--json" in arguments)
        return 2
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    return 0


def _call(names: list[str], arguments: list[str]) -> None:
    import typer

    app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
    app.callback(invoke_without_command=True)(_root)
    for name in names:
        module = importlib.import_module(f"cuebench.cli.{name.replace('-', '_')}")
        app.command(name)(_guarded(module.command, as_json="--json" in arguments))
    app(arguments, prog_name="cuebench")


def _guarded(command: Callable[..., int | None], *, as_json: bool) -> Callable[..., None]:
    """Let a command's return value be the exit status, and end user errors and Ctrl-C with words, not tracebacks."""
    import typer

    from cuebench.cli._json import only_json
    from cuebench.errors import UserError
    from cuebench.processes import WorkerDied

    @functools.wraps(command)
    def call(*arguments: Any, **options: Any) -> None:
        try:
            with only_json() if as_json else nullcontext():
                status = command(*arguments, **options) or 0
        except (UserError, WorkerDied) as error:
            _print_error(error, as_json=as_json)
            status = 2
        except KeyboardInterrupt:
            print("\nStopped. What was finished is kept: run the same command to go on.", file=sys.stderr)
            status = 130
        raise typer.Exit(status)

    return call


def _root() -> None:
    """Measure what a vision model sees with: shape or texture."""


def _print_error(error: Exception, *, as_json: bool) -> None:
    message, hint = getattr(error, "message", str(error)), getattr(error, "hint", "")
    if as_json:
        print(json.dumps({"error": message, "hint": hint}, ensure_ascii=False), file=sys.stderr)
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print(Text.assemble(("error: ", "bold red"), message))
    if hint:
        console.print(Text.assemble(("  → ", "bold cyan"), hint))
