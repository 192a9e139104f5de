"""python tag.py [settings.yaml]"""

import logging.config
import os
import sys
import tempfile
import time
from pathlib import Path

import yaml
from notes.corpus import Notes
from notes.tagger import TagTrainer, build
from notes.watch import GradientWatch, LossWatch
from transformers import TrainingArguments, set_seed
from transformers.trainer_callback import PrinterCallback


def main(path: str) -> None:
    settings = yaml.safe_load(Path(path).read_text())
    logging.config.dictConfig(settings["logging"])
    corpus, plan = settings["corpus"], settings["training"]
    plan["max_steps"] = int(os.environ.get("PLANTED_STEPS", plan["max_steps"]))
    set_seed(plan["seed"])
    model = build(corpus["words"], corpus["length"], corpus["tags"], **settings["model"])
    with tempfile.TemporaryDirectory() as scratch:
        arguments = TrainingArguments(
            scratch, **plan, save_strategy="no", report_to="none", disable_tqdm=True, use_cpu=True, dataloader_drop_last=True
        )
        trainer = TagTrainer(model, arguments, train_dataset=Notes(**corpus), callbacks=[GradientWatch(), LossWatch()])
        trainer.remove_callback(PrinterCallback)
        began = time.perf_counter()
        trainer.train()
        print(f"{trainer.state.global_step} steps in {time.perf_counter() - began:.2f}s, loss {trainer.latest:.6f}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else str(Path(__file__).with_name("settings.yaml")))
