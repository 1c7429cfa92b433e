"""Number of cycles for a wanted accuracy: a calibration on photographs.

``WORST`` holds the PSNR in dB (values clipped to [0, 255], no stretch) of M growing cycles (``plan.py``) against
explicit steps of 0.4, for the *worst* of 1,033 photographs of 224×224×3: centre crops of 1,000 ImageNet validation
photographs and of eleven scikit-image pictures at three scales, with the default parameters, on an H200
(``benchmarks/eed_calibrate.py``). The table of T = 6553.6 (16,384 explicit steps):

============  ====  ====  ====  ====  ====  ====  ====  ====  ====  ====
cycles M         8    16    32    48    64    96   128   192   256   512
linear steps   531   752  1064  1308  1504  1860  2144  2640  3040  4160
worst         33.6  35.8  39.6  42.1  44.5  48.4  51.5  54.7  56.3  66.6
1st percentile 34.2 36.9  40.5  43.4  45.7  49.9  52.9  57.6  60.7  73.0
median        37.8  41.0  45.4  48.8  51.7  56.4  59.9  65.1  69.2  80.7
============  ====  ====  ====  ====  ====  ====  ====  ====  ====  ====

Smaller sets mislead here: 22 to 54 photographs gave 46 to 48 dB as the worst of 64 *equal* cycles; among the 1,033 are
some with 41.6 (no lead) and 43.9 dB (lead 0.4), and more cycles could be worse on the hardest picture. Between the
table's numbers of cycles it is interpolated (72 for 45 dB). ``MARGIN`` is added to what is asked for, because the next
photograph may be harder than these. It is no proof: of 990 random crops of the scikit-image pictures at three scales,
three of one picture (a rocket before smoke, where a large faint region merges at once) missed 45 dB with 72 cycles,
the worst by 3.7 dB; equal cycles missed it on seven. Where that matters, run the explicit scheme.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

MARGIN = 0.5
"""dB on top of the wanted accuracy."""

CYCLES = (4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
WORST = {
    102.4: (50.2, 55.7, 59.7, 62.8, 67.7),
    409.6: (37.1, 42.3, 46.0, 48.8, 53.3, 56.8, 61.9, 65.8, 71.1),
    1638.4: (38.1, 42.5, 45.3, 47.3, 50.2, 52.5, 55.8, 58.5, 62.5, 65.4, 69.7, 72.8, 77.4),
    2316.8: (36.2, 39.7, 41.9, 43.3, 45.7, 47.6, 50.6, 52.8, 56.5, 59.2, 63.3, 66.3, 70.6, 73.7),
    6553.6: (30.9, 33.6, 34.3, 35.8, 37.7, 39.6, 42.1, 44.5, 48.4, 51.5, 54.7, 56.3, 64.2, 66.6),
}
"""Diffusion time → worst PSNR for each number of cycles."""


class Cycles(NamedTuple):
    """`number` growing cycles that would reach the `horizon`; a shorter diffusion takes the first of them."""

    number: int
    horizon: float


def cycles_for(accuracy: float, time: float) -> Cycles | None:
    """Return the fewest cycles that reach `accuracy` dB at `time`; None: more than the table knows of.

    Between the rows of the table the cycles of the next longer time are taken and cut off, which errs on the safe side:
    a diffusion is less accurate at its end than on its way. Beyond the table their number grows with the time.

    >>> cycles_for(45, 6553.6)
    Cycles(number=72, horizon=6553.6)
    """
    horizon = min((t for t in WORST if t >= time * (1 - 1e-6)), default=max(WORST))
    worst = WORST[horizon]
    if accuracy + MARGIN > worst[-1]:
        return None
    count = float(np.exp(np.interp(accuracy + MARGIN, worst, np.log(CYCLES[: len(worst)]))))
    beyond = max(1.0, time / horizon)
    return Cycles(math.ceil(count * beyond - 1e-9), horizon * beyond)
