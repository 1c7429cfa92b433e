"""Every function of cuebench that reads something, found in its syntax, and why some of them are not attacked."""

from __future__ import annotations

import ast
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import cuebench

SOURCE = Path(cuebench.__file__).parent
MODULES = {
    "json": {"load", "loads"},
    "tomllib": {"load", "loads"},
    "csv": {"reader", "DictReader", "read_csv"},
    "pickle": {"load", "loads"},
    "zipfile": {"ZipFile"},
    "tarfile": {"open"},
    "Image": {"open"},
    "pq": {"ParquetFile", "read_table"},
    "torch": {"load"},
    "jit": {"load"},
    "np": {"load", "loadtxt", "genfromtxt", "fromfile"},
    "onnxruntime": {"InferenceSession"},
    "ElementTree": {"fromstring", "parse"},
    "yaml": {"load", "safe_load"},
    "sqlite3": {"connect"},
}
"""Module → functions of it that read."""
OWN = {"read_json", "read_csv", "read_toml", "read_text", "read_bytes", "parse_json", "parse_csv", "parse_toml",
       "parse_parquet", "read_parquet", "open_parquet", "open_picture", "read_picture", "read_table", "read_table_rows",
       "safe_open", "urlopen", "literal_eval", "load_file"}  # fmt: skip
"""Functions and methods that read, whatever they belong to."""
NO_READERS = ("reading.py", "files.py", "source_code.py")
"""Modules that all readers share: what is attacked are those who call them."""


def reads(call: ast.Call) -> bool:
    """Tell whether a call reads something from outside of the process."""
    function = call.func
    if isinstance(function, ast.Name):
        return function.id in OWN
    if not isinstance(function, ast.Attribute):
        return False
    owner = function.value
    name = owner.id if isinstance(owner, ast.Name) else owner.attr if isinstance(owner, ast.Attribute) else ""
    return function.attr in OWN or function.attr in MODULES.get(name, ())


def _functions(node: ast.AST, name: str = "") -> Iterator[tuple[str, ast.Call]]:
    for child in ast.iter_child_nodes(node):
        inner = name
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            inner = f"{name}.{child.name}".strip(".")
        if isinstance(child, ast.Call):
            yield name, child
        yield from _functions(child, inner)


def readers_in(source: str) -> set[str]:
    """Return the functions of a module that read."""
    return {name for name, call in _functions(ast.parse(source)) if reads(call)}


def found() -> set[str]:
    """Return ``module.py:function`` of everything in cuebench that reads."""
    places = set()
    for path in sorted(SOURCE.rglob("*.py")):
        module = path.relative_to(SOURCE).as_posix()
        if module not in NO_READERS:
            places |= {f"{module}:{name}" for name in readers_in(path.read_text("utf-8"))}
    return places


class Reached:
    """Collects which of cuebench's functions are called inside of the ``with`` block, as ``module.py:function``."""

    def __init__(self) -> None:
        self.places: set[str] = set()

    def _called(self, frame: FrameType, event: str, _: Any) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(str(SOURCE)):
            module = Path(file).relative_to(SOURCE).as_posix()
            self.places.add(f"{module}:{frame.f_code.co_qualname.replace('.<locals>', '')}")

    def __enter__(self) -> Reached:
        threading.setprofile(self._called)
        sys.setprofile(self._called)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)


PIPES = "comes from a process that cuebench has started, through a pipe or Ray"
SHIPPED = "is shipped with cuebench"
MADE_HERE = "was made by the same process a moment ago"
CODE = "is Python that you named or installed"
BYTES = "is copied, hashed or compared as bytes, not interpreted"
PROGRAMS = "is a program for its runtime (ONNX, TorchScript), which you trust by naming it"
PICTURES = "is a picture, opened by `open_picture` as all are"
PINNED = "has a pinned SHA-256, which is compared first"
SERVER = "comes from the server of a study that was just started"
WHATEVER = "is a help only: whatever goes wrong with it is ignored"

