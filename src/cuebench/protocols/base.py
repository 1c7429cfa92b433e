"""What a protocol declares. A protocol file is metadata and composition; the method lives in ``metrics``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from cuebench.errors import did_you_mean
from cuebench.labels import LabelSpace
from cuebench.observers.preprocess import Preprocess
from cuebench.responses.table import Reduce, Responses
from cuebench.types import Capability, Citation, Reference, Score, StimulusSet

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class View:
    """One way of showing the stimuli: a named change of the observer's own preprocessing."""

    name: str
    change: Callable[[Preprocess], Preprocess]


@dataclass(frozen=True)
class ScoreOptions:
    """What a user can choose when scoring; stored in the run record."""

    seed: int = 0
    resamples: int = 10_000
    settings: Mapping[str, str] = field(default_factory=dict)
    """Options of single protocols, ``protocol.option`` → value: ``--set cue_decomposition.leave_out=NAME``."""

    def of(self, protocol: str, **accepted: str) -> dict[str, str]:
        """Return a protocol's own options with defaults; one that it does not have is an error."""
        own = {k.partition(".")[2]: v for k, v in self.settings.items() if k.partition(".")[0] == protocol}
        for key in own:
            if key not in accepted:
                raise did_you_mean(f"option of protocol {protocol!r}:", key, accepted)
        return {**accepted, **own}


@dataclass(frozen=True)
class Result:
    """Scores, and tables that do not fit the tidy form (a confusion matrix): name → Arrow table."""

    scores: list[Score]
    tables: Mapping[str, pa.Table] = field(default_factory=dict)


PARTIAL = "partial set: "
"""How the note of a score begins that was made from a part of a published set; printed and looked for by others."""


def partial_notes(reasons: Sequence[str]) -> list[str]:
    """Return the note that a part of a set was used, with the reasons; nothing for the whole set."""
    return [PARTIAL + ", ".join(reasons)] if reasons else []


@dataclass(frozen=True)
class Protocol:
    """A published experiment.

    Parameters
    ----------
    name, version, title : str, int, str
        Identity. A change of scores is a new version, never an edit.
    needs : tuple of tuples of Capability
        Alternatives, best first: ``(("logits",), ("decisions",))`` means logits, or else decisions.
    read : callable
        ``read(data_root) -> StimulusSet``; raises a UserError that says where the data should lie.
    stimuli_from_recordings : callable, optional
        ``f(names of images) -> StimulusSet`` for recorded responses whose file names carry the truth: such observers
        can be scored where the images are absent.
    views : tuple of View
        How the stimuli are shown.
    score : callable
        ``score(responses of all observers, options) -> Result``; sees all observers because some metrics compare them.
    check : callable, optional
        ``check(label space, stimuli) -> problems``: why this observer cannot be scored, before anything is spent.
    reference : tuple of Reference
        Published values.
    answers_in : str
        Label space that ideal observers answer in, where the protocol ranks in a larger one than its own classes.
    reduce : callable, optional
        ``reduce(stimuli, label space) -> Reduce``: what is stored instead of the answers themselves, where those are
        too large to keep (a mask of every image) and the scores need only a summary (its confusion matrix). It sees
        stimuli without their truth, which a stored summary must not depend on.
    options : mapping of str to str
        What ``--set NAME.OPTION=…`` can change, and the defaults; any other option is refused before anything is spent.
    configure : callable, optional
        ``configure(settings of the run) -> Protocol``: the same protocol, as ``--set NAME.OPTION=…`` asks for it.
    standalone : callable, optional
        ``standalone() -> StimulusSet``: what can be shown without any data root.
    baselines : bool
        Randomly initialised networks of the same architecture (``--baselines N``) are measured beside each model.
    """

    name: str
    version: int
    title: str
    needs: tuple[tuple[Capability, ...], ...]
    read: Callable[[Path], StimulusSet]
    views: tuple[View, ...]
    score: Callable[[Sequence[Responses], ScoreOptions], Result]
    citation: Citation
    targets: tuple[str, ...] = ()
    stimuli_from_recordings: Callable[[Sequence[str]], StimulusSet] | None = None
    check: Callable[[LabelSpace, StimulusSet], list[str]] | None = None
    reference: tuple[Reference, ...] = ()
    metrics: tuple[str, ...] = ()
    answers_in: str = ""
    reduce: Callable[[StimulusSet, LabelSpace | None], Reduce] | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    configure: Callable[[Mapping[str, str]], Protocol] | None = None
    standalone: Callable[[], StimulusSet] | None = None
    baselines: bool = False
