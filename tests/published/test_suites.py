"""The papers' lists of models: complete, resolvable, and honest about what is missing."""

from __future__ import annotations

import functools
import hashlib
import http.server
import threading
from importlib.util import find_spec

import pytest

from cuebench.errors import UserError
from cuebench.observers.adapters import suite
from cuebench.observers.adapters.suite import Member, members, names, overview, present, weights_folder
from cuebench.observers.base import LoadOptions, Spec
from cuebench.observers.load import load
from cuebench.published.tables import column, entries

SIZES = {
    "refined_bias/architectures": 20, "refined_bias/strategies": 32, "cue_decomposition/classification": 43,
    "cue_decomposition/segmentation": 41, "texture_association": 8, "triplets": 25,
}  # fmt: skip


def test_names_and_sizes():
    assert {name: len(members(name)) for name in names()} == SIZES


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("refined_bias/architectures", lambda: column("refined_bias", "B", "refined_bias", "shape_sens")),
        ("refined_bias/strategies", lambda: column("refined_bias", "C", "refined_bias", "shape_sens")),
        ("cue_decomposition/classification",
         lambda: [e.model for e in entries("cue_decomposition", "VII") if e.group != "Trained"]),
        ("texture_association", lambda: column("texture_association", "I", "label", "accuracy_correlation")),
    ],
)  # fmt: skip
def test_members_are_the_models_of_the_table(name, printed):
    assert sorted(m.model for m in members(name)) == sorted(printed())


def test_segmentation_has_every_model_on_every_data_set_that_it_was_measured_on():
    listed = {m.model for m in members("cue_decomposition/segmentation")}
    for data in ("cityscapes", "ade20k"):
        assert {f"{m} ({data})" for m in column("cue_decomposition", "XIII", data, "Q_O")} <= listed


@pytest.mark.parametrize("name", SIZES)
def test_every_member_says_what_to_load(name):
    for m in members(name):
        spec = Spec.parse(m.observer.replace("{file}", "x"))
        assert spec.scheme in {"torchvision", "timm", "open_clip", "transformers", "checkpoint", "mmseg"}
        assert bool(m.file) == ("{file}" in m.observer)
        assert bool(m.file) == bool(m.address)
        assert m.sure in {"yes", "no"}
        assert m.sure == "yes" or m.note, m.model
    assert len({m.model for m in members(name)}) == len(members(name))


@pytest.mark.parametrize("name", SIZES)
def test_printed_names_survive_the_spec(name):
    for m in members(name):
        mark = "&" if "?" in m.observer else "?"
        assert Spec.parse(f"{m.observer}{mark}name={suite._plain(m.model)}").options["name"] == m.model


def test_everything_that_is_missing_is_listed_at_once(tmp_path):
    with pytest.raises(UserError) as raised:
        load(f"suite:cue_decomposition/segmentation?weights_dir={tmp_path}", LoadOptions(offline=True))
    text = str(raised.value)
    assert "41 of 41 observers cannot be loaded" in text
    for m in members("cue_decomposition/segmentation"):
        assert m.file in text
    assert str(tmp_path) in raised.value.hint


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("suite:refined_bias", "unknown suite 'refined_bias'"),
        ("suite:refined_bias/strategy", "Did you mean 'refined_bias/strategies'"),
        ("suite:triplets?missing=no", "expected one of error, skip"),
        ("suite:triplets?weight_dir=x", "'weight_dir'. Did you mean 'weights_dir'?"),
        ("suite:triplets?only=ResNet-51", "Did you mean 'ResNet-50'"),
    ],
)
def test_mistakes(spec, words):
    with pytest.raises(UserError) as raised:
        load(spec)
    assert words in str(raised.value)


def test_a_file_with_another_hash_is_refused(tmp_path):
    member = next(m for m in members("refined_bias/architectures") if m.model == "BagNet-9")
    (tmp_path / member.file).write_bytes(b"not these weights")
    with pytest.raises(UserError, match="not 34f4ccd2…: fetch it again"):
        suite._usable(member, tmp_path)
    assert present(member, tmp_path)


