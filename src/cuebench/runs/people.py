"""The people whom a protocol brings along, so that a run of models has somebody to compare them with.

They are there where nobody has named people for the protocol, in this command or in one before it: the result is that
of one command with all observers.
"""

from __future__ import annotations

import os
from collections.abc import Set
from dataclasses import replace
from pathlib import Path

from cuebench.errors import UserError
from cuebench.protocols.base import Protocol
from cuebench.responses.job import JobRecord
from cuebench.runs.loading import Loaded, LoadedObservers, load_one
from cuebench.runs.record import RunRecord

PEOPLE = ("person", "people")
"""Kinds of observers that are people."""

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
    before: RunRecord | None = None,
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
    before : RunRecord or None
        What the folder holds.
    """
    derive = protocol.stimuli_from_recordings
    anybody = any(entry.observer.kind in PEOPLE for entry in loaded.observers)
    anybody = anybody or (before is not None and protocol.name in attended(before))
    if protocol.people is None or derive is None or anybody or not shown:
        return []
    root = data_root_of(data_root)
    spec = protocol.people(root) if root is not None else ""
    why = HINT
    if spec:
        try:
            people = load_one(spec, loaded.options, loaded.device)
            saw = [p for p in people if any(s.id in shown for s in derive(p.observer.stimulus_names()))]
            named = {} if before is None else named_in(before)
            others = {p.observer.name for p in saw if named.get(p.observer.name, p.spec) != p.spec}
            if saw and not others:
                return [replace(p, brought=True) for p in saw]
            why = f"the people of {spec} answered none of these images"
            if others:
                why = f"the run folder holds {', '.join(sorted(others))} of another source: name them for it, too"
        except UserError as error:
            why = f"{spec} cannot be loaded: {error.message}"
    notices.append(f"{protocol.name}: nobody to compare with; {why}")
    return []


def is_brought(job: JobRecord, record: RunRecord) -> bool:
    """Tell whether a protocol brought somebody along; an earlier cuebench did not mark them: no command named them."""
    unnamed = job.kind in PEOPLE and not job.baseline_of and job.spec not in record.arguments.get("observers", ())
    return job.brought or unnamed


def attended(record: RunRecord) -> set[str]:
    """Return the protocols for which a record holds people whom a command named, or for which these were no use."""
    named = [job for job in record.jobs if job.kind in PEOPLE and not is_brought(job, record)]
    who = {job.observer for job in named}
    tried = {one.protocol for one in [*record.skipped, *record.failures] if one.observer in who}
    return tried | {job.protocol for job in named}


def named_in(record: RunRecord) -> dict[str, str]:
    """Return the names of all observers of a record, with their specs, but those that protocols brought along."""
    return {job.observer: job.spec for job in record.jobs if not is_brought(job, record)}


def brought_for_nothing(record: RunRecord, other: RunRecord) -> list[JobRecord]:
    """Return the jobs of people whom a protocol brought along and who give way to what the other record holds."""
    protocols, named = attended(other), named_in(other)
    brought = [job for job in record.jobs if is_brought(job, record)]
    return [j for j in brought if j.protocol in protocols or named.get(j.observer, j.spec) != j.spec]
