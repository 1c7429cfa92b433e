"""Get jsPsych for the page of a study: ``python -m cuebench.study.vendor``.

jsPsych and its plug-ins are other people's work under the MIT licence: they are not part of this repository. The set-up
gets them with npm, from the registry that npm is set to, at the versions of ``web/vendor.toml``, and refuses a package
whose SHA-512 is not the one written there. Wheels carry them, with their licence.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import shutil
import subprocess
import tarfile
import tempfile
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from cuebench.errors import UserError

WEB = Path(__file__).parent / "web"
FOLDER = WEB / "vendor"
PINS = WEB / "vendor.toml"
STAMP, LICENCES = "pins.sha256", "LICENCES.txt"
COMMAND = "python -m cuebench.study.vendor"
"""How a user gets the files; needs npm."""
_BUILD = "package/dist/index.browser.min.js"
_SOURCE_MAP = re.compile(rb"\s*//# sourceMappingURL=\S+\s*$")
_MIT = """\
Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
"""


class Package(NamedTuple):
    """A pinned package of npm."""

    name: str
    version: str
    integrity: str

    @property
    def file(self) -> str:
        """Name of its script on our page: ``jspsych.js``, ``html-button-response.js``."""
        return self.name.removeprefix("@jspsych/plugin-") + ".js"

    @property
    def archive(self) -> str:
        """Name of the file that ``npm pack`` writes."""
        return f"{self.name.lstrip('@').replace('/', '-')}-{self.version}.tgz"


def pinned(pins: Path = PINS) -> list[Package]:
    """Return the packages that the page can use."""
    return [Package(**entry) for entry in tomllib.loads(pins.read_text("utf-8"))["package"]]


def plugins() -> list[str]:
    """Return the names of jsPsych's plug-ins that a design can use: ``html-button-response``, …"""
    return [package.file.removesuffix(".js") for package in pinned() if package.name != "jspsych"]


def missing(folder: Path = FOLDER) -> list[str]:
    """Return the files that are not there; all of them where they are not those of the pinned versions."""
    stamp = folder / STAMP
    wanted = [*(package.file for package in pinned()), LICENCES]
    if not stamp.is_file() or stamp.read_text("utf-8").strip() != _pins_hash():
        return wanted
    return [name for name in wanted if not (folder / name).is_file()]


def check_present(folder: Path = FOLDER) -> None:
    """Raise a user error that says how to get jsPsych where it is not there."""
    if missing(folder):
        raise UserError("jsPsych, which the page of a study is made with, is not installed", f"run: {COMMAND}")


def install(folder: Path = FOLDER) -> list[str]:
    """Get, verify and unpack all packages; return the names of the files. Nothing is done where all are there."""
    packages = pinned()
    if missing(folder):
        with tempfile.TemporaryDirectory() as place:
            archives = _packed(packages, Path(place))
        files = {package.file: _script(package, data) for package, data in zip(packages, archives)}
        licences = "\n".join(_licence(package, data) for package, data in zip(packages, archives)) + "\n" + _MIT
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name, content in {**files, LICENCES: licences.encode()}.items():
            (folder / name).write_bytes(content)
        # Last: a folder without it is incomplete.
        (folder / STAMP).write_text(_pins_hash() + "\n", "utf-8", newline="\n")
    return [package.file for package in packages]


def _pins_hash() -> str:
    return hashlib.sha256(PINS.read_bytes()).hexdigest()


def _packed(packages: list[Package], place: Path) -> list[bytes]:
    """Return the verified bytes of each package."""
    npm = shutil.which("npm")
    if npm is None:
        raise UserError("npm is needed to get jsPsych and was not found", f"install Node.js, then run: {COMMAND}")
    names = [f"{package.name}@{package.version}" for package in packages]
    done = subprocess.run(
        [npm, "pack", "--silent", "--ignore-scripts", "--pack-destination", str(place), *names],
        capture_output=True,
        text=True,
        cwd=place,
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise UserError(f"npm cannot get jsPsych: {reason}", f"check the connection, then run: {COMMAND}")
    return [verified(package, (place / package.archive).read_bytes()) for package in packages]


def verified(package: Package, data: bytes) -> bytes:
    """Return the bytes of a package if they are the pinned ones."""
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()
    if integrity != package.integrity:
        raise UserError(
            f"{package.name} {package.version} is not the package that was pinned: {integrity}",
            "do not use it; ask who runs the registry that npm is set to",
        )
    return data


def _script(package: Package, data: bytes) -> bytes:
    """Return the script for browsers, without the address of a source map on another host."""
    return _SOURCE_MAP.sub(b"\n", _member(package, data, _BUILD))


def _licence(package: Package, data: bytes) -> str:
    facts: dict[str, Any] = json.loads(_member(package, data, "package/package.json"))
    author = facts.get("author", "its authors")
    name = author.get("name", "its authors") if isinstance(author, dict) else author
    if facts.get("license") != "MIT":
        raise UserError(f"{package.name} is under {facts.get('license')}, not under MIT", "pin another version")
    return f"{package.name} {package.version}: Copyright (c) {name} and the jsPsych contributors. MIT licence."


def _member(package: Package, data: bytes, name: str) -> bytes:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        try:
            member = archive.extractfile(name)
        except KeyError:
            member = None
        if member is None:
            raise UserError(f"{package.name} {package.version} has no {name}", "pin another version")
        return member.read()


def main() -> int:
    """Install, and say what happened; 0 where jsPsych is there."""
    try:
        files = install()
    except UserError as error:
        print(f"jsPsych was not installed: {error}\nEverything but `cuebench study serve` works without it.")
        return 1
    print(f"jsPsych and {len(files) - 1} plug-ins are in {FOLDER}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
