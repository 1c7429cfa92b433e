"""Two truths compared: rows as sets by their keys, numbers to a tolerance, and differences that people can read."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from frozen import allowed
from frozen.truth import Row, Truth

EXACT = 1e-12
"""Absolute tolerance of numbers."""
ENDS = {"p": 1e-9, "p_holm": 1e-9}
"""Columns of pairs with another tolerance: tails of distributions."""
RELATIVE = ("needed_images", "needed_times")
"""Columns of pairs that are compared to 1e-6 of their size: a difference near zero makes them very large."""
SCORES = ("protocol", "observer", "condition", "metric", "ci_kind")
FEW = 10


def differences(frozen: Truth, now: Truth) -> list[str]:
    """Return every difference between what is frozen and what is computed now."""
    found = [f"scores: {d}" for d in rows_differ(frozen.scores, now.scores, SCORES)]
    found += [f"headlines: {d}" for d in rows_differ(frozen.headlines, now.headlines, ("protocol", "observer"))]
    found += list(contributions_differ(frozen.contributions, now.contributions))
    pairs = [list(map(_ordered, rows)) for rows in (frozen.pairs, now.pairs)]
    found += [f"pairs: {d}" for d in rows_differ(*pairs, ("protocol", "first", "second"))]
    found += [f"groups: {d}" for d in rows_differ(frozen.groups, now.groups, ("protocol",))]
    keys = ("protocol", "observer", "condition", "outcome", "correct")
    found += [f"trials counted: {d}" for d in rows_differ(*(_counted(t.counts, keys) for t in (frozen, now)), keys)]
    keys = ("protocol", "observer", "condition", "stimulus", "person", "session")
    trials = (list(map(_renamed, t.trials)) for t in (frozen, now))
    found += [f"trials: {d}" for d in rows_differ(*trials, keys)]
    for name in sorted({*frozen.tables, *now.tables}):
        ours, theirs = frozen.tables.get(name, []), now.tables.get(name, [])
        found += [f"table {name}: {d}" for d in rows_differ(ours, theirs, _texts(ours))]
    return found


def report(found: Sequence[str]) -> str:
    """Return the first differences as text."""
    if not found:
        return "no differences"
    more = [f"… and {len(found) - FEW} more"] if len(found) > FEW else []
    return "\n".join([f"{len(found)} differences from the frozen truth:", *(f"  {d}" for d in found[:FEW]), *more])


# ------------------------------------------------------------------------------------------------- rows


def rows_differ(frozen: Iterable[Row], now: Iterable[Row], keys: Sequence[str]) -> list[str]:
    """Compare rows as sets: by these columns, then all others; several rows of one key in the order of their values."""
    ours, theirs = _by_key(frozen, keys), _by_key(now, keys)
    found = []
    for key in [*ours, *(key for key in theirs if key not in ours)]:
        name = " · ".join("–" if part is None else str(part) for part in key)
        before, after = ours.get(key, []), theirs.get(key, [])
        if len(before) != len(after):
            word = "missing" if not after else "new" if not before else f"{len(before)} rows, now {len(after)}"
            found.append(f"{word}: {name}{_numbers((before or after)[0]) if word in ('missing', 'new') else ''}")
            continue
        if len(before) > 1:
            before, after = (sorted(rows, key=_sortable) for rows in (before, after))
        for a, b in zip(before, after):
            if a == b:
                continue
            found += [
                f"{name}: {column} was {_text(a.get(column))}, is {_text(b.get(column))}" for column in _unlike(a, b)
            ]
    return found


def _by_key(rows: Iterable[Row], keys: Sequence[str]) -> dict[tuple[Any, ...], list[Row]]:
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row.get(key) for key in keys), []).append(row)
    return found


def _unlike(frozen: Row, now: Row) -> list[str]:
    """Return the columns in which two rows differ; a column without any value is as good as none."""
    columns = [*frozen, *(c for c in now if c not in frozen and c not in allowed.NEW_COLUMNS)]
    return [c for c in columns if not _same(c, frozen.get(c), now.get(c))]


def _same(column: str, frozen: Any, now: Any) -> bool:
    if isinstance(frozen, bool) or isinstance(now, bool) or frozen is None or now is None:
        return frozen is now
    if isinstance(frozen, float) or isinstance(now, float):
        if not isinstance(now, int | float) or not isinstance(frozen, int | float):
            return False
        if math.isnan(frozen) or math.isnan(now) or math.isinf(frozen):
            return frozen == now or (math.isnan(frozen) and math.isnan(now))
        tolerance = 1e-6 * abs(frozen) if column in RELATIVE else ENDS.get(column, EXACT)
        return abs(frozen - now) <= tolerance
    if isinstance(frozen, list) and isinstance(now, list):
        return len(frozen) == len(now) and all(_same(column, a, b) for a, b in zip(frozen, now))
    if isinstance(frozen, dict) and isinstance(now, dict):
        return frozen.keys() == now.keys() and all(_same(column, frozen[k], now[k]) for k in frozen)
    if isinstance(frozen, str):
        return frozen == now or _undecided(_with_new_words(frozen)) == _undecided(str(now))
    return bool(frozen == now)


def _with_new_words(text: str) -> str:
    for pattern, replacement in allowed.NOTES:
        text = re.sub(pattern, replacement, text)
    return text


def _sortable(row: Row) -> tuple[str, ...]:
    """Return what rows of one key are ordered by: numbers rounded, so that the last digits change nothing."""
    return tuple(f"{v:.9g}" if isinstance(v, float) else str(v) for _, v in sorted(row.items()))


def _texts(rows: Sequence[Row]) -> tuple[str, ...]:
    """Return the columns of a table that are no fractions: they say what a row is about."""
    return tuple(c for c in (rows[0] if rows else ()) if not any(isinstance(row[c], float | list) for row in rows))


_COUNT = re.compile(rf"([\d,]+) ({'|'.join(allowed.UNDECIDED)})(?=,| of )")


def _undecided(note: str) -> str:
    """Return a note in which the counts of all words for undecided trials are one sum, at the place of the first."""
    counts = [int(match[1].replace(",", "")) for match in _COUNT.finditer(note)]
    if not counts:
        return note
    place = _COUNT.sub("@", note).replace("@, ", "", len(counts) - 1)
    return place.replace("@", f"{sum(counts):,} undecided")


def _renamed(row: Row) -> Row:
    return {**row, "outcome": "undecided" if row["outcome"] in allowed.UNDECIDED else row["outcome"]}


def _counted(rows: Iterable[Row], keys: Sequence[str]) -> list[Row]:
    """Return counts of trials with one word for all that is undecided."""
    found: dict[tuple[Any, ...], Row] = {}
    for row in map(_renamed, rows):
        same = found.setdefault(tuple(row[key] for key in keys), {**{key: row[key] for key in keys}, "rows": 0})
        same["rows"] += row["rows"]
    return list(found.values())


def _ordered(pair: Row) -> Row:
    """Return a pair whose observers are equal in the order of their names: the last digit must not decide it."""
    if abs(pair["difference"] or 0.0) > EXACT or pair["first"] <= pair["second"]:
        return pair
    turned = {**pair, "first": pair["second"], "second": pair["first"], "difference": -(pair["difference"] or 0.0)}
    turned |= {"value_first": pair["value_second"], "value_second": pair["value_first"]}
    for low in [name for name in pair if name.startswith("low")]:
        high = "high" + low[3:]
        turned |= {end: None if pair[other] is None else -pair[other] for end, other in ((low, high), (high, low))}
    return turned


def _numbers(row: Row) -> str:
    numbers = [f"{name} {_text(row[name])}" for name in ("value", "n", "rows") if name in row]
    return f" ({', '.join(numbers)})" if numbers else ""


def _text(value: Any) -> str:
    return repr(value) if isinstance(value, float) else f"{value!s:.300}"


# ------------------------------------------------------------------------------------------------- contributions

Contributions = Mapping[tuple[str, str], Mapping[str, Any]]


def contributions_differ(frozen: Contributions, now: Contributions) -> Iterable[str]:
    """Compare what each answer adds to the headline; rows in any order, and sources by any names."""
    for key in [*frozen, *(key for key in now if key not in frozen)]:
        name = f"contributions: {' · '.join(key)}"
        if key not in now or key not in frozen:
            yield f"{name}: {'missing' if key not in now else 'new'}"
            continue
        ours, theirs = _in_order(frozen[key]), _in_order(now[key])
        if ours.keys() != theirs.keys():
            yield f"{name}: parts {', '.join(sorted(ours))}; now {', '.join(sorted(theirs))}"
        elif ours["values"].shape != theirs["values"].shape:
            yield f"{name}: {ours['values'].shape} rows and sums, now {theirs['values'].shape}"
        else:
            yield from (f"{name}: {part} differ" for part in ours if not _alike(part)(ours[part], theirs[part]))


def _in_order(parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rows in an order of their own: by image, values, and sources."""
    values = np.round(parts["values"], 9).T[::-1]
    sources = [parts[name] for name in sorted(parts) if name.startswith("sources/")]
    codes = [np.unique(names, return_inverse=True)[1] for names in (*sources[::-1], parts["images"])]
    order = np.lexsort((*codes[:-1], *values, codes[-1]))
    return {name: array[order] for name, array in parts.items()}


def _alike(part: str) -> Callable[[Any, Any], bool]:
    if part == "images":
        return lambda a, b: bool((a == b).all())
    if part.startswith("sources/"):
        return _same_groups
    return lambda a, b: a.shape == b.shape and bool(np.allclose(a, b, rtol=0, atol=EXACT, equal_nan=True))


def _same_groups(a: Any, b: Any) -> bool:
    """Tell whether two columns put the same rows together, whatever the groups are called."""
    return len(set(zip(a.tolist(), b.tolist()))) == len(set(a.tolist())) == len(set(b.tolist()))
