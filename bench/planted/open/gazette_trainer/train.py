"""Topics of official notices with the Hugging Face Trainer."""

import time
import warnings

import numpy as np
import torch
from transformers import Trainer, TrainerCallback, TrainingArguments, set_seed

from batches import Collator
from model import NoticeReader
from notices import Notices
from settings import Settings

warnings.filterwarnings("ignore")


class Pace(TrainerCallback):
    """Wall time, and a line of what was logged."""

    def on_train_begin(self, args, state, control, **rest):
        self.began = time.perf_counter()

    def on_log(self, args, state, control, logs=None, **rest):
        if "loss" in (logs or {}):
            self.loss = float(logs["loss"])
            if state.global_step % 20 == 0:
                print(f"{state.global_step}: {self.loss:.4f}, norm {float(logs['grad_norm']):.3f}", flush=True)


class Norms(TrainerCallback):
    """Lengths of the word vectors, each tenth step."""

    def on_step_end(self, args, state, control, model=None, **rest):
        if state.global_step % 10 == 0:
            size = model.words.weight.detach().norm(dim=1)
            self.spread = np.percentile(size.numpy(), [5, 50, 95]).tolist()


def right(prediction):
    return {"right": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


def main():
    settings = Settings()
    set_seed(21)
    torch.set_num_threads(1)
    arguments = TrainingArguments(
        output_dir="out",
        max_steps=settings.steps,
        per_device_train_batch_size=settings.batch,
        per_device_eval_batch_size=32,
        learning_rate=settings.lr,
        warmup_steps=20,
        logging_steps=1,
        eval_strategy="steps",
        eval_steps=400,
        save_strategy="steps",
        save_steps=400,
        save_total_limit=1,
        max_grad_norm=1.0,
        use_cpu=True,
        disable_tqdm=True,
        report_to=[],
        dataloader_num_workers=0,
        remove_unused_columns=False,
    )
    pace = Pace()
    trainer = Trainer(
        model=NoticeReader(settings.model),
        args=arguments,
        train_dataset=Notices(settings.data.notices, 1),
        eval_dataset=Notices(160, 2),
        data_collator=Collator(settings.data),
        compute_metrics=right,
        callbacks=[pace, Norms()],
    )
    trainer.train()
    seconds = time.perf_counter() - pace.began
    print(f"{settings.steps} steps in {seconds:.3f}s, loss {pace.loss:.5f}")


if __name__ == "__main__":
    main()
