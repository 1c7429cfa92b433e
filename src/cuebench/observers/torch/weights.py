"""Weights as data: read without running code, fitted into a module, or drawn at random from a seed."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from cuebench.errors import UserError, all_problems

_AVERAGED = ("state_dict_ema", "model_ema", "ema_state_dict", "model_ema_state_dict", "ema_model", "ema")
_TRAINED = ("state_dict", "model_state_dict", "model", "net", "network", "module")
_AVERAGING_STEPS = "n_averaged"
"""What torch's AveragedModel adds to the weights; it decides no answer."""
_DEEPEST = 8
"""State dicts inside one another; a file that contains itself would never end."""
REFUSE, IGNORE = "refuse", "ignore"
"""What is done with keys of a checkpoint that the architecture does not have."""
_PREFIXES = ("module.", "_orig_mod.", "model.", "net.", "network.", "backbone.")


def existing_file(name: str | Path, what: str) -> Path:
    """Return the path of a file that exists and holds something."""
    path = Path(name).expanduser()
    if not path.is_file():
        near = difflib.get_close_matches(path.name, [p.name for p in path.parent.glob("*")], n=3)
        suggestion = f"; {path.absolute().parent} has {', '.join(near)}" if near else ""
        raise UserError(
            f"{what} {path} does not exist" if not path.exists() else f"{what} {path} is not a file",
            f"check the path: it is relative to the current folder{suggestion}",
        )
    if path.stat().st_size == 0:
        raise UserError(f"{what} {path} is empty")
    return path


class Weights(NamedTuple):
    """Named tensors of a checkpoint, and what the record says about where in the file they were."""

    tensors: dict[str, Any]
    notes: tuple[str, ...] = ()


def read_weights(file: str | Path, ema: bool | None = None) -> Weights:
    """Read the tensors of a ``.safetensors`` or torch checkpoint; code in a pickle is never run.

    Parameters
    ----------
    file : path
        The checkpoint.
    ema : bool, optional
        Of a file with several state dicts: take the moving average of the weights, or the weights themselves. Default:
        the moving average where there is one, because that is what is published and evaluated.
    """
    path = existing_file(file, "checkpoint")
    data = _read_safetensors(path) if path.suffix == ".safetensors" else _read_torch(path)
    return _weights_in(path, data, ema)


def _read_safetensors(path: Path) -> dict[str, Any]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except (SafetensorError, OSError, ValueError, KeyError, RuntimeError) as error:
        raise UserError(f"{path} is not a whole safetensors file: {error}", "download or save it again") from None


def _read_torch(path: Path) -> Any:
    import pickle

    import torch

    try:
        with torch.serialization.safe_globals(_plain_classes()):
            return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        if "weights_only" not in str(error) and "Weights only" not in str(error):
            raise UserError(f"{path} is not a torch checkpoint: {error}") from None
        raise UserError(
            f"{path} holds more than tensors: loading it would run code from the file, which cuebench refuses "
            f"({_first_reason(str(error))})",
            "only if you trust the file, because this runs the code in it, keep its tensors: "
            f"{_conversion(path)}; then load {_converted(path)}",
        ) from None
    except MemoryError:
        hint = "free some memory; a damaged file can ask for any amount of it: save or download it again"
        raise UserError(f"{path} needs more memory than there is", hint) from None
    except Exception as error:  # noqa: BLE001 - of a damaged file torch's reader raises anything
        reason = _first_reason(str(error)) if str(error) else type(error).__name__
        raise UserError(f"{path} cannot be read as a torch checkpoint: {reason}") from None


def _plain_classes() -> list[Any]:
    """Return classes that training scripts store beside the weights: they only hold values, creating one runs nothing.

    timm keeps the command line (a Namespace), Lightning the hyperparameters (an AttributeDict), both sometimes paths.
    """
    import argparse
    import pathlib

    classes: list[Any] = [argparse.Namespace, pathlib.PosixPath, pathlib.PurePosixPath, pathlib.PureWindowsPath]
    for module in ("lightning.fabric.utilities.data", "lightning_fabric.utilities.data"):
        holder = sys.modules.get(module)
        classes += [holder.AttributeDict] if holder is not None else []
    return classes


def _converted(path: Path) -> Path:
    return path.with_name(f"{path.stem}.tensors.pt")


