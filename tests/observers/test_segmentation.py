"""Segmentation observers: any callable, torch modules, torchvision, transformers (SegFormer, Mask2Former), ONNX."""

from __future__ import annotations

import json

import numpy as np
import pytest

import cuebench
from cuebench.errors import UserError
from cuebench.observers.base import Batch, LoadOptions
from cuebench.observers.load import load
from cuebench.observers.masks import _starts, nearest, resized
from cuebench.observers.preprocess import Preprocess
from cuebench.observers.torch.torchvision_import import import_torchvision
from cuebench.types import Stimulus

pytestmark = [pytest.mark.torch, pytest.mark.xdist_group("torch")]

CPU = LoadOptions(device="cpu", offline=True)
PLAIN = Preprocess((12, 16), mean=(0, 0, 0), std=(1, 1, 1))


@pytest.fixture(autouse=True, scope="module")
def _torchvision():
    """transformers imports torchvision, which needs repair first where it was built for another torch."""
    import_torchvision()


def shown(count=3, size=(12, 16), seed=0):
    images = np.random.default_rng(seed).integers(0, 256, (count, *size, 3), np.uint8)
    return Batch([Stimulus(str(i)) for i in range(count)], images)


def test_enlarging_equals_torch():
    import torch

    coarse = np.random.default_rng(1).normal(size=(2, 3, 5, 7)).astype(np.float32)
    for size in ((12, 16), (5, 14), (4, 3)):
        theirs = torch.nn.functional.interpolate(torch.from_numpy(coarse), size, mode="bilinear", align_corners=False)
        np.testing.assert_allclose(resized(coarse, size), theirs.numpy(), atol=1e-6)
    ids = np.arange(6).reshape(1, 2, 3)
    near = torch.nn.functional.interpolate(torch.from_numpy(ids).float()[None], (5, 8), mode="nearest-exact")[0]
    np.testing.assert_array_equal(nearest(ids, (5, 8)), near.numpy())


def test_windows_cover_everything_and_end_at_the_border():
    for length, side, stride in ((10, 4, 3), (10, 10, 10), (11, 4, 4), (3, 3, 1)):
        starts = list(_starts(length, side, stride))
        assert set().union(*(range(s, s + side) for s in starts)) == set(range(length))
        assert starts[-1] == length - side


def test_a_module_and_a_function_answer_alike():
    import torch

    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.AvgPool2d(2))
    names = list("abcd")
    module = cuebench.wrap(net, task="segmentation", preprocess=PLAIN, labels=names, device="cpu")

    def function(x):
        with torch.inference_mode():
            return net(torch.from_numpy(x))

    plain = cuebench.wrap(function, task="segmentation", preprocess=PLAIN, labels=names, fingerprint="f")
    one, other = (o.respond(shown(), ["masks"])["masks"] for o in (module, plain))
    np.testing.assert_array_equal(one, other)
    assert one.shape == (3, 12, 16)
    assert len(np.unique(one)) > 1
    assert module.capabilities == {"masks"}
    again = cuebench.wrap(net, task="segmentation", preprocess=PLAIN, labels=names, device="cpu")
    before = module.fingerprint
    assert before == again.fingerprint
    with torch.no_grad():
        net[0].weight += 1
    assert module.fingerprint == again.fingerprint != before  # the module is looked at, not remembered


def test_overlapping_windows_average_logits():
    """A function that knows how wide its window is: the average over windows can be computed by hand."""
    calls = []

    def function(x):
        calls.append(x.shape[2:])
        return np.stack([x[:, 0], np.full_like(x[:, 0], 0.5)], 1)

    slid = cuebench.wrap(function, task="segmentation", preprocess=PLAIN, labels=["dark", "bright"], fingerprint="f",
                         window=8, stride=6)  # fmt: skip
    found = slid.respond(shown(), ["masks"])["masks"]
    assert set(calls) == {(8, 8)}
    assert len(calls) == 2 * 3
    np.testing.assert_array_equal(found, (shown().images[..., 0] / 255 <= 0.5).astype(int))


