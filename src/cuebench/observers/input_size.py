"""Whether an observer accepts images of another size than its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cuebench.observers.base import Batch, ObserverBase
from cuebench.types import Capability, Stimulus


def accepts(observer: ObserverBase, size: tuple[int, int], needs: Sequence[Capability]) -> bool:
    """Tell whether an observer answers images of this height and width, by showing it a blank one.

    Convolutional networks take images of any size; transformers with learned positions, and files with a fixed input,
    take one. An observer that fails at its own size too is broken for another reason, which is not told here.

    Parameters
    ----------
    observer : ObserverBase
        Looks at pixels.
    size : (height, width)
        Of the images.
    needs : sequence of Capability
        What it would be asked for.
    """
    assert observer.preprocess is not None
    native_size = observer.preprocess.hw
    return size == native_size or _answers(observer, size, needs) or not _answers(observer, native_size, needs)


def _answers(observer: ObserverBase, size: tuple[int, int], needs: Sequence[Capability]) -> bool:
    try:
        observer.respond(Batch([Stimulus("blank")], np.zeros((1, *size, 3), np.uint8)), needs)
    except (Exception, SystemExit):  # noqa: BLE001 - a model may raise anything for a size that it does not know
        return False
    return True
