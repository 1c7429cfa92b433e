"""Does the GPU decode a JPEG to the pixels of the CPU? It must, to be used: a number may not depend on the machine.

python -m benchmarks gpu_jpeg        needs CUDA, and torchvision with nvJPEG
"""

from __future__ import annotations

import io

import numpy as np
from PIL import Image


def main() -> dict[str, float]:
    """Print how many pixels differ, and by how much, between Pillow and torchvision on the GPU."""
    import torch
    from torchvision.io import ImageReadMode, decode_jpeg

    if not torch.cuda.is_available():
        print("no CUDA here: nothing to compare")
        return {}
    rng = np.random.default_rng(0)
    files, wanted = [], []
    for _ in range(64):
        coarse = Image.fromarray(rng.integers(0, 256, (16, 21, 3), dtype=np.uint8)).resize((341, 256), Image.BICUBIC)
        noisy = np.clip(np.asarray(coarse) + rng.normal(0, 6, (256, 341, 3)), 0, 255).astype(np.uint8)
        buffer = io.BytesIO()
        Image.fromarray(noisy).save(buffer, "JPEG", quality=90)
        files.append(torch.frombuffer(bytearray(buffer.getvalue()), dtype=torch.uint8))
        wanted.append(np.asarray(Image.open(buffer)))
    decoded = decode_jpeg(files, mode=ImageReadMode.RGB, device="cuda")
    differences = [
        np.abs(image.permute(1, 2, 0).cpu().numpy().astype(int) - pixels) for image, pixels in zip(decoded, wanted)
    ]
    result = {
        "share of values that differ": float(np.mean([(d > 0).mean() for d in differences])),
        "largest difference (grey levels)": float(max(d.max() for d in differences)),
    }
    for name, value in result.items():
        print(f"  {name:40} {value:.4g}")
    return result


if __name__ == "__main__":
    main()
