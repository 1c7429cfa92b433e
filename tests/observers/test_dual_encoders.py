"""transformers and open_clip: from a folder, against the library's own answers."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image

from cuebench.errors import UserError
from cuebench.observers.base import Batch, LoadOptions
from cuebench.observers.conformance import check_observer
from cuebench.observers.load import load
from cuebench.types import Stimulus

pytestmark = [pytest.mark.torch, pytest.mark.xdist_group("torch")]
torch = pytest.importorskip("torch")
OFFLINE = LoadOptions(device="cpu", offline=True)
NAMES = ["cat", "dog", "car"]


@pytest.fixture(scope="module", autouse=True)
def libraries():
    from cuebench.observers.torch.torchvision_import import import_torchvision

    import_torchvision()
    pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def labels(tmp_path_factory):
    file = tmp_path_factory.mktemp("labels") / "labels.json"
    file.write_text(json.dumps(NAMES))
    return file


def picture(width=53, height=41):
    return Image.fromarray(np.random.default_rng(2).integers(0, 256, (height, width, 3), dtype=np.uint8))


def shown(observer, image):
    return Batch([Stimulus("x")], observer.preprocess.geometry.apply(image)[None])


@pytest.mark.parametrize("kind", ["clip", "siglip", "align", "flava"])
def test_dual_encoder_answers_as_transformers(kind, tiny, labels, tmp_path):
    import transformers

    folder = tiny.dual_encoder(tmp_path / kind, kind)
    (observer,) = load(f"transformers:{folder}?labels={labels}", OFFLINE)
    check_observer(observer)
    assert observer.settings["templates"] == ["a photo of a {class}"]
    assert observer.settings["image_processor"].endswith("(pil)")
    if kind == "flava":  # its own forward pass has no zero-shot logits
        return
    model = transformers.AutoModel.from_pretrained(folder).eval()
    processor = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    tokens = transformers.AutoTokenizer.from_pretrained(folder)(
        [f"a photo of a {n}" for n in NAMES],
        return_tensors="pt",
        padding="max_length" if kind == "siglip" else True,
        max_length=16,
        truncation=True,
    )
    tokens = {k: tokens[k] for k in ("input_ids", *(() if kind == "siglip" else ("attention_mask",)))}
    with torch.inference_mode():
        theirs = model(**tokens, pixel_values=processor(images=picture(), return_tensors="pt")["pixel_values"])
    ours = observer.respond(shown(observer, picture()), ["logits"])["logits"]
    np.testing.assert_allclose(ours, theirs.logits_per_image.numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["vit", "resnet", "convnext"])
def test_classifier_answers_as_transformers(kind, tiny, tmp_path):
    import transformers

    folder = tiny.classifier(tmp_path / kind, kind)
    (observer,) = load(f"transformers:{folder}", OFFLINE)
    assert observer.labels.name == "imagenet1k"
    assert observer.capabilities == {"logits", "features"}
    model = transformers.AutoModelForImageClassification.from_pretrained(folder).eval()
    processor = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    with torch.inference_mode():
        theirs = model(**processor(images=picture(), return_tensors="pt")).logits.numpy()
    ours = observer.respond(shown(observer, picture()), ["logits"])["logits"]
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_an_untrained_head_is_refused(tiny, tmp_path):
    import transformers

    folder = tiny.classifier(tmp_path / "vit", "vit")
    config = (folder / "config.json").read_text()
    transformers.ViTModel.from_pretrained(folder).save_pretrained(folder)
    (folder / "config.json").write_text(config)  # says that it has a head
    with pytest.raises(UserError, match="do not fit ViTForImageClassification") as error:
        load(f"transformers:{folder}", OFFLINE)
    assert "missing classifier.weight" in error.value.message
    (random,) = load(f"transformers:{folder}?weights=random&seed=1", OFFLINE)
    assert "random weights, seed 1" in random.notes[0]


def test_a_processor_that_cannot_be_translated_is_refused(tiny, tmp_path):
    folder = tiny.classifier(tmp_path / "vit", "vit")
    file = folder / "preprocessor_config.json"
    config = json.loads(file.read_text())
    file.write_text(json.dumps({**config, "size": {"shortest_edge": 32, "longest_edge": 64}}))
    with pytest.raises(UserError, match="no fixed input size"):
        load(f"transformers:{folder}", OFFLINE)
    from cuebench.observers.preprocess import Preprocess
    from cuebench.observers.verify_preprocess import same_input

    with pytest.raises(UserError, match="cannot be expressed exactly"):
        same_input(Preprocess(32), lambda image: Preprocess(32, mean=(0.4, 0.4, 0.4)).apply(image), "another")


def test_templates_change_the_answer_and_the_key(tiny, labels, tmp_path):
    folder = tiny.dual_encoder(tmp_path / "clip", "clip")
    file = tmp_path / "templates.txt"
    file.write_text("# two prompts\na photo of a {class}\na sketch of a {class}\n")
    one, two = (load(f"transformers:{folder}?labels={labels}{t}", OFFLINE)[0] for t in ("", f"&templates={file}"))
    assert one.fingerprint != two.fingerprint
    assert len(two.settings["templates"]) == 2
    file.write_text("a photo\n")
    with pytest.raises(UserError, match=r"does not contain \{class\}"):
        load(f"transformers:{folder}?labels={labels}&templates={file}", OFFLINE)


def test_missing_folder_and_offline_repository():
    with pytest.raises(UserError, match=r"there is no folder \./nowhere"):
        load("transformers:./nowhere", OFFLINE)
    with pytest.raises(UserError, match="offline was asked for") as error:
        load("transformers:no-such-organisation/no-such-model", OFFLINE)
    assert "HF_ENDPOINT" in error.value.hint


class TestOpenClip:
    def test_answers_as_open_clip(self, tiny, labels, tmp_path):
        open_clip = pytest.importorskip("open_clip")
        name = f"local-dir:{tiny.open_clip_folder(tmp_path / 'tiny')}"
        (observer,) = load(f"open_clip:{name}?labels={labels}&weights=random&seed=3", OFFLINE)
        check_observer(observer)
        torch.save(observer.module.state_dict(), tmp_path / "tiny" / "open_clip_pytorch_model.bin")
        (again,) = load(f"open_clip:{name}?labels={labels}", OFFLINE)
        assert again.weights_sha256 == observer.weights_sha256
        model, _, transform = open_clip.create_model_and_transforms(name)
        text = open_clip.get_tokenizer(name)([f"a photo of a {n}" for n in NAMES])
        with torch.inference_mode():
            image, words, scale = model.eval()(transform(picture())[None], text)[:3]
        ours = observer.respond(shown(observer, picture()), ["logits"])["logits"]
        np.testing.assert_allclose(ours, (scale * image @ words.T).numpy(), rtol=1e-4, atol=1e-4)

    def test_mistakes(self, tiny, tmp_path):
        pytest.importorskip("open_clip")
        with pytest.raises(UserError, match="Did you mean 'ViT-B-32'"):
            load("open_clip:ViT-B-23", OFFLINE)
        with pytest.raises(UserError, match="needs weights=TAG") as error:
            load("open_clip:ViT-B-32", OFFLINE)
        assert "laion2b_s34b_b79k" in error.value.hint
        with pytest.raises(UserError, match="Did you mean 'openai'"):
            load("open_clip:ViT-B-32?weights=openia", OFFLINE)
        with pytest.raises(UserError, match="Required pretrained weights"):
            load(f"open_clip:local-dir:{tiny.open_clip_folder(tmp_path / 'bare')}", OFFLINE)


def test_the_head_is_float32_whatever_the_encoder_is():
    from cuebench.observers.adapters._zero_shot import unit, zero_shot_route

    torch.manual_seed(0)
    text, images = unit(torch.randn(1000, 64)), torch.randn(8, 64)
    way = zero_shot_route(lambda x: x, text, 100.0)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half = way.forward(images, False).logits
    assert torch.equal(half, way.forward(images, False).logits)
