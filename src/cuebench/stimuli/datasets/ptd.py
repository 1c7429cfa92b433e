"""The Prompted Textures Dataset: 246,285 generated pictures of 56 textures (Hoak & McDaniel 2025).

The address is Zenodo's archive of the whole record. No hash of that archive is published and the names of the files in
it are not known to us, so it is checked by its structure: 56 folders of pictures. Should the record hold further
archives, the error says so, and they are to be unpacked by hand into ``ptd/images/<texture>/``.
"""

from __future__ import annotations

from cuebench.stimuli.datasets.base import Dataset, RemoteFile
from cuebench.stimuli.structure import archive

DATASET = Dataset(
    name="ptd",
    about="246,285 generated pictures of 56 textures",
    citation="Hoak, McDaniel: On Synthetic Texture Datasets: Challenges, Creation, and Curation. ECAI 2025.",
    licence="see https://zenodo.org/records/15359142",
    folder="ptd",
    mirrors=("https://zenodo.org/api/records",),
    load=lambda: (
        RemoteFile(
            path="ptd/ptd.zip",
            source="15359142/files-archive",
            check=archive(200_000, 56),
            unpack="ptd/images",
            pictures=True,
        ),
    ),
)
