"""Read a design: a folder of TOML, JSON and Markdown that says what participants of a study see and are asked.

    design.toml            protocol, blocks, groups and their orders, times, attention checks
    timeline.json          the timeline of the page, in jsPsych's words
    texts/<language>/      consent.md, instructions.md, debriefing.md, words.toml
    icons/<option>.svg     optional: a picture for each possible answer

``docs/studies.md`` has the whole description. All problems of a design are reported at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cuebench.errors import UserError, all_problems, did_you_mean
from cuebench.options import check_types
from cuebench.reading import read_json, read_text, read_toml
from cuebench.study._design_file import DesignFile, WordsFile, read_typed
from cuebench.study.types import KINDS, TASKS
from cuebench.study.vendor import plugins

BUILT_IN = Path(__file__).parent / "designs"
WORDS = Path(__file__).parent / "web" / "words"
OWN_TYPES = ("frames", "answer")
"""Types of timeline nodes that the page brings itself: shown for a number of frames; a question with options."""
TEXT_ANSWERS = ("survey-text", "survey-likert", "html-slider-response")
"""Plug-ins whose response is none of the options."""
WHEN = ("kind", "task", "block", "several", "free")
"""What of a trial a node of the timeline can be kept to."""
TEXTS = ("consent", "instructions", "debriefing")
DRAWS = ("study", "participant")
ORDERS = ("fixed", "participant", "trial")
CHECKS = ("instructed", "aligned", "identical")
RELATIONS = ("any", "conflict")
BALANCES = ("", "cue", "label", "shape", "texture", "shape_source", "texture_source", "condition")
"""Columns of the images that a block can balance."""
MOST = 4096
"""Largest number of masks, of their pixels along a side, and of minutes."""
WORDS_OFFERED = 4
"""Words that a trial of the task ``words`` offers unless the block says otherwise, as in the published check."""
_HINT = "see the section “Write a design” of docs/studies.md"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Z]{2})?")
_PART = re.compile(r"\$(times|words)\.([a-z_]+)")
_GAP = re.compile(r"⟨[^⟩]*⟩")
_PLACEHOLDER = re.compile(r"\$([a-z_]+)")
PLACEHOLDERS = (
    *("image", "images", "mask", "options", "labels", "planned_ms", "question", "task", "kind", "several", "free"),
    *("asked", "block", "times", "words", "instructions"),
)
"""What ``$name`` in a timeline can stand for; ``$times.mask_ms``, ``$words.next`` and ``$block.title`` have parts."""


@dataclass(frozen=True)
class Block:
    """A part of a session in which one question is asked.

    Parameters
    ----------
    name, task : str
        Its name, and what is asked for: one of ``TASKS``.
    count : int
        Trials that count.
    cue : str
        Only stimuli with this cue: ``shape``, ``texture``, or empty for all.
    balance : str
        Column of the stimuli whose values are shown equally often; empty: none.
    draw : str
        ``study``: everybody sees the same images, as agreement between people needs it. ``participant``: each sees
        others, and over all participants every image equally often.
    images : str
        Blocks of the same word draw the same images; default: the block's own name.
    order : str
        Of the options: ``fixed``, or random by ``participant`` or by ``trial``.
    familiarisation, practice, attention : int
        Example images of each class; trials before those that count; attention checks.
    choices : int
        Options of a trial of the task ``words``.
    several, free : bool
        Several answers are allowed; a comment may be given.
    """

    name: str
    task: str
    count: int
    cue: str = ""
    balance: str = ""
    draw: str = "study"
    images: str = ""
    order: str = "participant"
    familiarisation: int = 0
    practice: int = 0
    attention: int = 0
    choices: int = WORDS_OFFERED
    several: bool = False
    free: bool = False

    @property
    def sample(self) -> str:
        """What the draw of its images is keyed by."""
        return self.images or self.name

    @property
    def truth(self) -> str:
        """The column that holds the correct answer; empty where there is none."""
        return {"shape": "shape", "texture": "texture", "words": "texture"}.get(self.task, "")


@dataclass(frozen=True)
class Design:
    """What participants of a study see and are asked.

    Parameters
    ----------
    name, version, folder
        Its name and version, and where it was read from.
    protocol, settings, where, relation
        Whose stimuli are shown, options of that protocol, and which stimuli: values of columns; ``conflict`` leaves
        out those with shape and texture of one class (which may still be attention checks).
    blocks : tuple of Block
        In the order of the file.
    groups : mapping of str to tuple of str
        Group → its blocks in order. Participants are dealt to the groups in turn.
    check : str
        Kind of the attention checks: an ``instructed`` answer, an ``aligned`` image (shape and texture of one class),
        a match that is ``identical`` to the anchor.
    times : mapping of str to int
        In milliseconds; ``image_ms`` is how long a stimulus is shown (without it: until the answer).
    masks, mask_pixels : int
        How many images of pink noise are made, and their size.
    minutes : int
        How long a session takes.
    pay : mapping
        What participants get, as shown to them by the texts; not used otherwise.
    texts, wording
        Language → name → Markdown; language → title, and the words of the page, the options, questions and blocks.
    timeline : mapping
        The timeline of the page.
    icons : mapping of str to str
        Option → SVG.
    """

    name: str
    version: int
    folder: Path
    protocol: str
    blocks: tuple[Block, ...]
    groups: Mapping[str, tuple[str, ...]]
    texts: Mapping[str, Mapping[str, str]]
    wording: Mapping[str, Mapping[str, Any]]
    timeline: Mapping[str, Any]
    settings: Mapping[str, str] = field(default_factory=dict)
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    relation: str = "any"
    check: str = "instructed"
    times: Mapping[str, int] = field(default_factory=dict)
    masks: int = 0
    mask_pixels: int = 256
    minutes: int = 10
    fullscreen: bool = True
    pay: Mapping[str, Any] = field(default_factory=dict)
    icons: Mapping[str, str] = field(default_factory=dict)

    @property
    def languages(self) -> list[str]:
        """Languages that it has texts in; English first."""
        return sorted(self.texts, key=lambda language: (language != "en", language))

    def shown(self, languages: Iterable[str]) -> dict[str, Any]:
        """Return file → what participants read of it in some languages."""
        files: dict[str, Any] = {"timeline.json": self.timeline}
        for code in languages:
            files |= {f"texts/{code}/{name}.md": text for name, text in self.texts[code].items()}
            files[f"texts/{code}/words.toml"] = self.wording[code]
        return files

    def block(self, name: str) -> Block:
        """Return a block by its name."""
        return next(block for block in self.blocks if block.name == name)

    def language(self, wanted: str) -> str:
        """Return the wanted language, or the first one where there are no texts in it."""
        near = [language for language in self.languages if language.split("-")[0] == wanted.split("-")[0]]
        return wanted if wanted in self.texts else (near or self.languages)[0]

    def title(self, language: str) -> str:
        """Return the title that participants see."""
        return str(self.wording[self.language(language)]["title"])

    def text(self, language: str, name: str) -> str:
        """Return a text as Markdown: ``consent``, ``instructions`` or ``debriefing``."""
        return self.texts[self.language(language)][name]

    def words(self, language: str) -> dict[str, str]:
        """Return the words of the page and of the options: key → text."""
        wording = self.wording[self.language(language)]
        return {**wording["options"], **wording["page"]}

    def page(self, language: str) -> dict[str, Any]:
        """Return what the page needs besides texts and trials."""
        spoken = self.language(language)
        words = self.wording[spoken]
        return {
            "design": self.name,
            "language": spoken,
            "languages": {code: self.wording[code]["language"] for code in self.languages},
            "minutes": self.minutes,
            "fullscreen": self.fullscreen,
            "words": words["page"],
            "options": words["options"],
            "questions": words["questions"],
            "blocks": words["blocks"],
            "times": dict(self.times),
            "timeline": self.timeline,
            "icons": dict(self.icons),
        }


def placeholders(content: Any) -> list[str]:
    """Return the words in ⟨angle brackets⟩ in a text, or in all texts of mappings and lists.

    >>> placeholders(["by ⟨your name⟩", {"title": "⟨title⟩"}])
    ['⟨your name⟩', '⟨title⟩']
    """
    if isinstance(content, str):
        return [" ".join(gap.split()) for gap in _GAP.findall(content)]
    parts = content.values() if isinstance(content, Mapping) else content if isinstance(content, list | tuple) else ()
    return [gap for part in parts for gap in placeholders(part)]


def design_names() -> list[str]:
    """Return the names of the built-in designs."""
    return sorted(path.parent.name for path in BUILT_IN.glob("*/design.toml"))


def read_design(name: str | Path) -> Design:
    """Read a design by the name of a built-in one, or by its folder.

    Raises
    ------
    UserError
        With everything that is wrong with it.
    """
    folder = BUILT_IN / str(name) if str(name) in design_names() else Path(name).expanduser()
    if not (folder / "design.toml").is_file():
        unknown = did_you_mean("design", str(name), design_names())
        raise UserError(unknown.message, f"{unknown.hint}; or a folder with a design.toml")
    problems: list[str] = []
    facts = read_typed(folder / "design.toml", DesignFile, problems)
    timeline = _timeline(folder, problems)
    texts, wording = _texts(folder, problems)
    icons = {path.stem: read_text(path, "icon") for path in sorted((folder / "icons").glob("*.svg"))}
    problems += [f"icons/{name}.svg holds a script" for name, svg in icons.items() if "<script" in svg.lower()]
    design = None if problems else _built(folder, facts, problems)
    if design is not None:
        design = replace(design, texts=texts, wording=wording, timeline=timeline, icons=icons)
        problems += _disagreements(design)
    if problems or design is None:
        raise all_problems(f"design {name}", problems, _HINT)
    return design


# ---- design.toml -----------------------------------------------------------------------------------------------------


def _built(folder: Path, facts: Mapping[str, Any], problems: list[str]) -> Design | None:
    problems += [f"design.toml: unknown key {key!r}" for key in facts if key not in DesignFile.__dataclass_fields__]
    blocks = tuple(b for entry in facts.get("blocks", []) if (b := _block(entry, problems)) is not None)
    names = [block.name for block in blocks]
    if not blocks:
        problems.append("design.toml: there are no [[blocks]]")
    problems += [f"block {name!r} occurs twice" for name in sorted({n for n in names if names.count(n) > 1})]
    groups = {group: tuple(order) for group, order in facts.get("groups", {"all": names}).items()}
    problems += [] if groups else ["design.toml: [groups] names no group; leave it out for one group with all blocks"]
    for group, order in groups.items():
        problems += [f"group {group!r} names the unknown block {name!r}" for name in order if name not in names]
        problems += [f"group {group!r} has no blocks"] if not order else []
    stimuli, masks, times = facts.get("stimuli", {}), facts.get("masks", {}), facts.get("times", {})
    for key, value in times.items():
        if not key.endswith("_ms") or type(value) is not int or not 0 < value <= 600_000:
            problems.append(f"times.{key} = {value!r}: names end in _ms, values are whole milliseconds up to 600,000")
    check = facts.get("attention", {}).get("kind", "instructed")
    problems += _choice("attention.kind", check, CHECKS)
    problems += _choice("stimuli.relation", stimuli.get("relation", "any"), RELATIONS)
    problems += [f"design.toml: {key} is missing" for key in ("name", "protocol") if not facts.get(key)]
    sizes = {f"masks.{key}": masks.get(key, 0) for key in ("count", "pixels")} | {"minutes": facts.get("minutes", 0)}
    problems += [f"{key} = {n}: 0 to {MOST:,} are possible" for key, n in sizes.items() if not 0 <= n <= MOST]
    if not _NAME.fullmatch(str(facts.get("name", "x"))):
        problems.append(f"name {facts['name']!r}: letters, digits, _ and -")
    if problems:
        return None
    return Design(
        name=facts["name"],
        version=facts.get("version", 1),
        folder=folder,
        protocol=facts["protocol"],
        blocks=blocks,
        groups=groups,
        texts={},
        wording={},
        timeline={},
        settings={key: str(value) for key, value in stimuli.get("settings", {}).items()},
        where={key: tuple(_listed(value)) for key, value in stimuli.get("where", {}).items()},
        relation=stimuli.get("relation", "any"),
        check=check,
        times=times,
        masks=masks.get("count", 0),
        mask_pixels=masks.get("pixels", 256),
        minutes=facts.get("minutes", 10),
        fullscreen=facts.get("fullscreen", True),
        pay=facts.get("pay", {}),
    )


def _block(entry: Mapping[str, Any], problems: list[str]) -> Block | None:
    name = entry.get("name", "?")
    known = Block.__dataclass_fields__
    mine = [f"block {name!r}: unknown key {key!r}" for key in entry if key not in known]
    mine += [f"block {name!r}: {key} is missing" for key in ("name", "task", "count") if key not in entry]
    mine += [] if _NAME.fullmatch(str(name)) else [f"block {name!r}: letters, digits, _ and -"]
    choices = {"task": TASKS, "draw": DRAWS, "order": ORDERS, "cue": ("", "shape", "texture"), "balance": BALANCES}
    for key, allowed in choices.items():
        mine += _choice(f"block {name!r}: {key}", entry[key], allowed) if key in entry else []
    try:
        check_types(entry, Block, f"block {name!r}")
    except UserError as error:
        mine += error.problems or (error.message,)
    for key in ("count", "familiarisation", "practice", "attention", "choices"):
        value = entry.get(key, 1)
        if isinstance(value, int) and not (1 if key == "count" else 0) <= value <= 5000:
            mine.append(f"block {name!r}: {key} = {value!r} is no number of images")
    problems += mine
    return None if mine else Block(**entry)


def _choice(name: str, value: object, allowed: tuple[str, ...]) -> list[str]:
    return [] if value in allowed else [f"{name} = {value!r}; one of {', '.join(map(repr, allowed))}"]


def _listed(value: object) -> list[str]:
    return [str(v) for v in value] if isinstance(value, list) else [str(value)]


# ---- timeline.json ---------------------------------------------------------------------------------------------------


def _timeline(folder: Path, problems: list[str]) -> Mapping[str, Any]:
    try:
        timeline = read_json(folder / "timeline.json", "timeline")
    except UserError as error:
        problems.append(error.message)
        return {}
    if not isinstance(timeline, dict) or not isinstance(timeline.get("timeline"), list):
        problems.append('timeline.json: an object with a list "timeline" is expected')
        return {}
    nodes = list(_nodes(timeline))
    known = [*OWN_TYPES, *plugins()]
    for place, node in nodes:
        if "timeline" not in node and node.get("type") not in known:
            guess = did_you_mean("type", str(node.get("type")), known)
            problems.append(f"timeline.json: {place}: {guess.message}")
        when = node.get("when") or {}
        if not isinstance(when, dict):
            problems.append(f'timeline.json: {place}: "when" is an object, such as {{"kind": "trial"}}')
            continue
        if not isinstance(node.get("timeline", []), list):
            problems.append(f'timeline.json: {place}: "timeline" is a list')
        for key, allowed in when.items():
            values = allowed if isinstance(allowed, list) else [allowed]
            if key not in WHEN:
                problems.append(f"timeline.json: {place}: when {key!r}; known: {', '.join(WHEN)}")
            choices = {"kind": KINDS, "task": TASKS}.get(key)
            problems += [f"timeline.json: {place}: unknown {key} {v!r}" for v in values if choices and v not in choices]
        if node.get("for", "trials") not in ("blocks", "trials"):
            problems.append(f'timeline.json: {place}: "for" is "blocks" or "trials"')
        text = str({key: value for key, value in node.items() if key != "timeline"})
        for name in _PLACEHOLDER.findall(text):
            if name not in PLACEHOLDERS:
                problems.append(f"timeline.json: {place}: unknown placeholder ${name}")
    if not any(node.get("answer") for _, node in nodes):
        problems.append('timeline.json: no node has "answer": true: nothing would be stored')
    if not any(node.get("for") == "trials" for _, node in nodes):
        problems.append('timeline.json: no node has "for": "trials"')
    return timeline


def _nodes(node: Mapping[str, Any], place: str = "timeline") -> Iterator[tuple[str, Mapping[str, Any]]]:
    for number, child in enumerate(node.get("timeline", [])):
        here = f"{place}[{number}]"
        if not isinstance(child, dict):
            yield here, {"type": child}
            continue
        yield here, child
        if isinstance(child.get("timeline"), list):
            yield from _nodes(child, here + ".timeline")


def _disagreements(design: Design) -> list[str]:
    """Return what the parts of a design say differently."""
    problems = []
    known = {"times": set(design.times), "words": set(design.wording[design.languages[0]]["page"])}
    for place, node in _nodes(design.timeline):
        text = str({key: value for key, value in node.items() if key != "timeline"})
        for name, part in _PART.findall(text):
            if part not in known[name]:
                problems.append(f"timeline.json: {place}: ${name}.{part} is in no file of the design")
        if node.get("answer") and node.get("type") in TEXT_ANSWERS and not all(b.free for b in design.blocks):
            problems.append(f"timeline.json: {place}: {node['type']} answers with a text; set free = true in its block")
    if design.check == "instructed" and not design.masks and any(b.attention for b in design.blocks):
        problems.append("instructed attention checks stand for an image: masks.count must be at least 1")
    if design.check == "aligned" and design.relation != "conflict" and any(b.attention for b in design.blocks):
        problems.append('aligned attention checks are no trials: set stimuli.relation = "conflict"')
    return problems


# ---- texts -----------------------------------------------------------------------------------------------------------


def _texts(folder: Path, problems: list[str]) -> tuple[dict[str, dict[str, str]], dict[str, dict[str, Any]]]:
    texts: dict[str, dict[str, str]] = {}
    words: dict[str, dict[str, Any]] = {}
    for place in sorted(path for path in (folder / "texts").glob("*") if path.is_dir()):
        language = place.name
        if not _LANGUAGE.fullmatch(language):
            problems.append(f"texts/{language}: folders are named by language codes: en, de, pt-BR")
            continue
        absent = [f"{name}.md" for name in TEXTS if not (place / f"{name}.md").is_file()]
        problems += [f"texts/{language}/{name} is missing" for name in absent]
        if not absent:
            texts[language] = {name: read_text(place / f"{name}.md", "text") for name in TEXTS}
        words[language] = _words(place / "words.toml", language, problems)
    if not texts and not problems:
        problems.append("there are no texts: texts/en/consent.md, instructions.md, debriefing.md, words.toml")
    return texts, words


def _words(path: Path, language: str, problems: list[str]) -> dict[str, Any]:
    """Return the words of a design in one language: its own before the page's, English where there is no other."""
    common = WORDS / f"{language}.toml"
    base = read_toml(common if common.is_file() else WORDS / "en.toml")
    design_words: dict[str, Any] = {}
    if path.is_file():
        design_words = read_typed(path, WordsFile, problems)
    if not design_words.get("title"):
        problems.append(f"texts/{language}/words.toml has no title")
    problems += [
        f"texts/{language}/words.toml: unknown key {k!r}" for k in design_words if k not in (*base, "title", "blocks")
    ]
    merged: dict[str, Any] = {
        "title": design_words.get("title", ""),
        "language": design_words.get("language", base["language"]),
    }
    for part in ("page", "options", "questions", "blocks"):
        merged[part] = {**base.get(part, {}), **design_words.get(part, {})}
    return merged
