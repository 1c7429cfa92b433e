"""A model made by the user's own code: a factory in a module or a file, which cuebench imports and calls.

``python:module:factory`` or ``python:FILE.py:factory``. The factory takes no argument and returns an nn.Module, a
function N×3×H×W → N×classes, or an observer. Attributes ``preprocess`` and ``labels`` of what it returns are used.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cuebench.errors import UserError, did_you_mean
from cuebench.files import hash_file
from cuebench.observers.adapters._options import PREPROCESS_PREFIXED, TORCH, overridden, torch_options
from cuebench.observers.base import Adapter, LoadOptions, Observer, Spec, is_observer
from cuebench.observers.preprocess import Preprocess, imagenet_usual
from cuebench.observers.torch.observer import TorchObserver
from cuebench.observers.torch.weights import built, fit_file
from cuebench.observers.wrap import own_preprocess, wrap
from cuebench.options import Option

OPTIONS = {
    **TORCH,
    "fingerprint": Option("", "identity of a function's answers in the cache; change it with the weights"),
}


def load(spec: Spec, options: LoadOptions) -> list[Observer]:
    """Call the factory and wrap what it returns."""
    parsed = torch_options(spec, options, OPTIONS)
    factory = factory_of(spec.body)
    # A factory that has not imported torch builds no torch module, and nothing needs a seed.
    model = built(factory, parsed.seed) if "torch" in sys.modules else factory()
    if is_observer(model):
        return [model]
    notes = fit_file(model, parsed.checkpoint, parsed.ema) if parsed.checkpoint else ()
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
    # Of a plain function the answers are not known by its file alone: its weights may lie anywhere.
    return [observer.with_settings(source_of(spec.body), notes) if isinstance(observer, TorchObserver) else observer]


def source_of(body: str) -> dict[str, str]:
    """Return the hash of the file that the factory is named in, for the fingerprint."""
    where = body.rpartition(":")[0]
    file = where if where.endswith(".py") else getattr(sys.modules.get(where), "__file__", None)
    return {"source": hash_file(Path(file).expanduser()).sha256} if file else {}


def factory_of(body: str) -> Callable[[], Any]:
    """Return the callable that ``module:factory`` or ``FILE.py:factory`` names."""
    where, colon, name = body.rpartition(":")
    if not colon or not where or not name:
        raise UserError(
            f"python:{body} does not name a factory", "write python:MODULE:FACTORY or python:FILE.py:FACTORY"
        )
    module = _from_file(Path(where).expanduser()) if where.endswith(".py") else _from_module(where)
    if not hasattr(module, name):
        public = [n for n, v in vars(module).items() if callable(v) and not n.startswith("_")]
        raise did_you_mean(f"factory in {where}:", name, public)
    factory = getattr(module, name)
    if not callable(factory):
        raise UserError(f"{where}:{name} is {type(factory).__name__}, not a function", "name a function that builds it")
    return factory


def _from_file(path: Path) -> Any:
    if not path.is_file():
        raise UserError(f"Python file {path} does not exist")
    name = f"cuebench_user_{path.stem}"
    import_spec = importlib.util.spec_from_file_location(name, path)
    if import_spec is None or import_spec.loader is None:
        raise UserError(f"{path} cannot be imported", "its name must end in .py")
    module = importlib.util.module_from_spec(import_spec)
    sys.modules[name] = module  # so that classes defined there can be pickled
    import_spec.loader.exec_module(module)
    return module


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
