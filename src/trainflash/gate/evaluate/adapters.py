"""How a model of the owner's enters the evaluation: something that gives the next token's logits, and a tokenizer with fixed rules.

Every adapter answers `logits(ids)`: for a list of token ids, one row of logits a position, and has `encode`, `decode`, `context` (most
tokens at once), `name` and `tokenizer`. `adapt` makes one of a callable, a plain module or a Hugging Face model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from trainflash.errors import ProgramFailed, UsageError

CONTEXT = 256  # tokens at once, unless the model takes fewer or more are asked for
_BYTES = "utf-8 bytes"


class Model(Protocol):
    """What an evaluation asks of a model."""

    name: str
    tokenizer: str
    context: int

    def encode(self, text: str) -> list[int]: ...

    def decode(self, ids: Sequence[int]) -> str: ...

    def logits(self, ids: Sequence[int]) -> Any: ...


@dataclass(frozen=True)
class Adapter:
    """A model by its three functions; `end` is the token after which it says no more."""

    name: str
    forward: Callable[[Sequence[int]], Any]
    encode: Callable[[str], list[int]]
    decode: Callable[[Sequence[int]], str]
    tokenizer: str = _BYTES
    context: int = CONTEXT
    end: int | None = None

    def logits(self, ids: Sequence[int]) -> Any:
        """A matrix [positions, vocabulary] of numbers. Raises `ProgramFailed` where the model gives another shape."""
        import numpy as np

        found = self.forward(list(ids))
        found = found.detach().float().cpu().numpy() if hasattr(found, "detach") else found
        rows = np.asarray(found, dtype=np.float64)
        if rows.ndim == 3 and rows.shape[0] == 1:
            rows = rows[0]
        if rows.ndim != 2 or len(rows) != len(ids):
            raise ProgramFailed(
                f"{self.name} gave {rows.shape} for {len(ids)} tokens",
                "give one row of logits a position: [positions, vocabulary]",
            )
        return rows


def adapt(model: Any, tokenizer: Any = None, *, name: str | None = None, context: int | None = None) -> Adapter:
    """An adapter for `model`.

    A Hugging Face model (with `config`) takes its own tokenizer, given; a plain module, or a callable of a list of ids, is asked for logits
    and reads bytes unless a tokenizer with `encode` and `decode` is given. Raises `UsageError` for what is none of these.
    """
    if isinstance(model, Adapter):
        return model
    if not callable(model):
        raise UsageError(f"{type(model).__name__} is no model", "give a module, a Hugging Face model, or a callable of token ids")
    encode, decode, said, end = _tokenizer(tokenizer)
    config = getattr(model, "config", None)
    vocabulary = getattr(config, "vocab_size", None)
    if tokenizer is None and vocabulary is not None and vocabulary != 256:
        raise UsageError(f"{type(model).__name__} has {vocabulary} tokens and no tokenizer was given", "give adapt(model, tokenizer)")
    own = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None) or CONTEXT
    forward = _module(model) if hasattr(model, "parameters") and hasattr(model, "eval") else model
    shown = name or getattr(model, "__name__", None) or type(model).__name__
    return Adapter(str(shown), forward, encode, decode, said, context or min(int(own), CONTEXT), end)


def _tokenizer(tokenizer: Any) -> tuple[Callable[[str], list[int]], Callable[[Sequence[int]], str], str, int | None]:
    if tokenizer is None:
        return (
            lambda text: list(text.encode("utf-8")),
            lambda ids: bytes(token for token in ids if 0 <= token < 256).decode("utf-8", "replace"),
            _BYTES,
            None,
        )
    if not hasattr(tokenizer, "encode") or not hasattr(tokenizer, "decode"):
        raise UsageError(f"{type(tokenizer).__name__} is no tokenizer", "it needs encode(text) and decode(ids)")
    own = hasattr(tokenizer, "special_tokens_map")  # Hugging Face: no special tokens, so that windows of the shard are alike

    def encode(text: str) -> list[int]:
        return list(tokenizer.encode(text, add_special_tokens=False) if own else tokenizer.encode(text))

    said = f"{type(tokenizer).__name__}({getattr(tokenizer, 'vocab_size', '?')})"
    return encode, lambda ids: str(tokenizer.decode(list(ids))), said, getattr(tokenizer, "eos_token_id", None)


def _module(model: Any) -> Callable[[Sequence[int]], Any]:
    import torch

    parameter = next(model.parameters(), None)
    device = parameter.device if parameter is not None else "cpu"

    def forward(ids: Sequence[int]) -> Any:
        was_training = model.training
        model.eval()
        try:
            with torch.inference_mode():
                outputs = model(torch.tensor([list(ids)], dtype=torch.long, device=device))
        finally:
            model.train(was_training)
        return getattr(outputs, "logits", outputs[0] if isinstance(outputs, tuple) else outputs)

    return forward
