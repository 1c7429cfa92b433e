"""How each protocol is simulated: one file each, with a `DESIGN`."""

from __future__ import annotations

from cuebench.calibration.design import Design
from cuebench.calibration.designs import (
    corruption_robustness,
    cue_conflict,
    cue_decomposition,
    cue_decomposition_segmentation,
    feature_suppression,
    human_alignment,
    imagenet_accuracy,
    pure_shape,
    refined_bias,
    texture_association,
    textured_silhouettes,
    triplets,
)

DESIGNS: dict[str, Design] = {
    module.DESIGN.protocol: module.DESIGN
    for module in (
        cue_conflict,
        refined_bias,
        cue_decomposition,
        cue_decomposition_segmentation,
        feature_suppression,
        triplets,
        textured_silhouettes,
        pure_shape,
        texture_association,
        human_alignment,
        corruption_robustness,
        imagenet_accuracy,
    )
}
"""Protocol → how it is simulated."""
