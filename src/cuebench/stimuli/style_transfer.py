"""Optimisation-based style transfer (Gatys, Ecker & Bethge 2016) on the features of any convolutional network at hand.

An image begins as the content and is changed in small steps until the correlations of its features (Gram matrices) are
those of the style, while its deep features stay those of the content. The published cue-conflict images were made this
way with VGG-19. Networks that halve the picture with strides see a grid: on plain pixels they give confetti. So the
image is written as waves (its Fourier transform, the coarse ones first) and is shifted a little in every step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from cuebench.arrays import Pixels
from cuebench.errors import UserError

VERSION = 2
"""Another version makes other pixels."""
LAYERS = 5
"""Most sizes of feature maps whose correlations are matched: of each the first and the last layer."""
SMALLEST = 8
"""Feature maps with fewer pixels a side say nothing of texture."""
RATE, SMOOTHNESS = 0.05, 0.1
"""Step of the optimiser on waves; weight of the differences between neighbouring pixels."""
SHIFT = 32
"""Most pixels by which the image is shifted in a step: the strides of all compared layers together at the most."""
DARKEST = 0.02
"""Pixels begin between this and 1 minus this: on the scale of waves black and white are infinitely far away."""


class StyleNetwork(NamedTuple):
    """A network, its normalisation (pixels in [0, 1] times ``scale``, then mean and std), and the layers compared."""

    module: Any
    mean: Sequence[float]
    std: Sequence[float]
    style: tuple[str, ...]
    content: str
    scale: float = 1.0


def style_network(spec: str, size: int) -> StyleNetwork:
    """Load a network and choose its layers: first and last convolution of each size for style, a deep one for content.

    Parameters
    ----------
    spec : str
        A torch network: ``lite:efficientnet_lite0``, ``timm:vgg19.tv_in1k``, ``checkpoint:FILE?arch=…``.
    size : int
        Side of the images in pixels.
    """
    from cuebench.observers.base import LoadOptions
    from cuebench.observers.load import load
    from cuebench.observers.torch.observer import TorchObserver

    (observer, *_) = load(spec, LoadOptions(device="cpu"))
    if not isinstance(observer, TorchObserver) or observer.preprocess is None:
        raise UserError(f"--network {spec}: style transfer needs a torch network", "e.g. lite:efficientnet_lite0")
    import torch

    module, preprocess = observer.module, observer.preprocess
    convolutions = [name for name, part in module.named_modules() if isinstance(part, torch.nn.Conv2d)]
    with torch.no_grad():
        outputs = _outputs(module, convolutions, torch.zeros(1, 3, size, size))
    sides = {name: min(output.shape[-2:]) for name, output in outputs.items()}
    first = {side: name for name, side in reversed(sides.items()) if side >= SMALLEST}
    last = {side: name for name, side in sides.items() if side >= SMALLEST}
    chosen = sorted(first, reverse=True)[:LAYERS]
    if len(chosen) < 2:
        raise UserError(
            f"--network {spec} has no convolutions of several sizes",
            "choose a convolutional network: timm:vgg19.tv_in1k",
        )
    content = last[chosen[-1]]
    style = tuple(dict.fromkeys(name for side in chosen for name in (first[side], last[side])))
    return StyleNetwork(module, preprocess.mean, preprocess.std, style, content, 255 * preprocess.scale)


def transfer(
    network: StyleNetwork, content: Pixels, style: Pixels, *, steps: int = 100, weight: float = 10.0, seed: int = 0
) -> Pixels:
    """Return the content image with the texture of the style image.

    Parameters
    ----------
    network : StyleNetwork
        From ``style_network``.
    content, style : uint8 arrays H×W×3
        Of one size.
    steps : int
        Of the optimiser.
    weight : float
        Of the style against the content; the greater, the more texture.
    seed : int
        Of the shifts.

    References
    ----------
    Gatys, Ecker & Bethge 2016, Image Style Transfer Using Convolutional Neural Networks, CVPR.
    """
    import torch

    mean, std = (torch.tensor(list(values)).view(1, 3, 1, 1) for values in (network.mean, network.std))
    wanted = (*network.style, network.content)

    def features(image: Any, shift: tuple[int, int] = (0, 0)) -> dict[str, Any]:
        shifted = torch.roll(image, shift, (2, 3))
        return _outputs(network.module, wanted, (shifted * network.scale - mean) / std)

    def tensor(picture: Pixels) -> Any:
        return torch.from_numpy(np.asarray(picture, np.float32) / 255).permute(2, 0, 1)[None].contiguous()

    shown = tensor(content)
    height, width = content.shape[:2]
    rarity = _rarity(height, width)

    def picture(waves: Any) -> Any:
        return torch.sigmoid(torch.fft.irfft2(torch.view_as_complex(waves) * rarity, s=(height, width), norm="ortho"))

    of_style = {
        name: _gram(values) for name, values in _no_grad(features, tensor(style)).items() if name in wanted[:-1]
    }
    begin = torch.fft.rfft2(torch.logit(shown.clamp(DARKEST, 1 - DARKEST)), norm="ortho") / rarity
    waves = torch.view_as_real(begin).clone()
    first, second = torch.zeros_like(waves), torch.zeros_like(waves)
    for step, moved in enumerate(np.random.default_rng(seed).integers(0, SHIFT, (steps, 2)).tolist(), start=1):
        waves.requires_grad_(True)
        image = picture(waves)
        now, goals = features(image, tuple(moved)), _no_grad(features, shown, tuple(moved))
        texture = sum(_distance(_gram(now[name]), goal) for name, goal in of_style.items()) / len(of_style)
        rough = image.diff(dim=-1).abs().mean() + image.diff(dim=-2).abs().mean()
        loss = _distance(now[network.content], goals[network.content]) + weight * texture + SMOOTHNESS * rough
        (gradient,) = torch.autograd.grad(loss, waves)
        with torch.no_grad():  # Adam, written out: torch.optim imports the compiler, which takes longer than an image
            first = 0.9 * first + 0.1 * gradient
            second = 0.999 * second + 0.001 * gradient**2
            scale = RATE * (1 - 0.999**step) ** 0.5 / (1 - 0.9**step)
            waves = waves - scale * first / (second.sqrt() + 1e-8)
    pixels = picture(waves.detach())[0].permute(1, 2, 0).numpy()
    return np.asarray((pixels * 255).round(), np.uint8)


def _rarity(height: int, width: int) -> Any:
    """Return how much a step moves each wave: as in photographs, the more the coarser it is."""
    import torch

    frequency = torch.hypot(torch.fft.fftfreq(height)[:, None], torch.fft.rfftfreq(width)[None])
    amplitude = 1 / frequency.clamp(min=1 / max(height, width))
    return amplitude / amplitude.mean()


def _no_grad(function: Any, *arguments: Any) -> Any:
    import torch

    with torch.no_grad():
        return function(*arguments)


def _outputs(module: Any, names: Sequence[str], images: Any) -> dict[str, Any]:
    """Return what some layers give out, in the order in which they are called."""
    seen: dict[str, Any] = {}

    def noting(name: str) -> Any:
        def note(part: Any, inputs: Any, output: Any) -> None:
            seen.setdefault(name, output)

        return note

    parts = dict(module.named_modules())
    hooks = [parts[name].register_forward_hook(noting(name)) for name in dict.fromkeys(names)]
    try:
        module(images)
    finally:
        for hook in hooks:
            hook.remove()
    return seen


def _gram(values: Any) -> Any:
    """Return the correlations of the channels of feature maps 1×C×H×W."""
    flat = values[0].flatten(1)
    return flat @ flat.T / flat.shape[1]


def _distance(values: Any, goal: Any) -> Any:
    """Return the squared difference relative to the goal, so that layers of any scale weigh the same."""
    return ((values - goal) ** 2).mean() / ((goal**2).mean() + 1e-12)
