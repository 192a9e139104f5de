"""What happens beside the training."""

import json
import time
from pathlib import Path

from transformers import TrainerCallback


class Ledger(TrainerCallback):
    """Every figure that the trainer reports, one JSON object a line."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("w")

    def on_log(self, args, state, control, logs=None, **kwargs) -> None:
        figures = {name: round(value, 5) for name, value in (logs or {}).items() if isinstance(value, float)}
        self.file.write(json.dumps({"step": state.global_step, **figures}) + "\n")
        self.file.flush()
        shown = {name: figures[name] for name in ("loss", "eval_loss", "eval_macro_f1") if name in figures}
        if shown:
            print(state.global_step, shown, flush=True)


class Stopwatch(TrainerCallback):
    def __init__(self) -> None:
        self.began = self.seconds = 0.0

    def on_train_begin(self, args, state, control, **kwargs) -> None:
        self.began = time.perf_counter()

    def on_train_end(self, args, state, control, **kwargs) -> None:
        self.seconds = time.perf_counter() - self.began
