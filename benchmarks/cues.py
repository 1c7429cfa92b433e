"""Images per second of every cue that takes tensors: one CPU core against the device, 224×224×3 uint8, and how near.

``PYTHONPATH=src python benchmarks/cues.py [NAME …]``. The device is the first CUDA device; without one, PyTorch on one
core, which says what the form costs, not what it gains. The device's time is by the wall clock, with random numbers and
all, on bytes that lie there. The last columns compare its pixels with the CPU's for all published levels.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

BATCH = 128
SECONDS = 0.4
DIFFUSION = {"accuracy": 45}
MIDDLE = {
    "eed": DIFFUSION,
    "texture_residual": DIFFUSION,
    "texture_residual_shuffle": DIFFUSION,
    "eidolon": {"coherence": 0.3},
}
"""Options that are timed, where they are not the defaults."""


def photographs(count: int) -> np.ndarray:
    """Crops of three photographs that scikit-image brings along."""
    from skimage import data

    rng = np.random.default_rng(0)
    sources = [data.astronaut(), data.coffee(), data.chelsea()]
    crops = []
    for k in range(count):
        image = sources[k % len(sources)]
        y, x = rng.integers(image.shape[0] - 224), rng.integers(image.shape[1] - 224)
        crops.append(image[y : y + 224, x : x + 224])
    return np.stack(crops)


def rate(call: Callable[[], object], images: int, clock: Callable[[], float], wait: Callable[[], None]) -> float:
    """Images per second, after a first call that is not counted."""
    call()
    wait()
    count, start = 0, clock()
    while clock() - start < SECONDS or not count:
        call()
        wait()
        count += images
    return count / (clock() - start)


def agreement(function, images: np.ndarray, device, seeds: dict) -> tuple[int, float, str]:
    """Return the largest difference in grey levels and the largest share of values that differ, over all levels."""
    import torch

    from cuebench.testing.cues import beyond

    worst, share, problem = 0, 0.0, ""
    diffusion = "eed" in (function.__name__, function.info.passes_to)
    levels = [DIFFUSION] if diffusion else [{}, *({k: v} for k, values in function.info.levels.items() for v in values)]
    for options in levels:
        found = function(torch.from_numpy(images).to(device), **seeds, **options).cpu().numpy()
        wanted = function(images, **seeds, **options, **({"backend": "cpu"} if diffusion else {}))
        gap = np.abs(found.astype(int) - wanted)
        worst, share = max(worst, int(gap.max())), max(share, float((gap > 0).mean((1, 2, 3)).max()))
        problem = problem or beyond(function.info.device, found, wanted)
    return worst, share, problem


def line(name: str, batch: np.ndarray, device) -> str:
    """Measure one cue."""
    import torch

    from cuebench.registry import cues

    function, options, images = cues.get(name), MIDDLE.get(name, {}), torch.from_numpy(batch).to(device)
    wait = torch.cuda.synchronize if device.type == "cuda" else (lambda: None)

    def seeds(count: int) -> dict:
        return {"rng": list(range(count))} if function.info.random else {}

    on_cpu = {"backend": "cpu", "workers": 1} if "eed" in (name, function.info.passes_to) else {}
    cpu = rate(lambda: function(batch[:1], **seeds(1), **options, **on_cpu), 1, time.process_time, lambda: None)
    there = rate(lambda: function(images, **seeds(len(batch)), **options), len(batch), time.perf_counter, wait)
    levels, share, problem = agreement(function, batch[:3], device, seeds(3))
    return f"  {name:26s}{cpu:9.1f}{there:11.1f}{there / cpu:8.1f}   {levels}  {share:.4%}  {problem or 'yes'}"


def draws(device) -> None:
    """Print how many images' random numbers are drawn in a second, on one core and on the device."""
    import torch

    from cuebench.cues.on_device import normal, uniform

    wait = torch.cuda.synchronize if device.type == "cuda" else (lambda: None)
    for name, size, plain, made in (
        ("uniform numbers", (224, 224), "random", uniform),
        ("2 fields of normal ones", (2, 224, 224), "standard_normal", normal),
    ):

        def draw(size=size, plain=plain) -> object:
            return getattr(np.random.default_rng(0), plain)(size)

        def draw_there(size=size, made=made) -> object:
            return made([np.random.default_rng(k) for k in range(BATCH)], size, device)

        cpu = rate(draw, 1, time.process_time, lambda: None)
        there = rate(draw_there, BATCH, time.perf_counter, wait)
        print(f"  {name:26s}{cpu:9.1f}{there:11.1f}{there / cpu:8.1f}", flush=True)


def main(names: list[str] | None = None) -> None:
    import torch

    from cuebench.registry import cues

    on_cuda = torch.cuda.is_available()
    device = torch.device("cuda" if on_cuda else "cpu")
    torch.set_num_threads(1)
    batch = photographs(BATCH if on_cuda else 8)
    where = torch.cuda.get_device_name() if on_cuda else "PyTorch on one core"
    print(f"cues, 224×224×3 uint8, images per second: one core against {where}")
    print(f"  {'cue':26s}{'one core':>9s}{'device':>11s}{'ratio':>8s}   pixels: grey levels, share that differs, ok")
    for name in cues.names():
        if cues.get(name).info.device is not None and (not names or name in names):
            print(line(name, batch, device), flush=True)
    draws(device)


if __name__ == "__main__":
    main(sys.argv[1:])
