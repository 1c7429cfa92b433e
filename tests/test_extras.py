"""Every extra: without it a command says what to install; with it, in an environment of its own, the command works.

``make packages`` tries all of them; the tests that CI runs leave out those that install gigabytes.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import test_packages
from test_packages import EXTRAS, ROOT, local_wheels, run

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("packages"), pytest.mark.timeout(1800)]
built = test_packages.packages  # the fixture: wheel and sdist
HEAVY = {"torch", "hf", "clip", "lite", "ray", "segmentation"}
"""Extras that bring PyTorch or Ray."""
ALL = os.environ.get("CUEBENCH_EXTRAS") == "all"
TRIPLETS = ["run", "-q", "-p", "triplets", "--set", "triplets.experiments=3", "--limit", "8", "--resamples", "100"]
CONFLICT = ["run", "-q", "-p", "cue_conflict", "-o", "recorded:people.csv", "--resamples", "100"]
VIT = {"model_type": "vit", "architectures": ["ViTForImageClassification"], "hidden_size": 16, "num_hidden_layers": 1,
       "num_attention_heads": 2, "intermediate_size": 16, "image_size": 32, "patch_size": 16}  # fmt: skip
PREPARED = {"image_processor_type": "ViTImageProcessor", "size": {"height": 32, "width": 32}}
SEGMENTER = (
    "from cuebench.observers.torch.torchvision_import import import_torchvision; import_torchvision()\n"
    "import torch, segmentation_models_pytorch as smp\n"
    "net = smp.create_model('fpn', 'resnet18', encoder_weights=None, classes=3)\n"
    "torch.save(net.state_dict(), 'fpn.pt')\n"
)
LINEAR = """
import numpy as np, onnx
from onnx import TensorProto, helper, numpy_helper
node = [helper.make_node("GlobalAveragePool", ["x"], ["m"]), helper.make_node("Flatten", ["m"], ["f"]),
        helper.make_node("MatMul", ["f", "w"], ["y"])]
w = numpy_helper.from_array(np.eye(3, 1000, dtype=np.float32), "w")
x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 32, 32])
y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 1000])
model = helper.make_model(helper.make_graph(node, "net", [x], [y], [w]), opset_imports=[helper.make_opsetid("", 17)])
model.ir_version = 8
onnx.save(model, "net.onnx")
"""


class Probe(NamedTuple):
    """A command that needs an extra, what it leaves behind, and Python that prepares it in the new environment."""

    words: list[str]
    leaves: str
    before: str = ""
    says: str = "pip install 'cuebench[{}]'"


PROBES = {
    "torch": Probe([*TRIPLETS, "-o", "timm:test_vit?weights=random&seed=0", "--out", "run"], "run/scores.json"),
    "hf": Probe([*TRIPLETS, "-o", "transformers:vit?weights=random&seed=0", "--out", "run"], "run/scores.json"),
    "clip": Probe([*TRIPLETS, "-o", "open_clip:ViT-S-32-alt?weights=random&seed=0", "--out", "run"], "run/scores.json"),
    "lite": Probe([*TRIPLETS, "-o", "lite:efficientnet_lite0", "--out", "run"], "run/scores.json"),
    "onnx": Probe(["run", "-q", "-p", "texture_association", "-o", "onnx:net.onnx?size=32", "--limit", "60",
                   "--resamples", "100", "--out", "run"], "run/scores.json"),
    "image": Probe(["cue", "eed", "p.png", "eed.png", "--set", "steps=2"], "eed.png"),
    "ray": Probe([*CONFLICT, "--engine", "ray", "--out", "run"], "run/scores.json"),
    "store": Probe([*CONFLICT, "--responses", "memory://answers", "--out", "run"], "run/scores.json"),
    "report": Probe(["figure", "shape_bias", "scored", "--out", "bias.svg"], "bias.svg"),
    "chat": Probe(["run", "-q", "-p", "cue_conflict", "--data-root", "data", "-o",
                   "chat:m?url=http://127.0.0.1:9/v1&max_requests=1", "--out", "run"], ""),
    "segmentation": Probe([*TRIPLETS, "-o", "smp:fpn?encoder=resnet18&checkpoint=fpn.pt&labels=three.json",
                           "--out", "run"], "", SEGMENTER),
    "study": Probe(["study", "new", "study", "--design", "triplets"], "study/study.toml"),
}  # fmt: skip


def test_every_extra_is_tried() -> None:
    assert set(PROBES) == EXTRAS


def environment() -> dict[str, str]:
    offline = {"HF_HUB_OFFLINE": "1", "RAY_USAGE_STATS_ENABLED": "0", "UV_LINK_MODE": "hardlink"}
    return {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")} | offline


def installed(home: Path, wheel: Path, extra: str = "") -> Path:
    """Install the wheel with an extra into an empty environment; return its scripts."""
    uv = Path(sys.executable).with_name("uv")
    run(uv, "venv", "--quiet", "--python", sys.executable, home)
    scripts = home / ("Scripts" if os.name == "nt" else "bin")
    what = f"cuebench[{extra}] @ {wheel.as_uri()}" if extra else str(wheel)
    constraints = ["-c", ROOT / "constraints.txt"]
    # Files are linked from the cache of uv: gigabytes are neither downloaded nor copied again.
    run(uv, "pip", "install", "--quiet", "--python", scripts / "python", *constraints, *local_wheels(), what,
        env=environment())  # fmt: skip
    return scripts


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that the commands are about, written with nothing but the core's dependencies."""
    from PIL import Image

    from small_data import write_cue_conflict

    place = tmp_path_factory.mktemp("files")
    people = ["anna,cat1-dog2,cat", "anna,car1-dog2,dog", "bert,cat1-dog2,dog", "bert,car1-dog2,car"]
    (place / "people.csv").write_text("\n".join(["subject,stimulus,decision", *people]), "utf-8")
    Image.new("RGB", (32, 32), "teal").save(place / "p.png")
    (place / "three.json").write_text('["a", "b", "c"]', "utf-8")
    (place / "vit").mkdir()
    (place / "vit" / "config.json").write_text(json.dumps(VIT), "utf-8")
    (place / "vit" / "preprocessor_config.json").write_text(json.dumps(PREPARED), "utf-8")
    write_cue_conflict(place / "data")
    subprocess.run([sys.executable, "-c", LINEAR], cwd=place, check=False)  # needs onnx, a tool of developers
    return place


