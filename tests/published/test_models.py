"""BagNet and CMT: parameters, shapes, receptive fields, and keys that fit the published checkpoints."""

from __future__ import annotations

import importlib

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.xdist_group("torch")]

RESNET_50 = 25_557_032
"""Parameters of ResNet-50 with 1,000 classes (He et al. 2016; torchvision)."""


@pytest.fixture(scope="module")
def torch():
    """Imported by the tests that need it, not by every worker that collects this file."""
    return pytest.importorskip("torch")


def count(model):
    return sum(p.numel() for p in model.parameters())


@pytest.fixture(scope="module")
def bagnets(torch):
    bagnet = importlib.import_module("cuebench.observers.torch.models.bagnet")
    torch.manual_seed(0)
    return {9: bagnet.bagnet9(), 17: bagnet.bagnet17(), 33: bagnet.bagnet33()}


@pytest.mark.parametrize(("field", "narrow"), [(33, (2, 3, 5, 2)), (17, (2, 3, 5, 3)), (9, (2, 3, 6, 3))])
def test_bagnet_has_the_parameters_of_resnet_50_with_narrow_kernels(bagnets, field, narrow):
    """A 1×1 in place of a 3×3 convolution saves 8·w²; the entrance is 1×1 and 3×3 in place of 7×7."""
    saved = sum(8 * n * w * w for n, w in zip(narrow, (64, 128, 256, 512)))
    assert count(bagnets[field]) == RESNET_50 - 7 * 7 * 3 * 64 + 3 * 64 + 9 * 64 * 64 - saved


@pytest.mark.parametrize("field", [9, 17, 33])
def test_receptive_field_of_bagnet(torch, bagnets, field):
    """The gradient of one place of the last map reaches a square of exactly ``field`` pixels."""
    model = bagnets[field].eval().double()
    side = field + 16  # three places of the last map, eight pixels apart
    image = torch.zeros(1, 3, side, side, dtype=torch.float64).requires_grad_()
    features = model.local_features(image + torch.randn(image.shape, dtype=torch.float64))
    middle = features.shape[2] // 2
    features[0, :, middle, middle].abs().sum().backward()
    touched = image.grad[0].abs().sum(dim=0) > 0
    rows, columns = touched.any(dim=1).nonzero(), touched.any(dim=0).nonzero()
    assert int(rows.max() - rows.min()) + 1 == field
    assert int(columns.max() - columns.min()) + 1 == field
    model.float()


def test_answer_of_bagnet_is_the_mean_of_its_patches(torch, bagnets):
    model = bagnets[9].eval()
    images = torch.rand(2, 3, 64, 64)
    with torch.no_grad():
        logits, evidence = model(images), model.evidence(images)
    assert logits.shape == (2, 1000)
    assert torch.allclose(evidence.mean(dim=(1, 2)), logits, atol=1e-4)


def test_bagnet_cannot_see_an_arrangement(torch, bagnets):
    """Two images with the same patches in another order, apart by flat borders, are the same bag."""
    model = bagnets[9].eval()
    torch.manual_seed(1)
    patch = [torch.rand(3, 8, 8) for _ in range(2)]
    images = torch.zeros(2, 3, 96, 96)
    for i, order in enumerate(((0, 1), (1, 0))):
        for j, which in enumerate(order):
            images[i, :, 40:48, 16 + 40 * j : 24 + 40 * j] = patch[which]
    with torch.no_grad():
        logits = model(images)
    assert torch.allclose(logits[0], logits[1], atol=1e-4)


def test_keys_of_bagnet_are_those_of_the_checkpoints(bagnets):
    keys = set(bagnets[33].state_dict())
    assert {"conv1.weight", "conv2.weight", "bn1.running_mean", "layer1.0.conv2.weight", "fc.bias"} <= keys
    assert "layer4.0.downsample.1.running_var" in keys
    assert tuple(bagnets[33].state_dict()["layer4.0.conv2.weight"].shape) == (512, 512, 3, 3)
    assert tuple(bagnets[17].state_dict()["layer4.0.conv2.weight"].shape) == (512, 512, 1, 1)


def cmt_parameters(size, widths, stem, depths):
    """Count by hand, from the architecture's table."""
    total = 3 * 9 * stem + stem + 2 * (9 * stem * stem + stem) + 3 * 2 * stem
    inputs, grid = stem, size // 2
    for w, depth, heads, reduce in zip(widths, depths, (1, 2, 4, 8), (8, 4, 2, 1)):
        grid //= 2
        total += 4 * inputs * w + w + 2 * w + heads * grid**2 * (grid // reduce) ** 2
        block = 9 * w + w + 2 * 2 * w + 4 * (w * w + w)
        block += (reduce**2 * w + w + 2 * w) if reduce > 1 else 0
        block += (w * 4 * w + 4 * w + 8 * w) + (9 * 4 * w + 4 * w + 8 * w) + (4 * w * w + w + 2 * w)
        total += depth * block
        inputs = w
    return total + inputs * 1280 + 1280 + 2 * 1280 + 1280 * 1000 + 1000


@pytest.mark.parametrize(
    ("name", "size", "published", "table"),
    [
        ("cmt_s", 224, 25.1e6, ((64, 128, 256, 512), 32, (3, 3, 16, 3))),
        ("cmt_b", 256, 45.7e6, ((76, 152, 304, 608), 38, (4, 4, 20, 4))),
    ],
)
def test_cmt(torch, name, size, published, table):
    cmt = importlib.import_module("cuebench.observers.torch.models.cmt")
    torch.manual_seed(0)
    model = getattr(cmt, name)().eval()
    assert count(model) == cmt_parameters(size, *table)
    assert count(model) == pytest.approx(published, rel=0.05)
    assert model.preprocess.size == size
    with torch.no_grad():
        assert model(torch.rand(1, 3, size, size)).shape == (1, 1000)
    keys = set(model.state_dict())
    assert {"relative_pos_a", "blocks_a.0.attn.sr.0.weight", "blocks_d.0.mlp.proj_bn.weight", "_fc.weight"} <= keys
    assert not any(k.startswith("blocks_d") and ".sr." in k for k in keys)


def test_attention_of_cmt_equals_a_plain_loop(torch):
    cmt = importlib.import_module("cuebench.observers.torch.models.cmt")
    torch.manual_seed(0)
    layer = cmt.Attention(8, 2, 2).eval()
    x, bias = torch.randn(1, 8, 4, 4), torch.randn(2, 16, 4)
    with torch.no_grad():
        found = layer(x, bias)[0].flatten(1).T
        places, coarse = x[0].flatten(1).T, layer.sr(x)[0].flatten(1).T
        q, k, v = layer.q(places), layer.k(coarse), layer.v(coarse)
        for place in range(16):
            mixed = []
            for head in range(2):
                own = slice(4 * head, 4 * head + 4)
                score = torch.tensor([q[place, own] @ k[j, own] / 2 + bias[head, place, j] for j in range(4)])
                mixed.append(score.softmax(0) @ v[:, own])
            assert torch.allclose(layer.proj(torch.cat(mixed)), found[place], atol=1e-5)
