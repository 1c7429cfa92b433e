"""The declaration of a reader of a folder layout."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cuebench.types import StimulusSet


@dataclass(frozen=True)
class Reader:
    """A reader: it turns files of a layout into a stimulus set.

    Parameters
    ----------
    name : str
        Public name: the file name.
    layout : str
        The layout that is expected, as shown in error messages.
    read : callable
        ``read(place: Path, *, expected: int = 0) -> StimulusSet``; raises one UserError with all problems.
    """

    name: str
    layout: str
    read: Callable[..., StimulusSet]
