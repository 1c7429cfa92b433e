"""What may differ from the frozen truth: nothing, until a change names it here."""

from __future__ import annotations

NOTES: tuple[tuple[str, str], ...] = ()
"""Regular expression in frozen notes and other texts → what stands there now: changes of words that were decided."""
OUTCOMES: dict[str, str] = {}
"""Outcome in the frozen rows of ``cuebench trials`` → the word for it now."""
NEW_COLUMNS: frozenset[str] = frozenset()
"""Columns of scores, trials and tables that there were not when they were frozen."""
