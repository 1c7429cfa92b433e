"""BagNet-9, -17 and -33: ResNet-50 with 1×1 in place of most 3×3 convolutions, so that each feature sees q×q pixels.

The logits are the mean over places of what each patch of q×q pixels says alone: the field's texture-only control, for
no arrangement of patches wider than q can be seen. Without padding, the receptive field grows by (k − 1)·stride at
every k×k convolution: 3 at the entrance, then one 3×3 in the first block of as many of the four stages as the field
asks for (two for 9, three for 17, four for 33).

References
----------
Brendel & Bethge 2019, Approximating CNNs with bag-of-local-features models works surprisingly well on ImageNet, ICLR.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

BLOCKS = (3, 4, 6, 3)
STRIDES = (2, 2, 2, 1)
WIDTHS = (64, 128, 256, 512)


def bagnet9(classes: int = 1000) -> BagNet:
    """Return BagNet-9."""
    return BagNet(wide_stages=2, classes=classes)


def bagnet17(classes: int = 1000) -> BagNet:
    """Return BagNet-17."""
    return BagNet(wide_stages=3, classes=classes)


def bagnet33(classes: int = 1000) -> BagNet:
    """Return BagNet-33."""
    return BagNet(wide_stages=4, classes=classes)


class BagNet(nn.Module):
    """A bag of local features.

    Parameters
    ----------
    wide_stages : int
        How many of the four stages begin with a 3×3 convolution: 2, 3 or 4 for a receptive field of 9, 17 or 33.
    classes : int
        Number of logits.
    """

    def __init__(self, wide_stages: int, classes: int = 1000) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 1, bias=False)
        self.conv2 = nn.Conv2d(64, 64, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64, momentum=0.001)
        channels = 64
        for stage, (blocks, stride, width) in enumerate(zip(BLOCKS, STRIDES, WIDTHS)):
            kernels = [3 if stage < wide_stages and block == 0 else 1 for block in range(blocks)]
            strides = [stride] + [1] * (blocks - 1)
            made = []
            for kernel, step in zip(kernels, strides):
                made.append(Block(channels, width, kernel, step))
                channels = 4 * width
            self.add_module(f"layer{stage + 1}", nn.Sequential(*made))
        self.fc = nn.Linear(channels, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out")

    def local_features(self, images: torch.Tensor) -> torch.Tensor:
        """Return N × 2048 × places: one vector for each patch, from that patch alone."""
        x: Any = torch.relu(self.bn1(self.conv2(self.conv1(images))))
        for stage in (self.layer1, self.layer2, self.layer3, self.layer4):
            x = stage(x)
        return x

    def evidence(self, images: torch.Tensor) -> torch.Tensor:
        """Return N × height × width × classes: the logits of every patch; their mean is the network's answer."""
        return self.fc(self.local_features(images).permute(0, 2, 3, 1))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return N × classes."""
        return self.fc(self.local_features(images).mean(dim=(2, 3)))


class Block(nn.Module):
    """A bottleneck without padding; the shortcut is cut to what the convolution leaves."""

    def __init__(self, inputs: int, width: int, kernel: int, stride: int) -> None:
        super().__init__()
        outputs = 4 * width
        self.conv1, self.bn1 = nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, kernel, stride, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return relu(block(x) + shortcut(x))."""
        out = torch.relu(self.bn1(self.conv1(x)))
        out = torch.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        short = x if self.downsample is None else self.downsample(x)
        # The published networks cut the lower and right border, not the centre: their weights expect it.
        return torch.relu(out + short[:, :, : out.shape[2], : out.shape[3]])
