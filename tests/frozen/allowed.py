"""What may differ from the frozen truth: nothing, until a change names it here."""

from __future__ import annotations

NOTES: tuple[tuple[str, str], ...] = (
    (r"decisions among (\d+) classes were given: needs logits",
     r"decisions among the \1 classes were given: the whole label space needs logits"),
    (r"(\d+) unanswered (of [\d,]+); [\d,]+ unreadable", r"\1 unreadable \2"),
    (r"^top-1 decisions were given(?=;|$)", "top-1 decisions in imagenet1k were given: 16-way needs logits"),
)  # fmt: skip
"""Regular expression in frozen notes and other texts → what stands there now: changes of words that were decided."""
UNDECIDED = ("undecided without a readable answer", "undecided", "other", "no answer")
"""Words for an answer that is neither cue: the first two when the numbers were frozen, the others now (issue 31: five
words). Where they are counted, their sum is compared; a trial may have any of them."""
NEW_COLUMNS: frozenset[str] = frozenset()
"""Columns of scores, trials and tables that there were not when they were frozen."""
