"""TorchObserver and wrap: the contract, the hash, the errors."""

from __future__ import annotations

import numpy as np
import pytest

from cuebench.errors import UserError
from cuebench.labels import LabelSpace, label_space
from cuebench.observers.base import Batch, Observer
from cuebench.observers.conformance import check_observer
from cuebench.observers.preprocess import Preprocess
from cuebench.observers.torch.observer import TorchObserver
from cuebench.observers.wrap import wrap
from cuebench.types import Stimulus

pytestmark = [pytest.mark.torch, pytest.mark.xdist_group("torch")]
torch = pytest.importorskip("torch")

ABC = LabelSpace("abc", ("a", "b", "c"))
SMALL = Preprocess(size=16)


class Net(torch.nn.Module):
    def __init__(self, classes: int = 3) -> None:
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 8, 3)
        self.norm = torch.nn.BatchNorm2d(8)
        self.drop = torch.nn.Dropout(0.5)
        self.head = torch.nn.Linear(8, classes)

    def forward(self, x):
        return self.head(self.drop(self.norm(self.stem(x)).relu().mean((2, 3))))


def batch(n: int = 2, size: int = 16) -> Batch:
    pixels = np.random.default_rng(1).integers(0, 256, (n, size, size, 3), dtype=np.uint8)
    return Batch([Stimulus(str(i)) for i in range(n)], pixels)


def observer(model=None, **options):
    return wrap(model or Net(), **{"preprocess": SMALL, "labels": ABC, "device": "cpu", **options})


def test_keeps_the_contract():
    wrapped = observer()
    assert isinstance(wrapped, Observer)
    assert wrapped.name == "Net"
    assert wrapped.capabilities == {"logits", "features"}
    check_observer(wrapped)


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_half_precision_is_close_stored_and_another_key(precision):
    model = Net()
    exact, half = observer(model), observer(model, precision=precision)
    a, b = (o.respond(batch(), ["logits"])["logits"] for o in (exact, half))
    assert b.dtype == np.float32
    np.testing.assert_allclose(a, b, atol=0.05)
    assert not np.array_equal(a, b)
    assert exact.fingerprint != half.fingerprint
    assert exact.weights_sha256 == half.weights_sha256


def test_the_precision_is_that_of_the_computation():
    assert observer(precision="bfloat16").precision == "bfloat16"
    assert (observer().precision, observer(Net().double()).precision) == ("float32", "float64")
    function = wrap(lambda x: x, preprocess=SMALL, labels=ABC)
    assert function.precision == "the function's own"


class TestMemory:
    class Views(torch.nn.Module):
        """Works with one memory format only."""

        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.stem = torch.nn.Conv2d(3, 4, 3)
            self.head = torch.nn.Linear(4 * 14 * 14, 3)

        def forward(self, x):
            return self.head(self.stem(x).view(len(x), -1))

    def frozen(self, model):
        return TorchObserver(model, name="x", preprocess=SMALL, labels=ABC, device="cpu", frozen=True)

    def test_channels_last_only_for_models_of_our_own(self):
        mine, theirs = Net(), Net()
        mine.load_state_dict(theirs.state_dict())
        loaded, wrapped = self.frozen(mine), observer(theirs)
        assert loaded.module.stem.weight.is_contiguous(memory_format=torch.channels_last)
        assert wrapped.module.stem.weight.is_contiguous()
        a, b = (o.respond(batch(), ["logits", "features"]) for o in (loaded, wrapped))
        for column in a:
            np.testing.assert_allclose(a[column], b[column], atol=1e-5)
        assert loaded.weights_sha256 == wrapped.weights_sha256

    def test_a_model_that_cannot_falls_back_and_says_so(self):
        loaded = self.frozen(self.Views())
        expected = observer(self.Views()).respond(batch(), ["logits"])["logits"]
        np.testing.assert_allclose(loaded.respond(batch(), ["logits"])["logits"], expected, atol=1e-6)
        assert "contiguous memory format" in loaded.notes[-1]
        assert loaded.module.stem.weight.is_contiguous()

    def test_other_errors_are_the_models_own(self):
        class Broken(self.Views):
            def forward(self, x):
                raise RuntimeError("my own mistake")

        with pytest.raises(RuntimeError, match="my own mistake"):
            self.frozen(Broken()).respond(batch(), ["logits"])

    def test_freed_memory_is_kept_unless_it_is_switched_off(self, monkeypatch):
        import platform

        from cuebench.observers.torch.placement import keep_freed_memory

        keep_freed_memory.cache_clear()
        assert keep_freed_memory() == (platform.libc_ver()[0] == "glibc")
        monkeypatch.setenv("CUEBENCH_KEEP_MEMORY", "0")
        keep_freed_memory.cache_clear()
        assert not keep_freed_memory()
        keep_freed_memory.cache_clear()


