"""Reading answers: from the words of a model to one of the classes, or to `undecided`.

A lettered prompt asks for a letter. What is accepted, in this order:

1. ``the answer is D``, also in a few other languages; the last one where it is said twice. A letter is no word of the
   sentence: not the article of ``the answer is a dog``, nor the I of ``Answer: I think a dog``;
2. a letter at the beginning: ``D``, ``D.``, ``(d)``, ``**D**``, ``D. bird``, ``D：鸟``, whatever follows;
3. the class itself, alone or in a plain statement: ``bird``, ``It is a bird.``, ``the answer is a bird``;
4. the last paragraph, if it is one of these.

Everything else is undecided: a refusal, several classes or letters, a letter with the name of another class, a sentence
that only mentions a class or an option (it may as well deny it). A caption is read by the names and synonyms of the
classes (``labels/names``) that occur in it: one class is the answer, several are undecided.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

from cuebench.labels import FOLDER as LABELS
from cuebench.labels.decisions import UNDECIDED
from cuebench.observers.chat.prompts import letters

VERSION = 2
"""Rises when an answer would be read otherwise; part of the key of what is read, not of what is asked."""

How = Literal["letter", "name", "match", "judge", "refusal", "several", "contradiction", "cut", "nothing"]
"""What an answer was decided by, or why it was not."""
WHY_UNDECIDED: Mapping[str, str] = {
    "refusal": "refused",
    "several": "named several classes",
    "contradiction": "gave the letter of one class and the name of another",
    "cut": "were cut at max_tokens",
    "nothing": "named no class",
}


class Reading(NamedTuple):
    """The class that an answer names, or `undecided`; and by what."""

    decision: str
    how: How


_ASIAN = "答案|答え|正解|回答|정답"
_ANSWER_IS = (
    r"(?:(?:\b(?:answer|option|letter|choice|antwort|lösung|réponse|respuesta|risposta|resposta|ответ)"
    rf"|{_ASIAN})[\s\"'*]*(?:\b(?:is|would be|ist|lautet|est|es|è|é)\b|是|为|は|은|는|[:([{{「『\n—–-])"
    rf"|\b(?:choose|pick|select|is|be|go with)\s+(?=(?:option|letter|choice|answer)\s)|{_ASIAN})"
    r"[\s:\"'*([{「『—–-]*(?:(?:option|letter|choice|answer)[\s:\"'*([{]+)?"
)
_DENIED = re.compile(
    r"(?:\b(?:not|never|neither|nor|than|instead of|except|nicht|kein|pas|no|non|не)|n't)(?:\s+[\w']+){0,4}\s*$",
    re.IGNORECASE,
)
"""What stands before an answer that is denied: `I do not think that` …"""
_BECAUSE = r"\s+(?:because|since|as|due|based|given)\b"
_CLOSED = rf"(?=\s*(?:$|\n|[,:;)\]}}*\"」』、。!?_`]|\.(?!\w\.))|\s+[-–—]|'(?!\w)|{_BECAUSE})"
"""What may follow a letter that is no word."""
_WORDS = "AEIOUY"
"""Letters that are words of some language: an article, a pronoun, an `and`. So is a number: `2 dogs`."""
_OR = r"\s*(?:[/&+,]|\b(?:or|and|oder|und|ou|et|или|и)\b|または|或)\s*(?:or\s+)?[\"'*(\[]*"
_STATEMENT = (
    r"(?:(?:(?:it|this|that|the (?:image|picture|photo|object|option|main object))"
    r"(?:'s|(?: most)? ?(?:is|shows|depicts|looks(?: most)? like|resembles|represents))"
    r"|(?:the |my )?(?:final |correct |best )?answer(?: is|'s|\s*[:—–-]))[\s:\"'*]+)?"
    r"(?:most likely )?(?:an? |the )?"
)
_REFUSAL = re.compile(
    r"\b(?:sorry|apologi[sz]e|cannot|can't|can not|unable to|not able to|won't|refuse|blocked|content.?filter"
    r"|no image|none of the)\b",
    re.IGNORECASE,
)


def read_answer(text: str, options: Sequence[str]) -> Reading:
    """Read the answer to a lettered prompt.

    Parameters
    ----------
    text : str
        What the model wrote.
    options : sequence of str
        The classes in the order in which they were shown: the first is A.

    Examples
    --------
    >>> read_answer("The answer is (b).", ["cat", "dog"])
    Reading(decision='dog', how='letter')
    >>> read_answer("I'm sorry, I can't help with that.", ["cat", "dog"])
    Reading(decision='undecided', how='refusal')
    """
    plain = _plain(text)
    reading = _in_form(plain, tuple(options))
    paragraphs = [part for part in re.split(r"\n\s*\n", plain) if part.strip()]
    if reading is None and len(paragraphs) > 1:
        reading = _in_form(paragraphs[-1], tuple(options))
    return reading or _unread(plain, named_classes(plain, {name: (name,) for name in options}))


def read_caption(text: str, names: Mapping[str, Sequence[str]]) -> Reading:
    """Read a caption by the names that occur in it.

    Parameters
    ----------
    text : str
        The caption.
    names : mapping of str to sequence of str
        Class → its names; see `names_of`.

    Examples
    --------
    >>> read_caption("Two bikes lean on a wall.", {"bicycle": ["bicycle", "bike"], "car": ["car"]})
    Reading(decision='bicycle', how='name')
    """
    plain = _plain(text)
    classes = named_classes(plain, names)
    return Reading(classes[0], "name") if len(classes) == 1 else _unread(plain, classes)


def _unread(plain: str, classes: Sequence[str]) -> Reading:
    if _REFUSAL.search(plain):
        return Reading(UNDECIDED, "refusal")
    return Reading(UNDECIDED, "several" if len(classes) > 1 else "nothing")


SAME = 20
"""Answers from which it is remarkable that all of them are the same."""


def reading_notes(read_by: Sequence[object], decisions: Sequence[object] = ()) -> tuple[str, ...]:
    """Return how answers in words were read, for the rows of the result: nothing of it is silent.

    >>> reading_notes(["letter", "letter", "refusal"])
    ('answers in words: 2 by letter; 1 of 3 undecided (1 refused)',)
    """
    counts = Counter(map(str, read_by))
    total = sum(counts.values())
    read = {how: n for how, n in counts.items() if how not in WHY_UNDECIDED}
    by = ", ".join(f"{n:,} by {how}" for how, n in sorted(read.items(), key=lambda item: -item[1])) or "none"
    lost = total - sum(read.values())
    why = ", ".join(f"{counts[how]:,} {text}" for how, text in WHY_UNDECIDED.items() if counts[how])
    notes = [f"answers in words: {by}" + (f"; {lost:,} of {total:,} undecided ({why})" if lost else "")]
    given = {str(decision) for decision in decisions}
    if len(given) == 1 and len(decisions) >= SAME:
        notes.append(f"all {len(decisions):,} answers are {given.pop()!r}: does the model see the pictures?")
    return tuple(notes)


def named_classes(text: str, names: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the classes whose names occur in a text as whole words, also in the plural, in the order of ``names``.

    The longest name at a place counts: a ``fire truck`` is no ``fire``, and a ``sea lion`` no ``lion``. A name that is
    listed under no class (``""``) hides what lies in it: ``hot dog``.
    """
    pattern, owner = _finder(tuple((name, tuple(listed)) for name, listed in names.items()))
    named = {owner[_singular(match[0], owner)] for match in pattern.finditer(text.lower())}
    return [name for name in names if name in named and name]


