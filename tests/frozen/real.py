"""Published recordings: scored where they lie beside the repository; only rows of scores are frozen, never answers."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from frozen.golden import measure


class Recording(NamedTuple):
    """Recorded observers, and the protocol that they are scored by.

    Parameters
    ----------
    answers : str
        Their files, below the folder of published data.
    protocol : str
        Its name.
    options : str
        Of the spec.
    quick : bool
        Scored in a few seconds.
    data : bool
        The protocol needs its stimuli.
    """

    answers: str
    protocol: str
    options: str = ""
    quick: bool = False
    data: bool = False


REAL = {
    "cue_conflict": Recording("cue_conflict/responses", "cue_conflict"),
    "cue_conflict_2021": Recording("model_vs_human/raw-data/cue-conflict", "cue_conflict"),
    "asked_for_shape": Recording("geirhos_2019/asked_for_shape", "cue_conflict"),
    "asked_for_texture": Recording("geirhos_2019/asked_for_texture", "cue_conflict"),
    "chat_models": Recording("vlm/vqa", "cue_conflict"),
    "captions": Recording("vlm/captioning", "cue_conflict", "?prompt=caption"),
    "clips": Recording("vlm/clip", "cue_conflict"),
    "classifiers": Recording("vlm/inet_classifier", "cue_conflict", quick=True),
    "human_alignment": Recording("model_vs_human/raw-data", "human_alignment"),
    "edges": Recording("model_vs_human/raw-data/edge", "pure_shape", data=True),
}


def measure_real(name: str, shared: Path, out: Path) -> Path:
    """Score published recordings; no picture is looked at."""
    recording = REAL[name]
    spec = f"recorded:{shared / recording.answers}{recording.options}"
    return measure([spec], recording.protocol, shared if recording.data else None, out)
