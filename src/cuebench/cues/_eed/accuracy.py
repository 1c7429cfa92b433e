"""How long a cycle may be for a wanted accuracy: a calibration on photographs.

``WORST`` holds the PSNR in dB (values clipped to [0, 255], no stretch) of M equal cycles against explicit steps of
0.4, for the *worst* of 54 photographs of 224×224×3 (37 of ImageNet's validation set, 17 of scikit-image), with the
default parameters. The median is 3 to 14 dB higher; the table of T = 6553.6 (16,384 explicit steps):

==========  ====  ====  ====  ====  ====  ====  ====  ====  ====
cycles M       8    16    32    48    64    96   128   192   256
steps M·n    560   800  1120  1392  1600  1920  2304  2688  3072
worst       36.0  38.5  42.8  46.9  48.5  51.4  53.7  60.6  63.4
median      38.9  43.3  50.2  55.5  58.4  63.5  67.6  72.5  75.0
==========  ====  ====  ====  ====  ====  ====  ====  ====  ====

``MARGIN`` is added to what is asked for, because the next photograph may be worse than these. On 24 images that took no
part in the calibration (14 of Oxford pets, 10 of DTD) requests for 40, 45, 50 and 55 dB were met on every one, at
T = 2316.8 and at T = 6553.6; the closest exceeded its request by 0.7 dB.
"""

from __future__ import annotations

import numpy as np

MARGIN = 1.5
"""dB on top of the wanted accuracy."""

CYCLES = (4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
WORST = {
    102.4: (58.2, 67.3, 70.8, 72.9, 75.8, 77.5, 80.9, 82.0),
    409.6: (50.3, 59.5, 64.8, 68.5, 72.6, 75.1, 78.2, 80.3, 83.2, 84.8, 87.9, 88.8),
    1638.4: (42.0, 48.2, 51.7, 54.2, 55.9, 58.2, 63.6, 65.2, 68.5, 70.7, 73.3, 74.7),
    2316.8: (39.8, 44.3, 48.7, 50.3, 53.7, 54.8, 60.5, 63.3, 68.3, 71.1, 74.4, 76.8),
    6553.6: (33.3, 36.0, 37.6, 38.4, 41.2, 42.7, 46.9, 48.4, 51.4, 53.6, 60.6, 63.4),
}
"""Diffusion time → worst PSNR for each number of cycles."""


def span_for(accuracy: float, time: float) -> float | None:
    """Return the longest diffusion time of a cycle that reaches `accuracy` dB at `time`; None: no cycle does.

    Between the rows of the table the next longer time is taken, which errs on the safe side: at the same length of the
    cycles, a longer diffusion is less accurate. Beyond the table, cycles shorten in proportion to the time.

    >>> round(6553.6 / span_for(45, 6553.6))
    46
    """
    known = min((t for t in WORST if t >= time * (1 - 1e-6)), default=max(WORST))
    worst = WORST[known]
    if accuracy + MARGIN > worst[-1]:
        return None
    cycles = float(np.exp(np.interp(accuracy + MARGIN, worst, np.log(CYCLES[: len(worst)]))))
    return min(known / cycles * min(1.0, known / time), time / CYCLES[0])
