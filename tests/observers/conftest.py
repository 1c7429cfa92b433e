"""Tiny models with random weights in the folders that hubs serve: everything real but the size."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

WORDS = ["a", "photo", "of", "sketch", "cat", "dog", "car"]


def tokenizer(folder: Path, longest: int = 16) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    vocabulary = {w: i for i, w in enumerate(["<pad>", "<unk>", "<s>", "</s>", *WORDS])}
    core = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    core.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 2), ("</s>", 3)])
    PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token="<pad>",
        unk_token="<unk>",
        bos_token="<s>",
        eos_token="</s>",
        model_max_length=longest,
    ).save_pretrained(folder)


TEXT = {
    "vocab_size": 16,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "max_position_embeddings": 16,
    "bos_token_id": 2,
    "eos_token_id": 3,
    "pad_token_id": 0,
}
VISION = {
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": 32,
    "patch_size": 8,
}


def dual_encoder(folder: Path, kind: str) -> Path:
    """Save a dual encoder of transformers: clip, siglip, align or flava."""
    import torch
    import transformers as t

    torch.manual_seed(0)
    size = {"height": 32, "width": 32}
    if kind == "clip":
        model = t.CLIPModel(t.CLIPConfig(text_config=TEXT, vision_config=VISION, projection_dim=8))
        processor = t.CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size=size)
    elif kind == "siglip":
        model = t.SiglipModel(t.SiglipConfig(text_config=TEXT, vision_config=VISION))
        processor = t.SiglipImageProcessorPil(size=size)
    elif kind == "align":
        vision = {"image_size": 32, "width_coefficient": 0.1, "depth_coefficient": 0.1, "hidden_dim": 16}
        vision["initializer_range"] = 0.5  # smaller ones let the signal die
        model = t.AlignModel(t.AlignConfig(text_config=TEXT, vision_config=vision, projection_dim=32))
        processor = t.EfficientNetImageProcessorPil(
            size={"height": 36, "width": 36},
            crop_size=size,
            do_center_crop=True,
            include_top=False,
            rescale_offset=False,
        )
    else:
        model = t.FlavaModel(
            t.FlavaConfig(
                text_config=TEXT, image_config=VISION, multimodal_config=VISION, hidden_size=16, projection_dim=8
            )
        )
        processor = t.FlavaImageProcessorPil(size=size, crop_size=size)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    tokenizer(folder)
    return folder


def classifier(folder: Path, kind: str = "vit", classes: int = 1000) -> Path:
    """Save an image classifier of transformers: vit, resnet or convnext; or an encoder without classes: dinov2, mae."""
    import torch
    import transformers as t

    torch.manual_seed(0)
    if kind == "vit":
        model = t.ViTForImageClassification(t.ViTConfig(**VISION, num_labels=classes))
        processor = t.ViTImageProcessorPil(size={"height": 32, "width": 32})
    elif kind in {"dinov2", "mae"}:
        encoders = {"dinov2": (t.Dinov2Model, t.Dinov2Config), "mae": (t.ViTMAEModel, t.ViTMAEConfig)}
        encoder, config = encoders[kind]
        model = encoder(config(**VISION))
        processor = t.ViTImageProcessorPil(size={"height": 32, "width": 32})
    elif kind == "resnet":
        config = t.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], num_labels=classes)
        model = t.ResNetForImageClassification(config)
        processor = t.ConvNextImageProcessorPil(size={"shortest_edge": 32}, crop_pct=0.875)
    else:
        config = t.ConvNextConfig(hidden_sizes=[8, 16], depths=[1, 1], num_stages=2, num_labels=classes)
        model = t.ConvNextForImageClassification(config)
        processor = t.ConvNextImageProcessorPil(size={"shortest_edge": 384})
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def open_clip_folder(folder: Path) -> Path:
    """Write the configuration of a tiny OpenCLIP model."""
    folder.mkdir(parents=True, exist_ok=True)
    vision = {"image_size": 32, "layers": 2, "width": 64, "patch_size": 8}
    text = {"context_length": 77, "vocab_size": 49408, "width": 64, "heads": 1, "layers": 1}
    config = {"model_cfg": {"embed_dim": 16, "vision_cfg": vision, "text_cfg": text}, "preprocess_cfg": {"size": 32}}
    (folder / "open_clip_config.json").write_text(json.dumps(config))
    return folder


def checkpointed(folder: Path) -> Path:
    """Write a small module, its factory and its state dict: what a user brings."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "my_models.py").write_text(MODULE)
    (folder / "labels.json").write_text(json.dumps(["cat", "dog", "car"]))
    return folder


MODULE = """
import numpy as np
import torch
from cuebench.observers.preprocess import Preprocess


class Net(torch.nn.Module):
    def __init__(self, classes: int = 3) -> None:
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 8, 3)
        self.norm = torch.nn.BatchNorm2d(8)
        self.drop = torch.nn.Dropout(0.5)
        self.head = torch.nn.Linear(8, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.drop(self.norm(self.stem(x)).relu().mean((2, 3))))


def net():
    return Net()


def ready():
    model = Net()
    model.preprocess = Preprocess(size=24, resize=28)
    return model


def function():
    def answer(x: np.ndarray) -> np.ndarray:
        return x.mean(axis=(2, 3))
    answer.preprocess = Preprocess(size=24)
    return answer


number = 7
"""


@pytest.fixture(scope="session")
def tiny():
    """What makes tiny models; a fixture, because test files cannot import one another."""
    return SimpleNamespace(
        dual_encoder=dual_encoder, classifier=classifier, open_clip_folder=open_clip_folder, checkpointed=checkpointed
    )
