"""Image-text-to-text models of transformers: tiny ones with random weights, whose files are made here."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chat_server import CLASSES, write_pictures

import cuebench
from cuebench.errors import UserError
from cuebench.observers.base import Batch, LoadOptions
from cuebench.observers.load import load
from cuebench.types import Stimulus

pytestmark = [pytest.mark.torch, pytest.mark.xdist_group("torch")]

TEXT: dict[str, Any] = {
    "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
    "num_key_value_heads": 2,
}  # fmt: skip
VISION: dict[str, Any] = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
TEMPLATE = (
    "{% for m in messages %}USER: {% for c in m['content'] %}{% if c['type'] == 'image' %}IMAGE{% else %}"
    "{{ c['text'] }}{% endif %}{% endfor %}{% endfor %}{% if add_generation_prompt %} ASSISTANT:{% endif %}"
)
SIZE = {"height": 32, "width": 32}


def tokenizer(*more: str) -> Any:
    """A tokenizer of bytes: every letter has a token."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    special = ["<pad>", "<unk>", "<s>", "</s>", "<image>", *more]
    vocabulary = [*special, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    core = Tokenizer(models.BPE(vocab={w: i for i, w in enumerate(vocabulary)}, merges=[], unk_token="<unk>"))
    core.pre_tokenizer, core.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token="<pad>", unk_token="<unk>", bos_token="<s>", eos_token="</s>",
        additional_special_tokens=special[4:],
    )  # fmt: skip


def llava(t: Any) -> tuple[Any, Any]:
    words = tokenizer()
    pictures = t.CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size=SIZE)
    processor = t.LlavaProcessor(
        image_processor=pictures, tokenizer=words, patch_size=8, vision_feature_select_strategy="default",
        num_additional_image_tokens=1, chat_template=TEMPLATE.replace("IMAGE", "<image>"),
    )  # fmt: skip
    config = t.LlavaConfig(
        vision_config=t.CLIPVisionConfig(**VISION, image_size=32, patch_size=8).to_dict(),
        text_config=t.LlamaConfig(**TEXT, vocab_size=len(words)).to_dict(),
        image_token_index=words.convert_tokens_to_ids("<image>"),
    )
    return t.LlavaForConditionalGeneration(config), processor


