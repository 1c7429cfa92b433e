"""The nouns of a study as frozen dataclasses of plain values: what server, page, simulation and analysis hand over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Protocol

TASKS = ("shape", "texture", "category", "same_kind", "words")
"""What a participant is asked for."""
KINDS = ("familiarisation", "practice", "trial", "attention")
"""Kinds of trials; only ``trial`` counts for results."""
ROLES = ("trial", "familiarisation", "mask")
"""What an image of a study is for."""
LONGEST_TEXT = 500
"""Most characters of a free text."""


@dataclass(frozen=True)
class Trial:
    """One question to one participant.

    Parameters
    ----------
    position : int
        Place in the session, from 0.
    block : str
        Name of the block in the design.
    task : str
        One of ``TASKS``.
    kind : str
        One of ``KINDS``.
    stimuli : tuple of str
        Ids of the study's images: one, or for triplets anchor, left and right.
    options : tuple of str
        Possible answers in the order in which they are shown; for triplets the ids of the two matches.
    correct : tuple of str
        The correct answers, where there are any. The page is never told.
    planned_ms : int, optional
        How long the image is shown; None: until the answer.
    several : bool
        Several answers are allowed.
    free : bool
        A comment may be given.
    asked : str
        The option that the participant is told to choose: an instructed attention check.
    """

    position: int
    block: str
    task: str
    kind: str = "trial"
    stimuli: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    correct: tuple[str, ...] = ()
    planned_ms: int | None = None
    several: bool = False
    free: bool = False
    asked: str = ""

    def shown(self) -> dict[str, Any]:
        """Return what the page is told: everything but the correct answer."""
        facts = dict(vars(self))  # asdict copies every tuple, which takes longer than all else
        del facts["correct"]
        return facts


@dataclass(frozen=True)
class Answer:
    """What a participant answered to one trial.

    Parameters
    ----------
    position : int
        Of the trial.
    response : tuple of str
        The chosen options; empty: no answer in the response window.
    rt_ms : float, optional
        Reaction time from the onset of the image.
    planned_ms, shown_ms : int, float, optional
        How long the image should have been shown, and how long it was by the frames of the display.
    text : str
        Free text, at most ``LONGEST_TEXT`` characters.
    client : mapping
        Small facts of the browser: dropped frames, losses of focus, size of the window, zoom.
    """

    position: int
    response: tuple[str, ...] = ()
    rt_ms: float | None = None
    planned_ms: int | None = None
    shown_ms: float | None = None
    text: str = ""
    client: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class StudyImage:
    """An image of a study: a row of ``stimuli.parquet``.

    Parameters
    ----------
    id : str
        Opaque: a hash of the bytes and of the study's salt, which says nothing of the class.
    file : str
        Name of the file below ``images/``: the id and an ending.
    sha256, size : str, int
        Of the file.
    name : str
        The protocol's own id of the stimulus, which ``recorded:`` needs; of a mask, its name.
    role : str
        One of ``ROLES``.
    cue : str
        ``shape`` or ``texture`` where the image carries one cue only, else empty.
    label, shape, texture, shape_source, texture_source, condition : str
        As in the protocol.
    """

    id: str
    file: str
    sha256: str
    size: int
    name: str
    role: str = "trial"
    cue: str = ""
    label: str = ""
    shape: str = ""
    texture: str = ""
    shape_source: str = ""
    texture_source: str = ""
    condition: str = ""


class StudyDesign(Protocol):
    """What the server needs of a design (``design.read_design`` returns one)."""

    @property
    def name(self) -> str:
        """Name of the design."""

    @property
    def protocol(self) -> str:
        """Name of the protocol whose stimuli are shown."""

    @property
    def languages(self) -> Sequence[str]:
        """Codes of the languages that it has texts in, the default first."""

    def title(self, language: str) -> str:
        """Return the title that participants see."""

    def text(self, language: str, name: str) -> str:
        """Return Markdown: ``consent``, ``instructions`` or ``debriefing``."""

    def words(self, language: str) -> Mapping[str, str]:
        """Return the words of the page and of the options: key → text."""

    def page(self, language: str) -> Mapping[str, Any]:
        """Return what the page needs beyond the texts: timeline, times, icons."""


def is_correct(trial: Trial, response: Sequence[str]) -> bool | None:
    """Tell whether a response is correct; None where the trial has no correct answer.

    One choice must be among the correct ones; where several may be chosen, all of them and no other. No answer is
    wrong.
    """
    if not trial.correct:
        return None
    if trial.several:
        return set(response) == set(trial.correct)
    return len(response) == 1 and response[0] in trial.correct


def trial_from(values: Mapping[str, Any]) -> Trial:
    """Return the trial that ``dataclasses.asdict`` made a dictionary of, after it went through JSON."""
    names = {f.name for f in fields(Trial)}
    known: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items() if k in names}
    return Trial(**known)