@lru_cache(maxsize=64)
def _finder(names: tuple[tuple[str, tuple[str, ...]], ...]) -> tuple[re.Pattern[str], dict[str, str]]:
    owner = {listed.lower(): name for name, all_listed in names for listed in all_listed}
    longest = sorted(owner, key=len, reverse=True)
    words = "|".join(re.escape(word).replace(r"\ ", r"[\s-]+") for word in longest)
    return re.compile(rf"(?<!\w)(?:{words})(?:e?s)?(?!\w)"), owner


def _singular(word: str, owner: Mapping[str, str]) -> str:
    word = re.sub(r"[\s-]+", " ", word)
    spaced = {re.sub(r"[\s-]+", " ", name): name for name in owner}
    return next(spaced[w] for w in (word, word.removesuffix("s"), word.removesuffix("es")) if w in spaced)


def names_of(classes: Iterable[str], file: Path = LABELS / "names" / "in16.json") -> dict[str, tuple[str, ...]]:
    """Return class → the names that captions may give it: its own, and those of the reviewed file.

    What is listed in the file under no class (``hot dog``) comes as the class ``""``.
    """
    reviewed = json.loads(file.read_text("utf-8"))["names"]
    names_by_class = {name: (name.replace("_", " "), *reviewed.get(name, ())) for name in classes}
    return {**names_by_class, "": tuple(reviewed[""])}


# --------------------------------------------------------------------------------------------- lettered answers


