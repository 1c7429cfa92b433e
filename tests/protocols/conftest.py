"""Lets the tests of this folder import ``planted_scores``: pytest's importlib mode adds no folder to the path."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
