"""The public repository that three datasets come from."""

CITATION = (
    "Geirhos, Rubisch, Michaelis, Bethge, Wichmann, Brendel: ImageNet-trained CNNs are biased towards texture; "
    "increasing shape bias improves accuracy and robustness. ICLR 2019."
)
LICENCE = "see the repository rgeirhos/texture-vs-shape; stimuli CC-BY-4.0"
MIRRORS = (
    "https://raw.githubusercontent.com/rgeirhos/texture-vs-shape/master",
    "https://github.com/rgeirhos/texture-vs-shape/raw/master",
)