def _plain(text: str) -> str:
    """Return the text with full-width signs and typographic quotes as plain ones, and without marks of emphasis."""
    text = re.sub(r"<think>.*?(?:</think>|$)", "", text, flags=re.DOTALL)  # of models that think aloud
    plain = unicodedata.normalize("NFKC", text).translate(str.maketrans("’‘“”。、İı", "''\"\".,Ii"))
    return re.sub(r"\\boxed\{([^}]*)\}|\\text\{([^}]*)\}", r"\1\2", plain).strip()


def _in_form(plain: str, options: tuple[str, ...]) -> Reading | None:
    """Return the reading of an answer in one of the accepted forms; None: it is in none of them."""
    patterns = _patterns(options)
    if both := patterns.letter_and_name.fullmatch(plain):
        return _agreed(both, options)
    said = [
        m for m in patterns.answer_is.finditer(plain) if not _DENIED.search(plain[max(0, m.start() - 100) : m.start()])
    ]
    if said and said[-1]["letter"]:
        rest = plain[said[-1].start("letter") :]
        if patterns.letters.match(rest):
            return Reading(UNDECIDED, "several")
        return _agreed(patterns.letter_and_name.fullmatch(rest.partition("\n")[0]) or said[-1], options)
    if said:
        rest = re.split(r"[.!?\n]", plain[said[-1].end() :])[0]
        several = named_classes(rest, {name: (name,) for name in options})
        return Reading(UNDECIDED, "several") if several else Reading(_option(said[-1]["name"], options), "name")
    if match := patterns.leading.match(plain):
        return Reading(_by_letter(match["letter"], options), "letter")
    if match := patterns.alone.fullmatch(plain):
        return Reading(_option(match["name"], options), "name")
    return None


def _agreed(match: re.Match[str], options: tuple[str, ...]) -> Reading:
    """Return the reading of a letter, and of the name that stands beside it."""
    by_letter, name = _by_letter(match["letter"], options), match["name"]
    same = name is None or _option(name, options) == by_letter
    return Reading(by_letter, "letter") if same else Reading(UNDECIDED, "contradiction")


def _by_letter(letter: str, options: tuple[str, ...]) -> str:
    return options[letters(len(options)).index(letter.upper())]


def _option(name: str, options: Sequence[str]) -> str:
    return next(option for option in options if _folded(option) == _folded(name))


def _folded(name: str) -> str:
    return re.sub(r"[\s_-]+", " ", name).casefold().strip()


class _Patterns(NamedTuple):
    """The accepted forms, for some options."""

    answer_is: re.Pattern[str]
    leading: re.Pattern[str]
    alone: re.Pattern[str]
    letter_and_name: re.Pattern[str]
    letters: re.Pattern[str]


@lru_cache(maxsize=64)
def _patterns(options: tuple[str, ...]) -> _Patterns:
    listed = sorted(letters(len(options)), key=len, reverse=True)
    any_letter, words = "|".join(listed), "|".join(label for label in listed if label in _WORDS or label.isdigit())
    others = "|".join(label for label in listed if label not in _WORDS and label.isalpha()) or "(?!)"
    said = rf"(?:(?:{others})(?:{_CLOSED}|(?=\s))|(?:{words}){_CLOSED})"
    spelled = [re.sub(r"(?:\\[ -]|_)+", r"[\\s_-]+", re.escape(option)) for option in options]
    name = "(?P<name>" + "|".join(sorted(spelled, key=len, reverse=True)) + ")"
    letter = f"(?P<letter>{any_letter})"
    lead, end = r"^[\s\"'*_`#$(\[{<「『【-]*", r"[\s\"'*_`$.!)\]}>」』】]*"
    sign = r"(?:[:)\]}>」』】*]|\.(?!\.|\w\.))"
    option = "(?:(?:option|letter|answer|choice) )?"
    a_name = rf"(?:an? |the )?{name}(?=\s*(?:$|[\n.,:;!?)\]}}\"*])|{_BECAUSE})"
    return _Patterns(*(re.compile(form, re.IGNORECASE) for form in (
        rf"{_ANSWER_IS}(?:(?P<letter>{said})|{a_name})",
        rf"{lead}{option}{letter}(?:\s*{sign}|{end}$|\s+[-–—=]+\s+{name})",
        rf"{lead}{_STATEMENT}{name}{end}",
        rf"{lead}{option}{letter}(?:\s*(?:{sign}|[-–—=])+\s*|(?<![AEIOUY\d])\s+){_STATEMENT}{name}{end}",
        rf"(?:{any_letter}){_OR}(?:{said})",
    )))  # fmt: skip
