"""The observers of a run: those that could be loaded, and why the others could not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from cuebench.errors import UserError
from cuebench.observers.base import LoadOptions, Observer
from cuebench.observers.baselines import random_initialisations
from cuebench.observers.torch.layers import reading_layers
from cuebench.responses.device import Device
from cuebench.responses.events import Event, OnEvent
from cuebench.responses.job import failed
from cuebench.runs.sources import Source, classes_of
from cuebench.types import Failure

if TYPE_CHECKING:
    from cuebench.runs.options import RunOptions


@dataclass(frozen=True)
class Loaded:
    """An observer and how it was asked for."""

    observer: Observer
    spec: str
    adapter: str
    baseline_of: str = ""

    @cached_property
    def fingerprint(self) -> str:
        """The observer's own, asked for once in a run: it hashes the weights."""
        return self.observer.fingerprint


@dataclass(frozen=True)
class LoadedAll:
    """Observers that could be loaded, and those that could not."""

    observers: list[Loaded]
    failures: list[Failure]
    device: Device = field(default_factory=Device)
    """Who of them is on the device: not all where they do not fit together."""


def load_observers(
    wanted: Sequence[str | Observer], sources: Sequence[Source], settings: RunOptions, tell: OnEvent
) -> LoadedAll:
    """Load every observer; one that cannot be loaded is a failure of the run's result, not its end."""
    if not wanted:
        raise UserError("no observer was named", "for example: -o lite:efficientnet_lite0 -o ideal:shape")
    options = LoadOptions(
        device=settings.device,
        precision=settings.precision,
        offline=settings.offline,
        seed=settings.seed,
        targets=tuple(dict.fromkeys(name for source in sources for name in classes_of(source))),
    )
    found: list[Loaded] = []
    failures: list[Failure] = []
    device = Device()
    for one in wanted:
        try:
            found.extend(_with_layers(_load(one, options, device), settings.features))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a user's script may raise anything, or end Python
            failures.append(failed(one if isinstance(one, str) else one.name, error))
    missing = next((s.problem for s in sources if s.problem is not None), None)
    if not found and failures and missing is not None and not options.targets:
        raise missing  # an ideal observer cannot choose where there is nothing to choose among
    if not found and failures:
        # With a single mistyped observer there is nothing to go on with: say so at once, as an error.
        raise UserError("\n".join(f"{f.observer}: {f.reason}" for f in failures), str(failures[0].details["hint"]))
    tell_failures(failures, tell)
    if any(source.protocol.baselines for source in sources):
        found += _baselines(found, options, settings.baselines, device, tell)
    return LoadedAll(_unique(found), failures, device)


def tell_failures(failures: Sequence[Failure], tell: OnEvent) -> None:
    """Send an event for each."""
    for f in failures:
        fields = {"observer": f.observer, "hint": f.details.get("hint", "")}
        tell(Event("failed", f"{f.observer}: {f.reason}", fields=fields))


def _with_layers(found: list[Loaded], layers: str) -> list[Loaded]:
    """Ask the observers for further layers; one that has none to offer says so in its own error."""
    wanted = [name.strip() for name in layers.split(",") if name.strip()]
    return [replace(one, observer=reading_layers(one.observer, wanted)) for one in found] if wanted else found


def _baselines(found: list[Loaded], options: LoadOptions, number: int, device: Device, tell: OnEvent) -> list[Loaded]:
    """Load random initialisations of every network; what has none is named in a notice."""
    made: list[Loaded] = []
    for one in found if number else []:
        if one.observer.kind != "model":
            continue
        try:
            specs = random_initialisations(one.spec, one.observer.name, number)
            made += [replace(b, baseline_of=one.observer.name) for spec in specs for b in _load(spec, options, device)]
        except Exception as error:  # noqa: BLE001 - the network itself is measured all the same
            tell(Event("notice", f"no baselines of {one.observer.name}: {failed('', error).reason}"))
    return made


def _load(one: str | Observer, options: LoadOptions, device: Device) -> list[Loaded]:
    """Load what a spec stands for; observers loaded earlier give way where the device gets full."""
    made = _made(one, options)
    for loaded in made:
        device.admit(loaded.observer)
    return made


def _made(one: str | Observer, options: LoadOptions) -> list[Loaded]:
    if not isinstance(one, str):
        return [Loaded(one, f"object:{one.name}", "wrap/1")]
    from cuebench.observers.load import load

    return [Loaded(observer, one, str(getattr(observer, "loaded_by", ""))) for observer in load(one, options)]


def _unique(found: list[Loaded]) -> list[Loaded]:
    seen: dict[str, str] = {}
    for one in found:
        if one.observer.name in seen:
            raise UserError(
                f"two observers are called {one.observer.name!r} (from {seen[one.observer.name]} and {one.spec})",
                "name one of them once, or give a wrapped model another name=",
            )
        seen[one.observer.name] = one.spec
    return found
