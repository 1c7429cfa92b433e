"""Do people see the texture that was identified? The check of TID by people of Hoak et al., section III-B1.

The authors showed ten people 200 photographs, each with four words: the texture that TID found and three others drawn
at random; several words could be chosen. `judgement_trials` draws such trials from a run, `read_judgements` reads what
people answered, `judge` compares: the share of answers that name the identified texture, over all and by texture.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cuebench.csv_text import csv_text
from cuebench.errors import UserError, all_problems
from cuebench.files import write_atomic
from cuebench.observers.recorded_files import read_table as read_recorded
from cuebench.observers.study_export import WORDS as ASKED
from cuebench.observers.study_export import answers_of, is_export
from cuebench.reading import read_csv
from cuebench.runs.results import read_table_rows
from cuebench.statistics.estimates import ratio_estimates
from cuebench.statistics.intervals import Clusters
from cuebench.statistics.ratios import Terms
from cuebench.types import Estimate

PROTOCOL, PART = "texture_association", "clean"
NUMBER, WORDS = 200, 4
"""Published: images for each person, and words for each image."""
_COLUMNS = ("image", "answer")
_BETWEEN = ";"


class Identified(NamedTuple):
    """A photograph, and the texture that the answers of a model to it resemble most."""

    image: str
    texture: str
    texturedness: float


class Judgement(NamedTuple):
    """What one person answered to one image: one word or several."""

    subject: str
    image: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class Judged:
    """Agreement of people with the identified textures.

    Parameters
    ----------
    rows : tuple of (Judgement, Identified)
        Every answer with the texture that was identified.
    overall : Estimate
        Share of answers that name it; the interval is over images.
    by_texture : dict of str to Estimate
        The same for each identified texture.
    unknown : int
        Answers to images that the run has no texture for; they are left out.
    """

    rows: tuple[tuple[Judgement, Identified], ...]
    overall: Estimate
    by_texture: dict[str, Estimate]
    unknown: int

    @property
    def disagreements(self) -> dict[tuple[str, str], list[str]]:
        """(texture of TID, word of people) → images, the most frequent pair first."""
        images_by_pair: dict[tuple[str, str], list[str]] = {}
        for judgement, identified in self.rows:
            for word in judgement.words if identified.texture not in judgement.words else ():
                images = images_by_pair.setdefault((identified.texture, word), [])
                if judgement.image not in images:
                    images.append(judgement.image)
        return dict(sorted(images_by_pair.items(), key=lambda pair: (-len(pair[1]), pair[0])))


def identified(run: str | Path, observer: str = "", part: str = PART) -> tuple[str, list[Identified]]:
    """Return an observer of a run and the textures that its answers to photographs resemble.

    Parameters
    ----------
    run : path
        Run folder with ``texture_association`` on photographs.
    observer : str
        Whole name or a part of it; default: the first of the run.
    part : str
        ``clean`` or ``adversarial``.
    """
    path = Path(run).expanduser()
    if not (path / "tables" / f"{PROTOCOL}.images.parquet").is_file():
        raise UserError(
            f"{run} has no textures of photographs",
            f"run {PROTOCOL} with a data root that holds imagenet_val (or imagenet_a)",
        )
    records = [r for r in read_table_rows(path, PROTOCOL, "images") if r["part"] == part and r["texture"]]
    names = [name for name in dict.fromkeys(str(r["observer"]) for r in records) if observer in name]
    exact = [name for name in names if name == observer] or names
    if not exact:
        raise UserError(f"{run} has no texture of a photograph ({part}) by {observer or 'anybody'}", "see its scores")
    rows = [Identified(r["stimulus"], r["texture"], r["texturedness"]) for r in records if r["observer"] == exact[0]]
    return exact[0], rows


def judgement_trials(
    run: str | Path, *, observer: str = "", number: int = NUMBER, words: int = WORDS, seed: int = 0
) -> list[dict[str, Any]]:
    """Draw trials for people: images, each with the identified texture and others in random order.

    Parameters
    ----------
    run, observer
        As in `identified`.
    number, words : int
        Images, and words for each.
    seed : int
        Of all draws.

    Returns
    -------
    list of dict
        ``image`` and ``options`` (words joined by ``;``). Which of them was identified is not in it, so that it can be
        shown to people.
    """
    _, rows = identified(run, observer)
    known = sorted({row.texture for row in rows})
    if len(known) < words:
        raise UserError(f"{run} has found {len(known)} textures; {words} words are needed", "show more photographs")
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(len(rows))[:number]
    trials = []
    for row in (rows[int(i)] for i in chosen):
        others = [name for name in known if name != row.texture]
        shown = [row.texture, *(others[int(i)] for i in rng.permutation(len(others))[: words - 1])]
        trials.append({"image": row.image, "options": _BETWEEN.join(shown[int(i)] for i in rng.permutation(words))})
    return trials


def write_trials(trials: Sequence[dict[str, Any]], path: str | Path) -> None:
    """Write trials as CSV; people fill in ``subject`` and ``answer``."""
    columns = ["subject", "image", "options", "answer"]
    text = csv_text(columns, ([trial.get(column) for column in columns] for trial in trials))
    write_atomic(Path(path), text.encode())


def read_judgements(path: str | Path) -> list[Judgement]:
    """Read what people answered.

    Parameters
    ----------
    path : path
        CSV with ``image``, ``answer`` (words joined by ``;``), optionally ``subject`` and ``options``; or the export of
        a study (``cuebench study export``), CSV or Parquet, whose excluded answers are left out.
    """
    file = Path(path).expanduser()
    if file.suffix.lower() == ".parquet" or is_export(set(read_csv(file, "judgements of textures").columns)):
        return _from_export(file)
    table = read_csv(Path(path).expanduser(), "judgements of textures", needed=_COLUMNS)
    judgements, problems = [], []
    for line, row in enumerate(table.rows, start=2):
        words = tuple(word.strip() for word in row["answer"].split(_BETWEEN) if word.strip())
        allowed = [word.strip() for word in row.get("options", "").split(_BETWEEN) if word.strip()]
        wrong = [word for word in words if allowed and word not in allowed]
        problems += [f"line {line}: {word!r} was not among {', '.join(allowed)}" for word in wrong]
        if words:
            judgements.append(Judgement(row.get("subject", "").strip() or "person", row["image"].strip(), words))
    if problems or not judgements:
        hint = "one or several of the words that were shown"
        raise all_problems(f"judgements {path}", problems or ["no answer"], hint)
    return judgements


def _from_export(file: Path) -> list[Judgement]:
    answers = [a for a in answers_of(file, read_recorded(file)[0]) if a.counts and a.task == ASKED and a.response]
    if not answers:
        raise UserError(f"judgements {file}: no answer to the question for texture words", "is it another study?")
    return [Judgement(a.participant, a.stimulus, a.response) for a in answers]


def judge(
    judgements: Sequence[Judgement],
    textures: Sequence[Identified],
    *,
    seed: int = 0,
    resamples: int = 2000,
) -> Judged:
    """Compare what people see with the identified textures."""
    of_image = {row.image: row for row in textures}
    rows = tuple((j, of_image[j.image]) for j in judgements if j.image in of_image)
    if not rows:
        raise UserError("people judged none of the images of this run", "names of images must be those of the run")

    def estimate(some: Sequence[tuple[Judgement, Identified]]) -> Estimate:
        agrees = np.array([i.texture in j.words for j, i in some], float)
        images = np.array([j.image for j, _ in some])
        clusters = Clusters(images, images, images)
        terms = Terms(agrees, np.ones(len(agrees)))
        return ratio_estimates([terms], clusters, ("images",))[0]

    names = sorted({i.texture for _, i in rows})
    by_texture = {name: estimate([row for row in rows if row[1].texture == name]) for name in names}
    return Judged(rows, estimate(rows), by_texture, len(judgements) - len(rows))
