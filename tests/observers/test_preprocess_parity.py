"""Our Preprocess against the transforms of torchvision and timm, on photographs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from cuebench.observers.preprocess import Preprocess

pytestmark = [pytest.mark.torch, pytest.mark.xdist_group("torch")]
pytest.importorskip("torch")


@pytest.fixture(scope="module")
def photographs(shared):
    files = sorted((shared / "imagenet_val").glob("*.jpg"))[:10] + sorted((shared / "oxford_pets/images").glob("*"))[:6]
    return [Image.open(f).convert("RGB") for f in files]


@pytest.fixture(scope="module", autouse=True)
def torchvision():
    from cuebench.observers.torch.torchvision_import import import_torchvision

    return import_torchvision()


def same(ours, transform, images, bare):
    """Equal bytes before the normalisation, equal numbers after it."""
    for image in images:
        np.testing.assert_array_equal(ours.geometry.apply(image), np.asarray(bare(image)))
        np.testing.assert_allclose(ours.apply(image), transform(image).numpy(), atol=1e-6, rtol=0)


TORCHVISION = (
    "ResNet50_Weights.IMAGENET1K_V1",
    "ResNet50_Weights.IMAGENET1K_V2",
    "EfficientNet_B1_Weights.IMAGENET1K_V2",
    "Inception_V3_Weights.IMAGENET1K_V1",
)
TIMM = (
    "resnet50.a1_in1k",
    "vit_base_patch16_224.augreg2_in21k_ft_in1k",
    "beit_base_patch16_384",
    "convnext_tiny.in12k_ft_in1k_384",
    "tf_efficientnet_lite0.in1k",
)


@pytest.mark.parametrize("name", TORCHVISION)
def test_torchvision(name, photographs):
    from torchvision import models
    from torchvision.transforms import functional as f

    from cuebench.observers.adapters.torchvision import preprocess_of

    kind, version = name.split(".")
    weights = getattr(models, kind)[version]
    t = weights.transforms()

    def bare(image):
        return f.center_crop(f.resize(image, t.resize_size, t.interpolation, antialias=True), t.crop_size)

    same(preprocess_of(weights), t, photographs, bare)


@pytest.mark.parametrize("name", TIMM)
def test_timm(name, photographs):
    timm = pytest.importorskip("timm")
    from timm.data import create_transform, resolve_data_config

    from cuebench.observers.timm_data import _translate

    config = resolve_data_config(pretrained_cfg=timm.get_pretrained_cfg(name).to_dict())
    transform = create_transform(**config, is_training=False)
    bare = type(transform)(transform.transforms[:2])
    same(_translate(config), transform, photographs, bare)


def test_rounding_of_the_centre(photographs):
    even = Preprocess(224, 256)
    down = replace(even, centre="down")
    assert down.fingerprint != even.fingerprint
    odd = Image.fromarray(np.arange(259, dtype=np.uint8)[None, :, None].repeat(256, 0).repeat(3, 2))
    assert even.geometry.apply(odd)[0, 0, 0] == 18  # 17.5 → the even one
    assert down.geometry.apply(odd)[0, 0, 0] == 17


def test_whole_images_share_their_geometry():
    even = Preprocess(224, 256)
    assert replace(even, centre="down").whole_image().geometry == even.whole_image().geometry


def test_status_of_torchvision():
    from cuebench.observers.torch.torchvision_import import import_torchvision, status

    assert status().state in {"native", "shimmed"}
    assert import_torchvision() is import_torchvision()