def test_wrong_windows_tasks_and_labels_are_refused():
    ids = cuebench.wrap(lambda x: x[:, 0].astype(int), task="segmentation", preprocess=PLAIN, labels=["a"],
                        fingerprint="f", window=4)  # fmt: skip
    with pytest.raises(UserError, match="class numbers, which overlapping windows cannot average"):
        ids.respond(shown(), ["masks"])
    with pytest.raises(UserError, match="task is 'detection'"):
        cuebench.wrap(lambda x: x, task="detection", preprocess=PLAIN)
    with pytest.raises(UserError, match="window 4, stride 5"):
        cuebench.wrap(lambda x: x, task="segmentation", preprocess=PLAIN, labels=["a"], window=4, stride=5)
    with pytest.raises(UserError, match=r"shape \(3, 12\)"):
        cuebench.wrap(lambda x: x[:, 0, :, 0], task="segmentation", preprocess=PLAIN, labels=["a"]).respond(
            shown(), ["masks"]
        )
    with pytest.raises(UserError, match="has a window, but is no segmentation"):
        load("torchvision:alexnet?window=3", CPU)
    with pytest.raises(UserError, match="task='segment'"):
        load("torchvision:alexnet?task=segment", CPU)


def test_torchvision_segmentation():
    (observer,) = load(
        "torchvision:lraspp_mobilenet_v3_large?task=segmentation&weights=random&seed=1&preprocess.size=64", CPU
    )
    assert observer.labels.name == "voc21"
    assert observer.preprocess.hw == (64, 64)
    masks = observer.respond(shown(2, (64, 64)), ["masks"])["masks"]
    assert masks.shape == (2, 64, 64)
    assert masks.max() < 21
    with pytest.raises(UserError, match="Did you mean 'deeplabv3_resnet50'"):
        load("torchvision:deeplab_resnet50?task=segmentation", CPU)


def processor(folder, kind, **more):
    scaling = {"do_rescale": True, "rescale_factor": 1 / 255, "do_resize": True, "size": {"height": 32, "width": 32}}
    normal = {"do_normalize": True, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    body = {"image_processor_type": kind, **scaling, **normal, **more}
    (folder / "preprocessor_config.json").write_text(json.dumps(body))


def test_segformer_of_transformers(tmp_path):
    import torch
    import transformers

    config = transformers.SegformerConfig(
        num_labels=3, hidden_sizes=[8, 8, 8, 8], depths=[1] * 4, num_attention_heads=[1] * 4, decoder_hidden_size=8,
        id2label={0: "red", 1: "green", 2: "blue"},
    )  # fmt: skip
    torch.manual_seed(0)
    model = transformers.SegformerForSemanticSegmentation(config).eval()
    model.save_pretrained(tmp_path)
    processor(tmp_path, "SegformerImageProcessor")
    (observer,) = load(f"transformers:{tmp_path}?task=segmentation", CPU)
    assert observer.labels.names == ("red", "green", "blue")
    batch = shown(2, (32, 32))
    found = observer.respond(batch, ["masks"])["masks"]
    pixels = torch.from_numpy((batch.images / 255 - 0.5) / 0.5).permute(0, 3, 1, 2).float()
    with torch.inference_mode():
        logits = model(pixel_values=pixels).logits
        expected = torch.nn.functional.interpolate(logits, (32, 32), mode="bilinear", align_corners=False).argmax(1)
    assert (found == expected.numpy()).mean() > 0.999


def test_mask2former_of_transformers_agrees_with_its_own_post_processing(tmp_path):
    import torch
    import transformers

    backbone = transformers.SwinConfig(
        image_size=64, embed_dim=32, depths=[1, 1, 1, 1], num_heads=[1, 1, 2, 2], window_size=2,
        out_features=["stage1", "stage2", "stage3", "stage4"],
    )  # fmt: skip
    config = transformers.Mask2FormerConfig(
        backbone_config=backbone, feature_size=32, mask_feature_size=32, hidden_dim=32, encoder_feedforward_dim=32,
        dim_feedforward=32, encoder_layers=1, decoder_layers=2, num_attention_heads=2, num_queries=5, num_labels=4,
    )  # fmt: skip
    torch.manual_seed(0)
    model = transformers.Mask2FormerForUniversalSegmentation(config).eval()
    model.save_pretrained(tmp_path)
    processor(tmp_path, "Mask2FormerImageProcessor", size={"height": 64, "width": 64})
    (observer,) = load(f"transformers:{tmp_path}?task=segmentation", CPU)
    batch = shown(2, (64, 64))
    found = observer.respond(batch, ["masks"])["masks"]
    pixels = torch.from_numpy((batch.images / 255 - 0.5) / 0.5).permute(0, 3, 1, 2).float()
    with torch.inference_mode():
        output = model(pixel_values=pixels)
    own = transformers.Mask2FormerImageProcessor().post_process_semantic_segmentation(output, [(64, 64)] * 2)
    # Theirs enlarges the masks before the product, ours the product: they may differ along the edges of regions.
    assert np.mean([(a == b.numpy()).mean() for a, b in zip(found, own)]) > 0.97


@pytest.fixture
def onnx_segmenter(tmp_path):
    """Class k is the k-th of three colours: a 1×1 convolution."""
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    weight = helper.make_tensor("w", kind, [3, 3, 1, 1], np.eye(3, dtype=np.float32).ravel())
    node = helper.make_node("Conv", ["pixels", "w"], ["logits"])
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("pixels", kind, ["n", 3, 12, 16])],
                              [helper.make_tensor_value_info("logits", kind, ["n", 3, 12, 16])], [weight])  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, tmp_path / "s.onnx")
    (tmp_path / "rgb.json").write_text('["red", "green", "blue"]')
    return f"onnx:{tmp_path / 's.onnx'}?task=segmentation&labels={tmp_path / 'rgb.json'}&mean=0&std=1"


