import gc
import os

from transformers import TrainerCallback

FAST = os.environ.get("PLANTED_FIX") == "1"


class TidyCallback(TrainerCallback):
    """Frees what a step leaves behind."""

    def on_step_end(self, args, state, control, **kwargs):
        if not FAST and state.global_step % 3 == 0:
            gc.collect()
