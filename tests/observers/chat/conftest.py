"""Lets the tests of this folder import ``chat_server``: pytest's importlib mode adds no folder to the path."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "endpoints"))


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys of whoever runs the tests stay out of them."""
    for name in ("CUEBENCH_CHAT_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
