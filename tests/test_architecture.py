"""The tree is the method: imports point one way, files and functions stay small, the import is light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "cuebench"
LAYERS = [
    {"errors", "types", "_version", "processes"},
    {"files", "registry", "_process_main"},
    {"labels"},
    {"cues", "metrics"},
    {"stimuli", "observers"},
    {"responses"},
    {"protocols"},
    {"runs"},
    {"reports", "study", "checkup", "testing", "callbacks", "published"},
    {"catalogue"},
    {"cli"},
    {"__main__"},
]
LEVEL = {part: level for level, parts in enumerate(LAYERS) for part in parts}
FILES = sorted(SOURCE.rglob("*.py"))


def part_of(module: str) -> str:
    return module.split(".")[1] if "." in module else "__init__"


def imported_parts(path: Path) -> set[str]:
    """Every part of cuebench that a file imports, at top level or inside a function; typing-only imports do not run."""
    found: set[str] = set()
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
            found |= {part_of(a.name) for a in node.names if a.name.startswith("cuebench.")}
        elif isinstance(node, ast.ImportFrom) and node.module == "cuebench":
            found |= {a.name for a in node.names if a.name in LEVEL}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cuebench."):
            found.add(part_of(node.module or ""))
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_one_way(path: Path) -> None:
    own = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    if own == "__init__":
        return
    assert own in LEVEL, f"{own} has no layer: add it to LAYERS where it belongs"
    wrong = {part for part in imported_parts(path) if part != own and LEVEL[part] >= LEVEL[own]}
    assert not wrong, f"{own} (level {LEVEL[own]}) must not import {wrong}"


def test_the_direction_test_can_fail(tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text("def f():\n    from cuebench.cli import main\n")
    assert imported_parts(bad) == {"cli"}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
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
    assert min(float(own) for own, *_ in parsed) < max(0.3, min(float(numpy) for _, numpy, _ in parsed))
    assert min(float(own) for own, *_ in parsed) < 0.3


def test_listing_parts_does_not_import_torch() -> None:
    code = (
        "import sys; from cuebench.catalogue import rows;"
        "[rows(k) for k in ('protocols', 'observers', 'cues', 'metrics', 'stimuli', 'labels')];"
        "print('torch' in sys.modules, 'numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
