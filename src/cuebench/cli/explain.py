"""The verb ``explain``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from cuebench.cli import ALIASES, ALLOW_CODE, module_of, verbs
from cuebench.cli._complete import names_of
from cuebench.cli._flags import Flag, flags_of
from cuebench.cli._json import print_json
from cuebench.errors import UserError


def command(
    name: Annotated[
        str,
        typer.Argument(
            help="A part, a column, a verb, an option, a condition (16-way/class=cat), or a word.",
            autocompletion=names_of(),
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Explain a metric, a protocol, a cue, or any printed word."""
    facts = facts_of(name)
    if as_json:
        print_json(facts)
        return
    from rich.table import Table

    from cuebench.cli._console import plain_console

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for fact, value in facts.items():
        if value not in ("", [], (), None):
            table.add_row(fact.replace("higher_is", "higher is"), _text(value))
    plain_console().print(table)


def facts_of(name: str) -> dict[str, Any]:
    """Return what is known of a name: of a part, a printed word, a condition or an option, and of a verb or a flag."""
    from cuebench.catalogue.explain import explain

    about_verb = _verb_facts(name)
    try:
        facts = explain(name)
    except UserError:
        if not about_verb and name.startswith("-"):
            raise UserError(f"no command has the flag {name}", "flags of this one: cuebench explain --help") from None
        if not about_verb:
            raise
        return about_verb
    kind = about_verb.get("kind", "")
    return facts | {f"{kind}: {fact}": value for fact, value in about_verb.items() if fact not in ("name", "kind")}


def _verb_facts(name: str) -> dict[str, Any]:
    """Return what a verb or a flag does; empty for any other word."""
    if name in ALIASES:
        meant = " ".join(("cuebench", *ALIASES[name]))
        return {"name": name, "kind": "verb", "another word for": meant, **_described(ALIASES[name][0])}
    if name in verbs():
        return {"name": name, "kind": "verb", **_described(name)}
    if name == ALLOW_CODE:
        about = f"{ALLOW_CODE} FILE.py: run this file where a table of stimuli or a run folder names it"
        return {"name": name, "kind": "flag", "of every verb": about}
    if name.startswith("-"):
        lines = [
            f"{call}: {', '.join(flag.names)}: {flag.help}"
            for verb in verbs()
            for call, function in _commands(verb).items()
            for flag in flags_of(function)
            if name in _written(flag)
        ]
        return {"name": name, "kind": "flag", "of": lines} if lines else {}
    return {}


def _described(verb: str) -> dict[str, Any]:
    commands = _commands(verb)
    module = module_of(verb)
    uses = [f"{call}: {(function.__doc__ or '').partition(chr(10))[0]}" for call, function in commands.items()]
    flags = {flag.names: flag for function in commands.values() for flag in flags_of(function)}
    return {
        "what it does": uses if len(uses) > 1 else uses[0],
        "arguments": [f"{f.parameter}: {f.help}" for function in commands.values() for f in flags_of(function)
                      if not f.names],
        "flags": [f"{', '.join(f.names)}: {f.help}" for f in flags.values() if f.names],
        "notes": (module.__doc__ or "").partition("\n")[2].strip(),
    }  # fmt: skip


def _commands(verb: str) -> dict[str, Callable[..., Any]]:
    """Return the calls that a verb has: ``cuebench data check`` → its function."""
    module = module_of(verb)
    if hasattr(module, "COMMANDS"):
        return {f"cuebench {verb} {name}": function for name, function in module.COMMANDS.items()}
    return {f"cuebench {verb}": module.command}


def _written(flag: Flag) -> list[str]:
    return [part for name in flag.names for part in {name, *name.split("/")}]


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "\n".join(f"• {item}" if isinstance(item, str) else str(item) for item in value)
    return str(value)