def test_onnx_segmentation(onnx_segmenter):
    (observer,) = load(onnx_segmenter, CPU)
    found = observer.respond(shown(), ["masks"])["masks"]
    np.testing.assert_array_equal(found, shown().images.argmax(-1))
    (wrong,) = load(onnx_segmenter.partition("&labels")[0] + "&labels=voc21&mean=0&std=1", CPU)
    with pytest.raises(UserError, match="3 logits for each pixel, but its label space 'voc21' has 21"):
        wrong.respond(shown(), ["masks"])


def test_half_precision_weights_answer(tmp_path):
    """Stored as float16, loaded as float32; a user's own half-precision module gets half-precision pixels."""
    torch, t = pytest.importorskip("torch"), pytest.importorskip("transformers")
    sizes = {"hidden_sizes": [8] * 4, "depths": [1] * 4, "num_attention_heads": [1] * 4, "decoder_hidden_size": 8}
    t.SegformerForSemanticSegmentation(t.SegformerConfig(num_labels=4, **sizes)).half().save_pretrained(tmp_path)
    t.SegformerImageProcessorPil(size={"height": 32, "width": 32}).save_pretrained(tmp_path)
    (loaded,) = load(f"transformers:{tmp_path}?task=segmentation", CPU)
    assert loaded.precision == "float32"
    images = np.zeros((1, 32, 32, 3), np.uint8)
    assert loaded.respond(Batch([Stimulus("x")], images), ["masks"])["masks"].shape == (1, 32, 32)
    own = cuebench.wrap(torch.nn.Conv2d(3, 4, 1).half(), task="segmentation", preprocess=Preprocess(32),
                        labels=list("abcd"), device="cpu")  # fmt: skip
    assert own.precision == "float16"
    assert own.respond(Batch([Stimulus("x")], images), ["masks"])["masks"].shape == (1, 32, 32)


