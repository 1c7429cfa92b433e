"""The observers of a run: those that could be loaded, and why the others could not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from cuebench.errors import UserError
from cuebench.observers.base import LoadOptions, Observer, ObserverBase, complete, is_observer, missing_attributes
from cuebench.observers.baselines import random_initialisations
from cuebench.observers.load import load, with_distinct_names
from cuebench.observers.spec_files import meant, with_name
from cuebench.observers.torch.placement import devices_of
from cuebench.responses.device import Device
from cuebench.responses.events import Event, OnEvent
from cuebench.responses.job import failure_of
from cuebench.runs.record import RunRecord
from cuebench.types import Failure

OBJECT = "object:"
"""How the record names an observer that was passed as an object."""


@dataclass(frozen=True)
class Loaded:
    """An observer and how it was asked for.

    Parameters
    ----------
    observer : ObserverBase
        Ready to answer.
    spec : str
        As the user wrote it, or ``object:NAME``.
    adapter : str
        Adapter and version that loaded it.
    others : tuple of ObserverBase
        The same observer on the other devices of the run.
    baseline_of, baseline : str, int
        For a random initialisation: the name of the trained network, and its number among the initialisations.
    brought : bool
        Whether a protocol brought it along and nobody named it.
    """

    observer: ObserverBase
    spec: str
    adapter: str
    others: tuple[ObserverBase, ...] = ()
    baseline_of: str = ""
    baseline: int = 0
    brought: bool = False

    @cached_property
    def fingerprint(self) -> str:
        """The observer's own, asked for once in a run: it hashes the weights."""
        return self.observer.fingerprint


@dataclass
class LoadedObservers:
    """Observers that could be loaded, and those that could not."""

    observers: list[Loaded] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    device: Device = field(default_factory=Device)
    """Which of them are on the device: not all where they do not fit together."""
    options: LoadOptions = field(default_factory=LoadOptions)
    """What they were loaded with."""


