"""Tables of texture association beside the scores: the TAV, textures, confidence, groups, images, agreement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cuebench.metrics.texture_agreement import by_label
from cuebench.metrics.texture_dominance import group
from cuebench.protocols.texture_association.measure import ADVERSARIAL, CLEAN, Measured
from cuebench.protocols.texture_association.scores import BY, FEW, grouping, judge

if TYPE_CHECKING:
    import pyarrow as pa

Columns = dict[str, Any]
_TEXT, _WHOLE, _NUMBER, _TRUTH = "string", "int64", "double", "bool"
TABLES = {
    "tav": {"texture": _TEXT, "label": _TEXT, "position": _WHOLE, "count": _WHOLE, "tav": _NUMBER},
    "textures": {
        "texture": _TEXT, "n": _WHOLE, "confidence": _NUMBER, "top_label": _TEXT, "top_share": _NUMBER,
        "too_few": _TRUTH,
    },
    "confidence": {"low": _NUMBER, "high": _NUMBER, "count": _WHOLE},
    "groups": {
        "by": _TEXT, "label": _TEXT, "texture": _TEXT, "n": _WHOLE, "share": _NUMBER, "value": _NUMBER,
        "dominant": _TRUTH,
    },
    "images": {
        "part": _TEXT, "stimulus": _TEXT, "texture": _TEXT, "texturedness": _NUMBER, "prediction": _TEXT,
        "label": _TEXT, "confidence": _NUMBER, "correct": _TRUTH,
    },
    "agreement": {"label": _TEXT, "prediction": _WHOLE, "own": _WHOLE},
    "layers": {"layer": _TEXT, "texture": _TEXT, "label": _TEXT, "share": _NUMBER, "tav": _NUMBER},
}  # fmt: skip
"""Table → its columns and their types, after the observer."""


def tables(measured: Measured) -> dict[str, pa.Table]:
    """Return name → table of one observer; tables without any row are left out."""
    import pyarrow as pa

    makers: dict[str, Callable[[Measured], Columns]] = {
        "tav": _tav,
        "textures": _textures,
        "confidence": _confidence,
        "groups": _groups,
        "images": _images,
        "agreement": _agreement,
    }
    result = {}
    for name, columns_of in makers.items():
        columns = columns_of(measured)
        size = len(next(iter(columns.values())))
        if size:
            result[name] = pa.table({"observer": [measured.responses.observer] * size, **columns})
    return result


def _tav(measured: Measured) -> Columns:
    """List every pair that occurred; all other values of the matrix are 0."""
    i, j = np.nonzero(measured.answers.counts)
    return {
        "texture": _pick(measured.textures, i),
        "label": _pick(measured.labels.names, j),
        "position": j,
        "count": measured.answers.counts[i, j],
        "tav": measured.tav[i, j],
    }


def _textures(measured: Measured) -> Columns:
    counts = measured.answers.counts
    n = counts.sum(1)
    return {
        "texture": list(measured.textures),
        "n": n,
        "confidence": [h.mean for h in measured.answers.confidence],
        "top_label": _pick(measured.labels.names, counts.argmax(1)),
        "top_share": counts.max(1, initial=0) / np.maximum(n, 1),
        "too_few": n < FEW,
    }


def _confidence(measured: Measured) -> Columns:
    counts = measured.answers.overall.counts
    edges = np.linspace(0, 1, len(counts) + 1)
    return {"low": edges[:-1], "high": edges[1:], "count": counts}


def _groups(measured: Measured) -> Columns:
    photos = measured.photographs.get(CLEAN)
    parts = []
    for by in BY if photos is not None else ():
        assert photos is not None
        classes, values = grouping(photos, by)
        groups = group(classes, photos.texture, values, len(measured.textures), len(measured.labels))
        c, t = np.nonzero(groups.counts)
        n = groups.counts[c, t]
        share, value = n / groups.counts.sum(1)[c], groups.sums[c, t] / n
        parts.append(([by] * len(c), c, t, n, share, value, groups.dominant[c] == t))
    if not parts:
        return {"by": []}
    grouped_by, c, t, n, share, value, dominant = (np.concatenate(column) for column in zip(*parts))
    return {
        "by": grouped_by,
        "label": _pick(measured.labels.names, c),
        "texture": _pick(measured.textures, t),
        "n": n.astype(np.int64),
        "share": share,
        "value": value,
        "dominant": dominant,
    }


def _images(measured: Measured) -> Columns:
    parts = [p for p in measured.photographs.values() if len(p.label)]
    if not parts:
        return {"part": []}
    stimuli = measured.responses.stimuli.stimuli
    rows = np.concatenate([p.stimulus for p in parts])
    joined = {name: np.concatenate([getattr(p, name) for p in parts]) for name in ("label", "prediction", "texture")}
    return {
        "part": [stimuli[i].condition for i in rows],
        "stimulus": [stimuli[i].id for i in rows],
        "texture": _pick((*measured.textures, ""), joined["texture"]),
        "texturedness": np.concatenate([p.similarity for p in parts]),
        "prediction": _pick(measured.labels.names, joined["prediction"]),
        "label": _pick(measured.labels.names, joined["label"]),
        "confidence": np.concatenate([p.confidence for p in parts]),
        "correct": np.concatenate([p.correct for p in parts]),
    }


def _agreement(measured: Measured) -> Columns:
    photos = measured.photographs.get(ADVERSARIAL)
    if photos is None or CLEAN not in measured.photographs:
        return {"label": []}
    classes = by_label(judge(measured, photos), photos.label, len(measured.labels))
    names = _pick(measured.labels.names, classes.label)
    return {"label": names, "prediction": classes.prediction, "own": classes.own}


def _pick(names: Sequence[str], positions: Any) -> list[str]:
    return [names[int(i)] for i in positions]
