"""What identifies the answers of a torch module: its weights, its layers with all they hold, and the code that runs."""

from __future__ import annotations

import hashlib
import json
import secrets
import sys
from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Any

from cuebench.observers.torch._functions import attributes, is_of
from cuebench.observers.torch._script import hash_script
from cuebench.observers.torch.content import (
    ORIGIN,
    Content,
    code_of,
    is_of_a_model_library,
    numbers_of,
)
from cuebench.observers.torch.placement import numeric_settings
from cuebench.source_code import as_loaded, unreadable_note

_HOOKS = ("_forward_pre_hooks", "_forward_hooks")
_GLOBAL_HOOKS = ("_global_forward_pre_hooks", "_global_forward_hooks")


class Identity:
    """The fingerprint of a module that may still change.

    Parameters
    ----------
    module : nn.Module
        The model.
    frozen : bool
        Weights and layers cannot change any more and are hashed once; otherwise whenever the fingerprint is asked for.
        Hooks are always looked at.
    named : bool
        The user has given the content a name of its own: then what cannot be read does no harm.
    """

    def __init__(self, module: Any, *, frozen: bool = False, named: bool = False) -> None:
        self.module = module
        self._token = "" if named else secrets.token_hex(16)
        self._modules = (
            {} if frozen else dict(sys.modules)
        )  # a model that is loaded later may have others of these names
        self._frozen = self._hashed() if frozen else None

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What the record says about parts that cannot be read; looked for when asked for: it takes a while."""
        looked_at = (hash_weights, hash_behaviour, hash_hooks) if self._token else ()
        with as_loaded(self._modules):
            opaque = list(dict.fromkeys(what for look in looked_at for what in look(self.module)[1]))
        if not opaque:
            return ()
        return (f"{unreadable_note(opaque)}; name the model's content with fingerprint=",)

    @property
    def weights(self) -> str:
        """Hash of the weights alone."""
        return self._frozen[0] if self._frozen else hash_module(self.module)

    def fingerprint(self, settings: Mapping[str, Any]) -> str:
        """Return the hash of all that decides the answers to the same pixels."""
        weights, behaviour = self._frozen or self._hashed()
        with as_loaded(self._modules):
            hooks = self._whole(*hash_hooks(self.module))
        settings_text = json.dumps({**settings, **numeric_settings()}, sort_keys=True, default=str)
        return hashlib.sha256((weights + behaviour + hooks + settings_text).encode()).hexdigest()

    def _hashed(self) -> tuple[str, str]:
        """Return the hash of the weights, and that of all else but hooks."""
        with as_loaded(self._modules):
            weights, unread = hash_weights(self.module)
            behaviour, opaque = hash_behaviour(self.module)
        return weights, self._whole(behaviour, unread + opaque)

    def _whole(self, digest: str, opaque: list[str]) -> str:
        """Return a hash that can be trusted: one with holes holds for this object only."""
        return digest + self._token if opaque else digest


def hash_tensors(tensors: Mapping[str, Any]) -> str:
    """Return the sha256 of named strided tensors: name, dtype, shape and bytes, sorted by name."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        value = tensors[name]
        digest.update(f"{name}|{value.dtype}|{tuple(value.shape)}|".encode())
        digest.update(numbers_of(value))
    return digest.hexdigest()


def hash_module(module: Any) -> str:
    """Return the hash of a module's state dict, and of the parameters and buffers that are not in it."""
    return hash_weights(module)[0]


def hash_weights(module: Any) -> tuple[str, list[str]]:
    """Return what `hash_module` does, and what of it cannot be read.

    A state dict says what its class and its hooks let it say: that of a frozen backbone may be empty. Therefore every
    parameter and buffer that is not there as it is counts too.
    """
    content = Content(feed_module)
    try:
        state = dict(module.state_dict())
    except Exception as error:  # noqa: BLE001 - foreign code
        state = {}
        content.give_up("state dict", f"{type(error).__name__}: {error}")
    missing: dict[int, tuple[str, Any]] = {}
    for name, value in _tensors(module):
        if not _is_same(state.get(name), value):
            missing.setdefault(id(value), (f"apart from the state dict:{name}", value))
    state.update(dict(missing.values()))
    plain = {name: value for name, value in state.items() if _is_plain(value)}
    digest = hash_tensors(plain)
    content.items(((k, v) for k, v in state.items() if k not in plain), "state dict")
    if len(plain) == len(state) and not content.opaque:
        return digest, []
    # Packed int8 weights are tuples; an extra state is anything.
    return hashlib.sha256((digest + content.hexdigest()).encode()).hexdigest(), content.opaque


def _is_same(kept: Any, tensor: Any) -> bool:
    """Tell whether a value of the state dict is a tensor itself, without looking at its numbers."""
    if not _is_plain(kept) or not _is_plain(tensor):
        return kept is tensor
    facts = [(t.data_ptr(), t.dtype, t.shape, t.stride(), t.device) for t in (kept, tensor)]
    return facts[0] == facts[1] and bool(kept.data_ptr() or not kept.numel())


def _is_plain(value: Any) -> bool:
    """Tell whether a value is a tensor whose bytes say everything."""
    import torch

    if type(value) not in (torch.Tensor, torch.nn.Parameter):
        return False
    return value.layout is torch.strided and not (value.is_quantized or value.is_meta or value.is_nested)


