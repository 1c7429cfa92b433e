"""Options that would do nothing are mistakes, not decoration.

An option that counts in some calls only says so beside itself, in its ``Annotated``:

    price: Annotated[float | None, typer.Option(help="…"), needs("plan")] = None

Every verb is checked before it begins (``cuebench.cli``). A test holds every option to be declared, or to be listed as
one that always counts.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import typer

from cuebench.errors import UserError


class Counts(NamedTuple):
    """Where an option counts."""

    where: Callable[[Mapping[str, Any]], object]
    """Parameter of the verb → value; true where the option counts."""
    otherwise: str
    """What makes it idle: ``without --plan``."""
    hint: str


def needs(parameter: str, what: str = "") -> Counts:
    """Say that an option counts only where another one is given.

    >>> needs("plan").otherwise
    'without --plan'
    """
    what = what or _flag(parameter)
    return Counts(lambda given: _is_given(given, parameter), f"without {what}", f"add {what}, or leave it out")


def idle_with(*parameters: str, what: str = "", hint: str = "") -> Counts:
    """Say that an option counts only where none of some others is given.

    >>> idle_with("corrected").otherwise
    'with --corrected'
    """
    what = what or " or ".join(_flag(parameter) for parameter in parameters)
    return Counts(
        lambda given: not any(_is_given(given, parameter) for parameter in parameters),
        f"with {what}",
        hint or f"leave it out, or leave out {what}",
    )


def _flag(parameter: str) -> str:
    return "--json" if parameter == "as_json" else f"--{parameter.replace('_', '-')}"


def _is_given(given: Mapping[str, Any], parameter: str) -> bool:
    return given[parameter] is not None and given[parameter] not in (False, "", [], ())


def rules_of(command: Callable[..., Any]) -> Iterator[tuple[str, Counts]]:
    """Yield the parameters of a command that do not always count, each with the rule; one may have several."""
    for name, hint in typing.get_type_hints(command, include_extras=True).items():
        if typing.get_origin(hint) is typing.Annotated:
            yield from ((name, rule) for rule in typing.get_args(hint)[1:] if isinstance(rule, Counts))


def is_written(context: typer.Context, parameter: str) -> bool:
    """Tell whether an option stands on the command line, and not only in the environment or as a default."""
    source = context.get_parameter_source(parameter)
    return source is not None and source.name == "COMMANDLINE"


def refuse_idle(
    context: typer.Context,
    command: Callable[..., Any],
    given: Mapping[str, Any],
    in_file: Mapping[str, str] | None = None,
    given_in_file: Mapping[str, Any] | None = None,
) -> None:
    """Refuse options that stand on the command line or in a file of settings although they do nothing there.

    Parameters
    ----------
    context : typer.Context
        Knows which options were written.
    command : callable
        The function of the verb.
    given : mapping of str to value
        Its parameters, all of them.
    in_file : mapping of str to str, optional
        Parameters whose value is that of a file, as messages call them: ``cache_size in run.toml``.
    given_in_file : mapping of str to value, optional
        All parameters as the file alone gives them. A key of the file that counts there is no mistake where the
        command line asks for something else, such as the plan.
    """
    written, by_file = dict(in_file or {}), given_in_file or given
    for option in context.command.params:
        if option.name and is_written(context, option.name):
            off = option.secondary_opts if given[option.name] is False else ()
            written[option.name] = [*off, *option.opts][0]

    def counts(name: str, rule: Counts) -> object:
        return rule.where(given) or (name in (in_file or {}) and rule.where(by_file))

    idle: dict[str, dict[str, str]] = {}
    hints: dict[str, None] = {}
    for name, rule in rules_of(command):
        if name in written and not counts(name, rule) and not any(name in others for others in idle.values()):
            idle.setdefault(rule.otherwise, {})[name] = written[name]
            hints[rule.hint] = None
    if idle:
        parts = (f"{', '.join(names.values())} would do nothing {why}" for why, names in idle.items())
        raise UserError("; ".join(parts), "; ".join(hints))


_LATER: set[Callable[..., Any]] = set()


def checks_itself(command: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a verb whose options come from a file, too: it calls ``refuse_idle`` when it has read that."""
    _LATER.add(command)
    return command


def checked(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command that refuses idle options before it begins."""
    if command in _LATER or not list(rules_of(command)):
        return command
    signature = inspect.signature(command)

    def call(context: typer.Context, **given: Any) -> Any:
        refuse_idle(context, command, given)
        return command(**given)

    # typer reads the signature, and passes the context to a function with a parameter of that type.
    own = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    hints = typing.get_type_hints(command, include_extras=True)
    parameters = [p.replace(annotation=hints[p.name]) for p in signature.parameters.values()]
    call.__signature__ = signature.replace(parameters=[own, *parameters])  # type: ignore[attr-defined]
    call.__annotations__ = {"context": typer.Context, **hints}
    call.__name__, call.__doc__, call.__module__ = command.__name__, command.__doc__, command.__module__
    return call
