"""timm, torchvision, checkpoint, torchscript, python and lite: random weights, files, errors."""

from __future__ import annotations

import numpy as np
import pytest

from cuebench.errors import UserError
from cuebench.observers.base import Batch, LoadOptions
from cuebench.observers.conformance import check_observer
from cuebench.observers.load import load
from cuebench.types import Stimulus

pytestmark = [pytest.mark.torch, pytest.mark.xdist_group("torch")]
torch = pytest.importorskip("torch")
CPU = LoadOptions(device="cpu", offline=True)


@pytest.fixture(scope="module")
def mine(tmp_path_factory, tiny):
    return tiny.checkpointed(tmp_path_factory.mktemp("mine"))


def answers(observer, needs=("logits",)):
    pixels = np.random.default_rng(0).integers(0, 256, (2, *observer.preprocess.hw, 3), dtype=np.uint8)
    return observer.respond(Batch([Stimulus("a"), Stimulus("b")], pixels), needs)


@pytest.mark.parametrize(
    "spec",
    [
        "timm:test_vit?weights=random&seed=1",
        "timm:test_resnet?weights=random",
        "timm:test_efficientnet?weights=random&preprocess.size=64&preprocess.resize=72",
        "timm:deit_tiny_distilled_patch16_224?weights=random",
        "torchvision:squeezenet1_1?weights=random&preprocess.size=64",
        "torchvision:shufflenet_v2_x0_5?weights=random&preprocess.size=64",
        "lite:efficientnet_lite0?weights=random&preprocess.size=64",
    ],
)
def test_random_weights_keep_the_contract(spec):
    (observer,) = load(spec, CPU)
    assert observer.name == spec
    assert observer.capabilities == {"logits", "features"}
    assert any("random weights" in note for note in observer.notes)
    assert len(observer.labels) == 1000
    check_observer(observer)


def test_the_seed_decides_and_the_callers_generator_is_left_alone():
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    a, b = (load("timm:test_vit?weights=random&seed=1", CPU)[0] for _ in range(2))
    assert torch.equal(torch.rand(1), expected)
    other = load("timm:test_vit?weights=random&seed=2", CPU)[0]
    assert a.fingerprint == b.fingerprint != other.fingerprint
    run_seed = load("timm:test_vit?weights=random", LoadOptions(device="cpu", seed=2))[0]
    assert run_seed.fingerprint == other.fingerprint


@pytest.mark.parametrize(
    "spec", ["timm:test_vit", "torchvision:shufflenet_v2_x0_5", "lite:efficientnet_lite0?preprocess.size=64"]
)
def test_random_weights_have_a_head_for_the_classes_that_are_named(spec, mine):
    separator = "&" if "?" in spec else "?"
    (observer,) = load(f"{spec}{separator}weights=random&labels={mine}/labels.json", CPU)
    assert observer.labels.names == ("cat", "dog", "car")
    assert answers(observer)["logits"].shape == (2, 3)


def test_logits_are_the_same_with_and_without_features():
    observer = load("timm:test_vit?weights=random", CPU)[0]
    np.testing.assert_allclose(
        answers(observer)["logits"], answers(observer, ("logits", "features"))["logits"], rtol=1e-5, atol=1e-6
    )


