"""Any model of the user's as an observer: three lines, no fork."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.errors import UserError
from cuebench.labels import Labels, LabelSpace, label_space
from cuebench.observers.arguments import as_preprocess, check_wrap, translation
from cuebench.observers.base import REQUIRED, Answers, Batch, Observer, ObserverBase, is_observer
from cuebench.observers.function_preprocess import FunctionPreprocess
from cuebench.observers.masks import FUNCTION_PRECISION, MaskObserver
from cuebench.observers.preprocess import Preprocess
from cuebench.observers.torch.observer import TorchObserver, check_logits
from cuebench.observers.torch.placement import plain_numbers
from cuebench.types import Capability, ObserverKind

NO_FINGERPRINT = "no fingerprint= was given: answers of this function are not found again later"


class CallableObserver(ObserverBase):
    """A function from normalised pixels to logits.

    Parameters
    ----------
    function : callable
        float32 N×3×H×W → N×classes. It is tried with a NumPy array; where torch is in use and the function does not
        take that, with a tensor.
    name, fingerprint : str
        Public name; what identifies the answers in the cache.
    preprocess : Preprocess
        Done before the function is called: geometry by the engine, normalisation here.
    labels : LabelSpace
        What the logits stand for.
    """

    name: str
    kind: ObserverKind = "model"
    fingerprint: str
    preprocess: Preprocess
    labels: LabelSpace
    capabilities: frozenset[Capability] = frozenset({"logits"})
    notes: tuple[str, ...]
    precision = FUNCTION_PRECISION

    def __init__(
        self,
        function: Callable[[Any], Any],
        *,
        name: str,
        fingerprint: str,
        preprocess: Preprocess,
        labels: LabelSpace,
        notes: Sequence[str] = (),
    ) -> None:
        self.function, self.name, self.fingerprint = function, name, fingerprint
        self.preprocess, self.labels, self.notes = preprocess, labels, tuple(notes)
        self._as_tensor: bool | None = None

    def respond(self, batch: Batch, needs: Sequence[Capability]) -> Answers:
        """Answer a batch by one call of the function."""
        if set(needs) - self.capabilities:
            raise UserError(f"observer {self.name!r} is a plain function and gives logits only; wanted {list(needs)}")
        if batch.images is None:
            raise UserError(f"observer {self.name!r} needs pixels, and the batch has no images")
        answer = self._call(self.preprocess.normalise(batch.images))
        answer = answer.detach().float().cpu().numpy() if hasattr(answer, "detach") else answer
        logits = np.asarray(answer).astype(np.float32, copy=False)
        if len(logits) != len(batch):
            raise UserError(f"observer {self.name!r} returned {len(logits)} rows for {len(batch)} images")
        check_logits(self.name, logits, self.labels)
        return {"logits": logits}

    def _call(self, pixels: Array) -> Any:
        if not _torch_in_use():
            return self.function(pixels)
        with plain_numbers():
            return self._call_with_torch(pixels)

    def _call_with_torch(self, pixels: Array) -> Any:
        if self._as_tensor:
            return _with_tensor(self.function, pixels)
        if self._as_tensor is False:
            return self.function(pixels)
        # Which of the two it takes is found out once, on the first batch.
        try:
            answer = self.function(pixels)
        except (TypeError, AttributeError) as first:
            try:
                answer = _with_tensor(self.function, pixels)
            except (TypeError, AttributeError):
                raise first from None
            self._as_tensor = True
            return answer
        self._as_tensor = False
        return answer

    def __repr__(self) -> str:
        return f"CallableObserver({self.name!r})"


def wrap(
    model: Any,
    *,
    preprocess: Preprocess | Callable[[Any], Any] | None = None,
    labels: Labels | None = "imagenet1k",
    name: str | None = None,
    fingerprint: str | None = None,
    features: str | None = None,
    device: str = "auto",
    precision: str = "float32",
    task: str = "classification",
    window: int = 0,
    stride: int = 0,
) -> Observer:
    """Make an observer of any model.

    Parameters
    ----------
    model : nn.Module, callable or Observer
        A module or function from normalised pixels float32 N×3×H×W to logits N×classes. An observer is returned as it
        is. A module is put into evaluation mode and moved to the device.
    preprocess : Preprocess, transform of torchvision, or callable, optional
        What is done to an image before. A transform that a ``Preprocess`` can express becomes one; any other function
        takes a PIL image and returns numbers 3×H×W, with a note that its geometry is unknown. May be left out where the
        model says so itself: an attribute ``preprocess``, or timm's ``pretrained_cfg``.
    labels : str, file, list of names, map, LabelSpace or None
        What the logits stand for, in their order; a map says it by index (``class_to_idx``, ``id2label``). None: no
        head, the output of the module is its features.
    name : str, optional
        Public name. Default: the name of the class or function.
    fingerprint : str, optional
        For a function: what identifies its weights in the cache. Without one the answers are never found again, because
        two functions of one name can be different. A module is identified by its weights, attributes and code; where
        not all of that can be hashed, this stands for the rest.
    features : str, optional
        Name of the layer whose output is wanted as features. Default: what the classifier reads.
    device, precision : str
        For a module: where and how it runs.
    task : str
        ``classification``, or ``segmentation``: the model then returns logits N×classes×h×w (or class numbers N×h×w).
    window, stride : int
        For a segmentation: sliding window; 0: the whole image at once.

    Examples
    --------
    >>> import numpy as np
    >>> import cuebench.observers.wrap as w
    >>> blind = w.wrap(lambda x: np.zeros((len(x), 2)), preprocess=Preprocess(8), labels=["cat", "dog"], name="blind")
    >>> blind.respond(Batch([None], np.zeros((1, 8, 8, 3), np.uint8)), ["logits"])["logits"]
    array([[0., 0.]], dtype=float32)
    """
    is_module = _is_module(model)
    if not is_module and is_observer(model):
        observer: Observer = model
        return observer
    if not callable(model):
        raise UserError(
            f"cannot make an observer of {type(model).__name__}",
            "pass an nn.Module, a function N×3×H×W → N×classes, or an object with " + ", ".join(REQUIRED),
        )
    check_wrap({"name": name, "fingerprint": fingerprint, "features": features, "precision": precision, "task": task,
                "window": window, "stride": stride})  # fmt: skip
    prepared = _prepared(model, preprocess, fingerprint or "", task)
    space = None if labels is None else label_space(labels)
    public_name: str = name or getattr(model, "__name__", None) or type(model).__name__
    if task not in ("classification", "segmentation"):
        raise UserError(f"task is {task!r}", "classification or segmentation")
    if space is None and not (is_module and task == "classification"):
        raise UserError(
            f"{public_name!r} needs labels=",
            "the classes of its answers: a name such as imagenet1k or cityscapes, a file or a list of names",
        )
    if is_module:
        settings = {"fingerprint": fingerprint} if fingerprint else {}
        if task == "segmentation":
            from cuebench.observers.torch.segmentation import torch_masks

            assert space is not None
            return torch_masks(model, name=public_name, preprocess=prepared, labels=space, device=device,
                               precision=precision, settings=settings, window=window, stride=stride)  # fmt: skip
        trains = getattr(model, "training", False)  # a frozen TorchScript module has none
        trained = ("the module was in training mode and was put into evaluation mode",) if trains else ()
        notes = (*trained, *prepared.notes)
        return TorchObserver(model, name=public_name, preprocess=prepared, labels=space, device=device,
                             precision=precision, features=features, settings=settings, notes=notes)  # fmt: skip
    assert space is not None
    notes = (*(() if fingerprint else (NO_FINGERPRINT,)), *prepared.notes)
    identity = fingerprint or f"unknown-{secrets.token_hex(16)}"
    if task == "segmentation":
        return MaskObserver(_in_plain_numbers(model), name=public_name, fingerprint=identity, preprocess=prepared,
                            labels=space, window=window, stride=stride, notes=notes)  # fmt: skip
    return CallableObserver(
        model, name=public_name, fingerprint=identity, preprocess=prepared, labels=space, notes=notes
    )


def _prepared(model: Any, given: Preprocess | Callable[[Any], Any] | None, named: str, task: str) -> Preprocess:
    """Return the preprocessing that was given, or that of the model."""
    prepared = own_preprocess(model) if given is None else as_preprocess(given, named)
    if task == "segmentation" and isinstance(prepared, FunctionPreprocess):
        raise UserError(
            f"{prepared} cannot prepare pictures for masks: where a mask's pixels belong is unknown",
            "pass preprocess=cuebench.Preprocess(size=…)",
        )
    return prepared


def own_preprocess(model: Any) -> Preprocess:
    """Return the preprocessing that a model carries itself; an error says how to pass one."""
    if carried := carried_preprocess(model):
        return carried
    timm_config = getattr(model, "pretrained_cfg", None) or getattr(model, "default_cfg", None)
    if timm_config and "input_size" in (timm_config if isinstance(timm_config, dict) else vars(timm_config)):
        from cuebench.observers.timm_data import preprocess_of

        return preprocess_of(model)
    raise UserError(
        f"the preprocessing of {getattr(model, '__name__', type(model).__name__)} is not known",
        "say it: cuebench.wrap(model, preprocess=cuebench.Preprocess(size=224, resize=256, mean=(…), std=(…))); "
        "Preprocess's own defaults are ImageNet's mean and std. Or pass the transform of torchvision, or the function "
        "from a PIL image to numbers, that it was tested with. A wrong one costs accuracy without any error",
    )


def carried_preprocess(model: Any) -> Preprocess | None:
    """Return a model's attribute ``preprocess`` where it is a ``Preprocess``, or a transform that can be one."""
    carried = getattr(model, "preprocess", None)
    return carried if isinstance(carried, Preprocess) else translation(carried)


def _torch_in_use() -> bool:
    import sys

    return "torch" in sys.modules


def _is_module(model: Any) -> bool:
    # A module exists only where torch has been imported, so nothing needs importing to find out.
    if not _torch_in_use():
        return False
    import torch

    return isinstance(model, torch.nn.Module)


def _in_plain_numbers(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def plain(pixels: Any) -> Any:
        if not _torch_in_use():
            return function(pixels)
        with plain_numbers():
            return function(pixels)

    return plain


def _with_tensor(function: Callable[[Any], Any], pixels: Array) -> Any:
    import torch

    with torch.no_grad():  # inference tensors would stay in a network that the function belongs to
        return function(torch.from_numpy(pixels))
