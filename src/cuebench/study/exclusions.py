"""Exclusion rules: written before data are seen, hashed, applied to every answer with a reason, nothing dropped.

The rules of a study stand in ``exclusions.toml``. Their SHA-256 (of what they say, not of comments and spaces) is
stored when the study is made and with every export, so that rules that were changed later are noticed.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from cuebench.errors import all_problems, did_you_mean
from cuebench.reading import parse_toml, read_text

FILE = "exclusions.toml"
BY_HAND = "experimenter: "
"""How a reason begins that the experimenter gave on the admin page; other rules do not change it."""
TEMPLATE = """\
# Exclusion rules, to be fixed before any data are seen. Their hash is stored with the study and with every export.
# Remove a line to drop its rule. Practice and attention checks never count as trials.

[participants]
finished = true           # leave out people who did not finish
attention = 0.75          # least share of attention checks that must be right
missing = 0.2             # largest share of trials without an answer
focus_losses = 5          # most often that the page may lose the focus
excluded_trials = 0.5     # largest share of trials that the rules below exclude

[trials]
rt_min_ms = 150           # answered faster than anybody can see
rt_max_ms = 60000         # answered after a break
shown_off_ms = 50         # measured duration of the image longer or shorter than planned by more
"""
"""The rules that a new study gets; to be read and changed by the experimenter before it starts."""


@dataclass(frozen=True)
class Rules:
    """Limits beyond which people and trials are left out; None: there is no such rule.

    Parameters
    ----------
    finished : bool
        Leave out people who did not finish.
    attention, missing, excluded_trials : float, optional
        Least share of attention checks that are right; largest share of trials without an answer, and of trials that
        the rules of trials exclude.
    focus_losses : int, optional
        Most often that the page may lose the focus.
    rt_min_ms, rt_max_ms : float, optional
        Reaction times outside are excluded, trial by trial.
    shown_off_ms : float, optional
        Most that the measured duration of an image may differ from the planned one.
    """

    finished: bool = False
    attention: float | None = None
    missing: float | None = None
    focus_losses: int | None = None
    excluded_trials: float | None = None
    rt_min_ms: float | None = None
    rt_max_ms: float | None = None
    shown_off_ms: float | None = None

    @cached_property
    def sha256(self) -> str:
        """Hash of what the rules say: the same for the same limits, however they are written."""
        limits = {name: float(value) for name, value in self._given.items()}
        return hashlib.sha256(json.dumps(limits, sort_keys=True).encode()).hexdigest()

    def sentences(self) -> dict[str, str]:
        """Return rule → the reason that it writes beside what it excludes."""
        words = {
            "finished": "not finished",
            "attention": "attention checks: less than {:.0%} right",
            "missing": "no answer in more than {:.0%} of the trials",
            "focus_losses": "page left more than {:g} times",
            "excluded_trials": "more than {:.0%} of the trials excluded",
            "rt_min_ms": "reaction time below {:g} ms",
            "rt_max_ms": "reaction time above {:g} ms",
            "shown_off_ms": "shown more than {:g} ms longer or shorter than planned",
        }
        return {name: text.format(self._given[name]) for name, text in words.items() if name in self._given}

    @property
    def _given(self) -> dict[str, Any]:
        # By identity: a limit of 0 is a rule, and 0 == False.
        return {name: value for name, value in asdict(self).items() if value is not None and value is not False}


_SECTIONS = {
    "participants": ("finished", "attention", "missing", "focus_losses", "excluded_trials"),
    "trials": ("rt_min_ms", "rt_max_ms", "shown_off_ms"),
}
LARGEST = 10**9
_SHARES = {"attention", "missing", "excluded_trials"}


def read_rules(path: str | Path) -> Rules:
    """Read the rules of a study from TOML; all problems are reported at once.

    Parameters
    ----------
    path : path
        The file, or the folder of a study that holds it as ``exclusions.toml``.
    """
    place = Path(path).expanduser()
    file = place / FILE if place.is_dir() else place
    return parse_rules(read_text(file, "exclusion rules"), str(file))


def parse_rules(text: str, name: str = FILE) -> Rules:
    """Return the rules that a TOML text holds.

    >>> parse_rules("[trials]\\nrt_min_ms = 150").sentences()
    {'rt_min_ms': 'reaction time below 150 ms'}
    """
    content = parse_toml(text, name, hint="compare it with the template in docs/studies.md")
    problems, values = list[str](), dict[str, Any]()
    for section, rules in content.items():
        if section not in _SECTIONS or not isinstance(rules, dict):
            problems.append(did_you_mean("section", section, _SECTIONS).message)
            continue
        for rule, value in rules.items():
            problem = _problem(section, rule, value)
            problems += [f"[{section}] {problem}"] if problem else []
            values[rule] = value
    if not problems and (values.get("rt_min_ms") or 0) >= values.get("rt_max_ms", math.inf):
        problems.append("[trials] rt_min_ms is not below rt_max_ms: every answer would be excluded")
    if problems:
        raise all_problems(f"exclusion rules {name}", problems, "remove a line to drop its rule")
    return Rules(**values)


def _problem(section: str, rule: str, value: Any) -> str:
    if rule not in _SECTIONS[section]:
        return did_you_mean("rule", rule, _SECTIONS[section]).message
    if rule == "finished":
        return "" if isinstance(value, bool) else f"finished = {value!r}: write true or false"
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LARGEST:
        return f"{rule} = {value!r}: write a number from 0 to {LARGEST:,}"
    return f"{rule} = {value!r}: write a share between 0 and 1" if rule in _SHARES and value > 1 else ""


# ------------------------------------------------------------------------------------------------------ applying


class Applied(NamedTuple):
    """The reason of each row (empty: it counts), and of each participant who is left out as a whole."""

    rows: list[str]
    participants: dict[str, str]


@dataclass
class _Person:
    """What the rules of participants look at."""

    finished: bool = True
    attention: list[bool] = field(default_factory=list)
    trials: int = 0
    missing: int = 0
    excluded: int = 0
    focus_losses: float = 0.0


def apply_rules(rules: Rules, rows: Sequence[Mapping[str, Any]]) -> Applied:
    """Say which answers the rules exclude, and why.

    Parameters
    ----------
    rules : Rules
        Of the study.
    rows : sequence of mappings
        Rows of an export: ``participant``, ``kind``, ``finished``, ``correct``, ``response``, ``rt_ms``,
        ``planned_ms``, ``shown_ms``, ``focus_losses``. A row that has a reason in ``excluded`` already keeps it: the
        experimenter has decided.

    Returns
    -------
    Applied
        A participant whom a rule leaves out has the same reason in every row.
    """
    words = rules.sentences()
    people: dict[str, _Person] = {}
    reasons = []
    for row in rows:
        person = people.setdefault(str(row["participant"]), _Person())
        by_hand = str(row.get("excluded") or "")
        reason = by_hand or _trial_reason(rules, words, row)
        reasons.append(reason)
        person.finished = bool(row.get("finished", True))
        losses = _number(row, "focus_losses")
        person.focus_losses += 0.0 if math.isnan(losses) else losses
        if row["kind"] == "trial":
            person.trials += 1
            person.missing += not row.get("response")
            person.excluded += bool(reason and not by_hand)
        elif row["kind"] == "attention" and row.get("correct") is not None:
            person.attention.append(bool(row["correct"]))
    out = {name: why for name, person in people.items() if (why := _person_reason(rules, words, person))}
    final = [str(row.get("excluded") or "") or out.get(str(row["participant"]), why) for row, why in zip(rows, reasons)]
    return Applied(final, out)


def _trial_reason(rules: Rules, words: Mapping[str, str], row: Mapping[str, Any]) -> str:
    if row["kind"] != "trial":
        return ""
    rt, planned, shown = (_number(row, name) for name in ("rt_ms", "planned_ms", "shown_ms"))
    broken = {
        "rt_min_ms": rules.rt_min_ms is not None and rt < rules.rt_min_ms,
        "rt_max_ms": rules.rt_max_ms is not None and rt > rules.rt_max_ms,
        "shown_off_ms": rules.shown_off_ms is not None and abs(shown - planned) > rules.shown_off_ms,
    }
    return "; ".join(words[rule] for rule, is_broken in broken.items() if is_broken)


def _person_reason(rules: Rules, words: Mapping[str, str], person: _Person) -> str:
    def above(count: float, limit: float | None) -> bool:
        return limit is not None and count > limit * person.trials

    right = sum(person.attention) / len(person.attention) if person.attention else math.nan
    broken = {
        "finished": rules.finished and not person.finished,
        "attention": rules.attention is not None and right < rules.attention,
        "missing": above(person.missing, rules.missing),
        "focus_losses": rules.focus_losses is not None and person.focus_losses > rules.focus_losses,
        "excluded_trials": above(person.excluded, rules.excluded_trials),
    }
    return "; ".join(words[rule] for rule, is_broken in broken.items() if is_broken)


def _number(row: Mapping[str, Any], name: str) -> float:
    value = row.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan


# ----------------------------------------------------------------------------------------------- what was changed


def changed(stored: str, now: str, *, when: str = "the study was made") -> str:
    """Return a warning where the rules are not those that were stored; empty where they are.

    Parameters
    ----------
    stored, now : str
        SHA-256 of the rules then and now; an empty one is not compared.
    when : str
        What was done when they were stored.
    """
    if not stored or not now or stored == now:
        return ""
    return f"the exclusion rules were changed after {when} (SHA-256 {stored[:12]}… then, {now[:12]}… now)"


def counted(reasons: Sequence[str]) -> dict[str, int]:
    """Return reason → how often, the most frequent first; empty reasons are left out."""
    return dict(Counter(reason for reason in reasons if reason).most_common())
