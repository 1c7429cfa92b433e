"""Masks from promptable models and from text prompts, with tiny networks of random weights."""

from __future__ import annotations

import csv
import json
from contextlib import suppress
from importlib.util import find_spec

import numpy as np
import pytest
from PIL import Image

from cuebench.errors import UserError
from cuebench.stimuli.makers.base import make
from cuebench.stimuli.masks import segmenter
from cuebench.stimuli.masks.base import BadSource

pytestmark = [
    pytest.mark.torch,
    pytest.mark.slow,
    pytest.mark.xdist_group("torch"),
    pytest.mark.skipif(find_spec("transformers") is None, reason="needs transformers: pip install 'cuebench[hf]'"),
]
WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", "a", "soccer", "ball", "cat")
IMAGE = np.random.default_rng(0).integers(0, 256, (40, 48, 3), dtype=np.uint8)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Write a Segment Anything model and a Grounding DINO detector of a few thousand random weights."""
    from cuebench.observers.torch.torchvision_import import import_torchvision

    import_torchvision()
    import torch
    import transformers as hf

    torch.manual_seed(0)
    root = tmp_path_factory.mktemp("models")
    vision = hf.SamVisionConfig(
        hidden_size=16, output_channels=8, num_hidden_layers=1, num_attention_heads=2, image_size=32, patch_size=8,
        window_size=2, global_attn_indexes=[0], mlp_dim=16, num_pos_feats=4,
    )  # fmt: skip
    prompts = hf.SamPromptEncoderConfig(hidden_size=8, image_size=32, patch_size=8, mask_input_channels=4)
    decoder = hf.SamMaskDecoderConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=2, mlp_dim=16,
                                      iou_head_hidden_dim=8, iou_head_depth=2)  # fmt: skip
    parts = {"vision_config": vision, "prompt_encoder_config": prompts, "mask_decoder_config": decoder}
    hf.SamModel(hf.SamConfig(**{name: part.to_dict() for name, part in parts.items()})).save_pretrained(root / "sam")
    images = hf.SamImageProcessor(size={"longest_edge": 32}, pad_size={"height": 32, "width": 32},
                                  mask_size={"longest_edge": 8}, mask_pad_size={"height": 8, "width": 8})  # fmt: skip
    hf.SamProcessor(images).save_pretrained(root / "sam")

    backbone = hf.SwinConfig(image_size=96, patch_size=4, embed_dim=8, depths=[1] * 4, num_heads=[1] * 4, window_size=4,
                             out_features=["stage2", "stage3", "stage4"])  # fmt: skip
    text = hf.BertConfig(vocab_size=len(WORDS), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
                         intermediate_size=16, max_position_embeddings=32)  # fmt: skip
    config = hf.GroundingDinoConfig(
        backbone_config=backbone, text_config=text, d_model=32, encoder_layers=1, decoder_layers=2,
        encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, num_queries=6,
        max_text_len=16, encoder_n_points=1, decoder_n_points=1, disable_custom_kernels=True,
    )  # fmt: skip
    hf.GroundingDinoForObjectDetection(config).save_pretrained(root / "dino")
    tokenizer = hf.BertTokenizerFast(vocab={word: i for i, word in enumerate(WORDS)})
    pixels = hf.GroundingDinoImageProcessor(size={"shortest_edge": 96, "longest_edge": 160})
    hf.GroundingDinoProcessor(pixels, tokenizer).save_pretrained(root / "dino")
    return root


@pytest.fixture(scope="module")
def by_hand(models):
    """The two networks, asked without cuebench: ``detect(text)`` and ``mask(box)``."""
    import torch
    import transformers as hf

    detector = hf.GroundingDinoForObjectDetection.from_pretrained(models / "dino").eval()
    words = hf.AutoProcessor.from_pretrained(models / "dino")
    sam = hf.SamModel.from_pretrained(models / "sam").eval()
    pixels = hf.SamProcessor.from_pretrained(models / "sam")

    @torch.inference_mode()
    def detect(text):
        inputs = words(images=IMAGE, text=text, return_tensors="pt")
        out = detector(**inputs)
        scores = out.logits[0].sigmoid().max(dim=1).values
        x, y, w, h = out.pred_boxes[0][scores.argmax()].tolist()  # centre and size, as shares of the image
        box = [48 * (x - w / 2), 40 * (y - h / 2), 48 * (x + w / 2), 40 * (y + h / 2)]
        return box, float(scores.max()), words.tokenizer.convert_ids_to_tokens(inputs["input_ids"][0])

    @torch.inference_mode()
    def mask(**prompt):
        inputs = pixels(images=IMAGE, return_tensors="pt", **prompt)
        out = sam(**inputs)
        masks = pixels.post_process_masks(out.pred_masks, inputs["original_sizes"], inputs["reshaped_input_sizes"])
        return masks[0][0, int(out.iou_scores[0, 0].argmax())].numpy()

    return detect, mask


def test_a_point_in_the_middle(models, by_hand):
    found = segmenter(f"sam:{models / 'sam'}")(IMAGE, "cat")
    assert (found.dtype, found.shape) == (bool, (40, 48))
    assert np.array_equal(found, by_hand[1](input_points=[[[24, 20]]]))


def test_the_mask_in_the_best_box_of_the_named_class(models, by_hand):
    detect, mask = by_hand
    find = segmenter(f"grounded:{models / 'dino'}+{models / 'sam'}?threshold=0")
    for label, text in (("soccer_ball", "a soccer ball."), ("Cat", "a cat.")):
        box, _, tokens = detect(text)
        assert "[UNK]" not in tokens
        assert np.array_equal(find(IMAGE, label), mask(input_boxes=[[box]]))
    assert detect("a soccer ball.")[0] != detect("a cat.")[0]


def test_an_unsure_detector_rejects_the_source(models, by_hand):
    _, score, _ = by_hand[0]("a cat.")
    find = segmenter(f"grounded:{models / 'dino'}+{models / 'sam'}?threshold={min(1, score + 1e-3)}")
    with pytest.raises(BadSource, match=f"found no 'cat': the best box has confidence {score:.2f}"):
        find(IMAGE, "cat")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("grounded:{0}/dino", "two models are needed"),
        ("grounded:{0}/dino+{0}/sam?threshold=2", "threshold"),
        ("grounded:{0}/dino+{0}/sam?thresh=1", "Did you mean 'threshold'"),
        ("grounded:{0}/nothing+{0}/sam", "cannot be loaded"),
        ("sam:{0}/nothing", "segmenter sam:.*cannot be loaded"),
        ("sam:{0}/dino", "cannot be loaded"),
    ],
)
def test_mistakes(models, name, words):
    with pytest.raises(UserError, match=words):
        segmenter(name.format(models))


def test_cues_of_masks_by_text(models, tmp_path):
    """The whole way of the maker: the segmenter's masks are random, so most cues are rejected, each with a reason."""
    for i in range(3):
        path = tmp_path / "source" / "cat" / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.random.default_rng(i).integers(0, 256, (120, 120, 3), dtype=np.uint8)).save(path)
    (tmp_path / "source" / "labels.json").write_text(json.dumps({"targets": {"cat": ["n02123045"]}}))
    options = {"segmenter": f"grounded:{models / 'dino'}+{models / 'sam'}?threshold=0", "allow_bad": True}
    with suppress(UserError):  # where all are rejected, the maker says so; the table is written all the same
        make("refined_bias", tmp_path / "out", source=str(tmp_path / "source"), grids="4", **options)
    rows = list(csv.DictReader((tmp_path / "out" / "refined_bias" / "inspection.csv").open(encoding="utf-8")))
    assert len({row["source"] for row in rows}) == 3
    assert all(row["reason"] or row["verdict"].startswith("accept") for row in rows)
