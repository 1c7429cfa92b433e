"""Semantic segmentation of Hugging Face transformers: SegFormer, BEiT, UPerNet, MaskFormer, Mask2Former, OneFormer …"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cuebench.errors import UserError
from cuebench.labels import LabelSpace
from cuebench.observers.adapters._hf_data import BACKEND, interpolation_of
from cuebench.observers.adapters._hub import from_repository
from cuebench.observers.adapters._options import TorchOptions, initialised, overridden
from cuebench.observers.adapters._segmentation import windows
from cuebench.observers.base import LoadOptions, Observer, Spec
from cuebench.observers.preprocess import Preprocess
from cuebench.observers.torch.segmentation import torch_masks

UNIVERSAL = ("maskformer", "mask2former", "oneformer")
TASK = "the task is semantic"
"""The task prompt of OneFormer."""


def load(spec: Spec, options: LoadOptions, parsed: TorchOptions) -> list[Observer]:
    """Load one segmentation model from the hub or from a folder."""
    wanted = f"segmentation model {spec.body!r} of transformers (config.json, preprocessor_config.json, weights)"
    model, processor, notes, tokens = from_repository(spec.body, wanted, options.offline, lambda s: _parts(s, parsed))
    preprocess = overridden(_preprocess(processor), spec, parsed.values)
    sliding: dict[str, Any] = windows(spec, parsed.values, preprocess)
    observer = torch_masks(
        model,
        name=parsed.name,
        preprocess=preprocess,
        labels=parsed.labels or _labels(model.config, spec.body),
        call=_call(model, tokens),
        device=options.device,
        precision=options.precision,
        settings={"image_processor": f"{type(processor).__name__} ({BACKEND})"},
        notes=notes,
        frozen=True,
        **sliding,
    )
    return [observer]


def _parts(source: str, parsed: TorchOptions) -> tuple[Any, Any, tuple[str, ...], Any]:
    import torch
    import transformers

    transformers.utils.logging.disable_progress_bar()
    config = transformers.AutoConfig.from_pretrained(source, trust_remote_code=False)
    universal = config.model_type in UNIVERSAL
    kind = (
        transformers.AutoModelForUniversalSegmentation if universal else transformers.AutoModelForSemanticSegmentation
    )
    processor = transformers.AutoImageProcessor.from_pretrained(source, trust_remote_code=False, backend=BACKEND)
    tokens = _task_tokens(transformers, source, config) if config.model_type == "oneformer" else None
    if parsed.random or parsed.checkpoint:
        if parsed.labels:
            config.num_labels = len(parsed.labels)
        model, notes = initialised(lambda: kind.from_config(config, dtype=torch.float32), parsed)
        return model, processor, notes, tokens
    # Weights that are stored in half precision are computed with as float32, unless the run asks for another one.
    model, report = kind.from_pretrained(source, trust_remote_code=False, dtype=torch.float32, output_loading_info=True)
    missing = sorted(report.get("missing_keys", []))
    if missing:
        raise UserError(f"{source} lacks weights of a segmentation model: {missing[:3]}", "is it a classifier?")
    return model, processor, (), tokens


def _task_tokens(transformers: Any, source: str, config: Any) -> Any:
    tokenizer = transformers.AutoTokenizer.from_pretrained(source, trust_remote_code=False)
    length = int(getattr(config, "task_seq_len", 77))
    return tokenizer([TASK], padding="max_length", truncation=True, max_length=length, return_tensors="pt")["input_ids"]


def _call(model: Any, tokens: Any) -> Callable[[Any], Any]:
    def call(pixels: Any) -> Any:
        more = {} if tokens is None else {"task_inputs": tokens.to(pixels.device).expand(len(pixels), -1)}
        return model(pixel_values=pixels, **more)

    return call


def _preprocess(processor: Any) -> Preprocess:
    """Return the processor's normalisation, and its size as a fixed one: the whole image scaled to it."""
    size = dict(getattr(processor, "size", None) or {})
    side = size.get("shortest_edge") or 512
    sides = (size.get("height") or side, size.get("width") or side)
    normalise = getattr(processor, "do_normalize", False)
    return Preprocess(
        size=sides,
        resize=sides,
        crop=False,
        interpolation=interpolation_of(processor),
        mean=tuple(processor.image_mean) if normalise else (0.0, 0.0, 0.0),
        std=tuple(processor.image_std) if normalise else (1.0, 1.0, 1.0),
        scale=float(processor.rescale_factor) if getattr(processor, "do_rescale", False) else 1.0,
        source=f"transformers' {type(processor).__name__}, whole image",
    )


def _labels(config: Any, source: str) -> LabelSpace:
    names = getattr(config, "id2label", None) or {}
    return LabelSpace(source, tuple(str(names[i]) for i in sorted(names)))
