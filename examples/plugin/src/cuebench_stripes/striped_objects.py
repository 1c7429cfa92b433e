"""Striped objects: is an object behind stripes still compared by its texture, or now by its shape?

Novel objects, every shape in every texture, are shown plain and behind stripes of several contrasts. Each striped
picture is compared, by the cosine of its features, with two plain pictures: one that shares its shape and one that
shares its texture. Nothing is read from disk: cuebench draws the objects, the cue ``stripes`` covers them.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from cuebench.arrays import Floats
from cuebench.observers.preprocess import Preprocess
from cuebench.options import Option
from cuebench.protocols.base import Protocol, Result, ScoreOptions, View
from cuebench.responses.table import Responses
from cuebench.statistics.estimates import ratio_estimates
from cuebench.statistics.intervals import KINDS, Clusters
from cuebench.stimuli.sources import novel_object
from cuebench.types import Citation, Headline, Stimulus, StimulusSet
from cuebench_stripes.shape_match import METRIC, Similarities
from cuebench_stripes.stripes import CUE
from cuebench_stripes.stripes import VERSION as STRIPES

NAME = "striped_objects"
SHAPES, TEXTURES = novel_object.SHAPES[::2], novel_object.TEXTURES[::2]
PLAIN = "contrast=0.0"
CONTRASTS = (0.0, *CUE.levels["contrast"])


def stimuli(period: int = 12) -> StimulusSet:
    """Return every shape in every texture, plain and behind stripes; each picture is drawn when it is shown."""
    planned = []
    for shape, texture, contrast in product(SHAPES, TEXTURES, CONTRASTS):
        condition = f"contrast={contrast}"
        recipe = novel_object.recipe(shape, texture, size=0.8)
        if contrast:
            recipe += f";stripes?contrast={contrast}&period={period}&version={STRIPES}"
        planned.append(
            Stimulus(
                id=f"{shape}-{texture}|{condition}",
                width=novel_object.PIXELS,
                height=novel_object.PIXELS,
                shape=shape,
                texture=texture,
                shape_source=shape,
                texture_source=texture,
                condition=condition,
                recipe=recipe,
                seed=zlib.crc32(f"{shape}-{texture}".encode()),  # one object for all contrasts
            )
        )
    return StimulusSet(NAME, tuple(planned), expected=len(planned))


def configure(protocol: Protocol, options: Mapping[str, Any]) -> Protocol:
    """Return the protocol with stripes of another width."""
    return replace(protocol, read=lambda _: stimuli(options["period"]), standalone=lambda: stimuli(options["period"]))


def score(responses: Sequence[Responses], options: ScoreOptions) -> Result:
    """Return the shape match of every observer at every contrast."""
    assert METRIC.terms is not None
    result = Result()
    for answers in responses:
        for condition, trials, clusters in _trials(answers):
            defined = np.isfinite(trials.shape) & np.isfinite(trials.texture)
            terms = METRIC.terms(Similarities(trials.shape[defined], trials.texture[defined]))
            (estimate,) = ratio_estimates([terms], clusters.only(defined), KINDS)
            excluded = {"equally similar": int(defined.sum()) - estimate.n, "without features": int((~defined).sum())}
            result.add(answers, condition, METRIC.name, estimate.excluding(excluded))
    return result


def _trials(answers: Responses) -> Iterator[tuple[str, Similarities, Clusters]]:
    """Yield each condition with the similarities and clusters of its trials; NaN where a picture has no features."""
    features = _features(answers)
    shape, texture, condition = (
        np.array([getattr(s, field) for s in answers.stimuli]) for field in ("shape", "texture", "condition")
    )
    plain = np.flatnonzero(condition == PLAIN)
    for name in dict.fromkeys(condition.tolist()):
        striped = np.flatnonzero(condition == name)
        same_shape = shape[striped, None] == shape[plain]
        same_texture = texture[striped, None] == texture[plain]
        # Every plain picture that shares the shape only, against every plain picture that shares the texture only.
        anchor, by_shape, by_texture = np.nonzero(
            (same_shape & ~same_texture)[:, :, None] & (same_texture & ~same_shape)[:, None, :]
        )
        cosine = features[striped] @ features[plain].T
        rows = striped[anchor]
        yield (
            name,
            Similarities(cosine[anchor, by_shape], cosine[anchor, by_texture]),
            Clusters(rows, shape[rows], texture[rows]),
        )


def _features(answers: Responses) -> Floats:
    """Return the features of each stimulus scaled to length 1; NaN where they are missing or all zero."""
    values = np.asarray(answers.columns["features"], np.float64)
    length = np.linalg.norm(values, axis=1, keepdims=True)
    features: Floats = np.full((len(answers.stimuli), values.shape[1]), np.nan)
    features[answers.stimulus] = np.divide(values, length, out=np.full(values.shape, np.nan), where=length > 0)
    return features


PROTOCOL = Protocol(
    name=NAME,
    version=1,
    title="Striped objects: compared by shape or by texture behind stripes",
    needs=(("features",),),
    read=lambda _: stimuli(),
    standalone=stimuli,
    views=(View("native", Preprocess.whole_image),),
    score=score,
    metrics=(METRIC.name,),
    conditions={"contrast=*": "contrast of the stripes in front of the object; 0: no stripes"},
    headline=Headline(METRIC.name, ("contrast=0.5", "contrast=*"), direction="shape", neutral=0.5),
    options={"period": Option(12, "width of a dark and a bright stripe together, in pixels", low=2, high=112)},
    configure=configure,
    citation=Citation(
        text="cuebench-stripes (2026), an example of a plug-in; not a published experiment.",
        bibtex="@misc{cuebench_stripes, title = {Striped objects: an example of a cuebench plug-in}, year = {2026}}",
        url="examples/plugin in the source of cuebench",
        licence="the pictures are drawn by cuebench; Apache-2.0",
    ),
)
