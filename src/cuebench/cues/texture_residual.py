"""tex.EED: what edge-enhancing diffusion takes away from the image, around mid-grey."""

from __future__ import annotations

from typing import Any

from cuebench.arrays import Array
from cuebench.cues._eed.accuracy import ON_DEVICE
from cuebench.cues.base import CueInfo, Rounding, as_batch, is_tensor

CENTRE = 0.5
"""Grey level that stands for 'no difference'."""

CUE = CueInfo(
    kind="texture",
    reference="Heinert et al., Shape Bias and Robustness Evaluation via Cue Decomposition (tex.EED)",
    quick={"steps": 2},
    passes_to="eed",
    device=ON_DEVICE,
)


def texture_residual(image: Any, *, rounding: Rounding = "round", **eed_options: Any) -> Array:
    r"""Return the difference of the image and its edge-enhancing diffusion, moved to mid-grey.

    .. math:: \mathrm{out} = \mathrm{clip}\left(I - \mathrm{EED}(I) + \tfrac12,\; 0,\; 1\right)

    The complement of the shape cue `eed`: fine texture, with flat regions at 0.5. `add_texture` takes the 0.5
    off again.

    Parameters
    ----------
    image : array
        H×W, H×W×C or N×H×W×C; uint8 or float in [0, 1].
    rounding : {"round", "truncate"}
        Of a uint8 image. ``"truncate"``: what is taken off is EED as its authors' files have it.
    **eed_options
        Passed to `eed`: ``steps=``, ``accuracy=``, ``stretch=``, … The more diffusion, the more is left here. By
        default `eed` stretches its range as published, and the residual then holds that change of contrast too;
        ``stretch=False`` leaves texture alone.

    Returns
    -------
    array

    Notes
    -----
    The paper takes "the pixel-wise difference image" without saying how negative values are stored; half a range
    is added here, and differences beyond ±0.5 are clipped.

    See Also
    --------
    eed, texture_residual_shuffle, add_texture

    References
    ----------
    .. [1] E. Heinert et al., "Shape Bias and Robustness Evaluation via Cue Decomposition", Fig. 4.
    """
    from cuebench.cues.eed import eed

    if is_tensor(image):
        from cuebench.cues.on_device import as_floats, on_tensor

        def kernel(images: Any) -> Any:
            smooth = eed(images, **eed_options) if rounding == "round" else as_floats(truncated)
            return images - smooth + CENTRE

        truncated = None if rounding == "round" else eed(image, rounding=rounding, **eed_options)
        return on_tensor(kernel, image, None, rounding=rounding)
    batch, layout = as_batch(image)
    smooth = eed(batch if rounding == "round" else image, rounding=rounding, **eed_options)
    return layout.restore(batch - as_batch(smooth)[0] + CENTRE, rounding)
