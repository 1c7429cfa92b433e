"""Image classifiers, zero-shot dual encoders (CLIP, SigLIP, ALIGN, FLAVA) and encoders of Hugging Face transformers.

The body is a repository of the hub or a local folder. A dual encoder chooses among the classes of ``?labels=`` (default
ImageNet-1k) by the prompt "a photo of a {class}", or the templates in ``?templates=FILE``. The image processor's Pillow
back end is used, by name; its configuration is translated to a ``Preprocess`` and checked against the processor itself.
A repository without a classifier (DINO, DINOv2, MAE …) answers with features: the class token of the last layer, or the
mean over positions where there is none. A model that answers in words (LLaVA, Qwen-VL, InternVL, PaliGemma, SmolVLM …)
is asked with ``?prompt=vqa``; see docs/chat_models.md.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from cuebench.errors import UserError, all_problems
from cuebench.labels import LabelSpace
from cuebench.observers.adapters import _image_text, _segment_transformers
from cuebench.observers.adapters._hf_data import BACKEND, label_space_of, preprocess_of
from cuebench.observers.adapters._hub import from_repository
from cuebench.observers.adapters._options import (
    TORCH,
    TorchOptions,
    imagenet,
    initialised,
    overridden,
    torch_options,
)
from cuebench.observers.adapters._segmentation import SEGMENTATION, is_segmentation
from cuebench.observers.adapters._zero_shot import (
    TEMPLATES,
    prompts,
    read_templates,
    text_features,
    token_hash,
    zero_shot_route,
)
from cuebench.observers.base import Adapter, LoadOptions, Observer, Spec
from cuebench.observers.torch.features import Outputs, Route, as_rows, route
from cuebench.observers.torch.observer import TorchObserver
from cuebench.observers.torch.placement import pick_device
from cuebench.observers.torch.torchvision_import import import_torchvision

DUAL_ENCODERS = ("clip", "siglip", "siglip2", "align", "flava", "chinese_clip", "altclip", "metaclip_2")
OPTIONS = {**TORCH, **TEMPLATES, **SEGMENTATION, **_image_text.IMAGE_TEXT}


def load(spec: Spec, options: LoadOptions) -> list[Observer]:
    """Load one model of transformers."""
    import_torchvision()
    parsed = torch_options(spec, options, OPTIONS)
    if is_segmentation(spec, parsed.values):
        return _segment_transformers.load(spec, options, parsed)
    if parsed.values["prompt"]:
        return _image_text.load(spec, options, parsed)
    wanted = f"model {spec.body!r} of transformers (config.json, preprocessor_config.json, model.safetensors)"
    model, processor, tokenizer, notes = from_repository(
        spec.body, wanted, options.offline, lambda s: _parts(s, parsed)
    )
    settings: dict[str, Any] = {"image_processor": f"{type(processor).__name__} ({BACKEND})"}
    labels: LabelSpace | None
    if tokenizer is None and _is_encoder(model.config, parsed):
        labels, way = None, _encoder_route(model, parsed.features)
        notes += ("no classes: answers with features only",)
    elif tokenizer is None:
        labels = parsed.labels or label_space_of(model.config, spec.body)
        way = route(model, len(labels), parsed.features, call=lambda x: model(pixel_values=x))
    else:
        labels = parsed.labels or imagenet()
        way, prompt_settings = _dual(model, tokenizer, labels, parsed, options.device)
        settings.update(prompt_settings)
    observer = TorchObserver(
        model,
        name=parsed.name,
        preprocess=overridden(preprocess_of(processor, spec.body), spec, parsed.values),
        labels=labels,
        device=options.device,
        precision=options.precision,
        way=way,
        settings=settings,
        notes=notes,
        frozen=True,
    )
    return [observer]


def _parts(source: str, parsed: TorchOptions) -> tuple[Any, Any, Any, tuple[str, ...]]:
    import transformers

    transformers.utils.logging.disable_progress_bar()  # of reading a file; a download still shows its own
    config = transformers.AutoConfig.from_pretrained(source, trust_remote_code=False)
    if any(name.endswith("ForConditionalGeneration") for name in config.architectures or ()):
        raise UserError(
            f"{source} ({config.model_type}) answers in words, and no prompt was given", "add ?prompt=vqa to its spec"
        )
    dual = config.model_type in DUAL_ENCODERS
    whole = dual or _is_encoder(config, parsed)
    kind = transformers.AutoModel if whole else transformers.AutoModelForImageClassification
    processor = transformers.AutoImageProcessor.from_pretrained(source, trust_remote_code=False, backend=BACKEND)
    tokenizer = transformers.AutoTokenizer.from_pretrained(source, trust_remote_code=False) if dual else None
    model, notes = _model(kind, source, config, parsed)
    return model, processor, tokenizer, notes


def _is_encoder(config: Any, parsed: TorchOptions) -> bool:
    """Tell whether a repository holds an encoder without a classifier, and none was asked for with ``?labels=``."""
    classes = config.architectures or ("ForImageClassification",)
    return parsed.labels is None and not any("ForImageClassification" in name for name in classes)


def _encoder_route(model: Any, layer: str | None) -> Route:
    """Return the way to the class token of the last layer, or to the mean over positions where there is none."""
    if layer:
        return route(model, None, layer, call=lambda x: model(pixel_values=x).last_hidden_state)
    tokens = any(name.endswith("cls_token") for name, _ in model.named_parameters())

    def forward(x: Any, want: bool) -> Outputs:
        hidden = model(pixel_values=x).last_hidden_state
        return Outputs(None, hidden[:, 0] if tokens and hidden.ndim == 3 else as_rows(hidden))

    return Route(forward, "class token of the last layer" if tokens else "last layer")


def _model(kind: Any, source: str, config: Any, parsed: TorchOptions) -> tuple[Any, tuple[str, ...]]:
    import torch

    if getattr(config, "mask_ratio", None):
        config.mask_ratio = 0.0  # a masked autoencoder would hide three quarters of the image
    if parsed.random or parsed.checkpoint:
        if parsed.labels and config.model_type not in DUAL_ENCODERS:
            config.num_labels = len(parsed.labels)
        return initialised(lambda: kind.from_config(config, dtype=torch.float32), parsed)
    load = partial(kind.from_pretrained, trust_remote_code=False)
    model, info = load(source, config=config, dtype=torch.float32, output_loading_info=True)
    # transformers fills what the file lacks with random numbers and only warns: a head that was never trained.
    missing = [*info["missing_keys"], *(str(m) for m in info.get("mismatched_keys", ()))]
    if _is_encoder(config, parsed):
        missing = [key for key in missing if not str(key).startswith("pooler.")]  # takes no part in the features
    if missing:
        raise all_problems(
            f"the weights of {source} do not fit {type(model).__name__}",
            [f"missing {key}" for key in sorted(map(str, missing))],
            "choose a repository with a trained classifier head, e.g. one fine-tuned on ImageNet",
        )
    return model, ()


def _dual(
    model: Any, tokenizer: Any, labels: LabelSpace, parsed: TorchOptions, device: str
) -> tuple[Route, dict[str, Any]]:
    templates = read_templates(parsed.values["templates"])
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
    "[&task=segmentation&window=512&stride=341][?prompt=vqa&answer=text|likelihood]",
    extra="hf",
    packages=("torch", "torchvision", "transformers"),
    examples=(
        "transformers:google/vit-base-patch16-224",
        "transformers:openai/clip-vit-base-patch32?labels=imagenet1k",
        "transformers:nvidia/segformer-b0-finetuned-ade-512-512?task=segmentation&labels=ade20k",
        "transformers:HuggingFaceTB/SmolVLM-256M-Instruct?prompt=vqa&answer=likelihood",
    ),
    options=OPTIONS,
    weights_of_classes=True,
)
