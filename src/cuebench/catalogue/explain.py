"""What ``cuebench explain`` says: of a part, of a printed word, of a whole condition."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from cuebench import registry
from cuebench.errors import UserError, did_you_mean
from cuebench.options import describe
from cuebench.types import Axis, Headline
from cuebench.words import WORDS, Word, read_condition, words_for

Facts = dict[str, Any]


def explain(name: str) -> Facts:
    """Return what is known of a name: fact → text or list of texts.

    Parameters
    ----------
    name : str
        A part (metric, protocol, cue, kind of observer, maker, reader, dataset, source of pictures, figure), also as
        ``python:FILE.py:NAME``; a column or another printed word; or a condition such as ``16-way/class=cat``.

    Returns
    -------
    dict
        Where a name stands for several things (``texture_association`` is a metric and a protocol), the facts of the
        others follow with the kind before them: ``protocol: title``.
    """
    if name.startswith(registry.SCHEME):
        kind = _kind_of(name)
        return _part_facts(kind, registry.KINDS[kind].resolve(name))
    sections = {kind: _part_facts(kind, name) for kind in _DESCRIBE if name in registry.KINDS[kind]}
    words = [word for word in words_for(name) if word.kind != "condition"]
    if words:
        sections["word"] = {"name": name, **{word.kind: word.meaning for word in words}}
    condition = _condition_facts(name)
    if condition:
        sections["condition"] = {"name": name, **condition}
    if not sections:
        patterns = [word.pattern.removeprefix("*/").rstrip("*") for word in WORDS]
        known = {n for kind in _DESCRIBE for n in registry.KINDS[kind]} | {p for p in patterns if "*" not in p}
        raise did_you_mean("name", name, known)
    (_, first), *others = sections.items()
    more = {f"{_SINGULAR.get(kind, kind)}: {k}": v for kind, facts in others for k, v in facts.items() if k != "name"}
    return {**first, **more}


def _kind_of(spec: str) -> str:
    """Return which kind of part ``python:FILE.py:NAME`` names, from the attributes that each kind requires."""
    file, _, name = spec.removeprefix(registry.SCHEME).rpartition(":")
    part = getattr(registry.load_file(file), name, None) if file else None
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
    }


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

    lines = [axis(headline), f"larger means more {headline.direction}".replace("more correct", "more correct answers")]
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
