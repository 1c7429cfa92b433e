"""A model made by the user's own code: a factory in a module or a file, which cuebench imports and calls.

``python:module:factory`` or ``python:FILE.py:factory``. The factory takes no argument and returns an nn.Module, a
function N×3×H×W → N×classes, or an observer. Attributes ``preprocess`` and ``labels`` of what it returns are used.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cuebench.errors import UserError, did_you_mean
from cuebench.observers.adapters._options import PREPROCESS, TorchOptions, only_random, overridden, torch_options
from cuebench.observers.base import Adapter, LoadOptions, Observer, Spec
from cuebench.observers.preprocess import Preprocess, imagenet_usual
from cuebench.observers.torch.observer import TorchObserver
from cuebench.observers.torch.weights import hash_file
from cuebench.observers.wrap import is_observer, own_preprocess, wrap


def load(spec: Spec, options: LoadOptions) -> list[Observer]:
    """Call the factory and wrap what it returns."""
    given = torch_options(spec, options, fingerprint="")
    only_random(spec, given.own["weights"])
    model = _made(factory_of(spec.body), given)
    if is_observer(model):
        return [model]
    notes: tuple[str, ...] = ()
    if given.checkpoint:
        from cuebench.observers.torch.weights import fit_file

        notes = fit_file(model, given.checkpoint, given.ema)
    observer = wrap(
        model,
        preprocess=_preprocess(spec, given, model),
        labels=given.labels or getattr(model, "labels", None) or "imagenet1k",
        name=given.name,
        fingerprint=given.own["fingerprint"] or None,
        features=given.features,
        device=options.device,
        precision=options.precision,
    )
    # Of a plain function the answers are not known by its file alone: its weights may lie anywhere.
    return [observer.told(source_of(spec.body), notes) if isinstance(observer, TorchObserver) else observer]


def source_of(body: str) -> dict[str, str]:
    """Return the hash of the file that the factory is named in, for the fingerprint."""
    where = body.rpartition(":")[0]
    file = where if where.endswith(".py") else getattr(sys.modules.get(where), "__file__", None)
    return {"source": hash_file(Path(file).expanduser())} if file else {}


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


def _made(factory: Callable[[], Any], given: TorchOptions) -> Any:
    if "torch" not in sys.modules:
        return factory()
    from cuebench.observers.torch.weights import built

    return built(factory, given.seed)


def _from_file(path: Path) -> Any:
    if not path.is_file():
        raise UserError(f"Python file {path} does not exist")
    name = f"cuebench_user_{path.stem}"
    found = importlib.util.spec_from_file_location(name, path)
    if found is None or found.loader is None:
        raise UserError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module  # so that classes defined there can be pickled
    found.loader.exec_module(module)
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


def _preprocess(spec: Spec, given: TorchOptions, model: Any) -> Preprocess:
    said = any(given.own[f"preprocess.{key}"] for key in PREPROCESS)
    try:
        base = own_preprocess(model)
    except UserError as error:
        if not said:
            raise UserError(error.message, f"{error.hint}; or ?preprocess.size=224&preprocess.resize=256") from None
        base = imagenet_usual()
    return overridden(base, spec, given.own)


ADAPTER = Adapter(
    load,
    form="python:MODULE:FACTORY | python:FILE.py:FACTORY[?labels=…][&preprocess.size=N…][&checkpoint=FILE]",
    examples=("python:my_models:resnet_on_sketches", "python:models.py:tiny?labels=classes.json&preprocess.size=64"),
)
