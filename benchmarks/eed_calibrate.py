"""How accurate M cycles are, on many photographs: ``PYTHONPATH=src python benchmarks/eed_calibrate.py FOLDER``.

Needs a CUDA device: the reference is 16,384 explicit steps of every photograph. Prints, for each diffusion time and
number of cycles, the worst, the 1st percentile and the median PSNR (values clipped to [0, 255], no stretch), and which
photographs are the worst. The table in ``cues/_eed/accuracy.py`` comes from here.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from cuebench.cues._eed.plan import Cycle, cycle_plan
from cuebench.cues._eed.scheme import Scheme

SIZE = 224
NAMES = ("astronaut", "chelsea", "coffee", "rocket", "camera", "coins", "page", "moon", "brick", "grass", "gravel")
STEPS = {102.4: 256, 409.6: 1024, 1638.4: 4096, 2316.8: 5792, 6553.6: 16384}
CYCLES = (4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)


def photographs(folder: Path) -> tuple[list[str], torch.Tensor]:
    """Centre crops of the folder's photographs, and crops of scikit-image's at three scales."""
    names, pixels = [], []
    for path in sorted(folder.rglob("*.jpg")):
        with Image.open(path) as image:
            names.append(path.stem)
            pixels.append(_crop(image.convert("RGB")))
    for name, image in _skimage():
        for scale in (0.5, 0.75, 1.0):
            short = max(SIZE, round(scale * min(image.size)))
            names.append(f"{name}@{scale}")
            pixels.append(_crop(image, short))
    stack = np.stack(pixels).astype(np.float32)
    return names, torch.from_numpy(stack).permute(0, 3, 1, 2).contiguous().cuda()


def _skimage() -> list[tuple[str, Image.Image]]:
    import skimage.data

    found = []
    for name in NAMES:
        try:
            found.append((name, Image.fromarray(getattr(skimage.data, name)()).convert("RGB")))
        except Exception as error:  # noqa: BLE001 - a picture that would have to be downloaded
            print(f"no picture {name}: {type(error).__name__}")
    return found


def _crop(image: Image.Image, short: int = SIZE) -> np.ndarray:
    scale = short / min(image.size)
    image = image.resize([max(SIZE, round(scale * n)) for n in image.size], Image.Resampling.BICUBIC)
    left, top = (image.width - SIZE) // 2, (image.height - SIZE) // 2
    return np.asarray(image.crop((left, top, left + SIZE, top + SIZE)))


def advanced(u: torch.Tensor, cycles: tuple[Cycle, ...]) -> torch.Tensor:
    from cuebench.cues._eed.triton_batch import Batch

    batch = Batch(u.clone(), Scheme())
    batch.advance(cycles, lambda _: None)
    return batch.u


def decibels(a: torch.Tensor, b: torch.Tensor) -> np.ndarray:
    error = torch.mean((a.clamp(0, 255) - b.clamp(0, 255)).double() ** 2, dim=(1, 2, 3))
    return (10 * torch.log10(255.0**2 / error.clamp(min=1e-12))).cpu().numpy()


def main() -> None:
    if not torch.cuda.is_available():
        print("eed calibration: no CUDA device here, skipped")
        return
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("photographs")
    names, u = photographs(folder)
    print(f"{len(names)} photographs")
    state, done = u, 0
    for time, steps in STEPS.items():
        state = advanced(state, (Cycle(1, 0.4),) * (steps - done))
        reference, done = state, steps
        worst = []
        for count in CYCLES:
            (cycles,) = cycle_plan([time], count, Scheme().longest_step).parts
            work = sum(cycle.steps for cycle in cycles)
            if work > steps / 2:
                break
            found = decibels(advanced(u, cycles), reference)
            worst.append(found.min())
            low = [f"{names[i]} {found[i]:.1f}" for i in np.argsort(found)[:4]]
            print(
                f"T {time:7.1f}  {count:4d} {work:5d}  worst {found.min():5.1f}  1 % {np.percentile(found, 1):5.1f}"
                f"  median {np.median(found):5.1f}  {', '.join(low)}",
                flush=True,
            )
        print(f"    {time}: ({', '.join(f'{w:.1f}' for w in worst)}),", flush=True)


if __name__ == "__main__":
    main()
