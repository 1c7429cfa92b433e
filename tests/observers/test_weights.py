"""Weights of a checkpoint keep their meaning: what would be cast without a word is refused or noted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cuebench.errors import UserError
from cuebench.observers.torch.weights import fit, fit_file, read_weights

pytestmark = [pytest.mark.torch, pytest.mark.xdist_group("torch")]
torch = pytest.importorskip("torch")


def state(**kinds: Any) -> dict[str, Any]:
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    return {k: v.to(kinds.get(k.partition(".")[2], v.dtype)) for k, v in model.state_dict().items()}


def model() -> Any:
    return torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))


@pytest.mark.parametrize("name", ["int8", "uint8", "int64", "bool", "complex64"])
def test_numbers_of_another_kind_are_refused(name: str) -> None:
    with pytest.raises(UserError, match=f"0.weight: {name}, the model has float32") as caught:
        fit(model(), state(weight=getattr(torch, name)), "file")
    assert "python:FILE.py:FACTORY" in caught.value.hint


def test_rounding_is_noted_and_widening_is_not() -> None:
    assert fit(model(), state(weight=torch.float64), "file") == ("weights rounded from float64 to float32",)
    assert fit(model(), state(weight=torch.float16), "file") == ()
    assert fit(model(), state(num_batches_tracked=torch.float32), "file") == ()


def test_a_checkpoint_that_contains_itself(tmp_path: Path) -> None:
    ring: dict[str, Any] = {}
    ring["state_dict"] = ring
    torch.save(ring, tmp_path / "ring.pt")
    with pytest.raises(UserError, match="inside one another"):
        read_weights(tmp_path / "ring.pt")
    torch.save({"model": {"state_dict": state()}}, tmp_path / "deep.pt")
    assert fit_file(model(), tmp_path / "deep.pt")
