"""Texture disagreements: photographs in which people see another texture than TID (figure 5 of Hoak et al.)."""

from __future__ import annotations

from typing import Any

from cuebench.analyses.texture_judgements import identified, judge, read_judgements
from cuebench.errors import UserError
from cuebench.options import Option
from cuebench.reports.figures.base import Figure
from cuebench.reports.figures.texture_judgements import ANSWERS
from cuebench.reports.marks import pictures
from cuebench.reports.picture import Picture
from cuebench.reports.run_data import OBSERVER, PROTOCOL, Run, folders, observers_of
from cuebench.reports.stimulus_pictures import stimuli_of, tile
from cuebench.reports.text import words


def texture_disagreements(
    run: Run, *, answers: str = "", observer: str = "", texture: str = "", number: int = 24
) -> Picture:
    """Draw photographs on which people and TID disagree, the most frequent pair of words first.

    Parameters
    ----------
    run : path or sequence of paths
        Run folder with ``texture_association`` on the photographs that people judged, which still lie where they were.
    answers : str
        File of what people answered.
    observer : str
        Whole name or a part of it; default: the first of the run.
    texture : str
        Only photographs of this identified texture.
    number : int
        How many at most.
    """
    name, textures = identified(folders(run)[0], observer)
    if not answers:
        raise UserError("nobody's answers were given", "--set answers=FILE.csv; trials: analyses.texture_judgements")
    judged = judge(read_judgements(answers), textures)
    pairs = {pair: images for pair, images in judged.disagreements.items() if texture in ("", pair[0])}
    records = [
        {"image": image, "identified": tid_texture, "people": word}
        for (tid_texture, word), images in pairs.items()
        for image in images
    ][:number]
    if not records:
        raise UserError("people and TID agree on every photograph", "--set texture=… or other answers")
    stimuli = stimuli_of(run, PROTOCOL)
    by_id = {s.id: s for s in stimuli}
    tiles = [tile(stimuli, by_id[r["image"]]) for r in records]
    captions = [f"{words(r['people'])} / {words(r['identified'])}" for r in records]

    def chart(room: float) -> Any:
        return pictures(tiles, captions, room=room, columns=6 if room > 300 else 3)

    return Picture(
        f"People see another texture than TID: {observers_of(run).name(name)}",
        chart,
        records,
        "Below each photograph: the word of people / the texture of TID",
        f"{len(records)} photographs on which people and TID disagree.",
    )


FIGURE = Figure(
    "texture_disagreements",
    "People see another texture than TID",
    texture_disagreements,
    protocol=PROTOCOL,
    options={
        "answers": ANSWERS,
        "observer": OBSERVER,
        "texture": Option("", "only photographs of this identified texture"),
        "number": Option(24, "how many at most", low=1),
    },
    pictures=True,
)
