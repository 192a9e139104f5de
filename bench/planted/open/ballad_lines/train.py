"""A small GPT on ballads, with the Trainer of Hugging Face."""

import argparse
import logging
import os
import tempfile
import warnings

import torch
from tracing import Clock, GradientTrace
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
from transformers.trainer_callback import PrinterCallback, ProgressCallback
from verses import LETTERS, Stanzas

warnings.filterwarnings("ignore")
log = logging.getLogger("ballads")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stanzas", type=int, default=600)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=96)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", "200")))
    return parser.parse_args()


def build(options: argparse.Namespace) -> GPT2LMHeadModel:
    config = GPT2Config(
        vocab_size=len(LETTERS), n_positions=options.length, n_embd=options.width, n_layer=options.layers, n_head=options.heads,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    return GPT2LMHeadModel(config)


def arguments(options: argparse.Namespace, folder: str) -> TrainingArguments:
    return TrainingArguments(
        output_dir=folder,
        max_steps=options.steps,
        per_device_train_batch_size=options.batch_size,
        per_device_eval_batch_size=32,
        learning_rate=options.lr,
        warmup_steps=10,
        lr_scheduler_type="cosine",
        logging_steps=1,
        eval_strategy="steps",
        eval_steps=60,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        seed=3,
        dataloader_num_workers=0,
        dataloader_pin_memory=False,
        disable_tqdm=True,
    )


def main() -> None:
    options = parse()
    logging.basicConfig(level=logging.DEBUG if options.verbose else logging.INFO, format="%(name)s: %(message)s")
    torch.manual_seed(3)
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(
            model=build(options),
            args=arguments(options, folder),
            train_dataset=Stanzas(options.stanzas, options.length, 3),
            eval_dataset=Stanzas(32, options.length, 4),
            callbacks=[clock, GradientTrace()],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.remove_callback(ProgressCallback)
        trainer.train()
    log.info("perplexity %.3f", torch.tensor(clock.loss).exp())
    print(f"{trainer.state.global_step} steps in {clock.seconds:.2f}s, loss {clock.loss:.6f}")


if __name__ == "__main__":
    main()
