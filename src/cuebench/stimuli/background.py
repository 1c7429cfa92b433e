"""Pictures with transparent parts: what these are put on, the same for every reader and for everybody who looks.

Models take opaque pixels, so a colour has to be chosen, and another colour can be another answer. White is usual.
Another colour is the first step of a stimulus's recipe, ``background?colour=black``: it stands in the manifest, answers
are stored under it, and whoever decodes the file follows it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cuebench.errors import UserError, all_problems
from cuebench.reading import read_bytes
from cuebench.stimuli._rgb import WHITE, has_transparent_parts
from cuebench.stimuli.hashing import for_each_file
from cuebench.stimuli.image_files import open_picture
from cuebench.stimuli.render import BACKGROUND, COLOURS, background_step
from cuebench.types import Stimulus, StimulusSet

REFUSE = "refuse"
BACKGROUNDS = (*COLOURS, REFUSE)
_BEGINNING = 1 << 12
"""Bytes; the chunks of a PNG before its pixels are shorter, as a rule."""
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_WITH_ALPHA = (4, 6)
"""Kinds of pixels of PNG that have an alpha channel: grey and alpha, colour and alpha."""


def check_background(background: str) -> str:
    """Return a background; refuse one that is none of those that can be chosen."""
    if background not in BACKGROUNDS:
        raise UserError(f"background {background!r}; one of {', '.join(BACKGROUNDS)}")
    return background


def on_background(stimuli: StimulusSet, background: str = WHITE) -> StimulusSet:
    """Return the set with its partly transparent pictures on a background, and a note that counts their files.

    Parameters
    ----------
    stimuli : StimulusSet
        Read by any reader.
    background : {"white", "black", "grey", "refuse"}
        A stimulus whose recipe names its background keeps that.

    Raises
    ------
    UserError
        With ``refuse``, naming every file with transparent parts.
    """
    check_background(background)
    paths = list(dict.fromkeys(s.path for s in stimuli if s.path and not background_step(s.recipe)))
    root = Path(stimuli.root)
    there = [path for path in paths if (root / path).is_file()]
    found = {path for path, yes in zip(there, for_each_file(is_transparent, [root / p for p in there])) if yes}
    if not found:
        return stimuli
    if background == REFUSE:
        hint = "choose a background: white, black or grey; or save the files without transparency"
        raise all_problems(f"pictures with transparent parts in {root}", sorted(found), hint)
    note = f"{len(found):,} partly transparent picture{'s' * (len(found) != 1)} shown on {background}"
    step = f"{BACKGROUND}?colour={background}" if background != WHITE else ""
    shown = stimuli.stimuli if not step else tuple(_on(s, step) if s.path in found else s for s in stimuli)
    return replace(stimuli, stimuli=shown, notes=(*stimuli.notes, note))


def _on(stimulus: Stimulus, step: str) -> Stimulus:
    if background_step(stimulus.recipe):
        return stimulus
    return replace(stimulus, recipe=";".join(filter(None, [step, stimulus.recipe])))


def is_transparent(path: Path) -> bool:
    """Tell whether parts of a picture are transparent; False where it cannot be decoded, which is reported elsewhere.

    A file is decoded only where its beginning does not rule it out.
    """
    with open(path, "rb", buffering=0) as file:
        if _is_opaque(file.read(_BEGINNING)):
            return False
    try:
        return has_transparent_parts(open_picture(read_bytes(path), path.name))
    except UserError:
        return False


def _is_opaque(beginning: bytes) -> bool:
    """Tell whether a file cannot have transparent parts, from its first bytes: JPEG, and PNG without alpha."""
    if beginning[:2] == b"\xff\xd8":
        return True
    if beginning[:8] != _SIGNATURE or beginning[25:26] == b"" or beginning[25] in _WITH_ALPHA:
        return False
    at = len(_SIGNATURE)
    while at + 8 <= len(beginning):
        length, kind = int.from_bytes(beginning[at : at + 4], "big"), beginning[at + 4 : at + 8]
        if kind in (b"IDAT", b"tRNS"):
            return kind == b"IDAT"
        at += 12 + length
    return False
