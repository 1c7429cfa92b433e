"""``cuebench new``: the one file of a part with a hole for the idea, and a test that fails until it is filled."""

from __future__ import annotations

import keyword
from pathlib import Path
from string import Template
from typing import NamedTuple

from cuebench.errors import UserError, all_problems, did_you_mean
from cuebench.files import write_atomic
from cuebench.registry import KINDS, SCHEME, Registry

TEMPLATES = Path(__file__).parent / "templates"


class Kind(NamedTuple):
    """A kind of part that can be begun. Templates of its file and of its test lie in ``templates``."""

    registry: Registry
    attribute: str
    """What the file calls the part; ``$name``: like the file."""
    use: str
    """A command that shows the part at work."""


NEW: dict[str, Kind] = {
    "cue": Kind(KINDS["cues"], "$name", "cuebench cue $part photo.jpg changed.png"),
    "metric": Kind(KINDS["metrics"], "METRIC", "cuebench explain $part"),
    "protocol": Kind(
        KINDS["protocols"], "PROTOCOL", "cuebench run -p $part -o ideal:shape -o ideal:texture --out runs/$name"
    ),
    "figure": Kind(KINDS["figures"], "FIGURE", "cuebench figure $part RUN --out $name.svg"),
    "observer": Kind(
        KINDS["observers"], "$name", "cuebench run -o $part -p imagenet_accuracy --data-root DATA --out runs/$name"
    ),
}
"""Word of ``cuebench new`` → what it begins."""


class Begun(NamedTuple):
    """What was written, and the commands that come next."""

    file: Path
    test: Path | None
    """None in cuebench itself, whose tests check every part that there is."""
    part: str
    run_test: str
    use: str


def new_part(kind: str, name: str, folder: str | Path = ".") -> Begun:
    """Write the file of a new part, and its test.

    Parameters
    ----------
    kind : str
        ``cue``, ``metric``, ``protocol``, ``figure`` or ``observer``.
    name : str
        Name of the part, of its file and, for cues, figures and observers, of its function.
    folder : path
        Where to; default: here. The folder of cuebench that holds parts of this kind makes it a part of cuebench.

    Raises
    ------
    UserError
        For a name that is none or is taken, and for files that exist.
    """
    if kind not in NEW:
        raise did_you_mean("kind of part:", kind, NEW)
    begun, home = NEW[kind], Path(folder).expanduser()
    inside = home.resolve() == begun.registry.folder.resolve()
    file, test = home / f"{name}.py", home / f"test_{name}.py"
    problems = []
    if not (name.isidentifier() and name.isascii() and name == name.lower()) or keyword.iskeyword(name):
        problems.append(f"{name!r} is no name: lower-case letters, digits and underscores, e.g. my_{kind}")
    elif kind != "observer" and name in begun.registry:
        problems.append(f"there is a {kind} {name!r} already ({begun.registry.origin(name)}): choose another name")
    if inside and kind == "observer":
        raise UserError("a model of yours belongs into a file of yours", "a source of many: docs/extending.md")
    values = {"name": name, "title": name.replace("_", " ").capitalize()}
    values["part"] = name if inside else f"{SCHEME}{file}:{Template(begun.attribute).substitute(values)}"
    texts = {file: _filled(f"{kind}.txt", values)} | ({} if inside else {test: _filled(f"test_{kind}.txt", values)})
    # A file that says what would be written is what a process that was killed had written.
    problems += [f"{path} exists" for path, text in texts.items() if path.exists() and _differs(path, text)]
    if problems:
        raise all_problems(f"new {kind}", problems, "choose another name, or another folder with --to DIR")
    for path, text in texts.items():
        write_atomic(path, text)
    use = Template(begun.use).substitute(values)
    if inside:
        return Begun(file, None, name, f"pytest tests/conformance -k {name}", use)
    return Begun(file, test, values["part"], f"pytest {test}", use)


def _differs(path: Path, text: bytes) -> bool:
    return not path.is_file() or path.stat().st_size != len(text) or path.read_bytes() != text


def _filled(template: str, values: dict[str, str]) -> bytes:
    return Template((TEMPLATES / template).read_text("utf-8")).substitute(values).encode()
