"""A corruption study with cues made by the decoding processes, and on the GPU: stimuli per second, one network.

``PYTHONPATH=src python benchmarks/cues_in_run.py [PHOTOGRAPHS]``. Generated JPEGs, all corruptions of
``corruption_robustness``, a ResNet-50 with random weights. From the first answer to the last, starting and scoring not
included. Without a CUDA device there is nothing to compare.
"""

from __future__ import annotations

import csv
import os
import sys
import tempfile
import time
from pathlib import Path

PHOTOGRAPHS = 64


def data(root: Path, count: int) -> Path:
    """Write photographs in the layout of ``imagenet_val``."""
    from benchmarks._jpegs import make
    from cuebench.labels import label_space

    folder = root / "imagenet_val"
    make(folder, count, os.cpu_count() or 1)
    wnids = label_space("imagenet1k").ids[:16]
    with (folder / "labels.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["file", "wnid"])
        writer.writerows([path.name, wnids[k % 16]] for k, path in enumerate(sorted(folder.glob("*.jpg"))))
    return root


def rate(observer: object, root: Path, out: Path, where: str) -> float:
    """Stimuli per second after the first shard."""
    import cuebench as cb

    moments: list[tuple[float, int]] = []

    def note(event: cb.responses.events.Event) -> None:
        if event.kind == "batch":
            moments.append((time.perf_counter(), event.done))

    cb.evaluate(observer, "corruption_robustness", data_root=root, out=out, cues_on=where, resamples=100, on_event=note)
    (start, first), (end, last) = moments[0], moments[-1]
    return (last - first) / (end - start)


def main(arguments: list[str] | None = None) -> None:
    import torch

    if not torch.cuda.is_available():
        print("cues in a run: no CUDA device here, skipped")
        return
    import torchvision

    import cuebench as cb

    torch.manual_seed(0)
    network = torchvision.models.resnet50()
    preprocess = cb.Preprocess(size=224, resize=224)
    observer = cb.wrap(network, name="resnet50", preprocess=preprocess, fingerprint="benchmark", precision="bfloat16")
    count = int(arguments[0]) if arguments else PHOTOGRAPHS
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        root = data(Path(folder, "data"), count)
        rates = {where: rate(observer, root, Path(folder, where), where) for where in ("cpu", "device")}
    print(f"corruption_robustness, {count} photographs, {os.cpu_count()} cores, {torch.cuda.get_device_name()}")
    for where, found in rates.items():
        print(f"  --cues {where:7s}{found:10.1f} stimuli per second{found / rates['cpu']:8.1f}×", flush=True)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    main(sys.argv[1:])
