"""Random numbers come from named streams: the same seed and name give the same ones, another of either does not."""

from __future__ import annotations

import numpy as np

from cuebench.statistics.intervals import child_generator, weights


def test_a_stream_depends_on_the_seed_and_on_its_name():
    first = child_generator(0, "images").random(8)
    np.testing.assert_array_equal(first, child_generator(0, "images").random(8))
    assert (first != child_generator(1, "images").random(8)).all()
    assert (first != child_generator(0, "subjects").random(8)).all()


def test_weights_are_those_of_a_multinomial_draw():
    drawn = weights("images", 7, 3, 400)
    assert (drawn.sum(axis=1) == 7).all()
    assert drawn.var(axis=0).mean() > 0.5
    assert (drawn != weights("images", 7, 4, 400)).any()
    assert (drawn != weights("subjects", 7, 3, 400)).any()
