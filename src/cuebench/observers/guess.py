"""What a user may have meant who wrote a file, a folder or a bare name where ``SOURCE:NAME`` is expected."""

from __future__ import annotations

import ast
import contextlib
import zipfile
from pathlib import Path

TABLES = {".csv", ".tsv", ".parquet"}
"""Endings of files of recorded answers."""


def likely_spec(text: str) -> str:
    """Return the observer that a bare text probably means, as a hint that can be copied.

    >>> likely_spec("net.onnx"), likely_spec("resnet50")
    ('onnx:net.onnx', 'timm:resnet50 or torchvision:resnet50')
    """
    path, options = text.partition("?")[::2]
    tail = f"?{options}" if options else ""
    suffix = Path(path.removesuffix(".tar")).suffix.lower()
    if suffix == ".py":
        return f"python:{path}:{_one_of(factories(path))}{tail}"
    if suffix == ".onnx":
        return f"onnx:{path}{tail}"
    if suffix in {".pt2", ".pt", ".ts"} and (kind := _program(path)):
        return f"torchscript:{path}{tail}" if kind == "torchscript" else EXPORTED.format(path=path)
    if suffix in {".pth", ".pt", ".ckpt", ".safetensors", ".bin"}:
        return f"checkpoint:{path}?arch=timm:NAME or ?arch=torchvision:NAME or ?arch=python:FILE.py:FACTORY"
    if suffix in TABLES:
        return f"recorded:{path}{tail}"
    folder = Path(path)
    with contextlib.suppress(OSError, ValueError):  # a text that is no name of a file
        if folder.is_dir():
            return f"transformers:{path}" if (folder / "config.json").is_file() else f"recorded:{path}"
    return f"timm:{path} or torchvision:{path}"


EXPORTED = (
    "python:FILE.py:FACTORY, where FACTORY returns cuebench.wrap(torch.export.load({path!r}).module(), preprocess=…, "
    "labels=…): loading a file of torch.export runs code, so it is done in a file of your own"
)
"""What to do with a ``.pt2`` file."""


def factories(path: str) -> list[str]:
    """Return the public functions of a Python file, read but not run; empty where it cannot be read."""
    try:
        tree = ast.parse(Path(path).read_text("utf-8"))
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):  # the last two: nested too deeply
        return []
    return [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]


def _one_of(names: list[str]) -> str:
    if not names:
        return "FACTORY, where FACTORY is a function in it that returns the model"
    return names[0] if len(names) == 1 else f"FACTORY, where FACTORY is one of {', '.join(names[:8])}"


def _program(path: str) -> str:
    """Tell a TorchScript file and a file of torch.export from weights; empty for weights and where there is no file."""
    try:
        with zipfile.ZipFile(path) as archive:
            inside = {name.partition("/")[2] for name in archive.namelist()}
    except Exception:  # noqa: BLE001 - no such file, no archive, or a damaged one, of which zipfile raises anything
        return ""
    if "archive_format" in inside or any(name.startswith("models/") for name in inside):
        return "export"
    return "torchscript" if "constants.pkl" in inside else ""
