"""Does a protocol order observers as their bias was planted? The shape observer must be on the side of shape."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from cuebench.protocols.headline import headline_column, headline_of
from cuebench.types import Score

TOWARDS = {"shape": 1, "texture": -1}
"""Direction of a headline → sign of the difference between an observer by shape and one by texture."""
BY_STIMULI = {"pure_shape": 1, "human_alignment": 1}
"""Protocols whose stimuli decide: there is only shape to see, or the people of the comparison go by shape."""
UNORDERED = "not a measure of shape or texture"


def planted_sign(protocol: str) -> int:
    """Return 1 where a larger headline means shape, −1 where it means texture, 0 where it says nothing of either."""
    return TOWARDS.get(headline_of(protocol).direction, BY_STIMULI.get(protocol, 0))


class Order(NamedTuple):
    """Two observers in one protocol.

    Parameters
    ----------
    protocol, metric, condition : str
        The headline.
    shape, texture : Score
        Of the observer whose planted bias is shape, and of the other.
    sign : int
        See `planted_sign`.
    """

    protocol: str
    metric: str
    condition: str
    shape: Score
    texture: Score
    sign: int

    @property
    def as_planted(self) -> bool:
        """Whether the values are in the planted order."""
        return self.sign * (self.shape.value - self.texture.value) > 0

    @property
    def apart(self) -> bool:
        """Whether the 95 % intervals do not overlap."""
        low, high = sorted((self.shape, self.texture), key=lambda s: s.value)
        return low.ci_high < high.ci_low


def planted_order(
    scores: Iterable[Score], protocol: str, *, shape: Iterable[str], texture: Iterable[str]
) -> Order | None:
    """Return how two observers stand to each other in the headline of a protocol; None where one has no number.

    Parameters
    ----------
    scores : iterable of Score
        Of one run or several.
    protocol : str
        Whose headline.
    shape, texture : iterable of str
        Names of the observer that was planted to go by shape, and by texture; the first that was measured counts, so
        that a network that segments can stand beside one that classifies.
    """
    column = headline_column(scores, protocol)
    if column is None:
        return None
    rows = [next((column.rows[name] for name in names if name in column.rows), None) for names in (shape, texture)]
    if rows[0] is None or rows[1] is None:
        return None
    return Order(protocol, column.metric, column.condition, rows[0], rows[1], planted_sign(protocol))
