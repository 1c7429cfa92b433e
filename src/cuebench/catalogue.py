"""What parts there are, as plain rows: for ``cuebench list``, ``cuebench explain`` and the docs. Imports no part."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

from cuebench import labels, registry
from cuebench.registry import Registry

Row = dict[str, str]


def rows(kind: str) -> list[Row]:
    """Return one row for each part of a kind."""
    return _LISTS[kind]()


def _plain(parts: Registry) -> list[Row]:
    return [{"name": name, "summary": parts.summary(name)} for name in parts]


def _observers() -> list[Row]:
    """Adapters are imported here: they are small, and import their libraries only when they load a model."""
    found = []
    for name in registry.adapters:
        adapter = registry.adapters.get(name)
        missing = [p for p in adapter.packages if importlib.util.find_spec(p) is None]
        ready = f"needs: pip install 'cuebench[{adapter.extra}]'" if missing else "ready"
        found.append({"name": name, "form": adapter.form, "status": ready, "summary": registry.adapters.summary(name)})
    return found


def _cues() -> list[Row]:
    return [
        {"name": name, "kind": registry.cues.get(name).info.kind, "summary": registry.cues.summary(name)}
        for name in registry.cues
    ]


def _protocols() -> list[Row]:
    found = []
    for name in registry.protocols:
        protocol = registry.protocols.get(name)
        found.append({"name": name, "version": str(protocol.version), "summary": registry.protocols.summary(name)})
    return found


def _stimuli() -> list[Row]:
    kinds = (("reader", registry.readers), ("maker", registry.makers), ("dataset", registry.datasets))
    return [{"name": name, "kind": kind, "summary": parts.summary(name)} for kind, parts in kinds for name in parts]


def _labels() -> list[Row]:
    found = []
    for name, kind in labels.built_in().items():
        size = len(labels.label_space(name)) if kind == "space" else len(labels.label_map(name).names)
        found.append({"name": name, "kind": kind, "classes": str(size)})
    return found


def _suites() -> list[Row]:
    """Suites are files of the package; what is on this machine is told from file names alone."""
    from cuebench.observers.adapters.suite import overview

    return overview()


def _figures() -> list[Row]:
    from cuebench.reports.draw import drawable

    return [{"name": name, "summary": registry.figures.summary(name)} for name in drawable()]


_LISTS: dict[str, Callable[[], list[Row]]] = {
    "protocols": _protocols,
    "observers": _observers,
    "cues": _cues,
    "metrics": lambda: _plain(registry.metrics),
    "stimuli": _stimuli,
    "labels": _labels,
    "suites": _suites,
    "figures": _figures,
}
