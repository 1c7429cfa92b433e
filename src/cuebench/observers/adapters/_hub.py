"""Weights from hubs: from the local cache first, then from the network.

A download that cannot reach its hub takes 20 to 50 seconds to fail. So: try with the cache alone; if that is not enough
and the network may be used, probe the hub for at most three seconds; only then download. Offline is a guarantee: inside
``no_network`` the hub library is switched to offline, and Python's sockets refuse to connect.
"""

from __future__ import annotations

import os
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from cuebench.errors import UserError

T = TypeVar("T")
PROBE_SECONDS = 3.0


class NetworkForbidden(OSError):
    """A connection was tried where none is allowed."""


@contextmanager
def no_network() -> Iterator[None]:
    """Forbid connections to other machines inside the block."""
    from huggingface_hub import constants

    was, connect, resolve = constants.HF_HUB_OFFLINE, socket.socket.connect, socket.getaddrinfo
    constants.HF_HUB_OFFLINE = True
    socket.socket.connect = _refuse  # type: ignore[method-assign]
    socket.getaddrinfo = _refuse
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = was
        socket.socket.connect = connect  # type: ignore[method-assign]
        socket.getaddrinfo = resolve


def _refuse(*args: Any, **kwargs: Any) -> NoReturn:
    raise NetworkForbidden(f"offline: no connection is made to {args[-1] if args else 'another machine'}")


def fetched(
    make: Callable[[], T], wanted: str, *, offline: bool, url: str = "", hint: str = "", cached: bool = True
) -> T:
    """Return ``make()``, which loads from the cache or downloads.

    Parameters
    ----------
    make : callable
        Loads the model; called again with the network when the cache alone is not enough.
    wanted : str
        Which weights, for the message.
    offline : bool
        Never use the network.
    url : str
        What is probed. Default: the Hugging Face hub, or its mirror in HF_ENDPOINT.
    hint : str
        What to do instead, in front of the general advice.
    cached : bool
        False where it is known that the cache does not have it, so that it need not be tried.
    """
    cause: Exception | None = None
    if cached:
        try:
            with no_network():
                return make()
        except _load_errors() as error:
            cause = error
    if offline or hub_is_offline():
        raise UserError(f"{wanted}: not in the local cache, and offline was asked for", _advice(hint)) from cause
    url = url or hub_endpoint()
    if not reachable(url):
        raise UserError(f"{wanted}: not in the local cache, and {url} cannot be reached", _advice(hint))
    try:
        return make()
    except _load_errors() as error:
        raise UserError(f"{wanted}: could not be loaded from {url}: {_reason(error)}", _advice(hint)) from error


def _load_errors() -> tuple[type[Exception], ...]:
    # What the libraries raise for a file that is missing, cut off, or a page in place of weights.
    from safetensors import SafetensorError

    return (OSError, ValueError, RuntimeError, SafetensorError)


def from_disk(make: Callable[[], T], wanted: str) -> T:
    """Return ``make()``, which loads from a local folder and must not look elsewhere."""
    try:
        with no_network():
            return make()
    except _load_errors() as error:
        raise UserError(f"{wanted}: {_reason(error)}", "the folder must hold what its library saves there") from error


def from_repository(body: str, wanted: str, offline: bool, load: Callable[[str], T]) -> T:
    """Return ``load(source)`` of a local folder, or of a repository of the Hugging Face hub."""
    folder = Path(body).expanduser()
    if folder.is_dir():
        return from_disk(lambda: load(str(folder)), wanted)
    if body.startswith(("/", ".", "~")) or body.count("/") > 1:
        raise UserError(f"there is no folder {body}", "a repository of the hub is written ORGANISATION/NAME")
    return fetched(lambda: load(body), wanted, offline=offline)


def reachable(url: str, seconds: float = PROBE_SECONDS) -> bool:
    """Tell within ``seconds`` whether a server answers at all; proxies of the environment are used."""
    answered: list[bool] = []
    # In a thread of its own, because resolving a name has no timeout.
    thread = threading.Thread(target=lambda: answered.append(_answers(url, seconds)), daemon=True)
    thread.start()
    thread.join(seconds)
    return bool(answered and answered[0])


def _answers(url: str, seconds: float) -> bool:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=seconds):
            return True
    except urllib.error.HTTPError:
        return True  # an unfriendly answer is an answer
    except (OSError, ValueError):
        return False


def hub_endpoint() -> str:
    """Return the address of the Hugging Face hub, or of the mirror that HF_ENDPOINT names."""
    from huggingface_hub import constants

    return str(constants.ENDPOINT)


def hub_is_offline() -> bool:
    """Tell whether the environment forbids the hub (HF_HUB_OFFLINE)."""
    from huggingface_hub import constants

    return bool(constants.HF_HUB_OFFLINE) or os.environ.get("HF_HUB_OFFLINE", "0") not in {"", "0"}


def _advice(hint: str) -> str:
    general = (
        "on another machine download the weights, then pass ?checkpoint=FILE; or copy the cache folder (HF_HOME, "
        "TORCH_HOME) from there; or set HF_ENDPOINT to a mirror that this machine reaches. "
        "HF_HUB_OFFLINE=1 or --offline makes this message come at once"
    )
    return f"{hint}; {general}" if hint else general


def _reason(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
