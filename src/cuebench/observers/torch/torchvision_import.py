"""Import torchvision beside a torch that it was not built for.

The registry's torchvision wheel is linked against CUDA torch. Beside a CPU-only torch its compiled part does not load,
and the import then fails with ``operator torchvision::nms does not exist``, because Python code describes operators
that were never defined. Defining just those schemas is enough for transforms and models (and so for timm, open_clip and
transformers); ``torchvision.io``, ``nms`` and detection heads stay unavailable. Call ``import_torchvision`` before any
of these libraries, in every process.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from types import ModuleType
from typing import Any, Literal, NamedTuple

from cuebench.errors import MissingExtra, UserError

_SCHEMAS = {
    "nms": "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms": "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
}
_ERROR = re.compile(r"operator torchvision::(\w+) does not exist")
_library: list[Any] = []  # torch drops the schemas when their Library object is collected


class Status(NamedTuple):
    """What ``cuebench doctor`` prints about torchvision."""

    state: Literal["native", "shimmed", "absent", "broken"]
    detail: str


def import_torchvision() -> ModuleType:
    """Return torchvision, repairing the one known import error; any other error is raised as it is."""
    if importlib.util.find_spec("torchvision") is None:
        raise MissingExtra("torchvision", "torch", "torchvision")
    try:
        return importlib.import_module("torchvision")
    except RuntimeError as error:
        operator = _ERROR.search(str(error))
        if operator is None:
            raise
        if operator[1] not in _SCHEMAS or _library:
            raise UserError(
                f"torchvision and torch do not fit each other: {error}",
                "install versions that were released together, see https://github.com/pytorch/vision#installation",
            ) from error
    _define_schemas()
    for name in [n for n in sys.modules if n == "torchvision" or n.startswith("torchvision.")]:
        del sys.modules[name]  # half imported
    return importlib.import_module("torchvision")


def status() -> Status:
    """Say how torchvision is there. Imports torch, so it takes seconds."""
    if importlib.util.find_spec("torchvision") is None:
        return Status("absent", "pip install 'cuebench[torch]'")
    try:
        version = import_torchvision().__version__
    except (ImportError, OSError, RuntimeError, UserError) as error:
        return Status("broken", str(error))
    if _library:
        return Status("shimmed", f"{version}, built for another torch: transforms and models work, compiled ops do not")
    return Status("native", str(version))


def _define_schemas() -> None:
    import torch

    library = torch.library.Library("torchvision", "FRAGMENT")
    for schema in _SCHEMAS.values():
        library.define(schema)
    _library.append(library)
