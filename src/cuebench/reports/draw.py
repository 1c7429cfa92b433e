"""Drawing any figure by its name: what ``cuebench figure`` calls."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path

from cuebench.errors import UserError, did_you_mean
from cuebench.registry import figures
from cuebench.reports.figures._svg import Drawing


def drawable() -> list[str]:
    """Return the figures that need no more than a run folder and options."""
    return [name for name in figures if set(_required(figures.get(name))) <= {"run"}]


def draw(name: str, run: str | Path | None = None, options: Mapping[str, str] | None = None) -> Drawing:
    """Draw a figure.

    Parameters
    ----------
    name : str
        See ``cuebench list figures``.
    run : path, optional
        The run folder; a figure of no run (``texture_sheet``) needs none.
    options : mapping of str to str
        Options of the figure, as text: ``{"observer": "resnet50"}``.
    """
    known = drawable()
    if name not in known:
        raise did_you_mean("figure", name, known)
    figure: Callable[..., Drawing] = figures.get(name)
    chosen = {key: _value(name, figure, key, text) for key, text in (options or {}).items()}
    if "run" not in _required(figure):
        return figure(**chosen)
    if run is None:
        raise UserError(f"the figure {name} is drawn from a run", f"cuebench figure {name} RUN --out {name}.svg")
    return figure(run, **chosen)


def _required(figure: Callable[..., Drawing]) -> list[str]:
    return [p.name for p in inspect.signature(figure).parameters.values() if p.default is p.empty]


def _value(name: str, figure: Callable[..., Drawing], key: str, text: str) -> object:
    own = {p.name: p.default for p in inspect.signature(figure).parameters.values() if p.default is not p.empty}
    if key not in own:
        raise did_you_mean(f"option of figure '{name}'", key, own)
    default = own[key]
    try:
        if isinstance(default, bool):
            return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}[text.lower()]
        return tuple(text.split(",")) if isinstance(default, tuple) else type(default)(text)
    except (ValueError, KeyError):
        raise UserError(f"option {key} is {text!r}, expected a {type(default).__name__}") from None
