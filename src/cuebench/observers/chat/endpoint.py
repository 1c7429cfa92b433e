"""An OpenAI-compatible endpoint: many requests at once, retries, rate limits, a budget, and errors that say what to do.

Requests are sent from one background thread. Whatever ends the asking (a refused key, a budget that is used up) ends it
for all waiting requests; those that are on their way are waited for, and their answers kept.
"""

from __future__ import annotations

import asyncio
import base64
import json
import random
import re
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any

from cuebench.errors import UserError, did_you_mean, printable
from cuebench.observers.chat.journal import MOST_TOKENS, Answer, Journal, Spent

LARGEST_ANSWER = 4 << 20
"""Most bytes of what an endpoint sends back."""
RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
RATE_LIMITED = 100
"""How often a request is sent again because the endpoint asked to wait; other failures are counted by ``retries``."""
LONGEST_WAIT = 120.0
"""Seconds that a rate limit may ask to wait; a longer one ends the run, which can go on later."""
IMAGE_TOKENS = 1500
"""Tokens that a picture is taken to cost before any request has been counted: more than most endpoints count."""
_NO_IMAGES = re.compile(
    r"(?:image|vision|multi.?modal|modalit)[^.]{0,80}(?:not support|unsupported|not enabled|not allowed|invalid)"
    r"|(?:not|n't|cannot|only) (?:support|accept|process|take|handle|allow|text)[^.]{0,60}(?:image|vision|multi.?modal)"
    r"|mmproj|text.only|unknown variant .?image_url|must be a string|expected (?:a )?string",
    re.IGNORECASE,
)
_FILTERED = re.compile(r"content.?(?:filter|policy|management)|safety|moderation|responsible.?ai", re.IGNORECASE)


@dataclass(frozen=True)
class Prices:
    """Price of a million tokens, in any currency; 0: unknown."""

    tokens_in: float = 0.0
    tokens_out: float = 0.0

    def of(self, tokens_in: int, tokens_out: int) -> float:
        """Return what so many tokens cost."""
        return (self.tokens_in * tokens_in + self.tokens_out * tokens_out) / 1e6


@dataclass
class Budget:
    """What may be spent, over all runs of a run folder; 0: no limit."""

    max_requests: int = 0
    max_cost: float = 0.0
    journals: list[Journal] = field(default_factory=list)

    @property
    def spent(self) -> Spent:
        """What all journals of this budget say; requests on their way count with the most that they can cost."""
        return sum((journal.spent for journal in self.journals), Spent())

    def problem(self, cost: float) -> str:
        """Say why one more request does not fit; empty: it does."""
        spent = self.spent
        if self.max_requests and spent.requests + 1 > self.max_requests:
            return f"the budget of {self.max_requests:,} requests is used up"
        if self.max_cost and spent.cost + cost > self.max_cost:
            return f"the budget of {self.max_cost:g} is used up ({spent.cost:.4g} spent, one more can cost {cost:.2g})"
        return ""


@dataclass(frozen=True)
class Request:
    """One question about one picture; without a picture for a judge, who is shown a text."""

    key: str
    text: str
    png: bytes | None = None

    def content(self, detail: str) -> Any:
        """Return it as the content of a message."""
        if self.png is None:
            return self.text
        url = {"url": "data:image/png;base64," + base64.b64encode(self.png).decode()}
        return [
            {"type": "image_url", "image_url": {**url, **({"detail": detail} if detail else {})}},
            {"type": "text", "text": self.text},
        ]


class _Again(Exception):
    """A request that brought no answer and may be sent again."""

    def __init__(self, why: str, wait: float = 0.0, cost: float = 0.0) -> None:
        super().__init__(why)
        self.wait, self.cost = wait, cost


