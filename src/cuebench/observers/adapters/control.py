"""Trained controls, ``control:shape`` and others: small networks whose bias is known from their training images.

They are trained on drawings (``cuebench controls``), the first time that one is asked for, in less than a minute,
and kept in the folder of weights. Their classes are those of the toy world (``cuebench make toy_world``).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from cuebench.errors import UserError, did_you_mean
from cuebench.labels import LabelSpace
from cuebench.observers.adapters._options import NAME, option_values
from cuebench.observers.base import Adapter, LoadOptions, Observer, Spec
from cuebench.observers.control_files import CONTROLS, read_record, weights_file, weights_folder
from cuebench.observers.preprocess import Preprocess
from cuebench.observers.torch.observer import TorchObserver
from cuebench.observers.torch.segmentation import torch_masks
from cuebench.options import Option

HINT = "→"
"""How the line of an error begins that says what to do."""
OPTIONS = {
    "seed": Option(0, "seed of the training: another seed is another network of the same kind", low=0),
    "folder": Option("", "where its weights lie or are put; default: controls/ in the folder of weights"),
    **NAME,
}


def load(spec: Spec, options: LoadOptions) -> list[Observer]:
    """Load a control; train it first where it is not there."""
    if spec.body not in CONTROLS:
        raise did_you_mean("control", spec.body, CONTROLS)
    values = option_values(spec, OPTIONS)
    control, folder = CONTROLS[spec.body], weights_folder(values["folder"])
    path = weights_file(spec.body, values["seed"], folder)
    if not (path.is_file() and path.with_suffix(".json").is_file()):
        _train(spec, values["seed"], folder)
    record = read_record(path)
    labels = LabelSpace("toy_world", tuple(record["labels"]["names"]), tuple(record["labels"]["ids"]))
    known: dict[str, Any] = {
        "name": values["name"] or spec.text,
        "preprocess": _preprocess(control.architecture),
        "labels": labels,
        "device": options.device,
        "precision": options.precision,
        "notes": (f"trained control: {control.about}; {record['accuracy']:.3f} right on held-out images",),
        "frozen": True,
    }
    network = _network(control.architecture, len(labels), path)
    return [torch_masks(network, **known) if control.architecture == "segmenter" else TorchObserver(network, **known)]


def _network(architecture: str, classes: int, path: Path) -> Any:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    from cuebench.observers.torch.models.small import ARCHITECTURES

    network = ARCHITECTURES[architecture](classes)
    try:
        network.load_state_dict(load_file(path))
    except (SafetensorError, OSError, ValueError, KeyError, RuntimeError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        again = f"remove it and {path.with_suffix('.json').name}: it is then trained again"
        raise UserError(f"{path} does not hold the weights of this control: {reason}", again) from None
    return network.eval()


def _preprocess(architecture: str) -> Preprocess:
    from cuebench.observers.torch.models.small import SCENE_SIDE, SIDE

    side = SCENE_SIDE if architecture == "segmenter" else SIDE
    mean, std = (0.5,) * 3, (0.25,) * 3
    return Preprocess(side, (side, side), crop=False, mean=mean, std=std, source="its training")


def _train(spec: Spec, seed: int, folder: Path) -> None:
    """Train in a process of its own: the drawings are above the observers, and threads and seeds stay as they are."""
    command = [sys.executable, "-m", "cuebench", "controls", spec.body, "--seed", str(seed), "--out", str(folder)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([*command, "--quiet"], capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        reasons = [line.removeprefix("error: ") for line in said if not line.startswith(HINT)]
        raise UserError(
            f"observer {spec.text!r} could not be trained: {reasons[-1] if reasons else f'status {done.returncode}'}",
            f"see: cuebench controls {spec.body} --out FOLDER. Into another folder than {folder}: "
            f"CUEBENCH_WEIGHTS=FOLDER, or control:{spec.body}?folder=FOLDER",
        )


ADAPTER = Adapter(
    load,
    form="control:NAME[?seed=N][&folder=DIR]",
    extra="torch",
    packages=("torch", "safetensors"),
    examples=("control:shape", "control:texture", "control:both?seed=1"),
    options=OPTIONS,
)