def _conversion(path: Path) -> str:
    """Return a command that keeps the tensors and state dicts of a checkpoint, at any place in its first level."""
    return (
        'python -c "import torch; '
        f"d = torch.load('{path}', map_location='cpu', weights_only=False); "
        "d = d if isinstance(d, dict) else dict(model=d); "
        "d = {k: v.state_dict() if hasattr(v, 'state_dict') else v for k, v in d.items()}; "
        "d = {k: v for k, v in d.items() if hasattr(v, 'detach') or "
        "isinstance(v, dict) and v and all(hasattr(t, 'detach') for t in v.values())}; "
        f"torch.save(d, '{_converted(path)}')\""
    )


def _first_reason(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if "Unsupported" in line or "GLOBAL" in line]
    return (lines or text.splitlines() or ["no reason given"])[0][:200]


def _weights_in(path: Path, data: Any, ema: bool | None) -> Weights:
    taken: list[str] = []
    averaged = False
    while isinstance(data, Mapping):
        key = _next_key(data, ema)
        if key is None:
            break
        if len(taken) >= _DEEPEST:
            raise UserError(
                f"{path}: state dicts inside one another, more than {_DEEPEST} deep: {' → '.join(taken[:3])} …",
                "expected a state dict: torch.save(model.state_dict(), FILE)",
            )
        averaged, others = averaged or key in _AVERAGED, [k for k in _state_dicts(data) if k != key]
        taken.append(f"{key!r}" + f" (and not {', '.join(map(repr, others))})" * bool(others))
        data = data[key]
    tensors = {str(k): v for k, v in data.items() if hasattr(v, "detach")} if isinstance(data, Mapping) else {}
    if ema and not averaged:
        raise UserError(f"{path} holds no moving average of weights", f"leave ema= out; known: {', '.join(_AVERAGED)}")
    if not tensors:
        raise UserError(f"{path} holds no named tensors", "expected a state dict: torch.save(model.state_dict(), FILE)")
    return Weights(tensors, (f"weights {' → '.join(taken)} of the checkpoint",) if taken else ())


def _state_dicts(data: Mapping[str, Any]) -> list[str]:
    return [k for k in (*_AVERAGED, *_TRAINED) if isinstance(data.get(k), Mapping)]


def _next_key(data: Mapping[str, Any], ema: bool | None) -> str | None:
    """Return where to look next: the average first, unless the weights themselves are wanted."""
    return next((k for k in _state_dicts(data) if ema is not False or k not in _AVERAGED), None)


def fit_file(module: Any, file: str | Path, ema: bool | None = None, extra: str = REFUSE) -> tuple[str, ...]:
    """Load a checkpoint into a module, strictly; return what the record says about it."""
    weights = read_weights(file, ema)
    return (*weights.notes, *fit(module, weights.tensors, str(file), extra))


