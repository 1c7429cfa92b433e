"""Any model of timm, with its pretrained weights, a checkpoint, or random weights.

Preprocessing comes from timm's configuration of the weights, at the size they were trained with; ``?test_size=true``
takes the larger test size where the weights have one. Classes come from the number of logits: ImageNet-1k, -12k, -21k
and -22k are known by their WordNet ids, 1,001 logits have a background class first. Models without classes (towers of
DINO, MAE, SAM, CLIP …) answer with features: their pooled output, or the embedding of a CLIP, scaled to length one.
"""

from __future__ import annotations

from typing import Any

from cuebench.errors import UserError, did_you_mean
from cuebench.observers.adapters import _hub
from cuebench.observers.adapters._options import TORCH, TorchOptions, initialised, overridden, torch_options
from cuebench.observers.adapters._zero_shot import embedding_route
from cuebench.observers.base import Adapter, LoadOptions, Observer, Spec
from cuebench.observers.timm_data import is_embedding, label_space_of, preprocess_of
from cuebench.observers.torch.observer import TorchObserver
from cuebench.observers.torch.torchvision_import import import_torchvision
from cuebench.observers.torch.weights import built
from cuebench.options import Option

OPTIONS = {**TORCH, "test_size": Option(False, "the larger test size of the weights, instead of the training size")}


def load(spec: Spec, options: LoadOptions) -> list[Observer]:
    """Load one model of timm."""
    import_torchvision()
    parsed = torch_options(spec, options, OPTIONS)
    model, notes = module_of(spec.body, parsed, options.offline)
    labels = parsed.labels or label_space_of(model)
    way = None
    if labels is None:
        notes += ("no classes: answers with features only",)
        if not parsed.features and is_embedding(model):
            way = embedding_route(model)
    observer = TorchObserver(
        model,
        name=parsed.name,
        preprocess=overridden(preprocess_of(model, test_size=parsed.values["test_size"]), spec, parsed.values),
        labels=labels,
        device=options.device,
        precision=options.precision,
        features=parsed.features,
        way=way,
        notes=notes,
        frozen=True,
    )
    return [observer]


def module_of(name: str, parsed: TorchOptions, offline: bool) -> tuple[Any, tuple[str, ...]]:
    """Build a model of timm with the weights that the options ask for; return it with the notes for the record."""
    import timm

    elsewhere = name.startswith(("hf-hub:", "local-dir:"))
    if not elsewhere:
        check_name(name)
    if parsed.random or parsed.checkpoint:
        return initialised(lambda: timm.create_model(name, pretrained=False, **parsed.classes), parsed)
    config = None if elsewhere else timm.get_pretrained_cfg(name)
    place, url = name, ""
    if config is not None:
        if not (config.hf_hub_id or config.url or config.file):
            raise UserError(f"timm has no pretrained weights for {name!r}", "use ?weights=random or ?checkpoint=FILE")
        file = config.hf_hub_filename or "model.safetensors"
        place = f"{file} of the hub's repository {config.hf_hub_id}" if config.hf_hub_id else str(config.url)
        url = str(config.url) if config.url and not config.hf_hub_id else ""
    model = _hub.fetched(
        lambda: built(lambda: timm.create_model(name, pretrained=True), 0),
        f"weights of timm:{name} ({place})",
        offline=offline,
        url=url,
    )
    return model, ()


def check_name(name: str) -> None:
    """Raise for a name that timm does not have, or has no weights for."""
    import timm

    architecture, _, tag = name.partition(".")
    if architecture not in timm.list_models():
        near = did_you_mean("timm model", architecture, timm.list_models())
        raise UserError(near.message, "list them: python -c 'import timm; print(*timm.list_models(), sep=\"\\n\")'")
    tags = [n.partition(".")[2] for n in timm.list_pretrained(f"{architecture}.*")]
    if tag and tag not in tags:
        raise did_you_mean(f"weights of timm model {architecture!r}:", tag, tags)


ADAPTER = Adapter(
    load,
    form="timm:MODEL[.WEIGHTS][?checkpoint=FILE | ?weights=random&seed=N][&test_size=true][&preprocess.resize=N…]",
    extra="torch",
    packages=("torch", "torchvision", "timm"),
    examples=("timm:resnet50.a1_in1k", "timm:vit_base_patch16_224?weights=random&seed=1"),
    options=OPTIONS,
)
