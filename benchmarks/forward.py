"""CPU time of a network's answers: as cuebench runs it, and without channels-last format and kept memory.

One process for each setting, in turns, all in one run: only the ratio means something.
"""

from __future__ import annotations

import os
import subprocess
import sys

MODELS = ("lite:efficientnet_lite0", "timm:resnet18?weights=random", "timm:vit_tiny_patch16_224?weights=random")
SETTINGS = {"plain": ("0", "0"), "channels last": ("1", "0"), "kept memory": ("0", "1"), "both": ("1", "1")}
_CODE = """
import os, resource, sys
import numpy as np
from cuebench.observers.torch import placement as _placed
from cuebench.observers.base import Batch, LoadOptions
from cuebench.observers.load import load
from cuebench.types import Stimulus
(model,) = load(sys.argv[1], LoadOptions(device="cpu"))
if os.environ["CHANNELS_LAST"] == "0":
    model._placed.channels_last = False
    model._placed._set_format()
images = np.random.default_rng(0).integers(0, 256, (32, *model.preprocess.hw, 3), dtype=np.uint8)
batch = Batch([Stimulus(str(i)) for i in range(32)], images)
def spent():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
model.respond(batch, ["logits"])
before = spent()
for _ in range(3):
    model.respond(batch, ["logits"])
print(spent() - before)
"""


def seconds(model: str, channels_last: str, keep: str) -> float:
    """Return the CPU seconds, user and system, of three batches of 32 images."""
    environment = {**os.environ, "CHANNELS_LAST": channels_last, "CUEBENCH_KEEP_MEMORY": keep}
    done = subprocess.run(
        [sys.executable, "-c", _CODE, model], env=environment, capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def main() -> dict[str, dict[str, float]]:
    """Print a table of CPU seconds and the ratio of all to nothing."""
    print(f"CPU seconds of 96 images {'':18}" + "".join(f"{name:>15}" for name in SETTINGS) + f"{'ratio':>8}")
    found = {}
    for model in MODELS:
        times = {name: min(seconds(model, *flags) for _ in range(2)) for name, flags in SETTINGS.items()}
        found[model] = times
        print(
            f"  {model:42}" + "".join(f"{t:15.2f}" for t in times.values()) + f"{times['plain'] / times['both']:8.1f}"
        )
    return found


if __name__ == "__main__":
    main()
