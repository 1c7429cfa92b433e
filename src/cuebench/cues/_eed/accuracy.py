"""Number of cycles for a wanted accuracy: a calibration on photographs.

``WORST`` holds the PSNR in dB (values clipped to [0, 255], no stretch) of M growing cycles (``plan.py``) against
explicit steps of 0.4, for the *worst* of 1,033 photographs of 224×224×3: centre crops of 1,000 ImageNet validation
photographs and of eleven scikit-image pictures at three scales, with the default parameters, on an H200
(``benchmarks/eed_calibrate.py``). The table of T = 6553.6 (16,384 explicit steps):

============== ====  ====  ====  ====  ====  ====  ====  ====  ====  ====
cycles M          8    16    32    48    64    96   128   192   256   512
linear steps    545   772  1084  1310  1502  1849  2140  2676  3033  4429
worst          34.1  35.6  40.2  43.1  44.1  48.2  48.6  49.1  49.6  62.2
1st percentile 34.8  37.8  41.5  44.2  46.7  50.6  54.5  58.2  61.0  72.9
median         38.6  42.2  47.3  51.0  54.1  59.3  63.1  68.7  72.4  80.1
============== ====  ====  ====  ====  ====  ====  ====  ====  ====  ====

Between the table's numbers of cycles it is interpolated, and ``MARGIN`` is added to what is asked for, because the next
photograph may be harder than these: 72 cycles for 45 dB. These were measured for themselves: on 1,200 random crops of
the scikit-image pictures none is below 45.98 dB (H200, ``benchmarks/eed_gpu.py``), and of the photographs above the
seven that are hardest with 48 to 96 cycles reach 46.7 dB or more (on a CPU).

It is no proof. From 96 to 384 cycles one photograph in 1,033 decides the worst value: a faint border in it breaks or
holds by a hair. One image may lose a dB where the number of cycles grows by one (47.1, 45.7, 46.0 and 46.5 dB with 72,
73, 74 and 76), or reach 45.9 dB on one device and 49.0 on another (see ``ON_DEVICE``). Smaller sets mislead, too: 22 to
54 photographs gave 46 to 48 dB as the worst of 64 *equal* cycles, 1,033 gave 41.6. Where that matters, run the explicit
scheme.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from cuebench.cues.base import Tolerance

MARGIN = 0.25
"""dB on top of the wanted accuracy."""

ON_DEVICE = Tolerance(128, 0.5, 45)
"""How near pixels of a device are to the CPU's, with any options. The fast scheme enlarges the rounding of float32: one
unit in the last place of the input moves as much on one and the same CPU."""

CYCLES = (4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
WORST = {
    102.4: (54.4, 62.0, 65.2, 67.9, 71.1),
    409.6: (40.2, 46.6, 50.8, 54.5, 59.3, 63.0, 66.7, 69.5, 73.0),
    1638.4: (38.7, 44.5, 45.8, 48.8, 53.9, 55.3, 55.7, 56.1, 56.9, 68.7, 69.1, 69.5, 70.4),
    2316.8: (37.7, 42.1, 44.5, 46.1, 48.4, 52.2, 54.4, 54.7, 55.1, 55.6, 69.8, 71.3, 72.2, 73.3),
    6553.6: (31.8, 34.1, 35.2, 35.6, 38.5, 40.2, 43.1, 44.1, 48.2, 48.6, 49.1, 49.6, 52.2, 62.2),
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
