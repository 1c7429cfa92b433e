"""A package ``robustbench`` with the interface that cuebench uses: the zoo, ``load_model`` and ``get_preprocessing``.

The real one pins an old timm, so it cannot be installed beside cuebench's. Written from its documented interface.
"""

import importlib.machinery
import sys
import types
from enum import Enum
from pathlib import Path

import torch


class BenchmarkDataset(Enum):
    cifar_10 = "cifar10"
    imagenet = "imagenet"


class ThreatModel(Enum):
    Linf = "Linf"
    L2 = "L2"
    corruptions = "corruptions"


def network(classes):
    return torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten(), torch.nn.Linear(48, classes))


def zoo():
    return {
        BenchmarkDataset.imagenet: {
            ThreatModel.Linf: {"Salman2020Do_R50": {"preprocessing": "Res256Crop224"},
                               "Wong2020Fast": {"preprocessing": "Crop288"}},
            ThreatModel.L2: {},
        },
        BenchmarkDataset.cifar_10: {ThreatModel.Linf: {"Carmon2019Unlabeled": {"preprocessing": None}}},
    }  # fmt: skip


def load_model(model_name, model_dir="./models", dataset=BenchmarkDataset.cifar_10, threat_model=ThreatModel.Linf):
    """Read the file, or fail as a download without a network does."""
    file = Path(model_dir) / dataset.value / threat_model.value / f"{model_name}.pt"
    if not file.is_file():
        raise OSError("no connection")
    model = network(1000 if dataset is BenchmarkDataset.imagenet else 10)
    model.load_state_dict(torch.load(file, weights_only=True))
    return model.eval()


def get_preprocessing(dataset, threat_model, model_name, preprocessing):
    from torchvision import transforms

    tensor = transforms.ToTensor()
    return transforms.Compose({
        "Res256Crop224": [transforms.Resize(256), transforms.CenterCrop(224), tensor],
        "Crop288": [transforms.CenterCrop(288), tensor],
        None: [tensor],
    }[zoo()[dataset][threat_model][model_name]["preprocessing"]])  # fmt: skip


def install(monkeypatch):
    """Put the package where imports find it."""
    parts = {
        "robustbench": {},
        "robustbench.data": {"get_preprocessing": get_preprocessing},
        "robustbench.utils": {"load_model": load_model},
        "robustbench.model_zoo": {"model_dicts": zoo()},
        "robustbench.model_zoo.enums": {"BenchmarkDataset": BenchmarkDataset, "ThreatModel": ThreatModel},
    }
    for name, content in parts.items():
        module = types.ModuleType(name)
        module.__spec__ = importlib.machinery.ModuleSpec(name, None)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