def load_observers(
    wanted: Sequence[str | Observer],
    options: LoadOptions,
    baselines: int,
    tell: OnEvent,
    taken: Mapping[str, str] | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> LoadedObservers:
    """Load every observer; one that cannot be loaded is a failure of the run's result, not its end.

    Parameters
    ----------
    wanted : sequence of str or Observer
        Specs and objects.
    options : LoadOptions
        What the run says to every adapter.
    baselines : int
        Random initialisations of every network that are loaded too.
    tell : callable
        Told of failures and of networks that cannot be initialised at random.
    taken : mapping of str to str, optional
        Names of observers that answer already, and their specs: an observer of such a name is a failure. Without it
        two observers of one name are refused.
    stopped : callable
        Asked before each one whether it is still wanted.
    """
    result = LoadedObservers(options=options)
    for observer in wanted:
        if stopped():
            return result
        try:
            result.observers += load_one(observer, options, result.device)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a user's script may raise anything, or end Python
            result.failures.append(failure_of(observer if isinstance(observer, str) else observer.name, error))
    if result.observers:
        tell_failures(result.failures, tell)
    for trained in [o for o in result.observers if o.observer.kind == "model"] if baselines else []:
        name = trained.observer.name
        try:
            specs = random_initialisations(trained.spec, name, baselines)
            for number, spec in enumerate(specs):
                loaded = load_one(spec, options, result.device)
                result.observers += [replace(o, baseline_of=name, baseline=number) for o in loaded]
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the network itself is measured all the same
            tell(Event("notice", f"no baselines of {name}: {failure_of('', error).reason}"))
    clashes = _name_clashes(result.observers, taken or {})
    if clashes and taken is None:
        raise clashes[0][1]
    for entry, clash in clashes:
        result.observers.remove(entry)
        result.failures.append(failure_of(entry.spec, clash))
        tell_failures(result.failures[-1:], tell)
    return result


def listed_observers(
    observers: str | Observer | Iterable[str | Observer], folder: Path | None = None
) -> list[str | Observer]:
    """Return a list of specs and objects; anything else is refused with what it lacks.

    Parameters
    ----------
    observers : str, Observer, or several
        As the user named them.
    folder : Path or None
        The run folder: what it holds keeps its name there.
    """
    if isinstance(observers, str) or is_observer(observers):
        wanted: list[Any] = [observers]
    else:
        one = callable(observers) or not isinstance(observers, Iterable)  # an nn.Sequential is one model
        wanted = [observers] if one else list(cast("Iterable[Any]", observers))
    for observer in wanted:
        if not isinstance(observer, str) and not is_observer(observer):
            missing = ", ".join(missing_attributes(observer))
            raise UserError(
                f"expected an observer or a spec such as timm:resnet50; got {type(observer).__name__}",
                f"wrap a model: cuebench.wrap(model, preprocess=…, labels=…); an observer of your own needs {missing}",
            )
    return with_distinct_names(wanted, _held_in(folder))


def _held_in(folder: Path | None) -> list[str]:
    """Return the specs of a run folder, as they are meant from everywhere."""
    try:
        arguments = {} if folder is None else RunRecord.read(folder).arguments
    except UserError:  # none there, or damaged
        return []
    return [meant(spec, arguments.get("folder") or ".") for spec in arguments.get("observers", ())]


def tell_failures(failures: Sequence[Failure], tell: OnEvent) -> None:
    """Send an event for each."""
    for f in failures:
        fields = {"observer": f.observer, "hint": f.details.get("hint", "")}
        tell(Event("failed", f"{f.observer}: {f.reason}", fields=fields))


def load_one(wanted: str | Observer, options: LoadOptions, device: Device) -> list[Loaded]:
    """Load what a spec stands for; observers loaded earlier give way where the device gets full."""
    if isinstance(wanted, str):
        first, *more = devices_of(options.device)
        loaded = [Loaded(o, wanted, o.loaded_by) for o in load(wanted, replace(options, device=first))]
        if more and any(entry.observer.preprocess for entry in loaded):
            # Loaded once more for each: what code keeps of a device, a copy would keep too.
            copies = [load(wanted, replace(options, device=name)) for name in more]
            loaded = [replace(entry, others=_same(entry, same)) for entry, *same in zip(loaded, *copies)]
    else:
        loaded = [Loaded(complete(wanted), f"{OBJECT}{wanted.name}", "wrap/1")]
    for entry in loaded:
        device.admit(entry.observer, entry.others)
    return loaded


def _same(entry: Loaded, copies: Sequence[ObserverBase]) -> tuple[ObserverBase, ...]:
    """Return the copies of an observer on other devices; none where they are not the same or look at no pixels."""
    same = entry.observer.preprocess is not None and all(copy.fingerprint == entry.fingerprint for copy in copies)
    return tuple(copies) if same else ()


def _name_clashes(observers: Sequence[Loaded], taken: Mapping[str, str]) -> list[tuple[Loaded, UserError]]:
    """Return the observers whose name another one has, each with what to write instead."""
    per_spec = Counter(o.spec for o in observers)
    first = {name: spec for name, spec in taken.items() if spec not in per_spec}
    clashes = []
    for loaded in observers:
        name = loaded.observer.name
        if name not in first:
            first[name] = loaded.spec
            continue
        other = first[name]
        if loaded.spec.startswith(OBJECT):
            hint = "give one of the wrapped models another name: wrap(…, name=…)"
        elif loaded.spec == other:
            hint = "name it once"
        elif per_spec[loaded.spec] > 1:
            hint = f"leave one of the two out, or rename {name!r} in the file"
        else:
            hint = f"name one of them: {with_name(loaded.spec, 'NAME')}"
        problem = f"two observers are called {name!r} (from {other} and {loaded.spec})"
        clashes.append((loaded, UserError(problem, hint)))
    return clashes
