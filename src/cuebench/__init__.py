"""cuebench measures what a vision model sees with: shape or texture.

A dozen names are public; everything heavy is imported on first use.

>>> import cuebench as cb
>>> scores = cb.evaluate("recorded:humans/", "cue_conflict", out="runs/first")  # doctest: +SKIP
>>> scores.value("people")  # doctest: +SKIP
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from cuebench._version import __version__

_PUBLIC = {
    "evaluate": "cuebench.runs.evaluate",
    "estimate_cost": "cuebench.runs.estimate",
    "Scores": "cuebench.runs.scores",
    "allow_code": "cuebench.registry",
    "load": "cuebench.runs.scores",
    "merge": "cuebench.runs.merge",
    "report": "cuebench.reports.html.report",
    "score": "cuebench.runs.score",
    "wrap": "cuebench.observers.wrap",
    "Preprocess": "cuebench.observers.preprocess",
    "Observer": "cuebench.observers.base",
    "Batch": "cuebench.observers.base",
    "LabelSpace": "cuebench.labels",
    "LabelMap": "cuebench.labels",
    "Stimulus": "cuebench.types",
    "StimulusSet": "cuebench.types",
    "Score": "cuebench.types",
    "UserError": "cuebench.errors",
    "texture_of": "cuebench.analyses.texture_of",
}
_PACKAGES = ("cues", "metrics", "protocols", "stimuli", "observers", "responses", "runs", "testing")

if TYPE_CHECKING:
    from cuebench.analyses.texture_of import texture_of
    from cuebench.errors import UserError
    from cuebench.labels import LabelMap, LabelSpace
    from cuebench.observers.base import Batch, Observer
    from cuebench.observers.preprocess import Preprocess
    from cuebench.observers.wrap import wrap
    from cuebench.registry import allow_code
    from cuebench.reports.html.report import report
    from cuebench.runs.estimate import estimate_cost
    from cuebench.runs.evaluate import evaluate
    from cuebench.runs.merge import merge
    from cuebench.runs.score import score
    from cuebench.runs.scores import Scores, load
    from cuebench.types import Score, Stimulus, StimulusSet

__all__ = [
    "Batch",
    "LabelMap",
    "LabelSpace",
    "Observer",
    "Preprocess",
    "Score",
    "Scores",
    "Stimulus",
    "StimulusSet",
    "UserError",
    "__version__",
    "allow_code",
    "estimate_cost",
    "evaluate",
    "load",
    "merge",
    "report",
    "score",
    "texture_of",
    "wrap",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for."""
    if name in _PUBLIC:
        return getattr(importlib.import_module(_PUBLIC[name]), name)
    if name in _PACKAGES:
        return importlib.import_module(f"cuebench.{name}")
    raise AttributeError(f"module 'cuebench' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC, *_PACKAGES})
