"""Import torchvision beside a torch that it was not built for.

The registry's torchvision wheel is linked against CUDA torch. Beside a CPU-only torch its compiled part does not load,
and the import then fails with ``operator torchvision::nms does not exist``, because Python code describes operators
that were never defined. Defining just those schemas is enough for transforms and models (and so for timm, open_clip and
transformers); ``torchvision.io``, ``nms`` and detection heads stay unavailable. Call ``import_torchvision`` before any
of these libraries, in every process.

It also spares the import of torch's compiler, three seconds that torchvision asks for because of one function of its
detection heads: while torchvision is imported, a stand-in for that function is there, which asks the real one when it
is called.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, Literal, NamedTuple, TypeVar

from cuebench.errors import MissingExtra, UserError

T = TypeVar("T")
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
        return _imported()
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
    _forget_half_imported()
    return _imported()


def repaired(call: Callable[[], T]) -> T:
    """Return ``call()``; where a user's code meets the known import error in it, torchvision is repaired first.

    A library may have wrapped the error in one of its own.
    """
    try:
        return call()
    except (RuntimeError, ImportError) as error:
        if _library or not any(isinstance(e, RuntimeError) and _ERROR.search(str(e)) for e in _causes(error)):
            raise
    import_torchvision()
    return call()


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what it was raised for, innermost last."""
    seen: list[BaseException] = []
    step: BaseException | None = error
    while step is not None and step not in seen:
        yield step
        seen.append(step)
        step = step.__cause__ or step.__context__


def _imported() -> ModuleType:
    """Import torchvision, without torch's compiler where that is possible."""
    if "torchvision" in sys.modules or "torch._dynamo" in sys.modules:
        return importlib.import_module("torchvision")
    import torch  # noqa: F401 - what torch imports of its compiler is the real one

    if "torch._dynamo" in sys.modules:
        return importlib.import_module("torchvision")
    compiler, utilities = ModuleType("torch._dynamo"), ModuleType("torch._dynamo.utils")
    utilities.is_compile_supported = _is_compile_supported  # type: ignore[attr-defined]
    stand_ins = {"torch._dynamo": compiler, "torch._dynamo.utils": utilities}
    sys.modules.update(stand_ins)
    try:
        return importlib.import_module("torchvision")
    except (ImportError, AttributeError):  # another version of torchvision wants more of it
        _forget_half_imported()
    finally:
        for name, module in stand_ins.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]
    return importlib.import_module("torchvision")


def _is_compile_supported(device_type: str) -> Any:
    return importlib.import_module("torch._dynamo.utils").is_compile_supported(device_type)


def _forget_half_imported() -> None:
    for name in [n for n in sys.modules if n == "torchvision" or n.startswith("torchvision.")]:
        del sys.modules[name]


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
