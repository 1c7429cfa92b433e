"""What parts there are, as plain rows: for ``cuebench list`` and the docs."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

from cuebench import labels, registry

Row = dict[str, str]


def kinds() -> list[str]:
    """Return what can be listed."""
    return [*registry.KINDS, *_COLLECTIONS]


def rows(kind: str) -> list[Row]:
    """Return one row for each part of a kind, with its origin; for a broken plug-in, with the reason.

    Parameters
    ----------
    kind : str
        One of `kinds`.
    """
    return _COLLECTIONS[kind]() if kind in _COLLECTIONS else _parts(kind)


def _parts(kind: str) -> list[Row]:
    """Return the parts of a registry; built-in ones are imported only where a column needs it."""
    parts = registry.KINDS[kind]
    broken = parts.broken()
    columns = _COLUMNS.get(kind)
    listed = []
    for name in parts:
        origin = parts.origin(name)
        if name in broken and origin != registry.BUILT_IN:
            continue
        try:
            more = columns(parts.get(name)) if columns else {}
            listed.append({"name": name, **more, "origin": origin, "summary": parts.summary(name)})
        except Exception as error:
            if origin == registry.BUILT_IN:
                raise
            broken[name] = f"{origin}: {type(error).__name__}: {error}"
    empty = dict.fromkeys(listed[0] if listed else {"name": "", "origin": "", "summary": ""}, "")
    listed += [{**empty, "name": n, "origin": "plug-in", "summary": f"broken: {why}"} for n, why in broken.items()]
    return listed


def _observer(adapter: Any) -> Row:
    missing = [p for p in adapter.packages if importlib.util.find_spec(p) is None]
    install = adapter.install or f"pip install 'cuebench[{adapter.extra}]'"
    return {
        "example": next(iter(adapter.examples), ""),
        "form": adapter.form,
        "status": f"needs: {install}" if missing else "ready",
    }


_COLUMNS: dict[str, Callable[[Any], Row]] = {
    "protocols": lambda protocol: {"version": str(protocol.version)},
    "cues": lambda cue: {"kind": cue.info.kind},
    "observers": _observer,
    "figures": lambda figure: {"drawn from": figure.needs},
}
"""Kind → further columns of its list."""


def _stimuli() -> list[Row]:
    """Return everything that gives stimuli: readers of folders, makers, and datasets that can be fetched."""
    return [
        {"name": row["name"], "kind": registry.KINDS[kind].kind, "origin": row["origin"], "summary": row["summary"]}
        for kind in ("readers", "makers", "datasets")
        for row in _parts(kind)
    ]


def _labels() -> list[Row]:
    listed = []
    for name, kind in labels.built_in().items():
        size = len(labels.label_space(name)) if kind == "space" else len(labels.label_map(name).names)
        listed.append({"name": name, "kind": kind, "classes": str(size), "origin": registry.BUILT_IN})
    return listed


def _suites() -> list[Row]:
    """Return the lists of models of the papers; what is on this machine is known from file names alone."""
    from cuebench.observers.adapters.suite import overview

    return overview()


_COLLECTIONS: dict[str, Callable[[], list[Row]]] = {"stimuli": _stimuli, "labels": _labels, "suites": _suites}
"""What can be listed besides the kinds of parts."""