def hash_behaviour(module: Any) -> tuple[str, list[str]]:
    """Return the hash of what else decides the answers, and what of it cannot be read.

    The layers with their arguments, all plain attributes, and the code of classes that no known library brings: as it
    was compiled, and the files that it is in or imports.
    """
    content = Content(feed_module)
    feed_module(content, module, weights=False)
    return _with_files(content)


def hash_function(function: Any) -> tuple[str, list[str]]:
    """Return the hash of what a function or a callable object holds and runs, and what of it cannot be read."""
    content = Content(feed_module)
    content.feed(function, "the function")
    return _with_files(content)


def _with_files(content: Content) -> tuple[str, list[str]]:
    """Return the hash of what was fed and of the files of its code, and what cannot be read."""
    files, unreadable = code_of(content.modules)
    digest = content.hexdigest()
    return hashlib.sha256((digest + files).encode()).hexdigest() if files else digest, [*content.opaque, *unreadable]


def hash_hooks(module: Any) -> tuple[str, list[str]]:
    """Return the hash of the forward hooks of a module and of all modules, and what of it cannot be read."""
    from torch.nn.modules import module as of_all_modules

    parts = dict(module.named_modules())
    hooks_of_parts = [(f"hook of {name or 'the model'}", list(getattr(part, kind).values()))
            for name, part in parts.items() for kind in _HOOKS if getattr(part, kind, None)]  # fmt: skip
    hooks_of_parts += [(f"hook of all modules ({kind})", list(getattr(of_all_modules, kind).values()))
            for kind in _GLOBAL_HOOKS if getattr(of_all_modules, kind, None)]  # fmt: skip
    if not hooks_of_parts:
        return "", []
    content = Content(feed_module)
    content.skip(_names(module))
    for where, hooks in hooks_of_parts:
        content.note(where)
        content.feed(hooks, where)
    return _with_files(content)


def feed_module(content: Content, module: Any, *, weights: bool = True) -> None:
    """Feed a module: its code, its attributes, and its weights unless they are hashed elsewhere."""
    content.skip(_names(module))
    if weights:
        digest, opaque = hash_weights(module)
        content.note(digest)
        content.opaque += opaque
    parts = list(_parts(module))
    numbers = {id(part): number for number, (_, part) in enumerate(parts)}
    own_modes = any(_has_own_modes(part) for _, part in parts)
    for name, part in parts:
        content.note(name)
        if hasattr(part, "save_to_buffer"):
            content.note(hash_script(part))
            continue
        content.feed(type(part), type(part).__qualname__)
        content.note([(key, numbers[id(child)]) for key, child in part._modules.items() if child is not None])
        if own_modes:
            content.note(part.training)
        skipped = _torch_keeps() | _worked_out(part)
        skipped |= ORIGIN if is_of_a_model_library(type(part)) else frozenset()
        for key, value in attributes(part).items():
            if key not in skipped:
                content.note(key)
                content.feed(value, f"{name}.{key}" if name else key)
        for key, tensor in _own_tensors(part):
            content.note(key)
            content.of_tensor(tensor, f"{name}.{key}" if name else key)


def _worked_out(part: Any) -> frozenset[str]:
    """Return the names of attributes that a hook of torch works out of parameters before each forward pass.

    Those of `weight_norm`, `spectral_norm` and `prune`; until then they hold what was there before.
    """
    names = set()
    for hook in part._forward_pre_hooks.values():
        name = getattr(hook, "name", None) or getattr(hook, "_tensor_name", None)
        sources = ({f"{name}_g", f"{name}_v"}, {f"{name}_orig"})
        if is_of(type(hook).__module__, frozenset({"torch"})) and any(of <= part._parameters.keys() for of in sources):
            names.add(str(name))
    return frozenset(names)


def _has_own_modes(part: Any) -> bool:
    """Tell whether a part decides itself whether it trains; else cuebench does."""
    import torch

    kind, usual = type(part), torch.nn.Module
    if hasattr(part, "save_to_buffer"):
        return False
    return kind.train is not usual.train or kind.eval is not usual.eval or not {"train", "eval"}.isdisjoint(vars(part))


def _parts(module: Any) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a module, each once; a TorchScript part is one, whatever is in it.

    Not ``named_modules``, which a class may override.
    """
    seen: set[int] = set()
    waiting = [("", module)]
    while waiting:
        name, part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        yield name, part
        if not hasattr(part, "save_to_buffer"):
            inside = [(f"{name}.{key}" if name else key, child) for key, child in part._modules.items()]
            waiting += [(key, child) for key, child in reversed(inside) if child is not None]


def _tensors(module: Any) -> Iterator[tuple[str, Any]]:
    """Yield the parameters and buffers of a module by their names, all of them: also those of tied weights."""
    for name, part in _parts(module):
        dot = f"{name}." if name else ""
        script = hasattr(part, "save_to_buffer")
        pairs = [*part.named_parameters(), *part.named_buffers()] if script else _own_tensors(part)
        yield from ((dot + key, value) for key, value in pairs)


def _own_tensors(part: Any) -> list[tuple[str, Any]]:
    return [(k, v) for k, v in [*part._parameters.items(), *part._buffers.items()] if v is not None]


def _names(module: Any) -> dict[int, str]:
    """Return the names of what is hashed with a module's parts and weights, by id."""
    return {id(thing): f"part {name}" for name, thing in [*_parts(module), *_tensors(module)]}


@lru_cache(maxsize=1)
def _torch_keeps() -> frozenset[str]:
    import torch

    return frozenset(vars(torch.nn.Module()))
