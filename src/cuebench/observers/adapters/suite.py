"""The models of a paper as one name: ``suite:refined_bias/architectures`` loads all of its observers.

The lists are reviewed files (``published/suites/*.csv``) that name the exact weights: an observer known by name
(torchvision, timm, OpenCLIP, transformers), or a checkpoint file with its address. Files are looked for in
``?weights_dir=DIR`` (default: the folder in CUEBENCH_WEIGHTS, or ~/.cache/cuebench/weights); those with a known hash
are downloaded where there is a network. Everything that is missing is listed at once, with the place where it belongs;
``?missing=skip`` goes on with the models that are there.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import urllib.request
from collections import Counter
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

from cuebench.errors import UserError, all_problems, did_you_mean
from cuebench.files import disk_errors, hash_file, make_folder, replacing, write_atomic
from cuebench.observers.adapters._hub import reachable
from cuebench.observers.adapters._options import option_values, with_option
from cuebench.observers.base import Adapter, LoadOptions, Observer, Spec
from cuebench.options import Option
from cuebench.reading import read_csv
from cuebench.registry import ROOT

FOLDER = ROOT / "published" / "suites"
WEIGHTS = "CUEBENCH_WEIGHTS"
LARGEST = 64 << 30
"""Most bytes of a file of weights that are received."""
OPTIONS = {
    "weights_dir": Option("", f"folder of checkpoint files; default: that of {WEIGHTS}, or ~/.cache/cuebench/weights"),
    "missing": Option("error", "what to do where models cannot be loaded", choices=("error", "skip")),
    "only": Option((), "only these models of the suite"),
}


@dataclass(frozen=True)
class Member:
    """One model of a paper: its observer, its weights, and how certain the match is (``sure``).

    ``file`` and ``address`` are set where the weights are a file that no library fetches by name; ``sha256`` is the
    hash or its first digits; ``keep`` says which keys of the checkpoint are the model's (a prefix, or ``!part`` for
    all but those).
    """

    model: str
    observer: str
    weights: str
    file: str
    address: str
    sha256: str
    keep: str
    sure: str
    note: str


def names() -> list[str]:
    """Return the names of the suites."""
    return sorted(path.relative_to(FOLDER).with_suffix("").as_posix() for path in FOLDER.rglob("*.csv"))


@cache
def members(name: str) -> tuple[Member, ...]:
    """Return the models of a suite; an unknown name says which ones are near."""
    if name not in names():
        raise did_you_mean("suite", name, names())
    return read_members(FOLDER / f"{name}.csv")


def read_members(path: Path) -> tuple[Member, ...]:
    """Read a list of models; a model that is listed twice is refused."""
    columns = [field.name for field in fields(Member)]
    table = read_csv(path, "suite", needed=columns)
    listed = Counter(row["model"] for row in table.rows)
    problems = [f"model {model!r} is listed {count} times" for model, count in listed.items() if count > 1]
    problems += [f"unknown column {column!r}" for column in table.columns if column not in columns]
    if problems:
        raise all_problems(f"suite {path}", problems)
    return tuple(Member(**row) for row in table.rows)


def load(spec: Spec, options: LoadOptions) -> list[Observer]:
    """Load all observers of a suite; everything that is missing is reported at once."""
    values = option_values(spec, OPTIONS)
    folder = weights_folder(values["weights_dir"])
    listed = members(spec.body)
    unknown = [name for name in values["only"] if name not in {m.model for m in listed}]
    if unknown:
        raise did_you_mean(f"model of suite {spec.body}", unknown[0], [m.model for m in listed])
    chosen = [m for m in listed if not values["only"] or m.model in values["only"]]
    observers: list[Observer] = []
    problems: list[str] = []
    for member in chosen:
        try:
            observers += _loaded(member, folder, options)
        except UserError as error:
            problems.append(f"{member.model}: {error.message}" + (f" ({member.note})" if member.note else ""))
    skip = values["missing"] == "skip"
    if problems and not (skip and observers):
        raise all_problems(
            f"{spec.text}: {len(problems)} of {len(chosen)} observers cannot be loaded",
            problems,
            f"put the files into {folder} (or set {WEIGHTS}), fetch the others on a machine with a network and copy "
            "its HF_HOME and TORCH_HOME" + ("" if skip else f"; or skip them: {with_option(spec, 'missing=skip')}"),
            most=60,
        )
    return observers


def weights_folder(folder: str = "") -> Path:
    """Return the folder of checkpoint files: the named one, else CUEBENCH_WEIGHTS, else the cache of the user."""
    chosen = folder or os.environ.get(WEIGHTS, "")
    return Path(chosen).expanduser() if chosen else Path.home() / ".cache" / "cuebench" / "weights"


def present(member: Member, folder: Path) -> bool:
    """Tell whether the weights of a member are on this machine, from file names alone: no library is imported."""
    if member.file:
        return (folder / member.file).is_file()
    spec = Spec.parse(member.observer)
    if spec.options.get("weights") == "random":
        return True
    home = Path.home() / ".cache"
    if spec.scheme == "torchvision":
        torch_home = Path(os.environ.get("TORCH_HOME", home / "torch"))
        return any((torch_home / "hub" / "checkpoints").glob(f"{spec.body}-*.pth"))
    repository = f"timm/{spec.body}" if spec.scheme == "timm" else spec.body
    hub = Path(os.environ.get("HF_HOME", home / "huggingface")) / "hub"
    return (hub / f"models--{repository.replace('/', '--')}" / "snapshots").is_dir()


def overview(folder: Path | None = None) -> list[dict[str, str]]:
    """Return one row for each suite: how many models, how many of them on this machine, how many need a file."""
    place = weights_folder() if folder is None else folder
    rows = []
    for name in names():
        listed = members(name)
        here = [m.model for m in listed if present(m, place)]
        files = sum(bool(m.file) for m in listed)
        shown = ", ".join(here[:4]) + (" …" if len(here) > 4 else "")
        rows.append({"name": name, "models": str(len(listed)), "present": str(len(here)), "by file": str(files),
                     "on this machine": shown})  # fmt: skip
    return rows


def _loaded(member: Member, folder: Path, options: LoadOptions) -> list[Observer]:
    from cuebench.observers.load import load as load_one

    text = member.observer
    if member.file:
        text = text.replace("{file}", str(_usable(member, folder, offline=options.offline)))
    separator = "&" if "?" in text else "?"
    return [*load_one(f"{text}{separator}name={_plain(member.model)}", options)]


def _plain(model: str) -> str:
    """Return a name that fits into a spec: no separators of the query."""
    return model.replace("&", "and").replace("%", " percent").replace("+", "%2B").replace("#", "%23")


def _usable(member: Member, folder: Path, *, offline: bool = True) -> Path:
    path = folder / member.file
    if not path.is_file():
        _fetch(member, path, offline=offline)
    if member.sha256 and not (digest := hash_file(path).sha256).startswith(member.sha256):
        raise UserError(f"{path} has sha256 {digest[:12]}…, not {member.sha256}…: fetch it again")
    return _filtered(path, member.keep) if member.keep else path


def _fetch(member: Member, path: Path, *, offline: bool) -> None:
    """Download a file whose hash is known, or that lies on the Hugging Face hub; else raise with its address."""
    wanted = f"{path} is missing; its source is {member.address}"
    hub = member.address.startswith("https://huggingface.co/")
    if offline or not (member.sha256 or hub) or not member.address.startswith(("https://", "http://")):
        raise UserError(wanted)
    if not reachable(member.address):
        raise UserError(f"{wanted}, which cannot be reached")
    make_folder(path.parent)
    try:
        if hub:
            from huggingface_hub import hf_hub_download

            owner, name = member.address.removeprefix("https://huggingface.co/").split("/")[:2]
            hf_hub_download(f"{owner}/{name}", path.name, local_dir=path.parent)
        else:
            _download(member, path)
    except (OSError, http.client.HTTPException) as error:
        raise UserError(f"{wanted}, which answered: {error}") from None


def _download(member: Member, path: Path) -> None:
    """Download to a temporary file, which gets its name only when its hash is right."""
    with replacing(path) as aside:
        with urllib.request.urlopen(member.address, timeout=60) as answer, aside.open("wb") as file:
            received = 0
            while chunk := answer.read(1 << 20):
                received += len(chunk)
                if received > LARGEST:
                    raise OSError(f"more than {LARGEST:,} bytes")
                file.write(chunk)
        if not (digest := hash_file(aside).sha256).startswith(member.sha256):
            raise OSError(f"a file with sha256 {digest[:12]}…, not {member.sha256}…")


def _filtered(path: Path, keep: str) -> Path:
    """Write the model's own tensors beside a checkpoint that holds more, once; return that file."""
    # Named by what went in, so that another checkpoint or another rule never finds it.
    key = hashlib.sha256(f"{hash_file(path).sha256}|{keep}".encode()).hexdigest()[:12]
    target = path.with_name(f"{path.name}.{key}.safetensors")
    if target.is_file():
        return target
    from safetensors.torch import save

    from cuebench.observers.torch.weights import read_weights

    state = read_weights(path).tensors
    if keep.startswith("!"):
        kept = {k: v for k, v in state.items() if keep[1:] not in k}
    else:
        kept = {k.removeprefix(keep): v for k, v in state.items() if k.startswith(keep)}
    if not kept:
        raise UserError(f"{path} has no keys {keep!r}…; it has {', '.join(list(state)[:3])} …")
    with disk_errors(target):
        write_atomic(target, save({k: v.detach().clone().contiguous() for k, v in kept.items()}))
    return target


ADAPTER = Adapter(
    load,
    form="suite:PAPER/LIST[?weights_dir=DIR][&missing=skip][&only=MODEL,MODEL]",
    examples=("suite:refined_bias/architectures", "suite:texture_association?missing=skip"),
    options=OPTIONS,
)
