"""One run folder, several commands: what was measured before stays in the run, if the conditions are the same.

A run has one seed, one limit, one size of its stored files, one precision, one place where cues are made, one
background of transparent pictures, one set of stimuli for each protocol and one set of options for each. Under these
conditions observers and protocols can be added, by ``cuebench run`` with the same ``--out`` or by ``cuebench merge``.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cuebench.errors import UserError, all_problems
from cuebench.observers.base import Spec
from cuebench.observers.spec_files import meant, with_name, without_folders, without_name
from cuebench.registry import adapters
from cuebench.responses.collect import unreadable_of
from cuebench.responses.job import JobRecord
from cuebench.runs.loading import OBJECT
from cuebench.runs.people import brought_for_nothing, is_brought
from cuebench.runs.record import RunOptions, RunRecord, parse_settings
from cuebench.types import Failure

CONDITIONS = ("seed", "limit", "shard_size", "precision", "cues_on", "background")
"""Options that must be the same in all of a run: the record keeps one value of each; a repetition uses it for all."""
NOT_APPLICABLE = "not_applicable"
"""Detail of the failure of an observer that by its nature cannot answer a protocol."""
_FLAGS = {"shard_size": "shard-size", "cues_on": "cues"}
"""Conditions whose flags have another name."""
OTHER_FOLDER = "choose another --out, or begin anew with --fresh, which deletes what the folder holds"


def check_conditions(
    before: RunRecord, options: RunOptions, names: Collection[str], place: str, hint: str, again: str = "run it"
) -> None:
    """Refuse to join what was measured under other conditions.

    Parameters
    ----------
    before : RunRecord
        What there is.
    options : RunOptions
        The conditions of what is to be added.
    names : collection of str
        The protocols of what is to be added.
    place : str
        The folder of what there is, for the message.
    hint : str
        What the user can do besides measuring under the same conditions.
    again : str
        What is to be measured so, as the hint says it.
    """
    earlier = before.options
    pairs = [(name.replace("_", " "), getattr(earlier, name), getattr(options, name)) for name in CONDITIONS]
    flags = {name.replace("_", " "): f"{_FLAGS.get(name, name)} {getattr(earlier, name)}" for name in CONDITIONS}
    for name in [name for name in before.protocol_names() if name in names]:
        old, new = settings_of(name, earlier.settings), settings_of(name, options.settings)
        pairs += [(f"{name}.{option}", old.get(option), new.get(option)) for option in {**old, **new}]
    changed = [(name, f"{name} was {old!r}, now {new!r}") for name, old, new in pairs if old != new]
    if changed:
        same = [f"--{flags[name]}" if name in flags else _as_set(name, earlier.settings) for name, _ in changed]
        told = "; ".join(text for _, text in changed)
        ways = f"{again} with {', '.join(same)}; or {hint}"
        raise UserError(f"{place} holds a run under other conditions: {told}", ways)


def _as_set(name: str, settings: Mapping[str, Any]) -> str:
    """Return the flag with which an option of a protocol is what it was."""
    return f"--set {shlex.quote(_written(name, settings[name]))}" if name in settings else f"no --set {name}"


def _written(name: str, value: Any) -> str:
    items = value if isinstance(value, (list, tuple)) else [value]
    return f"{name}={','.join(map(str, items))}"


def settings_of(protocol: str, settings: Any) -> dict[str, Any]:
    """Return all options of a protocol, defaults included, so that a default that was named is no difference."""
    chosen = {key: value for key, value in settings.items() if key.partition(".")[0] == protocol}
    return parse_settings([protocol], chosen)[protocol]


def set_aside_besides(record: RunRecord, asked: Collection[JobRecord]) -> list[str]:
    """Say which answers of the run are touched by a changed observer although this command did not ask for them.

    A folder of answers is set aside as a whole where the observer answers differently now (``responses/again.py``),
    with what it holds of protocols that are not measured now. Answers in other folders stay: those from before.

    Parameters
    ----------
    record : RunRecord
        All of the run.
    asked : collection of JobRecord
        The jobs of this command.
    """
    aside = {job.folder for job in asked if "set_aside" in job.asked_again}
    changed = {job.observer for job in asked if "set_aside" in job.asked_again}
    measured = {(job.observer, job.protocol) for job in asked}
    touched: dict[tuple[str, bool], dict[str, None]] = {}
    for job in record.jobs:
        if job.observer in changed and (job.observer, job.protocol) not in measured:
            touched.setdefault((job.observer, job.folder in aside), {})[job.protocol] = None
    return [
        f"{observer} answers differently now: its answers to {', '.join(names)} "
        f"{'are set aside too' if lost else 'are those from before'}; ask for them again: -o {observer} "
        + " ".join(f"-p {name}" for name in names)
        for (observer, lost), names in touched.items()
    ]


def join(before: RunRecord, record: RunRecord, place: str, hint: str, *, merging: bool = False) -> list[JobRecord]:
    """Add to a new record what an earlier one of the same conditions holds besides; return the jobs that stay.

    What the new record names again, an observer on a protocol, is replaced, whatever became of it. The order is that in
    which observers and protocols were first named, so that it does not depend on how often which command was repeated.

    Parameters
    ----------
    before : RunRecord
        What there is.
    record : RunRecord
        What is added to it; changed.
    place : str
        The folder of what there is, for messages.
    hint : str
        What the user can do.
    merging : bool
        Both are finished runs: only what the second has measured is replaced. It need not have measured all its
        observers on all its protocols, and where it failed the first may have answers.

    Raises
    ------
    UserError
        Where the observers that stay were shown other stimuli, or where a name stands for two observers.
    """
    before = respelled(before, record, merging=merging)
    specs, names = record.arguments["observers"], record.arguments["protocols"]
    record.failures = _with_protocols(record)
    for_nothing = brought_for_nothing(before, record)
    left_out = brought_for_nothing(record, before)
    record.jobs = [job for job in record.jobs if job not in left_out]
    pairs = {(job.observer, job.protocol) for job in record.jobs}
    if not merging:
        pairs |= {(failure.observer, failure.protocol) for failure in [*record.failures, *record.skipped]}

    def is_replaced(observer: str, spec: str, protocol: str) -> bool:
        return (observer, protocol) in pairs or (not merging and spec in specs and protocol in names)

    replaced = {(j.observer, j.protocol) for j in before.jobs if is_replaced(j.observer, j.spec, j.protocol)}
    of_replaced = set() if merging else replaced  # their random baselines are made anew with them
    staying = [job for job in before.jobs if job not in for_nothing]
    if not merging:  # their answers are compared then
        _check_names([job for job in staying if not is_brought(job, before)], record, place, hint)
    kept = [
        job
        for job in staying
        if (job.observer, job.protocol) not in replaced and (job.baseline_of, job.protocol) not in of_replaced
    ]
    _check_stimuli(kept, record.jobs, place, hint)
    _check_code(kept, record.jobs, place, hint, merging=merging)
    check_observers(before.jobs, kept, record.jobs, place, hint)
    own = {job.stimuli for job in record.jobs}
    stimuli = {name: about for name, about in record.stimuli.items() if name in own}
    failures = _other_failures(_with_protocols(before), is_replaced)
    skipped = _other_failures(before.skipped, is_replaced)
    if not (kept or failures or skipped):
        return []
    record.failures, record.skipped = failures + record.failures, skipped + record.skipped
    all_specs = list(dict.fromkeys([*before.arguments.get("observers", ()), *specs]))
    all_names = list(dict.fromkeys([*before.arguments.get("protocols", ()), *names]))
    settings = {**before.arguments.get("settings", {}), **record.arguments.get("settings", {})}
    record.arguments |= {"observers": all_specs, "protocols": all_names, "settings": settings}
    record.protocols = {**before.protocols, **record.protocols}
    record.jobs = in_order([*kept, *record.jobs], all_specs, all_names)
    sort_out_failures(record)
    manifests = {job.stimuli for job in record.jobs}
    record.stimuli = {n: v for n, v in {**before.stimuli, **stimuli}.items() if n in manifests}
    record.files = {f"stimuli/{n}": before.files[f"stimuli/{n}"] for n in manifests if f"stimuli/{n}" in before.files}
    record.unreadable = with_unreadable(_unreadable_to(kept, before), record.unreadable)
    record.notices = list(dict.fromkeys([*before.notices, *record.notices]))
    return kept


def respelled(before: RunRecord, record: RunRecord, *, merging: bool = False) -> RunRecord:
    """Return what there is with its specs as the new record means them.

    A spec that the new record names too is written as there, whatever folder it was written in; where the new one was
    made in another folder, the files of all others are named absolutely, so that none of its folder is taken for them.
    """
    folder = str(record.arguments.get("folder", ""))
    folder = str(record.arguments.get("folder", ""))
    earlier = str(before.arguments.get("folder", "")) or folder
    moved = not merging and not Path(earlier).is_dir()  # perhaps: the same texts are the same then
    now = dict.fromkeys([*record.arguments["observers"], *(job.spec for job in record.jobs)])
    meanings = {meant(spec, folder): spec for spec in now}
    specs = dict.fromkeys([*before.arguments.get("observers", ()), *(job.spec for job in before.jobs)])

    def names(of: RunRecord, spec: str) -> set[str]:
        return {job.observer for job in of.jobs if job.spec == spec}

    def spelled(spec: str) -> str:
        there = meant(spec, earlier)
        same = meanings.get(meant(spec, folder) if moved else there)
        if same is None:  # a name that the observer does not take from its spec; or a folder of another machine
            bare = without_folders if merging else without_name
            alike = [s for meaning, s in meanings.items() if bare(meaning) == bare(there)]
            same = next((s for s in alike if names(before, spec) & names(record, s)), None)
        return same or (spec if earlier == folder else there)

    known = {spec: spelled(spec) for spec in specs}
    named = list(dict.fromkeys(known[spec] for spec in before.arguments.get("observers", ())))
    return replace(
        before,
        arguments={**before.arguments, "observers": named},
        jobs=[replace(job, spec=known[job.spec]) for job in before.jobs],
        failures=[replace(f, observer=known.get(f.observer, f.observer)) for f in before.failures],
        skipped=[replace(f, observer=known.get(f.observer, f.observer)) for f in before.skipped],
    )


def staying(kept: Sequence[JobRecord], specs: Collection[str], folder: str) -> str:
    """Say whose answers a command finds in a run folder besides those that it asks for.

    Of a model that it asks too, these may be older than those of now: what no hash sees, such as a variable of the
    environment, may have changed, and only stored answers to what is asked are asked again (``responses/again.py``).

    Parameters
    ----------
    kept : sequence of JobRecord
        What stays.
    specs : collection of str
        The observers that the command names.
    folder : str
        The run folder.
    """
    observers = ", ".join(dict.fromkeys(job.observer for job in kept))
    text = f"{folder} holds answers of {observers} too: all of them are scored"
    unasked: dict[tuple[str, str], dict[str, None]] = {}
    for job in kept:
        if job.kind == "model" and job.spec in specs:
            unasked.setdefault((job.observer, job.spec), {})[job.protocol] = None
    for (observer, spec), names in unasked.items():
        options = " ".join([f"-o {shlex.quote(spec.removeprefix(OBJECT))}", *(f"-p {name}" for name in names)])
        text += (
            f"; the answers of {observer} to {', '.join(names)} were not asked again: run it with {options} to check"
        )
    return text


def scored_otherwise(before: RunRecord, record: RunRecord, place: str) -> str:
    """Say which scores a run makes with other options than ``cuebench score`` had made them with; empty: none."""
    made, scored, ours = before.options.scoring(), before.scored, record.options.scoring()
    then = {**made, **scored}
    chosen = {name for name, _, _ in differing_scoring(then, made, before.protocol_names())}
    undone = [one for one in differing_scoring(then, ours, before.protocol_names()) if one[0] in chosen]
    if not undone:
        return ""
    told = "; ".join(f"{name} {old!r}, here {new!r}" for name, old, new in undone)
    flags = [_score_flag(name, old, then["settings"]) for name, old, _ in undone]
    return (
        f"{place} had been scored again with other options than those of the run, with which it is scored now: {told}; "
        f"for the others again: {shlex.join(['cuebench', 'score', place])} {' '.join(flags)}"
    )


def _score_flag(name: str, value: Any, settings: Mapping[str, Any]) -> str:
    if name == "common":
        return "--common" if value else "--all"
    if name in ("seed", "resamples"):
        return f"--{name} {value}"
    return f"--set {shlex.quote(_written(name, settings.get(name, value)))}"


def differing_scoring(
    theirs: Mapping[str, Any], ours: Mapping[str, Any], protocols: Iterable[str]
) -> list[tuple[str, Any, Any]]:
    """Return which options of scoring differ, each with both values (see ``RunOptions.scoring``)."""
    pairs = [(name, theirs[name], ours[name]) for name in ("seed", "resamples", "common")]
    for protocol in protocols:
        then, here = (settings_of(protocol, options["settings"]) for options in (theirs, ours))
        pairs += [(f"{protocol}.{name}", then.get(name), value) for name, value in here.items()]
    return [(name, then, here) for name, then, here in pairs if then != here]


def sort_out_failures(record: RunRecord) -> None:
    """Leave of the failures what one run of all would have: not what was measured after all, by another command or run.

    An observer that cannot answer a protocol by its nature has failed only where it was measured on no other.
    """
    measured = {job.observer for job in record.jobs}
    never = [f for f in record.failures if f.details.get(NOT_APPLICABLE) and f.observer in measured]
    pairs = {(name, job.protocol) for job in record.jobs for name in (job.observer, job.spec)}
    record.skipped = [s for s in once([*record.skipped, *never]) if (s.observer, s.protocol) not in pairs]
    pairs |= {(s.observer, s.protocol) for s in record.skipped}
    record.failures = [f for f in once(record.failures) if (f.observer, f.protocol) not in pairs]


def once(failures: Iterable[Failure]) -> list[Failure]:
    """Keep the first failure of an observer on a protocol: several processes, or runs, met it."""
    first: dict[tuple[str, str], Failure] = {}
    for failure in failures:
        first.setdefault((failure.observer, failure.protocol), failure)
    return list(first.values())


def with_unreadable(before: Mapping[str, str], more: Mapping[str, str]) -> dict[str, str]:
    """Join what could not be read, sorted; an id that an earlier cuebench wrote without its set counts once."""
    ids = {key.partition("/")[2] for key in more}
    return dict(sorted({**{key: why for key, why in before.items() if key not in ids}, **more}.items()))


def on_each(failures: Iterable[Failure], names: Sequence[str]) -> list[Failure]:
    """Return what could not be loaded as a failure on each protocol it was asked for; the others as they are.

    A later command may name the observer again with some of the protocols only.
    """
    return [replace(f, protocol=name) for f in failures for name in ([f.protocol] if f.protocol else names)]


def _with_protocols(record: RunRecord) -> list[Failure]:
    """Return the failures of a record; an earlier cuebench did not say on which protocols something was not loaded."""
    measured = {(name, job.protocol) for job in record.jobs for name in (job.spec, job.observer)}
    named = record.arguments.get("protocols", ())
    unlike = {f.observer: [n for n in named if (f.observer, n) not in measured] for f in record.failures}
    return [one for f in record.failures for one in on_each([f], unlike[f.observer])]


def _other_failures(failures: Sequence[Failure], is_replaced: Any) -> list[Failure]:
    """Return the failures of what is not named again; those of scoring are found anew."""
    return [f for f in failures if not f.details.get("scoring") and not is_replaced(f.observer, f.observer, f.protocol)]


def _unreadable_to(kept: Sequence[JobRecord], before: RunRecord) -> dict[str, str]:
    """Return what could not be shown to the observers that stay.

    An earlier cuebench recorded ids without their set: these go with the last observer that was shown pictures.
    """
    shown = [job.stimuli for job in kept if job.key.get("preprocess") is not None]
    sets = {name: unreadable_of(str(about.get("fingerprint", ""))) for name, about in before.stimuli.items()}
    others = tuple(set(sets.values()) - {sets[name] for name in shown if name in sets})
    return {key: why for key, why in before.unreadable.items() if shown and not key.startswith(others)}


def in_order(jobs: Sequence[JobRecord], specs: Sequence[str], names: Sequence[str]) -> list[JobRecord]:
    """Sort jobs as one command with all observers and protocols would have made them."""
    spec_of = {(job.protocol, job.observer): job.spec for job in jobs}

    def place(job: JobRecord) -> tuple[int, bool, int]:
        spec = spec_of.get((job.protocol, job.baseline_of), job.spec)
        position = specs.index(spec) if spec in specs else len(specs)
        return (names.index(job.protocol) if job.protocol in names else len(names)), bool(job.baseline_of), position

    return sorted(jobs, key=place)


def failures_in_order(failures: Iterable[Failure], record: RunRecord) -> list[Failure]:
    """Sort failures by protocol and observer, as they were first named, whichever command of the run found them."""
    names, specs = (list(record.arguments.get(what, ())) for what in ("protocols", "observers"))
    spec_of = {job.observer: job.spec for job in record.jobs}

    def place(failure: Failure) -> tuple[int, int, str, str]:
        observer = failure.observer
        known = (spec_of.get(observer), observer, f"{OBJECT}{observer}")
        position = next((specs.index(spec) for spec in known if spec in specs), len(specs))
        protocol = names.index(failure.protocol) if failure.protocol in names else len(names)
        return protocol, position, observer, failure.reason

    return sorted(failures, key=place)


def _check_stimuli(kept: Sequence[JobRecord], added: Sequence[JobRecord], place: str, hint: str) -> None:
    """Refuse to put observers side by side that were shown different sets of the same protocol.

    Recordings bring their own stimuli, and may have others.
    """
    shown = {job.protocol: job for job in added if _shown_the_data(job)}
    for job in kept:
        other = shown.get(job.protocol)
        if other is not None and _shown_the_data(job) and job.stimuli != other.stimuli:
            raise UserError(
                f"{place} holds answers of {job.observer} to other stimuli of {job.protocol!r} "
                f"({job.stimuli}) than those of {other.observer} ({other.stimuli})",
                f"use the same data root, name {job.observer} again, or {hint}",
            )


def _check_code(kept: Sequence[JobRecord], added: Sequence[JobRecord], place: str, hint: str, *, merging: bool) -> None:
    """Refuse to put observers side by side whose pictures, or whose summaries of answers, were made by other code."""
    differing: dict[tuple[str, str], dict[str, JobRecord]] = {}
    for job in kept:
        for other in [other for other in added if other.protocol == job.protocol]:
            if what := _made_otherwise(job, other):
                differing.setdefault((job.protocol, what), {})[job.observer] = job
    if not differing:
        return
    problems = [f"{', '.join(jobs)} on {protocol!r}: {what}" for (protocol, what), jobs in differing.items()]
    again = {job.spec.removeprefix(OBJECT): None for jobs in differing.values() for job in jobs.values()}
    named = " ".join(f"-o {shlex.quote(spec)}" for spec in again)
    way = f"name them in this command too, and they are asked anew: {named}; or {hint}"
    if merging:
        way = f"{hint}, such as in {place}: {named}"
    raise all_problems(f"{place} holds answers to what other code has made", problems, way)


def _made_otherwise(job: JobRecord, other: JobRecord) -> str:
    """Say what was made by other code for one observer than for another; empty: nothing."""
    shown, there = job.key.get("preprocess"), other.key.get("preprocess")
    if shown is not None and there is not None and job.stimuli == other.stimuli:
        old, new = (_without_device(one.get("recipes", {})) for one in (shown, there))
        if changed := [name for name in {**old, **new} if old.get(name) != new.get(name)]:
            return f"the pictures are made by other code now ({', '.join(changed)})"
    old_summary, new_summary = _summary(job), _summary(other)
    if old_summary and new_summary and old_summary != new_summary:
        return "the summary that is kept of answers is made by other code now"
    return ""


def _without_device(recipes: Mapping[str, str]) -> dict[str, str]:
    """Return the versions of cues without where they were made (``stimuli.on_device.marked``)."""
    return {name: version.partition(" on ")[0] for name, version in recipes.items()}


def _summary(job: JobRecord) -> str:
    """Return the hash of the code that a summary of answers was made with; the classes may be others."""
    return next((text.rpartition(" ")[2] for text in job.key.get("needs", ()) if text.startswith("summary of ")), "")


def _check_names(staying: Sequence[JobRecord], record: RunRecord, place: str, hint: str) -> None:
    """Refuse an observer that is called as another one that is there: their specs differ."""
    named = {job.observer: job.spec for job in record.jobs}
    failed = {failure.observer for failure in [*record.failures, *record.skipped]} - set(named)
    known = {*record.arguments["observers"], *named.values()}
    for job in [job for job in staying if job.kind != "ideal" and not job.baseline_of]:
        spec = named.get(job.observer, job.spec)
        if job.observer in failed and job.spec not in known:
            spec = next((s for s in known if job.observer == _name_in(s)), "another one")
        if spec == job.spec:
            continue
        way = f"give the new one another name: -o {shlex.quote(with_name(spec, 'NAME'))}"
        if spec.startswith(OBJECT) or ":" not in spec:
            way = "give the new one another name: wrap(…, name=…)"
        elif len({name for name, other in named.items() if other == spec}) > 1:
            way = f"rename {job.observer!r} in one of the two files"
        problem = (
            f"two observers are called {job.observer!r} (from {job.spec}, whose answers {place} holds, and {spec})"
        )
        raise UserError(problem, f"{way}; or {hint}")


def _name_in(spec: str) -> str:
    return Spec.parse(spec).options.get("name", "") if ":" in spec else ""


def _shown_the_data(job: JobRecord) -> bool:
    return job.kind == "ideal" or job.key.get("preprocess") is not None


def check_observers(
    before: Sequence[JobRecord], kept: Sequence[JobRecord], added: Sequence[JobRecord], place: str, hint: str
) -> None:
    """Refuse one name for two observers: other specs, or the same one with other weights."""
    problems: list[str] = []
    for job in kept:
        for other in [other for other in added if other.observer == job.observer]:
            then = next((j for j in before if _same_question(j, other)), job)
            changed = job.spec != other.spec or (
                then.key.get("weights") != other.key.get("weights") and not _made_of_other_classes(then, other)
            )
            if changed and job.kind != "ideal":
                problems.append(
                    f"{job.observer!r} answered {job.protocol!r} as another model than it is for {other.protocol!r}"
                )
    if problems:
        title = f"{place} holds answers of an observer of the same name"
        raise all_problems(title, list(dict.fromkeys(problems)), f"give it another name, name all protocols, or {hint}")


def _made_of_other_classes(job: JobRecord, other: JobRecord) -> bool:
    """Tell whether weights may differ because the classes do: those of a text encoder are made of their names."""
    source = str(other.key.get("adapter", "")).partition("/")[0]
    made = source in adapters.names() and adapters.get(source).weights_of_classes
    return made and job.key.get("labels") != other.key.get("labels")


def _same_question(job: JobRecord, other: JobRecord) -> bool:
    return (job.protocol, job.view, job.observer) == (other.protocol, other.view, other.observer)