@lru_cache(maxsize=1)
def _loop() -> asyncio.AbstractEventLoop:
    """Return the event loop of the thread that all requests are sent from."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="cuebench-chat", daemon=True).start()
    return loop


@dataclass(eq=False)
class Endpoint:
    """A model behind a URL.

    Parameters
    ----------
    url : str
        Base of the API, such as ``http://localhost:8000/v1``.
    model : str
        Its name there.
    key : str
        Sent as a bearer token; empty: none. Never stored, and taken out of every message.
    key_from : str
        Name of the environment variable that the key comes from, for messages.
    budget : Budget
        What may be spent.
    prices : Prices
        Of its tokens.
    concurrency, retries : int
        Requests on their way at once; how often one is sent again.
    timeout : float
        Seconds for one request.
    max_tokens, temperature, detail
        Settings of every request; temperature None: the endpoint's own.
    """

    url: str
    model: str
    key: str = field(repr=False)
    key_from: str
    budget: Budget
    prices: Prices = Prices()
    concurrency: int = 8
    retries: int = 6
    timeout: float = 120.0
    max_tokens: int = 64
    temperature: float | None = 0.0
    detail: str = ""
    first_wait: float = 0.5
    stopped: UserError | None = None
    _not_before: float = 0.0
    _sent: int = 0
    _limit_name: str = "max_tokens"
    _waiting: dict[tuple[int, str], Future[Answer]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _gate: asyncio.Semaphore | None = None
    _client: Any = None

    def ask(self, request: Request, journal: Journal) -> Future[Answer]:
        """Begin to ask; the same request is sent once, however often it is asked for."""
        place = (id(journal), request.key)
        with self._lock:
            # In this order: an answer is in the journal before its request is forgotten.
            future = self._waiting.get(place)
            if future is not None:
                return future
            if request.key not in journal.answers:
                journal.open()
            if (known := journal.answers.get(request.key)) is not None:
                done: Future[Answer] = Future()
                done.set_result(known)
                return done
            future = asyncio.run_coroutine_threadsafe(self._answer(request, journal), _loop())
            self._waiting[place] = future
        future.add_done_callback(lambda _: self._waiting.pop(place, None))
        return future

    def stop(self) -> None:
        """Send nothing more."""
        self.stopped = self.stopped or UserError(f"asking {self.model} was stopped", "run the same command to go on")

    def finish(self) -> None:
        """Wait for everything that is on its way, and sync what came."""
        for future in list(self._waiting.values()):
            future.exception()
        for journal in self.budget.journals:
            journal.sync()

    def tokens_in(self, journal: Journal, text: str) -> int:
        """Return the most tokens that the next request can have, as far as the requests before tell."""
        return int(1.2 * journal.most_in) + 1 if journal.most_in else IMAGE_TOKENS + len(text) // 2

    async def _answer(self, request: Request, journal: Journal) -> Answer:
        import httpx

        if self._gate is None or self._client is None:
            self._gate = asyncio.Semaphore(self.concurrency)
            limits = httpx.Limits(max_connections=self.concurrency, max_keepalive_connections=self.concurrency)
            # No redirects: the key is for this host alone.
            self._client = httpx.AsyncClient(timeout=self.timeout, limits=limits, follow_redirects=False)
        async with self._gate:
            if request.key in journal.answers:
                return journal.answers[request.key]
            try:
                return await self._with_retries(request, journal)
            except UserError as error:
                self.stopped = self.stopped or error
                raise
            except httpx.UnsupportedProtocol as error:
                self.stopped = UserError(f"{self.url}: {error}", "write url=http://HOST:PORT/v1")
                raise self.stopped from None

    async def _with_retries(self, request: Request, journal: Journal) -> Answer:
        why, attempt, limited = "", 0, 0
        while attempt <= self.retries and limited <= RATE_LIMITED:
            await self._until_allowed()
            cost = await self._within_budget(request, journal)
            journal.asked(request.key, cost)
            try:
                answer = await self._send(request)
            except _Again as error:
                why = str(error)
                journal.failed(request.key, why[:200], min(error.cost, cost), cost)
                if error.wait:  # for all requests: the endpoint has said when it will answer again
                    self._not_before = max(self._not_before, time.monotonic() + error.wait)
                    limited += 1
                else:
                    await asyncio.sleep(min(self.first_wait * 2**attempt, LONGEST_WAIT) * random.uniform(0.8, 1.2))
                    attempt += 1
                continue
            except UserError as error:
                journal.failed(request.key, error.message[:200], 0.0, cost)
                raise
            counted = self.prices.of(answer.tokens_in, answer.tokens_out) if answer.tokens_in else cost
            answer = Answer(answer.text, answer.finish, answer.tokens_in, answer.tokens_out, counted)
            journal.answered(request.key, answer, cost)
            return answer
        raise UserError(
            f"{self.url} gave no answer to {attempt + limited} attempts; the last: {why}",
            "look at the endpoint and run the same command again: every answer so far is kept and not paid again; "
            "fewer at once: &concurrency=4, more patience: &retries=10",
        )

    async def _until_allowed(self) -> None:
        while (wait := self._not_before - time.monotonic()) > 0:
            await asyncio.sleep(wait)
        if self.stopped is not None:
            raise self.stopped

    async def _within_budget(self, request: Request, journal: Journal) -> float:
        """Return the most that this request can cost; wait while others on their way may turn out cheaper."""
        cost = self.prices.of(self.tokens_in(journal, request.text), self.max_tokens)
        while problem := self.budget.problem(cost):
            requests = self.budget.max_requests and self.budget.spent.requests >= self.budget.max_requests
            if requests or not self._sent:
                answers = sum(len(j.answers) for j in self.budget.journals)
                raise UserError(
                    f"{problem} ({answers:,} answers are kept)",
                    "allow more and run again, nothing is paid twice: &max_requests=… or &max_cost=… (0: no limit)",
                )
            await asyncio.sleep(0.02)
            if self.stopped is not None:
                raise self.stopped
        return cost

    async def _send(self, request: Request) -> Answer:
        import httpx

        body: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": "user", "content": request.content(self.detail)}],
            (limit := self._limit_name): self.max_tokens,
            "stream": False,
        }
        if self.temperature is not None:
            body["temperature"] = self.temperature
        self._sent += 1
        try:
            status, headers, data = await self._exchange("POST", "chat/completions", body)
        except httpx.UnsupportedProtocol:
            raise
        except httpx.TimeoutException:
            raise _Again(f"no answer within {self.timeout:g} s", cost=float("inf")) from None
        except httpx.TransportError as error:  # it may have been answered before the connection broke
            raise _Again(f"{type(error).__name__}: {self._clean(str(error))}", cost=float("inf")) from None
        finally:
            self._sent -= 1
        if status == 200:
            return self._read(data)
        if status == 400 and limit == "max_tokens" and b"max_completion_tokens" in data:
            self._limit_name = "max_completion_tokens"
            raise _Again("it wants max_completion_tokens", 0.001)
        return await self._refused(status, headers, data, request)

    async def _exchange(
        self, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> tuple[int, Mapping[str, str], bytes]:
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        address = f"{self.url.rstrip('/')}/{path}"
        data = b""
        async with self._client.stream(method, address, json=body, headers=headers) as response:
            async for part in response.aiter_bytes():
                data += part
                if len(data) > LARGEST_ANSWER:
                    raise UserError(
                        f"{address} sends an answer of more than {LARGEST_ANSWER >> 20} MiB",
                        "check the URL: this is no chat endpoint, or it does not keep to &max_tokens=",
                    )
            return response.status_code, dict(response.headers), data

    def _read(self, data: bytes) -> Answer:
        try:
            reply = json.loads(data)
            choice = reply["choices"][0]
            message = choice["message"]
            content = message.get("content") or message.get("refusal") or ""
            text = content if isinstance(content, str) else "".join(str(p.get("text", "")) for p in content)
            usage = reply.get("usage") or {}
            counts = int(usage.get("prompt_tokens") or 0), int(usage.get("completion_tokens") or 0)
            if not all(0 <= count <= MOST_TOKENS for count in counts):
                counts = 0, 0  # not known: the request is counted as the most that it can cost
            return Answer(self._clean(text), str(choice.get("finish_reason") or ""), *counts)
        except (ValueError, KeyError, IndexError, TypeError, AttributeError, OverflowError, RecursionError):
            shown = self._clean(data[:120].decode("utf-8", "replace"))
            raise _Again(f"an answer that is no chat completion: {shown!r}", cost=float("inf")) from None

    async def _refused(self, status: int, headers: Mapping[str, str], data: bytes, request: Request) -> Answer:
        """Turn an error of the endpoint into a retry, a refusal of the model, or an error that says what to do."""
        message = self._clean(_message(data))
        if status == 429 and re.search(r"quota|billing|credit", message, re.IGNORECASE):
            raise UserError(f"{self.url}: {message}", "add credit there, then run the same command again")
        if request.png is not None and status not in (401, 403, 404, 429) and _NO_IMAGES.search(message):
            raise UserError(
                f"{self.model} at {self.url} takes no pictures: {message}",
                "choose a model that looks at pictures (a vision-language model), or start the server with its image "
                "encoder (llama.cpp: --mmproj)",
            )
        if status in RETRIED:
            wait = _retry_after(headers)
            if wait > LONGEST_WAIT:
                raise UserError(f"{self.url} asks to wait for {wait:,.0f} s: {message}", "run the same command later")
            raise _Again(f"{status} {message}".strip(), wait)
        if status in (401, 403):
            raise self._key_refused(status, message)
        if status == 404:
            raise await self._not_found(message)
        if status == 400 and _FILTERED.search(message):
            return Answer(message, "content_filter")
        hint = "&temperature=default" if "temperature" in message else "check the model's name and the options behind ?"
        raise UserError(f"{self.url} refused the request ({status}): {message}", hint)

    def _key_refused(self, status: int, message: str) -> UserError:
        if not self.key:
            return UserError(
                f"{self.url} wants a key ({status}), and the environment variable {self.key_from} is not set",
                f"export {self.key_from}=… (or name another variable: &key_env=NAME)",
            )
        return UserError(
            f"{self.url} refused the key in {self.key_from} ({status}): {message}",
            f"put a valid key into {self.key_from}, or name another variable: &key_env=NAME",
        )

    async def _not_found(self, message: str) -> UserError:
        """Say whether the endpoint lacks the model, or is none."""
        names: list[str] = []
        try:
            status, _, data = await self._exchange("GET", "models")
            if status == 200:
                names = [str(m.get("id", "")) for m in json.loads(data)["data"]]
        except Exception:  # noqa: BLE001 - the list is a help, not more
            names = []
        if names and self.model not in names:
            return did_you_mean(f"model of {self.url}:", self.model, names)
        if names or "model" in message.lower():
            return UserError(
                f"{self.url} has no model {self.model!r}: {message}", f"see {self.url}/models for its models"
            )
        return UserError(f"there is no chat endpoint at {self.url} (404): {message}", "the URL usually ends in /v1")

    def _clean(self, text: str) -> str:
        """Take the key out of a text of the endpoint's, and what no terminal or file can hold."""
        text = text.replace(self.key, "[key]") if self.key else text
        return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def _message(data: bytes) -> str:
    """Return the message of an error, in whichever form the endpoint sends it."""
    text = data[:2000].decode("utf-8", "replace").strip()
    try:
        reply = json.loads(data)
        error = reply.get("error", reply) if isinstance(reply, dict) else reply
        text = str(error.get("message") or error.get("detail") or error) if isinstance(error, dict) else str(error)
    except (ValueError, RecursionError):
        pass
    return printable(" ".join(text.split()))[:300]


def _retry_after(headers: Mapping[str, str]) -> float:
    """Return the seconds that ``Retry-After`` asks for, as a number or a date; 0: it does not say."""
    value = headers.get("retry-after", "").strip()
    try:
        return max(float(value), 0.001)
    except ValueError:
        pass
    try:
        return max(parsedate_to_datetime(value).timestamp() - time.time(), 0.001)
    except (TypeError, ValueError):
        return 0.0
