"""Tag the words of recipes with a small encoder."""

import os
import tempfile
import time

from encoding import Recipes, make_collator, make_tokenizer
from kitchen import TAGS
from transformers import BertConfig, BertForTokenClassification, Trainer, TrainerCallback, TrainingArguments, logging, set_seed


class Summary(TrainerCallback):
    def on_train_begin(self, args, state, control, **others) -> None:
        self.began = time.perf_counter()

    def on_log(self, args, state, control, logs=None, **others) -> None:
        if logs and "loss" in logs:
            self.loss = float(logs["loss"])
            print(f"step {state.global_step} loss {self.loss:.4f}", flush=True)

    def on_train_end(self, args, state, control, **others) -> None:
        self.seconds, self.steps = time.perf_counter() - self.began, state.global_step


def main() -> None:
    logging.set_verbosity_error()
    set_seed(21)
    tokenizer = make_tokenizer()
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=256,
        max_position_embeddings=512,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        num_labels=len(TAGS),
        pad_token_id=tokenizer.pad_token_id,
    )
    steps = int(os.environ.get("PLANTED_STEPS", 220))
    summary = Summary()
    with tempfile.TemporaryDirectory() as scratch:
        plan = TrainingArguments(
            scratch,
            per_device_train_batch_size=16,
            max_steps=steps,
            learning_rate=6e-4,
            warmup_steps=30,
            weight_decay=0.01,
            logging_steps=20,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
            dataloader_pin_memory=False,
            seed=21,
        )
        trainer = Trainer(
            BertForTokenClassification(config),
            plan,
            train_dataset=Recipes(1500, tokenizer, seed=21),
            data_collator=make_collator(tokenizer),
            callbacks=[summary],
        )
        trainer.pop_callback("PrinterCallback")
        result = trainer.train()
    print(f"{summary.steps} steps in {summary.seconds:.2f} s, loss {result.training_loss:.6f}")


if __name__ == "__main__":
    main()
