"""Names in scatter plots: none covers another one or a mark, whatever the number of observers."""

from __future__ import annotations

import numpy as np
import pytest

from cuebench.reports.scatter import place_names, span
from cuebench.reports.text import width_of


def boxes(points, names, places):
    return [(p.x, p.y - 3.25, p.x + width_of(name, 6.5), p.y + 3.25) for p, name in zip(places, names) if p is not None]


def overlap(a, b):
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


@pytest.mark.parametrize(("count", "fewest"), [(1, 1), (6, 6), (30, 29), (200, 20)])
def test_names_cover_nothing(count, fewest):
    rng = np.random.default_rng(count)
    points = [tuple(p) for p in rng.uniform(0, 1, (count, 2)) * (480, 300)]
    names = [f"model_{k:02}" for k in range(count)]
    places = place_names(points, names, 480, 300)
    placed = boxes(points, names, places)
    assert len(placed) >= fewest
    assert not any(overlap(a, b) for k, a in enumerate(placed) for b in placed[k + 1 :])
    assert all(a[0] >= 0 and a[2] <= 480 and a[1] >= 0 and a[3] <= 300 for a in placed)
    marks = [(x - 2, y - 2, x + 2, y + 2) for x, y in points]
    own = [p is not None for p in places]
    assert not any(overlap(box, m) for box in placed for m, there in zip(marks, own) if there)


def test_a_name_without_a_place_is_left_out():
    assert place_names([(5, 5)], ["a name that is wider than the whole plot"], 20, 20) == [None]


def test_axes_hold_all_values():
    inside, outside = span("x", [0.31, 0.52]), span("x", [-0.2, 1.4, float("nan")])
    assert inside.low <= 0.31
    assert inside.high >= 0.52
    assert inside.low >= 0
    assert (outside.low, outside.high) == (-0.3, 1.5)
    assert inside.value(inside.points(0.4, 300), 300) == pytest.approx(0.4)
