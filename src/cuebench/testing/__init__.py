"""Conformance checks for parts of cuebench: run them on your own part before you publish it.

>>> from cuebench.testing import check_cue, check_metric
>>> check_cue("greyscale")
>>> check_metric("shape_bias", planted=[((["cat", "dog"], ["cat", "cat"], ["dog", "dog"]), 0.5)])

A part is given by its public name, as ``python:FILE.py:NAME``, or as an object. Each check raises ``CheckFailed`` with
what was expected and what came. No test library is needed, and ``python -O``, which skips assert statements, skips none
of the checks.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

_PUBLIC = {
    "CheckFailed": "base",
    "CUE_CHECKS": "cues",
    "check_cue": "cues",
    "object_mask": "cues",
    "sample_image": "cues",
    "check_figure": "figures",
    "check_metric": "metrics",
    "check_adapter": "observers",
    "check_observer": "observers",
    "IDEAL": "planted",
    "planted_responses": "planted",
    "PROTOCOL_CHECKS": "protocols",
    "check_protocol": "protocols",
    "check_maker": "stimuli",
    "check_reader": "stimuli",
    "check_stimuli": "stimuli",
}

if TYPE_CHECKING:
    from cuebench.testing.base import CheckFailed
    from cuebench.testing.cues import CUE_CHECKS, check_cue, object_mask, sample_image
    from cuebench.testing.figures import check_figure
    from cuebench.testing.metrics import check_metric
    from cuebench.testing.observers import check_adapter, check_observer
    from cuebench.testing.planted import IDEAL, planted_responses
    from cuebench.testing.protocols import PROTOCOL_CHECKS, check_protocol
    from cuebench.testing.stimuli import check_maker, check_reader, check_stimuli

__all__ = [
    "CUE_CHECKS",
    "IDEAL",
    "PROTOCOL_CHECKS",
    "CheckFailed",
    "check_adapter",
    "check_cue",
    "check_figure",
    "check_maker",
    "check_metric",
    "check_observer",
    "check_protocol",
    "check_reader",
    "check_stimuli",
    "object_mask",
    "planted_responses",
    "sample_image",
]


def __getattr__(name: str) -> Any:
    """Import a check when it is first asked for: the check of a cue needs neither protocols nor runs."""
    if name in _PUBLIC:
        return getattr(importlib.import_module(f"{__name__}.{_PUBLIC[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
