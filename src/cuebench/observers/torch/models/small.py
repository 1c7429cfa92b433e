"""Small networks for small images, which a CPU trains in seconds: the architectures of the trained controls.

A convolutional network, a transformer and a segmentation network. They take images of their own size only: a network
that was trained on small images is not to be shown large ones, where every texture would be coarser.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import nn

SIDE = 64
"""Width and height of the input of the classifiers."""
SCENE_SIDE = 96
"""Width and height of the input of the segmentation network."""


def _block(channels: int, out: int, stride: int, dilation: int = 1) -> nn.Sequential:
    convolution = nn.Conv2d(channels, out, 3, stride, padding=dilation, dilation=dilation, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(out), nn.ReLU(inplace=True))


def _check_size(images: Any, side: int) -> None:
    if images.shape[-2:] != (side, side):
        raise ValueError(f"an input of {tuple(images.shape[-2:])}; this network takes {side}×{side} pixels only")


class SmallConvNet(nn.Module):
    """Four convolutions of stride 2, the mean over places, a linear classifier.

    Parameters
    ----------
    classes : int
        Number of logits.
    """

    def __init__(self, classes: int) -> None:
        super().__init__()
        widths = (3, 16, 32, 64, 96)
        self.body = nn.Sequential(*(_block(a, b, 2) for a, b in pairwise(widths)))
        self.fc = nn.Linear(widths[-1], classes)

    def forward(self, images: Any) -> Any:
        """Return logits N×classes of images N×3×64×64."""
        _check_size(images, SIDE)
        return self.fc(self.body(images).mean(dim=(2, 3)))


class SmallTransformer(nn.Module):
    """A vision transformer of two layers on patches of 8 × 8 pixels, with learned places and the mean over patches.

    Parameters
    ----------
    classes : int
        Number of logits.
    """

    def __init__(self, classes: int, width: int = 64) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 8, 8)
        self.places = nn.Parameter(torch.randn(1, (SIDE // 8) ** 2, width) * 0.02)
        layer = nn.TransformerEncoderLayer(
            width, 4, 2 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        self.fc = nn.Linear(width, classes)

    def forward(self, images: Any) -> Any:
        """Return logits N×classes of images N×3×64×64."""
        _check_size(images, SIDE)
        tokens = self.patches(images).flatten(2).transpose(1, 2) + self.places
        return self.fc(self.norm(self.layers(tokens)).mean(dim=1))


class SmallSegmenter(nn.Module):
    """Convolutions to an eighth of the size, wide ones there, and the finer ones joined again.

    Parameters
    ----------
    classes : int
        Number of classes of a pixel.
    """

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.fine = nn.Sequential(_block(3, 16, 2), _block(16, 24, 2))
        self.coarse = nn.Sequential(_block(24, 48, 2), _block(48, 48, 1, 2), _block(48, 48, 1, 4))
        self.join = _block(24 + 48, 48, 1)
        self.head = nn.Conv2d(48, classes, 1)

    def forward(self, images: Any) -> Any:
        """Return class scores N×classes×96×96 of images N×3×96×96."""
        _check_size(images, SCENE_SIDE)
        fine = self.fine(images)
        wide = nn.functional.interpolate(self.coarse(fine), size=fine.shape[-2:], mode="bilinear", align_corners=False)
        scores = self.head(self.join(torch.cat([fine, wide], dim=1)))
        return nn.functional.interpolate(scores, size=images.shape[-2:], mode="bilinear", align_corners=False)


ARCHITECTURES: dict[str, type[nn.Module]] = {
    "convnet": SmallConvNet,
    "transformer": SmallTransformer,
    "segmenter": SmallSegmenter,
}
"""Name → class of the network."""
