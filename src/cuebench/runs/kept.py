"""Predicted masks that a run has kept (``cuebench run … --keep masks``), read back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cuebench.arrays import Array
from cuebench.errors import UserError
from cuebench.protocols.masks import PREDICTED
from cuebench.responses.store import Shards, batches
from cuebench.runs.measuring import Manifests
from cuebench.runs.record import JobRecord, RunRecord
from cuebench.stimuli.image_files import open_picture
from cuebench.types import Stimulus, StimulusSet


class KeptMask(NamedTuple):
    """The mask that an observer predicted: class numbers of the data set, 255 for any other class."""

    observer: str
    stimulus: Stimulus
    mask: Array


def kept_masks(run: str | Path, protocol: str) -> tuple[StimulusSet, list[KeptMask]]:
    """Return the stimuli of a protocol and every mask that was kept.

    Parameters
    ----------
    run : path
        The run folder.
    protocol : str
        Whose masks, such as ``cue_decomposition_segmentation``.

    Raises
    ------
    UserError
        The run has kept none, with the command that keeps some.
    """
    folder = Path(run).expanduser()
    record = RunRecord.read(folder)
    masks: list[KeptMask] = []
    manifest: StimulusSet | None = None
    manifests = Manifests.of(folder, record)
    for job in record.jobs:
        if job.protocol == protocol:
            manifest = manifests.read(job.stimuli)
            masks += _of_job(folder, record, job, manifest)
    if manifest is None or not masks:
        raise UserError(
            f"{run} has kept no predicted masks of {protocol}",
            f"run it with: cuebench run -p {protocol} … --keep masks --out {run}",
        )
    return manifest, masks


def _of_job(folder: Path, record: RunRecord, job: JobRecord, manifest: StimulusSet) -> Iterator[KeptMask]:
    shards = Shards.of_key(record.options.responses_in(folder) / job.folder, job.key)
    for _, batch in batches(manifest.stimuli, record.options.shard_size):
        for position, content in sorted(shards.kept(batch, PREDICTED).items()):
            yield KeptMask(job.observer, batch[position], picture_of(content, f"mask of {batch[position].id}"))


def picture_of(content: bytes, name: str) -> Array:
    """Return the class numbers of a stored mask."""
    mask = np.asarray(open_picture(content, name))
    if mask.ndim != 2 or mask.dtype != np.uint8:
        raise UserError(f"{name} is no picture of class numbers", "run it again: cuebench run … --fresh --keep masks")
    return mask
