"""What a notebook shows of stimuli: pictures with their ids and classes, as HTML that needs nothing from anywhere."""

from __future__ import annotations

import base64
import io
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import fields
from html import escape
from pathlib import Path

from PIL import Image

from cuebench.errors import UserError, printable
from cuebench.stimuli.render import decode, render
from cuebench.types import REMOVED, Stimulus, StimulusSet

MOST = 24
"""Pictures of a contact sheet."""
SIDE, ALONE = 128, 320
"""Largest side of a picture in CSS pixels: one of many, and one of a few."""
PATIENCE = 5.0
"""Seconds after which no further picture is drawn: some cues take longer than a reader waits."""
_FAINT = "opacity:.65"
_LINE = "overflow:hidden;text-overflow:ellipsis;white-space:nowrap;font-size:11px;line-height:1.3"
_BOX = "border:1px solid rgba(128,128,128,.4)"


def set_html(stimuli: StimulusSet, most: int = MOST) -> str:
    """Return a contact sheet: what the set is, and some of its pictures, spread evenly over it.

    Parameters
    ----------
    stimuli : StimulusSet
        Whose pictures.
    most : int
        Number of pictures.
    """
    chosen = spread(stimuli, most)
    side = ALONE if len(chosen) <= 2 else SIDE
    until = time.monotonic() + PATIENCE
    tiles = "".join(_tile(stimuli.root, s, side, until) for s in chosen)
    if len(stimuli) == 1:
        tiles += _table(stimuli.stimuli[0])
    left = f"{len(chosen)} of {len(stimuli):,} shown" if len(chosen) < len(stimuli) else ""
    return f'<div>{_heading(stimuli, left)}<div style="display:flex;flex-wrap:wrap;gap:10px">{tiles}</div></div>'


def stimulus_html(stimulus: Stimulus) -> str:
    """Return what is known of a stimulus, with its picture where it is drawn without a file.

    The path of a file is relative to the root of the set: the set of one stimulus shows both.
    """
    drawn = stimulus.recipe and not stimulus.path
    picture = _tile("", stimulus, ALONE, time.monotonic() + PATIENCE) if drawn else ""
    return f'<div style="display:flex;flex-wrap:wrap;gap:16px">{picture}{_table(stimulus)}</div>'


def _table(stimulus: Stimulus) -> str:
    known = {f.name: getattr(stimulus, f.name) for f in fields(stimulus)}
    known |= {name: f"{known[name][:16]}…" for name in ("sha256", "mask_sha256") if known[name]}
    return _facts([(name, value) for name, value in known.items() if value not in ("", 0)])


def _facts(facts: Sequence[tuple[str, object]]) -> str:
    """Return names and values as a table."""
    left = "style='text-align:left'"
    rows = "".join(f"<tr><th {left}>{_text(name)}</th><td {left}>{_text(value)}</td></tr>" for name, value in facts)
    return f"<div><table>{rows}</table></div>"


def spread(stimuli: StimulusSet, most: int) -> list[Stimulus]:
    """Return some stimuli, as far apart in the set as possible: sets are sorted by class."""
    total = len(stimuli)
    count = min(most, total)
    return [stimuli.stimuli[i * total // count] for i in range(count)]


def classes_of(stimulus: Stimulus) -> list[str]:
    """Return what a picture shows: its class, or that of its shape and that of its texture; and its condition."""
    cues = {cue: getattr(stimulus, cue) for cue in ("shape", "texture")}
    lines = [f"{cue}: {name}" for cue, name in cues.items() if name and name != REMOVED]
    plain = [stimulus.label] if stimulus.label and stimulus.label not in cues.values() else []
    return [*plain, *lines, *([stimulus.condition] if stimulus.condition else [])]


def _heading(stimuli: StimulusSet, left: str) -> str:
    number = f"{len(stimuli):,} stimuli" if len(stimuli) != 1 else "1 stimulus"
    conditions = Counter(s.condition for s in stimuli if s.condition)
    by_condition = ", ".join(f"{n:,} {name}" for name, n in conditions.most_common(6)) if len(conditions) > 1 else ""
    if by_condition and len(conditions) > 6:
        by_condition += f" and {len(conditions) - 6} more conditions"
    facts = [number, by_condition, *(f"partial: {why}" for why in stimuli.partial), *stimuli.notes, left]
    return f"<p><b>{_text(stimuli.name)}</b>: {'; '.join(_text(fact) for fact in facts if fact)}</p>"


def _tile(root: str, stimulus: Stimulus, side: int, until: float) -> str:
    url, reason = "", "not drawn: the others took too long"
    if time.monotonic() < until:
        try:
            url, reason = _url(root, stimulus, 2 * side), ""
        except UserError as error:
            reason = error.message
    name, classes = _text(stimulus.id), [_text(line) for line in classes_of(stimulus)]
    if url:
        alt, most = ", ".join(classes) or name, f"max-width:{side}px;max-height:{side}px"
        picture = f'<img src="{url}" alt="{alt}" style="{most};{_BOX}">'
    else:
        box = f"width:{side}px;height:{side}px;overflow:hidden;font-size:11px;{_BOX};{_FAINT}"
        picture = f'<div style="{box}">{_text(reason)}</div>'
    line = f"max-width:{side}px;{_LINE}"
    below = "".join(f'<div style="{line};{_FAINT}" title="{text}">{text}</div>' for text in classes)
    caption = f'<figcaption><div style="{line}" title="{name}">{name}</div>{below}</figcaption>'
    return f'<figure style="margin:0">{picture}{caption}</figure>'


def _url(root: str, stimulus: Stimulus, side: int) -> str:
    """Return what is shown, made small, as a URL that holds it."""
    if not stimulus.path and not stimulus.recipe:
        raise UserError("known by its name only")
    image = render(Path(root), decode(Path(root), stimulus), stimulus).convert("RGB")
    image.thumbnail((side, side), Image.Resampling.LANCZOS)
    data = io.BytesIO()
    image.save(data, "JPEG", quality=88, subsampling=0)
    return f"data:image/jpeg;base64,{base64.b64encode(data.getvalue()).decode()}"


def _text(value: object) -> str:
    return escape(printable(str(value)))
