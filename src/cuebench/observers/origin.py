"""Where an observer came from, and what a protocol made of it: enough to make it again on another machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cuebench.arrays import Array
from cuebench.errors import UserError
from cuebench.labels import label_map
from cuebench.observers.base import LoadOptions, ObserverBase
from cuebench.observers.load import load
from cuebench.types import Stimulus


@dataclass(frozen=True)
class Preparation:
    """What an observer is told of a protocol before it is asked; most stay as they are.

    Parameters
    ----------
    classes : tuple of str
        Classes of the stimuli, for observers that choose among them.
    targets, answers_in : str
        Label map of the stimuli, and the space that the protocol wants the answers in.
    layers : tuple of str
        Further layers that are read.
    masks : callable, optional
        ``masks(stimulus)``: the true mask of a stimulus, for observers that answer from the truth.
    """

    classes: tuple[str, ...] = ()
    targets: str = ""
    answers_in: str = ""
    layers: tuple[str, ...] = ()
    masks: Callable[[Stimulus], Array] | None = None

    def prepare(self, observer: ObserverBase) -> ObserverBase:
        """Return the observer that knows of the protocol."""
        if self.classes:
            members = label_map(self.targets) if self.targets else None
            observer = observer.among(self.classes, members, self.answers_in)
        if self.masks is not None:
            observer = observer.with_masks(self.masks)
        return observer.reading(self.layers) if self.layers else observer


@dataclass(frozen=True)
class Origin:
    """How an observer of a run was made.

    Parameters
    ----------
    spec : str
        As the user wrote it.
    name : str
        Its public name: a spec may stand for several.
    options : LoadOptions
        What the run says to every adapter.
    preparation : Preparation
        What it was told of the protocol.
    """

    spec: str
    name: str
    options: LoadOptions
    preparation: Preparation

    def make(self, loaded: dict[str, list[ObserverBase]]) -> ObserverBase:
        """Return the observer; ``loaded`` (spec → observers) keeps what has been loaded for the next question."""
        if self.spec not in loaded:
            loaded[self.spec] = load(self.spec, self.options)
        for observer in loaded[self.spec]:
            if observer.name == self.name:
                return self.preparation.prepare(observer)
        raise UserError(f"{self.spec} gives no observer called {self.name!r} here", "its files differ between machines")
