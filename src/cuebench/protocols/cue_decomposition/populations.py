"""Populations H of the cue decomposition: the models of a run, the published ones, a file of the user's own."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from cuebench.errors import UserError, all_problems, did_you_mean
from cuebench.metrics.cue_decomposition import RUN, Population, fixed
from cuebench.metrics.quality import Quality

FOLDER = Path(__file__).parent / "published"
TRAINED = "Trained"
"""Group of models that the paper trained as extreme examples: they have scores, but are no members of H."""
BOTH = "both"


def populations(
    wanted: str,
    dataset: str,
    shape: str,
    texture: str,
    run: Mapping[str, Mapping[str, Quality]],
    left_out: Sequence[str],
) -> list[Population]:
    """Return the populations that S_cd is given for.

    Parameters
    ----------
    wanted : str
        ``run``, a published name, a JSON file, or ``both``: the run and every published one that has these cues.
    dataset : str
        ``imagenet``, ``cityscapes``, ``ade20k`` …: which of the published sets to use.
    shape, texture : str
        Names of the two cues.
    run : mapping of str to mapping
        Model of this run → condition → quality.
    left_out : sequence of str
        Models that are no members of any H.
    """
    names = published()
    own = _of_run(shape, texture, run)
    if wanted == RUN:
        found = [own]
    elif wanted == BOTH:
        found = [own, *(_frozen(n, names[n], dataset, shape, texture) for n in names)]
    elif Path(wanted).suffix == ".json":
        found = [_frozen(Path(wanted).stem, Path(wanted).expanduser(), dataset, shape, texture)]
    elif wanted in names:
        found = [_frozen(wanted, names[wanted], dataset, shape, texture)]
    else:
        raise did_you_mean("population", wanted, [RUN, BOTH, *names, "FILE.json"])
    there = [p for p in found if p is not None]
    if not there and wanted not in {BOTH, RUN}:
        raise UserError(
            f"population {wanted!r} has no models with {shape} and {texture} on {dataset!r}",
            f"choose another: {', '.join([RUN, BOTH, *names])} or a file that has them",
        )
    known = {m for p in there for m in p.shape} | set(run)
    missing = [name for name in left_out if name not in known]
    if missing:
        raise did_you_mean("model to leave out of the population:", missing[0], known)
    return [p.without(set(left_out)) for p in there]


def check_name(wanted: str) -> None:
    """Refuse a population that does not exist."""
    if Path(wanted).suffix == ".json":
        if not Path(wanted).expanduser().is_file():
            raise UserError(f"population file {wanted} does not exist", "docs/files.md shows one")
    elif wanted not in (known := [RUN, BOTH, *published()]):
        raise did_you_mean("population", wanted, [*known, "FILE.json"])


def published() -> dict[str, Path]:
    """Return name → file of the populations that ship with cuebench."""
    return {p.stem: p for p in sorted(FOLDER.glob("*.json"))}


@lru_cache
def frozen_models(path: Path, dataset: str) -> dict[str, dict[str, Any]]:
    """Return model → group and qualities of one published set; empty where the file does not have it."""
    try:
        data = json.loads(path.read_text("utf-8"))
        sets: Mapping[str, Any] = data["sets"]
        return dict(sets[dataset]["models"]) if dataset in sets else {}
    except FileNotFoundError:
        raise UserError(f"population file {path} does not exist") from None
    except (ValueError, KeyError, TypeError) as error:
        form = '{"sets": {"imagenet": {"models": {"NAME": {"eed": 0.5, "voronoi": 0.8}}}}}'
        raise UserError(f"population file {path} cannot be used: {error!r}", f"expected {form}") from None


def _frozen(name: str, path: Path, dataset: str, shape: str, texture: str) -> Population | None:
    models = {
        m: q
        for m, q in frozen_models(path, dataset).items()
        if q.get("group") != TRAINED and {shape, texture} <= set(q)
    }
    if not models:
        return None
    bad = [f"{m}: {cue} is {q[cue]!r}" for m, q in models.items() for cue in (shape, texture) if not _is_share(q[cue])]
    if bad:
        raise all_problems(f"population file {path}", bad, "qualities are numbers between 0 and 1")
    by_shape, by_texture = ({m: fixed(q[cue]) for m, q in models.items()} for cue in (shape, texture))
    return Population(name, by_shape, by_texture, str(path.name))


def _is_share(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1


def _of_run(shape: str, texture: str, run: Mapping[str, Mapping[str, Quality]]) -> Population | None:
    """Return the models that have both qualities; one without would make S_cd of all others undefined."""
    own = {m: q for m, q in run.items() if all(cue in q and math.isfinite(q[cue].value) for cue in (shape, texture))}
    if not own:
        return None
    by_shape, by_texture = ({m: q[cue] for m, q in own.items()} for cue in (shape, texture))
    without = [m for m in run if m not in own]
    said = f" without {', '.join(without)}, which lack a quality" if without else ""
    return Population(RUN, by_shape, by_texture, f"the models of this run{said}")