NOT_ATTACKED = {
    "_process_main.py:_packed_error": PIPES,
    "_process_main.py:answer": PIPES,
    "analyses/demo/stimuli.py:_scene": MADE_HERE,
    "analyses/demo/stimuli.py:_tile": MADE_HERE,
    "analyses/texture_of.py:answers_of": MADE_HERE,
    "calibration/designs/cue_decomposition.py:_published": SHIPPED,
    "cli/_run_file.py:save": BYTES,
    "cli/demo.py:_print_thumbnails": MADE_HERE,
    "cues/versions.py:_unescaped": CODE,
    "labels/__init__.py:built_in": SHIPPED,
    "observers/adapters/_hub.py:_answers": WHATEVER,
    "observers/adapters/onnx.py:_session": PROGRAMS,
    "observers/adapters/suite.py:_download": PINNED,
    "observers/adapters/torchscript.py:_module": PROGRAMS,
    "observers/chat/endpoint.py:Endpoint._not_found": WHATEVER,
    "observers/control_files.py:code_hash": SHIPPED,
    "observers/torch/_script.py:hash_script": MADE_HERE,
    "processes.py:_Worker._answer": PIPES,
    "published/tables.py:_read": SHIPPED,
    "registry.py:Registry._built_in": CODE,
    "registry.py:Registry._from_file": CODE,
    "registry.py:Registry.summary": CODE,
    "registry.py:_module_name": CODE,
    "catalogue/explain.py:_kind_of": CODE,
    "reports/board/pages.py:write_site": SHIPPED,
    "reports/html/report.py:_page": SHIPPED,
    "reports/html/report.py:report": SHIPPED,
    "reports/theme.py:in_dark": MADE_HERE,
    "reports/vega.py:bundle": SHIPPED,
    "responses/ray_engine.py:_pickled": PIPES,
    "responses/ray_worker.py:Answering.__call__": PIPES,
    "responses/ray_worker.py:Answering._answer": PIPES,
    "responses/ray_worker.py:Answering._made": PIPES,
    "responses/ray_worker.py:decoded": PIPES,
    "responses/ray_worker.py:report_of": PIPES,
    "runs/estimate.py:_Probe._ask": BYTES,
    "runs/evaluate.py:_record": MADE_HERE,
    "runs/merge.py:_copy": BYTES,
    "runs/plan.py:Plan.write_manifests": BYTES,
    "runs/plan.py:_key": BYTES,
    "statistics/measured.py:coverages": SHIPPED,
    "stimuli/_depth.py:_samples": PICTURES,
    "stimuli/datasets/base.py:listing": SHIPPED,
    "stimuli/datasets/refined_bias.py:load": SHIPPED,
    "stimuli/decomposition/folder.py:write_labels": BYTES,
    "stimuli/decomposition/originals.py:write_residuals.write": PICTURES,
    "stimuli/masks/__init__.py:_own_function": CODE,
    "stimuli/refined_bias/folder.py:Folder._publish": BYTES,
    "stimuli/render.py:is_shown_as_stored": PICTURES,
    "study/bundle.py:write_bundle": SHIPPED,
    "study/folder.py:_picture": BYTES,
    "study/rehearse.py:Client.ask": SERVER,
    "study/vendor.py:_licence": PINNED,
    "study/visitor.py:_without_times": SERVER,
    "study/vendor.py:_member": PINNED,
    "study/vendor.py:_packed": PINNED,
    "study/vendor.py:_pins_hash": SHIPPED,
    "study/vendor.py:missing": SHIPPED,
    "testing/figures.py:_check_png": MADE_HERE,
    "testing/figures.py:_check_svg": MADE_HERE,
    "testing/new.py:_differs": BYTES,
    "testing/new.py:_filled": SHIPPED,
    "testing/stimuli.py:_files": BYTES,
}
"""Function that reads → why no attack reaches it."""
