"""Chat models behind an OpenAI-compatible endpoint: vLLM, Ollama, llama.cpp, hosted services.

``chat:MODEL?url=http://localhost:8000/v1``. The model is shown each picture and a prompt with the lettered classes, and
what it writes is read as one of them (`observers.chat.answers`); what cannot be read is undecided, with its text. The
key comes from the environment (``CUEBENCH_CHAT_KEY``, or the variable that ``key_env`` names) and is never stored.

Before anything is asked the run says what it can cost; ``max_requests`` and ``max_cost`` are never exceeded. Answers
are kept in the run folder as they come, so a run that was killed repays nothing. docs/chat_models.md has all of it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from cuebench.errors import UserError
from cuebench.observers.adapters._options import NAME, option_values
from cuebench.observers.base import Adapter, LoadOptions, Observer, Spec
from cuebench.observers.chat.asking import Asking, Match
from cuebench.observers.chat.endpoint import Budget, Endpoint, Prices
from cuebench.observers.chat.journal import HIGHEST_PRICE, MOST_TOKENS
from cuebench.observers.chat.observer import ChatObserver
from cuebench.observers.chat.prompts import NEUTRAL, Prompt, read_prompt
from cuebench.observers.preprocess import Preprocess
from cuebench.options import Option

KEY, OPENAI_KEY = "CUEBENCH_CHAT_KEY", "OPENAI_API_KEY"
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
NAMES = "names"
JUDGE = Prompt(
    "judge",
    "This is a description of an image:\n\n{caption}\n\nWhich option does it describe?\n{options}\n"
    "Reply with the letter of one option and nothing else; reply X if it describes none of them.",
)
PROMPTS: Mapping[str, Option] = {
    "prompt": Option(NEUTRAL, "vqa, vqa_shape, vqa_texture, caption, or a text file with {options}"),
    "options": Option((), "the classes in the order in which they are shown; default: that of the protocol"),
    "shuffle": Option(0, "seed of a shuffled order of the options; 0: not shuffled", low=0),
    "pixels": Option(
        224, "side of the pictures in pixels; stimuli of that size are shown as they are", low=16, high=4096
    ),
    "max_tokens": Option(0, "longest answer; 0: 64, or 128 for captions", low=0, high=MOST_TOKENS),
}
"""What every observer that answers in words accepts."""
MATCHES: Mapping[str, Option] = {
    "match": Option(
        NAMES, "how captions are matched with classes: names, or a text encoder open_clip:MODEL?weights=TAG"
    ),
    "judge": Option("", "a chat model that reads captions instead: chat:MODEL[?url=…]"),
}
SPENDING: Mapping[str, Option] = {
    "concurrency": Option(8, "requests on their way at once", low=1, high=1024),
    "timeout": Option(120.0, "seconds for one request", low=0.1),
    "retries": Option(6, "how often a failed request is sent again", low=0, high=100),
    "max_requests": Option(0, "most requests, over all runs of the run folder; 0: no limit", low=0),
    "max_cost": Option(0.0, "most cost, over all runs of the run folder; 0: no limit", low=0),
    "price_in": Option(0.0, "price of a million tokens of a request", low=0, high=HIGHEST_PRICE),
    "price_out": Option(0.0, "price of a million tokens of an answer", low=0, high=HIGHEST_PRICE),
    "key_env": Option("", f"environment variable with the key; default {KEY} ({OPENAI_KEY} for api.openai.com)"),
}
"""What changes how a model is asked, and none of its answers."""
OPTIONS: Mapping[str, Option] = {
    "url": Option("", "base address of the API, such as http://localhost:8000/v1"),
    **PROMPTS,
    **MATCHES,
    "temperature": Option(0.0, "of sampling", low=0, high=2, words=("default",)),
    "detail": Option("", "how closely the endpoint looks at pictures", choices=("low", "high", "auto")),
    "repeat": Option(1, "number of this repetition: 2 asks everything a second time", low=1),
    **SPENDING,
    **NAME,
}


def load(spec: Spec, options: LoadOptions) -> list[Observer]:
    """Return the model; nothing is asked yet."""
    values = option_values(spec, OPTIONS)
    judge = _judge(spec, values, options) if values["judge"] else None
    return [_observer(spec, values, options, judge)]


def _observer(
    spec: Spec,
    values: Mapping[str, Any],
    options: LoadOptions,
    judge: ChatObserver | None = None,
    prompt: Prompt | None = None,
) -> ChatObserver:
    free = bool(spec.options.get("match") or judge)
    prompt = prompt or read_prompt(values["prompt"], captions=free)
    if free and prompt.lettered and prompt is not JUDGE:
        raise UserError(
            f"observer {spec.text!r} has match= or judge=, and a prompt with lettered options",
            "these read free captions: write prompt=caption, or leave them out",
        )
    longest = values["max_tokens"] or (64 if prompt.lettered else 128)
    budget = judge.endpoint.budget if judge else Budget(values["max_requests"], values["max_cost"])
    endpoint = _endpoint(spec, values, options, longest, budget)
    match = _match(values["match"], options) if free and not judge else None
    return ChatObserver(
        name=values["name"] or short_name(spec),
        endpoint=endpoint,
        asking=Asking(prompt, options.targets, values["options"], values["shuffle"], match, values["match"]),
        preprocess=plain_pictures(values["pixels"]),
        folder=options.journal,
        judge=judge,
        settings={"repeat": values["repeat"]} if values["repeat"] > 1 else {},
    )


def plain_pictures(size: int) -> Preprocess:
    """Return the preparation of pictures for models that prepare them themselves: only their size."""
    return Preprocess(size=size, mean=(0, 0, 0), std=(1, 1, 1), scale=1, source="sent as PNG")


def short_name(spec: Spec) -> str:
    """Return the spec without what changes no answer: where the model is, and what may be spent."""
    hidden = {"url", *SPENDING}
    kept = "&".join(f"{key}={value}" for key, value in spec.options.items() if key not in hidden)
    return f"{spec.scheme}:{spec.body}{'?' * bool(kept)}{kept}"


def _endpoint(spec: Spec, values: Mapping[str, Any], options: LoadOptions, max_tokens: int, budget: Budget) -> Endpoint:
    url = _checked_url(spec, values["url"])
    host = urlsplit(url).hostname or ""
    if options.offline and host not in LOOPBACK:
        raise UserError(f"observer {spec.text!r}: {host} is another machine, and offline was asked for", "leave it out")
    variable = values["key_env"] or (OPENAI_KEY if host == "api.openai.com" and not os.environ.get(KEY) else KEY)
    key = os.environ.get(variable, "").strip()
    if values["key_env"] and not key:
        raise UserError(
            f"observer {spec.text!r}: the environment variable {variable} is not set", f"export {variable}=…"
        )
    if (budget.max_cost or values["max_cost"]) and not (values["price_in"] or values["price_out"]):
        raise UserError(
            f"observer {spec.text!r} has max_cost= but no prices: its cost cannot be counted",
            "add what a million tokens cost: &price_in=2.5&price_out=10 (or limit the number: &max_requests=1300)",
        )
    return Endpoint(
        url=url,
        model=spec.body,
        key=key,
        key_from=variable,
        budget=budget,
        prices=Prices(values["price_in"], values["price_out"]),
        concurrency=values["concurrency"],
        retries=values["retries"],
        timeout=values["timeout"],
        max_tokens=max_tokens,
        temperature=None if values["temperature"] == "default" else values["temperature"],
        detail=values["detail"],
    )


def _checked_url(spec: Spec, url: str) -> str:
    """Return the address; one that holds a secret is refused, because specs are stored and printed."""
    hint = f"e.g. chat:{spec.body}?url=http://localhost:8000/v1"
    if not url:
        raise UserError(f"observer {spec.text!r} has no url=", hint)
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise UserError(f"observer {spec.text!r}: {url!r} is no URL: {error}", hint) from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UserError(f"observer {spec.text!r}: {url!r} is no http address", hint)
    if parts.username or parts.password or parts.query or parts.fragment:
        shown = f"{parts.scheme}://{parts.hostname}{parts.path}"
        raise UserError(
            f"the address of chat:{spec.body} carries a name, a password or a query ({shown}…)",
            f"write the plain address; a key comes from the environment: export {KEY}=…",
        )
    return url.rstrip("/")


def _judge(spec: Spec, values: Mapping[str, Any], options: LoadOptions) -> ChatObserver:
    """Return the model that reads captions, at the same endpoint and with the same prices where it names no others."""
    judge = Spec.parse(values["judge"])
    if judge.scheme != "chat":
        raise UserError(f"observer {spec.text!r}: judge={values['judge']}", "a judge is a chat model: judge=chat:MODEL")
    inherited = {key: text for key, text in spec.options.items() if key in ("url", *SPENDING)}
    judge = replace(judge, options={**inherited, **judge.options})
    return _observer(judge, option_values(judge, OPTIONS), options, prompt=JUDGE)


def _match(source: str, options: LoadOptions) -> Match | None:
    """Return what reads captions by a text encoder; None: by names."""
    if source == NAMES:
        return None
    scheme = source.partition(":")[0]
    if scheme != "open_clip":
        raise UserError(f"match={source}", "write match=names, or match=open_clip:MODEL?weights=TAG")
    from cuebench.observers.adapters.open_clip import text_encoder
    from cuebench.observers.chat.similar import by_similarity

    return by_similarity(text_encoder(Spec.parse(source), options))


ADAPTER = Adapter(
    load=load,
    form="chat:MODEL?url=URL[&prompt=NAME|FILE][&shuffle=SEED][&max_requests=N][&max_cost=X&price_in=…&price_out=…]",
    extra="chat",
    packages=("httpx",),
    examples=(
        "chat:llava?url=http://localhost:11434/v1",
        "chat:Qwen/Qwen2.5-VL-7B-Instruct?url=http://localhost:8000/v1&prompt=vqa_shape&concurrency=32",
        "chat:gpt-4o-mini?url=https://api.openai.com/v1&max_cost=2&price_in=0.15&price_out=0.6",
    ),
    options=OPTIONS,
)
