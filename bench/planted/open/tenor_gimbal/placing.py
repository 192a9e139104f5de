"""Makes a network ready for the machine it will be tuned on: what learns, and how it is laid out there."""

import os

from torch.utils.checkpoint import checkpoint

from ear import Block, Stage


def freeze(ear):
    for name, p in ear.named_parameters():
        p.requires_grad_("adapter" in name or name.startswith("out"))


def tighten(part):
    plain = part.forward

    def forward(h):
        return checkpoint(plain, h, use_reentrant=False)

    part.forward = forward


def place(ear, wish):
    if wish.getboolean("freeze"):
        freeze(ear)
    fit = wish.get("fit", "loose")
    if os.environ.get("PLANTED_FIX") == "1":
        fit = "loose"
    if fit == "tight":
        for part in ear.modules():
            if isinstance(part, (Stage, Block)):
                tighten(part)
    return ear
