"""Train the router of messages."""

import configparser
import os
import tempfile
from pathlib import Path

from batching import collator
from desk import DeskTrainer, Watch, make_model, shares_right
from messages import make_messages
from transformers import PrinterCallback, TrainingArguments, set_seed


def main() -> None:
    settings = configparser.ConfigParser()
    settings.read(Path(__file__).with_name("settings.ini"))
    data, training = settings["data"], settings["training"]
    set_seed(data.getint("seed"))
    train, held_out, vocabulary = make_messages(data.getint("messages"), data.getint("held_out"), data.getint("seed"))
    watch = Watch()
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            max_steps=int(os.environ.get("PLANTED_STEPS", training["steps"])),
            per_device_train_batch_size=training.getint("batch_size"),
            per_device_eval_batch_size=2 * training.getint("batch_size"),
            learning_rate=training.getfloat("lr"),
            weight_decay=training.getfloat("weight_decay"),
            warmup_steps=training.getint("warmup"),
            lr_scheduler_type="cosine",
            logging_steps=20,
            eval_strategy="steps",
            eval_steps=100,
            save_strategy="no",
            report_to="none",
            use_cpu=True,
            disable_tqdm=True,
            remove_unused_columns=False,
            seed=data.getint("seed"),
        )
        trainer = DeskTrainer(
            model=make_model(settings["model"], len(vocabulary)),
            args=arguments,
            data_collator=collator(settings["model"].getint("positions")),
            train_dataset=train,
            eval_dataset=held_out,
            compute_metrics=shares_right,
            callbacks=[watch],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    print(f"{trainer.state.global_step} steps in {watch.seconds:.2f}s, loss {trainer.last_loss:.6f}")


if __name__ == "__main__":
    main()
