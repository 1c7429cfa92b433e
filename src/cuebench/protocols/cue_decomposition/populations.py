"""Populations H of the cue decomposition, whose mean qualities s and t normalise S_cd.

H is the models of a run, a published set of models, or a file of the user's own.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from cuebench.errors import UserError, all_problems, did_you_mean
from cuebench.reading import is_regular, read_json, user_path
from cuebench.statistics.sums import mean_estimate
from cuebench.stimuli.decomposition.cue_list import NAMES, ORIGINAL
from cuebench.types import Estimate

RUN, BOTH = "run", "both"
"""H = the models of the run; and both of them: the run and every published population with these cues."""
FOLDER = Path(__file__).parent / "published"
TRAINED = "Trained"
"""Group of models that the paper trained as extreme examples: they have scores but are not members of H."""


@dataclass(frozen=True)
class Population:
    """A set of models with their qualities on one shape cue and one texture cue.

    Parameters
    ----------
    name : str
        ``run``, or the name of a published population.
    shape, texture : mapping of str to Estimate
        Model → Q_S and Q_T; printed numbers have no images to leave out.
    source : str
        Where the numbers come from.
    """

    name: str
    shape: Mapping[str, Estimate]
    texture: Mapping[str, Estimate]
    source: str = ""

    def __post_init__(self) -> None:
        if not self.shape or set(self.shape) != set(self.texture):
            raise UserError(f"population {self.name!r} has {len(self.shape)} Q_S and {len(self.texture)} Q_T")

    def __len__(self) -> int:
        return len(self.shape)

    def without(self, names: Collection[str]) -> Population:
        """Return the population without some models (the paper leaves out those it trained itself)."""
        kept, removed = [m for m in self.shape if m not in names], [m for m in self.shape if m in names]
        if not removed:
            return self
        if not kept:
            raise UserError(
                f"no model is left in population {self.name!r}",
                f"name fewer of its {len(self)} members in leave_out: {', '.join(self.shape)}",
            )
        # Another H is another scale, so it has another name.
        shape, texture = ({m: members[m] for m in kept} for members in (self.shape, self.texture))
        source = f"{self.source} without {', '.join(removed)}"
        return replace(self, name=f"{self.name} less {len(removed)}", shape=shape, texture=texture, source=source)

    @cached_property
    def mean_shape(self) -> Estimate:
        """Mean of Q_S: it depends on the images in a run, and is fixed in a frozen population."""
        return _mean(list(self.shape.values()))

    @cached_property
    def mean_texture(self) -> Estimate:
        """Mean of Q_T."""
        return _mean(list(self.texture.values()))

    @property
    def s(self) -> float:
        """Mean of Q_S."""
        return self.mean_shape.value

    @property
    def t(self) -> float:
        """Mean of Q_T."""
        return self.mean_texture.value

    @property
    def description(self) -> str:
        """Members, s and t in words, as they stand beside a score."""
        by_definition = len(self) == 1 and self.name == RUN
        alone = " (one model is its own average: .5 by definition)" if by_definition else ""
        source = f" ({self.source})" if " without " in self.source else ""
        number = f"{len(self)} model{'s' * (len(self) != 1)}"
        return f"H = {self.name}{source}: {number}{alone}, s = {self.s:.4f}, t = {self.t:.4f}"


def _mean(members: Sequence[Estimate]) -> Estimate:
    mean = mean_estimate(members)
    # Of a member that was shown a single image none can be left out; the mean is then held fixed.
    known = all(len(values) for parts in mean.left_out.values() for values in parts.values())
    return mean if known else replace(mean, left_out={})


def populations(
    choice: str,
    dataset: str,
    shape: str,
    texture: str,
    run: Mapping[str, Mapping[str, Estimate]],
    left_out: Sequence[str],
) -> list[Population]:
    """Return the populations that S_cd is given for.

    Parameters
    ----------
    choice : str
        ``run``, a published name, a JSON file, or ``both``: the run and every published one that has these cues.
    dataset : str
        ``imagenet``, ``cityscapes``, ``ade20k`` …: which of the published sets to use.
    shape, texture : str
        Names of the two cues.
    run : mapping of str to mapping
        Model of this run → condition → quality.
    left_out : sequence of str
        Models that are not members of any H.
    """
    check_population(choice)
    with_run = choice in {RUN, BOTH}
    files = {} if choice == RUN else published() if choice == BOTH else _file_of(choice)
    candidates = [_of_run(shape, texture, run)] if with_run else []
    candidates += [_frozen(name, path, dataset, shape, texture) for name, path in files.items()]
    chosen = [p for p in candidates if p is not None]
    if not chosen and not with_run:
        raise UserError(
            f"population {choice!r} has no models with {shape} and {texture} on {dataset!r}",
            f"choose another: {', '.join([RUN, BOTH, *published()])} or a file that has them",
        )
    known = {m for p in chosen for m in p.shape} | set(run)
    unknown = [name for name in left_out if name not in known]
    if unknown:
        raise did_you_mean("model to leave out of the population:", unknown[0], known)
    return [p.without(left_out) for p in chosen]


def check_population(choice: str) -> None:
    """Refuse a population that does not exist and a file that cannot be used."""
    if Path(choice).suffix != ".json":
        if choice not in (known := [RUN, BOTH, *published()]):
            raise did_you_mean("population", choice, [*known, "FILE.json"])
        return
    problems = [
        f"{dataset}: {model}: {cue} is {value!r}"
        for dataset, models in _read(user_path(choice)).items()
        for model, qualities in models.items()
        for cue, value in qualities.items()
        if (cue in {ORIGINAL, *NAMES} or cue.startswith("voronoi")) and not _is_share(value)
    ]
    if problems:
        raise all_problems(f"population file {choice}", problems, "qualities are numbers between 0 and 1")


def published() -> dict[str, Path]:
    """Return name → file of the populations that ship with cuebench."""
    return {p.stem: p for p in sorted(FOLDER.glob("*.json"))}


def frozen_models(path: Path, dataset: str) -> Mapping[str, Mapping[str, Any]]:
    """Return model → group and qualities of one published set; empty where the file does not have it."""
    return _read(path).get(dataset, {})


def _file_of(choice: str) -> dict[str, Path]:
    """Return name → file of one population, published or the user's own."""
    is_file = Path(choice).suffix == ".json"
    return {Path(choice).stem: user_path(choice)} if is_file else {choice: published()[choice]}


