"""Zero-shot dual encoders of OpenCLIP.

``open_clip:ViT-B-32?weights=laion2b_s34b_b79k``, or a repository ``open_clip:hf-hub:org/name``, or a folder
``open_clip:local-dir:PATH``. Classes of ``?labels=`` (default ImageNet-1k) are prompted by "a photo of a {class}" or
the templates in ``?templates=FILE``. Models with a tokenizer from the hub (SigLIP) need it in the cache too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from cuebench.arrays import Array
from cuebench.errors import UserError, did_you_mean
from cuebench.labels import LabelSpace
from cuebench.observers.adapters import _hub
from cuebench.observers.adapters._options import (
    TORCH,
    TorchOptions,
    imagenet,
    initialised,
    overridden,
    torch_options,
)
from cuebench.observers.adapters._zero_shot import (
    TEMPLATES,
    prompts,
    read_templates,
    text_features,
    token_hash,
    zero_shot_route,
)
from cuebench.observers.base import Adapter, LoadOptions, Observer, Spec
from cuebench.observers.load import require
from cuebench.observers.preprocess import Preprocess
from cuebench.observers.torch.features import Route
from cuebench.observers.torch.observer import TorchObserver
from cuebench.observers.torch.placement import pick_device
from cuebench.observers.torch.torchvision_import import import_torchvision
from cuebench.observers.torch.weights import built
from cuebench.observers.verify_preprocess import same_input
from cuebench.options import Option

OPTIONS = {
    **{key: option for key, option in TORCH.items() if key != "features"},
    "weights": Option("", "tag of published weights such as laion2b_s34b_b79k, or random"),
    **TEMPLATES,
}


class Parts(NamedTuple):
    """What OpenCLIP loads for one model."""

    model: Any
    tokenizer: Any
    notes: tuple[str, ...]


def load(spec: Spec, options: LoadOptions) -> list[Observer]:
    """Load one dual encoder of OpenCLIP."""
    parsed = torch_options(spec, options, OPTIONS)
    parts = _load_parts(spec, options, parsed)
    labels = parsed.labels or imagenet()
    way, settings = _route(parts, labels, parsed, options.device)
    observer = TorchObserver(
        parts.model,
        name=parsed.name,
        preprocess=overridden(_preprocess(parts.model, spec.body), spec, parsed.values),
        labels=labels,
        device=options.device,
        precision=options.precision,
        way=way,
        settings=settings,
        notes=parts.notes,
        frozen=True,
    )
    return [observer]


def text_encoder(spec: Spec, options: LoadOptions) -> Callable[[Sequence[str]], Array]:
    """Return the text tower of a dual encoder: texts → features of length one."""
    require(f"match={spec.text}", ADAPTER.extra, ADAPTER.packages)
    parts = _load_parts(spec, options, torch_options(spec, options, OPTIONS))
    place = pick_device(options.device)
    model = parts.model.to(place).eval()

    def encode(texts: Sequence[str]) -> Array:
        features = text_features(lambda part: model.encode_text(parts.tokenizer(part).to(place)), list(texts), 1)
        return np.asarray(features.cpu().numpy())

    return encode


def _load_parts(spec: Spec, options: LoadOptions, parsed: TorchOptions) -> Parts:
    import_torchvision()
    tag = _tag(spec, parsed)
    wanted = f"weights {tag or spec.body!r} of open_clip:{spec.body}"
    if spec.body.startswith("local-dir:"):
        return _hub.from_disk(lambda: _parts(spec.body, tag, parsed), wanted)
    return _hub.fetched(lambda: _parts(spec.body, tag, parsed), wanted, offline=options.offline)


def _tag(spec: Spec, parsed: TorchOptions) -> str:
    import open_clip

    if spec.body.startswith(("hf-hub:", "local-dir:")):
        return ""
    if spec.body not in open_clip.list_models():
        raise did_you_mean("open_clip model", spec.body, open_clip.list_models())
    if parsed.random or parsed.checkpoint:
        return ""
    tags, wanted = open_clip.list_pretrained_tags_by_model(spec.body), str(parsed.values["weights"])
    if not wanted:
        raise UserError(
            f"observer {spec.text!r} needs weights=TAG", f"one of {', '.join([*tags, 'random'])}; or checkpoint=FILE"
        )
    if wanted not in tags:
        raise did_you_mean(f"weights of open_clip model {spec.body!r}:", wanted, tags)
    return wanted


def _parts(name: str, tag: str, parsed: TorchOptions) -> Parts:
    import open_clip

    pretrained = not (parsed.random or parsed.checkpoint)
    # OpenAI's weights want QuickGELU; without it the model runs and answers wrongly.
    quick = bool(tag) and bool((open_clip.get_pretrained_cfg(name, tag) or {}).get("quick_gelu"))

    def make() -> Any:
        return open_clip.create_model(
            name,
            pretrained=tag or None,
            load_weights=pretrained,
            require_pretrained=pretrained,
            force_quick_gelu=quick,
            pretrained_text=False,
        )

    notes: tuple[str, ...] = ("QuickGELU, as these weights want",) if quick else ()
    model, notes = (built(make, parsed.seed), notes) if pretrained else initialised(make, parsed)
    return Parts(model, open_clip.get_tokenizer(name), notes)


def _route(parts: Parts, labels: LabelSpace, parsed: TorchOptions, device: str) -> tuple[Route, dict[str, Any]]:
    templates = read_templates(parsed.values["templates"])
    place = pick_device(device)
    model = parts.model.to(place).eval()
    seen: list[Any] = []

    def encode(texts: list[str]) -> Any:
        tokens = parts.tokenizer(texts)
        seen.append(tokens)
        return model.encode_text(tokens.to(place))

    text = text_features(encode, prompts(labels, templates), len(templates))
    bias = getattr(model, "logit_bias", None)
    way = zero_shot_route(
        model.encode_image, text, float(model.logit_scale.detach().exp()), 0.0 if bias is None else float(bias.detach())
    )
    return way, {"templates": list(templates), "tokens": token_hash(seen)}


def _preprocess(model: Any, what: str) -> Preprocess:
    from open_clip.transform import PreprocessCfg, image_transform_v2

    config = model.visual.preprocess_cfg
    size = config["size"]
    height, width = (size, size) if isinstance(size, int) else (size[0], size[1])
    ours = Preprocess(
        size=(height, width),
        resize=(height, width) if config["resize_mode"] == "squash" else min(height, width),
        crop=config["resize_mode"] != "squash",
        interpolation="bilinear" if config["interpolation"] == "bilinear" else "bicubic",
        mean=tuple(config["mean"]),
        std=tuple(config["std"]),
        source="open_clip's configuration of these weights",
    )
    transform = image_transform_v2(PreprocessCfg(**config), is_train=False)
    return same_input(ours, lambda image: transform(image).numpy(), f"open_clip's {what}")


ADAPTER = Adapter(
    load,
    form="open_clip:MODEL?weights=TAG[&templates=FILE&labels=…] | open_clip:hf-hub:REPOSITORY | ?weights=random&seed=N",
    extra="clip",
    packages=("torch", "torchvision", "open_clip"),
    examples=("open_clip:ViT-B-32?weights=laion2b_s34b_b79k", "open_clip:RN50?weights=random&seed=0"),
    options=OPTIONS,
    weights_of_classes=True,
)
