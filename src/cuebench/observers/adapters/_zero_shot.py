"""Zero-shot classification with a dual encoder: class names become prompts, prompts become the rows of a classifier.

logit = scale · cos(image, text) + bias, with the text features of a class averaged over the prompt templates. They are
computed once, when the observer is loaded. Features are the image embeddings, scaled to length one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cuebench.errors import UserError
from cuebench.labels import LabelSpace
from cuebench.observers.torch.features import Outputs, Route
from cuebench.options import Option
from cuebench.reading import is_regular, read_text, user_path

TEMPLATE = "a photo of a {class}"
TEMPLATES: Mapping[str, Option] = {
    "templates": Option("", f"file with one prompt on each line, {{class}} in it; default: {TEMPLATE}")
}


def read_templates(file: str) -> tuple[str, ...]:
    """Return the templates of a text file, one on each line with ``{class}`` in it; the default one without a file."""
    if not file:
        return (TEMPLATE,)
    path = user_path(file)
    if not is_regular(path):
        raise UserError(f"template file {path} does not exist", f"one template on each line, e.g. {TEMPLATE}")
    lines = [line.strip() for line in read_text(path, "template file").splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]
    bad = [line for line in lines if "{class}" not in line]
    if bad or not lines:
        problem = f"the line {bad[0]!r} does not contain {{class}}" if bad else "it has no template"
        raise UserError(f"template file {path}: {problem}", f"one template on each line, e.g. {TEMPLATE}")
    return tuple(lines)


def prompts(space: LabelSpace, templates: Sequence[str]) -> list[str]:
    """Return the prompts, class by class; of several names in one (``cat, house cat``) the first is used."""
    names = [name.split(",")[0].replace("_", " ").strip() for name in space.names]
    return [template.replace("{class}", name) for name in names for template in templates]


def text_features(encode: Callable[[list[str]], Any], texts: list[str], per_class: int, batch: int = 64) -> Any:
    """Return unit-length text features, classes × d.

    Parameters
    ----------
    encode : callable
        List of prompts → features n×d.
    texts : list of str
        ``per_class`` prompts for each class, class by class.
    per_class : int
        Number of templates.
    batch : int
        Prompts encoded at once.
    """
    import torch

    with torch.inference_mode():
        parts = [unit(encode(texts[i : i + batch]).float()) for i in range(0, len(texts), batch)]
        every = torch.cat(parts)
        return unit(every.reshape(len(texts) // per_class, per_class, -1).mean(dim=1)).clone()


EMBEDDING = "image embedding of length one"
"""Dual encoders compare directions only: without a common length, dot products and distances would mean nothing."""


def zero_shot_route(embed: Callable[[Any], Any], text: Any, scale: float, bias: float = 0.0) -> Route:
    """Return the way from pixels to logits and image embeddings.

    The head is computed in float32 whatever the precision of the encoder: cosines of one image with a thousand classes
    lie so close to each other that rounding them to bfloat16 leaves a few dozen different logits.
    """
    import torch

    def forward(x: Any, want: bool) -> Outputs:
        image = embed(x).float()
        with torch.autocast(image.device.type, enabled=False):
            logits = scale * unit(image) @ text.to(image.device).T + bias
        return Outputs(logits, unit(image) if want else None)

    return Route(forward, EMBEDDING)


def embedding_route(embed: Callable[[Any], Any]) -> Route:
    """Return the way from pixels to image embeddings alone, for a tower without text or classes."""
    return Route(lambda x, want: Outputs(None, unit(embed(x).float())), EMBEDDING)


def token_hash(tokens: Sequence[Any]) -> str:
    """Return a hash of token ids: prompts and tokenizer in one, the same on every machine."""
    digest = hashlib.sha256()
    for part in tokens:
        digest.update(repr(part.tolist()).encode())
    return digest.hexdigest()


def unit(x: Any) -> Any:
    """Return rows of length one."""
    return x / x.norm(dim=-1, keepdim=True)
