"""A set on disk: all cues with their measures, and of those the accepted ones in the published layout.

refined_bias/refined_bias_shape, refined_bias_texture    accepted cues: what the protocol reads
refined_bias/labels.json, made.json                      the class map; how the set was made
refined_bias/inspection.csv                              every cue with its measures, verdict and reason
refined_bias/sheet_shape.png, sheet_texture.png          accepted and rejected cues as pictures
refined_bias/made/                                       every cue that was made, accepted or not
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from cuebench.arrays import Pixels
from cuebench.csv_text import csv_text
from cuebench.errors import UserError
from cuebench.files import write_atomic, write_json
from cuebench.options import check_types
from cuebench.reading import is_regular, path_problem, read_json
from cuebench.stimuli.image_files import read_picture
from cuebench.stimuli.made import MADE, claim
from cuebench.stimuli.png import png_bytes
from cuebench.stimuli.readers.refined_bias import CUES, FOLDERS
from cuebench.stimuli.refined_bias.build import Made
from cuebench.stimuli.refined_bias.sources import Classes, Source
from cuebench.stimuli.sheet_layout import Group, Tile, draw

_FACTS = ("name", "cue", "label", "source", "grid")
TILES = 48


class Folder:
    """The folder of a set that the maker writes."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def prepare(self, record: Mapping[str, Any]) -> None:
        """Refuse to mix two sets in one folder, then note how this one is made."""
        places = [self.home / "made", *(self.home / f for f in FOLDERS.values())]
        before = claim(self.home, record, [place for place in places if place.exists()])
        write_json(self.home / MADE, {**record, "count": before.get("count", 0)})

    def _note(self, source: Source) -> Path:
        return self.home / "made" / "inspection" / source.label / f"{source.name}.json"

    def done(self, source: Source) -> bool:
        """Tell whether all cues of a source were made."""
        return self._note(source).is_file()

    def write(self, source: Source, made: Sequence[Made]) -> None:
        """Store the cues of a source; its note is written last, and says that they are complete."""
        for cue in made:
            if cue.picture is not None:
                write_atomic(self.home / "made" / cue.cue / cue.path, png_bytes(cue.picture))
        notes = [{k: v for k, v in asdict(replace(m, picture=None)).items() if k != "picture"} for m in made]
        write_json(self._note(source), notes)

    def read(self, sources: Iterable[Source]) -> list[Made]:
        """Return what was made of the sources, without the pictures."""
        return [made for source in sources for made in self._noted(source)]

    def _noted(self, source: Source) -> list[Made]:
        path = self._note(source)
        hint = f"delete {path}: the cues of this source are then made again"
        try:
            noted = [Made(**check_types(row, Made)) for row in read_json(path, "note of a source", hint=hint)]
        except (TypeError, AttributeError, UserError) as error:
            why = error.message if isinstance(error, UserError) else f"{path} is no note of a source"
            raise UserError(why, hint) from None
        if outside := [made.path for made in noted if made.cue not in CUES or path_problem(made.path)]:
            raise UserError(f"{path} names a file outside of its folder: {outside[0]!r}", hint)
        return noted

    def picture(self, made: Made) -> Pixels | None:
        """Return a made cue; None where there is none."""
        path = self.home / "made" / made.cue / made.path
        return np.asarray(read_picture(path).convert("RGB")) if is_regular(path) else None

    def finish(
        self,
        made: Sequence[Made],
        verdicts: Mapping[str, tuple[bool, str]],
        classes: Classes,
        record: Mapping[str, Any],
    ) -> list[Made]:
        """Publish the accepted cues, and write the table, the class map and the sheets; return the accepted ones."""
        judged = [_judged(m, verdicts) for m in made]
        accepted = [m for m in judged if not m.reason]
        for cue in CUES:
            self._publish(cue, [m for m in accepted if m.cue == cue])
            self._sheet(cue, [m for m in judged if m.cue == cue])
        write_atomic(self.home / "inspection.csv", _table(judged, verdicts))
        lists = {cue: sorted({m.label for m in accepted if m.cue == cue}) for cue in CUES}
        targets = {label: list(members) for label, members in sorted(classes.targets.items())}
        about = "Classes of a set made by cuebench, as members of a model's label space."
        write_json(self.home / "labels.json", {"about": about, **lists, "targets": targets})
        write_json(self.home / MADE, {**record, "count": len(accepted)})
        return accepted

    def _publish(self, cue: str, accepted: Sequence[Made]) -> None:
        place = self.home / FOLDERS[cue]
        wanted = {place / m.path for m in accepted}
        for old in set(place.glob("*/*.png")) - wanted:
            old.unlink()
        for m in accepted:
            data = (self.home / "made" / cue / m.path).read_bytes()
            if not (place / m.path).is_file() or (place / m.path).read_bytes() != data:
                write_atomic(place / m.path, data)

    def _sheet(self, cue: str, judged: Sequence[Made]) -> None:
        shown = ("contour_length", "texture_in_shape") if cue == "shape" else ("entropy", "grid_energy")
        groups = []
        for word, members in (
            ("accepted", [m for m in judged if not m.reason]),
            ("rejected", [m for m in judged if m.reason]),
        ):
            # At most so many tiles, spread evenly over the whole list.
            places = np.linspace(0, len(members) - 1, min(len(members), TILES)).round().astype(int)
            tiles = []
            for m in (members[i] for i in places):
                numbers = [f"{n.replace('_', ' ')} {m.measures[n]:.2g}" for n in shown if n in m.measures]
                if (picture := self.picture(m)) is not None:
                    tiles.append(Tile(m.name, m.reason or ", ".join(numbers), picture))
            groups += [Group(f"{len(members):,} {word}", tiles)] if tiles else []
        if groups:
            sheet = draw(groups, title=f"{cue} cues", columns=8)
            buffer = io.BytesIO()
            sheet.save(buffer, "PNG", optimize=True)
            write_atomic(self.home / f"sheet_{cue}.png", buffer.getvalue())


def _judged(made: Made, verdicts: Mapping[str, tuple[bool, str]]) -> Made:
    """Apply a person's verdict; a cue that could not be made stays rejected."""
    if made.name not in verdicts or not made.measures:
        return made
    good, why = verdicts[made.name]
    return replace(made, reason="" if good else f"rejected by a person{': ' if why else ''}{why}")


def _table(judged: Sequence[Made], verdicts: Mapping[str, tuple[bool, str]]) -> bytes:
    measures = sorted({n for m in judged for n in m.measures})
    rows = []
    for m in judged:
        by = "person" if m.name in verdicts and m.measures else "inspection"
        row = [getattr(m, f) for f in _FACTS] + ["reject" if m.reason else "accept", by, m.reason]
        rows.append(row + [f"{m.measures[n]:.6g}" if n in m.measures else "" for n in measures])
    return csv_text([*_FACTS, "verdict", "by", "reason", *measures], rows).encode()
