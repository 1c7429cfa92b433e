"""The stimuli of a run: those of every protocol, or why there are none."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from cuebench import labels as label_files
from cuebench.errors import UserError, did_you_mean
from cuebench.options import parse
from cuebench.protocols.base import Protocol
from cuebench.registry import datasets, makers, protocols
from cuebench.types import StimulusSet


@dataclass(frozen=True)
class Source:
    """A protocol and its stimuli, or why there are none."""

    protocol: Protocol
    stimuli: StimulusSet | None
    problem: UserError | None
    limit: int
    seed: int

    def limited(self, stimuli: StimulusSet) -> StimulusSet:
        """Draw images by the seed until there are ``limit`` stimuli; the set then says that it is partial.

        All pictures of an image are drawn together: a corrupted one is worth nothing without the clean one.
        """
        if not self.limit or self.limit >= len(stimuli):
            return stimuli
        pictures = Counter(s.image for s in stimuli)
        order = np.random.default_rng(self.seed).permutation(list(pictures))
        enough = int(np.searchsorted(np.cumsum([pictures[name] for name in order]), self.limit)) + 1
        chosen = set(order[:enough].tolist())
        kept = [s for s in stimuli if s.image in chosen]
        whole = f" ({enough:,} of {len(pictures):,} images)" if len(pictures) < len(stimuli) else ""
        return stimuli.only(kept, f"limited to {len(kept):,} of {len(stimuli):,} stimuli{whole}")


def read_stimuli(
    names: Sequence[str],
    data_root: str | Path | None,
    *,
    limit: int,
    seed: int,
    settings: Mapping[str, str] | None = None,
) -> list[Source]:
    """Read the stimuli of every protocol. Missing data is an error only if an observer turns out to need it."""
    if not names:
        raise UserError("no protocol was named", f"known: {', '.join(protocols)}")
    root = data_root or os.environ.get("CUEBENCH_DATA")
    check_settings(names, settings or {})
    chosen = [_configured(protocols.get(name), settings or {}) for name in dict.fromkeys(names)]
    return [_source(protocol, root, limit, seed) for protocol in chosen]


def check_settings(names: Sequence[str], settings: Mapping[str, str]) -> None:
    """Refuse an option that no protocol of the run has: it would be silently without effect."""
    for key in settings:
        name, _, option = key.partition(".")
        if name not in names:
            known = ", ".join(f"{n}.{o}" for n in names for o in protocols.get(n).options) or "none"
            raise UserError(
                f"--set {key}: no protocol of this run is called {name!r}", f"PROTOCOL.OPTION=VALUE; here: {known}"
            )
        if option not in protocols.get(name).options:
            raise did_you_mean(f"option of protocol {name!r}:", option, protocols.get(name).options)


def _configured(protocol: Protocol, settings: Mapping[str, str]) -> Protocol:
    own = {k.partition(".")[2]: v for k, v in settings.items() if k.partition(".")[0] == protocol.name}
    values = parse(protocol.options, own, f"protocol {protocol.name!r}")
    return protocol.configure(values) if protocol.configure else protocol


def _source(protocol: Protocol, root: str | Path | None, limit: int, seed: int) -> Source:
    if root is None and protocol.standalone is not None:
        source = Source(protocol, None, None, limit, seed)
        try:
            return replace(source, stimuli=source.limited(protocol.standalone()))
        except UserError as error:
            return replace(source, problem=error)
    if root is None:
        problem = UserError(
            f"protocol {protocol.name!r} needs its stimuli",
            f"say where they are with --data-root DIR{_how_to_get(protocol.name)}",
        )
        return Source(protocol, None, problem, limit, seed)
    try:
        source = Source(protocol, None, None, limit, seed)
        stimuli = source.limited(protocol.read(Path(root).expanduser()))
    except UserError as error:
        return Source(protocol, None, error, limit, seed)
    return Source(protocol, stimuli, None, limit, seed)


def _how_to_get(name: str) -> str:
    """Return the command that fetches or makes the stimuli of a protocol, where there is one."""
    if name in datasets:
        return f", or get them: cuebench fetch {name} --data-root DIR"
    made = next((maker for maker in makers if name in (maker, makers.get(maker).protocol)), "")
    return f", or make them: cuebench make {made} --out DIR" if made else ""


def classes_of(source: Source) -> tuple[str, ...]:
    """Return the classes that the stimuli of one protocol can be answered with, in a fixed order."""
    if source.stimuli is None:
        return source.protocol.targets
    if source.stimuli.targets:
        return label_files.label_map(source.stimuli.targets).names
    return tuple(dict.fromkeys(c for s in source.stimuli for c in (s.label, s.shape, s.texture) if c))
