"""Options that would do nothing are mistakes, not decoration."""

from __future__ import annotations

import typer

from cuebench.errors import UserError


def is_written(context: typer.Context, parameter: str) -> bool:
    """Tell whether an option stands on the command line, and not only in the environment or as a default."""
    source = context.get_parameter_source(parameter)
    return source is not None and source.name == "COMMANDLINE"


def refuse_idle(context: typer.Context, *names: str, where: str, hint: str) -> None:
    """Refuse options that stand on the command line although they do nothing there.

    Parameters
    ----------
    context : typer.Context
        Of the command.
    *names : str
        Parameters of the function of the verb.
    where : str
        What makes them idle: ``without --corrected``.
    hint : str
        What to do.
    """
    written = [p for p in context.command.params if p.name in names and is_written(context, p.name)]
    idle = [p.opts[0] for p in written]
    if idle:
        raise UserError(f"{', '.join(idle)} would do nothing {where}", hint)
