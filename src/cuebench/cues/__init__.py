"""Cues: pure functions image → image that keep one kind of information, one file for each cue.

``from cuebench.cues import eed`` gives the *function* ``eed`` of the file ``eed.py``; nothing is imported before it is
asked for.
"""

from __future__ import annotations

from cuebench.registry import cues, expose

expose(__name__, cues)