def test_a_module_can_be_trained_after_it_has_answered():
    class Caches(Net):
        mask = None

        def forward(self, x):
            if self.mask is None:
                self.mask = torch.ones(1)
            return super().forward(x) * self.mask

    model = Caches()
    observer(model).respond(batch(), ["logits"])
    model.train()(torch.rand(2, 3, 16, 16)).sum().backward()
    assert model.head.weight.grad is not None


def test_normalisation_on_the_device_equals_preprocess_bit_for_bit():
    odd = Preprocess(size=16, mean=(0.1, 127, 3), std=(0.3, 128, 0.7), scale=1 / 3)
    wrapped, shown = observer(preprocess=odd), batch(3)
    np.testing.assert_array_equal(wrapped.pixels(shown.images).numpy(), odd.normalise(shown.images))


def test_preprocessing_is_applied_once():
    model = Net().eval()
    shown = batch()
    with torch.inference_mode():
        expected = model(torch.from_numpy(SMALL.normalise(shown.images))).numpy()
    np.testing.assert_allclose(observer(model).respond(shown, ["logits"])["logits"], expected, atol=1e-6)


def test_training_mode_is_left_and_noted():
    model = Net().train()
    wrapped = observer(model)
    assert "training mode" in wrapped.notes[0]
    first = wrapped.respond(batch(), ["logits"])["logits"]
    model.train()  # a user who goes on training between two runs
    np.testing.assert_array_equal(wrapped.respond(batch(), ["logits"])["logits"], first)


def test_one_forward_pass_gives_both():
    model, passes = Net(), []
    model.stem.register_forward_hook(lambda *_: passes.append(1))
    answers = observer(model).respond(batch(), ["logits", "features"])
    assert len(passes) == 1
    head = model.head
    again = answers["features"] @ head.weight.detach().numpy().T + head.bias.detach().numpy()
    np.testing.assert_allclose(answers["logits"], again, atol=1e-5)


def test_features_of_a_named_layer_and_of_a_convolutional_head():
    wrapped = observer(features="stem")
    assert wrapped.respond(batch(), ["features"])["features"].shape == (2, 8)
    assert "stem" in wrapped.layers()
    with pytest.raises(UserError, match="Did you mean 'stem'"):
        observer(features="sten")
    conv = torch.nn.Sequential(torch.nn.Conv2d(3, 5, 3), torch.nn.Conv2d(5, 3, 1), torch.nn.AdaptiveAvgPool2d(1))
    answers = observer(conv).respond(batch(), ["logits", "features"])
    assert answers["logits"].shape == (2, 3)
    assert answers["features"].shape == (2, 5)


def test_hooks_do_not_stay():
    model = Net()
    observer(model).respond(batch(), ["features"])
    assert not model.head._forward_pre_hooks


def test_a_model_without_a_head_gives_features():
    wrapped = observer(torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3)), labels=None)
    assert wrapped.capabilities == {"features"}
    check_observer(wrapped)


def test_a_model_without_a_classifier_layer_says_so():
    class Mean(torch.nn.Module):
        def forward(self, x):
            return x.mean((2, 3))

    wrapped = observer(Mean())
    assert wrapped.capabilities == {"logits"}
    assert "features=LAYER" in wrapped.notes[-1]
    with pytest.raises(UserError, match="cannot give features"):
        wrapped.respond(batch(), ["features"])


def test_head_that_does_not_fit_the_label_space():
    with pytest.raises(UserError, match=r"gives 3 logits, but its label space 'imagenet1k' has 1000 classes") as error:
        observer(labels="imagenet1k").respond(batch(), ["logits"])
    assert "labels=" in error.value.hint


def test_nan_logits_name_the_observer():
    model = Net()
    torch.nn.init.constant_(model.head.bias, float("nan"))
    with pytest.raises(UserError, match="'broken' answered 2 of 2 images with logits that are NaN"):
        observer(model, name="broken").respond(batch(), ["logits"])


def test_read_only_images_and_other_dtypes():
    shown = batch()
    shown.images.flags.writeable = False
    wrapped = observer(Net().double())
    assert wrapped.respond(shown, ["logits"])["logits"].dtype == np.float32


