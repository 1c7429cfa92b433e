"""The callback in a real Lightning training, in a process of its own: other tests need Lightning not to be imported."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.xdist_group("torch")]

SCRIPT = """
import json, sys
from cuebench.observers.torch.torchvision_import import import_torchvision
import_torchvision()
import torch
import lightning.pytorch as pl
from cuebench.callbacks import BiasOverTraining
from cuebench.observers.preprocess import Preprocess

class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 5, 2), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(2))
        self.head = torch.nn.Linear(16, 3)
    def forward(self, x):
        return self.head(self.body(x).flatten(1))
    def training_step(self, batch, _):
        x, y = batch
        return torch.nn.functional.cross_entropy(self(x), y)
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)

torch.manual_seed(0)
data = torch.utils.data.TensorDataset(torch.randn(16, 3, 32, 32), torch.arange(16) % 3)
watch = BiasOverTraining(preprocess=Preprocess(size=32), labels=3, every=1, resamples=100)
trainer = pl.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False,
                     enable_progress_bar=False, enable_model_summary=False, callbacks=[watch.lightning()])
net = Net()
trainer.fit(net, torch.utils.data.DataLoader(data, batch_size=8))
logged = {k: float(v) for k, v in trainer.callback_metrics.items()}
print(json.dumps({"logged": logged, "history": len(watch.history), "epochs": trainer.current_epoch}))
"""


@pytest.mark.slow
def test_a_real_lightning_training_logs_the_bias(tmp_path: Path) -> None:
    if importlib.util.find_spec("lightning") is None:
        pytest.skip("needs lightning (pip install 'cuebench[dev]')")
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, cwd=tmp_path, timeout=200)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["epochs"] == 2
    assert found["history"] >= 2
    assert found["logged"]
    assert all(name.startswith("triplet_shape_bias/") and 0 <= v <= 1 for name, v in found["logged"].items())
