"""The tree shows the method: imports point one way, files and functions stay small, importing cuebench is light."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "cuebench"
LAYERS = [
    {"errors", "arrays", "interval_methods", "compiled", "csv_text", "_version"},
    {"words"},
    {"types", "options", "processes", "places"},
    {"imports"},
    {"python_files"},
    {"files", "registry", "_process_main"},
    {"folders"},
    {"reading"},
    {"source_code"},
    {"labels"},
    {"statistics"},
    {"cues", "metrics"},
    {"observers"},
    {"stimuli"},
    {"controls"},
    {"responses"},
    {"tables"},
    {"protocols"},
    {"runs"},
    {"analyses", "calibration", "published", "checkup", "callbacks"},
    {"reports"},
    {"testing"},
    {"study"},
    {"catalogue"},
    {"cli"},
    {"__main__"},
]
LEVEL = {part: level for level, parts in enumerate(LAYERS) for part in parts}
FILES = sorted(SOURCE.rglob("*.py"))
NAMES = [str(p.relative_to(SOURCE)) for p in FILES]
IMPORTS_BY_NAME = {
    "__init__.py": "public names and rooms, imported when they are used",
    "cli/__init__.py": "the verbs, one file each",
    "registry.py": "the parts, one file each",
    "imports.py": "what a file of the user imports",
    "types.py": "how a notebook shows stimuli",
    "processes.py": "the module that a worker process runs",
    "testing/__init__.py": "the checks, imported when they are used",
    "published/check.py": "the checks of published values, one file each",
    "stimuli/drawing/textures/__init__.py": "the families of textures, one file each",
    "stimuli/masks/__init__.py": "a function of the user",
    "observers/adapters/python.py": "a model of the user",
    "observers/adapters/lite.py": "weights in a third-party package",
    "runs/optional.py": "an optional library of tables",
    "cues/parameters.py": "an optional image library that the caller names",
    "reports/vega.py": "the optional libraries that draw figures",
    "study/serve.py": "the application, which worker processes of the server build",
}
"""Files that import modules by a computed name or name modules of cuebench as texts → what they import so."""


def part_of(module: str) -> str:
    return module.split(".")[1] if "." in module else "__init__"


def imported_parts(path: Path) -> set[str]:
    """Every part of cuebench that a file imports, at top level or inside a function; typing-only imports do not run."""
    parts: set[str] = set()
    tree = ast.parse(path.read_text("utf-8"))
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            parts |= {part_of(a.name) for a in node.names if a.name.startswith("cuebench.")}
        elif isinstance(node, ast.ImportFrom) and node.module == "cuebench":
            parts |= {a.name for a in node.names if a.name in LEVEL}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cuebench."):
            parts.add(part_of(node.module or ""))
    return parts


def imports_by_name(path: Path) -> list[str]:
    """Every import by a computed name, and every text that names a module of cuebench, docstrings aside."""
    tree = ast.parse(path.read_text("utf-8"))
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    uses = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            # A constant is a third-party module here: those of cuebench are seen below.
            uses += [] if isinstance(node.args[0], ast.Constant) else [ast.unparse(node)]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            module = re.fullmatch(r"cuebench((?:\.\w+)+)(:\w+)?", node.value)
            place = SOURCE.joinpath(*module[1].strip(".").split(".")) if module else None
            if place is not None and (module[2] or place.is_dir() or place.with_suffix(".py").is_file()):
                uses.append(node.value)
    return uses


def foreign_private_imports(path: Path, root: Path = SOURCE) -> list[str]:
    """Every private module or name of another folder that a file imports."""
    folder = ["cuebench", *path.relative_to(root).parent.parts]
    foreign = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{a.name}" for a in node.names]
        else:
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        for name in names:
            parts = name.split(".")
            private = [i for i, part in enumerate(parts) if part.startswith("_") and not part.startswith("__")]
            if parts[0] != "cuebench" or not private or name.startswith("cuebench._version"):
                continue
            # Private to the folder that it lies in, and to everything below that folder's private package.
            owner = parts[: private[0]]
            inside = folder[: private[0] + 1] == parts[: private[0] + 1]
            of_a_module = Path(root, *owner[1:]).with_suffix(".py").is_file()
            if not inside and folder != (owner[:-1] if of_a_module else owner):
                foreign.append(name)
    return foreign


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_imports_point_one_way(path: Path) -> None:
    part = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    if part == "__init__":
        return
    assert part in LEVEL, f"{part} has no layer: add it to LAYERS where it belongs"
    wrong = {other for other in imported_parts(path) if other != part and LEVEL[other] >= LEVEL[part]}
    assert not wrong, f"{part} (level {LEVEL[part]}) must not import {wrong}"


def test_the_direction_test_can_fail(tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text("def f():\n    from cuebench.cli import main\n")
    assert imported_parts(bad) == {"cli"}


def test_no_import_passes_the_layers_as_a_text() -> None:
    by_name = {name: uses for name, path in zip(NAMES, FILES) if (uses := imports_by_name(path))}
    unknown = {name: uses for name, uses in by_name.items() if name not in IMPORTS_BY_NAME}
    assert not unknown, "import directly, inside the function if need be; or explain it in IMPORTS_BY_NAME"
    assert set(IMPORTS_BY_NAME) <= set(by_name), "IMPORTS_BY_NAME lists files that import nothing by name"


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_private_modules_stay_in_their_folder(path: Path) -> None:
    foreign = foreign_private_imports(path)
    assert not foreign, f"{foreign}: a module that two folders use is not private; give it a public name or move it"


@pytest.mark.parametrize(
    ("text", "uses"),
    [
        ('importlib.import_module(f"cuebench.{name}")', ["importlib.import_module(f'cuebench.{name}')"]),
        ('TABLE = {"hf": "cuebench.stimuli.masks:hf"}', ["cuebench.stimuli.masks:hf"]),
        ('x = "cuebench.cli"', ["cuebench.cli"]),
        ('"""Docs of cuebench.cli."""\nimport importlib\nimportlib.import_module("torch")', []),
    ],
)
def test_the_test_of_texts_can_fail(tmp_path: Path, text: str, uses: list[str]) -> None:
    (tmp_path / "a.py").write_text(text)
    assert imports_by_name(tmp_path / "a.py") == uses


@pytest.mark.parametrize(
    ("place", "text", "foreign"),
    [
        ("stimuli/a.py", "from cuebench.cues._moves import cuts", ["cuebench.cues._moves.cuts"]),
        ("stimuli/a.py", "from cuebench.cues import _moves", ["cuebench.cues._moves"]),
        ("cues/a.py", "from cuebench.cues._moves import cuts", []),
        ("cues/deeper/a.py", "from cuebench.cues._moves import cuts", ["cuebench.cues._moves.cuts"]),
        ("cues/_eed/a.py", "from cuebench.cues._eed.plan import Plan", []),
        ("cues/a.py", "from cuebench.cues._eed.plan import Plan", []),
        ("stimuli/a.py", "from cuebench._version import __version__", []),
    ],
)
def test_the_test_of_private_modules_can_fail(tmp_path: Path, place: str, text: str, foreign: list[str]) -> None:
    (tmp_path / place).parent.mkdir(parents=True)
    (tmp_path / place).write_text(text)
    assert foreign_private_imports(tmp_path / place, tmp_path) == foreign


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_files_and_functions_stay_small(path: Path) -> None:
    text = path.read_text("utf-8")
    assert len(text.splitlines()) <= 500
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            doc = len((ast.get_docstring(node, clean=False) or "").splitlines())
            length = node.end_lineno - node.lineno + 1 - doc
            # A compiled kernel is one body by nature: what it calls must be inlined by its compiler.
            kernel = any("jit" in ast.unparse(d) for d in node.decorator_list)
            assert length <= (120 if kernel else 60), f"{node.name} has {length} lines"


def test_importing_cuebench_is_light() -> None:
    """Measured as a ratio, not in seconds: importing cuebench costs less than importing numpy."""
    code = (
        "import time; a = time.perf_counter(); import cuebench; b = time.perf_counter(); import numpy;"
        "c = time.perf_counter(); import sys;"
        "heavy = {'torch', 'timm', 'torchvision', 'transformers', 'pyarrow', 'numba', 'scipy'} & set(sys.modules);"
        "print(b - a, c - b, sorted(heavy))"
    )
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(3)]
    parsed = [r.stdout.split(maxsplit=2) for r in runs]
    assert all(heavy.strip() == "[]" for *_, heavy in parsed)
    seconds, numpy_seconds = (min(float(r[column]) for r in parsed) for column in (0, 1))
    assert seconds < max(0.3, numpy_seconds)
    assert seconds < 0.3


def test_listing_parts_does_not_import_torch() -> None:
    code = (
        "import sys; from cuebench.catalogue import rows;"
        "[rows(k) for k in ('protocols', 'observers', 'cues', 'metrics', 'stimuli', 'labels')];"
        "print('torch' in sys.modules, 'numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
