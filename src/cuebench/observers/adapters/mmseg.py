"""Models of MMSegmentation: ``mmseg:CONFIG.py?checkpoint=FILE.pth``, where the package is installed.

Configuration and weights are two files, as ``mim download mmsegmentation --config NAME --dest FOLDER`` puts them side
by side; without ``checkpoint=`` the file beside the configuration whose name begins alike is taken. The configuration
is Python and is run by MMEngine: name only files that you trust. Weights are read as data. Window, stride and mode of
the test are those of the configuration, and so are mean, standard deviation and the order of the channels.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cuebench.errors import UserError
from cuebench.labels import LabelSpace, label_space
from cuebench.observers.adapters._options import (
    CHECKPOINT,
    LABELS,
    NAME,
    PREPROCESS_PREFIXED,
    overridden,
    torch_options,
    with_option,
)
from cuebench.observers.base import Adapter, LoadOptions, Observer, Spec
from cuebench.observers.preprocess import Preprocess
from cuebench.observers.torch.segmentation import torch_masks
from cuebench.observers.torch.torchvision_import import import_torchvision
from cuebench.observers.torch.weights import built, existing_file, fit_file
from cuebench.options import Option

DATASETS = {"CityscapesDataset": "cityscapes", "ADE20KDataset": "ade20k"}
"""Data set of a configuration → the label space of its classes."""
OPTIONS = {
    **NAME,
    "weights": Option("", "random weights instead of a checkpoint", choices=("random",)),
    **CHECKPOINT,
    **LABELS,
    **PREPROCESS_PREFIXED,
}


def load(spec: Spec, options: LoadOptions) -> list[Observer]:
    """Load one segmentation model."""
    parsed = torch_options(spec, options, OPTIONS)
    import_torchvision()
    from mmseg.apis import init_model

    config = _config_file(spec)
    model = built(lambda: init_model(str(config), None, device="cpu"), parsed.seed)
    if parsed.random:
        notes: tuple[str, ...] = (f"random weights, seed {parsed.seed}",)
    else:
        notes = fit_file(model, parsed.checkpoint or _checkpoint_beside(config), parsed.ema, parsed.extra)
    swap = _swaps_channels(model)
    observer = torch_masks(
        model,
        name=parsed.name,
        preprocess=overridden(_preprocess(model, swap), spec, parsed.values),
        labels=parsed.labels or _labels(spec, model.cfg),
        call=lambda pixels: _scores(model, pixels.flip(1) if swap else pixels),
        device=options.device,
        precision=options.precision,
        settings={"test": repr(dict(model.test_cfg)), "channels": "BGR" if swap else "RGB"},
        notes=(*notes, f"MMSegmentation, {model.test_cfg['mode']} inference"),
        frozen=True,
    )
    return [observer]


def _config_file(spec: Spec) -> Path:
    path = Path(spec.body).expanduser()
    if not path.suffix:
        path = path.with_name(f"{path.name}.py")
    if not path.is_file():
        raise UserError(
            f"observer {spec.text!r}: there is no configuration {path}",
            f"get it with its weights: mim download mmsegmentation --config {path.stem} --dest {path.parent}",
        )
    return path


def _checkpoint_beside(config: Path) -> Path:
    checkpoints = sorted(config.parent.glob(f"{config.stem}*.pth"))
    if len(checkpoints) != 1:
        what = "no weights" if not checkpoints else f"{len(checkpoints)} files of weights"
        raise UserError(
            f"{what} beside {config}: {config.stem}*.pth", f"name the file: mmseg:{config}?checkpoint=FILE.pth"
        )
    return existing_file(checkpoints[0], "checkpoint")


def _preprocessor(model: Any) -> dict[str, Any]:
    return dict(model.cfg["model"].get("data_preprocessor") or {})


def _swaps_channels(model: Any) -> bool:
    """Tell whether the network wants BGR: MMCV reads images so, and most configurations turn them round."""
    return not _preprocessor(model).get("bgr_to_rgb", False)


def _preprocess(model: Any, swap: bool) -> Preprocess:
    settings = _preprocessor(model)
    order = (2, 1, 0) if swap else (0, 1, 2)  # ours are applied to RGB
    mean, std = ([float(numbers[i]) for i in order] for numbers in (settings["mean"], settings["std"]))
    sides = _sides(model.cfg)
    return Preprocess(
        sides,
        sides,
        crop=False,
        mean=(mean[0], mean[1], mean[2]),
        std=(std[0], std[1], std[2]),
        scale=1.0,
        source="MMSegmentation's, whole image",
    )


def _sides(config: Any) -> tuple[int, int]:
    """Return height and width of the test images: ``scale`` of the pipeline is (longest, shortest) side.

    Cityscapes has images of exactly that shape. Elsewhere images vary and keep their proportions, which a fixed input
    cannot: the shorter side squared, the size that ``cuebench make cue_decomposition`` gives ADE20K.
    """
    scales = [step["scale"] for step in config.get("test_pipeline", ()) if step.get("scale")]
    long, short = (max(scales[0]), min(scales[0])) if scales else (512, 512)
    return (short, long) if long == 2 * short else (short, short)


def _labels(spec: Spec, config: Any) -> LabelSpace:
    kind = str(config.get("dataset_type", ""))
    if kind not in DATASETS:
        raise UserError(
            f"observer {spec.text!r}: the classes of {kind or 'its data set'} are not known here",
            f"name them: {with_option(spec, 'labels=FILE')} (or voc21, cityscapes, ade20k)",
        )
    return label_space(DATASETS[kind])


def _scores(model: Any, pixels: Any) -> Any:
    size = tuple(pixels.shape[2:])
    about = {"ori_shape": size, "img_shape": size, "pad_shape": size, "padding_size": [0, 0, 0, 0]}
    return model.inference(pixels, [dict(about) for _ in range(len(pixels))])


ADAPTER = Adapter(
    load,
    form="mmseg:CONFIG.py[?checkpoint=FILE.pth | ?weights=random&seed=N][&labels=…][&preprocess.size=HxW]",
    packages=("torch", "torchvision", "mmseg"),
    install="pip install openmim; mim install mmengine mmcv mmsegmentation",
    examples=("mmseg:weights/segformer_mit-b0_8xb1-160k_cityscapes-1024x1024.py",),
    options=OPTIONS,
)