class TestTimm:
    def test_label_spaces(self):
        import timm

        from cuebench.observers.timm_data import label_space_of

        big = label_space_of(timm.create_model("test_vit", num_classes=11821))
        assert (len(big), len(big.ids)) == (11821, 11821)
        assert big.ids[0].startswith("n")
        offset = label_space_of(timm.create_model("test_vit", num_classes=1001))
        assert offset.find("n01440764") == 1
        with pytest.raises(UserError, match="17 classes"):
            label_space_of(timm.create_model("test_vit", num_classes=17))

    def test_the_test_size_is_an_option(self):
        sizes = [
            load(f"timm:resnet10t?weights=random&test_size={size}", CPU)[0].preprocess.hw[0] for size in ("no", "yes")
        ]
        assert sizes == [176, 224]

    def test_unknown_names(self):
        with pytest.raises(UserError, match="Did you mean 'resnet50'"):
            load("timm:resnet5o", CPU)
        with pytest.raises(UserError, match="unknown weights of timm model 'resnet50'"):
            load("timm:resnet50.a9_in1k", CPU)

    def test_offline_says_which_file_is_wanted(self, monkeypatch, tmp_path):
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
        with pytest.raises(UserError, match=r"model.safetensors of the hub's repository timm/test_vit.r160_in1k") as e:
            load("timm:test_vit", CPU)
        assert "checkpoint=FILE" in e.value.hint
        assert "HF_ENDPOINT" in e.value.hint

    def test_padding_crops_are_refused(self):
        import timm

        from cuebench.observers.timm_data import preprocess_of

        model = timm.create_model("test_vit")
        model.pretrained_cfg = {**model.pretrained_cfg, "crop_mode": "border"}
        with pytest.raises(UserError, match="pads the image"):
            preprocess_of(model)

    def test_a_checkpoint_of_the_users(self, tmp_path):
        import timm

        model = timm.create_model("test_vit")
        torch.save({"state_dict": {f"module.{k}": v for k, v in model.state_dict().items()}}, tmp_path / "mine.pt")
        observer = load(f"timm:test_vit?checkpoint={tmp_path}/mine.pt", CPU)[0]
        assert observer.notes[0] == "weights 'state_dict' of the checkpoint"
        assert "prefix 'module.'" in observer.notes[1]
        from cuebench.observers.torch.fingerprint import hash_module

        assert observer.weights_sha256 == hash_module(model)


class TestTorchvision:
    def test_unknown_names(self):
        with pytest.raises(UserError, match="Did you mean 'resnet50'"):
            load("torchvision:resnet5o", CPU)
        with pytest.raises(UserError, match="known: DEFAULT, IMAGENET1K_V1, IMAGENET1K_V2, random"):
            load("torchvision:resnet50?weights=V3", CPU)

    def test_offline_says_where_the_file_goes(self, monkeypatch, tmp_path):
        monkeypatch.setenv("TORCH_HOME", str(tmp_path))
        with pytest.raises(UserError, match="offline was asked for") as error:
            load("torchvision:alexnet", CPU)
        assert f"{tmp_path}/hub/checkpoints/alexnet-owt-7be5be79.pth" in error.value.hint

    def test_a_cached_file_works_offline(self, monkeypatch, tmp_path):
        from torchvision import models

        monkeypatch.setenv("TORCH_HOME", str(tmp_path))
        weights = models.ShuffleNet_V2_X0_5_Weights.DEFAULT
        place = tmp_path / "hub" / "checkpoints" / weights.url.rsplit("/", 1)[1]
        place.parent.mkdir(parents=True)
        torch.save(models.shufflenet_v2_x0_5().state_dict(), place)
        observer = load("torchvision:shufflenet_v2_x0_5", CPU)[0]
        assert observer.notes == ("weights IMAGENET1K_V1",)