@pytest.fixture
def server(tmp_path):
    """A web server on this machine that has one file."""
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "weights.pth").write_bytes(b"weights")
    handler = functools.partial(QuietHandler, directory=str(tmp_path / "web"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{made.server_port}"
        made.shutdown()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        """Say nothing."""


def member(address, sha256):
    return Member("m", "checkpoint:{file}", "w", "weights.pth", address, sha256, "", "yes", "")


def test_a_file_with_a_known_hash_is_fetched(server, tmp_path):
    digest = hashlib.sha256(b"weights").hexdigest()
    path = suite._usable(member(f"{server}/weights.pth", digest[:8]), tmp_path / "w", offline=False)
    assert path.read_bytes() == b"weights"


@pytest.mark.parametrize(
    ("name", "sha256", "offline", "words"),
    [
        ("weights.pth", "00000000", False, "a file with sha256"),
        ("other.pth", "00000000", False, "404"),
        ("weights.pth", "", False, "is missing; its source is"),
        ("weights.pth", "00000000", True, "is missing; its source is"),
    ],
)
def test_nothing_wrong_is_ever_kept(server, tmp_path, name, sha256, offline, words):
    with pytest.raises(UserError, match=words):
        suite._usable(member(f"{server}/{name}", sha256), tmp_path / "w", offline=offline)
    assert not list(tmp_path.glob("w/*"))
    assert not list(tmp_path.glob("w/.*"))


def test_an_address_that_does_not_answer(tmp_path):
    with pytest.raises(UserError, match="cannot be reached"):
        suite._usable(member("http://127.0.0.1:9/weights.pth", "00"), tmp_path, offline=False)


def test_weights_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("CUEBENCH_WEIGHTS", str(tmp_path / "env"))
    assert weights_folder() == tmp_path / "env"
    assert weights_folder(str(tmp_path)) == tmp_path


def test_overview_sees_what_lies_there(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    before = {row["name"]: int(row["present"]) for row in overview(tmp_path)}
    (tmp_path / "torch/hub/checkpoints").mkdir(parents=True)
    (tmp_path / "torch/hub/checkpoints/resnet18-f37072fd.pth").write_bytes(b"")
    (tmp_path / "hf/hub/models--timm--resnet50.a3_in1k/snapshots").mkdir(parents=True)
    (tmp_path / "resnet50_opticsaugment.pth").write_bytes(b"")
    after = {row["name"]: int(row["present"]) for row in overview(tmp_path)}
    grown = {name: after[name] - before[name] for name in after}
    assert grown["refined_bias/architectures"] == 1
    assert grown["refined_bias/strategies"] == 2
    assert grown["texture_association"] == 1
    assert grown["cue_decomposition/classification"] == 0


@pytest.mark.torch
@pytest.mark.xdist_group("torch")
@pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")
class TestWithTorch:
    def test_a_published_checkpoint_is_loaded_under_its_printed_name(self, tmp_path, monkeypatch):
        """A BagNet-9 checkpoint as it would lie there goes through the suite; the others are skipped by request."""
        import torch

        from cuebench.observers.torch.models.bagnet import bagnet9

        torch.manual_seed(0)
        file = tmp_path / "bagnet8-34f4ccd2.pth.tar"
        torch.save({f"module.{k}": v for k, v in bagnet9().state_dict().items()}, file)
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        own = next(m for m in members("refined_bias/architectures") if m.model == "BagNet-9")
        other = next(m for m in members("refined_bias/architectures") if m.model == "CMT-S")
        listed = (Member(**{**vars(own), "sha256": digest[:8]}), other)
        monkeypatch.setattr(suite, "members", lambda name: listed)
        found = load(f"suite:refined_bias/architectures?weights_dir={tmp_path}&missing=skip", LoadOptions(offline=True))
        assert [o.name for o in found] == ["BagNet-9"]
        assert found[0].capabilities >= {"logits"}
        with pytest.raises(UserError, match="1 of 2 observers cannot be loaded"):
            load(f"suite:refined_bias/architectures?weights_dir={tmp_path}", LoadOptions(offline=True))

    def test_a_wrapped_checkpoint_is_filtered_once(self, tmp_path):
        import torch
        from safetensors.torch import load_file

        path = tmp_path / "robust.ckpt"
        torch.save({"model": {"module.model.fc.weight": torch.ones(2, 2), "module.attacker.x": torch.zeros(1)}}, path)
        made = suite._filtered(path, "module.model.")
        assert list(load_file(made)) == ["fc.weight"]
        stamp = made.stat().st_mtime_ns
        assert suite._filtered(path, "module.model.").stat().st_mtime_ns == stamp
        torch.save({"a": torch.ones(1), "aux_bn.b": torch.ones(1)}, tmp_path / "b.pth")
        assert list(load_file(suite._filtered(tmp_path / "b.pth", "!aux_bn"))) == ["a"]
        with pytest.raises(UserError, match="has no keys 'encoder"):
            suite._filtered(tmp_path / "b.pth", "encoder.")

    def test_names_of_libraries_exist(self):
        """Every name is one that the installed timm, torchvision and open_clip know."""
        from cuebench.observers.torch.torchvision_import import import_torchvision

        import_torchvision()
        import open_clip
        import timm
        from torchvision import models

        known = {f"{n}/{t}" for n, t in open_clip.list_pretrained()}
        tagged = set(timm.list_pretrained())
        for name in names():
            for m in members(name):
                spec = Spec.parse(m.observer)
                if spec.scheme == "timm" and spec.options.get("weights") != "random":
                    assert spec.body in tagged, m
                elif spec.scheme == "torchvision" and spec.options["weights"] != "random":
                    assert spec.options["weights"] in models.get_model_weights(spec.body).__members__, m
                elif spec.scheme == "open_clip":
                    assert f"{spec.body}/{spec.options['weights']}" in known, m

    @pytest.mark.parametrize("name", ["refined_bias/architectures", "refined_bias/strategies"])
    def test_members_see_what_the_authors_showed_them(self, name):
        """Size, resize, filter, mean and std of every model in the faithful view, as in the authors' repository."""
        import torch

        from cuebench.observers.adapters import checkpoint, timm, torchvision
        from cuebench.observers.adapters._options import overridden, torch_options
        from cuebench.observers.preprocess import IMAGENET_MEAN, IMAGENET_STD
        from cuebench.observers.timm_data import preprocess_of
        from cuebench.observers.torch.torchvision_import import import_torchvision
        from cuebench.protocols.refined_bias import faithful, faithful_of_fixed_size

        import_torchvision()
        from timm import create_model

        bases = {}
        normalised = {"ViT-S": (0.5, 0.5), "ViT-B": (0.5, 0.5), "SimCLR v2": (0.0, 1.0)}
        for m in members(name):
            spec = Spec.parse(m.observer)
            adapter = {"timm": timm, "torchvision": torchvision, "checkpoint": checkpoint}[spec.scheme]
            parsed = torch_options(spec, LoadOptions(), adapter.OPTIONS)
            arch = parsed.values.get("arch") or m.observer
            if arch not in bases:
                with torch.device("meta"):  # the configuration is wanted, not the weights
                    if spec.scheme == "checkpoint":
                        model = checkpoint._architecture(spec, arch, 1000)
                    elif spec.scheme == "timm":
                        model = create_model(spec.body)
                if spec.scheme == "torchvision":
                    bases[arch] = torchvision.preprocess_of(torchvision.chosen_weights(spec.body, parsed))
                else:
                    bases[arch] = preprocess_of(model) if spec.scheme == "timm" else checkpoint._preprocess(arch, model)
            own = overridden(bases[arch], spec, parsed.values)
            fixed = m.model == "CMT-B"
            shown = faithful_of_fixed_size(own) if fixed else faithful(own)
            geometry = (shown.hw, shown.geometry.resize, shown.interpolation, shown.scale)
            assert geometry == (
                ((256,) * 2, 292, "bicubic", 1 / 255) if fixed else ((224,) * 2, 256, "bilinear", 1 / 255)
            )
            mean, std = normalised.get(m.model, (IMAGENET_MEAN, IMAGENET_STD))
            assert (shown.mean, shown.std) == (
                mean if isinstance(mean, tuple) else (mean,) * 3,
                std if isinstance(std, tuple) else (std,) * 3,
            ), m.model
