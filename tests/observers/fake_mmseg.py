"""A package ``mmseg`` with the interface that cuebench uses: ``mmseg.apis.init_model`` and a segmentor's ``inference``.

MMSegmentation needs compiled operators that do not install everywhere. Written from its public documentation.
"""

import sys
import types
from pathlib import Path

import torch


class Config(dict):
    """A configuration: a mapping whose Python file was executed."""

    @classmethod
    def fromfile(cls, file):
        values = {}
        exec(Path(file).read_text(), values)
        return cls({k: v for k, v in values.items() if not k.startswith("__")})


class Segmentor(torch.nn.Module):
    """A 1×1 convolution; class k of pure input channel k."""

    def __init__(self, config):
        super().__init__()
        self.decode_head = torch.nn.Conv2d(3, config["model"]["decode_head"]["num_classes"], 1, bias=False)
        self.test_cfg = config["model"]["test_cfg"]
        self.seen = []

    def inference(self, inputs, batch_img_metas):
        assert all(meta["ori_shape"] == tuple(inputs.shape[2:]) for meta in batch_img_metas)
        self.seen.append(inputs)
        return self.decode_head(inputs).softmax(1)


def init_model(config, checkpoint=None, device="cuda:0", cfg_options=None):
    assert checkpoint is None, "weights are read by cuebench, as data"
    loaded = Config.fromfile(config)
    model = Segmentor(loaded)
    model.cfg = loaded
    return model.to(device).eval()


def install(monkeypatch):
    """Put the package where imports find it."""
    import importlib.machinery

    package, apis = types.ModuleType("mmseg"), types.ModuleType("mmseg.apis")
    package.__spec__ = importlib.machinery.ModuleSpec("mmseg", None)
    apis.init_model = init_model
    monkeypatch.setitem(sys.modules, "mmseg", package)
    monkeypatch.setitem(sys.modules, "mmseg.apis", apis)