class TestCheckpoint:
    def save(self, mine, **extra):
        from cuebench.observers.adapters.python import factory_of

        model = factory_of(f"{mine}/my_models.py:net")()
        torch.save(model.state_dict() | extra, mine / "net.pt")
        return f"arch=python:{mine}/my_models.py:net&labels={mine}/labels.json"

    def test_a_users_module(self, mine):
        options = self.save(mine)
        (observer,) = load(f"checkpoint:{mine}/net.pt?{options}&preprocess.size=24&name=mine", CPU)
        assert observer.name == "mine"
        assert "assumed" in observer.notes[0]
        assert "size by the user" in observer.preprocess.source
        check_observer(observer)

    @pytest.mark.parametrize(
        ("name", "size", "resize", "how"),
        [
            ("inception_v3", 299, 342, "bilinear"),
            ("efficientnet_b4", 380, 384, "bicubic"),
            ("vit_h_14", 518, 518, "bicubic"),
        ],
    )
    def test_the_published_preprocessing_of_an_architecture(self, name, size, resize, how):
        from cuebench.observers.adapters.checkpoint import _preprocess

        chosen = _preprocess(f"torchvision:{name}", None)
        assert (chosen.hw[0], chosen.resize, chosen.interpolation, chosen.centre) == (size, resize, how, "down")

    def test_all_that_is_assumed_is_noted(self, tmp_path):
        from torchvision import models

        torch.save(models.shufflenet_v2_x0_5(num_classes=1000).state_dict(), tmp_path / "net.pt")
        spec = f"checkpoint:{tmp_path}/net.pt?arch=torchvision:shufflenet_v2_x0_5&preprocess.mean=0.5"
        (note,) = load(spec, CPU)[0].notes
        for said in ("size 224", "resize 256", "interpolation bilinear", "centre down", "std (0.229", "IMAGENET1K_V1"):
            assert said in note
        assert "mean" not in note

    def test_one_rule_for_several_state_dicts(self, mine, tmp_path):
        options = self.save(mine)
        trained = torch.load(mine / "net.pt", weights_only=True)
        averaged = {f"module.{k}": torch.zeros_like(v) for k, v in trained.items()} | {"n_averaged": torch.tensor(3)}
        torch.save({"state_dict": trained, "epoch": 3, "state_dict_ema": averaged}, tmp_path / "both.pt")
        torch.save({"model": trained}, tmp_path / "one.pt")

        def found(file, query=""):
            observer = load(f"checkpoint:{tmp_path}/{file}?{options}{query}", CPU)[0]
            return bool(observer.module.head.weight.any()), observer.notes[0]

        ema = "weights 'state_dict_ema' (and not 'state_dict') of the checkpoint"
        assert found("both.pt") == found("both.pt", "&ema=true") == (False, ema)
        own = (True, "weights 'state_dict' (and not 'state_dict_ema') of the checkpoint")
        assert found("both.pt", "&ema=false") == own
        assert found("one.pt") == found("one.pt", "&ema=no") == (True, "weights 'model' of the checkpoint")
        with pytest.raises(UserError, match="holds no moving average"):
            found("one.pt", "&ema=true")
        with pytest.raises(UserError, match="ema= but no checkpoint="):
            load("timm:test_vit?weights=random&ema=true", CPU)

    def test_all_misfits_at_once(self, mine):
        options = self.save(mine, surplus=torch.ones(1), **{"head.weight": torch.ones(3, 9)})
        with pytest.raises(UserError, match="2 problems") as error:
            load(f"checkpoint:{mine}/net.pt?{options}", CPU)
        assert "unexpected key surplus" in error.value.message
        assert "head.weight: shape (3, 9), the model has (3, 8)" in error.value.message

    def test_code_in_a_pickle_is_refused_and_not_run(self, mine, tmp_path):
        class Evil:
            def __reduce__(self):
                return (open, (str(tmp_path / "pwned"), "w"))

        torch.save({"state_dict": Evil()}, tmp_path / "evil.pt")
        with pytest.raises(UserError, match="would run code from the file, which cuebench refuses") as error:
            load(f"checkpoint:{tmp_path}/evil.pt?{self.save(mine)}", CPU)
        assert "torch.save(" in error.value.hint
        assert not (tmp_path / "pwned").exists()

    def test_damaged_files(self, mine, tmp_path):
        options = self.save(mine)
        (tmp_path / "cut.pt").write_bytes((mine / "net.pt").read_bytes()[:300])
        (tmp_path / "page.safetensors").write_text("<html>not weights</html>")
        (tmp_path / "empty.pt").touch()
        for name, message in [("cut.pt", "cut.pt"), ("page.safetensors", "not a whole"), ("empty.pt", "is empty")]:
            with pytest.raises(UserError, match=message):
                load(f"checkpoint:{tmp_path}/{name}?{options}", CPU)

    def test_the_architecture_is_needed(self, mine):
        self.save(mine)
        with pytest.raises(UserError, match="do not say what network"):
            load(f"checkpoint:{mine}/net.pt", CPU)
        with pytest.raises(UserError, match="Did you mean 'torchvision'"):
            load(f"checkpoint:{mine}/net.pt?arch=torchvison:x", CPU)


class TestTorchScript:
    @pytest.mark.parametrize("how", ["script", "trace"])
    @pytest.mark.filterwarnings("ignore::DeprecationWarning")
    def test_answers_as_the_module(self, mine, how):
        from cuebench.observers.adapters.python import factory_of

        model = factory_of(f"{mine}/my_models.py:net")().eval()
        saved = torch.jit.script(model) if how == "script" else torch.jit.trace(model, torch.rand(1, 3, 24, 24))
        saved.save(mine / "net.ts")
        spec = f"torchscript:{mine}/net.ts?labels={mine}/labels.json&preprocess.size=24"
        (observer,) = load(spec, CPU)
        assert observer.capabilities == {"logits", "features"}
        check_observer(observer)
        both = answers(observer, ("logits", "features"))
        with torch.inference_mode():
            np.testing.assert_allclose(model.head(torch.from_numpy(both["features"])), both["logits"], atol=1e-5)

    def test_not_a_script(self, mine):
        with pytest.raises(UserError, match="not a TorchScript file"):
            load(f"torchscript:{mine}/labels.json", CPU)


