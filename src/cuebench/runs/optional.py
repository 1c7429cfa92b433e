"""Libraries of tables that are used where they are installed."""

from __future__ import annotations

import importlib
from typing import Any

from cuebench.errors import UserError


def import_optional(package: str, what: str, instead: str) -> Any:
    """Import a library that cuebench does not need; where it is missing, say how to get it and what to do instead."""
    try:
        return importlib.import_module(package)
    except ImportError:
        raise UserError(
            f"{what} needs the Python package '{package}', which is not installed",
            f"pip install {package}; or {instead}",
        ) from None
