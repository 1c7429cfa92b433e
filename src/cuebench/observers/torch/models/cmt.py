"""CMT-S and CMT-B: a transformer whose blocks also convolve, with attention to a coarser grid of keys.

Four stages halve the grid each; a block adds a depthwise convolution (local perception), attention with depthwise
reduced keys and values and a learned bias of position, and a feed-forward network with a depthwise convolution inside.

References
----------
Guo et al. 2022, CMT: Convolutional Neural Networks Meet Vision Transformers, CVPR; arXiv:2107.06263.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from cuebench.observers.preprocess import IMAGENET_MEAN, IMAGENET_STD, Preprocess

STAGES = "abcd"
HEADS = (1, 2, 4, 8)
REDUCTIONS = (8, 4, 2, 1)


def cmt_s(classes: int = 1000) -> CMT:
    """Return CMT-S for images of 224 pixels."""
    return CMT(224, (64, 128, 256, 512), 32, (3, 3, 16, 3), classes)


def cmt_b(classes: int = 1000) -> CMT:
    """Return CMT-B for images of 256 pixels."""
    return CMT(256, (76, 152, 304, 608), 38, (4, 4, 20, 4), classes)


class CMT(nn.Module):
    """The network.

    Parameters
    ----------
    size : int
        Height and width of the images; the biases of position are learned for it.
    widths, stem, depths : sequence of int, int, sequence of int
        Channels of the four stages, of the entrance, and blocks of the stages.
    classes : int
        Number of logits.
    """

    def __init__(self, size: int, widths: Sequence[int], stem: int, depths: Sequence[int], classes: int = 1000) -> None:
        super().__init__()
        # The authors' geometry: resized in the proportion 256 to 224, bicubic, then cut.
        self.preprocess = Preprocess(
            size=size,
            resize=int(size * 256 / 224),
            interpolation="bicubic",
            mean=IMAGENET_MEAN,
            std=IMAGENET_STD,
            source="the REFINED-BIAS authors' settings for CMT",
        )
        for i in (1, 2, 3):
            self.add_module(f"stem_conv{i}", nn.Conv2d(3 if i == 1 else stem, stem, 3, 2 if i == 1 else 1, 1))
            self.add_module(f"stem_norm{i}", nn.BatchNorm2d(stem))
        inputs, grid = stem, size // 2
        for name, width, depth, heads, reduce in zip(STAGES, widths, depths, HEADS, REDUCTIONS):
            grid //= 2
            self.add_module(f"patch_embed_{name}", PatchEmbedding(inputs, width))
            places = nn.Parameter(torch.randn(heads, grid**2, (grid // reduce) ** 2))
            self.register_parameter(f"relative_pos_{name}", places)
            self.add_module(f"blocks_{name}", nn.ModuleList(Block(width, heads, reduce) for _ in range(depth)))
            inputs = width
        self._fc = nn.Conv2d(inputs, 1280, 1)
        self._bn = nn.BatchNorm2d(1280)
        self.head = nn.Linear(1280, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return N × classes."""
        x = images
        for i in (1, 2, 3):
            x = getattr(self, f"stem_norm{i}")(nn.functional.gelu(getattr(self, f"stem_conv{i}")(x)))
        for name in STAGES:
            x = getattr(self, f"patch_embed_{name}")(x)
            for block in getattr(self, f"blocks_{name}"):
                x = block(x, getattr(self, f"relative_pos_{name}"))
        x = nn.functional.silu(self._bn(self._fc(x)))
        return self.head(x.mean(dim=(2, 3)))


class PatchEmbedding(nn.Module):
    """Halve the grid: a 2×2 convolution with stride 2, normalised over channels."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.proj = nn.Conv2d(inputs, width, 2, 2)
        self.norm = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return N × width × height/2 × width/2."""
        return _over_channels(self.norm, self.proj(x))


class Block(nn.Module):
    """Local perception, attention, feed-forward; each is added to its input."""

    def __init__(self, width: int, heads: int, reduce: int) -> None:
        super().__init__()
        self.proj = nn.Conv2d(width, width, 3, 1, 1, groups=width)
        self.norm1 = nn.LayerNorm(width, eps=1e-6)
        self.attn = Attention(width, heads, reduce)
        self.norm2 = nn.LayerNorm(width, eps=1e-6)
        self.mlp = FeedForward(width)

    def forward(self, x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        """Return a map of the same shape."""
        x = x + self.proj(x)
        x = x + self.attn(_over_channels(self.norm1, x), bias)
        return x + self.mlp(_over_channels(self.norm2, x))


class Attention(nn.Module):
    """Attention of every place to a grid of keys and values that is ``reduce`` times coarser."""

    def __init__(self, width: int, heads: int, reduce: int) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
        self.proj = nn.Linear(width, width)
        self.sr: nn.Module = nn.Identity()
        if reduce > 1:
            self.sr = nn.Sequential(nn.Conv2d(width, width, reduce, reduce, groups=width), nn.BatchNorm2d(width))

    def forward(self, x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        """Return softmax(qk/√d + bias)·v as a map."""
        n, width, height, breadth = x.shape
        places, coarse = x.flatten(2).transpose(1, 2), self.sr(x).flatten(2).transpose(1, 2)
        q, k, v = (self._split(part) for part in (self.q(places), self.k(coarse), self.v(coarse)))
        weights = (q @ k.transpose(-2, -1) * (width // self.heads) ** -0.5 + bias).softmax(dim=-1)
        mixed = self.proj((weights @ v).transpose(1, 2).reshape(n, height * breadth, width))
        return mixed.transpose(1, 2).reshape(n, width, height, breadth)

    def _split(self, x: torch.Tensor) -> torch.Tensor:
        n, places, width = x.shape
        return x.reshape(n, places, self.heads, width // self.heads).transpose(1, 2)


class FeedForward(nn.Module):
    """Four times wider inside, with a depthwise convolution that is added to its input."""

    def __init__(self, width: int) -> None:
        super().__init__()
        inner = 4 * width
        self.conv1 = nn.Sequential(nn.Conv2d(width, inner, 1), nn.GELU(), nn.BatchNorm2d(inner))
        self.proj = nn.Conv2d(inner, inner, 3, 1, 1, groups=inner)
        self.proj_bn = nn.BatchNorm2d(inner)
        self.conv2 = nn.Sequential(nn.Conv2d(inner, width, 1), nn.BatchNorm2d(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a map of the same shape."""
        x = self.conv1(x)
        return self.conv2(self.proj_bn(nn.functional.gelu(x + self.proj(x))))


def _over_channels(norm: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
