"""Any model of timm, with its pretrained weights, a checkpoint, or random weights.

Preprocessing comes from timm's configuration of the weights, at the size they were trained with; ``?test_size=true``
takes the larger test size where the weights have one. Classes come from the number of logits: ImageNet-1k, -12k, -21k
and -22k are known by their WordNet ids, 1,001 logits have a background class first.
"""

from __future__ import annotations

from typing import Any

from cuebench.errors import UserError, did_you_mean
from cuebench.observers.adapters import _hub
from cuebench.observers.adapters._options import (
    TorchOptions,
    initialised,
    only_random,
    overridden,
    space_of,
    torch_options,
    truth,
)
from cuebench.observers.base import Adapter, LoadOptions, Observer, Spec
from cuebench.observers.timm_data import label_space_of, preprocess_of
from cuebench.observers.torch.observer import TorchObserver
from cuebench.observers.torch.torchvision_import import import_torchvision
from cuebench.observers.torch.weights import built


def load(spec: Spec, options: LoadOptions) -> list[Observer]:
    """Load one model of timm."""
    import_torchvision()
    given = torch_options(spec, options, test_size="false")
    only_random(spec, given.own["weights"])
    model, notes = module_of(spec.body, given, options.offline)
    observer = TorchObserver(
        model,
        name=given.name,
        preprocess=overridden(preprocess_of(model, test_size=truth(spec, "test_size", given)), spec, given.own),
        labels=space_of(given.labels) if given.labels else label_space_of(model),
        device=options.device,
        precision=options.precision,
        features=given.features,
        notes=notes,
        frozen=True,
    )
    return [observer]


def module_of(name: str, given: TorchOptions, offline: bool) -> tuple[Any, tuple[str, ...]]:
    """Build a model of timm and give it the weights that were asked for."""
    import timm

    if not name.startswith(("hf-hub:", "local-dir:")):
        check_name(name)
    if given.random or given.checkpoint:
        return initialised(lambda: timm.create_model(name, pretrained=False), given)
    return _hub.fetched(
        lambda: built(lambda: timm.create_model(name, pretrained=True), 0),
        f"weights of timm:{name} ({_where(name)})",
        offline=offline,
        url=_url(name),
    ), ()


def check_name(name: str) -> None:
    """Raise for a name that timm does not have, or has no weights for."""
    import timm

    architecture, _, tag = name.partition(".")
    if architecture not in timm.list_models():
        near = did_you_mean("timm model", architecture, timm.list_models())
        raise UserError(near.message, "list them: python -c 'import timm; print(*timm.list_models(), sep=\"\\n\")'")
    known = [n.partition(".")[2] for n in timm.list_pretrained(f"{architecture}.*")]
    if tag and tag not in known:
        raise did_you_mean(f"weights of timm model {architecture!r}:", tag, known)


def _where(name: str) -> str:
    import timm

    config = timm.get_pretrained_cfg(name) if not name.startswith(("hf-hub:", "local-dir:")) else None
    if config is None:
        return name
    if not (config.hf_hub_id or config.url or config.file):
        raise UserError(f"timm has no pretrained weights for {name!r}", "use ?weights=random or ?checkpoint=FILE")
    file = config.hf_hub_filename or "model.safetensors"
    return f"{file} of the hub's repository {config.hf_hub_id}" if config.hf_hub_id else str(config.url)


def _url(name: str) -> str:
    import timm

    config = timm.get_pretrained_cfg(name) if not name.startswith(("hf-hub:", "local-dir:")) else None
    return str(config.url) if config is not None and config.url and not config.hf_hub_id else ""


ADAPTER = Adapter(
    load,
    form="timm:MODEL[.WEIGHTS][?checkpoint=FILE | ?weights=random&seed=N][&test_size=true][&preprocess.resize=N…]",
    extra="torch",
    packages=("torch", "torchvision", "timm"),
    examples=("timm:resnet50.a1_in1k", "timm:vit_base_patch16_224?weights=random&seed=1"),
)
