"""Pictures of the stimuli of a run, for sheets: decoded from where they lay when the run was made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PIL import Image, ImageOps

from cuebench.errors import UserError
from cuebench.reports.marks import image_url
from cuebench.reports.run_data import Run, folders
from cuebench.reports.vega import alt
from cuebench.runs.measuring import Manifests
from cuebench.runs.record import RunRecord
from cuebench.stimuli.render import decode, render
from cuebench.types import Stimulus, StimulusSet

SIDE = 160
"""Pixels of a picture in a sheet."""


def stimuli_of(run: Run, protocol: str) -> StimulusSet:
    """Return the stimuli that a protocol showed in a run."""
    for folder in folders(run):
        record = RunRecord.read(folder)
        for job in record.jobs:
            if job.protocol == protocol and not job.baseline_of:
                return Manifests.of(folder, record).read(job.stimuli)
    raise UserError(f"{run} has no stimuli of {protocol}", f"cuebench run -p {protocol} … --out DIR")


def shown(stimuli: StimulusSet, stimulus: Stimulus) -> Image.Image:
    """Return what was shown.

    Raises
    ------
    UserError
        The file does not lie any more where it lay when the run was made.
    """
    root = Path(stimuli.root)
    if stimulus.path and not (root / stimulus.path).is_file():
        hint = "sheets need the images: put them back where the run saw them"
        raise UserError(f"{root / stimulus.path} is gone", hint)
    return render(root, decode(root, stimulus), stimulus)


def exactly(channel: Any, field: str, length: float) -> Any:
    """Return a channel in which a field is a position in points from the left or the top."""
    ends = [0, length] if channel is alt.X else [length, 0]
    return channel(f"{field}:Q", axis=None, scale=alt.Scale(domain=ends, nice=False, zero=False))


def tile(stimuli: StimulusSet, stimulus: Stimulus, side: int = SIDE) -> str:
    """Return the centre square of what was shown as a URL for `marks.pictures`."""
    return image_url(ImageOps.fit(shown(stimuli, stimulus), (side, side), Image.Resampling.BILINEAR))
