"""Triplet sheet: example trials, each an anchor, a shape match and a texture (size, colour) match.

Figures 1 (left) and 2 of Tartaglini et al. From a run with ``triplets`` the pictures that were shown; without one the
novel objects, which need no data.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cuebench.errors import UserError
from cuebench.metrics.triplets import enumerate_triplets
from cuebench.options import Option
from cuebench.protocols.triplets.stimuli import MATCHES, NAME, matching_objects, novel_objects
from cuebench.reports.figures.base import Figure
from cuebench.reports.marks import table
from cuebench.reports.picture import Picture
from cuebench.reports.stimulus_pictures import exactly, stimuli_of, tile
from cuebench.reports.theme import INK, SHAPE, SOFT, TEXTURE
from cuebench.reports.vega import alt
from cuebench.stimuli.sources import novel_object
from cuebench.types import Stimulus

CONDITIONS = (
    "experiment1/alpha=0.0",
    "experiment1/alpha=1.0",
    "experiment2/size=0.4/aligned",
    "experiment2/size=0.8/unaligned",
    "experiment3/size=0.4/unaligned",
    "experiment3/size=0.8/unaligned",
    "novel/match=size/unaligned",
    "novel/match=colour/unaligned",
)


def triplet_sheet(*, run: str = "", conditions: Sequence[str] = CONDITIONS, trials: int = 2, seed: int = 0) -> Picture:
    """Draw example trials, a row for each condition.

    Parameters
    ----------
    run : str
        Run folder with ``triplets`` whose images still lie where they were; default: novel objects, drawn here.
    conditions : sequence of str
        Rows; those that there are no pictures of are left out.
    trials : int
        Trials in a row.
    seed : int
        Which trials.
    """
    sets = [stimuli_of(run, NAME)] if run else [
        novel_objects(novel_object.SHAPES, novel_object.TEXTURES),
        *(matching_objects(match) for match in MATCHES),
    ]  # fmt: skip
    rows, records = [], []
    for condition in conditions:
        for stimuli in sets:
            shown = [s for s in stimuli if s.condition == condition]
            drawn = _trials(shown, trials, seed) if shown else []
            if drawn:
                rows.append((condition, [[tile(stimuli, s, 120) for s in trial] for trial in drawn]))
                records += [_record(condition, trial) for trial in drawn]
    if not rows:
        raise UserError("there are no pictures of these conditions", f"known: {', '.join(CONDITIONS)}")
    return Picture(
        "Example triplets",
        lambda room: _chart(rows, room),
        records,
        "Anchor, shape match (same shape, nothing else), other match (same texture, size or colour, not the shape)",
        f"{len(records)} example trials of {len(rows)} conditions.",
    )


def _trials(shown: Sequence[Stimulus], number: int, seed: int) -> list[tuple[Stimulus, ...]]:
    triplets = enumerate_triplets([s.shape_source for s in shown], [s.texture_source for s in shown])
    chosen = np.random.default_rng(seed).permutation(len(triplets))[:number]
    return [
        tuple(shown[positions[i]] for positions in (triplets.anchor, triplets.shape, triplets.texture)) for i in chosen
    ]


def _record(condition: str, trial: Sequence[Stimulus]) -> dict[str, str]:
    names = (s.id.partition("/")[0] for s in trial)
    return {"condition": condition, **dict(zip(("anchor", "shape match", "other match"), names))}


def _chart(rows: Sequence[tuple[str, list[list[str]]]], room: float) -> Any:
    trials = max(len(row) for _, row in rows)
    between, gap, head = 10.0, 4.0, 11.0
    side = (room - between * (trials - 1)) / (3 * trials) - gap
    step = side + head + 5
    height = len(rows) * step

    cells, labels = [], []
    for line, (condition, row) in enumerate(rows):
        top = line * step
        labels.append({"x": 0.0, "y": top + 4, "text": condition})
        for trial, urls in enumerate(row):
            for place, url in enumerate(urls):
                x = trial * (3 * (side + gap) + between) + place * (side + gap) + side / 2
                role = ("anchor", "shape match", "other match")[place]
                cells.append({"x": x, "y": top + head + side / 2, "url": url, "role": role, "condition": condition})
    base = alt.Chart(table(cells)).encode(x=exactly(alt.X, "x", room), y=exactly(alt.Y, "y", height))
    frame = base.mark_point(shape="square", size=(side + 1) ** 2, filled=False, strokeWidth=1).encode(
        color=alt.Color(
            "role:N",
            scale=alt.Scale(domain=["anchor", "shape match", "other match"], range=[INK, SHAPE, TEXTURE]),
            legend=alt.Legend(orient="bottom", direction="horizontal", title=None),
        )
    )
    images = base.mark_image(width=side, height=side).encode(
        url="url:N", tooltip=[alt.Tooltip("role:N"), alt.Tooltip("condition:N")]
    )
    texts = (
        alt.Chart(table(labels))
        .mark_text(fontSize=6.5, align="left", color=SOFT)
        .encode(x=exactly(alt.X, "x", room), y=exactly(alt.Y, "y", height), text="text:N")
    )
    return alt.layer(images, frame, texts).properties(width=room, height=height)


FIGURE = Figure(
    "triplet_sheet",
    "Example triplets",
    triplet_sheet,
    needs="nothing",
    options={
        "run": Option("", "run folder whose pictures are shown; default: novel objects"),
        "conditions": Option(CONDITIONS, "rows; those that there are no pictures of are left out"),
        "trials": Option(2, "trials in a row", low=1, high=4),
        "seed": Option(0, "which trials", low=0),
    },
    pictures=True,
)