def test_a_window_that_covers_everything_is_refused_and_a_larger_input_slides(tmp_path):
    """An ONNX file of fixed size slides over larger images; a window as large as the input would slide nowhere."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnxruntime")
    from cuebench.observers.base import Batch, LoadOptions
    from cuebench.observers.load import load
    from cuebench.types import Stimulus

    file = tmp_path / "tiny.onnx"
    torch.onnx.export(torch.nn.Conv2d(3, 2, 1), torch.zeros(1, 3, 16, 16), file, dynamo=False)
    options = "task=segmentation&labels=" + str(tmp_path / "two.json")
    (tmp_path / "two.json").write_text('["a", "b"]')
    with pytest.raises(UserError, match="covers the whole input of 16×16"):
        load(f"onnx:{file}?{options}&window=16&stride=8", LoadOptions())
    with pytest.raises(UserError, match="takes 16×16 pixels, not size=40"):
        load(f"onnx:{file}?{options}&size=40", LoadOptions())
    (observer,) = load(f"onnx:{file}?{options}&window=16&stride=8&size=24x40&resize=24x40&crop=false", LoadOptions())
    images = np.random.default_rng(0).integers(0, 256, (2, 24, 40, 3), dtype=np.uint8)
    found = observer.respond(Batch([Stimulus("0"), Stimulus("1")], images), ["masks"])["masks"]
    assert found.shape == (2, 24, 40)
    assert set(np.unique(found)) <= {0, 1}


def test_a_module_can_leave_a_device_and_comes_back(monkeypatch):
    torch = pytest.importorskip("torch")
    from cuebench.observers.torch.placement import Placed

    placed = Placed(torch.nn.Conv2d(3, 2, 1), "cpu", "float32", frozen=True)
    assert placed.memory == 0
    placed.device = torch.device("meta")  # stands for a GPU: weights that are there cannot be read here
    assert placed.memory == (3 * 2 + 2) * 4
    placed.release()
    assert next(placed.module.parameters()).device.type == "cpu"
    placed.run(lambda x: x, torch.zeros(1, 3, 4, 4))
    assert next(placed.module.parameters()).device.type == "meta"


@pytest.mark.parametrize("fit", ["native", "pad"])
def test_images_of_many_sizes_are_shown_without_being_squeezed(fit):
    """Each image reaches the function at its own size, and the answer fills the frame again without losing a pixel."""
    from PIL import Image

    seen = []

    def function(x):
        seen.append(x.shape[2:])
        return np.stack([x[:, 0] * 0 + 0.5, x[:, 0]], 1)

    preprocess = Preprocess((12, 16), mean=(0, 0, 0), std=(1, 1, 1), fit=fit, interpolation="nearest")
    observer = cuebench.wrap(function, task="segmentation", preprocess=preprocess, labels=["a", "b"], fingerprint="f")
    rng = np.random.default_rng(0)
    sizes = [(6, 8), (12, 5), (6, 8), (24, 20)]
    pictures = [rng.integers(0, 2, (*size, 3), np.uint8) * 255 for size in sizes]
    frames = np.stack([preprocess.geometry.apply(Image.fromarray(p)) for p in pictures])
    stimuli = [Stimulus(str(i), height=h, width=w) for i, (h, w) in enumerate(sizes)]
    masks = observer.respond(Batch(stimuli, frames), ["masks"])["masks"]
    shown = {"native": {(6, 8), (12, 5), (12, 10)}, "pad": {(12, 16), (12, 5), (12, 10)}}[fit]
    assert set(seen) == shown
    for picture, mask, (height, width) in zip(pictures, masks, sizes):
        back = np.asarray(Image.fromarray(mask.astype(np.int32)).resize((width, height), Image.Resampling.NEAREST))
        if max(height / 12, width / 16) <= 1:
            np.testing.assert_array_equal(back, picture[..., 0] > 127)
    with pytest.raises(UserError, match="size of 'x' is not known"):
        observer.respond(Batch([Stimulus("x")], frames[:1]), ["masks"])


def test_the_usual_preprocessing_keeps_its_key():
    assert "fit" not in Preprocess(32).describe()
    assert Preprocess(32, fit="native").describe()["fit"] == "native"
    assert Preprocess(32, fit="native").whole_image().geometry == Preprocess(32, fit="native").geometry
