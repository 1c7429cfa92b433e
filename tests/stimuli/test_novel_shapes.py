"""Novel shapes: distinct in any pose, one piece, with the holes that their kind says."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from PIL import Image
from scipy.ndimage import label

from cuebench.errors import UserError
from cuebench.stimuli.drawing import novel_shapes as shapes

MIN_DISTANCE = 0.20
"""The smallest distance of two shapes."""
GRID, TURNS = 96, 24


def distance(first, second):
    """1 − the best overlap (intersection over union) of two masks over position, size, rotation and mirroring.

    Both are moved to their centroid and scaled to the same area; the second is turned in 24 steps, and mirrored.
    """
    target, inside = normal(first > 127), second > 127
    turned = (normal(m, turn) for m in (inside, inside[:, ::-1]) for turn in range(TURNS))
    return 1 - max((target & other).sum() / (target | other).sum() for other in turned)


def normal(inside, turn=0):
    """The mask centred, scaled to a quarter of the grid's area and turned by ``turn`` of 24 steps."""
    y, x = np.nonzero(inside)
    scale, angle, middle = np.sqrt(len(x)) / (GRID / 2), 2 * np.pi * turn / TURNS, GRID / 2
    a, b = scale * np.cos(angle), scale * np.sin(angle)
    # Pillow asks where each pixel of the result comes from.
    place = (a, -b, x.mean() + 0.5 - (a - b) * middle, b, a, y.mean() + 0.5 - (a + b) * middle)
    image = Image.fromarray((inside * 255).astype(np.uint8))
    return np.asarray(image.transform((GRID, GRID), Image.Transform.AFFINE, place, Image.Resampling.NEAREST)) > 127


def test_any_two_shapes_are_further_apart_than_promised():
    masks = {n: shapes.mask(n, 64) for n in shapes.names()}
    nearest = min((distance(masks[a], masks[b]), a, b) for a, b in combinations(masks, 2))
    assert nearest[0] >= MIN_DISTANCE, nearest


@pytest.mark.parametrize(
    "change", [lambda m: m.T, lambda m: m[::-1], lambda m: np.rot90(m), lambda m: np.roll(m, 5, 0)]
)
def test_the_distance_does_not_see_pose(change):
    mask = shapes.mask("zav", 128)
    assert distance(mask, change(mask)) < 0.06
    smaller = np.asarray(Image.fromarray(mask).resize((80, 80)))
    assert distance(mask, smaller) < 0.06


@pytest.mark.parametrize("name", shapes.names())
def test_a_shape_is_one_piece_with_the_holes_its_kind_says(name):
    inside = shapes.mask(name, 224) > 127
    assert label(inside)[1] == 1
    holes = label(~np.pad(inside, 1))[1] - 1
    assert (holes > 0) == (shapes.kind(name) == "holes")
    assert 0.15 < inside.mean() < 0.6
    assert not inside[[0, -1]].any()
    assert not inside[:, [0, -1]].any()


def test_an_unknown_shape_is_answered_with_the_nearest_name():
    with pytest.raises(UserError, match="Did you mean 'dax'"):
        shapes.mask("daxx")
