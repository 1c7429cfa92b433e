"""Reading answers: from the words of a model to one of the classes, or to `undecided`.

A lettered prompt asks for a letter. What was thought aloud and an echo of all options are dropped. Then:

1. an answer alone: ``D``, ``(d)``, ``**D. bird**``, ``D (bird)``, ``bird (D)``, ``bird``, ``It is a bird.``;
2. a verdict: ``the answer is D``, also in a few other languages, ``I choose D``, ``D is correct``, ``\\boxed{D}``,
   ``<answer>D</answer>``, a first line or a last paragraph that is an answer alone. A letter is no word of the
   sentence: not the article of ``the answer is a dog``, nor the I of ``Answer: I think a dog``. Verdicts must agree,
   or the last one say that it is final, and no other option may be lettered after it;
3. a letter with a sign at the beginning: ``D. It has feathers``, if no other option is lettered anywhere.

Everything else is undecided: a refusal, several classes or letters, a letter with the name of another class, a sentence
that only mentions a class or an option (it may as well deny it). One exception is made, and named: a line that runs on
through eight options or more is its first, as the authors of the published recordings read it. A caption is read by the
names and synonyms of the classes (``labels/names``) that occur in it: one class is the answer, several are undecided.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

from cuebench.labels import FOLDER as LABELS
from cuebench.labels.decisions import UNDECIDED
from cuebench.observers.chat.prompts import letters

VERSION = 3
"""Rises when an answer would be read otherwise; part of the key of what is read, not of what is asked."""

How = Literal[
    "letter", "name", "first of a list", "match", "judge", "refusal", "several", "contradiction", "cut", "nothing"
]  # fmt: skip
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
    grammar = _grammar(tuple(options))
    plain = _plain(text)
    rest = grammar.echo.sub("\n\n", plain).strip()
    plain = rest if re.search(r"\w", rest) else plain
    reading = grammar.alone(plain) or _verdict(plain, grammar) or _opening(plain, grammar)
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
    words = {match[0] for match in pattern.finditer(text.lower())}
    named = {owner[_singular(word, owner)] for word in words}
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


# ---------------------------------------------------------------------------------------------- plain text

_THOUGHT = re.compile(r"</think(?:ing)?>|◁/think▷", re.IGNORECASE)
_STILL_THINKING = re.compile(r"<think(?:ing)?>|◁think▷", re.IGNORECASE)
_AS_PLAIN: tuple[tuple[str, str], ...] = (
    (r"<\|[^<>|]{1,40}\|>|</?s>", " "),  # marks of a chat template
    (r"\\(?:text|textbf|mathrm|mathbf)\{([^{}]*)\}", r"\1"),
    (r"\\boxed\{([^{}]*)\}|<answer>([^<]*)(?:</answer>)?", r"\n\nFinal answer: \1\2\n\n"),
    (r"(?<!\w)(\*\*|__|\*|_|`)([A-Za-z]|\d{1,4})[.:)]?\1(?!\w)", r"(\2)"),  # a letter in bold is one in brackets
    (r"[*`$#]+|(?<!\w)_+|_+(?!\w)", ""),
    (r"[^\S\n]+", " "),
    (r" ?\n ?", "\n"),
    (r"\n{3,}", "\n\n"),
)


def _plain(text: str) -> str:
    """Return what was answered, not thought, with full-width signs and typographic quotes as plain ones.

    Marks of emphasis are left out, and what stands in a box or between tags is a final answer.
    """
    text = _STILL_THINKING.split(_THOUGHT.split(text)[-1])[0]
    plain = unicodedata.normalize("NFKC", text).translate(str.maketrans("’‘“”。、İı", "''\"\".,Ii"))
    for pattern, instead in _AS_PLAIN:
        plain = re.sub(pattern, instead, plain, flags=re.IGNORECASE)
    return plain.strip()


# --------------------------------------------------------------------------------------------- lettered answers

_WORDS = "AEIOUY"
"""Letters that are words of some language: an article, a pronoun, an `and`. So is a number: `2 dogs`."""
_NO_SIGN = r"\w\n?&/+¬≠✗✘❌✖"
"""What may not stand around an answer alone: words, and signs of a question, of a choice or of a denial."""
_POLITE = r"(?:(?:sure|certainly|of course|ok|okay|so|therefore|thus|hence|assistant)[,!.:]? )?"
_LEAD, _END = rf"[^{_NO_SIGN}!]{{0,12}}{_POLITE}[^{_NO_SIGN}!]{{0,12}}", rf"[^{_NO_SIGN}]{{0,12}}"
_OPTION = "(?:(?:the )?(?:correct )?(?:option|letter|answer|choice)[ :(]{1,3})?"
_SIGN = r"(?:\s?[:)\]}>」』】]|\.(?![.\w]))"
_BECAUSE = r",? (?:because|since|as|due|based|given)\b"
_NO_WORD = r"(?![a-z0-9_\u00c0-\u04ff])"
"""What follows a letter: no other one, but what Japanese writes without a space."""
_CLOSED = rf"(?=\s?(?:$|\n|[,:;)\]}}>\"」』!`]|\.(?!\w\.|\.))|\s[-–—]|'(?!\w)|です|입니다|{_BECAUSE})"
"""What may follow a letter that is no word."""
_STATEMENT = (
    r"(?:(?:i (?:think|believe)(?: that)? )?"
    r"(?:it|this|that|the (?:main )?(?:image|picture|photo|object|option|subject)"
    r"(?: in (?:the|this) (?:image|picture|photo))?)(?:'s|(?: most)? ?(?:is|shows|depicts|contains|resembles|represents"
    r"|looks(?: most)? like|appears to be))[\s:\"'(]{1,3})?"
    r"(?:most likely )?(?:an? |the )?"
)
_ASIAN = "答案|答え|正解|回答|정답"
_ANSWERS = "answer|antwort|lösung|réponse|respuesta|risposta|resposta|ответ"
_LIKELY = r"(?:(?:most likely|likely|probably|clearly|definitely|therefore|thus|indeed|still|simply|obviously) )?"
_IS = r"(?:(?:is|(?:would|should|must) be|seems to be|appears to be|ist|lautet|est|es|è|é)\b|是|为|は|은|는)"
_ANSWER_IS = (
    rf"(?:(?:\b(?:{_ANSWERS})|{_ASIAN})[\s\"']{{0,3}}(?:{_IS}|[:=([{{「『\n—–-])"
    rf"|\b(?:option|letter|choice|guess)[\s\"']{{0,3}}(?:{_IS}|[:=])"
    r"|\b(?:choose|pick|select|is|be|shows|depicts|go with)\s(?=(?:the )?(?:option|letter|choice|answer)\s)"
    r"|\bI(?:'d|'ll| would| will| must)? (?:choose|pick|select|say|go with|answer|guess|vote for)\b"
    rf"|{_ASIAN})[\s:\"'([{{「『—–-]{{0,8}}{_LIKELY}"
    r"(?:(?:the )?(?:correct )?(?:option|letter|choice|answer)[\s:\"'([{]{1,6})?"
)
_IS_RIGHT = (
    rf" (?:is|seems|would be) {_LIKELY}(?:the )?(?:only |most likely )?"
    r"(?:(?:correct|right|best|closest) (?:answer|option|choice|match|one|description)|correct|right|answer)\b"
    r"(?! (?:if|when|only|for))"
)
_OR = (
    r"[)\]\"'.]{0,3}\s?(?:[/&+,;]|[-–—] ?(?=or\b)|\b(?:vs\.?|versus|but(?= it)|or|and|oder|und"
    r"|ou|et|или|и)\b|または|或)\s?"
    r"(?:(?:or|maybe|perhaps|possibly|even|option|the|an?|it (?:could|might|may)(?: also)? be) ){0,3}[\"'(\[]{0,3}"
)
_NOT = r"not|never|neither|nor|than|instead of|except|cannot|nicht|kein|pas|no|non|не"
_BEFORE = r"(?:\b(?:{})|n't)(?:\s+(?!but\b)[\w']+){{0,4}}[\s:]*$"
_DENIED = re.compile(_BEFORE.format(_NOT), re.IGNORECASE)
"""What stands before an option that is denied: `not` …"""
_NO_VERDICT = re.compile(
    _BEFORE.format(
        rf"{_NOT}|whether|if|unsure|doubt|unlikely|could|might|may|wrong|incorrect|other|alternative|shape|texture"
    ),
    re.IGNORECASE,
)
"""What stands before a verdict that is none, `I doubt that` …, or one of several: `the texture` …"""
_TURN = re.compile(r"\s*(?:actually|wait|no|not|but|however|or|and|correction|hmm|sorry)\b", re.IGNORECASE)
"""How a line begins that takes back what the one before it says."""
_SPOKEN_OF = re.compile(
    r"[\s:,)–-]{0,4}(?:is|was|are|would|could|might|may|can|cannot|seems|does|has|no|not|nope|wrong|false|incorrect)\b",
    re.IGNORECASE,
)
"""What stands after an option that is talked about: `B) is not correct`."""
_FINAL = re.compile(
    r"\b(?:final|correct|right|best|actually|wait|no|correction|therefore|thus|so|hence|overall)\b[^.!?\n]{0,24}$",
    re.IGNORECASE,
)
"""What stands before a verdict that counts more than the ones before it."""
LISTED = 8
"""So many options in one line are a list that ran on."""


class _Said(NamedTuple):
    """A verdict: where it stands, and whether it says that it is the final one."""

    start: int
    end: int
    reading: Reading
    final: bool


@dataclass(frozen=True)
class _Grammar:
    """The forms of an answer, for some options."""

    by_letter: Mapping[str, str]
    by_name: Mapping[str, str]
    answers: tuple[re.Pattern[str], re.Pattern[str]]
    verdict: re.Pattern[str]
    another: re.Pattern[str]
    first_line: re.Pattern[str]
    opening: re.Pattern[str]
    lettered: re.Pattern[str]
    echo: re.Pattern[str]

    def alone(self, text: str) -> Reading | None:
        """Return the reading of an answer and nothing else."""
        match = next(filter(None, (form.fullmatch(text) for form in self.answers)), None)
        return self.reading(match) if match else None

    def reading(self, match: re.Match[str]) -> Reading | None:
        """Return the class of a letter or a name, or of both if they agree; None: it is no option."""
        groups = match.groupdict()
        letter = next((v for k, v in groups.items() if k.startswith("letter") and v), None)
        name = next((v for k, v in groups.items() if k.startswith("name") and v), None)
        by_letter = self.by_letter.get(letter.upper()) if letter else None
        by_name = self.by_name[_folded(name)] if name else None
        if letter and by_letter is None:
            return None
        if by_letter and by_name and by_letter != by_name:
            return Reading(UNDECIDED, "contradiction")
        return Reading(by_letter or by_name or UNDECIDED, "letter" if by_letter else "name")

    def options_in(self, plain: str, start: int = 0) -> list[str]:
        """Return the classes of the options that are lettered in a text and not denied: the first `LISTED` of them."""
        found: dict[str, None] = {}
        settled = set[str]()
        for match in self.lettered.finditer(plain, start):
            if match[0] in settled or _DENIED.search(plain[max(0, match.start() - 40) : match.start()]):
                continue
            settled.add(match[0])
            reading = self.reading(match)
            if reading is not None and reading.how != "contradiction":
                found[reading.decision] = None
            if len(found) == LISTED:
                break
        return list(found)


def _verdict(plain: str, grammar: _Grammar) -> Reading | None:
    """Return what an answer says that it is: the verdicts in it must agree, or the last one be final."""
    said = _sayings(plain, grammar)
    if not said:
        return None
    last = said[-1]
    others = [one for one in said if one.reading.decision != last.reading.decision]
    later = [name for name in grammar.options_in(plain, last.end) if name != last.reading.decision]
    if later or (others and (not last.final or any(one.final for one in others))):
        return last.reading if last.reading.decision == UNDECIDED else Reading(UNDECIDED, "several")
    return last.reading


def _sayings(plain: str, grammar: _Grammar) -> list[_Said]:
    """Return the verdicts in an answer, in order."""
    said = []
    for match in grammar.verdict.finditer(plain):
        before = plain[max(0, match.start() - 80) : match.start()]
        if (reading := grammar.reading(match)) and not _NO_VERDICT.search(before):
            final = bool(_FINAL.search(before[-40:]) or match["right"])
            said.append(_Said(match.start(), match.end(), _unless_another(plain, match, reading, grammar), final))
    start = plain.rfind("\n\n") + 2
    reading = grammar.alone(plain[start:]) if start > 1 else None
    if reading and not _DENIED.search(plain[max(0, start - 100) : start]):
        said.append(_Said(start, len(plain), reading, False))
    first = grammar.first_line.match(plain)
    reading = grammar.reading(first) if first and not _TURN.match(plain, first.end()) else None
    # Above another option it is the head of a list.
    if first and reading and {*grammar.options_in(plain[: said[0].start if said else None])} <= {reading.decision}:
        said.insert(0, _Said(0, first.end(), reading, False))
    return said


def _unless_another(plain: str, match: re.Match[str], reading: Reading, grammar: _Grammar) -> Reading:
    """Return the reading of a verdict; several, where another option or class stands beside it."""
    other = grammar.another.match(plain, match.end())
    if other and (second := grammar.reading(other)) and second.decision != reading.decision:
        return Reading(UNDECIDED, "several")
    if reading.how == "name":
        rest = re.split(r"[.!?\n]", plain[match.end() : match.end() + 1000])[0]
        if named_classes(rest, {name: (name,) for name in grammar.by_letter.values()}):
            return Reading(UNDECIDED, "several")
    return reading


def _opening(plain: str, grammar: _Grammar) -> Reading | None:
    """Return the option with which an answer begins, if it is the only one that is lettered in it."""
    options = grammar.options_in(plain)
    match = grammar.opening.match(plain)
    if len(options) == LISTED and match and "\n" not in plain:
        return Reading(options[0], "first of a list")
    if len(options) > 1:
        return Reading(UNDECIDED, "several")
    if not match or (reading := grammar.reading(match)) is None:
        return None
    line = plain[match.end() :].strip().partition("\n")[0]
    beside = grammar.alone(line)
    if beside and beside.decision != reading.decision:
        return Reading(UNDECIDED, "contradiction")
    own = re.search(re.escape(reading.decision.replace("_", " ")), line, re.IGNORECASE)
    if own and _DENIED.search(line[max(0, own.start() - 40) : own.start()]):
        return None
    if _SPOKEN_OF.match(plain, match.end()) or (match["name"] is None and _REFUSAL.search(line)):
        return None
    return reading


def _folded(name: str) -> str:
    return re.sub(r"[\s_-]+", " ", name).casefold().strip()


@lru_cache(maxsize=64)
def _grammar(options: tuple[str, ...]) -> _Grammar:
    labels = letters(len(options))
    numbered = "1" in labels
    any_letter = rf"\d{{1,{len(labels[-1])}}}(?!\d)" if numbered else f"[{''.join(labels)}]" if labels else "(?!)"
    capital = f"(?-i:{any_letter})"
    others = "(?!)" if numbered or not labels else f"(?![{_WORDS}])[{''.join(labels)}]"
    spelled = [re.sub(r"(?:\\[ -]|_)+", r"[\\s_-]+", re.escape(option)) for option in options]
    names = "|".join(sorted(spelled, key=len, reverse=True)) or "(?!)"

    def letter(of: str = any_letter, mark: str = "") -> str:
        return f"(?P<letter{mark}>{of}){_NO_WORD}"

    def name(mark: str = "") -> str:
        return f"(?P<name{mark}>{names})(?!\\w)"

    signs = r"\s?(?:[.:)\]}>,=(–—-]\s?){1,4}"
    between = rf"(?:{signs}|(?<=[^AEIOUY\d])\s)" if not numbered else signs
    said = f"(?:{others}(?:{_CLOSED}|(?=\\s))|{any_letter}{_CLOSED})"
    named = rf"(?=\s?(?:$|[\n.,:;!?)\]}}\"(])|{_BECAUSE})"
    letter_first = f"{letter()}(?:{between}{_STATEMENT}{name()})?"
    name_first = f"{_STATEMENT}{name()}(?:\\s?[-–—,:(\\[]{{1,2}}\\s?{_OPTION}{letter()})?"
    start = r"(?<![\w.'-])"
    echo = r"\W{1,8}".join(rf"{label}[\s.:)-]{{1,4}}{option}" for label, option in zip(labels, spelled)) or "(?!)"
    forms = (
        f"{_ANSWER_IS}(?:{letter(said)}(?:{between}{_STATEMENT}{name()}{named})?"
        f"|(?:an? |the )?{name('2')}(?:\\s?[-–—,:(\\[]{{1,2}}\\s?{_OPTION}{letter(mark='2')})?{named})"
        f"|{start}{_OPTION}{letter(capital, '3')}(?:[).:]?\\s?\\(?{name('3')}\\)?)?(?P<right>{_IS_RIGHT})",
        f"{_OR}(?:{letter(said)}|{name()})",
        rf"{_LEAD}{_OPTION}(?:{letter()}(?:{between}{name()})?|(?:an? |the )?{name('2')}){_END}\n",
        rf"{_LEAD}{_OPTION}{letter()}(?:{_SIGN}\s?(?:{name()}{named})?|{_BECAUSE}|\s[-–—=]+\s{name('2')})",
        rf"^{_LEAD}(?:{letter()}|(?:an? |the )?{name()}){_END}$|^{_LEAD}{letter(mark='2')}{_SIGN}"
        rf"|{start}(?:{letter(capital, '3')}{_SIGN}|{letter(mark='4')}[)\]}}]"
        rf"|{letter(mark='5')}{between}{name('5')}|(?:option|choice|letter) {letter(mark='6')})",
    )
    verdict, another, first_line, opening, lettered = (re.compile(form, re.I | re.M) for form in forms)
    return _Grammar(
        by_letter=dict(zip(labels, options)),
        by_name={_folded(option): option for option in options},
        answers=(
            re.compile(f"{_LEAD}{_OPTION}{letter_first}{_END}", re.IGNORECASE),
            re.compile(f"{_LEAD}{name_first}{_END}", re.IGNORECASE),
        ),
        verdict=verdict,
        another=another,
        first_line=first_line,
        opening=opening,
        lettered=lettered,
        echo=re.compile(echo, re.IGNORECASE),
    )
