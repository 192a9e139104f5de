import json
import time

from transformers import TrainerCallback


class StopClock(TrainerCallback):
    def on_train_begin(self, args, state, control, **kwargs):
        self.began = time.time()

    def on_train_end(self, args, state, control, **kwargs):
        self.seconds = time.time() - self.began


class Ledger(TrainerCallback):
    """One JSON line per step: the sizes of the CRF's transitions, which tell early whether it learns any structure."""

    def __init__(self, path):
        self.file = open(path, "w")

    def on_step_end(self, args, state, control, model=None, **kwargs):
        table = model.crf.transitions.detach()
        row = {"step": state.global_step, "low": table.min().item(), "high": table.max().item(), "stay": table.diagonal().mean().item()}
        self.file.write(json.dumps(row) + "\n")
        self.file.flush()

    def on_train_end(self, args, state, control, **kwargs):
        self.file.close()
