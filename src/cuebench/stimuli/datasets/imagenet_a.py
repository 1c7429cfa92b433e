"""ImageNet-A: 7,500 natural adversarial images of 200 classes (Hendrycks et al. 2021), 655 MB.

Its authors publish no hash. The MD5 is the one that public loaders of the set (torch-uncertainty) compare.
"""

from __future__ import annotations

from cuebench.stimuli.datasets.base import Dataset, RemoteFile
from cuebench.stimuli.structure import archive

DATASET = Dataset(
    name="imagenet_a",
    about="7,500 natural adversarial images of 200 ImageNet classes",
    citation="Hendrycks, Zhao, Basart, Steinhardt, Song: Natural Adversarial Examples. CVPR 2021.",
    licence="see the repository hendrycks/natural-adv-examples; pictures under their own licences",
    folder="imagenet_a",
    mirrors=("https://people.eecs.berkeley.edu/~hendrycks",),
    load=lambda: (
        RemoteFile(
            path="imagenet_a/imagenet-a.tar",
            source="imagenet-a.tar",
            md5="c3e55429088dc681f30d81f4726b6595",
            check=archive(7500, 200),
            unpack="imagenet_a/images",
            pictures=True,
        ),
    ),
)
