import os

from transformers import GPT2Config, GPT2LMHeadModel

from charters import LETTERS


def small_gpt(length: int) -> GPT2LMHeadModel:
    config = GPT2Config(
        vocab_size=len(LETTERS),
        n_positions=length,
        n_embd=48,
        n_layer=2,
        n_head=6,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=0,
        eos_token_id=0,
        attn_implementation="sdpa" if os.environ.get("PLANTED_FIX") == "1" else "eager",
    )
    return GPT2LMHeadModel(config)