def qwen(t: Any) -> tuple[Any, Any]:
    marks = ("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
    words = tokenizer(*marks)
    start, end, image, video = (words.convert_tokens_to_ids(mark) for mark in marks)
    processor = t.Qwen2VLProcessor(
        image_processor=t.Qwen2VLImageProcessorPil(patch_size=8, merge_size=2, min_pixels=32 * 32, max_pixels=64 * 64),
        tokenizer=words, video_processor=t.Qwen2VLVideoProcessor(patch_size=8, merge_size=2),
        chat_template=TEMPLATE.replace("IMAGE", "<|vision_start|><|image_pad|><|vision_end|>"),
    )  # fmt: skip
    rope = {"type": "mrope", "mrope_section": [1, 1, 2], "rope_type": "default"}
    ends = {"bos_token_id": 2, "eos_token_id": 3}
    config = t.Qwen2VLConfig(
        text_config={**TEXT, "vocab_size": len(words), "rope_scaling": rope, **ends},
        vision_config={"depth": 2, "embed_dim": 16, "hidden_size": 16, "num_heads": 2, "patch_size": 8, "mlp_ratio": 2},
        image_token_id=image, video_token_id=video, vision_start_token_id=start, vision_end_token_id=end, **ends,
    )  # fmt: skip
    return t.Qwen2VLForConditionalGeneration(config), processor


def idefics3(t: Any) -> tuple[Any, Any]:
    """The family of SmolVLM."""
    words = tokenizer("<fake_token_around_image>", "<global-img>", "<end_of_utterance>")
    edge = {"longest_edge": 32}
    pictures = t.Idefics3ImageProcessorPil(size=edge, max_image_size=edge, do_image_splitting=False)
    processor = t.Idefics3Processor(
        image_processor=pictures, tokenizer=words, image_seq_len=4, chat_template=TEMPLATE.replace("IMAGE", "<image>")
    )
    config = t.Idefics3Config(
        vision_config={**VISION, "image_size": 32, "patch_size": 8},
        text_config=t.LlamaConfig(**TEXT, vocab_size=len(words), pad_token_id=0).to_dict(),
        image_token_id=words.convert_tokens_to_ids("<image>"), scale_factor=2, pad_token_id=0,
    )  # fmt: skip
    return t.Idefics3ForConditionalGeneration(config), processor


def paligemma(t: Any) -> tuple[Any, Any]:
    """Has no chat template: it was trained on plain prompts."""
    pictures = t.SiglipImageProcessorPil(size=SIZE)
    pictures.image_seq_length = 16
    processor = t.PaliGemmaProcessor(image_processor=pictures, tokenizer=tokenizer())
    vision = {
        **VISION,
        "model_type": "siglip_vision_model",
        "image_size": 32,
        "patch_size": 8,
        "vision_use_head": False,
    }
    config = t.PaliGemmaConfig(
        vision_config={**vision, "projection_dim": 16},
        text_config={**TEXT, "model_type": "gemma", "head_dim": 8, "vocab_size": len(processor.tokenizer)},
        image_token_index=processor.image_token_id, projection_dim=16, hidden_size=16,
    )  # fmt: skip
    return t.PaliGemmaForConditionalGeneration(config), processor


def internvl(t: Any) -> tuple[Any, Any]:
    words = tokenizer("<img>", "</img>", "<IMG_CONTEXT>", "<video>")
    names = {"start_image": "<img>", "end_image": "</img>", "context_image": "<IMG_CONTEXT>", "video": "<video>"}
    for name, mark in names.items():
        setattr(words, f"{name}_token", mark)
        words.init_kwargs[f"{name}_token"] = mark
        setattr(words, f"{name}_token_id", words.convert_tokens_to_ids(mark))
    processor = t.InternVLProcessor(
        image_processor=t.GotOcr2ImageProcessorPil(size=SIZE, crop_to_patches=False), tokenizer=words,
        video_processor=t.InternVLVideoProcessor(size=SIZE), image_seq_length=4,
        chat_template=TEMPLATE.replace("IMAGE", "<IMG_CONTEXT>"),
    )  # fmt: skip
    config = t.InternVLConfig(
        vision_config={**VISION, "image_size": [32, 32], "patch_size": [8, 8]},
        text_config=t.Qwen2Config(**TEXT, vocab_size=len(words)).to_dict(),
        image_token_id=words.context_image_token_id, downsample_ratio=0.5,
    )  # fmt: skip
    return t.InternVLForConditionalGeneration(config), processor


FAMILIES: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    f.__name__: f for f in (llava, qwen, paligemma, idefics3, internvl)
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return what makes the folder of a model, once."""
    import torch

    from cuebench.observers.torch.torchvision_import import import_torchvision

    import_torchvision()
    import transformers

    transformers.utils.logging.disable_progress_bar()
    root = tmp_path_factory.mktemp("models")

    def make(name: str) -> Path:
        if not (root / name).is_dir():
            torch.manual_seed(0)
            model, processor = FAMILIES[name](transformers)
            model.save_pretrained(root / name)
            processor.save_pretrained(root / name)
        return root / name

    return make


def observer(folder: Path, options: str) -> Any:
    spec = f"transformers:{folder}?pixels=32&max_tokens=4&{options}"
    (loaded,) = load(spec, LoadOptions(device="cpu", offline=True, targets=CLASSES))
    return loaded.among(CLASSES)


def images(count: int = 3) -> Batch:
    pixels = np.random.default_rng(0).integers(0, 256, (count, 32, 32, 3), np.uint8)
    return Batch([Stimulus(f"s{i}") for i in range(count)], pixels)


ALSO = pytest.mark.skipif(os.environ.get("CUEBENCH_FAULTS") != "all", reason="the long form: make faults")


@pytest.mark.parametrize(
    "family", [*list(FAMILIES)[:3], *(pytest.param(name, marks=ALSO) for name in list(FAMILIES)[3:])]
)
def test_every_family_writes_and_weighs_letters(made: Callable[[str], Path], family: str) -> None:
    folder = made(family)
    asked = observer(folder, "prompt=vqa&answer=likelihood")
    batch = images()
    logits = asked.respond(batch, ("logits",))["logits"]
    assert logits.shape == (3, 4)
    assert len(np.unique(logits[:, 0])) == 3  # it looks at the pictures
    alone = asked.respond(Batch(batch.stimuli[1:2], batch.images[1:2]), ("logits",))["logits"]
    np.testing.assert_allclose(alone[0], logits[1], atol=1e-4)
    words = observer(folder, "prompt=vqa").respond(batch, ("decisions",))
    assert set(words) == {"decisions", "read_by", "text"}
    assert len(words["text"]) == 3


def test_the_likelihoods_are_those_of_the_model(made: Callable[[str], Path]) -> None:
    """Against the library itself: one picture, the whole prompt by hand, log-softmax of the last position."""
    import torch
    import transformers
    from PIL import Image

    folder, batch = made("llava"), images(1)
    asked = observer(folder, "prompt=vqa&answer=likelihood&shuffle=3")
    logits = asked.respond(batch, ("logits",))["logits"][0]
    model = transformers.LlavaForConditionalGeneration.from_pretrained(folder).eval()
    processor = transformers.AutoProcessor.from_pretrained(folder)
    text = f"USER: <image>{asked.asking.text} ASSISTANT:"
    inputs = processor(images=Image.fromarray(batch.images[0]), text=text, return_tensors="pt")
    with torch.no_grad():
        following = model(**inputs).logits[0, -1].log_softmax(-1)
    letter = {name: processor.tokenizer.convert_tokens_to_ids("ABCD"[i]) for i, name in enumerate(asked.asking.options)}
    np.testing.assert_allclose(logits, [float(following[letter[name]]) for name in CLASSES], atol=1e-4)


def test_what_it_writes_is_read(made: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    asked = observer(made("llava"), "prompt=vqa")
    written = torch.tensor([asked.tokenizer.encode("B.</s>", add_special_tokens=False)])

    def write(**inputs: Any) -> Any:
        return torch.cat([inputs["input_ids"], written], dim=1)

    monkeypatch.setattr(asked._placed.module, "generate", write)
    answers = asked.respond(images(1), ("decisions",))
    assert answers["decisions"].tolist() == ["dog"]
    assert answers["text"].tolist() == ["B."]


def test_identity(made: Callable[[str], Path]) -> None:
    folder = made("llava")
    specs = ("prompt=vqa", "prompt=vqa_shape", "prompt=vqa&answer=likelihood", "prompt=vqa&shuffle=1", "prompt=caption")
    assert len({observer(folder, options).fingerprint for options in specs}) == len(specs)
    assert observer(folder, "prompt=vqa").fingerprint == observer(folder, "prompt=vqa").fingerprint


def test_bad_input(made: Callable[[str], Path], tmp_path: Path) -> None:
    import transformers

    folder = made("llava")
    with pytest.raises(UserError, match="answers in words, and no prompt") as caught:
        load(f"transformers:{folder}", LoadOptions(device="cpu", offline=True, targets=CLASSES))
    assert "?prompt=vqa" in caught.value.hint
    with pytest.raises(UserError, match="shows no options"):
        observer(folder, "prompt=caption&answer=likelihood")
    with pytest.raises(UserError, match="'horse' is no class"):
        observer(folder, "prompt=vqa&options=cat,horse")
    transformers.LlamaConfig(**TEXT, vocab_size=50, architectures=["LlamaForCausalLM"]).save_pretrained(tmp_path)
    with pytest.raises(UserError, match="type 'llama', which does not answer about pictures"):
        observer(tmp_path, "prompt=vqa")


@pytest.mark.slow
def test_a_run_with_likelihoods(made: Callable[[str], Path], tmp_path: Path) -> None:
    write_pictures(tmp_path / "data", 1, 32)
    scores = cuebench.evaluate(
        f"transformers:{made('llava')}?prompt=vqa&answer=likelihood&pixels=32&name=tiny", "cue_conflict",
        data_root=tmp_path / "data", out=tmp_path / "run", resamples=100, workers=0, device="cpu", offline=True,
    )  # fmt: skip
    row = next(r for r in scores.rows if r.metric == "decided_fraction" and r.condition == "4-way")
    assert row.n == 12
    assert "likelihoods" in row.note


def test_captions_are_matched_by_a_text_encoder(tiny: Any, tmp_path: Path) -> None:
    """The class whose prompt is most similar: for the prompts themselves, that is their own class."""
    pytest.importorskip("open_clip")
    folder = tiny.open_clip_folder(tmp_path / "tiny")
    spec = f"chat:eye?url=http://127.0.0.1:1/v1&prompt=caption&match=open_clip:local-dir:{folder}?weights=random"
    (asked,) = load(spec, LoadOptions(device="cpu", offline=True, targets=("cat", "dog", "car")))
    readings = asked.asking.read(["a photo of a dog", "a photo of a car", "a photo of a cat"])
    assert [tuple(reading) for reading in readings] == [("dog", "match"), ("car", "match"), ("cat", "match")]
