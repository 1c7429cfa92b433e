"""Rate limits in memory: nothing of them is stored, and an address is forgotten when the process ends."""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple


class Rate(NamedTuple):
    """So many requests a second on average, and so many at once."""

    per_second: float
    at_once: int


class Limiter:
    """A bucket of permissions for each key: a request takes one, time fills them up again.

    Parameters
    ----------
    rate : Rate
        How fast, and how many at most. A rate of 0 allows everything.
    keys : int
        Most keys that are remembered; the one that was silent the longest is forgotten first.
    clock : callable
        Seconds.
    """

    def __init__(self, rate: Rate, keys: int = 20_000, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._keys, self._clock = rate, keys, clock
        self._buckets: OrderedDict[str | int, tuple[float, float]] = OrderedDict()

    def wait(self, key: str | int) -> float:
        """Take one permission: return 0, or after how many seconds there will be one."""
        if not self._rate.per_second:
            return 0.0
        at = self._clock()
        level, since = self._buckets.pop(key, (float(self._rate.at_once), at))
        level = min(self._rate.at_once, level + (at - since) * self._rate.per_second)
        allowed = level >= 1
        self._buckets[key] = (level - allowed, at)
        if len(self._buckets) > self._keys:
            self._buckets.popitem(last=False)
        return 0.0 if allowed else (1 - level) / self._rate.per_second


def address_key(host: str) -> str:
    """Return what counts as one address: of IPv6 the network, which one household has to itself."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    return host if address.version == 4 else str(ipaddress.ip_network((address, 64), strict=False))
