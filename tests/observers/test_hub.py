"""Weights from a hub: a loopback mirror, the cache, and no network where none is allowed."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from cuebench.errors import UserError
from cuebench.observers.adapters import _hub

pytestmark = [pytest.mark.torch, pytest.mark.xdist_group("torch")]
pytest.importorskip("huggingface_hub")


class Mirror(BaseHTTPRequestHandler):
    """Serves ``/org/name/resolve/main/file`` from a folder, with the headers that the hub's client wants."""

    root = None
    asked: list[str]

    def do_HEAD(self):
        self._answer(body=False)

    def do_GET(self):
        self._answer(body=True)

    def _answer(self, body):
        self.asked.append(self.path)
        owner, name, _, _, file = (self.path.strip("/").split("?")[0].split("/", 4) + [""] * 5)[:5]
        path = self.root / f"{owner}--{name}" / file
        if not file or not path.is_file():
            self.send_response(404)
            self.send_header("X-Error-Code", "EntryNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        data = path.read_bytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("ETag", f'"{hashlib.sha256(data).hexdigest()}"')
        self.send_header("X-Repo-Commit", "0" * 40)
        self.end_headers()
        if body:
            self.wfile.write(data)

    def log_message(self, *args):
        pass


@pytest.fixture
def mirror(tmp_path):
    handler = type("Bound", (Mirror,), {"root": tmp_path / "mirror", "asked": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


SCRIPT = """
import sys, urllib.request
from huggingface_hub import constants
from cuebench.observers.base import LoadOptions
from cuebench.observers.load import load
for mode in ("online", "offline"):
    for spec in sys.argv[1:]:
        (o,) = load(spec, LoadOptions(device="cpu", offline=mode == "offline"))
        print(o.fingerprint, flush=True)
    urllib.request.urlopen(constants.ENDPOINT + "/org/mark/resolve/main/" + mode)
"""


def test_mirror_then_cache(mirror, tiny, tmp_path):
    """Download once from a mirror; later load from the cache without a single request."""
    from cuebench.observers.torch.torchvision_import import import_torchvision

    import_torchvision()
    timm = pytest.importorskip("timm")
    pytest.importorskip("transformers")
    tiny.classifier(tmp_path / "mirror" / "org--vit", "vit")
    timm.models.save_for_hf(timm.create_model("test_vit"), tmp_path / "mirror" / "org--small")
    for mode in ("online", "offline"):
        (tmp_path / "mirror" / "org--mark").mkdir(exist_ok=True)
        (tmp_path / "mirror" / "org--mark" / mode).touch()
    env = {**os.environ, "HF_HOME": str(tmp_path / "home"), "HF_HUB_DISABLE_XET": "1", "NO_PROXY": "127.0.0.1"}
    env["HF_ENDPOINT"] = f"http://127.0.0.1:{mirror.server_address[1]}"
    env.pop("HF_HUB_OFFLINE", None)
    command = [sys.executable, "-c", SCRIPT, "transformers:org/vit", "timm:hf-hub:org/small"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr[-2000:]
    prints = done.stdout.split()
    assert len(prints) == 4
    assert prints[:2] == prints[2:]
    asked = mirror.RequestHandlerClass.asked
    assert any("org/small" in path for path in asked)
    assert asked[-2:] == [f"/org/mark/resolve/main/{mode}" for mode in ("online", "offline")], (
        "offline asked the network"
    )


def test_unreachable_hub_says_what_to_do(monkeypatch):
    closed = f"http://127.0.0.1:{free_port()}"
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", closed)

    def make():
        raise FileNotFoundError("not cached")

    with pytest.raises(UserError, match=f"{closed} cannot be reached") as error:
        _hub.fetched(make, "weights X", offline=False)
    assert "checkpoint=FILE" in error.value.hint
    assert "HF_ENDPOINT" in error.value.hint


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_probe_is_short():
    start = time.monotonic()
    assert not _hub.reachable(f"http://127.0.0.1:{free_port()}")
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts, and never answers
        assert not _hub.reachable(f"http://127.0.0.1:{silent.getsockname()[1]}", seconds=0.5)
    assert not _hub.reachable("not an address")
    assert time.monotonic() - start < 3.5


def test_any_answer_counts_as_reachable(mirror, tmp_path):
    assert _hub.reachable(f"http://127.0.0.1:{mirror.server_address[1]}")


def test_no_network_refuses_python_sockets_and_gives_them_back(mirror):
    with _hub.no_network():
        with pytest.raises(_hub.NetworkForbidden), socket.socket() as s:
            s.connect(mirror.server_address)
        with pytest.raises(_hub.NetworkForbidden):
            socket.getaddrinfo("huggingface.co", 443)
        assert _hub.hub_is_offline()
    with socket.socket() as s:
        s.connect(mirror.server_address)


def test_offline_is_answered_at_once():
    calls = []

    def make():
        calls.append(1)
        raise FileNotFoundError("not cached")

    with pytest.raises(UserError, match="the weights: not in the local cache, and offline was asked for"):
        _hub.fetched(make, "the weights", offline=True)
    assert len(calls) == 1


def test_a_failed_download_keeps_its_reason(mirror):
    def make():
        raise OSError("the disk is full")

    with pytest.raises(UserError, match="the disk is full"):
        _hub.fetched(
            make, "the weights", offline=False, url=f"http://127.0.0.1:{mirror.server_address[1]}", cached=False
        )


def test_mistakes_of_the_user_are_not_taken_for_network_trouble():
    def make():
        raise UserError("the real reason")

    with pytest.raises(UserError, match="the real reason"):
        _hub.fetched(make, "the weights", offline=True)


def test_a_page_in_place_of_weights_is_an_error(mirror, tmp_path):
    """A captive portal answers everything with a page."""
    from safetensors.torch import load_file

    (tmp_path / "model.safetensors").write_text("<html>please log in</html>")
    url = f"http://127.0.0.1:{mirror.server_address[1]}"
    with pytest.raises(UserError, match="could not be loaded from http"):
        _hub.fetched(lambda: load_file(tmp_path / "model.safetensors"), "weights", offline=False, url=url)
