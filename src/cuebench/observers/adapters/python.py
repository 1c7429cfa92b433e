"""A model made by the user's own code: a factory in a module or a file, which cuebench imports and calls.

``python:module:factory`` or ``python:FILE.py:factory``. The factory takes no argument and returns an nn.Module, a
function N×3×H×W → N×classes, or an observer. Attributes ``preprocess`` and ``labels`` of what it returns are used.
"""

from __future__ import annotations

import hashlib
import importlib
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from cuebench.errors import UserError, did_you_mean
from cuebench.imports import watched
from cuebench.observers.adapters._options import PREPROCESS_PREFIXED, TORCH, overridden, torch_options
from cuebench.observers.base import Adapter, LoadOptions, Observer, Spec, complete, is_observer
from cuebench.observers.guess import likely_spec
from cuebench.observers.preprocess import Preprocess, imagenet_usual
from cuebench.observers.torch.observer import TorchObserver
from cuebench.observers.torch.torchvision_import import repaired
from cuebench.observers.torch.weights import built, fit_file
from cuebench.observers.wrap import own_preprocess, wrap
from cuebench.options import Option
from cuebench.python_files import import_file, name_of_file
from cuebench.source_code import reachable_code

OPTIONS = {
    **TORCH,
    "fingerprint": Option("", "identity of a function's answers in the cache; change it with the weights"),
}


def load(spec: Spec, options: LoadOptions) -> list[Observer]:
    """Call the factory and wrap what it returns."""
    parsed = torch_options(spec, options, OPTIONS)
    with code_of_factory(spec.body) as source:
        factory = repaired(lambda: factory_of(spec.body))
        # A factory that has not imported torch builds no torch module, and nothing needs a seed.
        model = repaired(lambda: built(factory, parsed.seed) if "torch" in sys.modules else factory())
    if is_observer(model):
        return [with_code(model, source)]
    notes = fit_file(model, parsed.checkpoint, parsed.ema, parsed.extra) if parsed.checkpoint else ()
    observer = wrap(
        model,
        preprocess=_preprocess(spec, parsed.values, model),
        labels=parsed.labels or getattr(model, "labels", None) or "imagenet1k",
        name=parsed.name,
        fingerprint=parsed.values["fingerprint"] or None,
        features=parsed.features,
        device=options.device,
        precision=options.precision,
    )
    return [with_code(observer, source, notes)]


@contextmanager
def code_of_factory(body: str) -> Iterator[dict[str, str]]:
    """Give a mapping for the fingerprint, filled when the block ends: the code of the factory.

    That is its file, all that this imports, and every module of a user's that was asked for while the block ran,
    however that was done.
    """
    where, _, factory = body.rpartition(":")
    source = dict[str, str]()
    module = name_of_file(where) if where.endswith(".py") else where
    with watched(f"{module}:{factory}"):
        yield source
    code = reachable_code([f"{module}:{factory}"])
    source["source"] = code.digest
    if code.unreadable:
        source["unreadable"] = secrets.token_hex(16)


def with_code(observer: Observer, source: Mapping[str, str], notes: Sequence[str] = ()) -> Observer:
    """Return an observer whose answers are keyed by the code of its factory, too, whatever it says of itself."""
    if isinstance(observer, TorchObserver):
        return observer.with_settings(source, notes)
    keyed = complete(observer)
    code = hashlib.sha256(repr(sorted(source.items())).encode()).hexdigest()[:16]
    object.__setattr__(keyed, "loaded_by", f"{keyed.loaded_by or f'python/{ADAPTER.version}'} {code}")
    return keyed


def factory_of(body: str) -> Callable[[], Any]:
    """Return the callable that ``module:factory`` or ``FILE.py:factory`` names."""
    where, colon, name = body.rpartition(":")
    if not colon or not where or not name:
        hint = (
            likely_spec(body)
            if body.endswith(".py")
            else f"python:{body or 'MODULE'}:FACTORY or python:FILE.py:FACTORY"
        )
        raise UserError(f"python:{body} does not name a factory", f"write {hint}")
    module = import_file(where) if where.endswith(".py") else _from_module(where)
    if not hasattr(module, name):
        public = [n for n, v in vars(module).items() if callable(v) and not n.startswith("_")]
        raise did_you_mean(f"factory in {where}:", name, public)
    factory = getattr(module, name)
    if not callable(factory):
        raise UserError(f"{where}:{name} is {type(factory).__name__}, not a function", "name a function that builds it")
    return factory


def _from_module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not name.startswith(error.name):
            raise
        raise UserError(
            f"there is no Python module {name!r}", "install it, set PYTHONPATH, or name a file: python:FILE.py:FACTORY"
        ) from None


def _preprocess(spec: Spec, values: Mapping[str, Any], model: Any) -> Preprocess:
    try:
        base = own_preprocess(model)
    except UserError as error:
        if not any(spec.options.get(key) for key in PREPROCESS_PREFIXED):
            raise UserError(error.message, f"{error.hint}; or ?preprocess.size=224&preprocess.resize=256") from None
        base = imagenet_usual()
    return overridden(base, spec, values)


ADAPTER = Adapter(
    load,
    form="python:MODULE:FACTORY | python:FILE.py:FACTORY[?labels=…][&preprocess.size=N…][&checkpoint=FILE]",
    examples=("python:my_models:resnet_on_sketches", "python:models.py:tiny?labels=classes.json&preprocess.size=64"),
    options=OPTIONS,
)
