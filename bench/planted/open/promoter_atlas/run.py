"""Train the promoter classifier with the Hugging Face trainer."""

import argparse
import logging
import os
import tempfile
from pathlib import Path

from callbacks import Ledger, Stopwatch
from genome import CLASSES, Promoters, join
from model import PromoterNet
from scores import report
from transformers import PrinterCallback, Trainer, TrainingArguments, set_seed

FIXED = os.environ.get("PLANTED_FIX") == "1"


class PromoterTrainer(Trainer):
    """Keeps the last loss for the closing line."""

    last_loss = float("nan")

    def training_step(self, *args, **kwargs):
        loss = super().training_step(*args, **kwargs)
        self.last_loss = loss.item()
        return loss


def arguments(folder: str, options: argparse.Namespace) -> TrainingArguments:
    return TrainingArguments(
        output_dir=folder,
        max_steps=options.steps,
        per_device_train_batch_size=options.batch_size,
        per_device_eval_batch_size=64,
        learning_rate=options.lr,
        lr_scheduler_type="cosine",
        warmup_steps=10,
        weight_decay=0.01,
        max_grad_norm=1.0,
        logging_steps=5,
        eval_strategy="steps",
        eval_steps=0.5 if FIXED else 0.02,
        save_strategy="steps",
        save_steps=0.5,
        save_total_limit=1,
        dataloader_num_workers=0,
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        seed=options.seed,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--regions", type=int, default=1600)
    parser.add_argument("--held-out", type=int, default=192)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=31)
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", "150")))
    options = parser.parse_args()
    logging.getLogger("transformers").setLevel(logging.ERROR)
    set_seed(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        stopwatch = Stopwatch()
        trainer = PromoterTrainer(
            model=PromoterNet(len(CLASSES), options.length),
            args=arguments(folder, options),
            train_dataset=Promoters(options.regions, options.length, options.seed, both_strands=True),
            eval_dataset=Promoters(options.held_out, options.length, options.seed + 1, both_strands=False),
            data_collator=join,
            compute_metrics=report,
            callbacks=[Ledger(Path(folder) / "ledger.jsonl"), stopwatch],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
        print(f"{trainer.state.global_step} steps in {stopwatch.seconds:.2f}s, loss {trainer.last_loss:.6f}")


if __name__ == "__main__":
    main()
