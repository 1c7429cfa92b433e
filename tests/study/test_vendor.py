"""jsPsych comes by pinned packages, verified, and travels in the wheel with its licence."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from cuebench.errors import UserError
from cuebench.study import vendor
from cuebench.study.vendor import Package, check_present, install, pinned, verified

REPOSITORY = Path(__file__).resolve().parents[2]


def test_a_package_that_is_not_the_pinned_one_is_refused() -> None:
    good = b"a package"
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(good).digest()).decode()
    package = Package("@jspsych/plugin-x-y", "1.2.3", integrity)
    assert verified(package, good) == good
    assert (package.file, package.archive) == ("x-y.js", "jspsych-plugin-x-y-1.2.3.tgz")
    with pytest.raises(UserError, match="not the package that was pinned"):
        verified(package, good + b" ")


def test_pins_are_exact_and_name_no_registry() -> None:
    packages = pinned()
    assert packages[0].name == "jspsych"
    assert all(p.integrity.startswith("sha512-") and p.version.count(".") == 2 for p in packages)
    assert "://" not in vendor.PINS.read_text("utf-8")


def test_without_npm_the_user_is_told_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vendor.shutil, "which", lambda name: None)
    with pytest.raises(UserError, match=r"python -m cuebench\.study\.vendor"):
        install(tmp_path / "vendor")
    with pytest.raises(UserError, match="not installed"):
        check_present(tmp_path / "vendor")


def test_an_incomplete_folder_counts_as_missing(tmp_path: Path) -> None:
    if vendor.missing():
        pytest.skip(f"needs jsPsych: {vendor.COMMAND}")
    import shutil

    copy = shutil.copytree(vendor.FOLDER, tmp_path / "vendor")
    check_present(copy)
    (copy / "survey-text.js").unlink()
    assert vendor.missing(copy) == ["survey-text.js"]
    (copy / vendor.STAMP).write_text("older pins")
    assert len(vendor.missing(copy)) > 5


def test_nothing_points_to_another_host() -> None:
    if vendor.missing():
        pytest.skip(f"needs jsPsych: {vendor.COMMAND}")
    assert not any(b"sourceMappingURL" in path.read_bytes() for path in vendor.FOLDER.glob("*.js"))
    ours = [path for path in vendor.WEB.glob("*") if path.suffix in (".js", ".css", ".html")]
    assert len(ours) > 5
    assert not any("://" in path.read_text("utf-8") for path in ours)


@pytest.mark.slow
def test_the_wheel_carries_the_page_jspsych_and_its_licence(tmp_path: Path) -> None:
    if vendor.missing():
        pytest.skip(f"needs jsPsych: {vendor.COMMAND}")
    # As packagers do it: the wheel is built from the source distribution.
    command = [sys.executable, "-m", "uv", "build", "--quiet", "--out-dir", str(tmp_path), str(REPOSITORY)]
    subprocess.run(command, check=True, timeout=240)
    wheel = next(tmp_path.glob("*.whl"))
    names = set(zipfile.ZipFile(wheel).namelist())
    web = "cuebench/study/web"
    assert {f"{web}/vendor/{p.file}" for p in pinned()} <= names
    assert f"{web}/vendor/{vendor.LICENCES}" in names
    assert {f"{web}/page.html", f"{web}/words/de.toml", f"{web}/vendor.toml"} <= names
    assert "cuebench/study/designs/cue_conflict/icons/cat.svg" in names
