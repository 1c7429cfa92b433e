"""Where answers are collected: by this process and its workers (``collect.py``), or on a cluster (``ray_engine.py``).

An engine shows the shards that are still missing to the observers and stores what they answer, under the same names and
with the same bytes. What comes before (finding what is stored, asking again, the probe) and after (scoring) is the same
for all of them, and is done by the process that was called.
"""

from __future__ import annotations

from cuebench.errors import UserError

LOCAL, RAY = "local", "ray"


def address_of(engine: str) -> str | None:
    """Return the address of the Ray cluster that is asked for; empty: one is to be started; None: no cluster.

    >>> address_of("local"), address_of("ray"), address_of("ray://10.0.0.1:6379"), address_of("ray:auto")
    (None, '', '10.0.0.1:6379', 'auto')
    """
    name, colon, address = engine.partition(":")
    address = address.removeprefix("//").rstrip("/")
    if engine == LOCAL:
        return None
    if name != RAY or (colon and not address):
        raise UserError(f"unknown engine {engine!r}", "local, ray (a cluster is started here), or ray://HOST:PORT")
    return address
