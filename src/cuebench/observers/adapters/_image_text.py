"""Image-text-to-text models of Hugging Face transformers: LLaVA, Qwen-VL, InternVL, PaliGemma, SmolVLM …

The library's own processor and chat template prepare picture and prompt. ``?answer=text`` lets the model write and
reads its words; ``?answer=likelihood`` compares the likelihoods of the options' letters as the next token, in one
forward pass: these are logits among the classes, and nothing has to be read.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from cuebench.arrays import Array, Pixels
from cuebench.errors import UserError, all_problems
from cuebench.labels import LabelMap, LabelSpace
from cuebench.observers.adapters._hf_data import BACKEND
from cuebench.observers.adapters._hub import from_repository
from cuebench.observers.adapters._options import TorchOptions, initialised
from cuebench.observers.adapters.chat import PROMPTS, plain_pictures
from cuebench.observers.base import Answers, Batch, LoadOptions, Observer, ObserverBase, Spec
from cuebench.observers.chat.asking import Asking, columns
from cuebench.observers.chat.prompts import letters, read_prompt
from cuebench.observers.preprocess import Preprocess
from cuebench.observers.torch.fingerprint import Identity
from cuebench.observers.torch.placement import Placed
from cuebench.options import Option
from cuebench.types import Capability, ObserverKind

TEXT, LIKELIHOOD = "text", "likelihood"
IMAGE_TEXT: Mapping[str, Option] = {
    **PROMPTS,
    "prompt": Option("", "for models that answer in words: vqa, vqa_shape, vqa_texture, caption, or a text file"),
    "answer": Option(TEXT, "what such a model answers with: text, or the likelihood of each letter",
                     choices=(TEXT, LIKELIHOOD)),
}  # fmt: skip
"""Options of models that answer in words; ``prompt`` asks for one."""


class Parts(NamedTuple):
    """What the library loads for one model."""

    model: Any
    processor: Any
    notes: tuple[str, ...]


def load(spec: Spec, options: LoadOptions, parsed: TorchOptions) -> list[Observer]:
    """Load one image-text-to-text model from the hub or from a folder."""
    values = parsed.values
    asking = Asking(read_prompt(values["prompt"], captions=True), options.targets, values["options"], values["shuffle"])
    if values["answer"] == LIKELIHOOD and not asking.prompt.lettered:
        raise UserError(
            f"observer {spec.text!r}: the prompt {asking.prompt.name!r} shows no options, and so no letters",
            "write prompt=vqa, or answer=text",
        )
    wanted = f"image-text-to-text model {spec.body!r} of transformers (config.json, processor, tokenizer, weights)"
    parts = from_repository(spec.body, wanted, options.offline, lambda s: _parts(s, spec, parsed, options.precision))
    longest = values["max_tokens"] or (16 if asking.prompt.lettered else 64)
    return [
        ImageTextObserver(
            parts,
            name=parsed.name,
            asking=asking,
            size=values["pixels"],
            likelihood=values["answer"] == LIKELIHOOD,
            max_tokens=longest,
            device=options.device,
            precision=options.precision,
        )
    ]


def _parts(source: str, spec: Spec, parsed: TorchOptions, precision: str) -> Parts:
    import torch
    import transformers
    from transformers.models.auto.modeling_auto import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES as KNOWN

    transformers.utils.logging.disable_progress_bar()
    config = transformers.AutoConfig.from_pretrained(source, trust_remote_code=False)
    if config.model_type not in KNOWN:
        raise UserError(
            f"{spec.body} is a model of type {config.model_type!r}, which does not answer about pictures in words",
            "for a classifier or an encoder leave prompt= out; a text-only model cannot be measured here",
        )
    processor = _processor(transformers, source)
    kind = transformers.AutoModelForImageTextToText
    dtype = {"bfloat16": torch.bfloat16, "float16": torch.float16}.get(precision, torch.float32)
    if parsed.random or parsed.checkpoint:
        model, notes = initialised(lambda: kind.from_config(config, dtype=torch.float32), parsed)
        return Parts(model, processor, notes)
    how = {"config": config, "dtype": dtype, "output_loading_info": True}
    model, info = kind.from_pretrained(source, trust_remote_code=False, **how)
    if missing := sorted(map(str, info["missing_keys"])):
        title = f"the weights of {source} do not fit {type(model).__name__}"
        raise all_problems(title, [f"missing {key}" for key in missing], "choose a repository with all weights")
    return Parts(model, processor, ())


def _processor(transformers: Any, source: str) -> Any:
    """Return the processor, its pictures prepared by Pillow: the other back end gives slightly other pixels."""
    try:
        processor = transformers.AutoProcessor.from_pretrained(source, trust_remote_code=False)
    except ImportError as error:  # some processors need a further package
        reason = " ".join(str(error).split())
        raise UserError(f"the processor of {source} cannot be loaded: {reason}", "install what it asks for") from None
    if not hasattr(processor, "image_processor"):
        raise UserError(
            f"{source} has no image processor: it is a text-only model, or its files are incomplete",
            "choose a vision-language model, such as llava-hf/llava-1.5-7b-hf",
        )
    pillow = transformers.AutoImageProcessor.from_pretrained(source, trust_remote_code=False, backend=BACKEND)
    processor.image_processor = pillow
    return processor


class ImageTextObserver(ObserverBase):
    """A model of this machine that is asked about pictures in words.

    Parameters
    ----------
    parts : Parts
        Model and processor.
    name : str
        Public name.
    asking : Asking
        What it is asked, and how its words are read.
    size : int
        Side of the pictures that the processor is given.
    likelihood : bool
        Answer with the likelihoods of letters instead of words.
    max_tokens : int
        Longest answer.
    device, precision : str
        As in ``TorchObserver``.
    """

    name: str
    kind: ObserverKind = "model"
    preprocess: Preprocess

    def __init__(
        self,
        parts: Parts,
        *,
        name: str,
        asking: Asking,
        size: int,
        likelihood: bool,
        max_tokens: int,
        device: str,
        precision: str,
    ) -> None:
        self.name, self.asking, self.likelihood, self.max_tokens = name, asking, likelihood, max_tokens
        self.preprocess = plain_pictures(size)
        self.processor = parts.processor
        self.tokenizer = getattr(parts.processor, "tokenizer", parts.processor)
        self.tokenizer.padding_side = "left"  # the answer begins where the question ends, for all of a batch
        if self.tokenizer.pad_token is None:
            self.tokenizer.pad_token = self.tokenizer.eos_token
        self._identity = Identity(parts.model, frozen=True)
        self._placed = Placed(parts.model, device, precision, frozen=False)
        self._notes = parts.notes

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Logits of the classes, or decisions."""
        return frozenset({"logits"} if self.likelihood else {"decisions"})

    @property
    def labels(self) -> LabelSpace | None:
        """The classes, where it answers with their likelihoods."""
        return LabelSpace("targets", self.asking.classes) if self.likelihood and self.asking.classes else None

    @property
    def device(self) -> Any:
        """Where it runs."""
        return self._placed.device

    @property
    def precision(self) -> str:
        """What it computes with."""
        return self._placed.precision

    @property
    def memory(self) -> int:
        """Bytes of the weights on a device of its own."""
        return self._placed.memory

    @property
    def notes(self) -> tuple[str, ...]:
        """What the record of the run says about it."""
        how = "answers are the likelihoods of the options' letters" if self.likelihood else ""
        return (*self._notes, *filter(None, [how]), *self._identity.notes, *self._placed.notes)

    @property
    def fingerprint(self) -> str:
        """Hash of the weights, the code, the processor and the question."""
        processor = {
            "processor": str(self.processor),
            "template": self._template or "",
            "likelihood": self.likelihood,
            "max_tokens": 0 if self.likelihood else self.max_tokens,
            "precision": self.precision,
        }
        reading = {} if self.likelihood else self.asking.describe_reading()
        return self._identity.fingerprint({**processor, **self.asking.describe(), **reading})

    @property
    def _template(self) -> str | None:
        return getattr(self.processor, "chat_template", None) or getattr(self.tokenizer, "chat_template", None)

    def among(self, targets: Sequence[str], members: LabelMap | None = None, space: str = "") -> ImageTextObserver:
        """Return the same model, choosing among the classes of one protocol's stimuli."""
        other = copy.copy(self)
        other.asking = self.asking.among(targets)
        if self.likelihood:
            other.letter_tokens()  # a tokenizer that cannot write a letter fails here, not in the run
        return other

    def release(self) -> None:
        """Make room on the device until the next answer."""
        self._placed.release()

    def respond(self, batch: Batch, needs: Sequence[Capability]) -> Answers:
        """Ask about every picture of a batch."""
        assert batch.images is not None
        inputs = self._inputs(batch.images)
        with self._placed.running():
            if self.likelihood:
                return {"logits": self._letters(self._on_device(inputs))}
            texts, cut = self._generate(self._on_device(inputs))
        return columns(texts, self.asking.read(texts), cut)

    def _inputs(self, images: Pixels) -> Any:
        """Return pictures and prompt as the model's processor prepares them."""
        from PIL import Image

        pictures = [Image.fromarray(np.asarray(image)) for image in images]
        if self._template:
            content = [
                [
                    {
                        "role": "user",
                        "content": [{"type": "image", "image": p}, {"type": "text", "text": self.asking.text}],
                    }
                ]
                for p in pictures
            ]
            inputs = self.processor.apply_chat_template(
                content,
                chat_template=self._template,
                add_generation_prompt=True,
                tokenize=True,
                return_dict=True,
                return_tensors="pt",
                processor_kwargs={"padding": True},
            )
        else:  # PaliGemma and others that were trained on plain prompts
            token = getattr(self.processor, "image_token", None) or "<image>"
            text = f"{token}{self.asking.text}"
            inputs = self.processor(images=pictures, text=[text] * len(pictures), padding=True, return_tensors="pt")
        return inputs

    def _generate(self, inputs: dict[str, Any]) -> tuple[list[str], list[bool]]:
        model = self._placed.module
        written = model.generate(
            **inputs,
            max_new_tokens=self.max_tokens,
            do_sample=False,
            pad_token_id=self.tokenizer.pad_token_id,
        )
        if not model.config.is_encoder_decoder:
            written = written[:, inputs["input_ids"].shape[1] :]
        ends = model.generation_config.eos_token_id
        stops = {
            *(ends if isinstance(ends, list) else [ends]),
            self.tokenizer.pad_token_id,
            self.tokenizer.eos_token_id,
        }
        cut = [len(row) >= self.max_tokens and not stops & set(row.tolist()) for row in written]
        texts = self.tokenizer.batch_decode(written, skip_special_tokens=True)
        return [text.replace("\0", "\ufffd").strip() for text in texts], cut

    def _letters(self, inputs: dict[str, Any]) -> Array:
        """Return the log-likelihood of each class's letter as the next token, up to a constant of the row."""
        import torch

        model = self._placed.module
        if "logits_to_keep" in inspect.signature(model.forward).parameters:
            inputs["logits_to_keep"] = 1
        if model.config.is_encoder_decoder:
            start = model.generation_config.decoder_start_token_id
            inputs["decoder_input_ids"] = torch.full((len(inputs["input_ids"]), 1), start, device=self.device)
        following = torch.log_softmax(model(**inputs).logits[:, -1].float(), dim=-1)
        by_option = [torch.logsumexp(following[:, ids], dim=1) for ids in self.letter_tokens()]
        shown = {name: position for position, name in enumerate(self.asking.options)}
        rows = torch.stack([by_option[shown[name]] for name in self.asking.classes], dim=1)
        return np.asarray(rows.cpu().numpy(), np.float32)

    def letter_tokens(self) -> list[list[int]]:
        """Return the tokens that each option's letter can be written with: alone, and after a space.

        Raises
        ------
        UserError
            The tokenizer has no token of its own for a letter.
        """
        tokens, unknown = [], self.tokenizer.unk_token_id
        for letter in letters(len(self.asking.options)):
            coded = [self.tokenizer.encode(text, add_special_tokens=False) for text in (letter, f" {letter}")]
            # Some tokenizers write a space of its own before the letter.
            ids = {ids[-1] for ids in coded if ids and ids[-1] != unknown and self._writes(ids[-1], letter)}
            tokens.append(sorted(ids))
        bad = [letter for letter, ids in zip(letters(len(tokens)), tokens) if not ids]
        if bad:
            raise UserError(
                f"{self.name}: its tokenizer has no token for the letter{'s' * (len(bad) > 1)} {', '.join(bad[:5])}",
                "let it write instead: &answer=text",
            )
        return tokens

    def _writes(self, token: int, letter: str) -> bool:
        return str(self.tokenizer.decode([token])).strip() == letter

    def _on_device(self, inputs: Any) -> dict[str, Any]:
        import torch

        dtype = self._placed.dtype
        return {
            key: value.to(self.device, dtype)
            if value.is_floating_point() and dtype is not None
            else value.to(self.device)
            for key, value in inputs.items()
            if isinstance(value, torch.Tensor) and key != "labels"  # of training; PaliGemma's processor adds them
        }
