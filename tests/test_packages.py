"""The packages: they build, hold what they should, and work in an empty environment with the core only."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("packages")  # what the tests share is made once
ROOT = Path(__file__).parents[1]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = set(SETTINGS["optional-dependencies"]) - {"all", "dev", "docs"}


def run(*command: object, **options: object) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout[-2000:]}{done.stderr[-3000:]}"
    return done.stdout


def local_wheels() -> list[str]:
    """Return where pip finds packages on this machine: uv does not read its settings."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.find-links"], capture_output=True, text=True, check=False
    )
    return ["--find-links", done.stdout.strip()] if done.returncode == 0 else []


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    uv = Path(sys.executable).with_name("uv")
    if not uv.is_file():
        pytest.skip("needs uv: pip install uv")
    run(uv, "build", "--quiet", "--out-dir", out, *local_wheels(), cwd=ROOT)
    return out


@pytest.fixture(scope="module")
def empty(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripts of an empty environment in which the wheel was installed without any extra."""
    home = tmp_path_factory.mktemp("empty")
    uv, (wheel,) = Path(sys.executable).with_name("uv"), packages.glob("*.whl")
    run(uv, "venv", "--quiet", "--python", sys.executable, home / "venv")
    scripts = home / "venv" / ("Scripts" if os.name == "nt" else "bin")
    constraints = ["-c", ROOT / "constraints.txt"]
    run(uv, "pip", "install", "--quiet", "--python", scripts / "python", *constraints, *local_wheels(), wheel)
    return scripts


@pytest.mark.slow
@pytest.mark.xdist_group("packages")
def test_packages_hold_everything(packages: Path) -> None:
    (wheel,), (source,) = packages.glob("*.whl"), packages.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
    below = ROOT / "src"
    tracked = run("git", "ls-files", "src/cuebench", cwd=ROOT).split() if shutil.which("git") else []
    assert {str(Path(name).relative_to("src").as_posix()) for name in tracked} <= packed
    vendor = below / "cuebench" / "study" / "web" / "vendor"
    scripts = {path.relative_to(below).as_posix() for path in vendor.glob("*.js")}
    assert scripts <= packed, "jsPsych is packed"
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"README.md", "LICENSE", "CITATION.cff", "src/cuebench/__init__.py"} <= names
    assert not {name for name in names | packed if "shared/" in name and not name.startswith("src/")}


@pytest.mark.slow
@pytest.mark.xdist_group("packages")
def test_the_core_works_alone(empty: Path, tmp_path: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    program = empty / "cuebench"

    def cuebench(*words: str) -> str:
        return run(program, *words, cwd=tmp_path, env=environment)

    names = {row["name"] for row in json.loads(cuebench("list", "protocols", "--json"))}
    assert {"cue_conflict", "refined_bias", "triplets"} <= names
    assert "torch" in cuebench("doctor")
    rows = [
        f"{who},{shape}1-dog2,{answer}"
        for who in ("anna", "bert")
        for shape, answer in (("cat", "cat"), ("car", "dog"))
    ]
    (tmp_path / "people.csv").write_text("\n".join(["subject,stimulus,decision", *rows]), "utf-8")
    cuebench("run", "-p", "cue_conflict", "-o", "recorded:people.csv", "--out", "runs/first", "--resamples", "100")
    scores = json.loads((tmp_path / "runs/first/scores.json").read_text("utf-8"))
    wanted = ("people", "shape_bias", "16-way")
    found = [row for row in scores if (row["observer"], row["metric"], row["condition"]) == wanted]
    assert {row["value"] for row in found} == {0.5}


@pytest.mark.slow
@pytest.mark.xdist_group("packages")
def test_every_module_can_be_imported_without_extras(empty: Path) -> None:
    """Heavy libraries are imported where they are used: a module that needs one says which extra it belongs to."""
    program = (
        "import importlib, pkgutil, cuebench, cuebench.errors\n"
        "for m in pkgutil.walk_packages(cuebench.__path__, 'cuebench.'):\n"
        "    if m.name.rpartition('.')[2] != '__main__' and '_process_main' not in m.name:\n"
        "        try:\n"
        "            importlib.import_module(m.name)\n"
        "        except cuebench.errors.MissingExtra:\n"
        "            pass\n"
        "        except ImportError as error:\n"
        "            print(m.name, error.name or error)\n"
    )
    lines = run(empty / "python", "-c", program).splitlines()
    needs = {name for extra in SETTINGS["optional-dependencies"].values() for name in map(distribution, extra)}
    modules = {"cv2": "opencv-python-headless", "markdown_it": "markdown-it-py", "skimage": "scikit-image"}
    for line in lines:
        module, _, missing = line.partition(" ")
        top = missing.partition(".")[0]
        assert modules.get(top, top) in needs or top == "triton", f"{module} needs {missing}, which no extra has"
        assert not module.startswith(("cuebench.cli", "cuebench.protocols", "cuebench.metrics", "cuebench.statistics"))


def distribution(requirement: str) -> str:
    return re.split(r"[\[<>=; ]", requirement)[0]


def test_the_citation_names_this_version() -> None:
    version = re.search(r'^__version__ = "(.+)"', (ROOT / "src/cuebench/_version.py").read_text("utf-8"), re.MULTILINE)[
        1
    ]
    assert f"version: {version}\n" in (ROOT / "CITATION.cff").read_text("utf-8")


def test_the_readme_has_a_row_for_each_protocol() -> None:
    from cuebench import registry

    table = (ROOT / "README.md").read_text("utf-8").split("## The protocols", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    assert sorted(rows) == sorted(set(registry.protocols) - {"striped_objects"})
    assert EXTRAS


def test_doctor_looks_for_every_package_of_every_extra() -> None:
    from cuebench import checkup

    def named(requirement: str) -> str:
        return re.split(r"[\[>=;< ]", requirement)[0].lower().replace("_", "-")

    assert set(checkup.EXTRAS) == EXTRAS
    for extra, packages in checkup.EXTRAS.items():
        needed = {named(r) for r in SETTINGS["optional-dependencies"][extra]} - {"cuebench", "uvloop"}  # not on Windows
        assert {named(package) for package in packages.values()} == needed, extra
