"""What identifies the answers of a torch module: its weights, its layers with all they hold, and the code that runs."""

from __future__ import annotations

import hashlib
import io
import json
import re
import secrets
import zipfile
from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Any

from cuebench.observers.torch.content import Content, attributes, code_of
from cuebench.observers.torch.placement import numeric_settings

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_MANGLED = re.compile(rb"___torch_mangle_\d+\.")
_HOOKS = ("_forward_pre_hooks", "_forward_hooks")
_GLOBAL_HOOKS = ("_global_forward_pre_hooks", "_global_forward_hooks")
_ORIGIN = frozenset({"name_or_path", "pretrained_cfg", "default_cfg", "warnings_issued"})
"""Attributes that say where weights came from; the weights themselves are hashed."""


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
        self._frozen = (hash_module(module), self._whole(*hash_behaviour(module))) if frozen else None

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What the record says about parts that cannot be read; looked for when asked for: it takes a while."""
        opaque = [*hash_behaviour(self.module)[1], *hash_hooks(self.module)[1]] if self._token else []
        if not opaque:
            return ()
        return (
            "answers are not found again later, because not all that decides them can be hashed: "
            f"{'; '.join(opaque[:3])}{' …' * (len(opaque) > 3)}; name the model's content with fingerprint=",
        )

    @property
    def weights(self) -> str:
        """Hash of the weights alone."""
        return self._frozen[0] if self._frozen else hash_module(self.module)

    def fingerprint(self, settings: Mapping[str, Any]) -> str:
        """Return the hash of all that decides the answers to the same pixels."""
        behaviour = self._frozen[1] if self._frozen else self._whole(*hash_behaviour(self.module))
        hooks = self._whole(*hash_hooks(self.module))
        settings_text = json.dumps({**settings, **numeric_settings()}, sort_keys=True, default=str)
        return hashlib.sha256((self.weights + behaviour + hooks + settings_text).encode()).hexdigest()

    def _whole(self, digest: str, opaque: list[str]) -> str:
        """Return a hash that can be trusted: one with holes holds for this object only."""
        return digest + self._token if opaque else digest


def hash_tensors(tensors: Mapping[str, Any]) -> str:
    """Return the sha256 of named tensors: name, dtype, shape and bytes, sorted by name."""
    import torch

    digest = hashlib.sha256()
    for name in sorted(tensors):
        value = tensors[name].detach().cpu().contiguous()
        digest.update(f"{name}|{value.dtype}|{tuple(value.shape)}|".encode())
        digest.update(value.reshape(-1).view(torch.uint8).numpy().data if value.numel() else b"")
    return digest.hexdigest()


def hash_module(module: Any) -> str:
    """Return the hash of a module's state dict and of the buffers that are not in it."""
    state = dict(module.state_dict())
    state.update({f"buffer:{k}": v for k, v in module.named_buffers() if k not in state})
    plain = {k: v for k, v in state.items() if hasattr(v, "detach") and not v.is_quantized}
    digest = hash_tensors(plain)
    if len(plain) == len(state):
        return digest
    content = Content(feed_module)  # packed int8 weights are tuples; an extra state is anything
    content.items(((k, v) for k, v in state.items() if k not in plain), "state dict")
    return hashlib.sha256((digest + content.hexdigest()).encode()).hexdigest()


def hash_behaviour(module: Any) -> tuple[str, list[str]]:
    """Return the hash of what else decides the answers, and what of it cannot be read.

    The layers with their arguments, all plain attributes, and the code of classes that no known library brings: as it
    was compiled, and the files that it is in or imports.
    """
    content = Content(feed_module)
    feed_module(content, module, weights=False)
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
    content.note(_ADDRESS.sub("", repr(module)), hash_module(module) if weights else "")
    for name, part in _parts(module):
        content.note(name)
        if hasattr(part, "save_to_buffer"):
            content.note(hash_script(part))
            continue
        content.feed(type(part), type(part).__qualname__)
        for key, value in attributes(part).items():
            if key not in _torch_keeps() and key not in _ORIGIN:
                content.note(key)
                content.feed(value, f"{name}.{key}" if name else key)


def hash_script(module: Any) -> str:
    """Return the hash of a TorchScript module: the archive that it would be saved as, without file names and lines."""
    digest = hashlib.sha256()
    with zipfile.ZipFile(io.BytesIO(module.save_to_buffer())) as archive:
        for name in sorted(archive.namelist()):
            if not name.endswith(".debug_pkl") and "/.data/" not in name:
                # Types of one name are numbered as they are compiled, which says nothing about them.
                digest.update(_MANGLED.sub(b"", name.encode() + b"|" + archive.read(name)))
    return digest.hexdigest()


def _parts(module: Any) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a module; a TorchScript part is one, whatever is in it."""
    scripts: list[str] = []
    for name, part in module.named_modules():
        if any(not s or name.startswith(f"{s}.") for s in scripts):
            continue
        if hasattr(part, "save_to_buffer"):
            scripts.append(name)
        yield name, part


def _names(module: Any) -> dict[int, str]:
    tensors = [*module.named_parameters(), *module.named_buffers()]
    return {id(thing): f"part {name}" for name, thing in [*module.named_modules(), *tensors]}


@lru_cache(maxsize=1)
def _torch_keeps() -> frozenset[str]:
    import torch

    return frozenset(vars(torch.nn.Module()))
