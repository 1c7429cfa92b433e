"""Every registered metric, adapter and protocol keeps its contract: a new file is tested by existing."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuebench import registry
from cuebench.errors import UserError
from cuebench.testing import check_adapter, check_metric, check_protocol


@pytest.mark.parametrize("name", [*registry.metrics])
def test_metric(name: str) -> None:
    check_metric(name)


@pytest.mark.parametrize("name", [*registry.adapters])
def test_adapter(name: str) -> None:
    check_adapter(name)


@pytest.mark.parametrize("name", [*registry.protocols])
def test_protocol(name: str) -> None:
    check_protocol(name)


@pytest.mark.parametrize("kind", ["metrics", "adapters", "protocols", "cues", "readers", "makers", "datasets"])
def test_every_part_has_a_summary_and_unknown_ones_a_suggestion(kind: str) -> None:
    parts = getattr(registry, kind)
    assert parts.names()
    assert all(parts.summary(name) for name in parts)
    first = parts.names()[0]
    with pytest.raises(UserError, match="Did you mean"):
        parts.get(first + "x")


def test_a_new_file_is_a_new_part(tmp_path: Path) -> None:
    (tmp_path / "fresh.py").write_text('"""Fresh."""\nMETRIC = 3\n')
    (tmp_path / "helper.py").write_text('"""No part."""\n')
    (tmp_path / "_private.py").write_text("METRIC = 4\n")

    class Here(registry.Registry):
        @property
        def folder(self) -> Path:
            return tmp_path

    parts = Here("metric", "nowhere", "METRIC")
    assert parts.names() == ["fresh"]
    assert parts.summary("fresh") == "Fresh."
