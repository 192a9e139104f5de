import json
import os
import time
from pathlib import Path

from transformers import HfArgumentParser, Trainer, TrainerCallback, TrainingArguments, set_seed

from corpus import TagCorpus
from tagger import GruTagger, TaggerConfig

FIXED = os.environ.get("PLANTED_FIX") == "1"
STEPS = int(os.environ.get("PLANTED_STEPS", "300"))
HERE = Path(__file__).resolve().parent


class PlainPrinter(TrainerCallback):
    def __init__(self):
        self.loss = float("nan")

    def on_log(self, args, state, control, logs=None, **kw):
        if "loss" in logs:
            self.loss = float(logs["loss"])
            print(f"{state.global_step:5d} loss {self.loss:.4f}")
        if "eval_accuracy" in logs:
            print(f"{state.global_step:5d} eval accuracy {logs['eval_accuracy']:.4f}")


class TaggerTrainer(Trainer):
    last = None

    def compute_loss(self, model, inputs, return_outputs=False, **kw):
        outputs = model(**inputs)
        if model.training:
            self.last = outputs["loss"].detach()
        return (outputs["loss"], outputs) if return_outputs else outputs["loss"]


def accuracy(pred):
    return {"accuracy": float((pred.predictions.argmax(-1) == pred.label_ids).mean())}


def main():
    settings = json.loads((HERE / ("args.fixed.json" if FIXED else "args.json")).read_text())
    settings["output_dir"] = str(HERE / settings["output_dir"])
    settings["max_steps"] = STEPS
    (args,) = HfArgumentParser(TrainingArguments).parse_dict(settings)
    set_seed(args.seed)
    trainer = TaggerTrainer(
        model=GruTagger(TaggerConfig()),
        args=args,
        train_dataset=TagCorpus(4000, seed=1),
        eval_dataset=TagCorpus(4800, seed=2),
        compute_metrics=accuracy,
        callbacks=[PlainPrinter()],
    )
    begin = time.perf_counter()
    trainer.train()
    took = time.perf_counter() - begin
    print(f"{trainer.state.global_step} steps in {took:.2f} s, loss {trainer.last.item():.6f}")


if __name__ == "__main__":
    main()
