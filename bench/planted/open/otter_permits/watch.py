import time

from transformers import TrainerCallback


class Watch(TrainerCallback):
    """Times the run and writes what Trainer logs."""

    def __init__(self):
        self.began = self.seconds = 0.0
        self.history = []

    def on_train_begin(self, args, state, control, **kwargs):
        self.began = time.time()

    def on_train_end(self, args, state, control, **kwargs):
        self.seconds = time.time() - self.began

    def on_log(self, args, state, control, logs=None, **kwargs):
        if logs and "loss" in logs:
            self.history.append(float(logs["loss"]))
            print(f"step {state.global_step} " + " ".join(f"{k}={v}" for k, v in logs.items()), flush=True)


class WeightNorms(TrainerCallback):
    """The norm of every tensor, each tenth step."""

    def __init__(self):
        self.norms = {}

    def on_step_end(self, args, state, control, model=None, **kwargs):
        if state.global_step % 10 == 0:
            self.norms = {name: p.detach().norm().item() for name, p in model.named_parameters()}