class TestFingerprint:
    def test_same_weights_same_hash(self):
        torch.manual_seed(0)
        first = observer()
        torch.manual_seed(0)
        assert first.fingerprint == observer().fingerprint

    def test_training_on_changes_it(self):
        model = Net()
        wrapped = observer(model)
        before = wrapped.fingerprint
        model.head.weight.data[0, 0] += 1e-3
        assert wrapped.fingerprint != before

    def test_hidden_buffers_and_layer_arguments_count(self):
        model = Net()
        before = observer(model).fingerprint
        model.register_buffer("secret", torch.ones(1), persistent=False)
        hidden = observer(model).fingerprint
        model.norm.eps = 0.1
        assert len({before, hidden, observer(model).fingerprint}) == 3

    def test_the_name_does_not_count(self):
        model = Net()
        assert observer(model, name="x").fingerprint == observer(model, name="y").fingerprint


def test_unknown_device_and_precision():
    with pytest.raises(UserError, match="unknown device"):
        observer(device="tpu9000")
    if not torch.cuda.is_available():
        with pytest.raises(UserError, match="not available here"):
            observer(device="cuda")
    with pytest.raises(UserError, match="unknown precision"):
        observer(precision="int3")


class TestWrap:
    def test_an_observer_is_returned_as_it_is(self):
        wrapped = observer()
        assert wrap(wrapped) is wrapped

    def test_a_model_of_timm_brings_its_preprocessing(self):
        from cuebench.observers.torch.torchvision_import import import_torchvision

        import_torchvision()
        timm = pytest.importorskip("timm")
        wrapped = wrap(timm.create_model("test_vit"), device="cpu")
        assert wrapped.preprocess.hw == (160, 160)
        assert "timm" in wrapped.preprocess.source

    def test_without_preprocessing_it_says_what_to_pass(self):
        with pytest.raises(UserError, match="preprocessing of Net is not known") as error:
            wrap(Net(), labels=ABC)
        assert "preprocess=cuebench.Preprocess" in error.value.hint

    @pytest.mark.parametrize("as_tensor", [False, True])
    def test_functions_of_arrays_and_tensors(self, as_tensor):
        def tensors(x):
            return x.mean(dim=(2, 3)) if as_tensor else x.mean(axis=(2, 3)).astype(np.float64)

        wrapped = wrap(tensors, preprocess=SMALL, labels=ABC, fingerprint="v1")
        assert wrapped.fingerprint == "v1"
        check_observer(wrapped)
        np.testing.assert_allclose(
            wrapped.respond(batch(), ["logits"])["logits"], SMALL.normalise(batch().images).mean(axis=(2, 3)), atol=1e-6
        )

    def test_a_function_without_fingerprint_is_never_cached_by_name(self):
        first, second = (wrap(lambda x: x, preprocess=SMALL, labels=ABC) for _ in range(2))
        assert first.fingerprint != second.fingerprint
        assert "fingerprint=" in first.notes[0]

    def test_errors_of_the_function_are_its_own(self):
        def broken(x):
            raise TypeError("my own mistake")

        with pytest.raises(TypeError, match="my own mistake"):
            wrap(broken, preprocess=SMALL, labels=ABC).respond(batch(), ["logits"])

    def test_wrong_number_of_rows(self):
        with pytest.raises(UserError, match="returned 1 rows for 2 images"):
            wrap(lambda x: np.zeros((1, 3)), preprocess=SMALL, labels=ABC).respond(batch(), ["logits"])

    def test_not_a_model(self):
        with pytest.raises(UserError, match="cannot make an observer of int"):
            wrap(3)


def test_conformance_finds_what_is_wrong():
    class Bad:
        name, kind, fingerprint, preprocess = "bad", "model", "x", SMALL
        labels, capabilities = ABC, frozenset({"logits"})

        def respond(self, batch, needs):
            return {"logits": np.arange(len(batch) * 3).reshape(-1, 3).astype(np.float64)}

    with pytest.raises(UserError, match="float64, not float32"):
        check_observer(Bad())
    with pytest.raises(UserError, match="no attribute 'fingerprint'"):
        check_observer(object())


def test_conformance_finds_answers_that_depend_on_the_batch():
    class Drifts(torch.nn.Module):
        def forward(self, x):
            return (x - x.mean(dim=0)).mean((2, 3)) + 1

    with pytest.raises(UserError, match="when asked alone"):
        check_observer(observer(Drifts()))


def test_imagenet_is_the_default_label_space():
    assert wrap(Net(1000), preprocess=SMALL, device="cpu").labels == label_space("imagenet1k")
