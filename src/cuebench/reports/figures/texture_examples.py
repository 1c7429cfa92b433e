"""Texture examples: photographs with the same identified texture, or with the same answer.

Figures 1, 3 and 15 to 19 of Hoak et al.: what the texture that TID finds looks like in photographs, and what natural
adversarial images look like that a model takes for one class.
"""

from __future__ import annotations

from typing import Any

from cuebench.errors import UserError, did_you_mean
from cuebench.options import Option
from cuebench.reports.figures.base import Figure
from cuebench.reports.marks import pictures
from cuebench.reports.picture import Picture
from cuebench.reports.run_data import OBSERVER, PROTOCOL, Run, folders, observers_of, of_observer, rows
from cuebench.reports.stimulus_pictures import stimuli_of, tile
from cuebench.reports.text import words

_COLUMNS = ("stimulus", "texture", "texturedness", "prediction", "label", "correct")


def texture_examples(
    run: Run, *, observer: str = "", texture: str = "", prediction: str = "", part: str = "clean", number: int = 24
) -> Picture:
    """Draw photographs with the same identified texture, the most textured first.

    Parameters
    ----------
    run : path or sequence of paths
        Run folders with ``texture_association`` on photographs, which still lie where they were.
    observer : str
        Whole name or a part of it; default: the first of the run.
    texture : str
        Which texture; default: the one with the most photographs (any, where a prediction is asked for).
    prediction : str
        Only photographs that were answered with this class.
    part : {"clean", "adversarial"}
        Which photographs.
    number : int
        How many at most.
    """
    name, records = of_observer(rows(run, "images"), observer)
    records = [r for r in records if r["part"] == part and r["texture"]]
    if prediction:
        known = {str(r["prediction"]) for r in records}
        if prediction not in known:
            raise did_you_mean(f"class that {name} answered", prediction, known)
        records = [r for r in records if r["prediction"] == prediction]
    counts: dict[str, int] = {}
    for r in records:
        counts[r["texture"]] = counts.get(r["texture"], 0) + 1
    if not records:
        raise UserError(f"{run} has no photographs ({part}) with a texture", "--set part=clean or part=adversarial")
    if texture and texture not in counts:
        raise did_you_mean(f"texture among the photographs of {name}", texture, counts)
    chosen = texture or ("" if prediction else max(counts, key=lambda t: (counts[t], t)))
    kept = [r for r in records if not chosen or r["texture"] == chosen]
    kept = sorted(kept, key=lambda r: (-r["texturedness"], r["stimulus"]))[:number]
    stimuli = stimuli_of(run, PROTOCOL)
    by_id = {s.id: s for s in stimuli}
    if any(r["stimulus"] not in by_id for r in kept):
        raise UserError(
            f"{folders(run)[0]} has a table of images that are none of its stimuli",
            f"score it again: cuebench score {folders(run)[0]}",
        )
    tiles = [tile(stimuli, by_id[r["stimulus"]]) for r in kept]
    captions = [words(r["prediction"] if chosen else r["texture"]) for r in kept]
    what = f"identified as {words(chosen)}" if chosen else f"answered with {words(prediction)}"
    total = sum(counts.values()) if not chosen else counts[chosen]

    def chart(room: float) -> Any:
        return pictures(tiles, captions, room=room, columns=8 if room > 300 else 4)

    return Picture(
        f"{'Photographs' if part == 'clean' else 'Natural adversarial images'} {what}: {observers_of(run).name(name)}",
        chart,
        [{key: r[key] for key in _COLUMNS} for r in kept],
        f"The {len(kept)} most textured of {total:,}; below each: {'its answer' if chosen else 'its texture'}",
        f"{len(kept)} photographs {what}.",
    )


FIGURE = Figure(
    "texture_examples",
    "Photographs by identified texture",
    texture_examples,
    protocol=PROTOCOL,
    options={
        "observer": OBSERVER,
        "texture": Option("", "which texture; default: the most frequent"),
        "prediction": Option("", "only photographs answered with this class"),
        "part": Option("clean", "which photographs", choices=("clean", "adversarial")),
        "number": Option(24, "how many at most", low=1),
    },
    pictures=True,
)
