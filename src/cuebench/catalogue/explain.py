"""What ``cuebench explain`` says: of a part, of a printed word, of a whole condition."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from cuebench import registry
from cuebench.calibration.trust import read_trust
from cuebench.errors import UserError, did_you_mean
from cuebench.observers.base import Spec
from cuebench.options import describe
from cuebench.python_files import load_file
from cuebench.reports.comparison import LARGER
from cuebench.runs.record import RunOptions
from cuebench.statistics.measured import measured
from cuebench.types import Axis, Headline
from cuebench.words import WORDS, Word, read_condition, words_for

Facts = dict[str, Any]
_SAME = {
    **dict.fromkeys(("human", "humans", "participant", "participants", "subject", "subjects"), "people"),
    **dict.fromkeys(("p value", "p-value", "significance"), "p"),
    **dict.fromkeys(("95 % interval", "95% interval", "ci", "confidence"), "confidence interval"),
    **dict.fromkeys(("exit", "exit code", "exit codes", "status"), "exit status"),
    **dict.fromkeys(("style transfer", "stylised"), "style"),
    **{"tav": "TAV", "slurm": "queue", "cluster": "queue", "jupyter": "notebook"},
}
"""Words that people try → the one that is explained."""


def explain(name: str) -> Facts:
    """Return what is known of a name: fact → text or list of texts.

    Parameters
    ----------
    name : str
        A part (metric, protocol, cue, kind of observer, maker, reader, dataset, source of pictures, figure), also as
        ``python:FILE.py:NAME``; a column or another printed word; a condition such as ``16-way/class=cat``; an option
        (``triplets.draw``, ``draw``, ``batch_size``, ``--batch-size``); or an observer such as ``timm:resnet50``.

    Returns
    -------
    dict
        Where a name stands for several things (``texture_association`` is a metric and a protocol), the facts of the
        others follow with the kind before them: ``protocol: title``.
    """
    name = name.rstrip(":") or name  # a source as it is written before a name: recorded:
    if name.startswith(registry.SCHEME):
        kind = _kind_of(name)
        return _part_facts(kind, registry.KINDS[kind].resolve(name))
    sections = {kind: _part_facts(kind, name) for kind in _DESCRIBE if name in registry.KINDS[kind]}
    words = [word for word in words_for(name) if word.kind != "condition"]
    if words:
        sections["word"] = {"name": name, **{word.kind: word.meaning for word in words}}
        if any(word.kind == "interval" for word in words) and (simulated := measured(name)):
            sections["word"]["simulated"] = simulated
    condition = _condition_facts(name)
    if condition:
        sections["condition"] = {"name": name, **condition}
    if options := _option_facts(name):
        sections["option"] = {"name": name, **options}
    scheme, colon, _ = name.partition(":")
    if colon and scheme in registry.adapters:
        sections["observer"] = _spec_facts(name)
    if not sections:
        for known in (" ".join(name.split()), "_".join(name.split())):  # headings of tables: `shape\nbias`
            if known != name:
                return explain(known)
        if meant := _SAME.get(name.lower().strip(":").replace("_", " ")):
            return explain(meant)
        raise _unknown(name)
    (_, first), *others = sections.items()
    more = {f"{_SINGULAR.get(kind, kind)}: {k}": v for kind, facts in others for k, v in facts.items() if k != "name"}
    return {**first, **more}


def _unknown(name: str) -> UserError:
    """Return the error for a name that nothing has; of a condition, for the part that is not known."""
    first, slash, _ = name.partition("/")
    if slash:
        parts = [text for text, words in read_condition(name) if not words and text not in registry.cues]
        conditions = [word.pattern for word in WORDS if word.kind == "condition" and not _is_pattern(word.pattern)]
        return did_you_mean("part of a condition:", (parts or [first])[0], {*conditions, "16-way", "1000-way"})
    words = {word.pattern for word in WORDS if not _is_pattern(word.pattern)}
    return did_you_mean("name", name, {n for kind in _DESCRIBE for n in registry.KINDS[kind]} | words)


def _is_pattern(text: str) -> bool:
    return any(sign in text for sign in "*?[=/")


def _kind_of(spec: str) -> str:
    """Return which kind of part ``python:FILE.py:NAME`` names, from the attributes that each kind requires."""
    file, _, name = spec.removeprefix(registry.SCHEME).rpartition(":")
    part = getattr(load_file(file), name, None) if file else None
    for kind in _DESCRIBE:
        required = registry.KINDS[kind].requires
        if required and all(hasattr(part, attribute) for attribute in required):
            return kind
    if part is None:
        raise UserError(f"{spec} names nothing", f"write {registry.SCHEME}FILE.py:NAME")
    known = ", ".join(_SINGULAR[kind] for kind in _DESCRIBE if registry.KINDS[kind].requires)
    raise UserError(
        f"{spec} is a {type(part).__name__}, not a part of cuebench", f"parts that can be explained: {known}"
    )


# ------------------------------------------------------------------------------------------------------- parts


def _part_facts(kind: str, name: str) -> Facts:
    parts = registry.KINDS[kind]
    try:
        facts = _DESCRIBE[kind](name)
    except UserError as error:  # a plug-in that cannot be loaded
        facts = {"problem": error.message, "what to do": error.hint}
    return {"name": name, "kind": _SINGULAR[kind], **facts, "origin": parts.origin(name)}


def _metric(name: str) -> Facts:
    metric = registry.metrics.get(name)
    described = [f.name for f in fields(metric) if f.name not in ("name", "bounds", "compute", "trials", "terms")]
    signature = inspect.signature(metric).replace(return_annotation=inspect.Signature.empty)
    return {
        **{field: getattr(metric, field) for field in described},
        "bounds": f"{metric.bounds[0]:g} to {metric.bounds[1]:g}",
        "call": f"{_package(registry.metrics, name)}{name}{signature}",
        "protocols": [p for p, protocol in registry.protocols.usable() if name in protocol.metrics],
        "how far to trust it": _trust(name),
    }


def _trust(metric: str) -> list[str]:
    """Return what simulated studies found of a metric, in each protocol and condition that was simulated."""
    return [
        f"{t.protocol}, {t.condition}: {t.verdict}. {'. '.join(text[0].upper() + text[1:] for text in t.sentences())}."
        for t in read_trust().values()
        if t.metric == metric
    ]


def _protocol(name: str) -> Facts:
    protocol = registry.protocols.get(name)
    words = [w for w in (*WORDS, *declared_words(name)) if w.kind == "condition" and name in w.protocols]
    return {
        "version": protocol.version,
        "title": protocol.title,
        "headline": _headline(protocol.headline),
        "metrics": list(protocol.metrics),
        "conditions": [f"{_shown(w)}: {w.meaning}" for w in words],
        "needs": [" and ".join(alternative) for alternative in protocol.needs],
        "views": [view.name for view in protocol.views],
        "options": _options(protocol, f"--set {name}."),
        "published values": [
            f"{r.observer}: {r.metric} ({r.condition}) = {r.value}; {r.source}" for r in protocol.reference
        ],
        "citation": protocol.citation.text,
        "url": protocol.citation.url,
        "licence": protocol.citation.licence,
        "bibtex": protocol.citation.bibtex,
    }


def _headline(headline: Headline) -> list[str]:
    """Return the declared headline: metric, conditions, direction, value of people, and the plane."""

    def axis(of: Axis) -> str:
        return f"{of.metric} in {', else '.join(of.conditions)}"

    lines = [axis(headline), f"larger means {LARGER[headline.direction]}"]
    if headline.neutral is not None:
        lines.append(f"neither cue wins at {headline.neutral:g}")
    if headline.human is not None:
        lines.append(f"people: {headline.human:.3f} ({headline.human_source})")
    if headline.plane is not None:
        lines += [f"{cue} axis: {axis(of)}" for cue, of in zip(("shape", "texture"), headline.plane)]
    return lines


def _cue(name: str) -> Facts:
    function = registry.cues.get(name)
    info = function.info
    return {
        "keeps or does": info.kind,
        "call": f"{_package(registry.cues, name)}{name}{inspect.signature(function)}",
        "reference": info.reference,
        "published levels": [f"{key}: {list(values)}" for key, values in info.levels.items()],
        "documentation": inspect.getdoc(function) or "",
    }


def _observer(name: str) -> Facts:
    adapter = registry.adapters.get(name)
    return {
        "form": adapter.form,
        "extra": adapter.extra,
        "examples": list(adapter.examples),
        "options": _options(adapter, "?"),
        "documentation": inspect.getdoc(registry.adapters.module(name)) or "",
    }


def _maker(name: str) -> Facts:
    maker = registry.makers.get(name)
    return {
        "about": maker.about,
        "shown by": maker.protocol or name,
        "options": _options(maker, "--set "),
        "documentation": inspect.getdoc(maker.make) or "",
    }


def _reader(name: str) -> Facts:
    reader = registry.readers.get(name)
    return {"layout": reader.layout, "documentation": inspect.getdoc(reader.read) or ""}


def _dataset(name: str) -> Facts:
    dataset = registry.datasets.get(name)
    return {
        "about": dataset.about,
        "folder": dataset.folder,
        "citation": dataset.citation,
        "licence": dataset.licence,
        "from": list(dataset.mirrors),
    }


def _source(name: str) -> Facts:
    module = registry.sources.module(name)
    return {"about": registry.sources.summary(name), "documentation": inspect.getdoc(module) or ""}


def _figure(name: str) -> Facts:
    figure = registry.figures.get(name)
    return {
        "drawn from": figure.needs,
        "protocol": figure.protocol,
        "options": _options(figure, "--set "),
        "documentation": inspect.getdoc(figure) or registry.figures.summary(name),
    }


def _package(parts: registry.Registry, name: str) -> str:
    """Return where a part can be called from: ``cuebench.cues.``; empty for a part of a user's file."""
    return "" if parts.origin(name).startswith(registry.SCHEME) else f"{parts.package}."


