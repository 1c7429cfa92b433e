"""Feature suppression (Burgert et al. 2025): how much accuracy is left without shape, without texture, without colour.

Labelled photographs are suppressed at several levels on the fly; a file is decoded once for all of its pictures. Each
accuracy is divided by that on the same photographs unchanged. Two modes (``suppressions.py``): ``faithful``, as the
authors' code does it, and ``corrected``; the note of every row says which.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from cuebench.observers.preprocess import Preprocess
from cuebench.options import Option
from cuebench.protocols import correctness, imagenet_accuracy
from cuebench.protocols.base import ByObserver, Protocol, ScoreOptions, View, joined
from cuebench.protocols.classes import CLASSES, with_classes
from cuebench.protocols.feature_suppression.scores import add_scores, contributions
from cuebench.protocols.feature_suppression.suppressions import FAITHFUL, MODES, SIZE, suppressions
from cuebench.protocols.trials import TrialTable
from cuebench.responses.table import Responses
from cuebench.tables.engine import Result
from cuebench.types import Axis, Citation, Headline, StimulusSet

NAME, VERSION = "feature_suppression", 5
OPTIONS: Mapping[str, Option] = {
    "mode": Option(
        FAITHFUL, "suppressions as the authors' code makes them, or with what we think is right", choices=MODES
    ),
    "size": Option(
        SIZE,
        "side of the pictures that are suppressed, in pixels: that of the input, for networks of small pictures",
        low=32,
        high=1024,
    ),
    **CLASSES,
}
QUALITY_IMAGES = 20
"""Number of photographs that the quality of the suppressions is measured on."""


def configure(protocol: Protocol, values: Mapping[str, Any]) -> Protocol:
    """Return the protocol in the chosen mode and size, with the chosen classes."""
    chosen = replace(protocol, read=partial(read, mode=values["mode"], size=values["size"]))
    return with_classes(chosen, values)


def read(data_root: Path, mode: str = FAITHFUL, size: int = SIZE) -> StimulusSet:
    """Read ``data_root/imagenet_val`` and plan every suppression of every photograph."""
    photographs = imagenet_accuracy.read(data_root)
    conditions = suppressions(mode, size)
    stimuli = tuple(c.stimulus(s) for s in photographs for c in conditions)
    missing = tuple(p.replace("stimuli", "photographs") for p in photographs.partial)
    expected = photographs.expected * len(conditions)
    at = "" if size == SIZE else f" of pictures of {size} × {size} pixels"
    notes = (*photographs.notes, f"{mode} suppressions{at}")
    return replace(photographs, name=NAME, stimuli=stimuli, expected=expected, partial=missing, notes=notes)


def measure(responses: Responses, options: ScoreOptions) -> Result:
    """Return relative accuracies of one observer for every level, suppression and kind, and the shape reliance."""
    result = Result()
    add_scores(result, responses, options)
    return result


score = ByObserver(measure, joined)


def data_report(
    data_root: Path, images: int = QUALITY_IMAGES, mode: str = FAITHFUL
) -> tuple[str, list[dict[str, Any]]]:
    """Return the quality of every suppression, averaged over photographs that are spread evenly over the set.

    Parameters
    ----------
    data_root : Path
        Holds ``imagenet_val``.
    images : int
        Number of photographs.
    mode : str
        Of the suppressions and of the measures.
    """
    import numpy as np

    from cuebench.metrics.suppression_quality import SuppressionQuality, suppression_quality
    from cuebench.stimuli.render import decode, render

    photographs = imagenet_accuracy.read(data_root)
    chosen = list(islice(photographs, 0, None, max(1, len(photographs) // images)))[:images]
    original, *others = suppressions(mode)
    qualities: dict[str, list[SuppressionQuality]] = {c.condition: [] for c in others}
    for photograph in chosen:
        file = decode(photographs.root, photograph)
        plain = np.asarray(render(photographs.root, file, original.stimulus(photograph)))
        for c in others:
            suppressed = np.asarray(render(photographs.root, file, c.stimulus(photograph)))
            qualities[c.condition].append(suppression_quality(plain, suppressed, mode=mode))
    fields = SuppressionQuality._fields
    rows = [
        {"suppression": name, **{f: float(np.nanmean([getattr(q, f) for q in measured])) for f in fields}}
        for name, measured in qualities.items()
    ]
    number = f"{len(others)} {mode} suppressions, mean of {len(chosen)} photographs"
    return f"quality of {number}; 1 = as the original", rows


PROTOCOL = Protocol(
    name=NAME,
    version=VERSION,
    title="Feature suppression: accuracy left without shape, texture or colour",
    needs=(("logits",),),
    read=read,
    views=(View("native", Preprocess.whole_image),),
    score=score,
    trials=TrialTable(correctness.trial_rows),
    contributions=contributions,
    check=imagenet_accuracy.check,
    reduce=correctness.reduce,
    metrics=("relative_accuracy", "shape_reliance", "accuracy"),
    options=OPTIONS,
    configure=configure,
    headline=Headline(
        metric="shape_reliance",
        conditions=("all",),
        direction="shape",
        plane=(Axis("relative_accuracy", ("suppress=texture",)), Axis("relative_accuracy", ("suppress=shape",))),
    ),
    citation=Citation(
        text="Burgert, Stoll, Rota & Demir (2025). ImageNet-trained CNNs are not biased towards texture: revisiting "
        "feature reliance through controlled suppression. arXiv:2509.20234.",
        bibtex="""@article{burgert2025imagenet,
  title   = {{ImageNet}-trained {CNN}s are not biased towards texture: revisiting feature reliance through controlled suppression},
  author  = {Tom Burgert and Oliver Stoll and Paolo Rota and Beg{\\"u}m Demir},
  journal = {arXiv preprint arXiv:2509.20234},
  year    = {2025}
}""",  # noqa: E501
        url="https://github.com/tomburgert/feature-reliance",
        licence="the photographs' own: ImageNet terms of access, research use",
    ),
)
