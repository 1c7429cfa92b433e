"""The people whom a protocol brings along, so that a run of models has somebody to compare them with."""

from __future__ import annotations

import os
from collections.abc import Set
from pathlib import Path

from cuebench.errors import UserError
from cuebench.protocols.base import Protocol
from cuebench.runs.loading import Loaded, LoadedObservers, load_one

HINT = "put their answers into DATA_ROOT/model_vs_human/raw-data, or name them: -o recorded:FOLDER"


def data_root_of(data_root: str | Path | None) -> Path | None:
    """Return the data root as an absolute path; default: the environment variable ``CUEBENCH_DATA``."""
    root = data_root or os.environ.get("CUEBENCH_DATA")
    # A model of the user's may change the working folder when it is loaded.
    return Path(root).expanduser().absolute() if root else None


def people_for(
    protocol: Protocol,
    data_root: str | Path | None,
    loaded: LoadedObservers,
    shown: Set[str],
    notices: list[str],
) -> list[Loaded]:
    """Load the people whom a protocol brings along where nobody in the run is a person.

    Parameters
    ----------
    protocol : Protocol
        Whose people; most have none.
    data_root : path or None
        Where their answers lie.
    loaded : LoadedObservers
        Who is in the run already.
    shown : set of str
        Ids of the stimuli that those are shown; nobody is needed where there are none.
    notices : list of str
        Gets a line where there is nobody to compare with, and why: the run goes on without.
    """
    derive = protocol.stimuli_from_recordings
    anybody = any(entry.observer.kind in ("person", "people") for entry in loaded.observers)
    if protocol.people is None or derive is None or anybody or not shown:
        return []
    root = data_root_of(data_root)
    spec = protocol.people(root) if root is not None else ""
    why = HINT
    if spec:
        try:
            people = load_one(spec, loaded.options, loaded.device)
            saw = [p for p in people if any(s.id in shown for s in derive(p.observer.stimulus_names()))]
            if saw:
                return saw
            why = f"the people of {spec} answered none of these images"
        except UserError as error:
            why = f"{spec} cannot be loaded: {error.message}"
    notices.append(f"{protocol.name}: nobody to compare with; {why}")
    return []