def _options(part: Any, prefix: str) -> list[str]:
    """Return a line for each option that a part declares, as it is written by a user."""
    return [f"{prefix}{line}" for line in describe(part.options)]


# ------------------------------------------------------------------------------------------------------ options


def _option_facts(name: str) -> Facts:
    """Return where an option can be set and what it changes: ``triplets.draw``, ``draw``, ``batch_size``."""
    part, dot, option = name.partition(".")
    facts: Facts = {}
    run = name.removeprefix("--").replace("-", "_")
    if (about := _parameters_of(RunOptions).get(run)) is not None and run in RunOptions.__dataclass_fields__:
        default = RunOptions.__dataclass_fields__[run].default
        facts["option of a run"] = f"--{run.replace('_', '-')} (Python: {run}={default!r}): {about}"
        if run == "settings":
            facts["option of a run"] = f"--set PROTOCOL.OPTION=VALUE: {about}"
    lines = []
    for kind, prefix in _SET_BY.items():
        for owner, loaded in registry.KINDS[kind].usable():
            wanted = option if dot and part == owner else name if not dot else ""
            if wanted in loaded.options:
                (line,) = describe({wanted: loaded.options[wanted]})
                lines.append(f"{registry.KINDS[kind].kind} {owner}: {prefix.format(owner)}{line}")
    return {**facts, **({"option of": lines} if lines else {})}


