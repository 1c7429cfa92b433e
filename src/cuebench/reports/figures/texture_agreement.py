"""Texture agreement: accuracy and confidence with and without the usual texture, and whose texture errors show.

Figures 9, 11 and 12 of the paper, for all observers of a run: what the dominant texture of a class is worth, what a
TAV with permuted classes gives (the part that arises by itself), and the natural adversarial images.
"""

from __future__ import annotations

import math
from pathlib import Path

from cuebench.errors import UserError
from cuebench.reports.drawing import FAINT, INK, SERIES, SOFT, Drawing, short_name
from cuebench.reports.figures.base import Figure
from cuebench.reports.run_data import PROTOCOL, scores
from cuebench.types import Score

_LEFT, _WIDTH, _HIGH, _TOP = 62, 760, 200, 84
_PANELS = {
    "accuracy by label": ("label/with_dominant", "label/all", "label/without_dominant"),
    "confidence by prediction": ("prediction/with_dominant", "prediction/all", "prediction/without_dominant"),
    "texture of natural adversarial images agrees with that of": (
        "adversarial/prediction",
        "adversarial/label",
        "adversarial/both",
        "adversarial/neither",
    ),
}
_WORDS = {
    "with_dominant": "with the class's usual texture",
    "all": "all images",
    "without_dominant": "with another one",
}


def texture_agreement(run: str | Path) -> Drawing:
    """Draw the bars of all observers with 95 % intervals; panels without any score are left out.

    Parameters
    ----------
    run : path
        A run folder with ``texture_association`` on labelled photographs.
    """
    hint = "labelled photographs are needed: give the run a data root with imagenet_val"
    numbers = scores(run, PROTOCOL, "texture_dominance", "texture_agreement", hint=hint)
    by = {(s.observer, s.condition): s for s in numbers}
    observers = list(dict.fromkeys(s.observer for s in numbers))
    panels = {t: c for t, c in _PANELS.items() if any((o, x) in by for o in observers for x in c)}
    if not panels:
        raise UserError(f"{run} has no answers to labelled photographs", hint)
    page = Drawing(_LEFT + _WIDTH + 40, _TOP + len(panels) * (_HIGH + 92))
    page.title = "What the usual texture of a class is worth"
    page.text(20, 30, page.title, 17, bold=True)
    page.text(20, 48, "95 % intervals over images; – : no image of that kind", 11.5, SOFT)
    for k, (title, conditions) in enumerate(panels.items()):
        _panel(page, _TOP + k * (_HIGH + 92), title, conditions, observers, by)
    return page


def _panel(
    page: Drawing,
    top: float,
    title: str,
    conditions: tuple[str, ...],
    observers: list[str],
    by: dict[tuple[str, str], Score],
) -> None:
    page.text(_LEFT, top - 8, title, 12.5, bold=True)
    _legend(page, top + 6, conditions)
    base = top + 22 + _HIGH
    for k in range(5):
        y = base - _HIGH * k / 4
        page.line(_LEFT, y, _LEFT + _WIDTH, y, FAINT)
        page.text(_LEFT - 8, y + 4, f"{k / 4:.0%}", 10.5, SOFT, anchor="end")
    slot = _WIDTH / max(len(observers), 1)
    width = min(34.0, 0.8 * slot / len(conditions))
    for i, observer in enumerate(observers):
        start = _LEFT + (i + 0.5) * slot - width * len(conditions) / 2
        for j, condition in enumerate(conditions):
            _bar(page, start + j * width, base, width, by.get((observer, condition)), SERIES[j])
        middle = _LEFT + (i + 0.5) * slot
        page.text(middle, base + 16, short_name(observer, observers), 11, anchor="middle")
        page.text(middle, base + 31, _against_chance(observer, conditions[0], by), 10, SOFT, anchor="middle")


def _against_chance(observer: str, condition: str, by: dict[tuple[str, str], Score]) -> str:
    """Say how large the gap is, and how large it is with permuted classes; empty where there is none."""
    kind = condition.partition("/")[0]
    gap, null = (by.get((observer, f"{kind}/{name}")) for name in ("gap", "gap/shuffled"))
    if gap is None or null is None or not (math.isfinite(gap.value) and math.isfinite(null.value)):
        return ""
    return f"gap {gap.value:.0%}, permuted TAV {null.value:.0%}"


def _legend(page: Drawing, y: float, conditions: tuple[str, ...]) -> None:
    x = float(_LEFT)
    for j, condition in enumerate(conditions):
        word = condition.rpartition("/")[2]
        text = _WORDS.get(word, word)
        page.rect(x, y - 1, 10, 10, SERIES[j])
        page.text(x + 15, y + 8, text, 10.5, SOFT)
        x += 34 + 6.1 * len(text)


def _bar(page: Drawing, x: float, base: float, width: float, score: Score | None, colour: str) -> None:
    if score is None or not math.isfinite(score.value):
        page.text(x + width / 2, base - 4, "–", 12, SOFT, anchor="middle")
        return
    page.rect(x + 1, base - _HIGH * score.value, width - 2, max(_HIGH * score.value, 0.5), colour)
    if math.isfinite(score.ci_low):
        middle = x + width / 2
        low, high = base - _HIGH * score.ci_low, base - _HIGH * score.ci_high
        page.line(middle, low, middle, high, INK, 1.1)
        for y in (low, high):
            page.line(middle - 3, y, middle + 3, y, INK, 1.1)
    page.text(
        x + width / 2,
        base - _HIGH * max(score.value, score.ci_high or 0) - 5,
        f"{score.value:.0%}",
        9.5,
        SOFT,
        anchor="middle",
    )


FIGURE = Figure("texture_agreement", "What the usual texture of a class is worth", texture_agreement, protocol=PROTOCOL)
