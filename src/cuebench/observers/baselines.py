"""Random initialisations of the architecture of a trained network: the baseline of what training adds."""

from __future__ import annotations

from urllib.parse import urlencode

from cuebench.errors import UserError
from cuebench.observers.base import Spec

RANDOM = "#random"
"""What stands in the name of a random initialisation, behind that of the trained network."""
_SOURCES = ("torchvision", "timm", "lite", "transformers")
_WEIGHTS = ("weights", "checkpoint", "seed", "name", "arch", "fingerprint")


def random_initialisations(spec: str, name: str, number: int) -> list[str]:
    """Return the specs of ``number`` random initialisations, seeds 0, 1, …, named after the observer.

    The adapter builds them as it builds the trained network: same architecture, same preprocessing, no weights.

    Raises
    ------
    UserError
        The source cannot make the architecture without its weights (an ONNX file, an object in memory).

    Examples
    --------
    >>> random_initialisations("lite:efficientnet_lite0", "lite0", 1)
    ['lite:efficientnet_lite0?weights=random&seed=0&name=lite0%23random0']
    """
    parsed = Spec.parse(spec)
    base = (
        parsed.options["arch"] if parsed.scheme == "checkpoint" and "arch" in parsed.options else spec.partition("?")[0]
    )
    if base.partition(":")[0] not in _SOURCES:
        raise UserError(
            f"{base.partition(':')[0]} observers cannot be made without their weights",
            f"random initialisations are made by: {', '.join(_SOURCES)}, and checkpoint with an arch= of these",
        )
    kept = {key: value for key, value in parsed.options.items() if key not in _WEIGHTS}
    return [
        f"{base}?{urlencode({**kept, 'weights': 'random', 'seed': k, 'name': f'{name}{RANDOM}{k}'})}"
        for k in range(number)
    ]
