"""The experiments of a run: protocols as their options ask for them, with their stimuli."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from cuebench.errors import NoStimuli, UserError
from cuebench.labels import label_map
from cuebench.protocols.base import Protocol
from cuebench.registry import BUILT_IN, datasets, makers, metrics, protocols
from cuebench.runs.people import data_root_of
from cuebench.runs.record import parse_settings
from cuebench.stimuli.background import on_background
from cuebench.stimuli.identity import identified
from cuebench.types import StimulusSet


@dataclass(frozen=True)
class Experiment:
    """A protocol as its options ask for it, with its stimuli, or the reason why there are none."""

    protocol: Protocol
    values: Mapping[str, Any]
    limit: int
    seed: int
    stimuli: StimulusSet | None = None
    whole: StimulusSet | None = None  # before ``limit``
    table: Path | None = None  # what says shape and texture of the stimuli, in the data root
    problem: UserError | None = None
    shown_to_others: frozenset[str] = frozenset()  # ids, for the people whom the protocol brings along

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """The classes that the stimuli can be answered with, in a fixed order."""
        if self.stimuli is None:
            return self.protocol.targets
        if self.stimuli.targets:
            return label_map(self.stimuli.targets).names
        return tuple(dict.fromkeys(c for s in self.stimuli for c in (s.label, s.shape, s.texture) if c))

    @property
    def baselines(self) -> int:
        """How many random initialisations of every network are measured."""
        return int(self.values.get("baselines", 0)) if self.protocol.baselines else 0

    @property
    def layers(self) -> tuple[str, ...]:
        """The further layers that are measured."""
        return tuple(self.values.get("layers", ())) if self.protocol.layers else ()

    def limited(self, stimuli: StimulusSet) -> StimulusSet:
        """Draw images by the seed until there are ``limit`` stimuli; the set then says that it is partial.

        All versions of an image are drawn together: a corrupted image is worth nothing without the clean one.
        """
        if not self.limit or self.limit >= len(stimuli):
            return stimuli
        versions = Counter(s.image for s in stimuli)
        order = np.random.default_rng(self.seed).permutation(list(versions))
        enough = int(np.searchsorted(np.cumsum([versions[name] for name in order]), self.limit)) + 1
        chosen = set(order[:enough].tolist())
        kept = [s for s in stimuli if s.image in chosen]
        images = f" ({enough:,} of {len(versions):,} images)" if len(versions) < len(stimuli) else ""
        return stimuli.only(kept, f"limited to {len(kept):,} of {len(stimuli):,} stimuli{images}")


def refuse_metric(name: object) -> None:
    """Raise for a metric in place of a protocol: the protocols that measure it are what is wanted."""
    if isinstance(name, str) and name in metrics and name not in protocols:
        by = [protocol for protocol, part in protocols.usable() if name in part.metrics]
        raise UserError(f"{name!r} is a metric, not a protocol", f"protocols that measure it: -p {', -p '.join(by)}")


def read_experiments(
    names: Sequence[str],
    data_root: str | Path | None,
    *,
    limit: int = 0,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    background: str = "white",
) -> list[Experiment]:
    """Configure every protocol and read its stimuli. Missing data is an error only if an observer turns out to need it.

    Parameters
    ----------
    names : sequence of str
        Protocols, by their names in the registry.
    data_root : path or None
        Folder with the datasets; None: the environment variable ``CUEBENCH_DATA``.
    limit, seed, settings, background
        As in ``RunOptions``.
    """
    if not names:
        raise UserError("no protocol was named", f"known: {', '.join(protocols)}")
    values = parse_settings(list(dict.fromkeys(names)), settings or {})
    root = data_root_of(data_root)
    experiments = []
    for name, option_values in values.items():
        protocol: Protocol = protocols.get(name)
        experiment = Experiment(protocol, option_values, limit, seed)
        configured = False
        try:
            experiment = replace(experiment, protocol=protocol.configured(option_values))
            configured = True
            experiment = replace(experiment, table=_table_of(experiment.protocol, root))
            whole = on_background(read_stimuli(experiment.protocol, root), background)
            experiments.append(replace(experiment, whole=whole, stimuli=identified(experiment.limited(whole))))
        except UserError as error:
            if not configured:
                raise  # an option that does not fit: nothing has been spent
            experiments.append(replace(experiment, problem=error))
        except Exception as error:
            if protocols.origin(name) == BUILT_IN:
                raise
            # A protocol of somebody else's may raise anything; the other protocols are measured.
            message = f"protocol {name!r} of {protocols.origin(name)} raised {type(error).__name__}: {error}"
            experiments.append(replace(experiment, problem=UserError(message)))
    return experiments


def _table_of(protocol: Protocol, root: Path | None) -> Path | None:
    """Return the file of a data root that says what a protocol's stimuli are; None where there is none."""
    table = root / protocol.table if root is not None and protocol.table else None
    return table if table is not None and os.path.lexists(table) else None


def read_stimuli(protocol: Protocol, root: str | Path | None) -> StimulusSet:
    """Read the stimuli of a protocol from a data root, or draw them where it can; the error says how to get them."""
    if root is not None:
        try:
            return protocol.read(Path(root))
        except UserError as error:
            folder = Path(root).expanduser()
            if not folder.is_dir():
                missing = f"there is no folder {folder.absolute()}: --data-root names the folder of the data"
                raise UserError(missing, f"check the path{_ways_to_get(protocol, str(root))}") from None
            if not isinstance(error, NoStimuli):
                raise
            raise UserError(error.message, _where_else(error, protocol, folder)) from None
    if protocol.standalone is not None:
        return protocol.standalone()
    how = _ways_to_get(protocol, "DIR")
    raise UserError(f"protocol {protocol.name!r} needs its stimuli", f"say where they are with --data-root DIR{how}")


def _where_else(error: NoStimuli, protocol: Protocol, root: Path) -> str:
    """Return which folder near the data root holds the stimuli; where none does, how to get them."""
    root, place = root.absolute(), Path(error.place).absolute()
    below = place.relative_to(root) if place.is_relative_to(root) else Path(protocol.name)
    inside = sorted(folder for folder in root.iterdir() if folder.is_dir())
    for folder in (root.parent, root.parent.parent, *inside):
        if below.parts and folder != root and (folder / below).is_dir():
            return f"--data-root names the folder that holds {below.parts[0]}/: --data-root {shlex.quote(str(folder))}"
    return f"check the path{_ways_to_get(protocol, str(root), error.hint)}; {error.hint}"


def _ways_to_get(protocol: Protocol, root: str, hint: str = "") -> str:
    """Return the commands that bring the stimuli of a protocol into a data root; none where the hint has one."""
    if "cuebench " in hint:
        return ""
    maker = next((name for name, m in makers.usable() if protocol.name in (name, m.protocol)), "")
    get = f", or get them: cuebench fetch {protocol.name} --data-root {root}" if protocol.name in datasets else ""
    return get + (f", or make them: cuebench make {maker} --out {root}" if maker else "")
