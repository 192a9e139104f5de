"""What is done to the net before it meets the machine."""

import os
from functools import partial

from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    CheckpointImpl,
    apply_activation_checkpointing,
    checkpoint_wrapper,
)

from .nets import Branch, ChannelMix, PatchMix, Reach

FIXED = os.environ.get("PLANTED_FIX") == "1"
UNITS = () if FIXED else (Branch, Reach, PatchMix, ChannelMix)


def slim(net: nn.Module) -> nn.Module:
    wrap = partial(checkpoint_wrapper, checkpoint_impl=CheckpointImpl.NO_REENTRANT, preserve_rng_state=False)
    apply_activation_checkpointing(net, checkpoint_wrapper_fn=wrap, check_fn=lambda part: isinstance(part, UNITS))
    return net
