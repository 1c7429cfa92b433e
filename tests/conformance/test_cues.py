"""Every cue of the registry keeps the promises of `cuebench.testing.check_cue`."""

import inspect

import pytest

from cuebench.registry import cues
from cuebench.testing import CUE_CHECKS, check_cue

# The quilt searches the whole image for each block: its cost grows with the square of the size.
LARGE = [name for name in cues if name not in {"quilting"}]
CASES = [(name, check) for name in cues for check in CUE_CHECKS if check != "large" or name in LARGE]


@pytest.mark.parametrize(("name", "check"), CASES)
def test_cue_keeps(name, check):
    check_cue(name, only=[check])


@pytest.mark.parametrize("name", list(cues))
def test_cue_docstring_has_the_parts_of_a_page(name):
    doc = inspect.getdoc(cues.get(name)) or ""
    for part in ("Parameters\n", "Returns\n"):
        assert part in doc, f"{name} lacks {part.strip()}"
    for keyword, parameter in inspect.signature(cues.get(name)).parameters.items():
        if parameter.kind is not parameter.VAR_KEYWORD:
            assert keyword in doc, f"{name} does not document {keyword}"
