"""A chat endpoint on the loopback: it looks at the picture, counts what it is asked, and misbehaves on demand."""

from __future__ import annotations

import base64
import io
import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

CLASSES = ("cat", "dog", "car", "clock")
Reply = tuple[int, dict[str, str], bytes]


def write_pictures(root: Path, instances: int, size: int = 16) -> int:
    """Write a cue-conflict set whose pixels tell the truth: red is the shape, green the texture. Return its size."""
    folder = root / "cue_conflict" / "stimuli"
    for a, shape in enumerate(CLASSES):
        (folder / shape).mkdir(parents=True, exist_ok=True)
        for b, texture in enumerate(CLASSES):
            for i in range(1, instances + 1):
                pixels = np.full((size, size, 3), (40 * a, 40 * b, i), np.uint8)
                Image.fromarray(pixels).save(folder / shape / f"{shape}{i}-{texture}{1 + i % 2}.png")
    (root / "cue_conflict" / "labels.json").write_text(json.dumps({"targets": {name: [name] for name in CLASSES}}))
    return len(CLASSES) ** 2 * instances


def completion(text: str, finish: str = "stop", usage: bool = True) -> bytes:
    reply: dict[str, Any] = {"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": finish}]}
    if usage:
        reply["usage"] = {"prompt_tokens": 100, "completion_tokens": 4}
    return json.dumps(reply).encode()


def problem(status: int, message: str, **headers: str) -> Reply:
    return status, headers, json.dumps({"error": {"message": message}}).encode()


class ChatServer(ThreadingHTTPServer):
    """Answers by shape, or by texture where the prompt asks for texture: `conftest.write_cue_conflict` plants both.

    ``fault(number, request)`` may return another reply, or raise to close the connection; ``number`` counts requests.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, fault: Callable[[int, dict[str, Any]], Reply | None] | None = None, delay: float = 0.0) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.fault, self.delay = fault, delay
        self.lock = threading.Lock()
        self.requests = 0
        self.answered: Counter[str] = Counter()
        self.together = self.most_together = 0
        self.keys: set[str] = set()
        self.bodies: list[dict[str, Any]] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients are killed in these tests."""

    def __enter__(self) -> ChatServer:
        return self

    def __exit__(self, *_: Any) -> None:
        self.shutdown()
        self.server_close()


def picture(body: dict[str, Any]) -> np.ndarray | None:
    content = body["messages"][0]["content"]
    if isinstance(content, str):
        return None
    data = content[0]["image_url"]["url"].partition("base64,")[2]
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))


def question(body: dict[str, Any]) -> str:
    content = body["messages"][0]["content"]
    return content if isinstance(content, str) else content[1]["text"]


def answer(body: dict[str, Any]) -> str:
    pixels, text = picture(body), question(body)
    letters = {name: letter for letter, name in re.findall(r"^([A-Z])\. (\w+)$", text, re.MULTILINE)}
    if pixels is None:  # a judge
        description = text.split("\n\n")[1]
        return next((letters[name] for name in CLASSES if f" {name}" in description), "X")
    shape, texture = (CLASSES[round(float(pixels[..., channel].mean()) / 40)] for channel in (0, 1))
    if not letters:
        return f"A picture of a {shape}."
    return f"{letters[texture if 'texture of' in text else shape]}."


class _Handler(BaseHTTPRequestHandler):
    server: ChatServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        self._send(200, {}, json.dumps({"data": [{"id": "eye"}, {"id": "ear"}]}).encode())

    def do_POST(self) -> None:
        server = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with server.lock:
            server.requests += 1
            number = server.requests
            server.together += 1
            server.most_together = max(server.most_together, server.together)
            server.keys.add(self.headers.get("Authorization", ""))
            server.bodies.append({**body, "messages": None, "text": question(body)})
        try:
            if server.delay:
                time.sleep(server.delay)
            reply = server.fault(number, body) if server.fault else None
            if reply is None:
                reply = 200, {}, completion(answer(body))
                pixels = picture(body)
                key = question(body)[:40] if pixels is None else pixels.tobytes().hex()[:48]
                with server.lock:
                    server.answered[key] += 1
            self._send(*reply)
        except ConnectionAbortedError:
            self.close_connection = True
        finally:
            with server.lock:
                server.together -= 1

    def _send(self, status: int, headers: dict[str, str], data: bytes) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)
