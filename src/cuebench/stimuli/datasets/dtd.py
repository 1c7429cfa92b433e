"""The Describable Textures Dataset: 5,640 photographs of 47 textures (Cimpoi et al. 2014), 625 MB.

Its authors publish no hash. The MD5 is that of torchvision and kornia, which fetch the same file.
"""

from __future__ import annotations

from cuebench.stimuli.datasets.base import Dataset, RemoteFile
from cuebench.stimuli.structure import archive

DATASET = Dataset(
    name="dtd",
    about="5,640 photographs of 47 describable textures",
    citation="Cimpoi, Maji, Kokkinos, Mohamed, Vedaldi: Describing Textures in the Wild. CVPR 2014.",
    licence="research use; see https://www.robots.ox.ac.uk/~vgg/data/dtd",
    folder="dtd",
    mirrors=("https://www.robots.ox.ac.uk/~vgg/data/dtd/download", "https://thor.robots.ox.ac.uk/dtd"),
    load=lambda: (
        RemoteFile(
            path="dtd/dtd-r1.0.1.tar.gz",
            source="dtd-r1.0.1.tar.gz",
            md5="fff73e5086ae6bdbea199a49dfb8a4c1",
            check=archive(5640, 47),
            unpack="dtd/images",
            pictures=True,
        ),
    ),
)