_SET_BY = {"protocols": "--set {}.", "makers": "--set ", "figures": "--set ", "observers": "{}:…?"}
"""Kind of part → how its options are written."""


def _parameters_of(part: Any) -> dict[str, str]:
    """Return parameter → what the docstring says of it."""
    lines = (inspect.getdoc(part) or "").partition("----------\n")[2].splitlines()
    descriptions: dict[str, list[str]] = {}
    for line in lines:
        if line and not line.startswith(" "):
            names = line.partition(" : ")[0]
            if " " in names.replace(", ", ","):
                break
            descriptions.update({name: [] for name in names.split(", ")})
            last = names.split(", ")
        elif descriptions and line:
            for name in last:
                descriptions[name].append(line.strip())
    return {name: " ".join(texts) for name, texts in descriptions.items()}


def _spec_facts(text: str) -> Facts:
    """Return what an observer's spec stands for, without loading it; wrong options are errors here too."""
    spec = Spec.parse(text)
    declared = registry.adapters.get(spec.scheme).options
    unknown = [key for key in spec.options if key not in declared and "." not in key]
    if unknown:
        raise did_you_mean(f"option of observer {spec.scheme!r}:", unknown[0], declared)
    given = {key: declared[key] for key in spec.options if key in declared}
    return {
        "name": text,
        "kind": "observer",
        "what is loaded": f"{spec.body}, from the source {spec.scheme!r}",
        "called": spec.options.get("name", spec.name),
        "options given": [f"{key}={spec.options[key]}: {option.about}" for key, option in given.items()],
        **{f"{spec.scheme}: {fact}": value for fact, value in _observer(spec.scheme).items()},
    }


_DESCRIBE: dict[str, Callable[[str], Facts]] = {
    "metrics": _metric,
    "protocols": _protocol,
    "cues": _cue,
    "observers": _observer,
    "makers": _maker,
    "readers": _reader,
    "datasets": _dataset,
    "sources": _source,
    "figures": _figure,
}
_SINGULAR = {kind: parts.kind for kind, parts in registry.KINDS.items()}


# -------------------------------------------------------------------------------------------------- conditions


def _condition_facts(condition: str) -> Facts:
    """Return part of the condition → meaning, by protocol where they differ; empty where a part is not known."""
    declared = [word for name, _ in registry.protocols.usable() for word in declared_words(name)]
    meanings = read_condition(condition, declared=declared)
    if len(meanings) == 1 and not meanings[0].words:
        return {}
    facts: Facts = {}
    for text, words in meanings:
        if words:
            facts[text] = [_meaning(word) for word in words] if len(words) > 1 else _meaning(words[0])
        elif text in registry.cues:
            facts[text] = f"the cue {text}: {registry.cues.summary(text)}"
        else:
            return {}
    return facts


def declared_words(protocol: str) -> list[Word]:
    """Return the words that a protocol declares for its own conditions."""
    conditions = registry.protocols.get(protocol).conditions
    return [Word(pattern, "condition", meaning, (protocol,)) for pattern, meaning in conditions.items()]


def _meaning(word: Word) -> str:
    return f"{word.meaning} ({', '.join(word.protocols)})" if word.protocols else word.meaning


def _shown(word: Word) -> str:
    return word.pattern.removeprefix("*/").replace("[0-9]*", "N").replace("*", "…")
