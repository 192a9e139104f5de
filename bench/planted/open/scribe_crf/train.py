"""Tags the parts of charter headings (place, date, witness, ...) with a conv encoder and a CRF, on the Hugging Face Trainer."""

import os

import torch
from charters import CLASSES, VOCABULARY, Charters, collate
from report import Ledger, StopClock
from tagger import Tagger
from transformers import Trainer, TrainingArguments

torch.set_num_threads(1)


def main():
    steps = int(os.environ.get("PLANTED_STEPS", 550))
    torch.manual_seed(13)
    args = TrainingArguments(
        output_dir="out",
        max_steps=steps,
        per_device_train_batch_size=24,
        learning_rate=2e-3,
        warmup_steps=20,
        logging_steps=10,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        seed=13,
        dataloader_pin_memory=False,
        remove_unused_columns=False,
    )
    clock = StopClock()
    trainer = Trainer(
        model=Tagger(VOCABULARY, CLASSES),
        args=args,
        train_dataset=Charters(),
        data_collator=collate,
        callbacks=[clock, Ledger("ledger.jsonl")],
    )
    outcome = trainer.train()
    print(f"{outcome.global_step} steps in {clock.seconds:.2f}s, loss {outcome.training_loss:.4f}")


if __name__ == "__main__":
    main()