class TestPython:
    def test_file_and_module(self, mine, monkeypatch):
        monkeypatch.syspath_prepend(mine)
        specs = [
            f"python:{where}:ready?labels={mine}/labels.json&seed=1" for where in (f"{mine}/my_models.py", "my_models")
        ]
        first, second = (load(spec, CPU)[0] for spec in specs)
        assert first.preprocess.hw == (24, 24)
        assert first.fingerprint == second.fingerprint
        check_observer(first)

    def test_a_checkpoint_is_noted(self, mine):
        from cuebench.observers.adapters.python import factory_of

        model = factory_of(f"{mine}/my_models.py:ready")()
        torch.save({"model": model.state_dict()}, mine / "ready.pt")
        spec = f"python:{mine}/my_models.py:ready?labels={mine}/labels.json&checkpoint={mine}/ready.pt"
        assert "weights 'model' of the checkpoint" in load(spec, CPU)[0].notes

    def test_a_function(self, mine):
        spec = f"python:{mine}/my_models.py:function?labels={mine}/labels.json&fingerprint=v1"
        (observer,) = load(spec, CPU)
        assert observer.capabilities == {"logits"}
        check_observer(observer)

    def test_mistakes(self, mine):
        with pytest.raises(UserError, match="Did you mean 'ready'"):
            load(f"python:{mine}/my_models.py:redy", CPU)
        with pytest.raises(UserError, match="number is int, not a function"):
            load(f"python:{mine}/my_models.py:number", CPU)
        with pytest.raises(UserError, match="preprocessing of Net is not known") as error:
            load(f"python:{mine}/my_models.py:net", CPU)
        assert "preprocess.size" in error.value.hint


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("weights=random&checkpoint=x.pt", "both weights=random and checkpoint="),
        ("seed=one", "seed='one': expected a whole number"),
        ("weights=randm", "weights='randm': expected one of random. Did you mean 'random'"),
        ("weights=random&preprocess.mean=a,b,c", "preprocess.mean='a,b,c': expected 1 or 3 numbers"),
        ("weights=random&preprocess.mean=1,2", "expected 1 or 3 numbers"),
        ("weights=random&preprocess.size=0", "preprocess.size='0': expected 1 or 2 whole numbers ≥ 1"),
        ("weights=random&preprocess.size=2x3x4", "expected 1 or 2 whole numbers"),
        ("weights=random&preprocess.scale=big&seed=x", "2 problems"),
        ("weights=random&preprocess.crop=maybe", "true or false"),
        ("weights=random&preprocess.centre=left", "even"),
        ("weights=random&preprocess.interpolation=cubic", "Did you mean 'bicubic'"),
        (
            "wieghts=random",
            "unknown option of observer .*: 'wieghts'. Did you mean 'weights'",
        ),
    ],
)
def test_bad_options(query, message):
    with pytest.raises(UserError, match=message) as error:
        load(f"timm:test_vit?{query}", CPU)
    assert "'timm:test_vit?" in error.value.message


def test_options_change_the_preprocessing_and_say_so():
    wanted = {
        "mean": "0.5",
        "std": "1,2,3",
        "resize": "99x98",
        "crop": "no",
        "size": "64",
        "centre": "down",
        "scale": "1",
    }
    query = "&".join(f"preprocess.{key}={value}" for key, value in wanted.items())
    chosen = load(f"timm:test_vit?weights=random&{query}", CPU)[0].preprocess
    assert (chosen.mean, chosen.std, chosen.resize, chosen.crop, chosen.size) == (
        (0.5, 0.5, 0.5),
        (1.0, 2.0, 3.0),
        (99, 98),
        False,
        64,
    )
    assert chosen.centre == "down"
    assert chosen.source.endswith("by the user")
