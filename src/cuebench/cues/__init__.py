"""What remains of an image: pure functions image → image, one file for each cue.

``from cuebench.cues import eed`` gives the *function* ``eed`` of the file ``eed.py``; nothing is imported before it is
asked for. Importing the sub-module ``cuebench.cues.eed`` directly must not replace the function by the module, which
is what Python's import system does by default; the module class below prevents it.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from cuebench.registry import cues as _registry


class _CuePackage(ModuleType):
    """The package itself: attributes that are cue files answer with their function."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in _registry:
            raise AttributeError(f"module 'cuebench.cues' has no cue {name!r}; known: {', '.join(_registry)}")
        function = getattr(_registry.module(name), name)
        setattr(self, name, function)
        return function

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, ModuleType) and not name.startswith("_") and hasattr(value, name):
            value = getattr(value, name)
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_registry})


sys.modules[__name__].__class__ = _CuePackage
