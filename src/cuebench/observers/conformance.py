"""A verdict on an observer: does it keep the contract? For adapter authors, and for our own tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import numpy as np

from cuebench.arrays import Array
from cuebench.errors import all_problems
from cuebench.labels import LabelSpace
from cuebench.observers.base import REQUIRED, Answers, Batch, Observer
from cuebench.observers.preprocess import Preprocess
from cuebench.types import Capability, ObserverKind, Stimulus

_ROWS = ("logits", "features")


def check_observer(observer: Observer, *, tolerance: float = 1e-4, seed: int = 0) -> None:
    """Raise one error with every way in which an observer of pixels breaks the contract.

    Checked: the attributes; shapes, dtypes and finiteness of the answers; the same answer twice; the same answer alone,
    in a batch and in another order; logits and features together as apart; a fingerprint that stays.

    Parameters
    ----------
    observer : Observer
        With a ``preprocess``; one that needs no pixels is checked for its attributes only.
    tolerance : float
        Largest accepted difference between batch sizes, relative to the largest answer.
    seed : int
        For the test images.
    """
    problems = _attributes(observer)
    if not problems and observer.preprocess is not None:
        before = observer.fingerprint
        problems = _answers(observer, observer.preprocess, tolerance, seed)
        if observer.fingerprint != before:
            problems.append("fingerprint changed by answering")
    if problems:
        raise all_problems(f"observer {getattr(observer, 'name', observer)!r} breaks the contract", problems)


def _attributes(observer: Any) -> list[str]:
    missing = [a for a in REQUIRED if not hasattr(observer, a)]
    if missing:
        return [f"no attribute {a!r}" for a in missing]
    checks = {
        "name is not a non-empty str": isinstance(observer.name, str) and bool(observer.name),
        f"kind {observer.kind!r} is unknown": observer.kind in get_args(ObserverKind),
        "fingerprint is not a non-empty str": isinstance(observer.fingerprint, str) and bool(observer.fingerprint),
        "preprocess is neither None nor a Preprocess": isinstance(observer.preprocess, Preprocess | None),
        "labels is neither None nor a LabelSpace": isinstance(observer.labels, LabelSpace | None),
        "capabilities is empty or unknown": bool(observer.capabilities)
        and set(observer.capabilities) <= set(get_args(Capability)),
        "logits without labels": "logits" not in observer.capabilities or observer.labels is not None,
        "fingerprint differs when asked for twice": observer.fingerprint == observer.fingerprint,
    }
    return [problem for problem, fine in checks.items() if not fine]


def _answers(observer: Observer, preprocess: Preprocess, tolerance: float, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 256, (3, *preprocess.hw, 3), dtype=np.uint8)
    able: list[Capability] = [c for c in get_args(Capability) if c in observer.capabilities]
    whole = _ask(observer, images, able)
    problems = _shapes(observer, whole, able, len(images))
    if problems:
        return problems
    if any(not np.array_equal(whole[c], again) for c, again in _ask(observer, images, able).items()):
        problems.append("the same batch gets two different answers")
    alone = [_ask(observer, images[i : i + 1], able) for i in range(len(images))]
    turned = _ask(observer, images[::-1].copy(), able)
    for c in (c for c in able if c in _ROWS):
        scale = max(float(np.abs(whole[c]).max()), 1e-6)
        single = np.concatenate([a[c] for a in alone])
        for what, other in (
            ("alone", single),
            ("in another order", turned[c][::-1]),
            ("apart", _ask(observer, images, [c])[c]),
        ):
            worst = float(np.abs(whole[c] - other).max()) / scale
            if not worst <= tolerance:
                problems.append(f"{c} differ by {worst:.2g} (relative) when asked {what}")
    return problems


def _ask(observer: Observer, images: Array, needs: Sequence[Capability]) -> Answers:
    stimuli = [Stimulus(f"test-{i}") for i in range(len(images))]
    return observer.respond(Batch(stimuli, images), needs)


def _shapes(observer: Observer, answers: Answers, needs: Sequence[Capability], n: int) -> list[str]:
    problems = [f"answer lacks {c!r}" for c in needs if c not in answers]
    for c in (c for c in _ROWS if c in answers):
        value = answers[c]
        if value.dtype != np.float32:
            problems.append(f"{c} are {value.dtype}, not float32")
        if value.ndim != 2 or len(value) != n:
            problems.append(f"{c} of {n} images have the shape {value.shape}")
        elif c == "logits" and observer.labels is not None and value.shape[1] != len(observer.labels):
            problems.append(f"{value.shape[1]} logits for {len(observer.labels)} labels")
        if np.isnan(value).any():
            problems.append(f"{c} contain NaN")
    return problems
