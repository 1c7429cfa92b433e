"""What a shell proposes where a name is expected: the parts of cuebench, found without importing them."""

from __future__ import annotations

from collections.abc import Callable


def names_of(*kinds: str) -> Callable[[str], list[str]]:
    """Return a function that completes the names of parts of these kinds.

    Parameters
    ----------
    *kinds : str
        As ``cuebench list`` has them; none: all.
    """

    def complete(incomplete: str) -> list[str]:
        from cuebench.registry import KINDS

        return sorted({name for kind in kinds or KINDS for name in KINDS[kind] if name.startswith(incomplete)})

    return complete


def sources(incomplete: str) -> list[str]:
    """Complete where observers come from: ``timm:``."""
    from cuebench.registry import adapters

    return [f"{name}:" for name in adapters if name.startswith(incomplete)]