@pytest.fixture(scope="module")
def core(built: Path, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    home = tmp_path_factory.mktemp("core") / "venv"
    (wheel,) = built.glob("*.whl")
    scripts = installed(home, wheel)
    run(scripts / "cuebench", *CONFLICT, "--out", "scored", cwd=folder, env=environment())
    yield scripts
    shutil.rmtree(home, ignore_errors=True)


@pytest.mark.parametrize("extra", sorted(PROBES))
def test_without_an_extra_a_command_says_what_to_install(extra: str, core: Path, folder: Path) -> None:
    probe = PROBES[extra]
    words = [
        str(core / "cuebench"),
        *(w if w != "run" or i == 0 else f"missing-{extra}" for i, w in enumerate(probe.words)),
    ]
    done = subprocess.run(words, cwd=folder, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode in (1, 2), done.stdout + done.stderr
    assert probe.says.format(extra) in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("extra", sorted(PROBES))
def test_with_an_extra_the_command_works(
    extra: str,
    built: Path,
    core: Path,
    folder: Path,
    tmp_path: Path,
) -> None:
    if extra in HEAVY and not ALL:
        pytest.skip("installs gigabytes: make packages")
    probe, place = PROBES[extra], tmp_path / "files"
    if extra == "onnx" and not (folder / "net.onnx").is_file():
        pytest.skip("needs onnx to write a model: pip install onnx")
    shutil.copytree(folder, place)
    (wheel,) = built.glob("*.whl")
    scripts = installed(tmp_path / "venv", wheel, extra)
    try:
        assert run(scripts / "cuebench", "--version", env=environment()).startswith("cuebench ")
        if probe.before:
            run(scripts / "python", "-c", probe.before, cwd=place, env=environment())
        words = [str(scripts / "cuebench"), *probe.words]
        done = subprocess.run(words, cwd=place, env=environment(), capture_output=True, text=True, check=False)
        said = done.stdout + done.stderr
        assert "pip install" not in said, said
        assert "Traceback" not in said, said
        if probe.leaves:
            assert done.returncode == 0, said
            assert (place / probe.leaves).stat().st_size > 100
        elif extra == "chat":
            assert "the budget of 1 requests is used up" in said, "it asks, and nobody is there"
        else:
            assert "gives masks" in said, "the network is loaded; it is nothing for this protocol"
    finally:
        shutil.rmtree(tmp_path / "venv", ignore_errors=True)


def test_python_versions_agree() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    declared = [c.rpartition(" ")[2] for c in settings["project"]["classifiers"] if "Python :: 3." in c]
    assert settings["project"]["requires-python"] == f">={declared[0]}"
    assert settings["tool"]["mypy"]["python_version"] == declared[0]
    assert settings["tool"]["ruff"]["target-version"] == "py" + declared[0].replace(".", "")
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    assert all(f"Python {version}" in page for version in declared), "what was tried with each is written down"
