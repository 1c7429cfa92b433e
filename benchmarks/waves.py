"""Many checkpoints in one run: loaded in waves while others answer, against all of them before the first answer.

    python -m benchmarks.waves --count 24 --files 2048 --device cuda

Checkpoints of ResNet-50 (ResNet-18 on a CPU) with random weights are written to a temporary folder; both runs are
processes of their own. Printed: seconds until the first answer and the end, and the most memory of the main process.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import _jpegs


def run(networks: int, folder: str, arch: str, device: str) -> None:
    """Evaluate all checkpoints of a folder with so many networks in a wave; print the times as JSON."""
    import cuebench as cb
    from cuebench.runs import waves

    begin, first = time.perf_counter(), []

    def on_event(event: object) -> None:
        if event.kind == "batch" and not first:
            first.append(time.perf_counter() - begin)

    waves.NETWORKS = networks
    specs = [f"checkpoint:{path}?arch=torchvision:{arch}" for path in sorted(Path(folder).glob("*.pt"))]
    scores = cb.evaluate(
        specs,
        "imagenet_accuracy",
        data_root=Path(folder, "data"),
        out=Path(folder, f"run-{networks}"),
        device=device,
        precision="bfloat16" if device == "cuda" else "float32",
        on_event=on_event,
        resamples=100,
    )
    assert len({score.observer for score in scores}) == len(specs)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"first": first[0], "all": time.perf_counter() - begin, "MiB": memory}))


def main() -> None:
    """Compare both ways."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=12, help="checkpoints")
    parser.add_argument("--files", type=int, default=64, help="pictures")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    arch = "resnet50" if args.device == "cuda" else "resnet18"
    if args.one:
        run(int(args.one[0]), args.one[1], args.one[2], args.device)
        return
    with tempfile.TemporaryDirectory() as folder:
        import torch

        from cuebench.observers.torch.torchvision_import import import_torchvision

        for seed in range(args.count):
            torch.manual_seed(seed)
            torch.save(getattr(import_torchvision().models, arch)().state_dict(), Path(folder, f"net{seed:03d}.pt"))
        _jpegs.make(Path(folder, "pictures"), args.files, os.cpu_count() or 1)
        _jpegs.link(Path(folder, "pictures"), Path(folder, "data"), args.files)
        results = {}
        for networks in (8, 10_000):
            command = [sys.executable, "-m", "benchmarks.waves", "--device", args.device]
            done = subprocess.run(
                [*command, "--one", str(networks), folder, arch], check=True, stdout=subprocess.PIPE, text=True
            )
            results[networks] = json.loads(done.stdout.strip().splitlines()[-1])
            print({8: "waves of 8", 10_000: "all at once"}[networks], results[networks], flush=True)
        print("ratios, waves / all:", {k: round(results[8][k] / results[10_000][k], 2) for k in results[8]})


if __name__ == "__main__":
    main()