def fit(module: Any, state: Mapping[str, Any], what: str, extra: str = REFUSE) -> tuple[str, ...]:
    """Load a state dict into a module, strictly; return what was done to its keys.

    Prefixes that training wrappers add (``module.``, ``model.`` …) are taken off when that makes the keys fit; keys
    beside the prefix, such as the weights of a loss, are not the network's and are left out. Missing, unexpected and
    misshapen keys are reported all at once; ``extra="ignore"`` leaves unexpected ones out.
    """
    expected = module.state_dict()
    state, notes = _without_prefix(expected, state)
    if extra == IGNORE and (surplus := [k for k in state if k not in expected]):
        state = {k: v for k, v in state.items() if k in expected}
        notes += (_left_out(surplus, "which the architecture does not have"),)
    # A counter of training steps does not change an answer, and old checkpoints do not have it.
    missing = [k for k in expected if k not in state and not k.endswith("num_batches_tracked")]
    unexpected = [k for k in state if k not in expected]
    misfits = [k for k in expected if k in state and tuple(state[k].shape) != tuple(expected[k].shape)]
    problems = [f"missing key {k}" for k in missing] + [f"unexpected key {k}" for k in unexpected]
    problems += [f"{k}: shape {tuple(state[k].shape)}, the model has {tuple(expected[k].shape)}" for k in misfits]
    other_kinds = [k for k in expected if k in state and not _same_kind(k, state[k].dtype, expected[k])]
    if other_kinds and not problems:
        raise all_problems(
            f"checkpoint {what} holds numbers of another kind than {type(module).__name__}",
            [f"{k}: {_dtype(state[k])}, the model has {_dtype(expected[k])}" for k in other_kinds],
            "they would be cast without their scales or imaginary parts: save the weights as floats, or build the "
            "quantised or complex model in a factory of your own: python:FILE.py:FACTORY",
        )
    shared = [(state[k], expected[k]) for k in expected if k in state and hasattr(expected[k], "dtype")]
    narrowed = sorted(
        {f"{_dtype(stored)} to {_dtype(target)}" for stored, target in shared if _is_narrower(target, stored)}
    )
    notes += (f"weights rounded from {', '.join(narrowed)}",) if narrowed else ()
    if problems:
        hint = f"name the architecture that the weights were trained with: checkpoint:{what}?arch=SOURCE:NAME"
        if len(unexpected) == len(problems):
            hint = f"{hint}; or, if these keys are of no part that answers, leave them out: extra={IGNORE}"
        # Weights and biases of the last layers differ in the number of outputs only, and all alike.
        heads = [k for k in misfits if state[k].ndim and state[k].shape[1:] == expected[k].shape[1:]]
        outputs = {int(state[k].shape[0]) for k in heads}
        if len(outputs) == 1 and len(heads) == len(problems):
            classes = outputs.pop()
            hint = (
                f"its head has {classes} classes: give labels=FILE with their {classes} names (a JSON list); "
                f"a model of your own code must be built with {classes} classes"
            )
        raise all_problems(f"checkpoint {what} does not fit {type(module).__name__}", problems, hint)
    module.load_state_dict(dict(state), strict=False)
    return notes


def _same_kind(key: str, dtype: Any, expected: Any) -> bool:
    """Tell whether numbers keep their meaning when they are copied: integers are not weights without their scales."""
    if not hasattr(expected, "dtype") or key.endswith("num_batches_tracked"):
        return True
    floats = (dtype.is_floating_point, expected.dtype.is_floating_point)
    return floats[0] == floats[1] and dtype.is_complex == expected.dtype.is_complex


def _is_narrower(expected: Any, stored: Any) -> bool:
    floats = stored.is_floating_point() and expected.is_floating_point()
    return bool(floats and expected.element_size() < stored.element_size())


def _dtype(tensor: Any) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _without_prefix(expected: Mapping[str, Any], state: Mapping[str, Any]) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    removed: list[str] = []
    beside: list[str] = []
    state = {k: v for k, v in state.items() if k != _AVERAGING_STEPS}
    while not set(expected) & set(state):
        prefix = next((p for p in _PREFIXES if any(k.startswith(p) for k in state)), None)
        if prefix is None:
            break
        below = {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}
        # Where all of the network lies below the prefix, what lies beside it is another part of the training.
        beside += [k for k in state if not k.startswith(prefix)] if set(expected) <= set(below) else []
        state = below if set(expected) <= set(below) else {k.removeprefix(prefix): v for k, v in state.items()}
        removed.append(prefix)
    notes = (f"prefix {''.join(removed)!r} taken off the checkpoint's keys",) if removed else ()
    return state, (*notes, _left_out(beside, "beside the network")) if beside else notes


def _left_out(keys: Sequence[str], why: str) -> str:
    shown = ", ".join(keys[:5]) + (" …" if len(keys) > 5 else "")
    return f"{len(keys)} key{'s' * (len(keys) != 1)} of the checkpoint {why} left out: {shown}"


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed torch, numpy and random inside the block, and leave the caller's generators as they were."""
    import random

    import numpy as np
    import torch

    # Libraries initialise through the global generators, so they are borrowed and given back.
    legacy, python = np.random.get_state(), random.getstate()  # noqa: NPY002
    with torch.random.fork_rng(devices=[]):
        torch.random.default_generator.manual_seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002
        random.seed(seed)
        try:
            yield
        finally:
            np.random.set_state(legacy)  # noqa: NPY002
            random.setstate(python)


def built(make: Callable[[], Any], seed: int) -> Any:
    """Build a module with its random initialisation fixed by ``seed``."""
    with seeded(seed):
        return make()
