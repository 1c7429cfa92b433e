"""Prompts: files with a name and a hash. ``{options}`` stands where the lettered classes go.

Built-in: ``prompts/*.txt``. ``vqa`` asks which option describes the image, ``vqa_shape`` and ``vqa_texture`` ask for
one of the cues (steering), ``caption`` asks for a sentence and shows no options.
"""

from __future__ import annotations

import hashlib
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cuebench.errors import UserError, all_problems, did_you_mean
from cuebench.reading import is_regular, read_text, user_path

FOLDER = Path(__file__).parent / "prompts"
OPTIONS = "{options}"
NEUTRAL, SHAPE, TEXTURE, CAPTION = "vqa", "vqa_shape", "vqa_texture", "caption"
STEERING = (NEUTRAL, SHAPE, TEXTURE)
"""The prompts that steering compares."""


@dataclass(frozen=True)
class Prompt:
    """What a model is asked.

    Parameters
    ----------
    name : str
        Built-in name, or the name of the user's file without its ending.
    text : str
        As in the file; ``{options}`` is replaced by the lettered classes.
    """

    name: str
    text: str

    @property
    def lettered(self) -> bool:
        """Whether the model is shown options to choose from."""
        return OPTIONS in self.text

    @property
    def sha256(self) -> str:
        """Hash of the text: part of the key of every answer."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def ask(self, options: Sequence[str]) -> str:
        """Return the text for these options, in this order."""
        listed = "\n".join(f"{letter}. {name}" for letter, name in zip(letters(len(options)), options))
        return self.text.replace(OPTIONS, listed).strip()


def built_in() -> list[str]:
    """Return the names of the prompts that ship with cuebench."""
    return sorted(path.stem for path in FOLDER.glob("*.txt"))


def read_prompt(source: str, *, captions: bool = False) -> Prompt:
    """Return a built-in prompt by its name, or a user's own from a text file.

    Parameters
    ----------
    source : str
        ``vqa``, or a file.
    captions : bool
        The user has said how free answers are matched with classes: a file may then do without ``{options}``.

    Raises
    ------
    UserError
        There is no such prompt, the file is empty, or it does not show the options.
    """
    if source in built_in():
        return Prompt(source, read_text(FOLDER / f"{source}.txt"))
    path = user_path(source)
    if not is_regular(path):
        if path.suffix or len(path.parts) > 1:
            raise UserError(f"prompt file {path} does not exist", f"write it, or use one of {', '.join(built_in())}")
        raise did_you_mean("prompt", source, built_in())
    prompt = Prompt(path.stem, read_text(path, "prompt file"))
    if not prompt.text.strip():
        raise UserError(f"prompt file {path} is empty", f"write a question with {OPTIONS} where the classes are listed")
    if not prompt.lettered and not captions:
        raise UserError(
            f"prompt file {path} does not contain {OPTIONS}",
            f"add a line {OPTIONS}: the lettered classes are put there; for free captions say how they are read: "
            "&match=names",
        )
    return prompt


def letters(count: int) -> tuple[str, ...]:
    """Return how so many options are named: A to Z, or numbers where there are more."""
    if count <= len(string.ascii_uppercase):
        return tuple(string.ascii_uppercase[:count])
    return tuple(str(number) for number in range(1, count + 1))


def ordered(classes: Sequence[str], wanted: Sequence[str] = (), shuffle: int = 0) -> tuple[str, ...]:
    """Return the options in the order in which they are shown.

    Parameters
    ----------
    classes : sequence of str
        The classes of the protocol, in its order: that of the paper.
    wanted : sequence of str
        The user's own order; empty: that of the protocol.
    shuffle : int
        Seed of a shuffled order; 0: not shuffled.

    Raises
    ------
    UserError
        The user's options are not the protocol's classes.
    """
    problems = [f"{name!r} is no class of the stimuli" for name in wanted if name not in classes]
    problems += [f"{name!r} is written twice" for name, count in Counter(wanted).items() if count > 1]
    problems += [f"class {name!r} is missing" for name in classes if wanted and name not in wanted]
    if problems:
        raise all_problems("options=", problems, f"write all classes, in any order: options={','.join(classes)}")
    shown = tuple(wanted or classes)
    rng, drawn = np.random.default_rng(shuffle), shown
    while shuffle and drawn == shown and len(shown) > 1:  # of few options, the order that there was may be drawn
        drawn = tuple(shown[i] for i in rng.permutation(len(shown)))
    return drawn
