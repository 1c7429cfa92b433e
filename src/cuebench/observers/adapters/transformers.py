"""Image classifiers and zero-shot dual encoders (CLIP, SigLIP, ALIGN, FLAVA) of Hugging Face transformers.

The body is a repository of the hub or a local folder. A dual encoder chooses among the classes of ``?labels=`` (default
ImageNet-1k) by the prompt "a photo of a {class}", or the templates in ``?templates=FILE``. The image processor's Pillow
back end is used, by name; its configuration is translated to a ``Preprocess`` and checked against the processor itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cuebench.errors import UserError, all_problems
from cuebench.labels import LabelSpace
from cuebench.observers.adapters import _hub, _segment_transformers
from cuebench.observers.adapters._hf_data import BACKEND, label_space_of, preprocess_of
from cuebench.observers.adapters._options import (
    TorchOptions,
    initialised,
    only_random,
    overridden,
    space_of,
    torch_options,
)
from cuebench.observers.adapters._segmentation import SEGMENTATION, is_segmentation
from cuebench.observers.adapters._zero_shot import prompts, read_templates, text_features, token_hash, zero_shot_route
from cuebench.observers.base import Adapter, LoadOptions, Observer, Spec
from cuebench.observers.torch.device import pick_device
from cuebench.observers.torch.features import Route, route
from cuebench.observers.torch.observer import TorchObserver
from cuebench.observers.torch.torchvision_import import import_torchvision

DUAL_ENCODERS = ("clip", "siglip", "siglip2", "align", "flava", "chinese_clip", "altclip", "metaclip_2")


def load(spec: Spec, options: LoadOptions) -> list[Observer]:
    """Load one model of transformers."""
    import_torchvision()
    if is_segmentation(spec, {**SEGMENTATION, **spec.options}):
        return _segment_transformers.load(spec, options)
    given = torch_options(spec, options, templates="", task="")
    only_random(spec, given.own["weights"])
    model, processor, tokenizer, notes = _found(spec.body, given, options.offline)
    settings: dict[str, Any] = {"image_processor": f"{type(processor).__name__} ({BACKEND})"}
    if tokenizer is None:
        labels = space_of(given.labels) if given.labels else label_space_of(model.config, spec.body)
        way = route(model, len(labels), given.features, call=lambda x: model(pixel_values=x))
    else:
        labels = space_of(given.labels)
        way, prompted = _dual(model, tokenizer, labels, given, options.device)
        settings.update(prompted)
    observer = TorchObserver(
        model,
        name=given.name,
        preprocess=overridden(preprocess_of(processor, spec.body), spec, given.own),
        labels=labels,
        device=options.device,
        precision=options.precision,
        way=way,
        settings=settings,
        notes=notes,
        frozen=True,
    )
    return [observer]


def _found(body: str, given: TorchOptions, offline: bool) -> tuple[Any, Any, Any, tuple[str, ...]]:
    wanted = f"model {body!r} of transformers (config.json, preprocessor_config.json, model.safetensors)"
    folder = Path(body).expanduser()
    if folder.is_dir():
        return _hub.from_disk(lambda: _parts(str(folder), given), wanted)
    if body.startswith(("/", ".", "~")) or body.count("/") > 1:
        raise UserError(f"there is no folder {body}", "a repository of the hub is written ORGANISATION/NAME")
    return _hub.fetched(lambda: _parts(body, given), wanted, offline=offline)


def _parts(source: str, given: TorchOptions) -> tuple[Any, Any, Any, tuple[str, ...]]:
    import transformers

    transformers.utils.logging.disable_progress_bar()  # of reading a file; a download still shows its own
    config = transformers.AutoConfig.from_pretrained(source)
    dual = config.model_type in DUAL_ENCODERS
    kind = transformers.AutoModel if dual else transformers.AutoModelForImageClassification
    processor = transformers.AutoImageProcessor.from_pretrained(source, backend=BACKEND)
    tokenizer = transformers.AutoTokenizer.from_pretrained(source) if dual else None
    model, notes = _model(kind, source, config, given)
    return model, processor, tokenizer, notes


def _model(kind: Any, source: str, config: Any, given: TorchOptions) -> tuple[Any, tuple[str, ...]]:
    import torch

    if given.random or given.checkpoint:
        return initialised(lambda: kind.from_config(config, dtype=torch.float32), given)
    model, info = kind.from_pretrained(source, dtype=torch.float32, output_loading_info=True)
    # transformers fills what the file lacks with random numbers and only warns: a head that was never trained.
    lacking = [*info["missing_keys"], *(str(m) for m in info.get("mismatched_keys", ()))]
    if lacking:
        raise all_problems(
            f"the weights of {source} do not fit {type(model).__name__}",
            [f"missing {key}" for key in sorted(map(str, lacking))],
            "choose a repository with a trained classifier head, e.g. one fine-tuned on ImageNet",
        )
    return model, ()


def _dual(
    model: Any, tokenizer: Any, labels: LabelSpace, given: TorchOptions, device: str
) -> tuple[Route, dict[str, Any]]:
    templates = read_templates(given.own["templates"])
    model.to(pick_device(device)).eval()
    seen: list[Any] = []

    def encode(texts: list[str]) -> Any:
        tokens = _tokens(model, tokenizer, texts)
        seen.append(tokens["input_ids"])
        return _embedding(model.get_text_features(**{k: v.to(model.device) for k, v in tokens.items()}))

    text = text_features(encode, prompts(labels, templates), len(templates))
    scale, bias = _scale(model)
    way = zero_shot_route(lambda x: _embedding(model.get_image_features(pixel_values=x)), text, scale, bias)
    return way, {"templates": list(templates), "tokens": token_hash(seen)}


def _tokens(model: Any, tokenizer: Any, texts: list[str]) -> dict[str, Any]:
    longest = int(getattr(model.config.text_config, "max_position_embeddings", 77))
    # SigLIP was trained on text padded to its full length and without a mask; with one it answers otherwise.
    siglip = model.config.model_type.startswith("siglip")
    padding = "max_length" if siglip else True
    tokens = tokenizer(texts, padding=padding, truncation=True, max_length=longest, return_tensors="pt")
    wanted = {"input_ids"} if siglip else {"input_ids", "attention_mask", "token_type_ids"}
    return {key: tokens[key] for key in tokens if key in wanted}


def _embedding(output: Any) -> Any:
    tensor = output if hasattr(output, "shape") else output.pooler_output
    return tensor[:, 0] if tensor.ndim == 3 else tensor  # FLAVA projects every token; the first stands for the image


def _scale(model: Any) -> tuple[float, float]:
    if hasattr(model, "temperature"):  # ALIGN divides
        return 1.0 / float(model.temperature.detach()), 0.0
    if not hasattr(model, "logit_scale"):
        raise UserError(f"{type(model).__name__} has no logit scale: it is not a dual encoder that cuebench knows")
    bias = getattr(model, "logit_bias", None)
    return float(model.logit_scale.detach().exp()), 0.0 if bias is None else float(bias.detach())


ADAPTER = Adapter(
    load,
    form="transformers:REPOSITORY|FOLDER[?templates=FILE&labels=…][?weights=random&seed=N | ?checkpoint=FILE]"
    "[&task=segmentation&window=512&stride=341]",
    extra="hf",
    packages=("torch", "torchvision", "transformers"),
    examples=(
        "transformers:google/vit-base-patch16-224",
        "transformers:openai/clip-vit-base-patch32?labels=imagenet1k",
        "transformers:nvidia/segformer-b0-finetuned-ade-512-512?task=segmentation&labels=ade20k",
    ),
)
