"""The tables of texture association that do not fit the tidy form: the TAV, the groups, a row for each photograph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cuebench.metrics import texture_dominance as dominance
from cuebench.metrics.texture_agreement import by_label
from cuebench.protocols.texture_association.measure import ADVERSARIAL, CLEAN, Measured
from cuebench.protocols.texture_association.scores import BY, FEW, grouping, judge

if TYPE_CHECKING:
    import pyarrow as pa

Columns = dict[str, Any]


def tables(everyone: Sequence[Measured]) -> dict[str, pa.Table]:
    """Return name → table over all observers; tables without any row are left out."""
    import pyarrow as pa

    makers: dict[str, Callable[[Measured], Columns]] = {
        "tav": _tav,
        "textures": _textures,
        "confidence": _confidence,
        "groups": _groups,
        "images": _images,
        "agreement": _agreement,
    }
    found = {}
    for name, columns in makers.items():
        parts = [pa.table(made) for m in everyone if len(next(iter((made := _named(m, columns(m))).values())))]
        if parts:
            found[name] = pa.concat_tables(parts)
    return found


def _named(found: Measured, columns: Columns) -> Columns:
    size = len(next(iter(columns.values()))) if columns else 0
    return {"observer": [found.responses.observer] * size, **columns}


def _tav(found: Measured) -> Columns:
    """List every pair that occurred; all other values of the matrix are 0."""
    i, j = np.nonzero(found.answers.counts)
    return {
        "texture": _pick(found.textures, i),
        "label": _pick(found.labels.names, j),
        "position": j,
        "count": found.answers.counts[i, j],
        "tav": found.tav[i, j],
    }


def _textures(found: Measured) -> Columns:
    counts = found.answers.counts
    n = counts.sum(1)
    mean = [h.total / h.n if h.n else float("nan") for h in found.answers.confidence]
    return {
        "texture": list(found.textures),
        "n": n,
        "confidence": mean,
        "top_label": _pick(found.labels.names, counts.argmax(1)),
        "top_share": counts.max(1, initial=0) / np.maximum(n, 1),
        "too_few": n < FEW,
    }


def _confidence(found: Measured) -> Columns:
    counts = found.answers.overall.counts
    edges = np.linspace(0, 1, len(counts) + 1)
    return {"low": edges[:-1], "high": edges[1:], "count": counts}


def _groups(found: Measured) -> Columns:
    photos = found.photographs.get(CLEAN)
    parts = []
    for by in BY if photos is not None else ():
        assert photos is not None
        classes, values = grouping(photos, by)
        groups = dominance.group(classes, photos.texture, values, len(found.textures), len(found.labels))
        c, t = np.nonzero(groups.counts)
        n = groups.counts[c, t]
        share, value = n / groups.counts.sum(1)[c], groups.sums[c, t] / n
        parts.append(([by] * len(c), c, t, n, share, value, groups.dominant[c] == t))
    if not parts:
        return {"by": []}
    by_, c, t, n, share, value, dominant = (np.concatenate(column) for column in zip(*parts))
    return {
        "by": by_,
        "label": _pick(found.labels.names, c),
        "texture": _pick(found.textures, t),
        "n": n.astype(np.int64),
        "share": share,
        "value": value,
        "dominant": dominant,
    }


def _images(found: Measured) -> Columns:
    parts = [p for p in found.photographs.values() if len(p.label)]
    if not parts:
        return {"part": []}
    stimuli = found.responses.stimuli.stimuli
    rows = np.concatenate([p.stimulus for p in parts])
    joined = {name: np.concatenate([getattr(p, name) for p in parts]) for name in ("label", "prediction", "texture")}
    return {
        "part": [stimuli[i].condition for i in rows],
        "stimulus": [stimuli[i].id for i in rows],
        "texture": _pick((*found.textures, ""), joined["texture"]),
        "texturedness": np.concatenate([p.similarity for p in parts]),
        "prediction": _pick(found.labels.names, joined["prediction"]),
        "label": _pick(found.labels.names, joined["label"]),
        "confidence": np.concatenate([p.confidence for p in parts]),
        "correct": joined["prediction"] == joined["label"],
    }


def _agreement(found: Measured) -> Columns:
    photos = found.photographs.get(ADVERSARIAL)
    if photos is None or CLEAN not in found.photographs:
        return {"label": []}
    classes = by_label(judge(found, photos), photos.label, len(found.labels))
    names = _pick(found.labels.names, classes.label)
    return {"label": names, "prediction": classes.prediction, "own": classes.own}


def _pick(names: Sequence[str], positions: Any) -> list[str]:
    return [names[int(i)] for i in positions]
