"""The owner's line whose tokenizer, of transformers, pads all texts to a fixed length."""

from __future__ import annotations

from .. import imports, own
from ..guard import swallow
from ..patches import like
from ..writer import fact

METHODS = ("__call__", "batch_encode_plus", "encode_plus", "pad")
FIXED = "max_length"

_told = False


def install() -> None:
    """Watch tokenizers once the program imports them."""
    imports.after("transformers.tokenization_utils_base", _watch)


def _watch(module) -> None:
    owner = module.PreTrainedTokenizerBase
    for name in METHODS:
        if name in vars(owner):
            setattr(owner, name, _watched(getattr(owner, name)))


def _watched(original):
    @like(original)
    def wrapped(*args, **kwargs):
        if not _told and kwargs.get("padding") == FIXED:
            _tell()
        return original(*args, **kwargs)

    return wrapped


def _tell() -> None:
    global _told
    try:
        place = own.caller()
        if place is not None:
            _told = True
            fact("tokenizer", at=place)
    except Exception as error:
        swallow("tokenizer", error)
