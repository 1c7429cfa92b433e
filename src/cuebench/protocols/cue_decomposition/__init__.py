"""Cue decomposition (Heinert et al. 2025): quality on images without texture, without shape, and on the originals.

The set is made from your own labelled images by ``cuebench make cue_decomposition``. S_cd is given for two populations
of models: those of this run, and the 43 published ones. Cue-conflict candidates of the same set are scored beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cuebench.errors import UserError
from cuebench.metrics import shape_bias, texture_accuracy
from cuebench.observers.preprocess import Preprocess
from cuebench.protocols import correctness
from cuebench.protocols.base import Protocol, Result, ScoreOptions, View
from cuebench.protocols.cue_decomposition.scores import OPTIONS, Decomposition, Measured, checked
from cuebench.responses.table import Responses
from cuebench.statistics.correlations import correlate
from cuebench.statistics.estimates import ratio_estimates
from cuebench.statistics.intervals import Clusters
from cuebench.statistics.ratios import Outcomes
from cuebench.stimuli.decomposition.conflicts import PREFIX
from cuebench.stimuli.decomposition.folder import CLASSIFICATION, read_set
from cuebench.types import Citation, Reference, Score, StimulusSet

if TYPE_CHECKING:
    import pyarrow as pa

NAME, VERSION = CLASSIFICATION, 1
DATASET = "imagenet"
"""Which of the published populations S_cd is compared with."""
MAKE = "make it: cuebench make cue_decomposition --source IMAGES --out DATA_ROOT"


def read(data_root: Path) -> StimulusSet:
    """Read ``data_root/cue_decomposition``, as ``cuebench make cue_decomposition`` wrote it."""
    return read_set(data_root / NAME, MAKE)


def score(responses: Sequence[Responses], options: ScoreOptions) -> Result:
    """Return Q_O, Q_S, Q_T, S_cd and R_cd of every observer, and the cue-conflict candidates."""
    if not responses:
        raise UserError(f"no answers to score for {NAME}")
    measured = [_measured(r, options) for r in responses]
    whole = Decomposition(NAME, VERSION, DATASET, measured, options)
    rows = whole.rows() + [row for r in responses for row in _conflict_rows(r, options)]
    return Result(rows, {"population": whole.population_table(), "correlations": correlations(rows, options)})


def _measured(responses: Responses, options: ScoreOptions) -> Measured:
    conditions = [c for c in dict.fromkeys(s.condition for s in responses.stimuli) if not c.startswith(PREFIX)]
    _, own = correctness.qualities(responses, options, conditions)
    among = Path(responses.stimuli.targets).stem or (responses.labels.name if responses.labels else "")
    return Measured(responses, own, f"accuracy among {among}")


def _conflict_rows(responses: Responses, options: ScoreOptions) -> list[Score]:
    """Return shape bias and texture accuracy of every cue-conflict candidate (Table II)."""
    condition = responses.truth("condition")
    rows = []
    for name in dict.fromkeys(c for c in condition.tolist() if c.startswith(PREFIX)):
        own = np.flatnonzero(condition == name)
        by_shape, by_texture = (correctness.right(responses, f)[own] for f in ("shape", "texture"))
        outcome = Outcomes(np.ones(len(own), bool), by_shape, by_texture)
        terms = [shape_bias.terms(outcome), texture_accuracy.terms(outcome)]
        clusters = Clusters(*(responses.truth(f)[own] for f in ("id", "shape_source", "texture_source")))
        estimates = ratio_estimates(terms, clusters, ["images"], seed=options.seed, resamples=options.resamples)
        total = sum(s.condition == name for s in responses.stimuli)
        for metric, (found,) in zip(("shape_bias", "texture_accuracy"), estimates):
            low, high, kind, _ = found.bootstrap.interval.low, found.bootstrap.interval.high, "images", 0
            note = "; ".join(n for n in (f"{len(own):,} candidates", found.bootstrap.note, *responses.notes) if n)
            rows.append(Score(NAME, VERSION, responses.observer, name, metric, found.value, low, high, kind,
                              found.n, total - found.n, note))  # fmt: skip
    return rows


def correlations(rows: Sequence[Score], options: ScoreOptions) -> pa.Table:
    """Return Spearman's rank correlation of every two columns over the models that have both; empty below four models.

    A column is a metric in a condition. Tables II and X of the paper are such correlations.
    """
    import pyarrow as pa

    columns: dict[str, dict[str, float]] = {}
    for row in rows:
        columns.setdefault(f"{row.metric} {row.condition}", {})[row.observer] = row.value
    names = list(columns)
    found = []
    for i, x in enumerate(names):
        for y in names[i + 1 :]:
            both = [m for m in columns[x] if m in columns[y] and np.isfinite([columns[x][m], columns[y][m]]).all()]
            if len(both) < 4:
                continue
            one, other = ([columns[c][m] for m in both] for c in (x, y))
            r = correlate(one, other, how="fisher", seed=options.seed, resamples=options.resamples)
            found.append({"x": x, "y": y, "spearman": r.value, "low": r.low, "high": r.high, "p": r.p, "n": r.n})
    words, numbers = ("x", "y"), ("spearman", "low", "high", "p")
    schema = pa.schema([*((w, pa.string()) for w in words), *((n, pa.float64()) for n in numbers), ("n", pa.int64())])
    return pa.Table.from_pylist(found, schema=schema)


_TABLE = "Heinert et al. 2025, Table VIII; EED and Voronoi on 1,200 images of 16 classes"

CITATION = Citation(
    text="Heinert, Gottwald, Mütze & Rottmann (2025). Shape Bias and Robustness Evaluation via Cue Decomposition for "
    "Image Classification and Segmentation.",
    bibtex="""@article{heinert2025shape,
  title  = {Shape Bias and Robustness Evaluation via Cue Decomposition for Image Classification and Segmentation},
  author = {Edgar Heinert and Thomas Gottwald and Annika M{\\"u}tze and Matthias Rottmann},
  year   = {2025}
}""",
    url="https://arxiv.org/abs/2503.12453",
    licence="the images' own",
)


def configure(settings: Mapping[str, str]) -> Protocol:
    """Return the protocol; wrong settings fail here, before anything is spent."""
    return checked(PROTOCOL, settings)


PROTOCOL = Protocol(
    name=NAME,
    version=VERSION,
    title="Cue decomposition: shape bias and robustness without conflicting cues",
    needs=(("logits",), ("decisions",)),
    read=read,
    views=(View("native", Preprocess.whole_image),),
    score=score,
    check=correctness.check,
    metrics=("quality_original", "quality_shape", "quality_texture", "shape_bias_cd", "robustness_cd"),
    reference=(
        Reference("ResNet101", "quality_original", "original", 0.989, _TABLE),
        Reference("ResNet101", "quality_shape", "eed", 0.326, _TABLE),
        Reference("ResNet101", "quality_texture", "voronoi", 0.848, _TABLE),
        Reference(
            "ResNet101",
            "shape_bias_cd",
            "eed+voronoi H=heinert2025",
            0.360,
            f"{_TABLE}; printed .363, which follows from s = .573, not from the table's own .584",
        ),
        Reference("ResNet101", "robustness_cd", "eed+voronoi", 0.593, _TABLE),
        Reference("EVA02 L", "robustness_cd", "eed+voronoi", 0.957, _TABLE),
    ),
    reduce=correctness.reduce,
    options=OPTIONS,
    configure=configure,
    citation=CITATION,
)
