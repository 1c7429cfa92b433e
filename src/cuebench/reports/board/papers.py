"""The layers of a board that nobody submitted: numbers that papers print, for the headlines that they print."""

from __future__ import annotations

from typing import NamedTuple

from cuebench.protocols.headline import headline_of
from cuebench.published.measures import measures
from cuebench.published.tables import PAPERS
from cuebench.registry import protocols

RESIZED = "images resized to 256 and cut to 224"
MEASURES = {
    "cue_conflict": (("refined_bias/cue_conflict_16-way", RESIZED), ("cue_decomposition/cue_conflict", "")),
    "refined_bias": (("refined_bias/shape_preference", "shape / (shape + texture) of the printed sensitivities"),),
    "cue_decomposition": (("cue_decomposition/S_cd", "population H of the paper"),),
    "imagenet_accuracy": (("refined_bias/accuracy", ""),),
    "corruption_robustness": (("cue_decomposition/robustness", ""),),
}
"""Protocol → the published numbers that are its headline, and how they were made where that is another way."""


class Published(NamedTuple):
    """A printed number of a model, or the value of people that a protocol quotes."""

    protocol: str
    layer: str
    name: str
    value: float
    source: str


def published(protocol: str) -> list[Published]:
    """Return what papers print for the headline of a protocol, highest first: models, and people where they are known.

    The numbers have no interval and no answers behind them; they are shown beside a ranking, never in it.
    """
    numbers = []
    for name, how in MEASURES.get(protocol, ()):
        measure = measures()[name]
        source = f"{PAPERS[measure.paper]}{f'; {how}' if how else ''}"
        numbers += [Published(protocol, "published", measure.labels[w], v, source) for w, v in measure.values.items()]
    if protocol in protocols and (headline := headline_of(protocol)).human is not None:
        numbers.append(Published(protocol, "published people", "people", headline.human, headline.human_source))
    return sorted(numbers, key=lambda p: -p.value)
