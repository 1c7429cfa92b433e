"""Semantic segmentation of Hugging Face transformers: SegFormer, BEiT, UPerNet, MaskFormer, Mask2Former, OneFormer …"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image

from cuebench.errors import UserError
from cuebench.labels import LabelSpace
from cuebench.observers.adapters import _hub
from cuebench.observers.adapters._hf_data import BACKEND
from cuebench.observers.adapters._options import (
    TorchOptions,
    initialised,
    only_random,
    overridden,
    space_of,
    torch_options,
)
from cuebench.observers.adapters._segmentation import SEGMENTATION, windows
from cuebench.observers.base import LoadOptions, Observer, Spec
from cuebench.observers.preprocess import Preprocess
from cuebench.observers.torch.segmentation import torch_masks

UNIVERSAL = ("maskformer", "mask2former", "oneformer")
TASK = "the task is semantic"
"""What OneFormer is told to do."""


def load(spec: Spec, options: LoadOptions) -> list[Observer]:
    """Load one segmentation model from the hub or from a folder."""
    given = torch_options(spec, options, **SEGMENTATION)
    only_random(spec, given.own["weights"])
    wanted = f"segmentation model {spec.body!r} of transformers (config.json, preprocessor_config.json, weights)"
    folder = Path(spec.body).expanduser()
    if folder.is_dir():
        parts = _hub.from_disk(lambda: _parts(str(folder), given), wanted)
    elif spec.body.startswith(("/", ".", "~")) or spec.body.count("/") > 1:
        raise UserError(f"there is no folder {folder}", "a repository of the hub is written ORGANISATION/NAME")
    else:
        parts = _hub.fetched(lambda: _parts(spec.body, given), wanted, offline=options.offline)
    model, processor, notes, tokens = parts
    preprocess = overridden(_preprocess(processor), spec, given.own)
    sliding: dict[str, Any] = windows(spec, given.own, preprocess)
    observer = torch_masks(
        model,
        name=given.name,
        preprocess=preprocess,
        labels=space_of(given.labels) if given.labels else _labels(model.config, spec.body),
        call=_call(model, tokens),
        device=options.device,
        precision=options.precision,
        settings={"image_processor": f"{type(processor).__name__} ({BACKEND})"},
        notes=notes,
        frozen=True,
        **sliding,
    )
    return [observer]


def _parts(source: str, given: TorchOptions) -> tuple[Any, Any, tuple[str, ...], Any]:
    import torch
    import transformers

    transformers.utils.logging.disable_progress_bar()
    config = transformers.AutoConfig.from_pretrained(source)
    universal = config.model_type in UNIVERSAL
    kind = (
        transformers.AutoModelForUniversalSegmentation if universal else transformers.AutoModelForSemanticSegmentation
    )
    processor = transformers.AutoImageProcessor.from_pretrained(source, backend=BACKEND)
    tokens = _task_tokens(transformers, source, config) if config.model_type == "oneformer" else None
    if given.random or given.checkpoint:
        model, notes = initialised(lambda: kind.from_config(config, dtype=torch.float32), given)
        return model, processor, notes, tokens
    # Weights that are stored in half precision are computed with as float32, unless the run asks for another one.
    model, report = kind.from_pretrained(source, dtype=torch.float32, output_loading_info=True)
    missing = sorted(report.get("missing_keys", []))
    if missing:
        raise UserError(f"{source} lacks weights of a segmentation model: {missing[:3]}", "is it a classifier?")
    return model, processor, (), tokens


def _task_tokens(transformers: Any, source: str, config: Any) -> Any:
    tokenizer = transformers.AutoTokenizer.from_pretrained(source)
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
    given = getattr(processor, "resample", None)
    return Preprocess(
        size=sides,
        resize=sides,
        crop=False,
        interpolation=Image.Resampling(Image.Resampling.BILINEAR if given is None else given).name.lower(),  # type: ignore[arg-type]
        mean=tuple(processor.image_mean) if normalise else (0.0, 0.0, 0.0),
        std=tuple(processor.image_std) if normalise else (1.0, 1.0, 1.0),
        scale=float(processor.rescale_factor) if getattr(processor, "do_rescale", False) else 1.0,
        source=f"transformers' {type(processor).__name__}, whole image",
    )


def _labels(config: Any, source: str) -> LabelSpace:
    names = getattr(config, "id2label", None) or {}
    return LabelSpace(source, tuple(str(names[i]) for i in sorted(names)))