def _read(path: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """Read a population file: data set → model → its group and its quality on each cue."""
    form = '{"sets": {"imagenet": {"models": {"NAME": {"eed": 0.5, "voronoi": 0.8}}}}}'
    if not is_regular(path):
        known = ", ".join([RUN, BOTH, *published()])
        raise UserError(f"population file {path} does not exist", f"check the path, or choose one of {known}")
    data = read_json(path, "population file", hint=f"expected {form}")
    try:
        sets = {name: {m: dict(q.items()) for m, q in entry["models"].items()} for name, entry in data["sets"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"population file {path} cannot be used: {error!r}", f"expected {form}") from None
    return sets


def _is_share(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1


def _frozen(name: str, path: Path, dataset: str, shape: str, texture: str) -> Population | None:
    models = {
        model: qualities
        for model, qualities in frozen_models(path, dataset).items()
        if qualities.get("group") != TRAINED and {shape, texture} <= set(qualities)
    }
    if not models:
        return None
    by_shape, by_texture = ({m: Estimate(float(q[cue]), 0) for m, q in models.items()} for cue in (shape, texture))
    return Population(name, by_shape, by_texture, path.name)


def _of_run(shape: str, texture: str, run: Mapping[str, Mapping[str, Estimate]]) -> Population | None:
    """Return the models that have both qualities; one without would make S_cd of all others undefined."""
    members = {m: q for m, q in run.items() if all(c in q and math.isfinite(q[c].value) for c in (shape, texture))}
    if not members:
        return None
    by_shape, by_texture = ({m: q[cue] for m, q in members.items()} for cue in (shape, texture))
    incomplete = [m for m in run if m not in members]
    missing = f" without {', '.join(incomplete)}, which lack a quality" if incomplete else ""
    return Population(RUN, by_shape, by_texture, f"the models of this run{missing}")
