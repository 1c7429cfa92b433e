"""Methods for a paper, citations, and provenance: everything that is needed to repeat the runs of a report."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from cuebench._version import __version__
from cuebench.interval_methods import EXACT, JEFFREYS, PERMUTATIONS, method_meaning
from cuebench.reports.html.material import Material, Run, declared, metric_of
from cuebench.reports.html.tables import Cell, Table, count, words
from cuebench.reports.html.text import counted, has_interval, listed
from cuebench.runs.record import RunOptions, written_with
from cuebench.types import Citation, Score

FLAGS = {"compile": "--compile", "common": "--common", "offline": "--offline"}
"""Options that are flags without a value."""
UNTOLD = frozenset({"fresh", "settings", "shard", "cues_on", "workers", "cache", "cache_size"})
"""Options that change no number, or that are written in their own way."""
RARE = (EXACT, JEFFREYS, PERMUTATIONS)
"""What takes the place of an interval where nothing varies or nothing is associated, in any protocol."""


class Methods(NamedTuple):
    """Paragraphs, citations by protocol, the commands that repeat the runs, tables and facts of provenance."""

    paragraphs: list[str]
    citations: list[tuple[str, Citation]]
    commands: list[str]
    tables: list[Table]
    environments: list[dict[str, str]]

    @property
    def bibtex(self) -> str:
        """All citations as BibTeX."""
        return "\n\n".join(dict.fromkeys(citation.bibtex for _, citation in self.citations))


def methods(material: Material) -> Methods:
    """Return methods and provenance of the runs."""
    cited = [(name, part.citation) for name in material.protocols if (part := declared(name))]
    return Methods(
        paragraphs=[_observers(material), *(_protocol(material, n) for n in material.protocols), _scoring(material)],
        citations=cited,
        commands=[repeat_command(run) for run in material.runs],
        tables=[_jobs(material), _stimuli(material)],
        environments=[_environment(run) for run in material.runs],
    )


# --------------------------------------------------------------------------------------------------- a paragraph


def _observers(material: Material) -> str:
    by_kind = {kind: material.of_kind(material.observers, kind) for kind in ("model", "people", "person", "ideal")}
    parts = [f"{counted(len(by_kind['model']), 'model')} ({listed(by_kind['model'])})"] if by_kind["model"] else []
    if by_kind["person"]:
        parts.append(f"recorded answers of {counted(len(by_kind['person']), 'person', 'people')}")
    if by_kind["ideal"]:
        parts.append(f"{counted(len(by_kind['ideal']), 'ideal observer')} of known bias ({listed(by_kind['ideal'])})")
    versions = listed(sorted({written_with(run.folder).cuebench for run in material.runs}))
    names = listed([f"{name} (version {_version(material, name)})" for name in material.protocols])
    subject = listed(parts) or "The observers"
    verb = "was" if len(material.observers) == 1 else "were"
    return f"{subject[0].upper()}{subject[1:]} {verb} measured with cuebench {versions}, protocols {names}."


def _protocol(material: Material, name: str) -> str:
    part, column = declared(name), material.headline(name)
    sets = {}
    for run in material.runs:
        for job in run.scores.record.jobs:
            if job.protocol == name:
                sets[job.stimuli] = run.scores.record.stimuli.get(job.stimuli, {})
    first = max(sets.values(), key=lambda s: s.get("count", 0), default={})
    shown = counted(int(first.get("count", 0)), "stimulus", "stimuli")
    if first.get("expected"):
        number, of = first["count"], first["expected"]
        shown = f"all {of:,} stimuli" if number == of else f"{number:,} of the {of:,} stimuli"
    title = part.title if part else name
    cite = f" ({short_citation(part.citation)})" if part else ""
    text = f"{title}{cite}: {shown} were shown."
    metric = metric_of(column.metric) if column else None
    if column is not None and metric is not None:
        text += f" {metric.title} is {metric.formula}, over {metric.denominator}"
        text += f"; condition {column.condition}." if column.condition else "."
    return text


def short_citation(citation: Citation) -> str:
    """Return a citation as it stands in a text: ``Geirhos et al., 2019``.

    >>> short_citation(Citation("Geirhos, Rubisch & Brendel (2019). A title. ICLR.", "", "", ""))
    'Geirhos et al., 2019'
    """
    dated = re.match(r"(?P<authors>.+?)\s*\((?P<year>\d{4})\)", citation.text)
    year = re.search(r"year\s*=\s*{(\d{4})}", citation.bibtex)
    authors = dated["authors"] if dated else citation.text.partition(".")[0]
    when = dated["year"] if dated else year[1] if year else ""
    names = [name.strip() for name in re.split(r",|&| and ", authors) if name.strip()]
    who = f"{names[0]} et al." if len(names) > 2 else " & ".join(names)
    return f"{who}, {when}" if when else who


def _scoring(material: Material) -> str:
    """Say how the intervals of these runs were made: what the rows say of themselves."""
    rows = [s for s in material.rows if has_interval(s)]
    if not rows:
        return "No number has an interval."
    by_method: dict[str, list[Score]] = {}
    for s in rows:
        by_method.setdefault(s.ci_method, []).append(s)
    named = [s for s in rows if s.ci_method not in RARE]
    kinds = listed(sorted({s.ci_kind.replace("_", " ") for s in named}))
    over = f"Intervals are 95 % intervals over {kinds}; where a number has several, the widest is given."
    texts = [over] if kinds else []
    for method in sorted(by_method, key=RARE.__contains__):
        meaning = method_meaning(method) or "How they were made is not recorded; to record it: cuebench score RUN"
        numbers = "" if method in RARE else f" ({'; '.join(_made_so(by_method[method], named))})"
        texts.append(f"{meaning[0].upper()}{meaning[1:]}{numbers}.")
    if any("resamples" in method for method in by_method):
        seeds = {str(run.scores.record.scored.get("seed", 0)) for run in material.runs}
        texts.append(f"Seed: {listed(sorted(seeds))}.")
    return " ".join(texts)


def _made_so(rows: Sequence[Score], all_rows: Sequence[Score]) -> list[str]:
    """Return the protocols of some intervals; their metrics too, where others of the protocol are made otherwise."""
    texts = []
    for protocol in dict.fromkeys(s.protocol for s in rows):
        here = [s for s in rows if s.protocol == protocol]
        others = [s for s in all_rows if s.protocol == protocol and s.ci_method != here[0].ci_method]
        metrics = list(dict.fromkeys(s.metric for s in here)) if others else []
        text = ": ".join(filter(None, (protocol, ", ".join(metric.replace("_", " ") for metric in metrics))))
        if {s.metric for s in others} & set(metrics):
            text += f" over {', '.join(dict.fromkeys(s.ci_kind.replace('_', ' ') for s in here))}"
        texts.append(text)
    return texts


def _version(material: Material, name: str) -> str:
    return listed(sorted({str(s.protocol_version) for s in material.numbers if s.protocol == name}))


# --------------------------------------------------------------------------------------------------- provenance


def repeat_command(run: Run) -> str:
    """Return the command that makes the same run again; observers that were Python objects are named as such."""
    arguments: Mapping[str, Any] = run.scores.record.arguments
    words = ["cuebench", "run"]
    for flag, values in (("-p", arguments.get("protocols", ())), ("-o", arguments.get("observers", ()))):
        words += [word for value in values for word in (flag, str(value))]
    if arguments.get("data_root"):
        words += ["--data-root", str(arguments["data_root"])]
    words += ["--out", str(run.folder)]
    for name, field in RunOptions.__dataclass_fields__.items():
        value = arguments.get(name, field.default)
        if name in UNTOLD or value == field.default or (name == "shard_size" and value == 256):
            continue
        words += [FLAGS[name]] if name in FLAGS else [f"--{name.replace('_', '-')}", str(value)]
    words += ["--cues", "device"] if arguments.get("cues_on") == "device" else []
    settings = {**arguments.get("settings", {}), **run.scores.record.scored.get("settings", {})}
    words += [word for key, value in settings.items() for word in ("--set", f"{key}={_setting(value)}")]
    return shlex.join(words)


def _setting(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _jobs(material: Material) -> Table:
    rows = []
    for run in material.runs:
        for job in run.scores.record.jobs:
            shown = job.preprocess or "looks at no pixels"
            key = {name: str(job.key.get(name, "")) for name in ("precision", "adapter", "weights")}
            cells = [words(run.named(job)), words(job.protocol), words(job.view), words(shown, "note")]
            cells += [words(key["precision"]), words(key["adapter"]), words(key["weights"][:16])]
            rows.append([*cells, words("; ".join(job.notes), "note")])
    columns = ["observer", "protocol", "view", "preprocessing", "precision", "adapter", "SHA-256 of weights", "notes"]
    return Table("provenance-observers", "Observers: how they were shown the stimuli", columns, rows)


def _stimuli(material: Material) -> Table:
    rows = []
    for run in material.runs:
        for name, facts in run.scores.record.stimuli.items():
            expected = facts.get("expected") or 0
            why = words("; ".join(facts.get("partial", [])), "note")
            cells = [words(name), words(str(facts.get("set", ""))), count(facts.get("count", 0))]
            cells += [count(expected) if expected else Cell("–", None), why]
            rows.append([*cells, words(str(facts.get("fingerprint", ""))[:16])])
    columns = ["manifest", "set", "stimuli", "published", "incomplete because", "SHA-256"]
    return Table("provenance-stimuli", "Stimuli: what was shown", columns, rows)


def _environment(run: Run) -> dict[str, str]:
    """Return when and with what a run was made."""
    written = written_with(run.folder)
    packages = ", ".join(f"{name} {version}" for name, version in written.environment.get("packages", {}).items())
    return {
        "Run": run.folder.resolve().name,
        "Time": f"{run.scores.record.started} to {run.scores.record.finished}",
        "cuebench": written.cuebench,
        "Report made with": __version__ if __version__ != written.cuebench else "",
        "Python": str(written.environment.get("python", "")),
        "System": str(written.environment.get("platform", "")),
        "Packages": packages,
        "SHA-256 of scores.parquet": run.scores.record.files.get("scores.parquet", ""),
    }
