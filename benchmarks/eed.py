"""Edge-enhancing diffusion on CPU cores: the table "Speed to reach" of eed.md, measured in one run.

Ratios only: both sides of a ratio run alternately on the same machine with the same number of threads, and the best of
several rounds counts, so that a busy machine does not decide. The GPU's lines are in ``benchmarks/eed_gpu.py``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np

from cuebench.cues._eed import numba_batch
from cuebench.cues._eed.accuracy import cycles_for
from cuebench.cues._eed.plan import Plan, cycle_plan, explicit_plan
from cuebench.cues._eed.scheme import Scheme

STEPS, TIME = 16384, 6553.6
SCHEME = Scheme()
NAMES = ("astronaut", "chelsea", "coffee", "rocket", "coins", "gravel", "page")
"""Photographs that scikit-image brings along; coins, gravel, page and rocket are the hardest of the calibration set."""


def photographs() -> dict[str, np.ndarray]:
    """Centre crops, 224×224×3 in [0, 255], planes first."""
    import skimage.data
    from PIL import Image

    found = {}
    for name in NAMES:
        try:
            image = np.asarray(getattr(skimage.data, name)())
        except Exception as error:  # noqa: BLE001 - a picture that would have to be downloaded
            print(f"   without {name}: {type(error).__name__}")
            continue
        image = image if image.ndim == 3 else np.repeat(image[..., None], 3, -1)
        side = min(image.shape[:2])
        y, x = (image.shape[0] - side) // 2, (image.shape[1] - side) // 2
        square = Image.fromarray(image[y : y + side, x : x + side, :3].astype(np.uint8))
        found[name] = np.moveaxis(np.asarray(square.resize((224, 224), Image.Resampling.BICUBIC), np.float32), -1, 0)
    return found


def best(*works: Callable[[], object], rounds: int = 5) -> list[float]:
    """Seconds of each work, taken in turns; the best round counts."""
    for work in works:
        work()
    times = [math.inf] * len(works)
    for _ in range(rounds):
        for k, work in enumerate(works):
            start = time.perf_counter()
            work()
            times[k] = min(times[k], time.perf_counter() - start)
    return times


def run(batch: np.ndarray, plan: Plan, workers: int = 1) -> np.ndarray:
    return numba_batch.diffuse(batch, SCHEME, plan, lambda work: None, workers)[-1]


def psnr(a: np.ndarray, b: np.ndarray) -> float:
    error = np.mean((np.clip(a, 0, 255).astype(float) - np.clip(b, 0, 255)) ** 2)
    return 10 * math.log10(255**2 / max(error, 1e-20))


def fast(decibels: float) -> Plan:
    wanted = cycles_for(decibels, TIME)
    assert wanted is not None
    return cycle_plan([TIME], wanted.number, SCHEME.longest_step, wanted.horizon)


def eager_step(batch: np.ndarray) -> Callable[[], object]:
    import torch

    from cuebench.cues._eed import torch_batch

    torch.set_num_threads(1)
    u = torch.from_numpy(batch)

    def step() -> object:
        with torch.inference_mode():
            return torch_batch.explicit(u, SCHEME, 0.4)

    return step


def accuracy(images: dict[str, np.ndarray], plans: dict[int, Plan]) -> dict[int, float]:
    """Worst PSNR of the fast plans against 16,384 explicit steps; all cores."""
    batch = np.stack(list(images.values()))
    reference = run(batch, explicit_plan([TIME], 0.4), workers=8)
    return {k: min(map(psnr, run(batch, plan, workers=8), reference)) for k, plan in plans.items()}


def main() -> None:
    images = photographs()
    one = next(iter(images.values()))[None]
    plans = {45: fast(45), 50: fast(50)}
    few = 40
    explicit, eager, *seconds = best(
        lambda: run(one, explicit_plan([few * 0.4], 0.4)),
        eager_step(one),
        *(lambda p=p: run(one, p) for p in plans.values()),
    )
    explicit /= few
    pair = np.concatenate([one, one[:, :, ::-1]])
    single, double = best(lambda: run(pair, plans[45], 1), lambda: run(pair, plans[45], 2))
    worst = accuracy(images, plans)
    rows = [("explicit kernel against an eager PyTorch step", eager / explicit, 6.0, "×")]
    for k, bar in ((45, 18.0), (50, 13.0)):
        part = plans[k].parts[0]
        name = f"fast scheme, accuracy={k} ({len(part)} × {part[0].steps}), against own explicit kernel"
        rows.append((name, STEPS * explicit / seconds[k == 50], bar, "×"))
        rows.append((f"    worst of {len(images)} photographs", worst[k], float(k), "dB"))
    rows.append(("fast scheme, accuracy=45, against eager PyTorch explicit", STEPS * eager / seconds[0], 150.0, "×"))
    rows.append(("scaling over images on 2 cores", single / double, 1.8, "×"))
    print(
        f"   one 224×224×3 image, one thread: eager step {eager * 1e3:.2f} ms, explicit step {explicit * 1e3:.3f} ms, "
    )
    print(f"   fast scheme {seconds[0]:.3f} s (45 dB), {seconds[1]:.3f} s (50 dB)")
    print(f"   {'what':72s} {'measured':>9s} {'bar':>7s}  ok")
    for name, value, bar, unit in rows:
        print(f"   {name:72s} {value:6.1f} {unit:2s} {bar:5.1f} {unit:2s} {'yes' if value >= bar else 'NO'}")


if __name__ == "__main__":
    main()
